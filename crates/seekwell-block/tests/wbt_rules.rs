//! The rules of writeback throttling, one by one: limits, windows, tracked writes, the target, and
//! invariants for any input.

use crate::wbt::write_target;
use proptest::prelude::*;
use seekwell_block::mq::wbt::{Asks, Class, Facts, Moment, Verdict, Wbt};
use seekwell_core::{Flags, Op};

const HZ: u32 = 250;

fn fresh(depth: u32) -> Wbt {
    let facts = Facts {
        hz: HZ,
        depth,
        write_back: true,
        rotational: false,
    };
    Wbt::new(facts, Moment::default(), false)
}

fn at_step(depth: u32, step: i32) -> [u32; 3] {
    fresh(depth).corrected(step, false, 0).depths().1
}

#[test]
fn wbt_limits_follow_the_scaling_step() {
    let large = [
        (4, [1, 1, 1]),
        (3, [2, 2, 1]),
        (2, [4, 2, 1]),
        (1, [8, 4, 2]),
        (0, [16, 8, 4]),
        (-1, [31, 16, 8]),
        (-2, [61, 31, 16]),
        (-3, [121, 61, 31]),
    ];
    for (step, limits) in large {
        assert_eq!(at_step(1023, step), limits, "step {step}");
    }
    let tops = [
        (1023, [767, 384, 192]),
        (256, [192, 96, 48]),
        (128, [96, 48, 24]),
        (64, [48, 24, 12]),
        (32, [24, 12, 6]),
        (31, [23, 12, 6]),
    ];
    for (depth, limits) in tops {
        assert_eq!(at_step(depth, -20), limits, "depth {depth}");
    }
    // For small depths the maximum is below step 0; a device with one command keeps one waiting.
    let shallow = [(8, [8, 4, 2], [6, 3, 2]), (4, [4, 2, 1], [3, 2, 1])];
    for (depth, zero, top) in shallow {
        assert_eq!((at_step(depth, 0), at_step(depth, -1)), (zero, top));
    }
    assert_eq!((at_step(3, 0)[0], at_step(3, -1)[0]), (3, 2));
    assert_eq!((at_step(2, 0)[0], at_step(2, -1)[0]), (2, 1));
    assert_eq!((at_step(1, 0)[0], at_step(1, 1)[0]), (2, 1));
}

#[test]
fn wbt_window_length_is_rounded_to_jiffies() {
    // (HZ, ms by step 0 to 4)
    for (hz, ms) in [
        (250, [104, 76, 60, 52, 48]),
        (1000, [104, 80, 60, 51, 46]),
        (100, [110, 80, 60, 60, 50]),
    ] {
        for (step, ms) in ms.into_iter().enumerate() {
            let facts = Facts {
                hz,
                depth: 128,
                write_back: true,
                rotational: false,
            };
            let now = Moment { ns: 0, jiffy: 800 };
            let mut w = Wbt::new(facts, now, false).corrected(step as i32, false, 0);
            assert!(w.ask(write(1), now));
            let ticks = w.window_ends().expect("one runs") - now.jiffy;
            assert_eq!(ticks * 1000 / i64::from(hz), ms, "HZ {hz} step {step}");
        }
    }
}

fn write(id: u64) -> Asks {
    Asks {
        id,
        class: Class::Write,
        high: false,
        background: false,
    }
}

#[test]
fn wbt_throttles_only_the_tracked_kinds_of_writes() {
    let of = |op, flags| Asks::throttled_kind(1, op, flags);
    let plain = Flags::empty();
    assert!(of(Op::Read, plain).is_none() && of(Op::Read, Flags::META).is_none());
    assert!(of(Op::WriteZeroes, plain).is_none());
    // Direct writes and the modern journal, which announce more I/O; not those of an fsync.
    assert!(of(Op::Write, Flags::SYNC).is_none());
    assert!(of(Op::Write, Flags::SYNC | Flags::NOIDLE).is_some_and(|a| a.high));
    assert!(of(Op::Write, plain).is_some_and(|a| !a.high && !a.background));
    assert!(of(Op::Write, Flags::BACKGROUND).is_some_and(|a| a.background));
    assert!(of(Op::Flush, plain).is_some_and(|a| a.class == Class::Write));
    assert!(of(Op::Discard, Flags::SYNC).is_some_and(|a| a.class == Class::Discard));
}

