//! Measures which fraction of the processor time during a run was not available to the run. This is
//! time stolen by a hypervisor. If all work of the run is done in this process, the time of other
//! processes is included.
//!
//! A program can start servers that are not children of this process. Their time cannot be told
//! apart from that of unrelated processes, so that only stolen time is measured for such runs.

use std::fs::read_to_string;

/// Clock ticks of all processors since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    all: u64,
    busy: u64,
    steal: u64,
}

/// Parses the first line of `/proc/stat`. Its fields are user, nice, system, idle, iowait, irq,
/// softirq, steal and others.
fn parsed(stat: &str) -> Option<Ticks> {
    let line = stat.lines().find(|l| l.starts_with("cpu "))?;
    let numbers = line.split_whitespace().skip(1).take(8);
    let n: Vec<u64> = numbers.map(|w| w.parse().ok()).collect::<Option<_>>()?;
    let all: u64 = n.iter().sum();
    let (&steal, idle) = (n.get(7)?, n[3] + n[4]);
    Some(Ticks {
        all,
        busy: all - idle - steal,
        steal,
    })
}

/// Parses `/proc/self/stat`. Returns the CPU time in clock ticks of this process and of its
/// terminated children. These are the fields 14 to 17 of proc(5). The fields are counted from the
/// parenthesis that ends the command name, because the name may contain spaces.
fn own(stat: &str) -> Option<u64> {
    let rest = stat.rsplit_once(')')?.1;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let part = fields.get(11..15)?;
    part.iter().map(|w| w.parse::<u64>().ok()).sum()
}

/// The counters of processor time at one instant.
pub(super) struct Load {
    ticks: Option<Ticks>,
    own: Option<u64>,
}

impl Load {
    /// Reads the counters.
    pub fn now() -> Self {
        let read = |file| read_to_string(file).unwrap_or_default();
        Load {
            ticks: parsed(&read("/proc/stat")),
            own: own(&read("/proc/self/stat")),
        }
    }

    /// Returns which fraction (0 to 1) of all processors' time since `self` was not available to
    /// the run. With `alone`, all work of the run is in this process, so that the time of other
    /// processes is included. Without `alone`, only stolen time is included. `None` if the counters
    /// cannot be read.
    pub fn others(&self, alone: bool) -> Option<f64> {
        let now = Load::now();
        share(
            self.ticks?,
            now.ticks?,
            self.own.zip(now.own).filter(|_| alone),
        )
    }
}

fn share(before: Ticks, after: Ticks, own: Option<(u64, u64)>) -> Option<f64> {
    let all = after.all.checked_sub(before.all).filter(|n| *n > 0)?;
    let steal = after.steal.saturating_sub(before.steal);
    let busy = after.busy.saturating_sub(before.busy);
    let others = own.map_or(0, |(from, to)| busy.saturating_sub(to.saturating_sub(from)));
    Some((steal + others).min(all) as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_of_others_excludes_the_runs_own() {
        let before = parsed("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2\n").expect("a line");
        let after = parsed("cpu  300 10 140 1200 100 5 5 40 0 0\n").expect("a line");
        assert_eq!((before.all, before.busy, before.steal), (1_000, 150, 0));
        assert_eq!((after.all, after.busy, after.steal), (1_800, 460, 40));
        // Of 800 ticks, 310 were busy (250 of them in this process) and 40 were stolen.
        assert_eq!(share(before, after, Some((1_000, 1_250))), Some(0.125));
        assert_eq!(
            share(before, after, None),
            Some(0.05),
            "only what was stolen"
        );
        assert_eq!(share(before, before, None), None, "no time has passed");
        let stat = "7 (a) b) S 1 1 1 0 -1 4194560 1 2 3 4 11 22 33 44 20 0 1 0 5 6 7\n";
        assert_eq!(own(stat), Some(11 + 22 + 33 + 44));
        assert_eq!(parsed("cpu  1 2 3\n"), None);
        assert!(Load::now().ticks.is_some() && Load::now().own.is_some());
    }
}
