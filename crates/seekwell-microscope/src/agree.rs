//! Agreement between the dispatch decisions of a run and of a recorded run.

use super::{Case, Dispatched, Harness, Outcome, What, run};
use seekwell_core::Instant;
use seekwell_sched::{Layer, find};

/// Agreement between two sequences of dispatch decisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// Number of decisions in the recording.
    pub expected: usize,
    /// Number of decisions of the run.
    pub got: usize,
    /// Number of positions with the same request at the same time.
    pub same: usize,
    /// Number of positions with the same request, at any time.
    pub same_request: usize,
    /// Number of positions before the first difference.
    pub prefix: usize,
    /// Length of the longest common subsequence of requests.
    pub lcs: usize,
    /// True if all timers expired at the same times; `None` if the recording has no timers.
    pub timers: Option<bool>,
}

impl Agreement {
    /// Returns whether all decisions and all recorded timers agree.
    pub fn identical(&self) -> bool {
        self.same == self.expected && self.got == self.expected && self.timers != Some(false)
    }
    /// Compares the outcome of a run with the recorded decisions and timers.
    pub fn compare(want: &[Dispatched], timers: Option<&[Instant]>, run: &Outcome) -> Self {
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

/// Returns the length of the longest common subsequence. The time is quadratic in the length, which
/// is a few thousand requests.
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

/// Sums of agreements over several cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of compared cases.
    pub cases: usize,
    /// Number of identical cases.
    pub identical: usize,
    /// Number of recorded decisions.
    pub expected: usize,
    /// Number of decisions with the same request at the same position and time.
    pub same: usize,
    /// Number of decisions with the same request at the same position.
    pub same_request: usize,
    /// Number of decisions before the first difference.
    pub prefix: usize,
    /// Sum of the lengths of the longest common subsequences.
    pub lcs: usize,
    /// Number of cases with recorded timer expiries.
    pub timed: usize,
    /// Number of cases in which all recorded timer expiries agree.
    pub timers: usize,
}

impl Tally {
    /// Adds the agreement of a case.
    pub fn add(&mut self, a: &Agreement) {
        self.cases += 1;
        self.identical += usize::from(a.identical());
        self.expected += a.expected;
        self.same += a.same;
        self.same_request += a.same_request;
        self.prefix += a.prefix;
        self.lcs += a.lcs;
        self.timed += usize::from(a.timers.is_some());
        self.timers += usize::from(a.timers == Some(true));
    }
}

/// Agreement of a null model with a recording: the baseline for the agreement of a scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// Name and version of the scheduler that serves as null model.
    pub elevator: String,
    /// Kind of null model: "a FIFO" or "a wrong one".
    pub role: &'static str,
    /// Agreement of the null model with the recording.
    pub agreement: Agreement,
}

/// Returns the null models for a scheduler: a FIFO, and a scheduler with different rules. If
/// possible, both have the kernel version of `elevator`, so that requests are merged in the same
/// way.
pub fn null_models(elevator: &str) -> Vec<String> {
    let Some((info, _, era)) = find(elevator) else {
        return Vec::new();
    };
    let of_era = |name: &str| match find(&format!("{name}-{}", era.name())) {
        Some(_) => format!("{name}-{}", era.name()),
        None => name.to_owned(),
    };
    match (info.layer, info.name) {
        (Layer::Legacy, "deadline") => vec![of_era("noop"), of_era("vr")],
        (Layer::Legacy, _) => vec![of_era("noop"), of_era("deadline")],
        (Layer::Mq, "mq-deadline") => vec![of_era("none"), of_era("kyber")],
        (Layer::Mq, _) => vec![of_era("none"), of_era("mq-deadline")],
    }
}

/// Runs a case under the null models of its scheduler, and compares each with the recording. Omits
/// null models that cannot run the case.
pub fn compare_null_models(case: &Case, want: &[Dispatched]) -> Vec<Beside> {
    let timers = case.expected_timers();
    let models = null_models(&case.elevator).into_iter();
    let score = |(elevator, role): (String, &'static str)| {
        let out = run(&case.under(&elevator), false).ok()?;
        let agreement = Agreement::compare(want, timers.as_deref(), &out);
        Some(Beside {
            elevator,
            role,
            agreement,
        })
    };
    models
        .zip(["a FIFO", "a wrong one"])
        .filter_map(score)
        .collect()
}

impl Case {
    /// Returns the same case under another scheduler with default tunables.
    pub fn under(&self, elevator: &str) -> Case {
        let mut case = self.clone();
        case.elevator = elevator.to_owned();
        if matches!(case.harness().ok(), Some(Harness::Legacy | Harness::Mq)) {
            // The other scheduler may belong to another layer.
            case.harness = None;
        }
        case.tunables.clear();
        case.written.clear();
        let inputs = self.inputs().unwrap_or_default();
        let writes = |i: usize| matches!(inputs.get(i).map(|x| &x.what), Some(What::Tunable(..)));
        let mut i = 0;
        case.input.retain(|_| {
            i += 1;
            !writes(i - 1)
        });
        case
    }
}
