//! How far a run agrees with a recorded one.

use super::{Dispatched, Outcome};
use seekwell_core::Instant;

/// Agreement of two decision logs.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// Decisions in the recording.
    pub expected: usize,
    /// Decisions of the run.
    pub got: usize,
    /// Positions with the same request at the same time.
    pub same: usize,
    /// Positions with the same request, whatever the time.
    pub same_request: usize,
    /// Positions before the first difference.
    pub prefix: usize,
    /// Longest common subsequence of requests.
    pub lcs: usize,
    /// All timer expiries at the same times; `None` if the recording has none to compare.
    pub timers: Option<bool>,
}

impl Agreement {
    /// Wholly the same?
    pub fn identical(&self) -> bool {
        self.same == self.expected && self.got == self.expected && self.timers != Some(false)
    }
    /// Compares.
    pub fn of(want: &[Dispatched], timers: Option<&[Instant]>, run: &Outcome) -> Self {
        let got = &run.dispatch;
        let pairs = || want.iter().zip(got);
        Agreement {
            expected: want.len(),
            got: got.len(),
            same: pairs().filter(|(a, b)| a == b).count(),
            same_request: pairs().filter(|(a, b)| a.1 == b.1).count(),
            prefix: pairs().take_while(|(a, b)| a == b).count(),
            lcs: lcs(want, got),
            timers: timers.map(|t| t == run.timers),
        }
    }
}

/// Length of the longest common subsequence of requests, by rows (inputs are a few thousand long).
fn lcs(a: &[Dispatched], b: &[Dispatched]) -> usize {
    let mut row = vec![0usize; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (j, y) in b.iter().enumerate() {
            let up = row[j + 1];
            row[j + 1] = if x.1 == y.1 {
                diagonal + 1
            } else {
                up.max(row[j])
            };
            diagonal = up;
        }
    }
    row[b.len()]
}
