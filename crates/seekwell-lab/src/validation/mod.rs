//! Every table of published figures there is, and their measurement.
//!
//! Tables of single devices are declared beside the models; those that take a queue or an array
//! by the crate that has it.

pub mod emmc;

pub mod backlog;
pub mod clook;
pub mod raid;

use seekwell_device::validate::{Group, Measured, Row};
use seekwell_sim::drive::Progress;

/// One line a crate that declares tables.
static TABLES: &[&[&Group]] = &[seekwell_device::validate::GROUPS, OWN];

/// What is measured through a whole queue.
static OWN: &[&Group] = &[&emmc::GROUP, &raid::GROUP];

/// The tables of all crates.
pub fn groups() -> impl Iterator<Item = &'static Group> {
    TABLES.iter().flat_map(|t| t.iter().copied())
}

/// Runs every measurement, and tells how many are done. Stopped by `progress`, it gives the rows
/// measured until then.
pub fn run(progress: Progress<'_>) -> Measured<Vec<(&'static Group, Vec<Row>)>> {
    let all = groups().map(|g| g.figures.len() as u64).sum();
    let mut done = 0;
    let mut tables = Vec::new();
    for g in groups() {
        let mut rows = Vec::new();
        for f in g.figures {
            if !progress(done, all) {
                break;
            }
            rows.push(f.run()?);
            done += 1;
        }
        if !rows.is_empty() {
            tables.push((g, rows));
        }
    }
    progress(done, all);
    Ok(tables)
}
