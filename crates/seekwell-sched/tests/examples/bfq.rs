//! BFQ, in-tree and v7.

use super::*;

fn plain(elevator: &'static str, service_us: u64) -> Bench {
    Bench::serial(elevator, service_us).set("low_latency", "0")
}

#[test]
fn idling_and_preemption_without_benefit_match_the_kernel() {
    let rows = "0 1 1 R 1000000+512; 0 11 2 R 9000000+512; 0 12 2 R 9001024+512; \
                @1+3000 2 1 R 1001024+512; @2+9000 3 1 R 1002048+512";
    let got = plain("bfq", 2000).taught(10_000_000).hold().times(rows);
    assert!(got.starts_with("1@0 2@5 T@15 11@15 12@17"), "{got}");
    assert!(got.contains("3@27"), "{got}");
}
/// Levels 0 and 6 have the weights 80 and 20, and the queues get shares in this proportion.
#[test]
fn service_is_shared_by_priority_level() {
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
/// If the device idled for a queue in vain, the queue's next budget is smaller by an eighth of the
/// maximum: 10922 - 2048 = 8874 sectors, which is 8 requests of 1024. The budget of a new queue is
/// 10 requests.
#[test]
fn budget_shrinks_after_idling_without_a_request() {
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
    // An exhausted budget grows fourfold, up to the maximum of 16384.
    assert_eq!(charged(3).as_deref(), Some("16384"), "{expired:?}");
}
/// After three slots with idling in vain, the budget is 10922 - 3 x 2048 = 4778 sectors, which is 4
/// requests. An exhausted budget grows fourfold, up to the maximum.
#[test]
fn small_budget_grows_fourfold_when_exhausted() {
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
/// Tests the budget of a queue after 0 to 7 slots with idling in vain. The budget is measured as
/// the number of requests of 128 sectors in the queue's next slot.
#[test]
fn budget_shrinks_to_its_minimum_by_repeated_idling() {
    let first_slot = |idled: u64| {
        let one = |i: u64| format!("{} {} 1 R {}+128;", i * 100_000, i + 1, 1_000_000 + 128 * i);
        let mut rows: String = (0..idled).map(one).collect();
        for (first, task, sector) in [(101, 1, 50_000_000), (301, 2, 900_000_000)] {
            let burst = many(idled * 100_000, first, 100, task, "R", sector, 128);
            rows += &burst.replace(';', "+128;");
        }
        let ran = plain("bfq", 100).taught(10_000_000).run(&rows);
        let vain = ran.reasons.iter().filter(|r| r.2.contains("TOO_IDLE"));
        assert!(vain.count() as u64 >= idled, "{:?}", ran.reasons);
        let order: Vec<_> = ran.dispatched.iter().map(|d| d.1).collect();
        let burst = order.iter().skip_while(|id| **id < 101);
        burst.take_while(|id| **id < 301).count()
    };
    // The budget shrinks by 4 x 512 each time. A budget of 5 x 512 or less becomes 512.
    for (idled, sectors) in [10_922, 8_874, 6_826, 4_778, 2_730, 682, 512, 512]
        .iter()
        .enumerate()
    {
        assert_eq!(first_slot(idled as u64), sectors / 128, "{idled} times");
    }
}
/// A queue that returns within three slice_idle of its last completion continues with the rest of
/// its budget, 10922 - 3072 sectors. A queue that returns later starts a new slot with 8874
/// sectors, because the device idled for it in vain.
#[test]
fn queue_that_returns_in_time_keeps_the_rest_of_its_budget() {
    let slot = |after_us: u64| {
        let mut rows = many(0, 1, 3, 1, "R", 1_000_000, 1024);
        for i in 0..20 {
            rows += &format!("@3+{after_us} {} 1 R {};", 101 + i, 50_000_000 + 1024 * i);
        }
        rows += &many(8_000, 201, 20, 2, "R", 900_000_000, 1024);
        let b = plain("bfq", 1000).taught(10_000_000);
        let ran = b.run(&rows.replace(';', "+1024;"));
        let own = |r: &&(u64, &str, String)| r.1 == "expired" && r.2.starts_with("process 1 ");
        let ends: Vec<_> = ran
            .reasons
            .iter()
            .filter(own)
            .map(|r| r.2.as_str())
            .collect();
        assert!(
            ends[0].contains("TOO_IDLE") && ends[0].ends_with("charged 3072"),
            "{ends:?}"
        );
        ends[1].to_owned()
    };
    assert_eq!(slot(24_000), "process 1 expires: EXHAUSTED, charged 7168");
    assert_eq!(slot(24_001), "process 1 expires: EXHAUSTED, charged 8192");
}
#[test]
fn new_queue_is_raised_and_preempts() {
    let rows = many(0, 1, 14, 1, "R", 1_000_000, 1024).replace(';', "+1024;")
        + "5000 21 2 R 50000000; 5000 22 2 R 60000000";
    let b = Bench::serial("bfq", 2000).prio(1, IoPrio::be(5)).hold();
    let got = b.times(&rows);
    assert!(
        got.starts_with("1@0 2@2 3@4 21@6 22@8 T@30 4@30 5@32"),
        "{got}"
    );
}
/// Writing 0 to `low_latency` ends the raising of a queue that waits (it idles 8 ms). The queue in
/// service stays raised and keeps its longer idle time: 20 ms, in v7 three times 8 ms.
#[test]
fn disabling_low_latency_keeps_the_queue_in_service_raised() {
    let rows = "0 1 1 R 1000000; 100 3 3 R 90000000; 500 2 2 R 50000000";
    let off = |elevator| {
        let b = Bench::serial(elevator, 2000).taught(10_000_000);
        let b = b.prio(3, IoPrio::be(5));
        b.write(1000, "low_latency", "0").times(rows)
    };
    assert_eq!(off("bfq"), "1@0 T@22 2@22 T@32 3@32 T@42");
    assert_eq!(off("bfq-v7r8"), "1@0 T@26 2@26 T@36 3@36 T@46");
}
/// An idle queue that was forgotten is on no list either. It stays raised, as on Linux 6.18: there
/// a process read one block before the write. After the write it had 929 reads, and its rival had
/// 2.
#[test]
fn disabling_low_latency_keeps_an_idle_forgotten_queue_raised() {
    let rows = "0 1 1 R 1000000; 40000 2 1 R 1000008";
    let off = |elevator| Bench::serial(elevator, 2000).write(30_000, "low_latency", "0");
    assert_eq!(off("bfq").times(rows), "1@0 T@22 2@40 T@62");
    assert_eq!(off("bfq-v7r8").times(rows), "1@0 T@26 2@40 T@66");
}
#[test]
fn real_time_queue_preempts() {
    let rows = many(0, 1, 4, 1, "R", 1_000_000, 512).replace(';', "+512;") + "1500 9 2 R 90000000";
    let got = plain("bfq", 1000).prio(2, RT).times(&rows);
    assert!(got.starts_with("1@0 2@1 9@2 T@11 3@11 4@12"), "{got}");
}
#[test]
fn idle_class_is_served_every_200_ms() {
    let rows = many(0, 1, 9, 1, "R", 1_000_000, 512) + &many(0, 21, 3, 2, "R", 90_000_000, 1024);
    let rows = rows.replace(';', "+512;");
    let got = plain("bfq", 50_000).prio(2, IDLE).order(&rows);
    assert_eq!(got, "1 2 3 4 5 6 21 7 8 9 22 23");
}
/// 120000 sectors are about 117 requests of 1024. The count of a queue that is raised again starts
/// at zero.
#[test]
fn interactive_raising_ends_after_a_number_of_sectors() {
    let big = |at, id, n, sector| many(at, id, n, 1, "R", sector, 1024).replace(';', "+1024;");
    let mut rows = big(0, 1001, 80, 1_000_000);
    // A request every second keeps the queue from being idle for long, until its raising ends.
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
fn v7_holds_async_requests_back_while_sync_requests_are_in_flight() {
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
fn v7_exhausted_budgets_grow_fourfold() {
    let rows = (many(0, 1, 12, 1, "R", 1_000_000, 1024)
        + &many(0, 21, 12, 2, "R", 90_000_000, 1024))
        .replace(';', "+1024;");
    let b = plain("bfq-v7r8", 2000).flash().hz(100).hold();
    let got = runs(&b.order(&rows), |id| id / 20);
    assert_eq!(got, "0:10 1:10 0:2 1:2");
}
/// After three slots with idling in vain, the budget is 10922 - 3 x 2048 = 4778 sectors, which is 4
/// requests. An exhausted budget grows fourfold, up to the maximum of 16384. With a factor of two,
/// the next slot would have 9 requests.
#[test]
fn v7_small_budget_grows_fourfold_when_exhausted() {
    let mut rows = String::new();
    for i in 0..3 {
        let (at, from) = (i * 200_000, 1_000_000 + 4096 * i);
        rows += &chain(at, 3 * i + 1, 3, 1, from, 1024, 0);
    }
    for (first, task, sector) in [(100, 1, 50_000_000), (200, 2, 900_000_000)] {
        let burst = many(600_000, first, 40, task, "R", sector, 1024);
        rows += &burst.replace(';', "+1024;");
    }
    let ran = plain("bfq-v7r8", 1000).run(&rows);
    let vain = ran.reasons.iter().filter(|r| r.2.contains("TOO_IDLE"));
    assert!(vain.count() >= 3, "{:?}", ran.reasons);
    let order: Vec<_> = ran.dispatched.iter().filter(|d| d.1 >= 100).collect();
    let order: Vec<_> = order.iter().map(|d| d.1.to_string()).collect();
    let got = runs(&order.join(" "), |id| id / 100);
    assert!(got.starts_with("1:4 2:10 1:16 2:16 1:16"), "{got}");
}
