//! Worked examples, each named after the rule it shows, run against the schedulers alone: a layer
//! of a hundred lines and a device of a fixed time. Times in ms; `T`: a timer of the scheduler.

mod bench;

use bench::Bench;
use seekwell_core::{Class, IoPrio};

const RT: IoPrio = IoPrio {
    class: Class::Rt,
    level: 4,
};
const IDLE: IoPrio = IoPrio {
    class: Class::Idle,
    level: 7,
};

/// `count` requests of a task at once, one step apart, from `id` on.
fn many(at: u64, id: u64, count: u64, task: u64, op: &str, sector: u64, step: u64) -> String {
    let row = |i| format!("{at} {} {task} {op} {};", id + i, sector + i * step);
    (0..count).map(row).collect()
}

/// `count` requests of a task, each `think` us after the one before, one behind the other.
fn chain(at: u64, id: u64, count: u64, task: u64, sector: u64, n: u64, think: u64) -> String {
    let mut out = format!("{at} {id} {task} R {sector}+{n};");
    for i in 1..count {
        let before = id + i - 1;
        out += &format!(
            "@{before}+{think} {} {task} R {}+{n};",
            id + i,
            sector + i * n
        );
    }
    out
}

/// Runs of one task in an order: `task:count`.
fn runs(order: &str, task_of: impl Fn(u64) -> u64) -> String {
    let mut all: Vec<(u64, u32)> = Vec::new();
    for id in order.split(' ').filter_map(|w| w.parse().ok()) {
        match all.last_mut() {
            Some(last) if last.0 == task_of(id) => last.1 += 1,
            _ => all.push((task_of(id), 1)),
        }
    }
    let words: Vec<_> = all.iter().map(|(t, n)| format!("{t}:{n}")).collect();
    words.join(" ")
}

mod deadline {
    use super::*;

    const SWEEP: &str = "0 1 1 R 400; 100 2 1 R 800; 200 3 1 R 200; 300 4 1 R 500; 400 5 1 R 600; \
                         500 6 1 R 100";
    const BOTH: &str = "0 1 1 R 1000; 100 2 1 R 2000; 110 3 1 R 3000; 120 4 1 R 4000; \
                        130 5 1 R 5000; 140 6 1 R 6000; 150 7 1 W 100; 160 8 1 W 200; 170 9 1 W 300";

    #[test]
    fn a_sweep_restarts_at_the_lowest_sector_or_at_the_oldest() {
        let old = Bench::serial("deadline-2.6.18", 5000).times(SWEEP);
        assert_eq!(old, "1@0 6@5 3@10 4@15 5@20 2@25");
        for version in ["deadline-2.6.24", "deadline-3.4", "deadline"] {
            let new = Bench::serial(version, 5000).times(SWEEP);
            assert_eq!(new, "1@0 2@5 3@10 4@15 5@20 6@25", "{version}");
        }
    }
    #[test]
    fn two_read_batches_to_one_of_writes() {
        for version in [
            "deadline",
            "deadline-3.4",
            "deadline-2.6.18",
            "deadline-2.6.24",
        ] {
            let b = Bench::serial(version, 1000).set("fifo_batch", "1");
            assert_eq!(b.order(BOTH), "1 2 3 7 4 5 8 6 9", "{version}");
        }
        assert_eq!(
            Bench::serial("deadline", 1000).order(BOTH),
            "1 2 3 4 5 6 7 8 9"
        );
        // Gaps end a batch, so that every request decides anew.
        assert_eq!(
            Bench::serial("deadline-2.6.24", 1000).order(BOTH),
            "1 2 3 7 4 5 8 6 9"
        );
    }
    #[test]
    fn an_expired_head_waits_for_the_end_of_the_batch() {
        let rows = "0 1 1 R 500; 1000 2 1 R 1000; 2000 3 1 R 100; 3000 4 1 R 2000; \
                    4000 5 1 R 3000; 5000 6 1 R 4000; 6000 7 1 R 5000; 7000 8 1 R 6000; \
                    8000 9 1 R 7000";
        let b = |v| Bench::serial(v, 100_000).set("fifo_batch", "2");
        assert_eq!(b("deadline").order(rows), "1 2 4 5 6 7 8 3 9");
        assert_eq!(b("deadline-2.6.24").order(rows), "1 2 4 5 6 7 3 8 9");
        assert_eq!(b("deadline-2.6.18").order(rows), "1 3 2 4 5 6 7 8 9");
    }
    #[test]
    fn a_batch_of_writes_holds_off_reads() {
        let rows = "0 1 1 W 1000; 100 2 1 W 2000; 110 3 1 W 3000; 120 4 1 W 4000; \
                    130 5 1 W 5000; 140 6 1 W 6000; 150 7 1 W 7000; 6000 8 1 R 9000; \
                    6100 9 1 R 100";
        let b = Bench::serial("deadline", 5000).set("fifo_batch", "4");
        assert_eq!(b.times(rows), "1@0 2@5 3@10 4@15 5@20 8@25 9@30 6@35 7@40");
    }
    #[test]
    fn a_late_arrival_between_head_and_next_is_passed_over() {
        let rows = "0 1 1 R 500; 100 2 1 R 1000; 200 3 1 R 2000; 300 4 1 R 3000; \
                    6000 5 1 R 1500; 7000 6 1 R 2500";
        let b = Bench::serial("deadline", 5000);
        assert_eq!(b.order(rows), "1 2 3 6 4 5");
    }
    #[test]
    fn the_deadline_itself_is_late_enough_since_4_0() {
        let rows = "0 1 1 R 500; 1000 2 1 R 1000; 1100 3 1 R 100; 1200 4 1 R 2000; 1300 5 1 R 3000";
        let b = |v| {
            Bench::serial(v, 5500)
                .set("read_expire", "10")
                .set("fifo_batch", "1")
        };
        assert_eq!(b("deadline").order(rows), "1 2 3 4 5");
        assert_eq!(b("deadline-3.4").order(rows), "1 2 4 3 5");
        assert_eq!(b("deadline-2.6.18").order(rows), "1 3 2 4 5");
    }
    #[test]
    fn reads_lose_whenever_both_wait_if_none_may_pass() {
        let rows = "0 1 1 R 500; 100 2 1 R 1000; 200 3 1 W 2000; 300 4 1 R 3000; 400 5 1 W 100";
        let b = |v| {
            Bench::serial(v, 5000)
                .set("writes_starved", "0")
                .set("fifo_batch", "1")
        };
        assert_eq!(b("deadline").order(rows), "1 3 5 2 4");
        assert_eq!(b("deadline-2.6.18").order(rows), "1 5 3 2 4");
    }
    #[test]
    fn a_second_request_at_its_start_sends_one_off() {
        let rows = "0 1 1 R 9000; 100 2 1 R 500; 200 3 1 R 400; 300 4 1 R 500";
        assert_eq!(
            Bench::serial("deadline-2.6.24", 5000).order(rows),
            "1 2 3 4"
        );
        assert_eq!(Bench::serial("deadline", 5000).order(rows), "1 2 4 3");
        let rows = "0 1 1 R 9000; 100 2 1 R 400; 200 3 1 R 500; 300 4 1 R 500";
        assert_eq!(
            Bench::serial("deadline-2.6.24", 5000).order(rows),
            "1 3 2 4"
        );
        assert_eq!(Bench::serial("deadline", 5000).order(rows), "1 2 3 4");
    }
}

