//! Schedulers over the phone's eMMC and its driver.

use seekwell_device::validate::Bench;
use seekwell_lab::validation::emmc::{GROUP, Mixed, NINE, mixed};

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
///
/// How many writes may go before a read that has just come each scheduler says itself. Whatever it
/// does, one write is on the bus, one is fetched, and one more may have been fetched for a packed
/// group it did not fit into (512 KiB fill a group): 3.
/// The reader goes round once in the time of those writes, its own read and 1 ms of thinking. By
/// the preset a write of 512 KiB takes 2.83 + 512 x 0.06 = 33.55 ms, a read of 4 KiB, whose part of
/// the map is not at hand, at most 0.683 + 4 x 0.0145 + 0.15 = 0.891 ms, and noise keeps the mean.
/// In 5 s eight writes before each read leave 18 reads, 16 leave 9, 17 leave 8, 4 leave 36 and three
/// leave 48. A common bound of 15 cannot be: fifo_batch alone holds deadline to 10.
#[test]
fn every_scheduler_serves_a_card() {
    let (write_us, read_us, think_us) = (2_830 + 512 * 60, 891, 1_000);
    for s in seekwell_sched::registry() {
        let least =
            5_000_000 / (u64::from(s.waiting.writes_before_read) * write_us + read_us + think_us);
        let mut fewest = u64::MAX;
        for options in [
            "",
            ",packing=always",
            ",packing=off,cache=512KiB",
            ",host_wakes=no",
        ] {
            let m = on(s.name, options);
            assert!(
                m.reads >= least && m.written > 10_000_000,
                "{} {options}: {m:?}, at least {least} reads",
                s.name
            );
            fewest = fewest.min(m.reads);
        }
        println!("{:14} {fewest:5} reads, at least {least}", s.name);
    }
    assert_eq!(NINE.len(), 9);
}
