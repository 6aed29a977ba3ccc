//! The schedulers of phones: zen, sio, vr, fiops, row.

use super::*;

#[test]
fn zen_serves_sync_requests_first_and_expired_async_heads_periodically() {
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
    // Both requests have expired and the async request is due earlier. zen then serves neither
    // because of its deadline.
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
fn sio_serves_expired_async_writes_before_older_reads() {
    let rows = many(0, 1, 4, 1, "R", 0, 100) + "1000000 9 1 W 9";
    let b = Bench::drained("sio", 18_000_000).set("fifo_batch", "1");
    assert_eq!(b.order(&rows), "1 2 9 3 4");
    let rows = many(0, 1, 12, 1, "R", 0, 100) + "1000000 99 1 W 9";
    let b = Bench::drained("sio", 18_000_000);
    assert_eq!(b.order(&rows), "1 2 3 99 4 5 6 7 8 9 10 11 12");
}
#[test]
fn vr_reverses_only_for_much_nearer_requests() {
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
/// If both directions cost 8, vr dispatches the request ahead.
#[test]
fn vr_goes_upward_if_both_directions_cost_the_same() {
    let rows = "0 1 1 R 5000; 500 2 1 R 4000; 500 3 1 R 2992; 1500 4 1 R 4100; 1500 5 1 R 4008";
    assert_eq!(Bench::serial("vr", 1000).order(rows), "1 2 5 4 3");
    let rows = rows.replace("2992", "3000");
    assert_eq!(Bench::serial("vr", 1000).order(&rows), "1 2 3 5 4");
}
#[test]
fn vr_checks_expired_heads_every_other_request() {
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
fn fiops_charges_by_request_kind_and_level() {
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
fn fiops_delays_a_single_async_head_while_sync_is_in_flight() {
    let b = Bench::serial("fiops", 1000).depth(4);
    assert_eq!(b.times("0 1 1 R 0; 0 11 2 W 5000"), "1@0 11@1");
    let ran = b.run("0 1 1 R 0; 0 11 2 W 5000; 0 21 3 W 9000");
    assert!(ran.named("async-waits") > 0);
}
#[test]
fn fiops_serves_classes_in_order_and_new_contexts_start_at_the_minimum() {
    let rows = "0 31 3 R 0; 0 21 2 R 50; 0 22 2 R 99; 0 11 1 R 500; 0 12 1 R 600";
    let b = Bench::drained("fiops", 0).prio(1, RT).prio(3, IDLE);
    assert_eq!(b.order(rows), "11 12 21 22 31");
    let rows = many(0, 1, 5, 1, "R", 0, 100) + &many(2500, 11, 3, 2, "R", 5000, 100);
    let b = Bench::serial("fiops", 1000);
    assert_eq!(b.times(&rows), "1@0 2@1 3@2 4@3 11@4 5@5 12@6 13@7");
}
#[test]
fn fiops_preempt_lets_sync_requests_overtake() {
    let rows = "0 1 1 W 0; 0 2 1 W 100; 0 11 2 R 5000; 0 12 2 R 5100; 0 13 2 R 5200";
    assert_eq!(Bench::serial("fiops", 1).hold().order(rows), "1 11 12 13 2");
    assert_eq!(
        Bench::serial("fiops-preempt", 1).hold().order(rows),
        "11 12 13 1 2"
    );
}
#[test]
fn row_idles_between_reads_in_quick_succession() {
    let rows = "0 11 1 W 0; 0 21 1 S 100; 0 1 1 R 200; 0 12 1 W 300; 0 2 1 R 400";
    let b = Bench::serial("row", 500);
    assert_eq!(b.hold().times(rows), "1@0 2@0.5 T@11 21@11 11@11.5 12@12");
    let rows = "0 1 1 R 0; 200 11 1 W 100; 1000 2 1 R 200; 1200 12 1 W 300";
    assert_eq!(b.times(rows), "1@0 11@0.5 2@1 T@11.5 12@11.5");
    let more = format!("{rows}; 6000 3 1 R 400");
    assert_eq!(b.times(&more), "1@0 11@0.5 2@1 3@6 T@16.5 12@16.5");
}
#[test]
fn row_limits_each_queue_to_its_quantum() {
    let mut rows = many(0, 11, 3, 1, "S", 9000, 100) + &many(0, 21, 3, 1, "W", 5000, 100);
    for i in 0..8 {
        rows += &format!("{} {} 1 R {};", i * 30_000, i + 1, i * 100);
    }
    let b = Bench::drained("row", 300_000).set("rp_read_quantum", "3");
    let b = b.set("rp_swrite_quantum", "1").set("rp_write_quantum", "1");
    assert_eq!(b.order(&rows), "1 2 3 11 21 4 5 6 12 22 7 8 13 23");
}
#[test]
fn row_marks_a_read_urgent_that_a_cycle_skipped() {
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
