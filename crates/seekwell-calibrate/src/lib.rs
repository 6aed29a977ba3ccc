//! Floor 2: fits a device preset to a device by probing it from outside.
//!
//! The estimators are pure: they talk to a [`Probe`], which sends reads and tells when they came
//! back, and have no clock of their own. [`SimProbe`] puts a device model behind that, so that
//! known parameters can be recovered from times alone.
//!
//! What is fitted, and how, is told by each estimator's module and by the preset written, which
//! names method, interval and samples of each value. Left out: probes that need commands below the
//! block layer (cache control, VERIFY, mode pages), shingled and two-actuator drives, the tail of
//! rare recoveries.

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

/// Probes the device and fits what it can. What was found before an interruption, a failure or the
/// end of the budget is kept; [`Fit::cut`] says so.
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
    // What the first reads wake up is not to be measured.
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
