//! The lab: experiments, repetition, judgement and conclusions.
//!
//! [`stats`] is the method: effects as log ratios within blocks, intervals, tests, corrections,
//! verdicts, flags, plans. It does not depend on schedulers or devices. It takes numbers, returns
//! numbers, and says "cannot tell" if the data does not support more.
//!
//! [`experiment`] describes a comparison, [`conduct`] runs it, [`results`] holds and stores the
//! outcome, [`import`] reads results measured elsewhere, and [`analysis`] draws conclusions.
//! [`diff`] compares two results. [`detail`] collects the details of a cell for a report, and
//! [`scenes`] selects windows of events for a replay.
//!
//! [`usual`] lists the defaults. [`arena`] compares a scheduler with all its rivals. [`demo`] shows
//! well-known behaviours of schedulers, with each claim as a check on numbers. [`reproduce`]
//! repeats published comparisons. [`validation`] compares the models with published figures, and
//! [`curves`] measures the curves of a device. [`worlds`] and [`referee`] compare the simulation,
//! and single scheduling decisions, with the running kernel. Nothing here prints.

pub mod analysis;
pub mod arena;
pub mod conduct;
pub mod curves;
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
