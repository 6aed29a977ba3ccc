//! Simulation in virtual time.
//!
//! This crate combines schedulers, layers and device models in simulated time. The module
//! `notation` parses what users type, and `spec` checks and runs specifications. `replay` replays
//! recorded traces. `procs` runs small processes in a closed loop. `world` runs workload scripts on
//! the modelled kernel. `compare` makes many runs in parallel. Results depend only on the seed, not
//! on the number of threads.

pub mod compare;
pub mod drive;
mod lacks;
pub mod limits;
mod meter;
pub mod notation;
pub mod procs;
pub mod recording;
pub mod replay;
pub mod setup;
pub mod spec;
mod told;
pub mod world;

pub use drive::{Progress, RunError, Source, Submission, drive};
pub use recording::{Recording, Window};
pub use replay::{Fit, ReplayError, ReplayOptions, replay};
pub use setup::{Queue, Setup, SetupError};
pub use told::{Listen, Watch};
