//! Probe P9, which measures the command queue of the drive: the number of commands that the drive
//! chooses from, and its age limit.
//!
//! The probe keeps more reads outstanding than any drive accepts. Assume that the drive chooses
//! among the oldest W commands. Then the age rank of a completed command is never greater than W,
//! and over many decisions it reaches W. Therefore the largest rank is either the window W or the
//! number of commands that the drive accepts, whichever is smaller.

use crate::probe::{Io, Stop, Timed};
use crate::session::{SMALL, Session};

/// Queue parameters, derived from the order of completions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queue {
    /// Number of commands that the drive chooses from.
    pub window: usize,
    /// Age from which the drive serves the oldest command first, ms, and the number of commands
    /// that were served for this reason. `None` if there is no evidence of a limit.
    pub age: Option<(f64, usize)>,
    /// Throughput with a full window, divided by the throughput with one command at a time.
    pub gain: Option<f64>,
    pub samples: usize,
}

/// Number of outstanding reads, unless the host is known to send fewer.
const OUTSTANDING: usize = 64;

/// Measures the queue. `each_ms` is the mean latency of a read.
pub(crate) fn measure(s: &mut Session<'_>, hit_ms: f64, each_ms: f64) -> Result<Queue, Stop> {
    s.stage("command queue");
    let depth = s.facts().depth.map_or(OUTSTANDING, |d| d as usize).max(1);
    let n = s.within(s.count(900, 500), each_ms, 0.15);
    let far = |s: &mut Session<'_>, n: usize| -> Vec<Io> {
        (0..n).map(|_| Io::read(s.anywhere(), SMALL)).collect()
    };
    let ios = far(s, n);
    let mut q = fit_window(s.run(&ios, depth)?, hit_ms);
    // The second run sends only as many commands as the window holds. Then no command waits in the
    // host, and the age of each command in the drive is known.
    let ios = far(s, n);
    let times = s.run(&ios, q.window)?;
    let full = rate(times);
    q.age = age(times, q.window);
    let ios = far(s, n / 10);
    q.gain = Some(full / rate(s.run(&ios, 1)?)).filter(|g| *g > 1.0);
    Ok(q)
}

fn rate(times: &[Timed]) -> f64 {
    let last = times.iter().map(|t| t.done).max().unwrap_or(0);
    let first = times.first().map_or(0, |t| t.sent);
    times.len() as f64 / last.saturating_sub(first).max(1) as f64
}

/// Derives the window from the times of commands, in the order in which they were sent.
fn fit_window(times: &[Timed], hit_ms: f64) -> Queue {
    let mut ranks: Vec<usize> = vec![];
    for (i, t) in times.iter().enumerate() {
        if t.ms() > hit_ms {
            let older = times[..i].iter().filter(|o| o.done > t.done).count();
            ranks.push(older + 1);
        }
    }
    ranks.sort_unstable_by(|a, b| b.cmp(a));
    // The largest ranks are dropped, because the host may have sent a few commands out of order.
    let spare = (times.len() / 500).max(1);
    let window = ranks.get(spare).copied().unwrap_or(1);
    Queue {
        window,
        age: None,
        gain: None,
        samples: ranks.len(),
    }
}

/// Derives the age limit: the largest age at which the drive served another command before the
/// oldest command.
fn age(times: &[Timed], window: usize) -> Option<(f64, usize)> {
    if window < 2 {
        return None;
    }
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|i| times[*i].done);
    let mut gone = vec![false; times.len()];
    let mut oldest = 0;
    let (mut passed, mut taken) = (vec![], vec![]);
    let mut before = times[0].sent;
    for i in order {
        while oldest < times.len() && gone[oldest] {
            oldest += 1;
        }
        // The drive made its decision when the previous command completed.
        let age = before.saturating_sub(times[oldest].sent) as f64 / 1e6;
        if i == oldest {
            taken.push(age);
        } else {
            passed.push(age);
        }
        gone[i] = true;
        before = times[i].done;
    }
    let limit = passed.iter().copied().fold(0.0f64, f64::max);
    let forced = taken.iter().filter(|a| **a > limit * 0.999).count();
    (forced >= 8).then_some((limit, forced))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifo_queue_has_a_fitted_window_of_one() {
        let t: Vec<Timed> = (0..600)
            .map(|i| Timed {
                sent: 1,
                done: 10_000_000 * (i + 1),
            })
            .collect();
        assert_eq!(fit_window(&t, 0.1).window, 1);
    }

    #[test]
    fn swapped_pairs_have_a_fitted_window_of_two() {
        let t: Vec<Timed> = (0..600u64)
            .map(|i| Timed {
                sent: 1,
                done: 10_000_000 * ((i ^ 1) + 1),
            })
            .collect();
        assert_eq!(fit_window(&t, 0.1).window, 2);
    }
}
