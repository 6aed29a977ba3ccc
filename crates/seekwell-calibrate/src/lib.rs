//! Fits the parameters of a device preset to a real device. It sends I/Os to the device and
//! measures their completion times.
//!
//! The estimators use a [`Probe`], which sends I/Os and returns completion times. They have no
//! clock of their own. [`SimProbe`] is a probe for a device model, so that tests can check whether
//! the estimators find its known parameters.
//!
//! The module of each estimator describes what it fits and how. The written preset contains the
//! method, the confidence interval and the number of samples of each value.
//!
//! These are not covered: probes that need commands below the block layer (cache control, VERIFY,
//! mode pages), shingled drives, drives with two actuators, and the latency tail from rare error
//! recoveries.

mod fit;
mod hdd;
mod misfit;
mod model;
mod preset;
mod probe;
mod session;
mod sim;
mod ssd;
mod stats;

pub use fit::{Curve, Demerit, Estimate, Fit, Kind, Known, Val, short};
pub use misfit::refusal;
pub use model::generic_hdd;
pub use preset::{kind_of, preset};
pub use probe::{Facts, Io, Probe, Stop, Timed, What};
pub use session::{Options, Progress};
pub use sim::SimProbe;

use session::{SMALL, Session};
use stats::{median, quantile};

/// Size of the smallest device that can be calibrated, sectors: 16 MiB.
pub const SMALLEST: u64 = 32_768;

/// Probes the device and fits as many parameters as possible. If the calibration is interrupted,
/// fails or uses up its budget, the parameters found so far are returned, and [`Fit::cut`] contains
/// the reason.
///
/// A device that cannot be recognised, or a fit that does not agree with the device, may be the
/// result of a disturbance. The calibration then starts again as long as the budget allows.
pub fn calibrate(probe: &mut dyn Probe, options: Options, tell: &mut dyn FnMut(Progress)) -> Fit {
    let mut s = Session::new(probe, options, tell);
    let mut attempt = 0;
    loop {
        attempt += 1;
        let (mut kind, mut because) = (Kind::Unknown, String::from("stopped before it was known"));
        let cut = look(&mut s, &mut kind, &mut because).err();
        let misfit = s.misfit(kind);
        let bad = kind == Kind::Unknown || misfit.is_some();
        let each_s = s.used_s() / f64::from(attempt);
        let last = attempt == ATTEMPTS || s.left_s() < 1.2 * each_s || s.capacity() < SMALLEST;
        if cut.is_some() || !bad || last {
            return s.finish(kind, because, cut);
        }
        s.again(&misfit.unwrap_or(because));
    }
}

/// Largest number of attempts in a calibration.
const ATTEMPTS: u32 = 3;

fn look(s: &mut Session<'_>, kind: &mut Kind, because: &mut String) -> Result<(), Stop> {
    if s.capacity() < SMALLEST {
        *because = format!(
            "{} sectors are too few: the device must have at least {SMALLEST} (16 MiB)",
            s.capacity()
        );
        return Ok(());
    }
    s.stage("first look");
    // The first reads are not measured, because they may have to wake up the device.
    for _ in 0..8 {
        let lba = s.anywhere();
        s.read(lba)?;
    }
    let ios: Vec<Io> = (0..s.count(64, 40))
        .map(|_| Io::read(s.anywhere(), SMALL))
        .collect();
    let ms: Vec<f64> = s.run(&ios, 1)?.iter().map(|t| t.ms()).collect();
    let usual = median(&ms);
    if usual < hdd::SLOW {
        *kind = Kind::Flash;
        *because = format!(
            "random reads take {} us: a hard disk cannot be that fast",
            short(libm::round(usual * 1e4) / 10.0)
        );
        if let Err(why) = ssd::run(s)? {
            because.push_str("; ");
            because.push_str(&why);
        }
        return Ok(());
    }
    let (p, hits) = hdd::period(s)?;
    if p.agreement < p.needed {
        *because = format!(
            "random reads take {:.1} ms (90 %: {:.1} ms), but their completions have no common \
             period (agreement {:.2}, {} needed): the device is an array or a \
             network volume, or other I/O disturbs the measurement",
            usual,
            quantile(&ms, 0.9),
            p.agreement,
            p.needed
        );
        return Ok(());
    }
    *kind = Kind::Hdd;
    *because = format!(
        "completions of reads repeat every {:.4} ms (agreement {:.3})",
        p.turn_ms, p.agreement
    );
    if let Err(why) = hdd::fit(s, p, hits)? {
        *kind = Kind::Unknown;
        *because = why;
    }
    Ok(())
}