mod mq_deadline {
    use super::*;

    #[test]
    fn the_first_sweep_is_of_writes_and_starts_at_the_bottom() {
        let rows = "0 1 1 R 5000; 0 2 1 W 100; 0 3 1 R 1000; 0 4 1 W 9000; 0 5 1 R 3000";
        let b = |v| Bench::serial(v, 1000).hold();
        assert_eq!(b("mq-deadline").order(rows), "2 4 3 5 1");
        assert_eq!(b("mq-deadline-6.1").order(rows), "1 3 5 2 4");
    }
    #[test]
    fn batches_and_starved_writes() {
        let rows = many(0, 1, 8, 1, "R", 1000, 1000) + &many(0, 11, 4, 1, "W", 101_000, 1000);
        let b = |v| Bench::serial(v, 1000).set("fifo_batch", "2").hold();
        assert_eq!(b("mq-deadline").order(&rows), "11 12 1 2 3 4 13 14 5 6 7 8");
        assert_eq!(
            b("mq-deadline-6.1").order(&rows),
            "1 2 3 4 11 12 5 6 7 8 13 14"
        );
    }
    #[test]
    fn an_expired_head_begins_the_next_batch() {
        let rows = format!(
            "0 1 1 R 200000; 500 2 1 R 100; {}",
            many(500, 11, 8, 1, "R", 201_000, 1000)
        );
        let b = |n| {
            Bench::serial("mq-deadline", 2000)
                .set("read_expire", "5")
                .set("fifo_batch", n)
        };
        assert_eq!(b("4").order(&rows), "1 11 12 13 2 14 15 16 17 18");
        assert_eq!(b("16").order(&rows), "1 11 12 13 14 15 16 17 18 2");
    }
    #[test]
    fn lower_classes_wait_for_those_in_flight() {
        let rows = "0 1 1 R 100; 0 2 2 R 9000; 0 3 3 R 50; 0 4 1 R 300; 500 5 2 R 100";
        let b = Bench::serial("mq-deadline", 1000)
            .depth(4)
            .prio(2, RT)
            .prio(3, IDLE)
            .hold();
        assert_eq!(b.times(rows), "2@0 5@0.5 1@2 4@2 3@4");
    }
    #[test]
    fn an_aged_request_passes() {
        let mut rows = "0 99 1 R 100;".to_owned();
        for i in 0..13 {
            let at = (i * 1000u64).saturating_sub(10);
            rows += &format!("{at} {i} 2 R {};", 5000 + 100 * i);
        }
        let b = Bench::serial("mq-deadline", 1000)
            .prio(2, RT)
            .set("prio_aging_expire", "10")
            .hold();
        let ran = b.run(&rows);
        let order: Vec<_> = ran.dispatched.iter().map(|d| d.1).collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99, 10, 11, 12]);
        assert!(ran.named("class-aged") > 0);
    }
    #[test]
    fn the_sweep_goes_by_position_since_6_2() {
        let rows = "0 1 1 R 1000; 0 2 1 R 3000; 500 3 1 R 2000; 1500 4 1 R 500";
        assert_eq!(Bench::serial("mq-deadline", 1000).order(rows), "1 3 2 4");
        assert_eq!(
            Bench::serial("mq-deadline-6.1", 1000).order(rows),
            "1 2 3 4"
        );
    }
    #[test]
    fn a_failed_probe_ends_the_batch_of_others() {
        let reads = many(100, 1, 8, 2, "R", 1000, 1000);
        let rows = format!("0 20 2 R 50; {reads} 100 21 2 W 500;");
        let b = Bench::serial("mq-deadline", 1000)
            .prio(2, RT)
            .set("fifo_batch", "2");
        assert_eq!(b.order(&rows), "20 1 2 3 4 5 21 6 7 8");
        let with = format!("{rows} 100 22 1 W 70000");
        assert_eq!(b.order(&with), "20 21 1 2 3 4 5 6 7 8 22");
    }
    #[test]
    fn an_old_write_batch_goes_on() {
        let rows = "0 1 1 W 4000; 2500 2 1 R 100; 2500 3 1 W 5000; 2500 4 1 W 3000";
        let b = |v| Bench::serial(v, 1000);
        assert_eq!(
            b("mq-deadline").times(&rows.replace(
                "2500 2 1 R 100; 2500 3 1 W 5000;",
                "2500 3 1 W 5000; 2500 2 1 R 100;"
            )),
            "1@0 3@2.5 2@3.5 4@4.5"
        );
    }
}

