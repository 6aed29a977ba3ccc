//! Compares our schedulers with the schedulers of the running kernel: both get the same requests,
//! and their dispatch orders are compared.
//!
//! The test uses a loop device with queue depth 4 on a slow served disk that completes one request
//! at a time. A round has these steps:
//!
//! 1. Five reads at distant sectors occupy the device: four get all tags, and the fifth has left
//!    the scheduler and waits for a tag.
//! 2. Meanwhile, processes with known I/O priorities submit a batch of requests. The complete batch
//!    is in the scheduler before it makes the first dispatch decision.
//! 3. The kernel's tracepoints record the insertions, dispatches and completions.
//! 4. Our scheduler gets the recorded insertions and completions. It makes all dispatch decisions
//!    itself, and its order is compared with the recorded one.
//!
//! If the first completion precedes the end of the batch, the round is repeated. Tunables that are
//! times have very large values, because the load of the machine would otherwise change the order.
//!
//! Three comparisons show what the agreement means: the agreement of FIFO and of one-way sweeps
//! (null models), how often the kernel repeats its own order, and versions of our schedulers with a
//! planted mistake. A planted mistake must cause disagreement. Not tested: behaviour that depends
//! on time (idling, expiry, weight raising, bfq's idle class), several hardware queues, and `none`.

mod rig;
mod rounds;

pub use rig::RefereeError;

use rig::Rig;
use rounds::{Kind, Made};
use seekwell_core::IoPrio;
use seekwell_microscope::rounds::{
    Round, RoundAgreement, What, compare, null_scores, replay_named,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Schedulers that can be compared with the kernel.
pub const SCHEDULERS: &[&str] = &["mq-deadline", "kyber", "bfq"];
/// Largest number of attempts to submit a batch in time.
const TRIES: u32 = 5;

/// Options of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the `seekwell` program, which serves the disk.
    pub program: PathBuf,
    /// The schedulers to compare, a subset of [`SCHEDULERS`].
    pub schedulers: Vec<String>,
    /// Number of batches of each kind. Each batch is submitted twice.
    pub rounds: u32,
    /// Seed of the random batches.
    pub seed: u64,
}

/// Result for one scheduler.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Name of the scheduler in the kernel.
    pub scheduler: String,
    /// Name and version of our scheduler that was compared.
    pub elevator: String,
    /// Results by kind of batch.
    pub classes: BTreeMap<String, Class>,
    /// Number of batches that the kernel received twice in the same insertion order.
    pub twice: usize,
    /// Number of batches that the kernel dispatched twice in the same order.
    pub repeated: usize,
    /// Number of rounds with a different order that the kernel's own variation does not explain.
    pub unexplained: usize,
    /// Number of batches that are left out, because no attempt submitted them in time.
    pub left_out: usize,
    /// One entry per planted mistake.
    pub planted: Vec<Planted>,
}

/// Results of all rounds of one kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Class {
    /// Number of rounds.
    pub rounds: usize,
    /// Number of rounds in which both dispatch orders are identical.
    pub identical: usize,
    /// Number of positions at which both orders have the same request.
    pub same: usize,
    /// Number of positions in all rounds.
    pub positions: usize,
    /// Number of rounds that FIFO dispatches in the kernel's order.
    pub fifo: usize,
    /// Number of rounds that a one-way elevator dispatches in the kernel's order.
    pub clook: usize,
}

/// Result of one planted mistake.
#[derive(Clone, Debug, Serialize)]
pub struct Planted {
    /// Description of the mistake.
    pub what: String,
    /// Number of rounds in which the dispatch order is identical despite the mistake.
    pub identical: usize,
    /// Number of rounds in which the dispatch order is identical without the mistake.
    pub rounds: usize,
}

impl Report {
    /// Returns the number of identical rounds and the number of all rounds.
    pub fn identical(&self) -> (usize, usize) {
        let of = |f: fn(&Class) -> usize| self.classes.values().map(f).sum();
        (of(|c| c.identical), of(|c| c.rounds))
    }
    /// Returns whether there are rounds and none contradicts that both schedulers are equal.
    pub fn agrees(&self) -> bool {
        let (_, rounds) = self.identical();
        rounds > 0 && self.unexplained == 0
    }
}

/// Returns the name of our scheduler's version for the kernel release, or of the newest version.
fn elevator(scheduler: &str, release: &str) -> String {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let version = format!(
        "{scheduler}-{}.{}",
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default()
    );
    match seekwell_sched::find(&version) {
        Some(_) => version,
        None => scheduler.to_owned(),
    }
}

