//! Compares our schedulers with the running kernel: both get the same requests, and the order in
//! which they issue them is compared.
//!
//! A loop device of depth 4, created for the test, stands over a served disk that answers one
//! request at a time, slowly. Five distant reads take all tags and one more place. Meanwhile
//! processes of known classes submit a batch, so the whole batch waits before the first choice. The
//! kernel's tracepoints report insertions and issues. Our scheduler replays the insertions and
//! completions, but none of the choices. Rounds in which the batch came late are repeated. Tunables
//! that are times are set to very large values; otherwise the load of the machine would affect the
//! order.
//!
//! The agreement is shown with three comparisons: the agreement that FIFO and one-way sweeps would
//! reach, how often the kernel repeats itself, and versions of our schedulers with a planted
//! mistake, which must be caught. Not covered: timed behaviour (idling, expiry, weight raising,
//! bfq's idle class), several hardware queues, `none`.

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

/// Schedulers that can be compared with the kernel's.
pub const SCHEDULERS: &[&str] = &["mq-deadline", "kyber", "bfq"];
/// How often a round whose batch came late is repeated.
const TRIES: u32 = 5;

/// Options of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `seekwell` program that serves the disk.
    pub program: PathBuf,
    /// A subset of [`SCHEDULERS`].
    pub schedulers: Vec<String>,
    /// Batches of each kind; each is submitted twice.
    pub rounds: u32,
    /// Seed of the batches.
    pub seed: u64,
}

/// Result for one scheduler.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The kernel's name of the scheduler.
    pub scheduler: String,
    /// Our scheduler that was compared with it.
    pub elevator: String,
    /// Results by kind of batch.
    pub classes: BTreeMap<String, Class>,
    /// Batches that were submitted twice.
    pub twice: usize,
    /// Batches whose order the kernel repeated.
    pub repeated: usize,
    /// Rounds that differ although the kernel repeated itself.
    pub unexplained: usize,
    /// Batches that always came late and are left out.
    pub left_out: usize,
    /// Results for the planted mistakes.
    pub planted: Vec<Planted>,
}

/// Rounds of one kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Class {
    /// Number of rounds.
    pub rounds: usize,
    /// Rounds with an identical order.
    pub identical: usize,
    /// Positions with the same request.
    pub same: usize,
    /// All positions.
    pub positions: usize,
    /// Rounds identical to first in, first out.
    pub fifo: usize,
    /// Rounds identical to one-way sweeps.
    pub clook: usize,
}

/// A version of our scheduler with a planted mistake.
#[derive(Clone, Debug, Serialize)]
pub struct Planted {
    /// The mistake.
    pub what: String,
    /// Rounds that are identical despite the mistake.
    pub identical: usize,
    /// Rounds that are identical without the mistake.
    pub rounds: usize,
}

impl Report {
    /// Number of identical rounds, and of all rounds.
    pub fn identical(&self) -> (usize, usize) {
        let of = |f: fn(&Class) -> usize| self.classes.values().map(f).sum();
        (of(|c| c.identical), of(|c| c.rounds))
    }
    /// Whether our scheduler agrees with this kernel's, as far as the rounds show.
    pub fn agrees(&self) -> bool {
        let (_, rounds) = self.identical();
        rounds > 0 && self.unexplained == 0
    }
}

/// Our version for the kernel's release if there is one, otherwise the newest.
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

/// A planted mistake: its name and the change of the round.
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

/// Mistakes that must be caught.
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

/// Progress reports.
#[derive(Clone, Copy, Debug)]
pub enum Heard<'a> {
    /// The kernel does not offer this scheduler.
    Skipped(&'a str),
    /// A batch begins: batches done, all batches, the scheduler, and the kind of batch.
    Batch(u32, u32, &'a str, &'a str),
}

/// Compares each scheduler with the running kernel's. `told` receives progress. `reports` receives
/// the finished schedulers, even if the comparison fails.
///
/// # Errors
/// The machine lacks a requirement (root, FUSE, loop devices, tracefs), or a signal arrived.
pub fn judge(
    o: &Options,
    told: &mut dyn FnMut(Heard<'_>),
    reports: &mut Vec<Report>,
) -> Result<(), RefereeError> {
    let mut rig = Rig::new(o)?;
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let of = |s: &String| Kind::of(s).len() as u32 * o.rounds;
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
        for kind in Kind::of(s) {
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

/// A round, repeated until its batch was in time; `None` if it never was.
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
    // Request numbers are the same in both rounds.
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
