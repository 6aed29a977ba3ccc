//! Every scheduler over a phone's card.

use seekwell_lab::validation::Bench;
use seekwell_lab::validation::emmc::{Mixed, mixed};

/// What a reader and a writer of a card get under a scheduler.
pub fn on(scheduler: &str, options: &str) -> Mixed {
    let bench = Bench::model(&format!("emmc:motog-sandisk8{options}"));
    mixed(&bench, scheduler).unwrap()
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
}
