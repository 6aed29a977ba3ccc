//! A third world, for tests of scripts. Files are lengths in memory, every call takes a fixed time
//! of a virtual clock, nothing is queued and nothing contends. It logs every call, so that a test
//! can compare a script with the call sequence of its original. It can also inject failures, run
//! out of space, and be stopped.
//!
//! It models no cache, read-ahead, throttling or devices.

mod calls;
mod task;
mod trial;
mod world;

pub use task::TestMachine;
pub use trial::Trial;
pub use world::{Call, Fault, World};
