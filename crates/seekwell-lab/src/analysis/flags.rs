//! Signs of noise, shown next to a cell's verdicts. They never remove any data.

use super::CellAnalysis;
use crate::results::{Results, Run};
use crate::stats::{self, Followed};
use seekwell_core::result::Starved;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, DiscreteCDF};

/// A sign of noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "flag", rename_all = "snake_case")]
pub enum Flag {
    /// Runs have a coefficient of variation above 5 %.
    Spread {
        /// The treatment.
        treatment: usize,
        /// Standard deviation divided by the mean.
        cv: f64,
    },
    /// Runs far from the others.
    Outlier {
        /// The treatment.
        treatment: usize,
        /// The blocks of the outliers.
        blocks: Vec<usize>,
    },
    /// Runs fall into two groups.
    TwoModes {
        /// The treatment.
        treatment: usize,
        /// Relative distance between the groups.
        gap: f64,
        /// Share of the smaller group.
        share: f64,
    },
    /// Values drift over the blocks.
    Trend {
        /// Relative change per block.
        slope: f64,
        /// p value of the Mann-Kendall test.
        p: f64,
    },
    /// A run depends on the one before it.
    CarryOver {
        /// p value of the F test.
        p: f64,
    },
    /// Mean and typical run disagree: outliers drive the mean.
    TailDecides {
        /// The treatment that is compared with the reference.
        treatment: usize,
    },
    /// The ratio of the arithmetic means differs from the ratio that is reported.
    MeansDiffer {
        /// The treatment that is compared with the reference.
        treatment: usize,
        /// Ratio of the arithmetic means.
        ratio: f64,
    },
    /// The metric's steps are coarser than its spread.
    Step {
        /// The treatment that is compared with the reference.
        treatment: usize,
        /// Half-width added to the interval.
        added: f64,
    },
    /// Half of each run was left out as warm-up; the runs may never have been steady.
    NotReached {
        /// Seconds left out.
        seconds: u32,
    },
    /// The host was busy with other work.
    HostBusy {
        /// The treatment whose runs were affected.
        treatment: usize,
        /// Number of affected runs.
        runs: usize,
        /// Largest share of processor time that other work took in a run.
        most: f64,
    },
    /// Values still changed when runs ended.
    Moving {
        /// The treatment.
        treatment: usize,
        /// Relative difference between the last third and the middle third of a run.
        change: f64,
    },
    /// There are fewer operations than a reliable value needs.
    FewOperations {
        /// The treatment.
        treatment: usize,
        /// Operations in a run.
        n: u64,
    },
    /// Runs reached their limit before their work was done.
    AtLimit {
        /// The treatment.
        treatment: usize,
        /// Runs that reached the limit.
        runs: usize,
        /// All runs of the treatment.
        of: usize,
        /// The work takes longer than this, in s.
        than_s: f64,
    },
    /// Tasks got next to nothing while similar tasks continued.
    Starved {
        /// The treatment.
        treatment: usize,
        /// Number of runs with starvation.
        runs: usize,
        /// The first starved task.
        first: Starved,
    },
    /// The treatment fails more often than the reference, or in more than a tenth of the blocks.
    Fails {
        /// The treatment.
        treatment: usize,
        /// Failed runs.
        failed: usize,
        /// All runs of the treatment.
        of: usize,
    },
}

/// Smallest coefficient of variation that is flagged.
const CV: f64 = 0.05;
/// Fewest operations for a mean or a rate. The mean of ten is accurate to about a third.
pub const FEWEST: u64 = 10;

/// Finds the flags of a judged cell.
pub(super) fn find(cell: &mut CellAnalysis, results: &Results) {
    let margin = results.about.method.margin;
    // Starvation is always shown.
    let mut flags = starvation(cell, results);
    let columns: Vec<Vec<Option<f64>>> = cell.sides.iter().map(|s| s.values.clone()).collect();
    let outliers = stats::outliers(&columns, margin);
    for (side, blocks) in cell.sides.iter().zip(outliers.flagged) {
        let treatment = side.treatment;
        if let (Some(sd), Some(mean)) = (side.sd, side.mean)
            && mean > 0.0
            && sd / mean > CV
        {
            let cv = stats::stored(sd / mean);
            flags.push(Flag::Spread { treatment, cv });
        }
        if !blocks.is_empty() {
            flags.push(Flag::Outlier { treatment, blocks });
        }
        let have: Vec<f64> = side.values.iter().flatten().copied().collect();
        let modes = stats::two_modes(&have, margin);
        if let (true, Some(gap), Some(share)) = (modes.flagged, modes.gap, modes.share) {
            let gap = stats::stored(libm::expm1(gap));
            flags.push(Flag::TwoModes {
                treatment,
                gap,
                share,
            });
        }
        if let Some(n) = side.operations.filter(|n| *n < FEWEST) {
            flags.push(Flag::FewOperations { treatment, n });
        }
    }
    for c in cell.comparisons.iter().filter(|c| c.at_limit.is_none()) {
        let treatment = c.one;
        if c.tail_decides {
            flags.push(Flag::TailDecides { treatment });
        }
        let apart = c
            .ratio
            .zip(c.ratio_of_means)
            .map(|(g, a)| libm::log(a / g).abs());
        if let (Some(apart), Some(ratio)) = (apart, c.ratio_of_means)
            && apart > libm::log1p(margin) / 2.0
        {
            flags.push(Flag::MeansDiffer { treatment, ratio });
        }
        if c.step_added > 0.0 {
            let added = c.step_added;
            flags.push(Flag::Step { treatment, added });
        }
    }
    if let Some(warm) = &cell.warm_up {
        if warm.not_reached {
            let seconds = warm.seconds;
            flags.push(Flag::NotReached { seconds });
        }
        flags.extend(warm.moving.iter().map(|m| Flag::Moving {
            treatment: m.treatment,
            change: m.change,
        }));
    }
    let of = results.cells.iter().find(|c| c.name == cell.name);
    flags.extend(
        of.into_iter()
            .flat_map(|c| &c.busy)
            .map(|b| Flag::HostBusy {
                treatment: b.treatment,
                runs: b.runs,
                most: b.most,
            }),
    );
    failures(cell, results, &mut flags);
    // In a simulation a block is a seed, and runs do not follow each other. So nothing can drift or
    // be carried over, unless the drive itself is carried over.
    let index = results.cells.iter().position(|c| c.name == cell.name);
    let simulated = index.is_some_and(|i| results.cells[i].substrate == "sim");
    if results.about.paired && (!simulated || results.about.method.carried) {
        in_time(cell, results, index.unwrap_or(0), &mut flags);
    }
    cell.flags = flags;
}

