//! The tests of this crate, in one binary: it is linked once.

mod cgroups;
mod events;
mod host;
mod runs;
mod scheduler_cost;
mod sequence;
mod wbt;
