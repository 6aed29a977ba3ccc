//! Every table of published figures there is, and their measurement.
//!
//! Tables of single devices are declared beside the models; those that take a queue or an array
//! by the crate that has it.

pub mod emmc;

pub mod backlog;
pub mod clook;
pub mod raid;

use seekwell_device::validate::{Group, Measured, Row};

/// One line a crate that declares tables.
static TABLES: &[&[&Group]] = &[seekwell_device::validate::GROUPS, OWN];

/// What is measured through a whole queue.
static OWN: &[&Group] = &[&emmc::GROUP, &raid::GROUP];

/// The tables of all crates.
pub fn groups() -> impl Iterator<Item = &'static Group> {
    TABLES.iter().flat_map(|t| t.iter().copied())
}

/// Runs every measurement.
pub fn run() -> Measured<Vec<(&'static Group, Vec<Row>)>> {
    groups().map(|g| Ok((g, g.run()?))).collect()
}
