//! The tests of this crate, in one binary: it is linked once.

mod controller;
mod emmc;
mod laws;
mod presets;
mod properties;
mod register;
mod ssd_laws;
mod times;
