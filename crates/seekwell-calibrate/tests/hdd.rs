//! Ten hard disks are drawn from a seed, with parameters in plausible ranges. The estimates for
//! each are compared with its parameters. The probes know only the size of the disk.

use rand::RngCore;
use seekwell_calibrate::{Fit, Kind, Options, SimProbe, calibrate, generic_hdd, preset};
use seekwell_core::rng::{self, Pcg64Mcg};
use seekwell_device::hdd::{ClosedForms, Layout, SeekCurve, SeekForm, Zones};
use seekwell_device::{Hdd, HddParams, Preset};

/// Draws in ranges.
struct Draw(Pcg64Mcg);

impl Draw {
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0
    }
    fn within(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * self.unit()
    }
    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[(self.unit() * list.len() as f64) as usize]
    }
}

/// Returns a random disk, the size of its buffer in MiB, and the host's noise in ns.
fn random(seed: u64) -> (HddParams, f64, f64) {
    let mut d = Draw(rng::stream(seed, "random disk"));
    let mut p = generic_hdd(1_000_000_000).expect("the generic disk");
    p.name = format!("random {seed}");
    p.rpm = d.of(&[5400.0, 5900.0, 7200.0, 10_000.0, 15_000.0]) * d.within(0.999, 1.001);
    p.surfaces = d.of(&[1, 2, 3, 4, 6, 8, 10, 16]);
    let outer = d.within(600.0, 3500.0) as u32;
    let ratio = d.within(0.45, 0.6);
    p.zones = Zones::Linear {
        outer,
        ratio,
        count: d.within(12.0, 33.0) as u32,
    };
    let cylinders = d.within(30_000.0, 300_000.0);
    p.capacity =
        (cylinders * f64::from(p.surfaces) * f64::from(outer) * (1.0 + ratio) / 2.0) as u64;
    let average = d.within(3.5, 13.0);
    let settle = average * d.within(0.08, 0.2);
    // The shape of the curve between settle and full stroke ranges from a straight line to a square
    // root.
    let full = settle + (average - settle) / d.within(0.36, 0.52);
    p.seek = SeekForm::Fit3 {
        track: settle * d.within(0.5, 0.9),
        settle,
        average,
        full,
    };
    p.seek_track_ms = settle * 0.7;
    if let SeekForm::Fit3 { track, .. } = p.seek {
        p.seek_track_ms = track;
    }
    p.head_switch_ms = d.within(0.5, 1.6);
    p.band_switch_ms = p.head_switch_ms + d.within(0.0, 0.4);
    if d.unit() < 0.3 {
        p.layout = Layout::Serpentine(d.within(64.0, 512.0) as u32);
    }
    p.overhead_ms = d.within(0.1, 0.5);
    p.hit_overhead_ms = d.within(0.03, 0.15);
    p.bus_mb = d.of(&[135.0, 270.0, 550.0]);
    let buffer = d.of(&[8.0, 16.0, 32.0, 64.0, 128.0, 256.0]);
    let segments = d.of(&[8u32, 12, 16, 32]);
    p.segments_read = segments - 2;
    p.segments_write = 2;
    p.segment = (buffer * 2048.0 / f64::from(segments)) as u64;
    p.ra_max = (p.segment as f64 * d.within(0.25, 1.0)) as u64;
    p.window = d.within(4.0, 33.0) as u32;
    p.depth = d.of(&[1, 31, 32, 32]);
    p.guard_ms = d.within(0.2, 0.8);
    p.p_miss = d.within(0.005, 0.03);
    p.age_limit_ms = d.of(&[0.0, 700.0, 1500.0]);
    p.settle_sigma_ms = d.of(&[0.0, 0.05, 0.1]);
    p.physical = d.of(&[1, 8]);
    (p, buffer, d.within(2_000.0, 15_000.0))
}

fn fitted(fit: &Fit) -> HddParams {
    let text = preset(fit, "fitted").expect("a preset");
    let p = Preset::parse("hdd", seekwell_device::hdd::DEFS, "fitted.toml", &text)
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    HddParams::from_preset(&p).unwrap_or_else(|e| panic!("{}\n{text}", e.what))
}

fn mean_seek(p: &HddParams) -> f64 {
    let forms = ClosedForms::new(p).expect("forms");
    let n = forms.geometry().cylinders();
    let curve = SeekCurve::new(&p.seek, n).expect("curve");
    // The mean is computed without the closed form of the curve, because the fit is compared with
    // the result.
    let steps = 20_000;
    (0..steps)
        .map(|i| {
            let x = (f64::from(i) + 0.5) / f64::from(steps);
            2.0 * (1.0 - x) * curve.ms((x * f64::from(n)) as u32)
        })
        .sum::<f64>()
        / f64::from(steps)
}

