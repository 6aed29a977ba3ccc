//! Measures the device models and compares them with published results.
//!
//! Some results are measured on a device alone, others through a scheduler or on an array. A new
//! family of devices needs a file here, and an entry in `ALONE` or `QUEUED`.

mod card;
mod cloud;
mod figure;
mod hdd;
mod smr;
mod ssd;

pub mod backlog;
pub mod clook;
pub mod emmc;
pub mod raid;

pub use figure::{Bench, Bound, Figure, Group, Measured, Opened, Relation, Row, SEED, row};

use seekwell_sim::drive::Progress;

/// Families that are measured on a device alone.
pub static ALONE: &[&Group] = &[
    &hdd::GROUP,
    &smr::GROUP,
    &ssd::GROUP,
    &card::GROUP,
    &cloud::GROUP,
];

/// Families that are measured through a scheduler or on an array.
static QUEUED: &[&Group] = &[&emmc::GROUP, &raid::GROUP];

/// Returns all families.
pub fn groups() -> impl Iterator<Item = &'static Group> {
    ALONE.iter().chain(QUEUED).copied()
}

/// Runs all measurements and reports how many are complete. If `progress` requests a stop, returns
/// the rows measured until then.
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
