//! The parts of a record that a written trace contains, and the losses of a conversion.

use crate::record::Record;
use crate::registry::Format;
use crate::tally::Tally;
use seekwell_core::{CgroupId, Flags, Op};
use std::collections::BTreeMap;

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

/// The losses of a conversion, counted in records.
pub struct Losses {
    to: Format,
    counts: BTreeMap<&'static str, u64>,
    devices: Tally,
}

impl Losses {
    /// Makes a counter without losses.
    pub fn new(to: Format) -> Self {
        Losses {
            to,
            counts: BTreeMap::new(),
            devices: Tally::default(),
        }
    }

    /// Counts the losses of a record.
    pub fn see(&mut self, r: &Record) {
        let k = self.to.keeps.kept(r);
        if k == *r {
            return;
        }
        if !self.to.keeps.devices {
            self.devices.add(r.device);
        }
        let flush = Flags::PREFLUSH;
        let flags_lost = match r.op {
            Op::Flush => (r.flags - flush) != k.flags,
            _ => r.flags != k.flags,
        };
        for (what, lost) in [
            ("pids", k.task != r.task),
            ("CPUs", k.cpu != r.cpu),
            (
                "priorities and cgroups",
                (k.ioprio, k.cgroup) != (r.ioprio, r.cgroup),
            ),
            (
                "insert and issue times",
                (k.insert_ns, k.issue_ns) != (r.insert_ns, r.issue_ns),
            ),
            (
                "completions",
                (k.complete_ns, k.error) != (r.complete_ns, r.error),
            ),
            ("flags", flags_lost),
            ("write-zeroes (converted to writes)", k.op != r.op),
            ("fractions of times", k.t_ns != r.t_ns),
        ] {
            if lost {
                *self.counts.entry(what).or_insert(0) += 1;
            }
        }
    }

    /// Returns a text such as "csv -> vscsi drops pids (400 records), completions (400)", or `None`
    /// if nothing was lost. `names` is true if the trace has process names.
    pub fn line(&self, from: Format, names: bool) -> Option<String> {
        let counts = self.counts.iter();
        let mut words: Vec<String> = counts.map(|(what, n)| format!("{what} ({n})")).collect();
        if self.devices.kinds() > 1 {
            words.push(format!(
                "device numbers of {} devices",
                self.devices.kinds()
            ));
        }
        if names && !self.to.keeps.names {
            words.push("names of processes".to_owned());
        }
        let (from, to) = (from.name, self.to.name);
        (!words.is_empty()).then(|| format!("{from} -> {to} drops {}", words.join(", ")))
    }
}
