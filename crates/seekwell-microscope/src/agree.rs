//! Agreement between a run and a recorded run.

use super::{Case, Dispatched, Harness, Outcome, What, run};
use seekwell_core::Instant;
use seekwell_sched::{Layer, find};

/// Agreement of two decision logs.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// Decisions in the recording.
    pub expected: usize,
    /// Decisions of the run.
    pub got: usize,
    /// Positions with the same request at the same time.
    pub same: usize,
    /// Positions with the same request, at any time.
    pub same_request: usize,
    /// Positions before the first difference.
    pub prefix: usize,
    /// Longest common subsequence of requests.
    pub lcs: usize,
    /// Whether all timers expired at the same times; `None` if the recording has no timers.
    pub timers: Option<bool>,
}

impl Agreement {
    /// Whether all decisions and all recorded timers agree.
    pub fn identical(&self) -> bool {
        self.same == self.expected && self.got == self.expected && self.timers != Some(false)
    }
    /// Compares a run with its recording.
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

/// Length of the longest common subsequence of requests; inputs are a few thousand long.
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

/// Sums over several cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cases compared.
    pub cases: usize,
    /// Cases that are identical.
    pub identical: usize,
    /// Decisions recorded.
    pub expected: usize,
    /// Decisions with the same request at the same time at the same position.
    pub same: usize,
    /// Decisions with the same request at the same position.
    pub same_request: usize,
    /// Decisions before the first difference.
    pub prefix: usize,
    /// Lengths of the longest common subsequences.
    pub lcs: usize,
    /// Cases whose timer expiries are recorded.
    pub timed: usize,
    /// Cases with recorded timer expiries that all agree.
    pub timers: usize,
}

impl Tally {
    /// Adds a case.
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

/// Score of a null model for a case: the baseline that an agreement is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// Scheduler and version that ran.
    pub elevator: String,
    /// Its role in the comparison: "a FIFO", "a wrong one".
    pub role: &'static str,
    /// Its agreement with the recording.
    pub agreement: Agreement,
}

/// The null models for `elevator`: a FIFO, and a scheduler of different behaviour. Both come from
/// the same kernel generation where it has them, so that merging is the same.
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

/// Runs the case under the null models of its scheduler and compares each with the recording.
/// Leaves out a model that cannot run the case.
pub fn beside(case: &Case, want: &[Dispatched]) -> Vec<Beside> {
    let timers = case.expected_timers();
    let models = null_models(&case.elevator).into_iter();
    let score = |(elevator, role): (String, &'static str)| {
        let out = run(&case.under(&elevator), false).ok()?;
        let agreement = Agreement::of(want, timers.as_deref(), &out);
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
    /// The same request list under another scheduler with default tunables.
    pub fn under(&self, elevator: &str) -> Case {
        let mut case = self.clone();
        case.elevator = elevator.to_owned();
        if matches!(case.harness().ok(), Some(Harness::Legacy | Harness::Mq)) {
            // The other scheduler may need another layer.
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
