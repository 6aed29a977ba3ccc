//! The laboratory: it runs experiments, compares their results and draws conclusions.
//!
//! [`stats`] contains the statistical methods: effects as log ratios within blocks, confidence
//! intervals, tests, corrections for many comparisons, verdicts, signs of noise, and plans. It does
//! not depend on schedulers or devices. It takes numbers and returns numbers. The verdict is
//! "cannot tell" if the data does not support more.
//!
//! [`data`] defines the method, cells and runs of an experiment. [`experiment`] describes a
//! comparison, [`conduct`] runs the experiment, and [`results`] stores the results. [`import`] reads
//! results that were measured elsewhere, and [`analysis`] draws conclusions. [`diff`] compares two
//! sets of results. [`detail`] collects the details of a cell for a report, and [`scenes`] selects
//! windows of events for a replay.
//!
//! [`predict`] simulates a real disk with its own settings, and scores the predictions.
//!
//! [`trial`] changes the scheduler of a machine at work every period, and measures each period.
//!
//! [`usual`] lists the defaults of commands, and [`defaults`] the schedulers that distributions set.
//! [`arena`] compares a scheduler with all its rivals. The evidence about Seekwell itself is in
//! `seekwell-evidence`. This crate prints nothing.

pub mod analysis;
pub mod arena;
pub mod conduct;
pub mod data;
pub mod defaults;
pub mod detail;
pub mod diff;
pub mod experiment;
pub mod host;
pub mod import;
pub mod kernel;
pub mod predict;
pub mod results;
pub mod scenes;
pub mod stats;
pub mod trial;
pub mod usual;