fn starvation(cell: &CellAnalysis, results: &Results) -> Vec<Flag> {
    let mut flags = Vec::new();
    let index = results.cells.iter().position(|c| c.name == cell.name);
    for side in &cell.sides {
        let treatment = side.treatment;
        if let Some(c) = side.censored {
            flags.push(Flag::AtLimit {
                treatment,
                runs: c.runs,
                of: c.of,
                than_s: c.than_s,
            });
        }
        let own = |r: &&Run| Some(r.key.cell) == index && r.key.treatment == treatment;
        let own = results.runs.iter().filter(own);
        let mut kinds: Vec<(Starved, usize)> = Vec::new();
        for s in own.flat_map(|r| &r.starved) {
            match kinds.iter_mut().find(|k| k.0.tasks == s.tasks) {
                Some(k) => k.1 += 1,
                None => kinds.push((s.clone(), 1)),
            }
        }
        flags.extend(kinds.into_iter().map(|(first, runs)| Flag::Starved {
            treatment,
            runs,
            first,
        }));
    }
    flags
}

fn failures(cell: &CellAnalysis, results: &Results, flags: &mut Vec<Flag>) {
    let index = results.cells.iter().position(|c| c.name == cell.name);
    let failed = |treatment: usize, block: usize| {
        let of = |r: &&Run| {
            Some(r.key.cell) == index
                && r.key.treatment == treatment
                && r.key.block as usize == block
        };
        let run = results.runs.iter().find(of);
        run.is_some_and(|r| matches!(r.outcome, crate::results::Outcome::Failed(_)))
    };
    for side in cell.sides.iter().filter(|s| s.failed > 0) {
        let (mut own, mut its) = (0_u64, 0_u64);
        for block in 0..cell.blocks {
            match (failed(side.treatment, block), failed(cell.reference, block)) {
                (true, false) => own += 1,
                (false, true) => its += 1,
                _ => {}
            }
        }
        let often = side.failed * 10 > cell.blocks;
        // P(this many or more of the discordant blocks), where each block is a fair coin flip.
        let more = side.treatment != cell.reference && own > 0 && {
            let coin = Binomial::new(0.5, own + its);
            coin.is_ok_and(|b| b.sf(own - 1) < 0.05)
        };
        if often || more {
            flags.push(Flag::Fails {
                treatment: side.treatment,
                failed: side.failed,
                of: cell.blocks,
            });
        }
    }
}

fn in_time(cell: &CellAnalysis, results: &Results, index: usize, flags: &mut Vec<Flag>) {
    let whole = (0..cell.blocks).filter_map(|b| {
        let logs = cell
            .sides
            .iter()
            .map(|s| s.values.get(b).copied().flatten());
        let logs: Option<Vec<f64>> = logs
            .map(|v| v.filter(|v| *v > 0.0).map(libm::log))
            .collect();
        logs.map(|l| libm::exp(stats::mean(&l)))
    });
    let means: Vec<f64> = whole.collect();
    if let Some(t) = stats::trend(&means).filter(|t| t.flagged) {
        let (slope, p) = (stats::stored(libm::expm1(t.slope)), stats::stored(t.p));
        flags.push(Flag::Trend { slope, p });
    }
    let mut runs: Vec<&Run> = results
        .runs
        .iter()
        .filter(|r| r.key.cell == index)
        .collect();
    runs.sort_by_key(|r| (r.key.block, r.place));
    let place = |t: usize| cell.sides.iter().position(|s| s.treatment == t);
    let followed = runs.windows(2).filter_map(|w| {
        let value = w[1].value(&cell.metric.name).filter(|v| *v > 0.0)?;
        Some(Followed {
            block: w[1].key.block as usize,
            treatment: place(w[1].key.treatment)?,
            before: place(w[0].key.treatment)?,
            log: libm::log(value),
        })
    });
    let followed: Vec<Followed> = followed.collect();
    if let Some(c) = stats::carry_over(&followed).filter(|c| c.flagged) {
        flags.push(Flag::CarryOver {
            p: stats::stored(c.p),
        });
    }
}
