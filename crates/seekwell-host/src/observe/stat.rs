//! The kernel's counters of a block device (`/sys/block/*/stat`, Documentation/block/stat.rst), and
//! of the processors (`/proc/stat`).

use super::Interval;
use crate::block::Tree;
use std::fs::read_to_string;
use std::path::Path;

const MS: u64 = 1_000_000;
/// Length of a clock tick of `/proc/stat`, ns. USER_HZ is 100 on all architectures of interest.
const TICK_NS: u64 = 10_000_000;

/// The counters of a device. They are 0 if the file cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStat {
    counters: [u64; 11],
    /// Reads and writes in the driver (`/sys/block/*/inflight`).
    in_flight: [u64; 2],
}

/// Parses the first numbers of a file. Missing numbers are 0.
fn numbers<const N: usize>(text: &str) -> [u64; N] {
    let mut all = [0; N];
    for (to, word) in all.iter_mut().zip(text.split_whitespace()) {
        *to = word.parse().unwrap_or(0);
    }
    all
}

impl DeviceStat {
    /// Reads the files in the directory of a device.
    pub fn read(dir: &Path) -> DeviceStat {
        let text = |file: &str| read_to_string(dir.join(file)).unwrap_or_default();
        DeviceStat::parse(&text("stat"), &text("inflight"))
    }

    fn parse(stat: &str, in_flight: &str) -> DeviceStat {
        DeviceStat {
            counters: numbers(stat),
            in_flight: numbers(in_flight),
        }
    }

    /// Adds the differences from an earlier reading to an interval.
    pub fn add_since(&self, earlier: &DeviceStat, to: &mut Interval) {
        let d = |i: usize| self.counters[i].saturating_sub(earlier.counters[i]);
        for (side, first, waiting) in [
            (&mut to.read, 0, self.in_flight[0]),
            (&mut to.write, 4, self.in_flight[1]),
        ] {
            side.in_flight += waiting;
            side.ios += d(first);
            side.bytes += d(first + 2) * 512;
            side.wait_ns += d(first + 3) * MS;
        }
        to.waiting += self.counters[8];
        to.busy_ns += d(9) * MS;
        to.queue_ns += d(10) * MS;
    }
}

/// Returns the time that all processors spent in the kernel, ns.
pub fn kernel_cpu_ns(tree: &Tree) -> u64 {
    let text = read_to_string(tree.at("/proc/stat")).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .map(|w| w.parse().unwrap_or(0))
        .collect();
    // user nice system idle iowait irq softirq
    let at = |i: usize| ticks.get(i).copied().unwrap_or(0);
    (at(2) + at(5) + at(6)) * TICK_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_counters_give_rates_and_waits_of_an_interval() {
        let before = DeviceStat::parse("10 1 80 5 20 2 160 7 0 30 40 0 0 0 0 0 0\n", "");
        let after = "13 1 104 17 20 2 160 7 2 35 52 0 0 0 0 0 0\n";
        let after = DeviceStat::parse(after, "       0        2\n");
        let mut i = Interval::default();
        after.add_since(&before, &mut i);
        assert_eq!(
            (i.read.ios, i.read.bytes, i.read.wait_ns),
            (3, 24 * 512, 12 * MS)
        );
        assert_eq!((i.write.ios, i.write.bytes), (0, 0));
        assert_eq!((i.read.in_flight, i.write.in_flight), (0, 2));
        assert_eq!((i.waiting, i.busy_ns, i.queue_ns), (2, 5 * MS, 12 * MS));
        assert_eq!(DeviceStat::parse("odd", ""), DeviceStat::default());
    }

    #[test]
    fn kernel_time_excludes_user_and_idle_time() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("proc")).expect("made");
        std::fs::write(dir.path().join("proc/stat"), "cpu  9 9 3 9 9 2 1 9\n").expect("written");
        assert_eq!(kernel_cpu_ns(&Tree::below(dir.path())), 6 * TICK_NS);
    }
}
