//! anticipatory.

use super::*;

const BOTH: [&str; 2] = ["anticipatory-2.6.18", "anticipatory"];

#[test]
fn disk_waits_for_the_process_served_last() {
    let rows = chain(0, 1, 4, 1, 1000, 8, 1000) + &chain(100, 11, 3, 2, 9_000_000, 8, 1000);
    for v in BOTH {
        let got = Bench::serial(v, 5000).times(&rows);
        assert_eq!(got, "1@0 2@6 3@12 4@18 T@29 11@29 12@35 13@41", "{v}");
    }
}
#[test]
fn disk_does_not_wait_for_a_process_with_long_think_time() {
    let rows = "0 1 1 R 1000; 100 11 2 R 9000000; @1+20000 2 1 R 1008; @11+1000 12 2 R 9000008; \
                @12+1000 13 2 R 9000016; @13+1000 14 2 R 9000024; 44000 15 2 R 9000032";
    for v in BOTH {
        let got = Bench::serial(v, 5000).times(rows);
        let want = "1@0 T@11 11@11 12@17 13@23 14@29 T@40 2@40 15@45";
        assert!(got.starts_with(want), "{v}: {got}");
    }
}
#[test]
fn close_distance_widens_while_waiting() {
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
fn write_batch_size_adapts_to_the_duration_of_writes() {
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
fn past_exits_decide_whether_an_exiting_process_is_awaited() {
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
fn async_write_of_the_awaited_process_ends_the_wait() {
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
