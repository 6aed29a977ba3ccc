//! Agreement between the dispatch orders of a scheduler and of the kernel, compared with two null
//! models.

use super::{CLook, Replay, Round, replay};
use crate::CaseError;
use seekwell_sched::kyber::Kyber;
use seekwell_sched::noop::Noop;
use seekwell_sched::{Layer, find};
use std::collections::BTreeMap;
use std::fmt;

/// Comparison of a replay with the recorded round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Number of positions at which both dispatched the same request.
    pub same: usize,
    /// Number of positions: the length of the longer of the two orders.
    pub positions: usize,
    /// First position that differs; `None` if the orders are identical.
    pub first_difference: Option<usize>,
    /// True if the token pools changed to the same sizes in the same order.
    pub pools: bool,
}

impl Verdict {
    /// Returns whether the dispatch orders are identical.
    pub fn identical(&self) -> bool {
        self.first_difference.is_none()
    }
}

/// Compares a replay with the recorded round.
pub fn compare(round: &Round, mine: &Replay) -> Verdict {
    let positions = round.dispatch.len().max(mine.issued.len());
    let equal = |i: &usize| round.dispatch.get(*i) == mine.issued.get(*i);
    let sizes = |p: &[super::PoolChange]| p.iter().map(|c| (c.1, c.2)).collect::<Vec<_>>();
    Verdict {
        same: (0..positions).filter(equal).count(),
        positions,
        first_difference: (0..positions).find(|i| !equal(i)),
        pools: round
            .pools
            .as_deref()
            .is_none_or(|p| sizes(p) == sizes(&mine.pools)),
    }
}

/// Agreement over the rounds of one kind.
#[derive(Clone, Debug, Default)]
pub struct ClassAgreement {
    /// Number of rounds.
    pub rounds: usize,
    /// Number of rounds with identical dispatch order.
    pub identical: usize,
    /// Number of positions with the same request.
    pub same: usize,
    /// Number of positions.
    pub positions: usize,
    /// Number of rounds with identical changes of the token pools.
    pub pools: usize,
    /// Number of rounds that a FIFO dispatches in the recorded order.
    pub fifo: usize,
    /// Number of rounds that C-LOOK dispatches in the recorded order.
    pub clook: usize,
    /// Names of the rounds that differ, and the first position that differs.
    pub differ: Vec<(String, usize)>,
}

/// Agreement by kind of round.
#[derive(Clone, Debug, Default)]
pub struct RoundAgreement(pub BTreeMap<String, ClassAgreement>);

impl RoundAgreement {
    /// Sums the agreement over the kinds whose name `which` accepts.
    pub fn over(&self, which: impl Fn(&str) -> bool) -> ClassAgreement {
        let mut sum = ClassAgreement::default();
        for (_, c) in self.0.iter().filter(|c| which(c.0)) {
            sum.rounds += c.rounds;
            sum.identical += c.identical;
            sum.same += c.same;
            sum.positions += c.positions;
            sum.pools += c.pools;
            sum.fifo += c.fifo;
            sum.clook += c.clook;
            sum.differ.extend(c.differ.iter().cloned());
        }
        sum
    }
}

impl fmt::Display for RoundAgreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<18}{:>9}{:>10}{:>18}{:>7}{:>7}{:>8}",
            "class", "identical", "rounds", "same position", "pools", "FIFO", "C-LOOK"
        )?;
        for (name, c) in &self.0 {
            let same = format!("{}/{}", c.same, c.positions);
            writeln!(
                f,
                "{name:<18}{:>9}{:>10}{same:>18}{:>7}{:>7}{:>8}",
                c.identical, c.rounds, c.pools, c.fifo, c.clook
            )?;
            for (case, at) in &c.differ {
                writeln!(f, "    {case} differs from position {at} on")?;
            }
        }
        Ok(())
    }
}

/// Replays a round with the scheduler in its record. `steps` requests events and states.
pub fn replay_named(round: &Round, steps: bool) -> Result<Replay, CaseError> {
    let unknown = || round.error(format!("no blk-mq scheduler is called {}", round.elevator));
    let (info, version, _) = find(&round.elevator).ok_or_else(unknown)?;
    if info.layer != Layer::Mq {
        return Err(unknown());
    }
    if info.name == "kyber" {
        let per_word = version == "6.1";
        return replay(
            round,
            (false, steps),
            |cx| Box::new(Kyber::new(cx, per_word)),
            |k| k.pool_sizes().to_vec(),
        );
    }
    replay(
        round,
        ((info.hash)(version), steps),
        |cx| (info.make)(cx, version),
        |_| Vec::new(),
    )
}

/// Agreement of the null models with a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NullScores {
    /// A FIFO.
    pub fifo: Verdict,
    /// C-LOOK: one-way sweeps over all waiting requests.
    pub clook: Verdict,
}

/// Replays a round with the null models.
pub fn null_scores(round: &Round) -> Result<NullScores, CaseError> {
    // Null models have no tunables and do not merge requests.
    let bare = Round {
        tunables: Vec::new(),
        nomerges: 2,
        ..round.clone()
    };
    let no = (false, false);
    let fifo = replay(&bare, no, |_| Box::new(Noop::new()), |_| Vec::new())?;
    let clook = replay(&bare, no, |_| Box::new(CLook::default()), |_| Vec::new())?;
    Ok(NullScores {
        fifo: compare(round, &fifo),
        clook: compare(round, &clook),
    })
}

impl RoundAgreement {
    /// Adds the comparison of a round.
    pub fn add(&mut self, round: &Round, verdict: &Verdict, null: &NullScores) {
        let c = self.0.entry(round.workload.clone()).or_default();
        c.rounds += 1;
        c.same += verdict.same;
        c.positions += verdict.positions;
        c.identical += usize::from(verdict.identical());
        c.pools += usize::from(verdict.pools);
        c.fifo += usize::from(null.fifo.identical());
        c.clook += usize::from(null.clook.identical());
        if let Some(at) = verdict.first_difference {
            c.differ.push((round.case.clone(), at));
        }
    }
}

/// Replays rounds, and sums their agreement by kind ([`Round::workload`]).
pub fn agreement(rounds: &[Round]) -> Result<RoundAgreement, CaseError> {
    let mut all = RoundAgreement::default();
    for round in rounds {
        let verdict = compare(round, &replay_named(round, false)?);
        all.add(round, &verdict, &null_scores(round)?);
    }
    Ok(all)
}
