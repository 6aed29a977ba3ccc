//! The parts of a record that a written trace contains.

use crate::record::Record;
use seekwell_core::{CgroupId, Flags, Op};

/// The parts of a record that remain after writing and reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keeps {
    /// Resolution of times: all times are multiples of this number of ns.
    pub time_ns: u64,
    /// Flags of operations.
    pub flags: Flags,
    /// Process ids.
    pub tasks: bool,
    /// CPU numbers.
    pub cpus: bool,
    /// Priorities and cgroups.
    pub priorities: bool,
    /// Device numbers.
    pub devices: bool,
    /// Times of insertion and issue.
    pub stages: bool,
    /// Times of completion, and errors.
    pub completions: bool,
    /// True if write-zeroes remains different from write.
    pub write_zeroes: bool,
    /// Names of processes.
    pub names: bool,
}

impl Keeps {
    /// Everything except process names.
    pub const ALL: Keeps = Keeps {
        time_ns: 1,
        flags: Flags::all(),
        tasks: true,
        cpus: true,
        priorities: true,
        devices: true,
        stages: true,
        completions: true,
        write_zeroes: true,
        names: false,
    };
    /// Operation, position and length, with times in steps of 1 us.
    pub const NONE: Keeps = Keeps {
        time_ns: 1_000,
        flags: Flags::empty(),
        tasks: false,
        cpus: false,
        priorities: false,
        devices: false,
        stages: false,
        completions: false,
        write_zeroes: false,
        names: false,
    };
    /// The information in events of the block layer.
    pub const EVENTS: Keeps = Keeps {
        flags: Flags::SYNC
            .union(Flags::META)
            .union(Flags::RAHEAD)
            .union(Flags::PREFLUSH)
            .union(Flags::FUA),
        priorities: false,
        write_zeroes: false,
        names: true,
        ..Keeps::ALL
    };

    /// Returns the record as it is after writing and reading.
    pub fn kept(&self, r: &Record) -> Record {
        let mut k = *r;
        k.t_ns -= r.t_ns % self.time_ns;
        k.flags &= self.flags;
        if !self.write_zeroes && r.op == Op::WriteZeroes {
            k.op = Op::Write;
        }
        if r.op == Op::Flush {
            // The operation already indicates the flush.
            k.flags -= Flags::PREFLUSH;
        }
        if !self.tasks {
            k.task = None;
        }
        if !self.cpus {
            k.cpu = None;
        }
        if !self.priorities {
            k.ioprio = None;
            k.cgroup = CgroupId::ROOT;
        }
        if !self.devices {
            k.device = 0;
        }
        if !self.stages {
            k.insert_ns = None;
            k.issue_ns = None;
        }
        if !self.completions {
            k.complete_ns = None;
            k.error = 0;
        }
        k
    }
}
