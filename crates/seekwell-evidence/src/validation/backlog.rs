//! The gain from sorting requests above a striped array, as a function of the backlog.
//!
//! With N requests outstanding and a device that accepts D commands, a scheduler can sort only if N
//! is larger than D. Here one process keeps N random 4 KiB reads outstanding on a RAID 0 that accepts D
//! commands. The measurement compares noop with an ideal elevator that sorts by the array's
//! addresses.

use super::clook::Clook;
use super::figure::{Measured, SEED};
use seekwell_block::{HostDriver, LegacyOptions, LegacyQueue};
use seekwell_core::result::Record;
use seekwell_core::{BioSink, Device, Era, Instant, Sector, TickClock};
use seekwell_sched::noop::Noop;
use seekwell_sched::{Cx, QueueFacts, Scheduler};
use seekwell_sim::drive::drive;
use seekwell_sim::procs::{Pattern, Process, Processes};

/// The parameters of one measurement.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    /// Number of disks.
    pub disks: u32,
    /// Number of requests outstanding.
    pub outstanding: u32,
    /// Number of commands that the array accepts.
    pub depth: u32,
    /// Number of commands that each disk accepts; 1 without command queueing.
    pub ncq: u32,
}

impl Cell {
    /// Returns the array as a device specification. A single disk is an array with one member.
    pub fn device(&self) -> String {
        let disk = format!("hdd:hitachi-7k500,depth={},age_limit=0", self.ncq);
        format!(
            "controller:level=raid0,members={},of=({disk}),depth={},disk_depth={},firmware=0,\
             link=1000000,write_policy=write-through,cache=0bytes",
            self.disks, self.depth, self.ncq
        )
    }
}

/// The scheduler above the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// noop: no sorting.
    Noop,
    /// The ideal elevator [`Clook`].
    Clook,
    /// deadline of Linux 4.0 with its defaults: batches of 16 requests, reads expire after 0.5 s.
    Deadline,
}

/// Runs `n` random reads on the array and returns their record.
pub fn run(
    cell: &Cell,
    policy: Policy,
    device: Box<dyn Device + Send>,
    n: u64,
) -> Measured<Record> {
    let f = device.facts();
    let facts = QueueFacts {
        rotational: true,
        depth: f.depth,
        // Large enough that every outstanding request is inside the scheduler.
        nr_requests: 4096,
        ..QueueFacts::example(Era::K4_0)
    };
    let end = Sector(f.capacity.0 / 8 * 8);
    let make = |cx: &Cx| -> Box<dyn Scheduler> {
        match policy {
            Policy::Noop => Box::new(Noop::new()),
            Policy::Clook => Box::new(Clook::default()),
            Policy::Deadline => (seekwell_sched::deadline::INFO.make)(cx, "4.0"),
        }
    };
    let host = HostDriver::Simple { depth: f.depth };
    let opts = LegacyOptions::default();
    let mut queue = LegacyQueue::new(facts, TickClock::new(1000), opts, host, device, make);
    debug_assert!(queue.capacity() >= end);
    let reader = Process {
        pattern: Pattern::Random(Sector(0), end),
        sectors: 8,
        depth: cell.outstanding,
        stop: Instant::FAR,
        limit: n,
        ..Process::reader(1, 0)
    };
    let mut record = Record::default();
    let mut source = Processes::new(vec![reader], SEED);
    drive(&mut queue, &mut source, &mut record, &mut |_, _| true)?;
    Ok(record)
}

const fn cell(disks: u32, outstanding: u32, depth: u32, ncq: u32) -> Cell {
    Cell {
        disks,
        outstanding,
        depth,
        ncq,
    }
}

/// Parameters, and the gain from sorting that another implementation of this measurement gave.
pub static CELLS: &[(Cell, f64)] = &[
    (cell(1, 32, 1, 1), 1.74),
    (cell(1, 32, 31, 31), 1.00),
    (cell(1, 128, 31, 31), 1.21),
    (cell(1, 512, 31, 31), 1.47),
    (cell(4, 32, 4, 1), 1.41),
    (cell(4, 32, 31, 31), 1.00),
    (cell(4, 128, 31, 31), 1.21),
    (cell(4, 128, 128, 31), 1.00),
    (cell(4, 512, 31, 31), 1.57),
    (cell(4, 512, 128, 31), 1.22),
    (cell(4, 512, 1024, 31), 1.00),
    (cell(8, 128, 8, 1), 1.62),
    (cell(8, 128, 128, 31), 1.00),
    (cell(8, 512, 31, 31), 1.59),
    (cell(8, 512, 1024, 31), 1.00),
];
