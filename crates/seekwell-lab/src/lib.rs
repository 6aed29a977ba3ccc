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
//! [`usual`] lists the defaults. [`arena`] compares a scheduler with all its rivals. [`demo`] shows
//! well-known behaviours of schedulers, and checks each claim with numbers. [`reproduce`] repeats
//! published comparisons. [`validation`] compares the models with published figures, and [`curves`]
//! measures the performance curves of a device. [`worlds`] compares the simulation with the running
//! kernel, and [`referee`] compares single scheduling decisions with those of the kernel. This
//! crate prints nothing.

pub mod analysis;
pub mod arena;
pub mod conduct;
pub mod curves;
pub mod data;
pub mod demo;
pub mod detail;
pub mod diff;
pub mod experiment;
pub mod host;
pub mod import;
pub mod referee;
pub mod reproduce;
pub mod results;
pub mod scenes;
pub mod stats;
pub mod usual;
pub mod validation;
pub mod worlds;