mod phone {
    use super::*;

    #[test]
    fn zen_serves_sync_first_but_an_expired_async_head_now_and_then() {
        let rows = "0 1 9 W 1000; 0 2 2 R 2000; 0 3 9 W 3000; 0 4 1 S 4000";
        assert_eq!(Bench::drained("zen", 0).order(rows), "2 4 1 3");
        let rows = "0 1 1 R 100; 0 2 1 W 200; 0 3 1 R 300; 0 4 1 S 400";
        assert_eq!(Bench::drained("zen", 0).order(rows), "1 3 4 2");
        assert_eq!(Bench::drained("zen-v1", 0).order(rows), "2 4 1 3");
        let rows = "0 9 1 W 5;".to_owned() + &many(2_100_000, 1, 5, 1, "R", 100, 100);
        let b = |at| {
            let b = Bench::drained("zen", at).set("sync_expire", "250");
            b.set("async_expire", "2000").set("fifo_batch", "1")
        };
        assert_eq!(b(2_100_000).order(&rows), "1 2 9 3 4 5");
        // Both expired, async due earlier: neither is taken.
        let rows = "0 9 1 W 5;".to_owned() + &many(1_900_000, 1, 6, 1, "R", 100, 100);
        assert_eq!(b(3_000_000).order(&rows), "1 2 3 4 5 6 9");
        assert_eq!(
            b(3_000_000).set("fix_both_expired", "1").order(&rows),
            "1 2 9 3 4 5 6"
        );
    }
    #[test]
    fn sio_counts_reads_since_the_last_write() {
        let rows = many(0, 1, 6, 1, "R", 0, 100) + "0 11 1 S 9; 0 12 1 W 99";
        assert_eq!(Bench::drained("sio", 0).order(&rows), "1 2 3 11 4 5 6 12");
        let rows = "0 1 1 R 1; 0 2 1 R 20; 0 3 1 R 40; 3500 11 1 S 90; 3500 4 1 R 60";
        assert_eq!(
            Bench::serial("sio", 1000).times(rows),
            "1@0 2@1 3@2 11@3.5 4@4.5"
        );
        let rows = many(0, 1, 5, 1, "R", 0, 100) + "0 11 1 W 9; 0 12 1 W 99; 0 13 1 S 999";
        assert_eq!(Bench::drained("sio", 0).order(&rows), "1 2 3 13 4 5 11 12");
        let rows = many(0, 1, 4, 1, "R", 0, 100) + "0 11 1 W 9; 0 12 1 W 99; 0 13 1 S 999";
        let b = Bench::drained("sio", 0).set("writes_starved", "0");
        assert_eq!(b.order(&rows), "1 13 2 11 3 12 4");
    }
    #[test]
    fn sio_takes_expired_async_writes_first_though_reads_are_older() {
        let rows = many(0, 1, 4, 1, "R", 0, 100) + "1000000 9 1 W 9";
        let b = Bench::drained("sio", 18_000_000).set("fifo_batch", "1");
        assert_eq!(b.order(&rows), "1 2 9 3 4");
        let rows = many(0, 1, 12, 1, "R", 0, 100) + "1000000 99 1 W 9";
        let b = Bench::drained("sio", 18_000_000);
        assert_eq!(b.order(&rows), "1 2 3 99 4 5 6 7 8 9 10 11 12");
    }
    #[test]
    fn vr_turns_only_for_what_is_much_nearer() {
        assert_eq!(
            Bench::drained("vr", 0).order("0 1 1 R 200; 0 2 1 R 104; 0 3 1 R 48"),
            "3 2 1"
        );
        let rows = "0 1 1 R 1000; 500 2 1 R 1600; 500 3 1 R 960; 500 4 1 R 1200";
        let b = |p| Bench::serial("vr", 1000).set("rev_penalty", p);
        assert_eq!(b("10").order(rows), "1 4 2 3");
        assert_eq!(b("1").order(rows), "1 4 2 3");
        assert_eq!(b("0").order(rows), "1 3 4 2");
        let rows = "0 1 1 R 1000; 500 2 1 R 1039; 500 3 1 R 995";
        assert_eq!(b("10").order(rows), "1 3 2");
    }
    /// Both ways cost 8: the one ahead goes.
    #[test]
    fn vr_goes_up_where_both_ways_cost_the_same() {
        let rows = "0 1 1 R 5000; 500 2 1 R 4000; 500 3 1 R 2992; 1500 4 1 R 4100; 1500 5 1 R 4008";
        assert_eq!(Bench::serial("vr", 1000).order(rows), "1 2 5 4 3");
        let rows = rows.replace("2992", "3000");
        assert_eq!(Bench::serial("vr", 1000).order(&rows), "1 2 3 5 4");
    }
    #[test]
    fn vr_looks_for_expired_heads_every_other_request() {
        let late = many(600_000, 1, 6, 1, "R", 100, 8);
        let rows = format!("0 20 1 R 8000; 0 30 1 W 9000; {late}");
        assert_eq!(
            Bench::drained("vr", 600_001).order(&rows),
            "1 2 20 30 6 5 4 3"
        );
        let late = many(5_150_000, 1, 6, 1, "R", 100, 8);
        let rows = format!("0 30 1 W 9000; 4600000 20 1 R 8000; {late}");
        assert_eq!(
            Bench::drained("vr", 5_150_000).order(&rows),
            "1 2 30 20 6 5 4 3"
        );
    }
    #[test]
    fn fiops_charges_by_kind_and_level() {
        let rows = many(0, 1, 3, 1, "R", 0, 100) + &many(0, 11, 3, 2, "R", 5000, 100);
        assert_eq!(Bench::drained("fiops", 0).order(&rows), "1 11 2 12 3 13");
        let rows = many(0, 1, 6, 1, "R", 0, 100) + &many(0, 11, 3, 2, "W", 5000, 100);
        assert_eq!(
            Bench::drained("fiops", 0).order(&rows),
            "1 11 2 3 12 4 5 13 6"
        );
        let rows = many(0, 1, 9, 1, "R", 0, 100) + &many(0, 11, 3, 2, "R", 5000, 100);
        let b = Bench::drained("fiops", 0)
            .prio(1, IoPrio::be(0))
            .prio(2, IoPrio::be(7));
        assert_eq!(b.order(&rows), "1 11 2 3 4 5 6 7 8 12 9 13");
        let rows = many(0, 1, 5, 1, "R", 0, 100) + &many(0, 11, 2, 2, "S", 5000, 100);
        let b = Bench::drained("fiops", 0).set("write_scale", "4");
        assert_eq!(b.order(&rows), "1 11 2 3 4 12 5");
    }
    #[test]
    fn fiops_holds_a_lone_async_head_back_while_sync_is_in_flight() {
        let b = Bench::serial("fiops", 1000).depth(4);
        assert_eq!(b.times("0 1 1 R 0; 0 11 2 W 5000"), "1@0 11@1");
        let ran = b.run("0 1 1 R 0; 0 11 2 W 5000; 0 21 3 W 9000");
        assert!(ran.named("async-waits") > 0);
    }
    #[test]
    fn fiops_serves_classes_in_order_and_gives_newcomers_no_back_pay() {
        let rows = "0 31 3 R 0; 0 21 2 R 50; 0 22 2 R 99; 0 11 1 R 500; 0 12 1 R 600";
        let b = Bench::drained("fiops", 0).prio(1, RT).prio(3, IDLE);
        assert_eq!(b.order(rows), "11 12 21 22 31");
        let rows = many(0, 1, 5, 1, "R", 0, 100) + &many(2500, 11, 3, 2, "R", 5000, 100);
        let b = Bench::serial("fiops", 1000);
        assert_eq!(b.times(&rows), "1@0 2@1 3@2 4@3 11@4 5@5 12@6 13@7");
    }
    #[test]
    fn fiops_preempt_lets_sync_overtake() {
        let rows = "0 1 1 W 0; 0 2 1 W 100; 0 11 2 R 5000; 0 12 2 R 5100; 0 13 2 R 5200";
        assert_eq!(Bench::serial("fiops", 1).hold().order(rows), "1 11 12 13 2");
        assert_eq!(
            Bench::serial("fiops-preempt", 1).hold().order(rows),
            "11 12 13 1 2"
        );
    }
    #[test]
    fn row_idles_for_reads_in_quick_succession() {
        let rows = "0 11 1 W 0; 0 21 1 S 100; 0 1 1 R 200; 0 12 1 W 300; 0 2 1 R 400";
        let b = Bench::serial("row", 500);
        assert_eq!(b.hold().times(rows), "1@0 2@0.5 T@11 21@11 11@11.5 12@12");
        let rows = "0 1 1 R 0; 200 11 1 W 100; 1000 2 1 R 200; 1200 12 1 W 300";
        assert_eq!(b.times(rows), "1@0 11@0.5 2@1 T@11.5 12@11.5");
        let more = format!("{rows}; 6000 3 1 R 400");
        assert_eq!(b.times(&more), "1@0 11@0.5 2@1 3@6 T@16.5 12@16.5");
    }
    #[test]
    fn row_serves_by_quanta() {
        let mut rows = many(0, 11, 3, 1, "S", 9000, 100) + &many(0, 21, 3, 1, "W", 5000, 100);
        for i in 0..8 {
            rows += &format!("{} {} 1 R {};", i * 30_000, i + 1, i * 100);
        }
        let b = Bench::drained("row", 300_000).set("rp_read_quantum", "3");
        let b = b.set("rp_swrite_quantum", "1").set("rp_write_quantum", "1");
        assert_eq!(b.order(&rows), "1 2 3 11 21 4 5 6 12 22 7 8 13 23");
    }
    #[test]
    fn row_makes_a_read_urgent_that_a_cycle_left_out() {
        let writes = many(0, 11, 7, 1, "W", 5000, 100);
        let b = Bench::serial("row", 2000);
        let late = b.run(&format!("{writes} 9000 1 1 R 0"));
        let at = |r: &bench::Ran| r.dispatched.iter().find(|d| d.1 == 1).map(|d| d.0);
        assert_eq!(at(&late), Some(10_000));
        assert!(late.named("urgent-first") > 0);
        let early = b.run(&format!("{writes} 3000 1 1 R 0"));
        assert_eq!(at(&early), Some(4000));
        assert!(early.named("urgent-first") == 0);
    }
    #[test]
    fn row_serves_classes_in_order() {
        let rows = "0 1 3 R 0; 0 2 3 S 100; 0 3 3 W 200; 0 4 1 R 300; 0 5 2 S 400; 0 6 2 R 500";
        let b = Bench::drained("row", 0).prio(2, RT).prio(3, IDLE);
        assert_eq!(b.order(rows), "6 5 4 3 1 2");
    }
    #[test]
    fn row_bounds_starvation() {
        let mut rows = "0 21 3 R 1; 0 22 3 R 20; 0 11 1 R 300; 30000 12 1 R 400;".to_owned();
        for i in 0..8 {
            rows += &format!("{} {} 2 R {};", i * 30_000, i + 1, 1000 + i * 100);
        }
        let b = Bench::drained("row", 300_000).prio(2, RT).prio(3, IDLE);
        let b = b.set("reg_starv_limit", "2").set("low_starv_limit", "4");
        assert_eq!(b.order(&rows), "1 2 11 3 21 4 12 5 6 22 7 8");
    }
}

