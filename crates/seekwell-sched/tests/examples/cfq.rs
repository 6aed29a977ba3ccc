//! CFQ from 2.6.18 on.

use super::*;

const GROUPED: [&str; 2] = ["cfq-3.4", "cfq"];

#[test]
fn disk_idles_for_the_active_queue() {
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
fn slice_length_follows_the_priority_level() {
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
fn slices_shrink_to_fit_a_round_into_the_target_latency() {
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
/// With many queues, a fair part of target_latency would be shorter than twice slice_idle. A slice
/// is then twice slice_idle at level 4, and in proportion at the other levels.
#[test]
fn slices_never_shrink_below_twice_slice_idle() {
    let of = |p: u64| chain(10 * (p - 1), 1000 * p, 60, p, 10_000_000 * p, 16, 0);
    let rows: String = (1..=40).map(of).collect();
    for v in GROUPED {
        let later = |b: Bench| {
            let got = runs(&b.order(&rows), |id| id / 1000);
            let words: Vec<_> = got.split(' ').map(str::to_owned).collect();
            words[30..36].join(" ")
        };
        // A slice serves one request more than its length in ms, because its time starts at the
        // first completion.
        let b = Bench::serial(v, 1000);
        assert_eq!(
            later(b.clone()),
            "31:17 32:17 33:17 34:17 35:17 36:17",
            "{v}"
        );
        // By default a slice is 2 x 8 = 16 ms. With slice_idle 2, it is 300 / 40 = 7.5 ms, because
        // 2 x 2 ms is shorter.
        let got = later(b.clone().set("slice_idle", "2"));
        assert_eq!(got, "31:8 32:8 33:8 34:8 35:8 36:8", "{v}");
        // The base slice of level 0 is 180 ms instead of 100: 180 x 2 x 8 / 100 = 28.
        let high = b.prio(33, IoPrio::be(0));
        let got = runs(&high.order(&rows), |id| id / 1000);
        assert!(got.contains("33:29"), "{v}: {got}");
    }
}
#[test]
fn queue_of_higher_class_or_with_prio_requests_preempts() {
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
fn close_request_of_another_process_ends_the_idle_wait() {
    let rows = "0 1 1 R 1000+16; @1+12000 2 1 R 1016+16; 6000 21 2 R 5000000+16; \
                7000 31 3 R 1516+16";
    for v in GROUPED {
        let got = Bench::serial(v, 5000).times(rows);
        assert_eq!(got, "1@0 31@7 2@17 T@30 21@30 T@43", "{v}");
    }
}
#[test]
fn small_single_request_keeps_the_idle_timer_running() {
    let rows = "0 1 1 R 1000+8; @1+4000 2 1 R 1008+8; @2+1000 3 1 R 1016+8; 11500 11 2 R 9000000";
    for v in GROUPED {
        let got = Bench::serial(v, 6000).times(rows);
        assert_eq!(got, "1@0 2@10 T@14 11@16 T@30 3@30 T@44", "{v}");
    }
    let got = Bench::serial("cfq-2.6.24", 6000).times(rows);
    assert!(got.starts_with("1@0 2@10 3@17 T@31 11@31"), "{got}");
}
#[test]
fn async_writes_yield_to_sync_requests_and_keep_to_their_limit() {
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
/// After a sync request took longer than fifo_expire_sync (150 ms here), async requests get only
/// one place in the driver. They get one more place for each slice_sync since then. Without
/// low_latency they get as many as the queue has.
#[test]
fn late_sync_request_limits_async_requests_for_a_while() {
    let rows = "0 1 1 R 1000;".to_owned() + &many(10_000, 11, 8, 2, "W", 5_000_000, 1000);
    for v in GROUPED {
        let b = Bench::serial(v, 150_000).depth(32);
        let got = b.times(&rows);
        assert_eq!(
            got, "1@0 T@158 11@158 12@308 13@458 14@458 15@458 16@608 17@608 18@758",
            "{v}"
        );
        let got = b.set("low_latency", "0").times(&rows);
        assert!(
            got.starts_with("1@0 T@158 11@158 12@158 13@158 14@158"),
            "{v}: {got}"
        );
        assert!(got.ends_with("18@158"), "{v}: {got}");
    }
}
/// An async slice ends after 2 x slice_async_rq x (8 - level) requests, while other queues are
/// busy: 16 at level 4, 4 at level 7.
#[test]
fn async_slice_ends_after_its_number_of_requests() {
    let rows =
        many(0, 1000, 64, 1, "W", 1_000_000, 1000) + &many(0, 2000, 64, 2, "W", 5_000_000, 1000);
    for v in GROUPED {
        let b = Bench::serial(v, 1000)
            .prio(1, IoPrio::be(4))
            .prio(2, IoPrio::be(7));
        let b = b.set("low_latency", "0").hold();
        let of = |b: &Bench| runs(&b.order(&rows), |id| id / 1000);
        let got = of(&b);
        assert!(got.starts_with("1:16 2:4 1:"), "{v}: {got}");
        let got = of(&b.set("slice_async_rq", "1"));
        assert!(got.starts_with("1:8 2:2 1:"), "{v}: {got}");
    }
}
#[test]
fn process_with_long_think_time_loses_its_idle_window() {
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
fn idle_class_waits_until_no_other_queue_is_busy() {
    let rows = chain(0, 1, 20, 1, 1000, 16, 0) + "100 31 3 R 9000000; 150 32 3 R 9000100";
    for v in GROUPED {
        let got = Bench::serial(v, 1000).prio(3, IDLE).order(&rows);
        assert!(got.ends_with("20 31 32"), "{v}: {got}");
    }
}

/// 2.6.18 serves the IDLE class 100 ms after the last completion of another class. The grace timer
/// is armed at 58 ms for 106 ms, cancelled by request 3, and armed again for 166 ms.
#[test]
fn the_idle_class_waits_for_a_grace_period_that_starts_again() {
    let b = Bench::serial("cfq-2.6.18", 6000).prio(9, IDLE);
    let got = b.times("0 1 1 R 1000; 50000 2 9 R 5000; 60000 3 1 R 9000");
    assert_eq!(got, "1@0 T@14 T@58 3@60 T@74 T@166 2@166");
}
