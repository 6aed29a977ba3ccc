//! Tests of the shingled disk on a small drive.

use super::*;
use crate::probe::{Client, command};
use crate::{Opened, describe, open};

/// 2 GB, with bands of 2 to 1 MiB, 64 MB of persistent cache, and 64 extents.
const SMALL: &str = "smr:st8000as0002,capacity=4000000,band_outer=2MiB,band_inner=1MiB,\
                     pc_bytes=64MB,buffer=8MiB";

fn small(more: &str) -> Client<Opened> {
    let extents = if more.contains("pc_extents") {
        ""
    } else {
        ",pc_extents=64"
    };
    Client::new(open(&format!("{SMALL}{extents}{more}"), 1).expect("a drive"))
}

/// Returns a different scattered address for each `i`: block 7919 * `i`, modulo a prime.
fn scattered(i: usize) -> u64 {
    (i as u64 * 7919 % 499_979) * 8
}

#[test]
fn scattered_writes_are_fast_until_the_map_is_full() {
    let mut c = small(",write_cache=no");
    let mut times = vec![];
    for i in 0..100 {
        times.push(c.send(command(Op::Write, scattered(i), 8)).as_ms_f64());
    }
    let (burst, full) = (&times[..60], &times[70..]);
    let mean = |t: &[f64]| t.iter().sum::<f64>() / t.len() as f64;
    // A write costs about one revolution of 10 ms, and with cleaning three transfers of a band.
    assert!((5.0..20.0).contains(&mean(burst)), "{}", mean(burst));
    assert!(mean(full) > 60.0, "{}", mean(full));
}

#[test]
fn idle_drive_empties_its_persistent_cache() {
    let text = |c: &Client<Opened>| {
        let mut out = String::new();
        c.device.state(&mut out);
        out
    };
    let mut c = small("");
    for i in 0..20 {
        c.send(command(Op::Write, scattered(i), 8));
    }
    c.send(command(Op::Flush, 0, 0));
    assert!(text(&c).contains("20 extents; 0 KiB"), "{}", text(&c));
    c.sleep(Nanos::from_ms(900));
    assert!(text(&c).contains("20 extents"), "{}", text(&c));
    c.sleep(Nanos::from_secs(20));
    assert!(text(&c).contains("0 % full, 0 extents"), "{}", text(&c));
}

#[test]
fn sequential_run_that_fills_bands_bypasses_the_persistent_cache() {
    let mut c = small("");
    c.run(200, 8, Nanos::ZERO, |i| {
        command(Op::Write, i as u64 * 2048, 2048)
    });
    c.send(command(Op::Flush, 0, 0));
    let mut state = String::new();
    c.device.state(&mut state);
    // Only the rest after the last full band is in the log.
    assert!(
        state.contains("2 extents") || state.contains("1 extents"),
        "{state}"
    );
    assert_eq!(c.device.stats().internal_bytes / 4096, 1, "one map record");
}

#[test]
fn reads_of_scattered_data_go_to_the_persistent_cache() {
    // 128 KiB that were written in 16 pieces, in reverse order: the log holds them in this order.
    let seeks = |scatter: bool| {
        let mut c = small(",pc_extents=1000");
        for i in (0..16).rev().filter(|_| scatter) {
            c.send(command(Op::Write, 800_000 + i * 16, 16));
            c.send(command(Op::Flush, 0, 0));
        }
        // These commands replace the contents of the caches.
        for i in 0..40 {
            c.send(command(Op::Write, 1_000_000 + i * 20_000, 2048));
            c.send(command(Op::Flush, 0, 0));
            c.send(command(Op::Read, 2_000_000 + i * 20_000, 2048));
        }
        c.send(command(Op::Read, 800_000, 256)).as_ms_f64()
    };
    let (in_place, scattered) = (seeks(false), seeks(true));
    assert!(scattered > 2.0 * in_place, "{scattered} {in_place}");
}

