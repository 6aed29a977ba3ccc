//! Tests which devices are distinguished or rejected, and which results an interrupted calibration
//! keeps.

use rand::RngCore;
use seekwell_calibrate::{
    Facts, Io, Kind, Known, Options, Probe, SimProbe, Stop, Timed, calibrate, preset,
};
use seekwell_core::rng;
use seekwell_device::{HddParams, Preset, open};

fn probe(spec: &str) -> SimProbe<Box<dyn seekwell_core::Device + Send>> {
    SimProbe::new(open(spec, 7).expect(spec), 7, 5_000.0)
}

/// A probe that stops after a number of I/Os, as a user or a failing device would.
struct Cut<P> {
    probe: P,
    left: usize,
    with: Stop,
}

impl<P: Probe> Probe for Cut<P> {
    fn facts(&self) -> &Facts {
        self.probe.facts()
    }
    fn now(&self) -> u64 {
        self.probe.now()
    }
    fn sleep(&mut self, ns: u64) -> Result<(), Stop> {
        self.probe.sleep(ns)
    }
    fn run(&mut self, ios: &[Io], depth: usize, out: &mut Vec<Timed>) -> Result<(), Stop> {
        if self.left < ios.len() {
            return Err(self.with.clone());
        }
        self.left -= ios.len();
        self.probe.run(ios, depth, out)
    }
}

/// A network volume. It is slow, and every read has another latency.
struct Cloud(Facts, u64, rng::Pcg64Mcg);

impl Probe for Cloud {
    fn facts(&self) -> &Facts {
        &self.0
    }
    fn now(&self) -> u64 {
        self.1
    }
    fn sleep(&mut self, ns: u64) -> Result<(), Stop> {
        self.1 += ns;
        Ok(())
    }
    fn run(&mut self, ios: &[Io], _: usize, out: &mut Vec<Timed>) -> Result<(), Stop> {
        out.clear();
        for _ in ios {
            let sent = self.1;
            self.1 += 4_000_000 + self.2.next_u64() % 3_000_000;
            out.push(Timed { sent, done: self.1 });
        }
        Ok(())
    }
}

fn parsed(text: &str) -> HddParams {
    let p = Preset::parse("hdd", seekwell_device::hdd::DEFS, "fitted.toml", text)
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    HddParams::from_preset(&p).unwrap_or_else(|e| panic!("{}\n{text}", e.what))
}

#[test]
fn probes_distinguish_hard_disks_from_flash() {
    for (spec, kind) in [
        ("hdd:st2000dm006", Kind::Hdd),
        ("hdd:hus728t8,depth=1,look_ahead=no", Kind::Hdd),
        ("constant:service_us=80,servers=parallel", Kind::Flash),
        ("constant:service_us=4000", Kind::Unknown),
    ] {
        let fit = calibrate(&mut probe(spec), Options::default(), &mut |_| {});
        assert_eq!(fit.kind, kind, "{spec}: {}", fit.because);
    }
}

#[test]
fn device_without_rotation_period_is_rejected_with_a_reason() {
    let facts = Facts {
        capacity: 1 << 30,
        block: 8,
        ..Facts::default()
    };
    let mut cloud = Cloud(facts, 1, rng::stream(3, "cloud"));
    let fit = calibrate(&mut cloud, Options::default(), &mut |_| {});
    assert_eq!(fit.kind, Kind::Unknown);
    assert!(fit.because.contains("no common period"), "{}", fit.because);
    assert_eq!(preset(&fit, "x"), None);
}

#[test]
fn device_below_16_mib_is_rejected() {
    let mut small = probe("constant:capacity=2000");
    let fit = calibrate(&mut small, Options::default(), &mut |_| {});
    assert!(fit.because.contains("16 MiB"), "{}", fit.because);
    assert_eq!(fit.ios, 0);
}

/// If the calibration is interrupted at any point, its results make a preset. The preset can be
/// loaded and run, and marks the unknown parameters.
#[test]
fn interrupted_calibration_keeps_its_findings() {
    for left in [20, 300, 700, 2_000, 5_000, 8_000] {
        let mut cut = Cut {
            probe: probe("hdd:hitachi-7k500"),
            left,
            with: Stop::Interrupted,
        };
        let fit = calibrate(&mut cut, Options::default(), &mut |_| {});
        assert_eq!(fit.cut, Some(Stop::Interrupted), "{left}");
        match preset(&fit, "partial") {
            None => assert!(fit.get("rpm").is_none(), "{left}"),
            Some(text) => {
                let p = parsed(&text);
                assert!((p.rpm / 7200.0 - 1.0).abs() < 1e-3, "{left}: {} rpm", p.rpm);
                assert!(text.contains("stopped early: interrupted"));
                // Until the order of tracks is known, the number of surfaces is a guess.
                let guess = text
                    .lines()
                    .find(|l| l.starts_with("surfaces"))
                    .expect("surfaces");
                let known = fit
                    .get("surfaces")
                    .is_some_and(|e| e.known == Known::Measured);
                assert_eq!(guess.contains("not measured"), !known, "{left}: {guess}");
            }
        }
    }
}

