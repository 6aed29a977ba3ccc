//! Every table of published figures there is, and their measurement.
//!
//! Some are measured on a device alone, the others through a queue or on an array. A family of
//! devices adds its table with a file here and a line in one of the two lists.

mod card;
mod figure;
mod hdd;
mod ssd;

pub mod backlog;
pub mod clook;
pub mod emmc;
pub mod raid;

pub use figure::{Bench, Bound, Figure, Group, Measured, Opened, Relation, Row, SEED, row};

use seekwell_sim::drive::Progress;

/// What is measured on a device alone.
pub static ALONE: &[&Group] = &[&hdd::GROUP, &ssd::GROUP, &card::GROUP];

/// What is measured through a whole queue.
static QUEUED: &[&Group] = &[&emmc::GROUP, &raid::GROUP];

/// All tables.
pub fn groups() -> impl Iterator<Item = &'static Group> {
    ALONE.iter().chain(QUEUED).copied()
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
