//! The tests of this crate, in one binary: it is linked once.

mod controller;
mod emmc;
mod hdd_laws;
mod hdd_write_laws;
mod presets;
mod properties;
mod register;
mod ssd_closed;
mod ssd_latency_laws;
mod ssd_laws;
mod times;
