//! Reproduction of published scheduler comparisons by prediction. There is one experiment per
//! publication, with the machines, the drives and the kernel of that time. The predictions are
//! compared with the published results and with null models.
//!
//! The directory `published/` contains three files per publication: the experiment, its quick form,
//! and the published results as printed. `tests.csv` assigns each published test on each system to
//! one of our workloads and to a result of its runs. It also marks the tests to which a constant of
//! the models was fitted. No constant depends on a scheduler.
//!
//! [`guard`] measures how the scores change with other constants, permuted labels, removed causes
//! or another order of runs.
//!
//! Not modelled: the state of the drives between published runs, because no publication describes
//! it.

mod doing;
mod evidence;
mod figures;
pub mod full;
pub mod guard;
pub mod missed;
mod ours;
mod own;
mod reproduced;
mod score;
mod targets;

pub use doing::{Doing, Effect, GROUPS, Judgement, judge};
pub use evidence::Evidence;
pub use figures::{Kind, Pair, Published, PublishedSide};
pub use ours::{Cell, Ours};
pub use own::{Second, Seconds, System, seconds, systems};
pub use reproduced::{
    Reproduced, asked, asked_in_full, by_second, failures, full_run, joined, keep,
};
pub use score::{Agreement, Level, Skill, agreement, level, skill};
pub use targets::{Target, targets};

use seekwell_core::suggest;
use seekwell_lab::experiment::{Experiment, Faults};
use seekwell_lab::results::Results;
use serde::Serialize;
use std::path::Path;

/// A published comparison.
#[derive(Clone, Copy, Debug)]
pub struct Publication {
    /// Short name.
    pub name: &'static str,
    /// Title in one sentence.
    pub title: &'static str,
    /// Standard deviation above which the publication called a result noisy, in the result's unit.
    pub sd_cutoff: Option<f64>,
    /// Kind of operation for which the publication shows every second.
    pub by_second: Option<&'static str>,
    experiment: &'static str,
    quick: &'static str,
    figures: &'static str,
}

macro_rules! publication {
    ($name:literal, $title:literal) => {
        publication!($name, $title, None, None)
    };
    ($name:literal, $title:literal, $sd_cutoff:expr, $by_second:expr) => {
        Publication {
            name: $name,
            title: $title,
            sd_cutoff: $sd_cutoff,
            by_second: $by_second,
            experiment: include_str!(concat!("../../published/", $name, ".toml")),
            quick: include_str!(concat!("../../published/", $name, "-quick.toml")),
            figures: include_str!(concat!("../../published/", $name, ".csv")),
        }
    };
}

/// All publications.
pub const PUBLICATIONS: &[Publication] = &[
    publication!(
        "phoronix-2012",
        "Three laptops under kernel 3.4: noop, deadline and CFQ (Phoronix Test Suite)"
    ),
    publication!(
        "moto-g-2014",
        "SQLite of AndroBench on a Moto G, nine schedulers",
        Some(2.0),
        None
    ),
    publication!(
        "laptop-ssd-2012",
        "The SSD of a laptop: hdparm -t and seeker"
    ),
    publication!(
        "postgres-2015",
        "A DC S3700 under kernel 4.0: pgbench read-write",
        None,
        Some("transaction")
    ),
    publication!("mysql-2008", "A SATA disk under kernel 2.6: a MySQL scan"),
];

/// The name that selects all publications.
pub const ALL: &str = "all";

/// Returns the publication with this name, or all publications if the name is [`ALL`].
///
/// # Errors
/// There is no such publication; the error lists the names.
pub fn find(name: &str) -> Result<Vec<&'static Publication>, String> {
    let all: Vec<&Publication> = PUBLICATIONS.iter().collect();
    if name == ALL {
        return Ok(all);
    }
    if let Some(one) = all.iter().find(|p| p.name == name) {
        return Ok(vec![*one]);
    }
    let names: Vec<&str> = all.iter().map(|p| p.name).chain([ALL]).collect();
    let near = suggest::did_you_mean(name, names.iter().copied(), &[]);
    let near = near.unwrap_or_else(|| format!("there are {}", names.join(", ")));
    Err(format!("there is no published comparison `{name}`; {near}"))
}

impl Publication {
    /// Returns the text of the experiment file, in its quick or full form.
    pub fn text(&self, quick: bool) -> &'static str {
        if quick { self.quick } else { self.experiment }
    }
    /// Returns the experiment.
    ///
    /// # Errors
    /// The built-in file is invalid, which a test excludes.
    pub fn experiment(&self, quick: bool) -> Result<Experiment, Faults> {
        Experiment::from_toml(self.text(quick), Path::new("."))
    }
    /// Returns the experiment, with `repeats` in place of the number of runs in its file.
    ///
    /// Only if `repeats` exceeds the largest number of runs of an experiment. The file itself is
    /// built in, and a test checks it.
    pub fn runs(&self, quick: bool, repeats: Option<u32>) -> Result<Experiment, Faults> {
        let own = |line: &str| match (repeats, line.starts_with("repeats = ")) {
            (Some(n), true) => format!("repeats = {n}\n"),
            _ => format!("{line}\n"),
        };
        let text: String = self.text(quick).lines().map(own).collect();
        Experiment::from_toml(&text, Path::new("."))
    }
    /// Returns the published results by test and system, in published order.
    pub fn published(&self) -> Vec<Published> {
        figures::read(self.name, self.figures)
    }
    /// Compares our results with the published results.
    pub fn reproduction(&self, results: &Results, quick: bool) -> Reproduction {
        let published = self.published().into_iter();
        let cells = published.map(|p| ours::find_ours(p, results, quick));
        self.judged(cells.collect(), quick)
    }
    /// Returns the stored results of the full form, if they match the current runs.
    pub fn in_full(&self) -> Option<Reproduction> {
        Some(self.judged(full::carried(self)?, false))
    }
    fn judged(&self, cells: Vec<Cell>, quick: bool) -> Reproduction {
        let order = figures::column_orders(&self.published());
        let judgements = judge(&cells, &order, &Evidence::read(self));
        Reproduction {
            name: self.name,
            title: self.title,
            quick,
            repeats: cells.iter().flat_map(Cell::runs).max().unwrap_or(0),
            level: level(&cells),
            skill: skill(&cells),
            agreement: agreement(&cells),
            judgements,
            cells,
        }
    }
}

/// Comparison of one publication with our results.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// Short name.
    pub name: &'static str,
    /// Title in one sentence.
    pub title: &'static str,
    /// True for the quick form, in which the tests are smaller.
    pub quick: bool,
    /// Largest number of our runs per result.
    pub repeats: usize,
    /// One entry per published test and system.
    pub cells: Vec<Cell>,
    /// How close our results are to the published ones, by set of tests.
    pub level: Vec<Level>,
    /// Skill for the significant differences, by group of effects and for all groups.
    pub skill: Vec<Skill>,
    /// Agreement for the pairs without a published difference.
    pub agreement: Agreement,
    /// One judgement per pair with p < 0.05 before correction: did the scheduler cause it?
    pub judgements: Vec<Judgement>,
}
