//! All tables of published figures, and their measurement.
//!
//! Some figures are measured on a device alone, the others through a queue or on an array. To add a
//! family of devices, add a file here and an entry in one of the two lists.

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

/// Tables measured on a device alone.
pub static ALONE: &[&Group] = &[&hdd::GROUP, &ssd::GROUP, &card::GROUP];

/// Tables measured through a complete queue.
static QUEUED: &[&Group] = &[&emmc::GROUP, &raid::GROUP];

/// All tables.
pub fn groups() -> impl Iterator<Item = &'static Group> {
    ALONE.iter().chain(QUEUED).copied()
}

/// Runs every measurement and reports how many are done. If `progress` stops it, it returns the
/// rows measured so far.
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