mod anticipatory {
    use super::*;

    const BOTH: [&str; 2] = ["anticipatory-2.6.18", "anticipatory"];

    #[test]
    fn the_disk_waits_for_the_process_it_served_last() {
        let rows = chain(0, 1, 4, 1, 1000, 8, 1000) + &chain(100, 11, 3, 2, 9_000_000, 8, 1000);
        for v in BOTH {
            let got = Bench::serial(v, 5000).times(&rows);
            assert_eq!(got, "1@0 2@6 3@12 4@18 T@29 11@29 12@35 13@41", "{v}");
        }
    }
    #[test]
    fn a_thinker_is_not_waited_for() {
        let rows = "0 1 1 R 1000; 100 11 2 R 9000000; @1+20000 2 1 R 1008; @11+1000 12 2 R 9000008; \
                    @12+1000 13 2 R 9000016; @13+1000 14 2 R 9000024; 44000 15 2 R 9000032";
        for v in BOTH {
            let got = Bench::serial(v, 5000).times(rows);
            let want = "1@0 T@11 11@11 12@17 13@23 14@29 T@40 2@40 15@45";
            assert!(got.starts_with(want), "{v}: {got}");
        }
    }
    #[test]
    fn the_window_of_what_is_close_widens() {
        let rows = "0 1 1 R 1000; @1+1000 2 1 R 1008; 8000 3 2 R 9000000; 13500 4 3 R 20000";
        for v in BOTH {
            let got = Bench::serial(v, 5000).times(rows);
            assert!(got.starts_with("1@0 2@6 4@13.5 T@24 3@24"), "{v}: {got}");
            let got = Bench::serial(v, 5000).times(&rows.replace("20000", "60000"));
            assert!(got.starts_with("1@0 2@6 T@17 4@17 T@28 3@28"), "{v}: {got}");
        }
    }
    #[test]
    fn writes_alone_do_not_end_a_sync_batch() {
        let rows = "0 1 1 R 1000; 100 2 2 W 5000; 200 3 2 W 6000; 300 4 2 W 7000; \
                    @1+500 5 1 R 1008; @5+500 6 1 R 1016; @6+20000 7 1 R 1024";
        for v in BOTH {
            let got = Bench::serial(v, 5000).times(rows);
            assert!(
                got.starts_with("1@0 5@5.5 6@11 T@22 2@22 3@27 4@32 7@37"),
                "{v}: {got}"
            );
        }
    }
    #[test]
    fn batches_of_writes_follow_from_how_long_they_took() {
        let mut rows = String::new();
        for i in 1..13 {
            rows += &format!("{} {i} 1 R {};", (i - 1) * 100, 1000 * i);
        }
        for i in 21..60 {
            rows += &format!("{} {i} 2 W {};", 1500 + i, 50_000 + 100 * i);
        }
        for v in BOTH {
            let b = Bench::serial(v, 1000)
                .set("antic_expire", "0")
                .set("read_batch_expire", "4");
            let order = b.order(&rows);
            let kind = |id: u64| u64::from(id > 20);
            assert_eq!(runs(&order, kind), "0:6 1:24 0:6 1:15", "{v}: {order}");
        }
    }
    #[test]
    fn what_went_before_says_whether_an_exit_is_waited_for() {
        let rows = "0 1 1 R 1000; 100 11 2 R 9000000; 200 12 2 R 9000100; 30000 3 3 R 1000; \
                    30100 13 4 R 9000000";
        for v in BOTH {
            let b = Bench::serial(v, 5000).exit(5500, 1).exit(35_500, 3);
            let got = b.times(rows);
            assert!(got.starts_with("1@0 T@11 11@11 12@16"), "{v}: {got}");
            assert!(got.contains("3@30 T@41 13@41"), "{v}: {got}");
        }
    }
    #[test]
    fn an_async_write_of_the_awaited_process_ends_the_wait() {
        let rows = "0 1 1 R 1000; 100 2 2 R 9000000; 7000 3 1 W 4000; 20000 4 3 R 1000; \
                    20100 5 2 R 9000000; 26500 6 3 S 500";
        for v in BOTH {
            let got = Bench::serial(v, 5000).times(rows);
            assert!(
                got.starts_with("1@0 2@7 T@18 3@18 4@23 6@28 T@39 5@39"),
                "{v}: {got}"
            );
        }
    }
}