/// Ends the current window at its time.
fn window(w: &mut Wbt, now: &mut Moment) -> Verdict {
    let ends = w.window_ends().expect("one runs");
    now.ns += (ends - now.jiffy) as u64 * 1_000_000_000 / u64::from(HZ);
    now.jiffy = ends;
    w.window_ended(*now)
}

#[test]
fn idle_wbt_windows_return_to_step_0_and_stop() {
    let mut now = Moment {
        ns: 0,
        jiffy: 10_000,
    };
    let mut w = fresh(128).resumed(0, false, 0, [0; 3]);
    assert!(w.ask(write(1), now));
    // A lasting state: only writes, so more may pass with every window.
    for step in [-1, -2, -3] {
        assert_eq!(window(&mut w, &mut now), Verdict::OnlyWrites);
        assert_eq!(w.depths().0, step);
    }
    w.slot_back(Class::Write, now);
    w.write_done();
    assert_eq!(window(&mut w, &mut now), Verdict::OnlyWrites);
    // The maximum is reached at -3. Nothing is in progress any more: five windows per step.
    assert_eq!(w.depths().0, -3);
    let mut steps = Vec::new();
    while w.window_ends().is_some() {
        assert_eq!(window(&mut w, &mut now), Verdict::Unknown);
        steps.push(w.depths().0);
    }
    let five = |step| std::iter::repeat_n(step, 5);
    let mut want: Vec<i32> = five(-3).chain(five(-2)).chain(five(-1)).collect();
    want.remove(0);
    want.push(0);
    assert_eq!(steps, want);
}

#[test]
fn wbt_windows_stop_on_an_idle_disk_of_depth_2() {
    let mut now = Moment {
        ns: 0,
        jiffy: 10_000,
    };
    let mut w = fresh(2).resumed(0, false, 0, [0; 3]);
    assert!(w.ask(write(1), now));
    assert_eq!(window(&mut w, &mut now), Verdict::OnlyWrites);
    assert_eq!(w.depths().1[0], 1);
    w.slot_back(Class::Write, now);
    let windows = (0..100).take_while(|_| {
        let runs = w.window_ends().is_some();
        if runs {
            window(&mut w, &mut now);
        }
        runs
    });
    assert!(windows.count() < 100);
    // It continues as soon as there is work.
    assert!(w.ask(write(2), now) && w.window_ends().is_some());
}

#[test]
fn store_of_wbt_lat_usec_sets_target_and_enablement() {
    let now = Moment::default();
    let mut w = fresh(128);
    assert_eq!(w.lat_usec(), 2000);
    for wrong in ["-2", "soon", ""] {
        assert!(w.store_lat_usec(wrong, now).is_err(), "{wrong}");
    }
    write_target(&mut w, 0, now);
    assert!(!w.on() && w.lat_usec() == 0);
    // A setting by hand stays under every scheduler.
    w.wanted(false, now);
    w.wanted(true, now);
    assert!(!w.on());
    write_target(&mut w, -1, now);
    assert_eq!((w.on(), w.lat_usec()), (true, 2000));
    // Under bfq it is off. Writing the remembered value does not turn it on; another value does.
    let mut w = fresh(128);
    w.wanted(false, now);
    assert!(!w.on() && w.lat_usec() == 0);
    for same in [2000, -1] {
        write_target(&mut w, same, now);
        assert!(!w.on(), "{same}");
    }
    write_target(&mut w, 3000, now);
    write_target(&mut w, 2000, now);
    assert_eq!((w.on(), w.lat_usec()), (true, 2000));
}

