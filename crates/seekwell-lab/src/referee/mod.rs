//! The running kernel as referee: its scheduler and ours given the same requests, the order in which
//! they are issued side by side.
//!
//! A loop device of our own, of depth 4, stands over a served disk that answers one request at a
//! time, slowly. Five far-away reads take the tags and one place more; meanwhile processes of
//! known classes submit a batch, so that all of it waits before the first choice is made. The
//! kernel's tracepoints tell what was inserted and what was issued; ours is replayed with the
//! insertions and completions, never with a choice. Rounds in which the batch came late are made
//! again. Tunables that are times are set out of reach: a busy machine would be in the order.
//!
//! Beside the agreement stand what a FIFO and one-way sweeps would have had, how often the kernel
//! repeats itself, and schedulers of ours with a planted mistake, which must be caught. Left out:
//! timed behaviour (idling, expiry, weight raising, bfq's idle class), several hardware queues, `none`.

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

/// Schedulers that the kernel is held against.
pub const SCHEDULERS: &[&str] = &["mq-deadline", "kyber", "bfq"];
/// How often a round whose batch came late is made again.
const TRIES: u32 = 5;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `seekwell` that serves the disk.
    pub program: PathBuf,
    /// Which of [`SCHEDULERS`].
    pub schedulers: Vec<String>,
    /// Batches of each kind; each is submitted twice.
    pub rounds: u32,
    /// Seed of the batches.
    pub seed: u64,
}

/// What came of it for one scheduler.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The kernel's name.
    pub scheduler: String,
    /// Ours that was held against it.
    pub elevator: String,
    /// By kind of batch.
    pub classes: BTreeMap<String, Class>,
    /// Batches that were submitted twice.
    pub twice: usize,
    /// Of them, those whose order the kernel repeated.
    pub repeated: usize,
    /// Rounds that differ although the kernel repeated itself.
    pub unexplained: usize,
    /// Batches that always came late, and are left out.
    pub left_out: usize,
    /// Planted mistakes.
    pub planted: Vec<Planted>,
}

/// Rounds of one kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Class {
    /// How many.
    pub rounds: usize,
    /// Of them, with the same order from first to last.
    pub identical: usize,
    /// Positions with the same request.
    pub same: usize,
    /// Positions.
    pub positions: usize,
    /// Identical to first in, first out.
    pub fifo: usize,
    /// Identical to one-way sweeps.
    pub clook: usize,
}

/// One of ours with a mistake.
#[derive(Clone, Debug, Serialize)]
pub struct Planted {
    /// Which mistake.
    pub what: String,
    /// Rounds identical nevertheless.
    pub identical: usize,
    /// Of so many that are identical without it.
    pub rounds: usize,
}

impl Report {
    /// Rounds identical, and rounds.
    pub fn identical(&self) -> (usize, usize) {
        let of = |f: fn(&Class) -> usize| self.classes.values().map(f).sum();
        (of(|c| c.identical), of(|c| c.rounds))
    }
    /// Is ours this kernel's scheduler, as far as this tells?
    pub fn agrees(&self) -> bool {
        let (_, rounds) = self.identical();
        rounds > 0 && self.unexplained == 0
    }
}

/// Ours of the kernel's release, if it has one of its own, else the newest.
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

/// A round with a mistake of ours.
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

/// What there is to hear while it is judged.
#[derive(Clone, Copy, Debug)]
pub enum Heard<'a> {
    /// The kernel does not offer this one.
    Skipped(&'a str),
    /// A batch begins: how many are done, of how many, the scheduler, and what
    /// it is like.
    Batch(u32, u32, &'a str, &'a str),
}

/// Holds each scheduler against the running kernel's. `told` hears of each batch; `reports` has
/// those schedulers that are through, also when it fails.
///
/// # Errors
/// What the machine lacks (root, FUSE, loop devices, tracefs), or a signal.
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

/// A round, made again until its batch was in time; `None`: it never was.
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
    // Requests have the same numbers in both.
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
