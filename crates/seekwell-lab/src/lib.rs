//! The lab: what is repeated, how runs are judged, and what may be said of them.
//!
//! [`stats`] is the method: effects as log ratios within blocks, intervals, tests, corrections,
//! verdicts, flags, plans. It knows no scheduler and no device; it takes numbers and gives
//! numbers, and says "cannot tell" where the numbers do not carry more.
//!
//! [`experiment`] says what is compared, [`conduct`] carries it out, [`results`] is what it gave and
//! keeps it, [`import`] reads what was measured elsewhere, and [`analysis`] says what may be said;
//! [`diff`] compares two results; [`detail`] gathers what a report shows of a cell when somebody
//! looks closer, [`scenes`] the windows of events for a replay.
//!
//! [`usual`] lists what is run when nothing is asked for. [`arena`] meets a scheduler with all its rivals;
//! [`demo`] shows the behaviours that made schedulers famous, each claim a check on numbers;
//! [`reproduce`] runs published comparisons again;
//! [`validation`] holds the models against published figures, [`curves`] measures what a picture of
//! a device shows, and [`worlds`] and [`referee`] hold the simulation, and single decisions, against
//! the running kernel. Nothing here prints.

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
