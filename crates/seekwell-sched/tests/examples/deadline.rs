//! deadline from 2.6.18 on.

use super::*;

const SWEEP: &str = "0 1 1 R 400; 100 2 1 R 800; 200 3 1 R 200; 300 4 1 R 500; 400 5 1 R 600; \
                     500 6 1 R 100";
const BOTH: &str = "0 1 1 R 1000; 100 2 1 R 2000; 110 3 1 R 3000; 120 4 1 R 4000; \
                    130 5 1 R 5000; 140 6 1 R 6000; 150 7 1 W 100; 160 8 1 W 200; 170 9 1 W 300";

#[test]
fn sweep_restarts_at_the_lowest_sector_or_at_the_oldest_request() {
    let old = Bench::serial("deadline-2.6.18", 5000).times(SWEEP);
    assert_eq!(old, "1@0 6@5 3@10 4@15 5@20 2@25");
    for version in ["deadline-2.6.24", "deadline-3.4", "deadline"] {
        let new = Bench::serial(version, 5000).times(SWEEP);
        assert_eq!(new, "1@0 2@5 3@10 4@15 5@20 6@25", "{version}");
    }
}
#[test]
fn one_write_batch_follows_two_read_batches() {
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
    // Gaps end a batch, so every request starts a new decision.
    assert_eq!(
        Bench::serial("deadline-2.6.24", 1000).order(BOTH),
        "1 2 3 7 4 5 8 6 9"
    );
}
#[test]
fn expired_head_waits_for_the_end_of_the_batch() {
    let rows = "0 1 1 R 500; 1000 2 1 R 1000; 2000 3 1 R 100; 3000 4 1 R 2000; \
                4000 5 1 R 3000; 5000 6 1 R 4000; 6000 7 1 R 5000; 7000 8 1 R 6000; \
                8000 9 1 R 7000";
    let b = |v| Bench::serial(v, 100_000).set("fifo_batch", "2");
    assert_eq!(b("deadline").order(rows), "1 2 4 5 6 7 8 3 9");
    assert_eq!(b("deadline-2.6.24").order(rows), "1 2 4 5 6 7 3 8 9");
    assert_eq!(b("deadline-2.6.18").order(rows), "1 3 2 4 5 6 7 8 9");
}
#[test]
fn write_batch_delays_reads() {
    let rows = "0 1 1 W 1000; 100 2 1 W 2000; 110 3 1 W 3000; 120 4 1 W 4000; \
                130 5 1 W 5000; 140 6 1 W 6000; 150 7 1 W 7000; 6000 8 1 R 9000; \
                6100 9 1 R 100";
    let b = Bench::serial("deadline", 5000).set("fifo_batch", "4");
    assert_eq!(b.times(rows), "1@0 2@5 3@10 4@15 5@20 8@25 9@30 6@35 7@40");
}
#[test]
fn request_that_arrives_behind_the_sweep_position_is_skipped() {
    let rows = "0 1 1 R 500; 100 2 1 R 1000; 200 3 1 R 2000; 300 4 1 R 3000; \
                6000 5 1 R 1500; 7000 6 1 R 2500";
    let b = Bench::serial("deadline", 5000);
    assert_eq!(b.order(rows), "1 2 3 6 4 5");
}
#[test]
fn request_at_its_exact_deadline_is_expired_since_4_0() {
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
fn with_writes_starved_0_writes_always_precede_reads() {
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
fn request_at_an_occupied_sector_dispatches_the_older_one() {
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

/// Reads expire after 50 ms. Request 2 is behind the sweep; its deadline is the dispatch at 50 ms.
/// At its deadline, it has expired in 4.0 but not in 3.4.
#[test]
fn a_request_expires_at_its_deadline_or_one_tick_later() {
    for (version, want) in [
        ("deadline-4.0", "1 3 4 5 6 2 7 8"),
        ("deadline-3.4", "1 3 4 5 6 7 2 8"),
    ] {
        let b = Bench::serial(version, 10_000)
            .set("read_expire", "50")
            .set("fifo_batch", "1");
        let rows = many(0, 3, 6, 3, "R", 2000, 1000);
        let rows = format!("0 1 1 R 1000; 0 2 2 R 8; {rows}");
        assert_eq!(b.hold().order(&rows), want, "{version}");
    }
}
