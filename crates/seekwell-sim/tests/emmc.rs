//! Schedulers over the phone's eMMC and its driver.

use seekwell_device::validate::Bench;
use seekwell_sim::validation::emmc::{GROUP, Mixed, NINE, mixed};

fn on(scheduler: &str, options: &str) -> Mixed {
    let bench = Bench::model(&format!("emmc:motog-sandisk8{options}"));
    mixed(&bench, scheduler).unwrap()
}

/// One thread: every scheduler that serves what it has is first come, first served.
#[test]
fn nine_schedulers_hardly_differ_with_one_thread() {
    let rows = GROUP.run().unwrap();
    let spreads: Vec<_> = rows.iter().filter(|r| r.figure.unit == "%").collect();
    assert_eq!(spreads.len(), 4);
    for r in spreads {
        println!("{}: {:.2} %", r.figure.figure, r.model);
        assert!(r.model < 10.0, "{}: {:.2} %", r.figure.figure, r.model);
    }
}

/// A reader beside a flood of writes: under ROW its reads are several times faster, most of all
/// where the card can stop a write for them.
#[test]
fn row_puts_reads_before_writes_and_stops_writes_for_them() {
    let row = on("row", "");
    for other in ["noop", "cfq-3.4"] {
        let o = on(other, "");
        println!("{other}: {o:?}, row: {row:?}");
        assert!(
            row.read_latency.0 * 2 < o.read_latency.0,
            "{other}: {o:?}, row: {row:?}"
        );
        assert!(row.reads > o.reads, "{other}: {o:?}, row: {row:?}");
    }
    let without = on("row", ",hpi=no");
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

/// Every scheduler finishes what it is given on the card's driver, packed or not, on both layers.
#[test]
fn every_scheduler_serves_a_card() {
    for s in seekwell_sched::registry() {
        for options in [
            "",
            ",packing=always",
            ",packing=off,cache=512KiB",
            ",host_wakes=no",
        ] {
            let m = on(s.name, options);
            // No read waits longer than a second: twice the read_expire of deadline, which may let
            // writes go first that long.
            assert!(
                m.reads >= 5 && m.written > 10_000_000,
                "{} {options}: {m:?}",
                s.name
            );
        }
    }
    assert_eq!(NINE.len(), 9);
}
