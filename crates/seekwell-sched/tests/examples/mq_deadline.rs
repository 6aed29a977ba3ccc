//! mq-deadline.

use super::*;

#[test]
fn first_sweep_serves_writes_from_the_lowest_sector() {
    let rows = "0 1 1 R 5000; 0 2 1 W 100; 0 3 1 R 1000; 0 4 1 W 9000; 0 5 1 R 3000";
    let b = |v| Bench::serial(v, 1000).hold();
    assert_eq!(b("mq-deadline").order(rows), "2 4 3 5 1");
    assert_eq!(b("mq-deadline-6.1").order(rows), "1 3 5 2 4");
}
#[test]
fn starved_writes_get_a_batch() {
    let rows = many(0, 1, 8, 1, "R", 1000, 1000) + &many(0, 11, 4, 1, "W", 101_000, 1000);
    let b = |v| Bench::serial(v, 1000).set("fifo_batch", "2").hold();
    assert_eq!(b("mq-deadline").order(&rows), "11 12 1 2 3 4 13 14 5 6 7 8");
    assert_eq!(
        b("mq-deadline-6.1").order(&rows),
        "1 2 3 4 11 12 5 6 7 8 13 14"
    );
}
#[test]
fn expired_head_starts_the_next_batch() {
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
fn lower_classes_wait_for_higher_ones_in_flight() {
    let rows = "0 1 1 R 100; 0 2 2 R 9000; 0 3 3 R 50; 0 4 1 R 300; 500 5 2 R 100";
    let b = Bench::serial("mq-deadline", 1000)
        .depth(4)
        .prio(2, RT)
        .prio(3, IDLE)
        .hold();
    assert_eq!(b.times(rows), "2@0 5@0.5 1@2 4@2 3@4");
}
#[test]
fn aged_request_of_a_lower_class_is_dispatched() {
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
fn sweep_continues_by_position_since_6_2() {
    let rows = "0 1 1 R 1000; 0 2 1 R 3000; 500 3 1 R 2000; 1500 4 1 R 500";
    assert_eq!(Bench::serial("mq-deadline", 1000).order(rows), "1 3 2 4");
    assert_eq!(
        Bench::serial("mq-deadline-6.1", 1000).order(rows),
        "1 2 3 4"
    );
}
#[test]
fn failed_dispatch_of_a_class_ends_the_batch_of_another() {
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
fn unfinished_write_batch_continues() {
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
