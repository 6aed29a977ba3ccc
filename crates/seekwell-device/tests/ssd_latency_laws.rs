//! Latencies and rates of a flash drive: flushes, queue depth, suspension, caches, and links.

use crate::ssd_closed::ClosedForms;
use crate::ssd_laws::{client, mixed, near, pages, params, sequential};
use seekwell_core::{Accept, Command, Device, Instant, Nanos, Op};
use seekwell_device::open;
use seekwell_device::probe::command;

/// A FLUSH is free when nothing is dirty. With power-loss protection it takes a constant time, and
/// otherwise as long as the programs that it waits for.
#[test]
fn flush_cost_depends_on_dirty_data_and_power_loss_protection() {
    for variant in ["cheap", "detailed,scale=256"] {
        let after = |spec: &str, n: u64| {
            let mut c = client(&format!("ssd:{spec},variant={variant}"));
            c.run(n as usize, 31, Nanos::ZERO, |i| {
                command(Op::Write, i as u64 * 97 * 8, 8)
            });
            let first = c.send(command(Op::Flush, 0, 0)).as_ms_f64() * 1e3;
            let second = c.send(command(Op::Flush, 0, 0)).as_ms_f64() * 1e3;
            assert!(
                second < 40.0,
                "{spec} {variant}: nothing to flush took {second} us"
            );
            first
        };
        for n in [1, 64, 512] {
            let us = after("s3700-100", n);
            assert!(
                us < 40.0,
                "{variant}: {us} us after {n} writes with protection"
            );
        }
        let plain = "s3700-100,plp=no,t_flush=1ms";
        let (few, many) = (after(plain, 1), after(plain, 512));
        // One page causes a padded program: its time, the transfer and t_flush.
        near(&format!("{variant} one page"), few, 1300.0 + 1013.0, 0.05);
        assert!(
            many > few + 1300.0,
            "{variant}: {few} us after 1, {many} us after 512"
        );
    }
}

/// On SATA, a FLUSH drains the queue and delays later commands; on NVMe, it does neither.
#[test]
fn flush_blocks_the_queue_on_sata_but_not_on_nvme() {
    for variant in ["cheap", "detailed,scale=512"] {
        for (link, blocks) in [("sata-6", true), ("pcie-3x4", false)] {
            let spec = format!("ssd:s3700-100,variant={variant},plp=no,t_flush=5ms,link={link}");
            let mut d = open(&spec, 1).unwrap();
            let mut out = vec![];
            let write = Command {
                id: 1,
                ..command(Op::Write, 0, 8)
            };
            d.accept(Instant::START, write);
            d.advance(Instant::at_us(1_000), &mut out);
            assert_eq!(out.len(), 1);
            let now = Instant::at_us(1_000);
            let read = |id| Command {
                id,
                ..command(Op::Read, 800_000, 8)
            };
            assert_eq!(d.accept(now, read(2)), Accept::Accepted);
            let flush = Command {
                id: 3,
                ..command(Op::Flush, 0, 0)
            };
            assert_eq!(d.accept(now, flush), Accept::Accepted);
            let behind = d.accept(now, read(4));
            assert_eq!(behind == Accept::Busy, blocks, "{spec}");
            out.clear();
            while let Some(t) = d.next_event() {
                d.advance(t, &mut out);
            }
            let at = |id| out.iter().find(|d| d.id == id).map(|d| d.at);
            assert!(at(2) < at(3), "{spec}: the flush passed the read before it");
            assert!(at(3) > Some(now + Nanos::from_ms(5)), "{spec}");
            if !blocks {
                assert!(
                    at(4) < at(3),
                    "{spec}: the read behind waited for the flush"
                );
            }
            assert_eq!(
                d.accept(at(3).unwrap(), read(5)),
                Accept::Accepted,
                "{spec}"
            );
        }
    }
}

#[test]
fn fua_without_power_loss_protection_waits_for_the_program() {
    for variant in ["cheap", "detailed,scale=256"] {
        let time = |plp: &str| {
            let mut c = client(&format!(
                "ssd:s3700-100,variant={variant},plp={plp},t_flush=1ms"
            ));
            c.send(Command {
                fua: true,
                ..command(Op::Write, 4096, 8)
            })
            .as_ms_f64()
        };
        near(&format!("{variant} protected"), time("yes"), 0.0484, 0.05);
        near(&format!("{variant} not"), time("no"), 2.35, 0.05);
    }
}