#[test]
fn calibration_respects_a_short_time_budget() {
    for budget_s in [10.0, 30.0, 60.0] {
        let options = Options {
            budget_s,
            ..Options::default()
        };
        let fit = calibrate(&mut probe("hdd:hitachi-7k500"), options, &mut |_| {});
        // At most one measurement may be in progress when the calibration ends.
        assert!(
            fit.seconds < budget_s + 3.0,
            "{budget_s}: {} s",
            fit.seconds
        );
        assert!((fit.number("rpm").expect("rpm") / 7200.0 - 1.0).abs() < 1e-3);
        parsed(&preset(&fit, "short").expect("a preset"));
    }
}

#[test]
fn preset_of_a_vanished_device_contains_the_error() {
    let mut cut = Cut {
        probe: probe("hdd:hitachi-7k500"),
        left: 1_000,
        with: Stop::Device("sector 8: No such device".into()),
    };
    let fit = calibrate(&mut cut, Options::default(), &mut |_| {});
    let text = preset(&fit, "gone").expect("the speed was known");
    assert!(text.contains("No such device"));
}

#[test]
fn the_same_seed_gives_the_same_preset() {
    let once = || {
        let fit = calibrate(
            &mut probe("hdd:hitachi-7k200"),
            Options::default(),
            &mut |_| {},
        );
        preset(&fit, "x").expect("a preset")
    };
    assert_eq!(once(), once());
}

/// The write cache is measured only with permission. Without permission nothing is written.
#[test]
fn write_cache_is_measured_only_with_write_permission() {
    let spec = "hdd:hitachi-7k500,wc_idle=1000";
    let fit = calibrate(&mut probe(spec), Options::default(), &mut |_| {});
    assert!(fit.get("wc_cmds").is_none());
    let mut writes = probe(spec).allow_write();
    let fit = calibrate(&mut writes, Options::default(), &mut |_| {});
    let extents = fit.number("wc_cmds").expect("wc_cmds");
    // The preset has 128 extents. The drive writes some of them out while the cache fills.
    assert!((115.0..150.0).contains(&extents), "{extents} extents");
    let off = format!("{spec},write_cache=no");
    let fit = calibrate(
        &mut probe(&off).allow_write(),
        Options::default(),
        &mut |_| {},
    );
    assert_eq!(
        fit.get("write_cache").map(|e| e.value.clone()),
        Some(seekwell_calibrate::Val::Flag(false))
    );
}

/// Reads are measured first, and are enough for a preset.
#[test]
fn interrupted_flash_calibration_keeps_the_read_measurements() {
    let all = |left: usize| {
        let mut cut = Cut {
            probe: probe("ssd:s3700-100").allow_write(),
            left,
            with: Stop::Interrupted,
        };
        calibrate(&mut cut, Options::default(), &mut |_| {})
    };
    let whole = all(usize::MAX);
    assert_eq!(whole.cut, None);
    assert_eq!(whole.get("t_prog").map(|e| e.known), Some(Known::Measured));
    // The sequential writes are the last part and the longest one.
    let part = all(whole.ios as usize - 300);
    assert_eq!(part.cut, Some(Stop::Interrupted));
    assert_eq!(part.get("t_prog").map(|e| e.known), Some(Known::Unknown));
    assert!(
        preset(&part, "partial")
            .expect("reading")
            .contains("interrupted")
    );
}

/// Many hosts accept only reads of whole blocks of 4 KiB. The tracks are found with such reads too.
#[test]
fn tracks_are_found_with_4_kib_blocks() {
    let mut coarse = probe("hdd:hitachi-7k500").with_facts(|f| f.block = 8);
    let fit = calibrate(&mut coarse, Options::default(), &mut |_| {});
    assert_eq!(fit.number("surfaces"), Some(10.0));
    let head = fit.number("head_switch").expect("head_switch");
    assert!((head / 1.45 - 1.0).abs() < 0.02, "{head} ms");
    // The target is aligned to a block. Therefore the overhead is less certain, and its interval is
    // wider.
    let (lo, hi) = fit
        .get("overhead")
        .and_then(|e| e.interval)
        .expect("overhead");
    assert!(lo < 0.24 && 0.24 < hi, "{lo} to {hi} ms");
}
