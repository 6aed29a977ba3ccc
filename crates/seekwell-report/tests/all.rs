//! The tests of this crate, in one binary: it is linked once.

mod early_end;
mod several_jobs;
