//! The tests of this crate, in one binary: it is linked once.

mod btt;
mod collections;
mod common;
mod dialects;
mod event_files;
mod events;
#[path = "suite/fuzz.rs"]
mod fuzz;
mod fuzz_short;
mod parquet;
mod replay;
mod robust;
mod roundtrip;
mod tools;
