//! The losses of a conversion from one format to another.

use crate::info::Format;
use crate::record::Record;
use crate::tally::Tally;
use seekwell_core::{Flags, Op};
use std::collections::BTreeMap;

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
