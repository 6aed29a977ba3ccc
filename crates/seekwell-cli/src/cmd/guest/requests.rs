//! Figures of a guest's request log.

use seekwell_core::Op;
use seekwell_guest::{LogEntry, Outcome};

/// Latencies and sizes of one kind of request while the command ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kind {
    /// Latencies in the device, ns, in ascending order.
    pub latencies_ns: Vec<u64>,
    /// Bytes of all requests.
    pub bytes: u64,
}

impl Kind {
    /// Returns the mean latency in ms.
    pub fn mean_ms(&self) -> Option<f64> {
        let n = self.latencies_ns.len();
        let sum: u64 = self.latencies_ns.iter().sum();
        (n > 0).then(|| sum as f64 / n as f64 / 1e6)
    }
    /// Returns the latency in ms that a share `q` of the requests does not exceed (nearest rank).
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        let n = self.latencies_ns.len();
        let rank = ((q * n as f64).ceil() as usize).clamp(1, n.max(1));
        self.latencies_ns.get(rank - 1).map(|ns| *ns as f64 / 1e6)
    }
}

/// The requests of a run, from the start of the command to the end of its file system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// Reads.
    pub reads: Kind,
    /// Writes.
    pub writes: Kind,
    /// Flushes.
    pub flushes: Kind,
}

impl Requests {
    /// Counts the requests of all disks of a run.
    pub fn of_run(o: &Outcome) -> Self {
        let mut all = Requests::default();
        let during = |e: &&LogEntry| (o.started_ns..=o.ended_ns).contains(&e.arrive_ns);
        for e in o.logs.iter().flatten().filter(during) {
            let kind = match e.op {
                Op::Read => &mut all.reads,
                Op::Write => &mut all.writes,
                Op::Flush => &mut all.flushes,
                Op::Discard | Op::WriteZeroes => continue,
            };
            kind.bytes += e.sectors.bytes();
            if let Some(done) = e.complete_ns {
                kind.latencies_ns.push(done - e.arrive_ns);
            }
        }
        for kind in [&mut all.reads, &mut all.writes, &mut all.flushes] {
            kind.latencies_ns.sort_unstable();
        }
        all
    }
}

/// Returns the time from the start of the command to the end of its file system, in seconds.
pub fn seconds(o: &Outcome) -> f64 {
    o.ended_ns.saturating_sub(o.started_ns) as f64 / 1e9
}
