//! Demos of cgroup controllers in front of a scheduler: `io.max`, `io.latency`, `io.cost`.

use super::{Demo, DemoError, Lab, On, Shown, ios, latency_ms, run_told};
use seekwell_core::result::Record;
use seekwell_core::{
    CgroupId, Control, Instant, IoCostModel, IoCostQos, IoMaxLimits, Nanos, Sector,
};
use seekwell_sim::procs::{Pattern, Process};

/// The demos of this file.
pub(super) const DEMOS: &[Demo] = &[
    Demo {
        name: "io-max",
        claim: "io.max limits a cgroup under any scheduler, even while the drive is otherwise \
                idle.",
        runs: 16,
        each: 4,
        run: io_max,
    },
    Demo {
        name: "io-latency",
        claim: "io.latency restores a reader's latency under schedulers without cgroup support.",
        runs: 8,
        each: 2,
        run: io_latency,
    },
    Demo {
        name: "io-cost",
        claim: "io.cost shares by weight under schedulers without weights, if it has a model of \
                the device.",
        runs: 11,
        each: 0,
        run: io_cost,
    },
];

const SPAN: u64 = 80_000_000;
const SECONDS: u64 = 4;
/// A flash drive of the early 2010s.
const SSD: On = On {
    device: "ssd:sata3-256-2011",
    depth: None,
};
/// A device that serves 8 commands in parallel, together 10,000 per second.
const SMALL: On = On {
    device: "constant:depth=8,service_us=800,servers=parallel",
    depth: None,
};
/// A device that serves one command at a time, 4,000 per second.
const SERIAL: On = On {
    device: "constant:depth=512,service_us=250,servers=serial",
    depth: None,
};
const FAST: CgroupId = CgroupId(1);
const OTHER: CgroupId = CgroupId(2);
const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// Returns a process in a cgroup that reads 4 KiB at random positions.
fn reader(cgroup: CgroupId, depth: u32) -> Process {
    Process {
        cgroup,
        sectors: 8,
        depth,
        pattern: Pattern::Random(Sector(0), Sector(SPAN)),
        stop: Instant::START + Nanos::from_secs(SECONDS),
        ..Process::reader(cgroup.0, 0)
    }
}

/// Returns the operations per second of a cgroup's reader.
fn rate(r: &Record, cgroup: CgroupId) -> f64 {
    ios(r, cgroup.0) / SECONDS as f64
}

fn made(more: &[Control]) -> Vec<Control> {
    let new = [FAST, OTHER].map(|id| Control::CgroupNew(id, CgroupId::ROOT));
    new.into_iter().chain(more.iter().copied()).collect()
}

fn io_max(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    const CAP: u64 = 2000;
    let mut shown = Shown::new(
        "two random readers of 4 KiB, 16 requests each, on a device that serves 8 side by side in 0.8 \
         ms each, 4 s; the second's cgroup has riops=2000, or not; then the second alone",
        &[
            "scheduler",
            "first",
            "second",
            "off: first",
            "second",
            "alone",
            "off: alone",
        ],
    );
    let limits = IoMaxLimits {
        riops: Some(CAP),
        ..IoMaxLimits::default()
    };
    let told = [made(&[Control::IoMax(OTHER, limits)]), made(&[])];
    let (mut worst, mut shared, mut idle) = (0f64, f64::MAX, 0f64);
    for s in lab.schedulers(&SCHEDULERS) {
        let mut rates = Vec::new();
        for first in &told {
            let both = vec![reader(FAST, 16), reader(OTHER, 16)];
            let r = run_told(SMALL, &s, lab, both, first)?;
            rates.extend([rate(&r, FAST), rate(&r, OTHER)]);
        }
        for first in &told {
            let r = run_told(SMALL, &s, lab, vec![reader(OTHER, 16)], first)?;
            rates.push(rate(&r, OTHER));
        }
        let [_, second, _, free, alone, free_alone] = rates[..] else {
            return Err(DemoError::Text("six rates".to_owned()));
        };
        for capped in [second, alone] {
            worst = worst.max((capped / CAP as f64 - 1.0).abs());
        }
        shared = shared.min(free / second);
        idle = idle.max(alone / free_alone);
        let cells = rates.iter().map(|n| format!("{n:.0}"));
        shown.row(std::iter::once(s).chain(cells).collect());
    }
    shown.check(
        format!(
            "the second reader gets its limit of {CAP} IOPS within 3 % (largest deviation {:.2} %)",
            100.0 * worst
        ),
        worst <= 0.03,
    );
    shown.check(
        format!(
            "without a limit, the second reader gets at least {shared:.1} times as many \
             (required: 2)"
        ),
        shared >= 2.0,
    );
    shown.check(
        format!(
            "cost: even alone, the second reader is limited to {:.0} % of the drive's rate",
            100.0 * idle
        ),
        idle < 0.5,
    );
    Ok(shown)
}

