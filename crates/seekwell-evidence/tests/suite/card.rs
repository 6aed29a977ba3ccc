//! Every scheduler with a phone's card.

use seekwell_evidence::validation::Bench;
use seekwell_evidence::validation::emmc::{Mixed, mixed};

/// Returns the results of a reader and a writer on a card under a scheduler.
pub fn run_on_card(scheduler: &str, options: &str) -> Mixed {
    let bench = Bench::model(&format!("emmc:motog-sandisk8{options}"));
    mixed(&bench, scheduler).unwrap()
}

/// Every scheduler completes its requests with the card's driver, packed or not, on both layers.
///
/// Each scheduler declares how many writes may precede a newly arrived read. Three more writes can
/// precede the read. One is on the bus, one is fetched, and one may have been fetched for a packed
/// group that has no space for it (512 KiB fill a group).
///
/// One cycle of the reader takes the time of those writes, its own read and 1 ms of thinking. In
/// the preset a 512 KiB write takes 2.83 + 512 x 0.06 = 33.55 ms. A 4 KiB read whose part of the
/// map is not cached takes at most 0.683 + 4 x 0.0145 + 0.15 = 0.891 ms; noise does not change the
/// mean. In 5 s, eight writes before each read leave 18 reads, 16 leave 9, 17 leave 8, 4 leave 36
/// and three leave 48. A common bound of 15 is impossible: fifo_batch alone limits deadline to 10.
#[test]
fn every_scheduler_serves_reads_on_an_emmc_card() {
    let (write_us, read_us, think_us) = (2_830 + 512 * 60, 891, 1_000);
    for s in crate::registered() {
        let least =
            5_000_000 / (u64::from(s.waiting.writes_before_read) * write_us + read_us + think_us);
        let mut fewest = u64::MAX;
        for options in [
            "",
            ",packing=always",
            ",packing=off,cache=512KiB",
            ",host_wakes=no",
        ] {
            let m = run_on_card(s.name, options);
            assert!(
                m.reads >= least && m.written > 10_000_000,
                "{} {options}: {m:?}, at least {least} reads",
                s.name
            );
            fewest = fewest.min(m.reads);
        }
        println!("{:14} {fewest:5} reads, at least {least}", s.name);
    }
}