#[test]
fn every_command_completes_once_and_the_seed_determines_all() {
    let run = |seed: u64| {
        let mut rng = rng::stream(seed, "soak");
        let mut c = small("");
        let all = c.run(3000, 16, Nanos::ZERO, |_| {
            let r = rng.next_u64();
            let at = (r >> 8) % 3_990_000;
            match r % 16 {
                0 => command(Op::Flush, 0, 0),
                1..=6 => command(Op::Read, at, 1 + (r >> 40) as u32 % 2048),
                7..=9 => command(Op::Write, at / 512 % 20_000 * 8, 2048),
                10 => Command {
                    fua: true,
                    ..command(Op::Write, at, 8)
                },
                _ => command(Op::Write, at, 1 + (r >> 40) as u32 % 2048),
            }
        });
        all.mean_ms()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn full_persistent_cache_before_the_run_slows_the_first_write() {
    let first = |more: &str| {
        let mut c = small(&format!(",write_cache=no{more}"));
        c.send(command(Op::Write, 80_000, 8)).as_ms_f64()
    };
    assert!(first(",pc=full") > 3.0 * first(""), "{}", first(",pc=full"));
}

#[test]
fn impossible_values_are_refused() {
    for (more, text) in [
        (",band_inner=80MiB", "make band_inner at most band_outer"),
        (",buffer=30MB", "larger than band_outer plus 1 MiB"),
        (",pc_bytes=64MB", "twice as large as band_outer"),
        (",capacity=1000", "no room for two bands"),
    ] {
        let e = open(&format!("smr:st8000as0002{more}"), 1)
            .err()
            .map(|e| e.to_string());
        assert!(e.as_deref().is_some_and(|e| e.contains(text)), "{e:?}");
    }
    assert!(describe("smr:st8000as0002").is_ok());
}

#[test]
fn command_larger_than_the_buffer_completes() {
    // Only a WRITE ZEROES arrives undivided: 32 MiB, and the buffer has 8 MiB.
    for more in ["", ",write_cache=no"] {
        let mut c = small(more);
        let took = c.send(command(Op::WriteZeroes, 80_000, 65_536));
        assert!(took > Nanos::ZERO, "{more}");
        c.send(command(Op::Write, 8, 8));
        c.send(command(Op::Flush, 0, 0));
        let mut state = String::new();
        c.device.state(&mut state);
        assert!(state.contains(" 0 KiB in the buffer"), "{state}");
    }
}

#[test]
fn band_that_is_written_again_is_queued_once() {
    let mut c = small("");
    // The first 2 MiB form the first band. The host rewrites them faster than the medium.
    for _ in 0..200 {
        c.run(2, 2, Nanos::ZERO, |i| {
            command(Op::Write, i as u64 * 2048, 2048)
        });
    }
    let flush = c.send(command(Op::Flush, 0, 0)).as_ms_f64();
    assert!(flush < 200.0, "{flush}");
}

#[test]
fn odd_write_does_not_slow_down_the_writes_after_it() {
    let mean = |odd: bool| {
        let mut c = small(",write_cache=no");
        if odd {
            c.send(command(Op::Write, 3_000_001, 1));
        }
        let write = |i: usize| command(Op::Write, scattered(i), 8);
        c.run(40, 1, Nanos::ZERO, write).mean_ms()
    };
    let (without, with) = (mean(false), mean(true));
    assert!((0.8..1.25).contains(&(with / without)), "{with} {without}");
}

#[test]
fn fua_write_completes_beside_a_stream() {
    let mut c = small("");
    let fua = Command {
        fua: true,
        ..command(Op::Write, 3_000_000, 8)
    };
    let mixed = |i: usize| match i % 50 {
        0 => Command {
            sector: Sector(3_000_000 + i as u64 * 8),
            ..fua
        },
        _ => command(Op::Write, i as u64 * 2048 % 2_900_000, 2048),
    };
    let run = c.run(1000, 16, Nanos::ZERO, mixed);
    let worst = run.latency_ns.iter().max().expect("some");
    assert!(*worst < 2_000_000_000, "{worst}");
}
