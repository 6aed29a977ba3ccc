//! Floor 2: fits a device preset to a device by probing it from outside.
//!
//! The estimators are pure: they use a [`Probe`], which sends reads and returns completion times,
//! and they have no clock of their own. [`SimProbe`] is a probe over a device model, so that tests
//! can recover known parameters from times alone.
//!
//! The module of each estimator describes what it fits and how. The written preset names method,
//! interval and samples of each value. Not covered: probes that need commands below the block layer
//! (cache control, VERIFY, mode pages), shingled and two-actuator drives, and the tail of rare
//! recoveries.

mod fit;
mod hdd;
mod model;
mod preset;
mod probe;
mod session;
mod sim;
mod ssd;
mod stats;

pub use fit::{Curve, Demerit, Estimate, Fit, Kind, Known, Val, short};
pub use model::generic_hdd;
pub use preset::{kind_of, preset};
pub use probe::{Facts, Io, Probe, Stop, Timed, What};
pub use session::{Options, Progress};
pub use sim::SimProbe;

use session::{SMALL, Session};
use stats::{median, quantile};

/// Smallest device that can be probed, sectors: 16 MiB.
pub const SMALLEST: u64 = 32_768;

/// Probes the device and fits as many parameters as possible. Keeps the findings on an
/// interruption, a failure or the end of the budget; [`Fit::cut`] then holds the reason.
pub fn calibrate(probe: &mut dyn Probe, options: Options, tell: &mut dyn FnMut(Progress)) -> Fit {
    let mut s = Session::new(probe, options, tell);
    let (mut kind, mut because) = (Kind::Unknown, String::from("stopped before it was known"));
    let cut = look(&mut s, &mut kind, &mut because).err();
    s.finish(kind, because, cut)
}

fn look(s: &mut Session<'_>, kind: &mut Kind, because: &mut String) -> Result<(), Stop> {
    if s.capacity() < SMALLEST {
        *because = format!(
            "{} sectors are too few: it takes at least {SMALLEST} (16 MiB)",
            s.capacity()
        );
        return Ok(());
    }
    s.stage("first look");
    // The first reads may wake up the device; they are not measured.
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
            "random reads take {} us: no platter turns that fast",
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
             period (agreement {:.2}, {} needed): not a single disk, or too noisy: an array, a \
             network volume, or other I/O going on",
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
