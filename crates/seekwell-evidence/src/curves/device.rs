//! Curves that describe a device, computed from its model.
//!
//! A hard disk has two curves, computed from its parameters: seek time by distance, and transfer
//! rate from the outer to the inner edge. Other devices are measured with random 4 KiB commands.
//! Their curves show latency and rate by the number of outstanding commands. If a device accepts
//! only one command at a time, the curves show latency and rate by the size of the command.

use seekwell_core::{Device, Nanos, Op, rng};
use seekwell_device::hdd::{ClosedForms, HddParams, SeekCurve};
use seekwell_device::probe::{Client, Run, below, command};
use seekwell_device::{DeviceError, ParamError, read_preset};

/// One axis of a plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Name of the quantity.
    pub label: &'static str,
    /// Unit of the quantity; may be empty.
    pub unit: &'static str,
    /// True for a logarithmic axis on which each step doubles the value.
    pub doubling: bool,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Name of the curve.
    pub name: &'static str,
    /// Points (x, y), ascending in x.
    pub points: Vec<(f64, f64)>,
}

/// Curves on the same axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Title.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis; starts at 0.
    pub y: Axis,
    /// At least one curve; each has at least two points.
    pub curves: Vec<Curve>,
}

const fn axis(label: &'static str, unit: &'static str) -> Axis {
    Axis {
        label,
        unit,
        doubling: false,
    }
}

/// Number of points of a curve that is computed from parameters.
const POINTS: u32 = 160;
/// Number of commands per measurement.
const COMMANDS: usize = 1_500;
/// Largest number of outstanding commands on the axis.
const DEEPEST: u32 = 256;
/// Largest size of a command on the axis, in sectors.
const LARGEST: u32 = 1024;

/// Returns the curves that follow from parameters alone; `None` if the device is not a hard disk.
pub fn curves(spec: &str) -> Result<Option<Vec<Plot>>, DeviceError> {
    let preset = read_preset(spec)?;
    if preset.kind != "hdd" {
        return Ok(None);
    }
    let plots = HddParams::from_preset(&preset).and_then(|p| disk(&p));
    plots.map(Some).map_err(|e| preset.locate(e, spec))
}

/// Measures the curves of any device.
pub fn measured<D: Device>(device: D) -> Vec<Plot> {
    match device.facts().depth {
        1 => against_size(device),
        _ => against_depth(device),
    }
}

fn disk(p: &HddParams) -> Result<Vec<Plot>, ParamError> {
    let forms = ClosedForms::new(p)?;
    let cylinders = forms.geometry().cylinders();
    let curve = SeekCurve::new(&p.seek, cylinders)?;
    // Short distances have more points, because the curve bends there.
    let near = |i: u32| {
        let share = f64::from(i) / f64::from(POINTS);
        ((share * share * f64::from(cylinders - 1)) as u32).max(1)
    };
    let seek = (0..=POINTS).map(near).map(|d| (f64::from(d), curve.ms(d)));
    let mut seek: Vec<_> = seek.collect();
    seek.dedup_by_key(|p| p.0);
    let last = p.capacity - 1;
    let rate = (0..=POINTS).map(|i| {
        let lba = (u128::from(last) * u128::from(i) / u128::from(POINTS)) as u64;
        (lba as f64 * 512.0 / 1e9, forms.sustained_mb(lba))
    });
    Ok(vec![
        Plot {
            title: "Seek time by distance".to_owned(),
            x: axis("distance", "cylinders"),
            y: axis("seek", "ms"),
            curves: vec![Curve {
                name: "read",
                points: seek,
            }],
        },
        Plot {
            title: "Sequential rate by address".to_owned(),
            x: axis("address", "GB"),
            y: axis("rate", "MB/s"),
            curves: vec![Curve {
                name: "read",
                points: rate.collect(),
            }],
        },
    ])
}

/// One measurement: position on the axis, number of outstanding commands, sectors per command.
type Step = (f64, u32, u32);

/// Runs the measurements one after the other on the same device, with random commands.
fn sweep<D: Device>(c: &mut Client<D>, op: Op, steps: &[Step]) -> Vec<(f64, Run)> {
    let capacity = c.device.facts().capacity.0;
    let mut rng = rng::stream(1, "picture");
    let mut out = vec![];
    for &(x, depth, sectors) in steps {
        let places = (capacity / u64::from(sectors)).max(1);
        let next = |_| {
            let at = below(&mut rng, places) * u64::from(sectors);
            command(op, at, sectors)
        };
        out.push((x, c.run(COMMANDS, depth as usize, Nanos::ZERO, next)));
        // The flush and the pause prevent that a measurement affects the next one.
        c.send(command(Op::Flush, 0, 0));
        c.sleep(Nanos::from_secs(1));
    }
    out
}

