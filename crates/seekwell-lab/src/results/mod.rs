//! The stored results of an experiment. A results folder ([`Folder`]) contains the numbers that the
//! statistics need ([`Results`]), and the histograms, series and events of each run.

pub mod columns;
mod entry;
mod environment;
mod error;
pub mod export;
mod folder;
mod histograms;
mod hlog;
mod join;
mod journal;
mod listing;
mod plan;
mod reading;
mod rows;
mod tables;

pub use crate::data::{
    About, Busy, Cell, CellEnd, Ended, Interned, Method, MetricInfo, Moving, Order, Outcome, Pace,
    PaceOf, Paced, Results, Run, RunKey, SECONDS_MIN, StopRule, Summary, Throttled, Treatment,
    Value, WarmUp, settle,
};
pub use entry::{Layer, OperationRow, QUANTILES, Series, SeriesRow};
pub use environment::{Environment, Session};
pub use error::StoreError;
pub use folder::{
    ENVIRONMENT, EXPERIMENT, EXPERIMENT_TEXT, Folder, HISTOGRAMS, JOURNAL, RESULTS, environment,
    read,
};
pub use histograms::{Buckets, histograms};
pub use join::{Joined, join};
pub use listing::{Listed, State, is_folder, list, look};
pub use plan::planned;
pub use reading::{batches, operations, records, series};

/// Version of the format of stored results. It is raised when a field changes its meaning.
pub const RESULTS_VERSION: u32 = 1;