mod cfq {
    use super::*;

    const GROUPED: [&str; 2] = ["cfq-3.4", "cfq"];

    #[test]
    fn the_disk_waits_for_the_active_queue() {
        let rows = chain(0, 1, 4, 1, 1000, 8, 1000) + &chain(100, 11, 3, 2, 9_000_000, 8, 1000);
        let want = "1@0 2@6 3@12 4@18 T@31 11@31 12@37 13@43";
        for v in ["cfq-2.6.18", "cfq-2.6.24"] {
            let got = Bench::serial(v, 5000).times(&rows);
            assert_eq!(got, format!("{want} T@50"), "{v}");
        }
        for v in GROUPED {
            let got = Bench::serial(v, 5000).times(&rows);
            assert_eq!(got, format!("{want} T@56"), "{v}");
        }
    }
    /// Three sequential readers of levels 0, 4 and 7 without think time.
    #[test]
    fn slices_by_level() {
        let rows: String = [1u64, 2, 3]
            .iter()
            .map(|p| chain(100 * p, 10_000 * p, 400, *p, 10_000_000 * p, 16, 0))
            .collect();
        let with = |v| {
            let b = Bench::serial(v, 1000)
                .prio(1, IoPrio::be(0))
                .prio(3, IoPrio::be(7));
            runs(&b.order(&rows), |id| id / 10_000)
        };
        for v in ["cfq-2.6.24", "cfq-3.4", "cfq"] {
            assert!(
                with(v).starts_with("1:181 2:101 3:41 1:181 2:101 3:41"),
                "{v}: {}",
                with(v)
            );
        }
        let old = with("cfq-2.6.18");
        assert!(old.starts_with("1:181 2:101 1:181 2:101"), "{old}");
    }
    #[test]
    fn slices_shrink_so_that_a_round_fits_the_target_latency() {
        let rows = |n: u64, each: u64| -> String {
            let of = |p| chain(100 * (p - 1), 1000 * p, each, p, 10_000_000 * p, 16, 0);
            (1..=n).map(of).collect()
        };
        let six = rows(6, 150);
        for v in GROUPED {
            let b = Bench::serial(v, 1000);
            let got = runs(&b.order(&six), |id| id / 1000);
            assert!(
                got.starts_with("1:61 2:51 3:51 4:51 5:51 6:51 1:51"),
                "{v}: {got}"
            );
            let got = runs(&b.set("low_latency", "0").order(&six), |id| id / 1000);
            assert!(got.starts_with("1:101 2:101 3:101 4:101"), "{v}: {got}");
        }
    }
    /// With so many queues that a fair part of target_latency would be less, a slice is twice
    /// slice_idle (at level 4), and in proportion at the others.
    #[test]
    fn no_slice_shrinks_below_twice_slice_idle() {
        let of = |p: u64| chain(10 * (p - 1), 1000 * p, 60, p, 10_000_000 * p, 16, 0);
        let rows: String = (1..=40).map(of).collect();
        for v in GROUPED {
            let later = |b: Bench| {
                let got = runs(&b.order(&rows), |id| id / 1000);
                let words: Vec<_> = got.split(' ').map(str::to_owned).collect();
                words[30..36].join(" ")
            };
            // One more than the slice in ms: the clock starts at the first completion.
            let b = Bench::serial(v, 1000);
            assert_eq!(
                later(b.clone()),
                "31:17 32:17 33:17 34:17 35:17 36:17",
                "{v}"
            );
            // 2 x 4 ms is less than 300 / 40 = 7.5 ms by little, 2 x 2 ms does not bind any more.
            let got = later(b.clone().set("slice_idle", "2"));
            assert_eq!(got, "31:8 32:8 33:8 34:8 35:8 36:8", "{v}");
            // Level 0 has 180 ms for 100: 180 x 2 x 8 / 100 = 28.
            let high = b.prio(33, IoPrio::be(0));
            let got = runs(&high.order(&rows), |id| id / 1000);
            assert!(got.contains("33:29"), "{v}: {got}");
        }
    }
    #[test]
    fn a_queue_of_higher_class_or_with_marked_requests_takes_the_disk() {
        let rows = "0 1 1 R 1000+16; @1+1000 2 1 R 1016+16; @2+1000 3 1 R 1032+16; \
                    7500 21 2 R 5000000+16; 7600 31 3 R 7000000+16";
        let level = IoPrio {
            class: Class::Rt,
            level: 4,
        };
        for v in GROUPED {
            let got = Bench::serial(v, 5000).prio(2, level).times(rows);
            assert_eq!(got, "1@0 2@6 21@11 T@24 3@24 T@37 31@37 T@50", "{v}");
        }
        for v in ["cfq-2.6.18", "cfq-2.6.24"] {
            let got = Bench::serial(v, 5000).prio(2, level).times(rows);
            assert!(got.starts_with("1@0 2@6 3@12 T@25 21@25"), "{v}: {got}");
        }
        let marked = rows.replace("31 3 R", "31 3 P");
        for v in GROUPED {
            let got = Bench::serial(v, 5000).times(&marked);
            assert_eq!(got, "1@0 2@6 31@11 T@24 3@24 T@37 21@37 T@50", "{v}");
        }
        let got = Bench::serial("cfq-2.6.24", 5000).times(&marked);
        assert!(
            got.starts_with("1@0 2@6 31@11 T@24 21@24 T@37 3@37"),
            "{got}"
        );
    }
    #[test]
    fn a_close_request_of_another_process_ends_the_wait() {
        let rows = "0 1 1 R 1000+16; @1+12000 2 1 R 1016+16; 6000 21 2 R 5000000+16; \
                    7000 31 3 R 1516+16";
        for v in GROUPED {
            let got = Bench::serial(v, 5000).times(rows);
            assert_eq!(got, "1@0 31@7 2@17 T@30 21@30 T@43", "{v}");
        }
    }
    #[test]
    fn a_small_lone_request_leaves_the_timer_running() {
        let rows =
            "0 1 1 R 1000+8; @1+4000 2 1 R 1008+8; @2+1000 3 1 R 1016+8; 11500 11 2 R 9000000";
        for v in GROUPED {
            let got = Bench::serial(v, 6000).times(rows);
            assert_eq!(got, "1@0 2@10 T@14 11@16 T@30 3@30 T@44", "{v}");
        }
        let got = Bench::serial("cfq-2.6.24", 6000).times(rows);
        assert!(got.starts_with("1@0 2@10 3@17 T@31 11@31"), "{got}");
    }
    #[test]
    fn async_writes_wait_for_sync_and_keep_to_their_number() {
        let mut rows = chain(0, 1, 300, 1, 1000, 16, 0);
        for i in 0..200 {
            rows += &format!("{} {} 2 W {};", 100 + i, 1001 + i, 5_000_000 + 1000 * i);
        }
        let kinds = |v| runs(&Bench::serial(v, 1000).order(&rows), |id| id / 1000 + 1);
        for v in GROUPED {
            assert_eq!(kinds(v), "1:101 2:1 1:101 2:1 1:98 2:198", "{v}");
        }
        assert_eq!(kinds("cfq-2.6.24"), "1:101 2:16 1:101 2:16 1:98 2:168");
        assert_eq!(
            kinds("cfq-2.6.18"),
            "1:101 2:16 1:97 2:16 1:97 2:16 1:5 2:152"
        );
    }
    #[test]
    fn a_thinker_loses_its_idle_window() {
        let mut rows = "0 1 1 R 1000+16;".to_owned();
        for i in 2..6 {
            rows += &format!("@{}+20000 {i} 1 R {}+16;", i - 1, 1000 + 16 * (i - 1));
        }
        rows += &chain(100, 11, 15, 2, 9_000_000, 16, 1000);
        for v in GROUPED {
            let got = Bench::serial(v, 5000).times(&rows);
            let end = "25@97 T@110 2@110 T@123 3@135 T@148 4@160 T@173 5@185 T@198";
            assert!(
                got.starts_with("1@0 T@13 11@13 12@19") && got.ends_with(end),
                "{v}: {got}"
            );
        }
        let got = Bench::serial("cfq-2.6.24", 5000).times(&rows);
        assert!(
            got.ends_with("25@97 T@104 2@104 T@117 3@129 4@154 5@179"),
            "{got}"
        );
    }
    #[test]
    fn the_idle_class_waits_until_nobody_else_is_busy() {
        let rows = chain(0, 1, 20, 1, 1000, 16, 0) + "100 31 3 R 9000000; 150 32 3 R 9000100";
        for v in GROUPED {
            let got = Bench::serial(v, 1000).prio(3, IDLE).order(&rows);
            assert!(got.ends_with("20 31 32"), "{v}: {got}");
        }
    }
}

