//! The tests of this crate, in one binary: it is linked once.

mod hdd;
mod ssd;
mod verdicts;
