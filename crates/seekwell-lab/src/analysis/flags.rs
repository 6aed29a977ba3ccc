//! Signs of noise in a cell. They are shown next to the verdicts and never remove data.

use super::CellAnalysis;
use crate::data::{Results, Run};
use crate::stats::{self, Followed};
use seekwell_core::result::Starved;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, DiscreteCDF};

/// A sign of noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "flag", rename_all = "snake_case")]
pub enum Flag {
    /// The runs have a coefficient of variation above 5 %.
    Spread {
        /// The treatment.
        treatment: usize,
        /// Standard deviation divided by the mean.
        cv: f64,
    },
    /// Some runs are far from the others.
    Outlier {
        /// The treatment.
        treatment: usize,
        /// The blocks of the outliers.
        blocks: Vec<usize>,
    },
    /// The runs fall into two groups.
    TwoModes {
        /// The treatment.
        treatment: usize,
        /// Relative distance between the groups.
        gap: f64,
        /// Fraction of the runs that are in the smaller group.
        share: f64,
    },
    /// The values drift from block to block.
    Trend {
        /// Relative change per block.
        slope: f64,
        /// p value of the Mann-Kendall test.
        p: f64,
    },
    /// The value of a run depends on the run before it.
    CarryOver {
        /// p value of the F test.
        p: f64,
    },
    /// The mean and the typical run disagree, because outliers drive the mean.
    TailDecides {
        /// The treatment that is compared with the reference.
        treatment: usize,
    },
    /// The ratio of the arithmetic means differs from the reported ratio.
    MeansDiffer {
        /// The treatment that is compared with the reference.
        treatment: usize,
        /// Ratio of the arithmetic means.
        ratio: f64,
    },
    /// The steps of the metric are coarser than the spread of the runs.
    Step {
        /// The treatment that is compared with the reference.
        treatment: usize,
        /// Half-width added to the interval.
        added: f64,
    },
    /// Half of each run was left out as warm-up. It is possible that the runs never reached a
    /// steady state.
    NotReached {
        /// Length of the part that was left out, in s.
        seconds: u32,
    },
    /// The host was busy with other work.
    HostBusy {
        /// The treatment whose runs were affected.
        treatment: usize,
        /// Number of affected runs.
        runs: usize,
        /// Largest fraction of CPU time that other work took during a run.
        most: f64,
    },
    /// The values were still changing when the runs ended.
    Moving {
        /// The treatment.
        treatment: usize,
        /// Relative difference between the last third and the middle third of a run.
        change: f64,
    },
    /// A value is based on too few operations to be reliable.
    FewOperations {
        /// The treatment.
        treatment: usize,
        /// Number of operations in a run.
        n: u64,
    },
    /// Runs reached their limit before their work was finished.
    AtLimit {
        /// The treatment.
        treatment: usize,
        /// Number of runs that reached the limit.
        runs: usize,
        /// Number of all runs of the treatment.
        of: usize,
        /// The work takes longer than this time, in s.
        than_s: f64,
    },
    /// Some tasks received almost no service while similar tasks continued.
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
        /// Number of failed runs.
        failed: usize,
        /// Number of all runs of the treatment.
        of: usize,
    },
}

/// Runs with a larger coefficient of variation are flagged.
const CV: f64 = 0.05;
/// Fewest operations for which a mean or a rate is reported. The mean of ten operations has a
/// standard error of about a third.
pub const FEWEST: u64 = 10;

/// Finds the signs of noise in a cell that already has verdicts.
pub(super) fn find(cell: &mut CellAnalysis, results: &Results) {
    let margin = results.about.method.margin;
    // Starvation is always reported.
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
    // In virtual time a block is a seed, and no run follows another run. So the values cannot drift,
    // and no run can affect the next, unless the drive keeps its state between runs.
    let index = results.cells.iter().position(|c| c.name == cell.name);
    let virtual_time = index.is_some_and(|i| results.cells[i].virtual_time());
    if results.about.paired && (!virtual_time || results.about.method.carried) {
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
        run.is_some_and(|r| matches!(r.outcome, crate::data::Outcome::Failed(_)))
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
        // Probability of this many failures or more, if each block in which exactly one treatment
        // failed were a fair coin flip.
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
