//! A third world, for tests of scripts: files are lengths in memory, every call takes a fixed time
//! of a virtual clock, nothing is queued and nothing contends. It logs every call, so that a test
//! can hold a script against the call sequence of its original; it can fail a call on purpose,
//! fill its disk, and be stopped.
//!
//! What it leaves out is everything a world is for: cache, read-ahead, throttling, devices.

mod calls;
mod task;
mod trial;
mod world;

pub use task::TestMachine;
pub use trial::Trial;
pub use world::{Call, Fault, World};
