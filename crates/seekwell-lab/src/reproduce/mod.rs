//! Published scheduler comparisons, run again by prediction: five experiments with the machine, the
//! drive and the kernel of their time, the figures that were published, and what ours are worth
//! beside models that know nothing.
//!
//! Experiments and figures are files in `published/`: an experiment file for each publication, one for
//! its quick form, the figures as they were printed, and `tests.csv`, which says for each published
//! test of each system which workload of ours it is, which figure of a run, and whether a constant
//! of the models was fitted to it. No constant depends on a scheduler.
//!
//! [`guard`] asks what is left of a score when constants, labels, causes or the order of runs are others.
//!
//! Left out: the drives' state between published runs, which no publication tells.

mod doing;
mod evidence;
mod figures;
pub mod full;
pub mod guard;
mod ours;
mod own;
mod score;
mod targets;

pub use doing::{Doing, Effect, GROUPS, Judgement, judge};
pub use evidence::Evidence;
pub use figures::{Kind, Pair, Published, PublishedSide};
pub use ours::{Cell, Ours};
pub use own::{Second, Seconds, System, seconds, systems};
pub use score::{Agreement, Level, Skill, agreement, level, skill};
pub use targets::{Target, targets};

use crate::experiment::{Experiment, Faults};
use crate::results::Results;
use seekwell_core::suggest;
use serde::Serialize;
use std::path::Path;

/// A published comparison.
#[derive(Clone, Copy, Debug)]
pub struct Publication {
    /// What it is called here.
    pub name: &'static str,
    /// In a sentence.
    pub title: &'static str,
    /// Standard deviation above which the original called a figure noisy, in its unit.
    pub sd_cutoff: Option<f64>,
    /// Kind of operation of which the original showed every second.
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

/// All of them.
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

/// The word for all of them.
pub const ALL: &str = "all";

/// Those of that name, or all.
///
/// # Errors
/// There is none; says which there are.
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
    Err(format!("{name}: no published comparison; {near}"))
}

impl Publication {
    /// Its experiment file, as it stands in `published/`.
    pub fn text(&self, quick: bool) -> &'static str {
        if quick { self.quick } else { self.experiment }
    }
    /// The experiment.
    ///
    /// # Errors
    /// None, as a test holds: the files are the project's own.
    pub fn experiment(&self, quick: bool) -> Result<Experiment, Faults> {
        Experiment::from_toml(self.text(quick), Path::new("."))
    }
    /// The experiment with so many runs of each, not as many as its file says.
    ///
    /// # Errors
    /// None, as a test holds, up to as many as an experiment may have.
    pub fn runs(&self, quick: bool, repeats: Option<u32>) -> Result<Experiment, Faults> {
        let own = |line: &str| match (repeats, line.starts_with("repeats = ")) {
            (Some(n), true) => format!("repeats = {n}\n"),
            _ => format!("{line}\n"),
        };
        let text: String = self.text(quick).lines().map(own).collect();
        Experiment::from_toml(&text, Path::new("."))
    }
    /// What was published, test by test and system by system, in the order of publication.
    pub fn published(&self) -> Vec<Published> {
        figures::read(self.name, self.figures)
    }
    /// Ours beside it.
    pub fn reproduction(&self, results: &Results, quick: bool) -> Reproduction {
        let published = self.published().into_iter();
        let cells = published.map(|p| ours::beside(p, results, quick));
        self.judged(cells.collect(), quick)
    }
    /// The full form as it was run last, where what is carried is of today's runs.
    pub fn in_full(&self) -> Option<Reproduction> {
        Some(self.judged(full::carried(self)?, false))
    }
    fn judged(&self, cells: Vec<Cell>, quick: bool) -> Reproduction {
        let order = figures::column_orders(&self.published());
        let judgements = judge(&cells, &order, &Evidence::of(self));
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

/// A publication with ours beside.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// Which.
    pub name: &'static str,
    /// In a sentence.
    pub title: &'static str,
    /// Smaller than published, scaled.
    pub quick: bool,
    /// Runs behind a figure of ours, at most.
    pub repeats: usize,
    /// Every published test of every system.
    pub cells: Vec<Cell>,
    /// How near figures are.
    pub level: Vec<Level>,
    /// What the differences that hold are worth, by group of effects and over all.
    pub skill: Vec<Skill>,
    /// Where nothing differed.
    pub agreement: Agreement,
    /// Was it the scheduler's doing?, for each pair that differs at 5 %, uncorrected.
    pub judgements: Vec<Judgement>,
}