mod bfq {
    use super::*;

    fn plain(elevator: &'static str, service_us: u64) -> Bench {
        Bench::serial(elevator, service_us).set("low_latency", "0")
    }

    #[test]
    fn idling_and_a_preemption_in_vain() {
        let rows = "0 1 1 R 1000000+512; 0 11 2 R 9000000+512; 0 12 2 R 9001024+512; \
                    @1+3000 2 1 R 1001024+512; @2+9000 3 1 R 1002048+512";
        let got = plain("bfq", 2000).taught(10_000_000).hold().times(rows);
        assert!(got.starts_with("1@0 2@5 T@15 11@15 12@17"), "{got}");
        assert!(got.contains("3@27"), "{got}");
    }
    /// Shares by weight: 80 to 20.
    #[test]
    fn shares_by_level() {
        let rows = many(0, 1001, 400, 1, "R", 1_000_000, 1024)
            + &many(0, 2001, 400, 2, "R", 900_000_000, 1024);
        let rows = rows.replace(';', "+1024;");
        let b = plain("bfq", 1000)
            .prio(1, IoPrio::be(0))
            .prio(2, IoPrio::be(6))
            .hold();
        let got = runs(&b.order(&rows), |id| id / 1000);
        assert!(
            got.starts_with("1:10 2:10 1:32 2:16 1:64 2:16 1:64 2:16"),
            "{got}"
        );
    }
    /// A queue that idled its slot away in vain has an eighth of the maximum budget less in the
    /// next: 10922 - 2048 = 8874 sectors, which is 8 requests of 1024, where a fresh queue has 10.
    #[test]
    fn the_budget_after_idling_in_vain_is_smaller() {
        let big =
            |at, id, task, sector| many(at, id, 24, task, "R", sector, 1024).replace(';', "+1024;");
        let rows = "0 1 1 R 1000000+1024;".to_owned()
            + &big(100_000, 101, 1, 50_000_000)
            + &big(100_000, 201, 2, 900_000_000);
        let ran = plain("bfq", 1000).taught(10_000_000).run(&rows);
        let expired: Vec<_> = ran.reasons.iter().filter(|r| r.1 == "expired").collect();
        let charged = |k: usize| expired[k].2.rsplit(' ').next().map(str::to_owned);
        assert!(expired[0].2.contains("TOO_IDLE"), "{expired:?}");
        assert_eq!(charged(0).as_deref(), Some("1024"), "{expired:?}");
        assert!(expired[1].2.contains("EXHAUSTED"), "{expired:?}");
        assert_eq!(charged(1).as_deref(), Some("8192"), "{expired:?}");
        assert_eq!(charged(2).as_deref(), Some("10240"), "{expired:?}");
        // Exhausted budgets grow fourfold, up to the maximum of 16384.
        assert_eq!(charged(3).as_deref(), Some("16384"), "{expired:?}");
    }
    /// Idling in vain three times leaves 10922 - 3 x 2048 = 4778 sectors, which is 4 requests; an
    /// exhausted budget is four times as large the next time, up to the maximum.
    #[test]
    fn a_small_budget_grows_fourfold() {
        let mut rows = String::new();
        for i in 0..3 {
            rows += &format!(
                "{} {} 1 R {}+1024;",
                i * 100_000,
                i + 1,
                1_000_000 + 1024 * i
            );
        }
        for (first, task, sector) in [(101, 1, 50_000_000), (201, 2, 900_000_000)] {
            let burst = many(300_000, first, 40, task, "R", sector, 1024);
            rows += &burst.replace(';', "+1024;");
        }
        let ran = plain("bfq", 1000).taught(10_000_000).run(&rows);
        let of_first = |r: &&(u64, &str, String)| r.1 == "expired" && r.2.contains("EXHAUSTED");
        let charged = ran.reasons.iter().filter(of_first);
        let charged = charged.map(|r| r.2.rsplit(' ').next().unwrap_or_default().to_owned());
        let charged: Vec<_> = charged.collect();
        assert!(charged.contains(&"4096".to_owned()), "{:?}", ran.reasons);
        assert!(!charged.contains(&"9216".to_owned()), "{:?}", ran.reasons);
        let whole = charged.iter().filter(|c| *c == "16384").count();
        assert!(whole >= 3, "{:?}", ran.reasons);
    }
    #[test]
    fn a_newcomer_is_raised_and_preempts() {
        let rows = many(0, 1, 14, 1, "R", 1_000_000, 1024).replace(';', "+1024;")
            + "5000 21 2 R 50000000; 5000 22 2 R 60000000";
        let b = Bench::serial("bfq", 2000).prio(1, IoPrio::be(5)).hold();
        let got = b.times(&rows);
        assert!(
            got.starts_with("1@0 2@2 3@4 21@6 22@8 T@30 4@30 5@32"),
            "{got}"
        );
    }
    #[test]
    fn a_real_time_queue_preempts() {
        let rows =
            many(0, 1, 4, 1, "R", 1_000_000, 512).replace(';', "+512;") + "1500 9 2 R 90000000";
        let got = plain("bfq", 1000).prio(2, RT).times(&rows);
        assert!(got.starts_with("1@0 2@1 9@2 T@11 3@11 4@12"), "{got}");
    }
    #[test]
    fn the_idle_class_gets_a_turn_every_200_ms() {
        let rows =
            many(0, 1, 9, 1, "R", 1_000_000, 512) + &many(0, 21, 3, 2, "R", 90_000_000, 1024);
        let rows = rows.replace(';', "+512;");
        let got = plain("bfq", 50_000).prio(2, IDLE).order(&rows);
        assert_eq!(got, "1 2 3 4 5 6 21 7 8 9 22 23");
    }
    /// 120000 sectors are 117 requests of 1024 and some; a queue that is raised anew begins to
    /// count anew.
    #[test]
    fn an_interactive_queue_is_raised_for_so_many_sectors() {
        let big = |at, id, n, sector| many(at, id, n, 1, "R", sector, 1024).replace(';', "+1024;");
        let mut rows = big(0, 1001, 80, 1_000_000);
        // Something every second keeps it from being idle for long, until its time is over.
        for i in 1..12 {
            rows += &format!("{} {i} 1 R {};", i * 1_000_000, 2_000_000 + 8 * i);
        }
        let with = |n: u64| {
            let rows = rows.clone() + &big(20_000_000, 2001, n, 3_000_000);
            Bench::serial("bfq", 1000).run(&rows)
        };
        let (few, more) = (with(80), with(130));
        let interactive =
            |r: &(u64, &str, String)| r.1 == "queue-raised" && r.2.ends_with("interactive");
        let raised = few.reasons.iter().filter(|r| interactive(r)).count();
        assert_eq!(raised, 2, "{:?}", few.reasons);
        assert!(few.named("raising-ends") > 0, "{:?}", few.reasons);
        assert_eq!(few.named("enough-service"), 0, "{:?}", few.reasons);
        assert_eq!(more.named("enough-service"), 1, "{:?}", more.reasons);
    }
    #[test]
    fn v7_charges_async_and_holds_it_back_while_sync_is_in_flight() {
        let rows = "0 1 1 R 1000+64; @1+500 2 1 R 1064+64;".to_owned()
            + &many(0, 11, 6, 2, "W", 900_000, 200).replace(';', "+64;");
        let b = plain("bfq-v7r8", 1000).flash().hz(100).depth(2);
        let b = b.taught(1_000_000);
        let got = b.times(&rows);
        assert!(
            got.starts_with("1@0 2@1.5 T@10 11@10 12@10 13@11 14@12"),
            "{got}"
        );
    }
    #[test]
    fn v7_budgets_grow_fourfold() {
        let rows = (many(0, 1, 12, 1, "R", 1_000_000, 1024)
            + &many(0, 21, 12, 2, "R", 90_000_000, 1024))
            .replace(';', "+1024;");
        let b = plain("bfq-v7r8", 2000).flash().hz(100).hold();
        let got = runs(&b.order(&rows), |id| id / 20);
        assert_eq!(got, "0:10 1:10 0:2 1:2");
    }
}