#[test]
fn with_write_cache_a_full_wbt_class_drains_before_it_is_refilled() {
    for (write_back, woken_at) in [(true, 0), (false, 6)] {
        let facts = Facts {
            hz: HZ,
            depth: 128,
            write_back,
            rotational: false,
        };
        let now = Moment {
            ns: 0,
            jiffy: 10_000,
        };
        let start = Moment::default();
        let mut w = Wbt::new(facts, start, false);
        for id in 0..20 {
            // The normal limit is 8.
            assert_eq!(w.ask(write(id), now), id < 8);
        }
        let mut left = 8;
        while !w.has_granted() {
            w.slot_back(Class::Write, now);
            left -= 1;
        }
        assert_eq!(left, woken_at, "write back {write_back}");
        let first = w.granted().expect("one");
        assert_eq!((first.id, w.used()[0]), (8, 8), "refilled in order");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// Used slots equal granted minus returned slots. Nothing waits if no slot is in use. Limits
    /// are in order. Windows continue until the step is 0 and nothing is in progress.
    #[test]
    fn wbt_invariants_hold_for_any_input(
        depth in prop_oneof![1..10u32, 1..300u32],
        write_back: bool,
        deeds in prop::collection::vec((0..12u8, 0..3usize, 0..40i64, any::<bool>()), 1..400),
    ) {
        let facts = Facts { hz: HZ, depth, write_back, rotational: false };
        let mut now = Moment { ns: 0, jiffy: 5_000 };
        let mut w = Wbt::new(facts, now, false);
        let classes = [Class::Write, Class::Swap, Class::Discard];
        let mut held = [0u32; 3];
        let (mut asked, mut served, mut reads) = (0u64, 0u64, 0u64);
        for (deed, c, n, flag) in deeds {
            match deed {
                0..=3 => {
                    asked += 1;
                    let a = Asks { id: asked, class: classes[c], high: flag, background: n % 2 == 0 };
                    if w.ask(a, now) {
                        held[c] += 1;
                        served += 1;
                    }
                }
                4 | 5 if held[c] > 0 => {
                    held[c] -= 1;
                    w.slot_back(classes[c], now);
                    if flag { w.write_done() }
                }
                6 => {
                    reads += 1;
                    w.read_asks(now);
                    w.read_issued(reads, now.ns);
                }
                7 => w.read_done(reads, n as u64 * 200_000, now),
                8 => w.dirty_sleep(now.jiffy),
                9 => { write_target(&mut w, [0, 500, 2000, 80_000][c], now); }
                10 => w.wanted(flag, now),
                _ => {}
            }
            let until = now.jiffy + n;
            while let Some(ends) = w.window_ends().filter(|e| *e <= until) {
                now.ns += (ends - now.jiffy).max(0) as u64 * 4_000_000;
                now.jiffy = now.jiffy.max(ends);
                let before = w.depths().0;
                w.window_ended(now);
                let after = w.depths().0;
                prop_assert!((after - before).abs() <= 1 || after == 0, "P6");
            }
            now.ns += (until - now.jiffy).max(0) as u64 * 4_000_000;
            now.jiffy = until.max(now.jiffy);
            while let Some(a) = w.granted() {
                held[a.class as usize] += 1;
                served += 1;
            }
            prop_assert_eq!(w.used(), held, "P1");
            prop_assert_eq!(asked, served + w.waiting() as u64, "none is lost");
            let (step, [max, normal, background], _) = w.depths();
            prop_assert!(1 <= background && background <= normal && normal <= max, "P4");
            prop_assert!(max == 1 || step <= 4, "P5");
            if held == [0; 3] || !w.on() {
                prop_assert_eq!(w.waiting(), 0, "P3 and P8");
            }
        }
        for c in 0..3 {
            while held[c] > 0 {
                held[c] -= 1;
                w.slot_back(classes[c], now);
                while let Some(a) = w.granted() {
                    held[a.class as usize] += 1;
                }
            }
        }
        prop_assert_eq!(w.waiting(), 0, "all pass in the end");
        (1..=reads).for_each(|id| w.read_done(id, 0, now));
        for _ in 0..100 {
            if let Some(ends) = w.window_ends() {
                now.ns += (ends - now.jiffy).max(0) as u64 * 4_000_000;
                now.jiffy = now.jiffy.max(ends);
                w.window_ended(now);
            }
        }
        prop_assert!(w.window_ends().is_none(), "P7: {:?}", w.depths());
    }
}
