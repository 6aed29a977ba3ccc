//! Checks that the example of docs/add-a-scheduler.md compiles, behaves as the page says, and is
//! printed there unchanged.

#[path = "add/sweep.rs"]
mod sweep;

use seekwell_core::{Bio, CgroupId, Era, Flags, IoPrio, Op, RqId, TaskId, TickClock};
use seekwell_sched::{Cx, Insert, QueueFacts};

fn order(patience: &str, sectors: &[u64]) -> Vec<u64> {
    let mut cx = Cx::new(QueueFacts::example(Era::Mq), TickClock::new(1000));
    let mut s = (sweep::INFO.make)(&cx, "1");
    s.store(&mut cx, "patience", patience).unwrap();
    let ioc = cx.iocs.create(TaskId(1), IoPrio::NONE, CgroupId::ROOT);
    for (i, sector) in sectors.iter().enumerate() {
        let bio = Bio::new(i as u64, TaskId(1), Op::Read, Flags::empty(), *sector, 8);
        let rq = cx.rqs.alloc(bio, ioc, IoPrio::NONE, Era::Mq, cx.now());
        cx.rqs[rq].state = seekwell_core::State::Sorted;
        cx.nr_sorted += 1;
        s.insert(&mut cx, rq, Insert::Sorted);
        s.check(&cx);
    }
    let mut out = Vec::new();
    while s.dispatch(&mut cx, 0, false) > 0 {
        s.check(&cx);
        let rq: RqId = cx.out.pop().unwrap();
        out.push(cx.rqs[rq].sector.0);
    }
    assert!(!s.has_work(&cx, 0));
    out
}

#[test]
fn example_scheduler_sweeps_without_starvation() {
    let list = [900, 100, 300, 200, 400];
    assert_eq!(order("32", &list), [100, 200, 300, 400, 900], "rule 1");
    assert_eq!(order("2", &list), [100, 200, 900, 300, 400], "rule 2");
    assert_eq!(order("0", &list), list, "first in, first out");
}

#[test]
fn page_quotes_the_example_scheduler() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/add-a-scheduler.md")).unwrap();
    let code = std::fs::read_to_string(root.join("tests/add/sweep.rs")).unwrap();
    let block = page
        .split("```rust\n")
        .nth(1)
        .and_then(|b| b.split("```").next());
    assert!(
        block == Some(&code),
        "copy tests/add/sweep.rs into docs/add-a-scheduler.md"
    );
    for key in ["patience", "per_process", "cases/sweep.jsonl", "make docs"] {
        assert!(page.contains(key), "{key}");
    }
}
