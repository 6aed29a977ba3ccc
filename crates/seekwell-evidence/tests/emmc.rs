//! Tests the schedulers with the phone's eMMC and its driver.

use seekwell_evidence::validation::emmc::{GROUP, NINE};
use suite::run_on_card;

#[path = "suite/card.rs"]
mod suite;

/// With one thread, every work-conserving scheduler behaves like a FIFO.
#[test]
fn schedulers_differ_little_with_one_thread() {
    let rows = GROUP.run().unwrap();
    let spreads: Vec<_> = rows.iter().filter(|r| r.figure.unit == "%").collect();
    assert_eq!((spreads.len(), NINE.len()), (4, 9));
    for r in spreads {
        println!("{}: {:.2} %", r.figure.figure, r.model);
        assert!(r.model < 10.0, "{}: {:.2} %", r.figure.figure, r.model);
    }
}

/// A reader competes with a flood of writes. Under ROW, its reads are several times as fast. The
/// gain is largest if the card can interrupt a write for them.
#[test]
fn row_favours_reads_and_stops_writes_for_them() {
    let row = run_on_card("row", "");
    for other in ["noop", "cfq-3.4"] {
        let o = run_on_card(other, "");
        println!("{other}: {o:?}, row: {row:?}");
        assert!(
            row.read_latency.0 * 2 < o.read_latency.0,
            "{other}: {o:?}, row: {row:?}"
        );
        assert!(row.reads > o.reads, "{other}: {o:?}, row: {row:?}");
    }
    let without = run_on_card("row", ",hpi=no");
    println!("without stopping: {without:?}");
    assert!(
        row.read_latency < without.read_latency,
        "{row:?}, without stopping: {without:?}"
    );
    assert!(
        row.written > 0,
        "a reader does not starve the writer: {row:?}"
    );
}
