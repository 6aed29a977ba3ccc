//! Adds the events or records of a reader to the sums of the survey, in order of time.

use super::data::{SURVEY_VERSION, Survey};
use super::sums::{Known, Sums};
use super::trips::Trips;
use crate::blk::BlkEvent;
use crate::options::ReadOptions;
use crate::reader::Reader;
use crate::record::Record;
use seekwell_core::{Action, Op};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::path::Path;

/// Maximum number of devices in the survey.
const DEVICES: usize = 20;

/// A future event of a record: (time, rank among equal times, number of the record, kind of event).
type Next = Reverse<(u64, u64, u8)>;

/// Follows a trace and collects the sums.
pub(super) struct Follow {
    by_events: bool,
    from_ns: u64,
    until_ns: u64,
    pids: BTreeSet<u32>,
    trips: Trips,
    sums: Sums,
    /// Future events of records, and the state of each record. Used for traces without events.
    next: BinaryHeap<Next>,
    records: BTreeMap<u64, (Record, Known)>,
    number: u64,
    pending_max: usize,
}

impl Follow {
    pub fn new(options: &ReadOptions, by_events: bool) -> Self {
        let limits = &options.limits;
        Follow {
            by_events,
            from_ns: options.from_ns,
            until_ns: options.until_ns.unwrap_or(u64::MAX),
            pids: options.pids.clone(),
            trips: Trips::new(limits.pending_max, limits.pending_ns),
            sums: Sums::default(),
            next: BinaryHeap::new(),
            records: BTreeMap::new(),
            number: 0,
            pending_max: limits.pending_max,
        }
    }

    /// Processes all events. `base_ns` is the time of the trace's first record on the clock of the
    /// trace.
    pub fn events(&mut self, base_ns: u64, events: &mut Vec<BlkEvent>) {
        for mut e in events.drain(..) {
            let Some(t_ns) = e.t_ns.checked_sub(base_ns) else {
                continue;
            };
            if t_ns < self.from_ns || t_ns >= self.until_ns {
                continue;
            }
            // An event can be farther out of order than the reader can sort.
            e.t_ns = (t_ns - self.from_ns).max(self.sums.last_ns());
            let counts = self.pids.is_empty() || self.pids.contains(&e.task);
            self.trips.event(&e, counts, &mut self.sums);
        }
    }

    /// Processes a record of a trace without events.
    pub fn record(&mut self, r: &Record) {
        if self.by_events {
            return;
        }
        self.step(r.t_ns);
        let e = BlkEvent {
            t_ns: r.t_ns,
            action: Action::Queue,
            op: r.op,
            flags: r.flags,
            sector: r.sector.0,
            sectors: r.sectors.0,
            task: r.task.map_or(u32::MAX, |t| t.0),
            cpu: 0,
            device: r.device,
            error: 0,
            ioprio: None,
            write_bit: false,
        };
        self.number += 1;
        if r.op == Op::Flush {
            self.sums.flush(&e);
            if let Some(done) = r.complete_ns {
                // The end of a flush is not counted in the activity over time.
                self.sums.flushed(e.task, r.t_ns, done.max(r.t_ns));
            }
            return;
        }
        let known = self.sums.queued(&e);
        let first = match (r.insert_ns, r.issue_ns, r.complete_ns) {
            (Some(t), _, _) => Some((t, 0)),
            (_, Some(t), _) => Some((t, 1)),
            (_, _, Some(t)) => Some((t, 2)),
            _ => None,
        };
        match first {
            Some((t_ns, what)) => {
                self.next.push(Reverse((t_ns, self.number, what)));
                self.records.insert(self.number, (*r, known));
            }
            None => {
                self.trips.unfinished += 1;
                self.sums.lost(&known, r.t_ns, false);
            }
        }
    }

    /// Processes the future events before `t_ns`, and further events if there are more than the
    /// memory limit.
    fn step(&mut self, t_ns: u64) {
        while let Some(Reverse((at, number, what))) = self.next.peek().copied() {
            if at > t_ns && self.records.len() <= self.pending_max {
                return;
            }
            self.next.pop();
            let Some((r, known)) = self.records.get_mut(&number) else {
                continue;
            };
            match what {
                0 => self.sums.inserted(known, at),
                1 => {
                    self.sums
                        .issued(known, None, at, r.issue_ns != Some(r.t_ns));
                    let e = BlkEvent {
                        t_ns: at,
                        action: Action::Issue,
                        op: r.op,
                        flags: r.flags,
                        sector: r.sector.0,
                        sectors: r.sectors.0,
                        task: 0,
                        cpu: 0,
                        device: r.device,
                        error: 0,
                        ioprio: None,
                        write_bit: false,
                    };
                    self.sums.request(&e);
                }
                _ => self.sums.completed(known, at, true),
            }
            let then = match what {
                0 => r.issue_ns.map(|t| (t, 1)).or(r.complete_ns.map(|t| (t, 2))),
                1 => r.complete_ns.map(|t| (t, 2)),
                _ => None,
            };
            match then {
                Some((t, what)) => self.next.push(Reverse((t.max(at), number, what))),
                None => {
                    if what < 2 {
                        self.trips.unfinished += 1;
                        self.sums.lost(known, at, true);
                    }
                    self.records.remove(&number);
                }
            }
        }
    }

    /// Returns the finished survey.
    pub fn done(mut self, reader: &Reader) -> Survey {
        self.step(u64::MAX);
        self.trips.end(&mut self.sums);
        let queued = !self.by_events || self.trips.saw_queue();
        let sums = self.sums;
        let (seeks_queued, seeks_issued) = sums.seeks();
        let devices = sums.devices().into_iter().take(DEVICES);
        let devices = devices.map(|(d, n)| (reader.device_name(d), n)).collect();
        let file = Path::new(reader.name()).file_name();
        let mut survey = Survey {
            version: SURVEY_VERSION,
            name: file.map_or_else(
                || reader.name().to_owned(),
                |f| f.to_string_lossy().into_owned(),
            ),
            format: reader.format().name.to_owned(),
            events: self.by_events,
            queued,
            span_ns: sums.last_ns(),
            devices,
            kinds: sums.kinds(),
            phases: sums.phases(queued),
            merges: sums.merges(),
            sizes: sums.sizes(),
            seeks_queued,
            seeks_issued,
            depth: sums.depth(),
            unfinished: self.trips.unfinished,
            orphans: match self.from_ns {
                0 => self.trips.orphans,
                // Bios that were queued before the selected period end inside it, so their
                // completions are not orphans.
                _ => 0,
            },
            warnings: reader.warnings(),
            ..Survey::default()
        };
        (survey.tasks, survey.tasks_more) = sums.tasks.done(reader.tasks());
        survey.course = sums.course.done();
        survey.heat = sums.heat.done();
        survey
    }
}