/// Description of a planted mistake, and a function that applies the mistake to a round.
type Mistake = (&'static str, fn(&Round) -> Round);

fn tunable(round: &Round, name: &str, value: &str) -> Round {
    let mut r = round.clone();
    r.tunables.retain(|t| t.0 != name);
    r.tunables.push((name.to_owned(), value.to_owned()));
    r
}

fn reversed(round: &Round) -> Round {
    let mut r = round.clone();
    for e in &mut r.events {
        if let What::Insert(i) = &mut e.what {
            i.prio = IoPrio {
                level: 7 - i.prio.level,
                ..i.prio
            };
        }
    }
    r
}

fn one_context(round: &Round) -> Round {
    let mut r = round.clone();
    for e in &mut r.events {
        if let What::Insert(i) = &mut e.what {
            i.cpu = 0;
        }
    }
    r
}

/// Returns the planted mistakes for a scheduler. Each must cause disagreement.
fn mistakes(scheduler: &str) -> &'static [Mistake] {
    match scheduler {
        "mq-deadline" => &[
            ("fifo_batch 15 in place of 16", |r| {
                tunable(r, "fifo_batch", "15")
            }),
            ("writes_starved 3 in place of 2", |r| {
                tunable(r, "writes_starved", "3")
            }),
        ],
        "bfq" => &[("weights reversed", reversed)],
        "kyber" => &[("one software context for all", one_context)],
        _ => &[],
    }
}

/// Progress of a comparison.
#[derive(Clone, Copy, Debug)]
pub enum Heard<'a> {
    /// The kernel does not offer this scheduler.
    Skipped(&'a str),
    /// A batch begins: number of earlier batches, number of all batches, scheduler, kind of batch.
    Batch(u32, u32, &'a str, &'a str),
}

/// Compares each scheduler with that of the running kernel. `told` receives the progress. Finished
/// schedulers are added to `reports`, even if a later scheduler fails.
///
/// # Errors
/// The machine lacks a requirement (root, FUSE, loop devices, tracefs), or a signal stopped the
/// comparison.
pub fn judge(
    o: &Options,
    told: &mut dyn FnMut(Heard<'_>),
    reports: &mut Vec<Report>,
) -> Result<(), RefereeError> {
    let mut rig = Rig::new(o)?;
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let of = |s: &String| Kind::for_scheduler(s).len() as u32 * o.rounds;
    let all_batches = o.schedulers.iter().map(of).sum();
    let mut begun = 0;
    for s in &o.schedulers {
        if !rig.offers(s)? {
            told(Heard::Skipped(s));
            begun += of(s);
            continue;
        }
        let mut report = Report {
            scheduler: s.clone(),
            elevator: elevator(s, &release),
            ..Report::default()
        };
        let mut all = RoundAgreement::default();
        for kind in Kind::for_scheduler(s) {
            for n in 0..o.rounds {
                told(Heard::Batch(begun, all_batches, s, kind.name()));
                begun += 1;
                let seed = o.seed.wrapping_mul(1000).wrapping_add(u64::from(n));
                let pair = [
                    twice(&mut rig, s, *kind, seed)?,
                    twice(&mut rig, s, *kind, seed)?,
                ];
                count(&mut report, &mut all, *kind, pair)?;
            }
        }
        for (name, c) in all.0 {
            report.classes.insert(
                name,
                Class {
                    rounds: c.rounds,
                    identical: c.identical,
                    same: c.same,
                    positions: c.positions,
                    fifo: c.fifo,
                    clook: c.clook,
                },
            );
        }
        reports.push(report);
    }
    Ok(())
}

/// Returns a round whose batch was submitted in time; `None` if all attempts failed.
fn twice(rig: &mut Rig, s: &str, kind: Kind, seed: u64) -> Result<Option<Made>, RefereeError> {
    for _ in 0..TRIES {
        if let Some(made) = rounds::make(rig, s, kind, seed)? {
            return Ok(Some(made));
        }
    }
    Ok(None)
}

fn count(
    report: &mut Report,
    all: &mut RoundAgreement,
    kind: Kind,
    pair: [Option<Made>; 2],
) -> Result<(), RefereeError> {
    let wrong = |e: seekwell_microscope::CaseError| RefereeError::Input(e.to_string());
    let [Some(first), Some(second)] = pair else {
        report.left_out += 1;
        return Ok(());
    };
    // A request has the same number in both rounds.
    let repeated = first.inserted == second.inserted && first.dispatch == second.dispatch;
    let comparable = first.inserted == second.inserted;
    report.twice += usize::from(comparable);
    report.repeated += usize::from(repeated);
    for made in [&first, &second] {
        let round = made.round(&report.elevator, kind);
        let verdict = compare(&round, &replay_named(&round, false).map_err(wrong)?);
        let null = null_scores(&round).map_err(wrong)?;
        all.add(&round, &verdict, &null);
        if !verdict.identical() {
            report.unexplained += usize::from(repeated || !comparable);
            continue;
        }
        for (what, plant) in mistakes(&report.scheduler) {
            let planted = plant(&round);
            let mine = replay_named(&planted, false).map_err(wrong)?;
            let same = compare(&round, &mine).identical();
            let found = report.planted.iter_mut().find(|p| p.what == *what);
            match found {
                Some(p) => {
                    p.rounds += 1;
                    p.identical += usize::from(same);
                }
                None => report.planted.push(Planted {
                    what: (*what).to_owned(),
                    identical: usize::from(same),
                    rounds: 1,
                }),
            }
        }
    }
    Ok(())
}