fn compared<D: Device>(device: D, x: (Axis, &[Step]), what: [Measure; 2]) -> Vec<Plot> {
    let mut client = Client::new(device);
    let read = sweep(&mut client, Op::Read, x.1);
    let write = sweep(&mut client, Op::Write, x.1);
    let plot = |(title, y, value): Measure| {
        let curve = |name, runs: &[(f64, Run)]| Curve {
            name,
            points: runs.iter().map(|(x, r)| (*x, value(r))).collect(),
        };
        Plot {
            title: title.to_owned(),
            x: x.0,
            y,
            curves: vec![curve("read", &read), curve("write", &write)],
        }
    };
    what.map(plot).into()
}

/// Title and axis of a plot, and the function that returns its value for a measurement.
type Measure = (&'static str, Axis, fn(&Run) -> f64);

fn doubling(label: &'static str, unit: &'static str) -> Axis {
    Axis {
        label,
        unit,
        doubling: true,
    }
}

/// Returns `first`, `2 * first`, `4 * first`, ... below `last`, and then `last`.
fn doubled(first: u32, last: u32) -> Vec<u32> {
    let mut all: Vec<u32> = std::iter::successors(Some(first), |d| d.checked_mul(2))
        .take_while(|d| *d < last)
        .collect();
    all.push(last);
    all
}

fn against_depth<D: Device>(device: D) -> Vec<Plot> {
    let depths = doubled(1, device.facts().depth.clamp(2, DEEPEST));
    let steps: Vec<Step> = depths.iter().map(|d| (f64::from(*d), *d, 8)).collect();
    compared(
        device,
        (doubling("commands outstanding", ""), &steps),
        [
            (
                "Mean latency of random 4 KiB commands",
                axis("latency", "ms"),
                Run::mean_ms,
            ),
            (
                "Random 4 KiB commands per second",
                axis("rate", "IOPS"),
                Run::iops,
            ),
        ],
    )
}

fn against_size<D: Device>(device: D) -> Vec<Plot> {
    let most = device.facts().max_sectors.0.clamp(16, LARGEST);
    let steps: Vec<Step> = doubled(8, most)
        .iter()
        .map(|n| (f64::from(*n) / 2.0, 1, *n))
        .collect();
    compared(
        device,
        (doubling("length", "KiB"), &steps),
        [
            (
                "Mean latency of random commands, one at a time",
                axis("latency", "ms"),
                Run::mean_ms,
            ),
            (
                "Rate of random commands, one at a time",
                axis("rate", "MB/s"),
                Run::mb,
            ),
        ],
    )
}

#[cfg(test)]
mod tests {
    use crate::curves::pictures;

    #[test]
    fn a_disk_shows_its_seeks_and_zones() {
        let plots = pictures("hdd:hitachi-7k200").unwrap();
        let (seek, rate) = (&plots[0].curves[0].points, &plots[1].curves[0].points);
        assert!(seek.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1));
        assert_eq!(seek[0], (1.0, 1.0), "track to track");
        assert!((seek.last().unwrap().1 - 18.0).abs() < 0.01, "full stroke");
        assert!(rate.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 >= w[1].1));
    }

    #[test]
    fn others_are_measured_against_depth() {
        let plots = pictures("constant:depth=6,servers=parallel,service_us=500").unwrap();
        let of = |i: usize| plots[i].curves[0].points.clone();
        assert_eq!(of(0), [(1.0, 0.5), (2.0, 0.5), (4.0, 0.5), (6.0, 0.5)]);
        assert!((of(1)[3].1 - 12_000.0).abs() < 0.1);
        // A device with one server: latency grows with depth, but the rate does not.
        let plots = pictures("constant:depth=4,service_us=500").unwrap();
        assert!(plots[0].curves[1].points[2].1 > 1.9);
        assert!((plots[1].curves[1].points[2].1 - 2_000.0).abs() < 1.0);
    }

    #[test]
    fn what_takes_one_at_a_time_is_measured_by_length() {
        let plots = pictures("emmc:motog,noise_read=0,map_miss=0").unwrap();
        assert_eq!(plots[0].x.unit, "KiB");
        let read = &plots[0].curves[0].points;
        assert_eq!(read.first().map(|p| p.0), Some(4.0));
        assert_eq!(read.last().map(|p| p.0), Some(512.0));
        assert!((read[0].1 - 0.741).abs() < 1e-9, "{read:?}");
    }

    #[test]
    fn overrides_show_and_what_cannot_be_is_refused() {
        let plots = pictures("hdd:hitachi-7k200,seek_full=20").unwrap();
        assert!((plots[0].curves[0].points.last().unwrap().1 - 20.0).abs() < 0.01);
        let e = pictures("hdd:hitachi-7k200,seek_full=180").unwrap_err();
        assert!(e.to_string().contains("full stroke"), "{e}");
        assert!(pictures("tape:reel").is_err());
    }
}
