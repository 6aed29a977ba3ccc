//! The results of a run for each second. Seconds without a completion are left out.

use serde::{Deserialize, Serialize};

/// Largest number of entries in the series of a run: one day of seconds.
pub const SECONDS_MAX: usize = 86_400;

/// The results of one second of a run in which something completed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Number of whole seconds since the start.
    #[serde(default)]
    pub at_s: u64,
    /// Number of reads completed.
    pub reads: u64,
    /// Number of writes completed.
    pub writes: u64,
    /// Number of bytes completed.
    pub bytes: u64,
    /// Sum of the latencies, ns.
    pub latency_sum_ns: u64,
    /// Largest latency, ns.
    pub latency_max_ns: u64,
}

impl Second {
    /// Returns the entry of this second in a series that is sorted by time, and creates it if
    /// needed. Returns `None` if the series is full.
    pub(crate) fn entry(all: &mut Vec<Second>, at_s: u64) -> Option<&mut Second> {
        // Completions are in the order of time, with few exceptions.
        let i = match all.last() {
            Some(last) if last.at_s < at_s => all.len(),
            Some(last) if last.at_s == at_s => all.len() - 1,
            _ => all.partition_point(|s| s.at_s < at_s),
        };
        if all.get(i).is_none_or(|s| s.at_s != at_s) {
            if all.len() >= SECONDS_MAX {
                return None;
            }
            let fresh = Second {
                at_s,
                ..Second::default()
            };
            all.insert(i, fresh);
        }
        all.get_mut(i)
    }
}

#[cfg(test)]
mod tests {
    use crate::result::Record;
    use crate::time::{Instant, NSEC_PER_SEC};

    #[test]
    fn long_pause_adds_no_entries_to_the_series() {
        let mut r = Record::default();
        let years = 50 * 365 * 86_400 * NSEC_PER_SEC;
        for at in [1_500_000_000, 1_700_000_000, years, 100, years + 1] {
            let (from, to) = (Instant::at_ns(at - 100), Instant::at_ns(at));
            r.count(false, 4096, from, to, true);
        }
        let told: Vec<_> = r.seconds.iter().map(|s| (s.at_s, s.reads)).collect();
        assert_eq!(told, [(0, 1), (1, 2), (years / NSEC_PER_SEC, 2)]);
        assert_eq!(r.seconds[1].latency_sum_ns, 200);
    }
}