/// Returns the greatest relative error of the sustained rate, over addresses that were not probed.
fn worst_rate(truth: &HddParams, fit: &HddParams) -> f64 {
    let (a, b) = (
        ClosedForms::new(truth).expect("truth"),
        ClosedForms::new(fit).expect("fit"),
    );
    // The error of a zone limit is a few thousandths of the drive. An address near a limit may
    // belong to the neighbouring zone. Therefore the third-largest error of a hundred counts.
    let mut off: Vec<f64> = (0..100)
        .map(|i| {
            let lba = truth.capacity / 100 * i + truth.capacity / 317;
            (b.sustained_mb(lba) / a.sustained_mb(lba) - 1.0).abs()
        })
        .collect();
    off.sort_by(f64::total_cmp);
    off[97]
}

fn class(mib: f64) -> i32 {
    libm::ceil(libm::log2(mib * 0.97)) as i32
}

fn buffer_of(p: &HddParams) -> f64 {
    f64::from(p.segments_read) * p.segment as f64 / 2048.0
}

struct Score {
    rpm: f64,
    seek: f64,
    rate: f64,
    class: bool,
    window: bool,
}

fn score(truth: &HddParams, buffer: f64, p: &HddParams) -> Score {
    Score {
        rpm: (p.rpm / truth.rpm - 1.0).abs(),
        seek: (mean_seek(p) / mean_seek(truth) - 1.0).abs(),
        rate: worst_rate(truth, p),
        class: class(buffer_of(p)) == class(buffer),
        window: p.window.min(p.depth) == truth.window.min(truth.depth),
    }
}

fn show(name: &str, s: &Score) {
    println!(
        "{name:<12} rpm {:8.4} %  average seek {:6.2} %  rates {:6.2} %  cache {}  depth {}",
        s.rpm * 100.0,
        s.seek * 100.0,
        s.rate * 100.0,
        if s.class { "right" } else { "WRONG" },
        if s.window { "right" } else { "WRONG" },
    );
}

#[test]
fn calibration_recovers_ten_random_disks() {
    let mut bad = vec![];
    for seed in 0..10 {
        let (truth, buffer, noise) = random(seed);
        let mut probe = SimProbe::new(Hdd::new(&truth, seed).expect("a disk"), seed, noise);
        let fit = calibrate(&mut probe, Options::default(), &mut |_| {});
        assert_eq!(fit.kind, Kind::Hdd, "{seed}: {}", fit.because);
        assert!(fit.seconds <= 181.0, "{seed}: {} s", fit.seconds);
        let p = fitted(&fit);
        let s = score(&truth, buffer, &p);
        let null = score(
            &truth,
            buffer,
            &generic_hdd(truth.capacity).expect("generic"),
        );
        show(&format!("disk {seed}"), &s);
        show("  knows none", &null);
        let d = fit.demerit.expect("a comparison");
        println!(
            "             demerit {:.1} % (chance {:.1} %, knows none {:.1} %), {:.0} s, {} I/Os",
            d.fitted * 100.0,
            d.chance * 100.0,
            d.generic * 100.0,
            fit.seconds,
            fit.ios
        );
        if s.rpm > 0.001 || s.seek > 0.05 || s.rate > 0.03 || !s.class || !s.window {
            bad.push(seed);
        }
    }
    assert!(bad.is_empty(), "disks {bad:?} are not recovered");
}

/// The latencies of the fitted disk agree with those of the device within a few hundredths, and
/// chance causes most of the difference. The latencies of a generic disk, which is not a preset, do
/// not agree.
#[test]
fn fitted_disk_predicts_latencies_better_than_a_generic_disk() {
    for name in ["hitachi-7k500", "hitachi-7k200", "exos-x18", "st2000dm006"] {
        let device = seekwell_device::open(&format!("hdd:{name}"), 1).expect(name);
        let mut probe = SimProbe::new(device, 1, 3_000.0);
        let fit = calibrate(&mut probe, Options::default(), &mut |_| {});
        let d = fit.demerit.expect("a comparison");
        println!(
            "{name:<14} demerit {:.2} %, by chance alone {:.2} %, a generic disk {:.2} %",
            d.fitted * 100.0,
            d.chance * 100.0,
            d.generic * 100.0
        );
        assert!(d.fitted < 0.03, "{name}: {d:?}");
        assert!(d.generic > 1.5 * d.fitted, "{name}: {d:?}");
    }
}
