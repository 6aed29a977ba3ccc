//! The virtual clock.
//!
//! Puts schedulers, layers and device models together on simulated time: `spec` turns words into
//! runs, `replay` runs recorded traces, `procs` small closed loops of processes, `world` workload
//! scripts over the modelled kernel, `compare` many runs side by side. Deterministic by seed, on
//! any number of threads.

pub mod compare;
pub mod drive;
pub mod fuzz;
pub mod limits;
mod meter;
pub mod procs;
pub mod recording;
pub mod replay;
pub mod setup;
pub mod spec;
mod told;
mod tree;
pub mod world;

pub use drive::{Progress, RunError, Source, Submission, drive};
pub use recording::{Recording, Window};
pub use replay::{Fit, ReplayError, ReplayOptions, replay};
pub use setup::{Queue, Setup, SetupError};
pub use told::{Listen, Watch};