/// Reads never exceed the ceiling, nor the mean number of units that random reads occupy.
#[test]
fn reads_scale_with_depth_up_to_the_slowest_stage() {
    for variant in ["cheap", "detailed,scale=256"] {
        for d in ["s3700-100", "x25m-g2-160"] {
            let spec = format!("ssd:{d},variant={variant},depth=256,t_fw_read=1us,link=pcie-4x4");
            let closed = ClosedForms::new(&params(&spec));
            let p = params(&spec);
            let mut last = 0.0;
            for depth in [1, 2, 4, 8, 16, 64, 256] {
                let mut c = client(&spec);
                let span = pages(&c.device);
                let iops = mixed(&mut c, span, 0, depth, 3_000 + 100 * depth).iops();
                assert!(iops > last && iops < closed.read_ceiling() * 1.01);
                last = iops;
                let unit = (p.read_ns + p.xfer_ns) as f64;
                let bound = closed.busy_units(depth as f64) * 1e9 / unit;
                assert!(
                    iops < bound * 1.15,
                    "{spec} depth {depth}: {iops} of {bound}"
                );
                if depth <= 4 {
                    // Far below any ceiling, the latency decides.
                    near(
                        &format!("{spec} {depth}"),
                        iops,
                        depth as f64 * 1e6 / closed.read_us(),
                        0.16,
                    );
                }
            }
            assert!(last > 0.85 * closed.read_ceiling(), "{spec}: {last}");
        }
    }
}

#[test]
fn program_suspension_shortens_reads() {
    for variant in ["cheap", "detailed,scale=256"] {
        let run = |susp: &str| {
            let spec = format!("ssd:s3700-100,variant={variant},state=steady,t_susp={susp}");
            let mut c = client(&spec);
            let span = pages(&c.device);
            mixed(&mut c, span, 30, 4, 4_000);
            mixed(&mut c, span, 30, 4, 12_000)
        };
        let (waits, suspends) = (run("0"), run("100us"));
        assert!(
            suspends.mean_ms() < 0.9 * waits.mean_ms(),
            "{variant}: {} against {}",
            suspends.mean_ms(),
            waits.mean_ms()
        );
    }
}

#[test]
fn small_map_cache_costs_an_extra_read() {
    for variant in ["cheap", "detailed,scale=64"] {
        let read = |entries: u32| {
            let mut c = client(&format!(
                "ssd:s3700-100,variant={variant},map_cache={entries}"
            ));
            let span = pages(&c.device);
            // Use one translation page, or all of them.
            let span = if entries == 4 { 1024 } else { span };
            mixed(&mut c, span, 0, 1, 3_000).mean_ms() * 1e3
        };
        let p = params("ssd:s3700-100");
        let more = (p.read_ns + p.xfer_ns) as f64 / 1e3;
        // Nearly all look-ups miss, among 23 850 translation pages or a 64th of that.
        near(&format!("{variant} misses"), read(64), read(0) + more, 0.03);
        near(&format!("{variant} hits"), read(4), read(0), 0.01);
    }
}

#[test]
fn read_ahead_speeds_one_sequential_reader() {
    for variant in ["cheap", "detailed,scale=256"] {
        let rate = |ra: &str| {
            let mut c = client(&format!("ssd:s3700-100,variant={variant},read_ahead={ra}"));
            sequential(&mut c, Op::Read, 1, 0, 400).mb()
        };
        let (without, with) = (rate("0"), rate("256KiB"));
        assert!(
            without < 400.0 && with > 500.0,
            "{variant}: {without}, {with}"
        );
        let random = |ra: &str| {
            let mut c = client(&format!("ssd:s3700-100,variant={variant},read_ahead={ra}"));
            let span = pages(&c.device);
            mixed(&mut c, span, 0, 8, 5_000).iops()
        };
        near(
            &format!("{variant} random"),
            random("256KiB"),
            random("0"),
            0.005,
        );
    }
}

#[test]
fn fast_region_fills_and_is_emptied_in_idle_time() {
    for (variant, size) in [("cheap", "2GiB"), ("detailed,scale=64", "64GiB")] {
        let spec = format!(
            "ssd:nvme-gen4-tlc-2t,variant={variant},state=fresh,slc_bytes={size},slc_static={size}"
        );
        let mut c = client(&spec);
        // A fast region of 1 or 2 GiB, and a buffer of 64 MiB.
        let fast = sequential(&mut c, Op::Write, 8, 0, 6_000).mb();
        sequential(&mut c, Op::Write, 8, 6_000, 15_000);
        let slow = sequential(&mut c, Op::Write, 8, 21_000, 2_000).mb();
        c.sleep(Nanos::from_secs(10));
        let again = sequential(&mut c, Op::Write, 8, 23_000, 4_000).mb();
        assert!(
            fast > 6_000.0 && slow < 1_600.0 && again > 6_000.0,
            "{spec}: {fast} {slow} {again}"
        );
    }
}

#[test]
fn links_reach_their_rates() {
    for (link, mb) in [("sata-1.5", 135.0), ("sata-3", 270.0), ("sata-6", 550.0)] {
        let mut c = client(&format!("ssd:s3700-100,link={link}"));
        let rate = sequential(&mut c, Op::Read, 8, 0, 400).mb();
        near(link, rate, mb, 0.02);
    }
    for (link, mb) in [("pcie-3x4", 3_300.0), ("pcie-4x4", 7_000.0)] {
        let mut c = client(&format!("ssd:nvme-gen4-tlc-2t,link={link}"));
        let rate = sequential(&mut c, Op::Read, 8, 0, 2_000).mb();
        near(link, rate, mb, 0.02);
    }
    let typed = params("ssd:s3700-100,link=sata-3,link_rate=200");
    assert_eq!(typed.link_mb, 200.0);
}
