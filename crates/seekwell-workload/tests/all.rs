//! The tests of this crate, in one binary: it is linked once.

// The paths of add/append_log.rs are written for a module of the crate.
use add_a_workload::testing;
use seekwell_workload::{fail, machine, note, params, row};

mod add_a_workload;
mod every;
mod fio_options;
mod outside;
