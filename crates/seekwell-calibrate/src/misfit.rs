//! Decides whether a fitted model agrees with the device well enough to be used.
//!
//! On a busy machine, waits for a CPU look like latencies of the device. The fit then converges to
//! parameters that no device has, without any other sign.

use crate::fit::{Curve, Demerit, Fit, Kind};
use crate::stats::median;

/// Largest ratio between a measured value and the model's value at any point of a flash drive's
/// curves.
const WORST: f64 = 3.0;
/// Largest median ratio over the points of one curve.
const USUAL: f64 = 1.5;
/// Largest difference between the latencies of a hard disk and those of its model, as a fraction of
/// the mean latency. Models of ten random disks differ by less than 0.1.
const DEMERIT: f64 = 0.35;

/// Returns the ratio of two positive numbers, 1 or more.
fn ratio(a: f64, b: f64) -> f64 {
    match a > 0.0 && b > 0.0 {
        true => (a / b).max(b / a),
        false => 1.0,
    }
}

/// Returns why the result of a calibration cannot be trusted, or `None` if the fitted model agrees
/// with the device.
pub fn refusal(fit: &Fit) -> Option<String> {
    misfit(fit.kind, &fit.curves, fit.demerit)
}

/// Returns why the fit is refused, or `None`.
pub(crate) fn misfit(kind: Kind, curves: &[Curve], demerit: Option<Demerit>) -> Option<String> {
    match kind {
        Kind::Unknown => None,
        Kind::Hdd => {
            let d = demerit?;
            let generic = d.fitted > d.generic && d.fitted > 3.0 * d.chance.max(0.03);
            (d.fitted > DEMERIT || generic).then(|| {
                format!(
                    "the latencies of the fitted model differ from those of the device by {:.0} % \
                     (a generic disk: {:.0} %, chance alone: {:.0} %)",
                    d.fitted * 100.0,
                    d.generic * 100.0,
                    d.chance * 100.0
                )
            })
        }
        Kind::Flash => curves.iter().find_map(|c| {
            let all: Vec<f64> = c.points.iter().map(|p| ratio(p.1, p.2)).collect();
            let worst = all.iter().copied().fold(1.0, f64::max);
            (worst > WORST || (all.len() > 2 && median(&all) > USUAL)).then(|| {
                format!(
                    "the fitted model and the device differ by up to {:.0} % in \"{}\"",
                    (worst - 1.0) * 100.0,
                    c.title
                )
            })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Curve {
        Curve {
            title: "one read at a time".to_owned(),
            x: String::new(),
            y: String::new(),
            points: points.iter().map(|p| (1.0, p.0, p.1)).collect(),
            log_x: false,
        }
    }

    #[test]
    fn flash_model_that_misses_its_curves_is_refused() {
        let refused = |points: &[(f64, f64)]| misfit(Kind::Flash, &[curve(points)], None);
        assert_eq!(refused(&[(1.0, 1.1), (2.0, 1.9), (4.0, 3.0)]), None);
        let why = refused(&[(1.0, 1.0), (2.0, 2.0), (8.75, 1.0)]).expect("one point is far off");
        assert!(
            why.contains("up to 775 %") && why.contains("one read"),
            "{why}"
        );
        assert!(
            refused(&[(1.0, 1.8), (2.0, 3.5), (4.0, 2.2)]).is_some(),
            "all are off"
        );
        assert_eq!(refused(&[(0.0, 1.0)]), None, "not measured");
    }

    #[test]
    fn disk_model_that_is_worse_than_a_generic_disk_is_refused() {
        let d = |fitted, generic, chance| {
            let d = Demerit {
                fitted,
                generic,
                chance,
            };
            misfit(Kind::Hdd, &[], Some(d))
        };
        assert_eq!(d(0.05, 0.2, 0.04), None);
        assert!(d(0.5, 0.6, 0.04).is_some(), "far off");
        assert!(d(0.2, 0.1, 0.04).is_some(), "worse than the null model");
        assert_eq!(d(0.11, 0.1, 0.04), None, "chance alone explains it");
        assert_eq!(misfit(Kind::Hdd, &[], None), None, "not compared");
    }
}
