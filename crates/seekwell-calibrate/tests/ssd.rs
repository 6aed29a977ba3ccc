//! Ten flash drives are drawn from a seed, with parameters in plausible ranges. The estimates for
//! each are compared with its parameters. The fitted preset is run, and its latencies and rates are
//! compared with those of the drive.

use rand::RngCore;
use seekwell_calibrate::{Io, Kind, Options, Probe, SimProbe, calibrate, preset};
use seekwell_core::rng::{self, Pcg64Mcg};
use seekwell_device::ssd::{CheapSsd, DEFS, SsdParams};
use seekwell_device::{Preset, read_preset};

struct Draw(Pcg64Mcg);

impl Draw {
    fn within(&mut self, lo: f64, hi: f64) -> f64 {
        let u = (self.0.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0;
        lo * libm::pow(hi / lo, u)
    }
    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[(self.0.next_u64() % list.len() as u64) as usize]
    }
}

fn random(seed: u64) -> SsdParams {
    let mut d = Draw(rng::stream(seed, "random flash"));
    let base = d.of(&["sata-tlc-1t", "s3700-100", "nvme-gen4-tlc-2t", "nvme-dc-2t"]);
    let preset = read_preset(&format!("ssd:{base}")).expect("an embedded drive");
    let mut p = SsdParams::from_preset(&preset).expect("it is valid");
    p.name = format!("random {seed}");
    p.pages = d.within(2e7, 5e8) as u64;
    p.channels = d.of(&[4, 8]);
    p.units = p.channels * d.of(&[2, 4, 8, 16]);
    p.k = d.of(&[4, 8, 12]);
    p.block = p.k * 256;
    let ns = |us: f64| (us * 1e3) as u64;
    p.read_ns = ns(d.within(30.0, 120.0));
    p.read_add_ns = if d.of(&[true, false]) {
        [0, ns(10.0), ns(25.0)]
    } else {
        [0; 3]
    };
    p.prog_ns = ns(d.within(300.0, 2500.0));
    p.prog_rested_ns = p.prog_ns;
    p.susp_ns = d.of(&[0, 20_000]);
    p.fw_read_ns = ns(if p.queued_flush {
        d.within(0.7, 3.0)
    } else {
        d.within(8.0, 20.0)
    });
    p.fw_write_ns = ns(if p.queued_flush {
        d.within(0.7, 3.0)
    } else {
        d.within(8.0, 30.0)
    });
    p.lat_ns = ns(d.within(1.0, 30.0));
    p.ack_ns = ns(d.within(3.0, 25.0));
    p.buffer = d.of(&[2048, 4096, 16_384]);
    p.plp = d.of(&[true, false]);
    p.flush_ns = ns(d.within(10.0, 3000.0));
    p.slc_pages = 0;
    p.slc_static = 0;
    p.read_ahead = d.of(&[0, 64, 256]);
    p
}

/// Returns the latencies (ms) and rates (MB/s) of reads and writes, as a user would measure them.
fn figures(p: &SsdParams) -> [f64; 4] {
    // Each figure is measured on a fresh drive, so that deferred work of one measurement does not
    // slow down the next.
    let fresh = || SimProbe::new(CheapSsd::new(p, 99), 99, 0.0);
    let mut probe = fresh();
    let capacity = probe.facts().capacity;
    let mut d = Draw(rng::stream(99, "figures"));
    let mut times = vec![];
    let mut far = |n: usize, write: bool| -> Vec<Io> {
        (0..n)
            .map(|_| {
                let lba = d.0.next_u64() % (capacity / 8) * 8;
                if write {
                    Io::write(lba, 8)
                } else {
                    Io::read(lba, 8)
                }
            })
            .collect()
    };
    let mut mean = |probe: &mut SimProbe<CheapSsd>, ios: &[Io]| {
        probe.run(ios, 1, &mut times).expect("runs");
        times.iter().map(|t| t.ms()).sum::<f64>() / times.len() as f64
    };
    let read = mean(&mut probe, &far(3000, false));
    probe = fresh();
    let mut writes = vec![];
    for _ in 0..30 {
        writes.push(mean(&mut probe, &far(10, true)));
        probe.sleep(20_000_000).expect("sleeps");
    }
    let write = writes.iter().sum::<f64>() / writes.len() as f64;
    let mut rate = |probe: &mut SimProbe<CheapSsd>, write: bool| {
        let from = capacity / 3 / 256 * 256;
        let ios: Vec<Io> = (0..6000)
            .map(|i| {
                let lba = from + i * 256;
                if write {
                    Io::write(lba, 256)
                } else {
                    Io::read(lba, 256)
                }
            })
            .collect();
        probe.run(&ios, 31, &mut times).expect("runs");
        // Only the second half counts, because the buffer is full then.
        let mut done: Vec<u64> = times.iter().map(|t| t.done).collect();
        done.sort_unstable();
        3000.0 * 131_072.0 / 1e6 / ((done[5999] - done[2999]) as f64 / 1e9)
    };
    let rate = (rate(&mut fresh(), false), rate(&mut fresh(), true));
    [read, write, rate.0, rate.1]
}

#[test]
fn calibration_recovers_ten_random_flash_drives() {
    let mut bad = vec![];
    for seed in 0..10 {
        let truth = random(seed);
        let mut probe = SimProbe::new(CheapSsd::new(&truth, seed), seed, 200.0)
            .allow_write()
            .with_facts(|f| f.depth = Some(truth.depth));
        let fit = calibrate(&mut probe, Options::default(), &mut |_| {});
        assert_eq!(fit.kind, Kind::Flash, "{seed}: {}", fit.because);
        let text = preset(&fit, "fitted").unwrap_or_else(|| panic!("{seed}: {}", fit.because));
        let typed = |text: &str| {
            let p = Preset::parse("ssd", DEFS, "fitted.toml", text)
                .unwrap_or_else(|e| panic!("{e}\n{text}"));
            SsdParams::from_preset(&p).unwrap_or_else(|e| panic!("{}\n{text}", e.what))
        };
        let p = typed(&text);
        let generic = read_preset(&format!("ssd:sata-tlc-1t,capacity={}", truth.pages * 8))
            .and_then(|p| SsdParams::from_preset(&p).map_err(|e| p.locate(e, "generic")))
            .expect("generic");
        let (want, have, null) = (figures(&truth), figures(&p), figures(&generic));
        let off =
            |x: &[f64; 4]| -> Vec<f64> { (0..4).map(|i| (x[i] / want[i] - 1.0) * 100.0).collect() };
        let line = |name: &str, x: &[f64; 4]| {
            let o = off(x);
            println!(
                "{name:<12} read {:+6.1} %  write {:+6.1} %  reading {:+6.1} %  writing {:+6.1} %",
                o[0], o[1], o[2], o[3]
            );
        };
        line(&format!("flash {seed}"), &have);
        line("  knows none", &null);
        println!("             {:.0} s, {} I/Os", fit.seconds, fit.ios);
        if off(&have).iter().any(|o| o.abs() > 10.0) {
            bad.push(seed);
        }
    }
    assert!(bad.is_empty(), "drives {bad:?} are not recovered");
}
