//! Floor 5: reports for people.
//!
//! Converts the results of the lower floors (cases and their outcomes, result records, registries)
//! to text. This crate runs no scheduler and opens no file. Styles are written as ANSI codes. The
//! owner of the stream removes them if necessary.

pub mod advice;
pub mod arena;
pub mod brief;
pub mod calibrate;
pub mod catalog;
pub mod chart;
pub mod compare;
pub mod defaults;
pub mod demo;
pub mod explain;
mod names;
pub mod page;
pub mod plain;
pub mod plot;
pub mod story;
pub mod style;
pub mod table;
pub mod throttle;
pub mod trace;
pub mod unfinished;
pub mod units;
pub mod validation;
pub mod verdict;
pub mod workload;