fn io_latency(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "a random reader of 4 KiB, one request at a time, beside one with 64, on a flash drive, \
         4 s; the first's cgroup has a target of 300 us, or not",
        &[
            "scheduler",
            "a read, ms",
            "the other, IOPS",
            "off: a read, ms",
            "the other, IOPS",
        ],
    );
    let mut least = f64::MAX;
    for s in lab.schedulers(&SCHEDULERS) {
        let load = || vec![reader(FAST, 1), reader(OTHER, 64)];
        let target = Control::IoLatency(FAST, Some(300));
        let on = run_told(SSD, &s, lab, load(), &made(&[target]))?;
        let off = run_told(SSD, &s, lab, load(), &made(&[]))?;
        let (with, without) = (latency_ms(&on, FAST.0), latency_ms(&off, FAST.0));
        if s != "bfq" {
            least = least.min(without / with);
        }
        shown.row(vec![
            s,
            format!("{with:.2}"),
            format!("{:.0}", rate(&on, OTHER)),
            format!("{without:.2}"),
            format!("{:.0}", rate(&off, OTHER)),
        ]);
    }
    shown.check(
        format!(
            "except under bfq, reads are at least {least:.1} times as fast with io.latency \
             (required: 1.5)"
        ),
        least >= 1.5,
    );
    Ok(shown)
}

fn io_cost(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    const WEIGHTS: [u32; 2] = [300, 100];
    const IOPS: u64 = 4000;
    let mut shown = Shown::new(
        "two random readers of 4 KiB, 128 requests each, on a device that serves 4000 a second one \
         after the other, 4 s; weights of 300 and 100; io.cost with a model of the device and a \
         target of 90 % within 5 ms, with defaults, or off",
        &[
            "scheduler",
            "first",
            "second",
            "defaults: first",
            "second",
            "off: first",
            "second",
        ],
    );
    let on = IoCostQos {
        enable: true,
        ..IoCostQos::default()
    };
    let goals = IoCostQos {
        rpct_ppm: Some(900_000),
        rlat_us: Some(5000),
        ..on
    };
    let model = IoCostModel {
        rbps: IOPS * 4096,
        rseqiops: IOPS,
        rrandiops: IOPS,
        wbps: IOPS * 4096,
        wseqiops: IOPS,
        wrandiops: IOPS,
    };
    let [first, second] = WEIGHTS;
    let weights = [
        Control::IoWeight(FAST, first),
        Control::IoWeight(OTHER, second),
    ];
    let told = [Control::IoCostModel(model), Control::IoCostQos(goals)];
    let ways = [
        [&weights[..], &told].concat(),
        [&weights[..], &[Control::IoCostQos(on)]].concat(),
        weights.to_vec(),
    ];
    let load = || vec![reader(FAST, 128), reader(OTHER, 128)];
    let fair = f64::from(first) / f64::from(second);
    let (mut worst, mut price, mut even) = (0f64, 0f64, 0f64);
    for s in ["none", "mq-deadline", "kyber"] {
        let mut rates = Vec::new();
        for way in &ways {
            let r = run_told(SERIAL, s, lab, load(), &made(way))?;
            rates.push([rate(&r, FAST), rate(&r, OTHER)]);
        }
        let [with, untold, off] = rates[..] else {
            return Err(DemoError::Text("three runs".to_owned()));
        };
        let ratio = |of: [f64; 2]| of[0] / of[1];
        worst = worst.max((ratio(with) / fair - 1.0).abs());
        price = price.max(1.0 - with.iter().sum::<f64>() / off.iter().sum::<f64>());
        even = even.max((ratio(untold) - 1.0).abs());
        let cells = rates.concat().into_iter().map(|n| format!("{n:.0}"));
        shown.row(std::iter::once(s.to_owned()).chain(cells).collect());
    }
    // bfq has weights of its own, and needs no model of the device.
    let own = [Control::Weight(FAST, first), Control::Weight(OTHER, second)];
    let mut cells = vec!["bfq, own weights".to_owned()];
    for way in [&own[..], &[]] {
        let r = run_told(SERIAL, "bfq:low_latency=0", lab, load(), &made(way))?;
        cells.extend([FAST, OTHER].map(|g| format!("{:.0}", rate(&r, g))));
    }
    cells.splice(3..3, ["-".to_owned(), "-".to_owned()]);
    shown.row(cells);
    shown.check(
        format!(
            "with a model, the first gets three times the second's rate within 5 % ({:.1} % at \
             worst)",
            100.0 * worst
        ),
        worst <= 0.05,
    );
    shown.check(
        format!("cost: at most {:.0} % of the device's rate", 100.0 * price),
        price > 0.0 && price < 0.15,
    );
    shown.check(
        format!(
            "without a model, io.cost shares evenly within 5 % ({:.1} %), because it assumes a \
             faster device",
            100.0 * even
        ),
        even <= 0.05,
    );
    Ok(shown)
}
