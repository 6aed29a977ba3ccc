//! A third kind of machine, for tests of scripts. Files have lengths but no contents. Every call
//! takes a fixed time of a virtual clock, and calls never wait for other calls. The test machine
//! logs every call, so a test can compare a script with the call sequence of the original program.
//! It can also inject failures, have too little space, and be stopped.
//!
//! It models no cache, read-ahead, throttling or devices.

mod calls;
mod task;
mod trial;
mod world;

pub use task::TestMachine;
pub use trial::Trial;
pub use world::{Call, Fault, World};
