//! Conversion of events to records. A queue event (or an issue event) begins a record. Later events
//! of the same sectors add their times to the record.
//!
//! A bio can be merged with others, so that one issue and one completion cover several bios. It can
//! be split, so that several completions cover it. It can also complete in parts. Therefore the
//! ranges of incomplete records are stored in order of (device, sector), and each later event is
//! applied to the ranges that it covers. Among ranges with the same start, the oldest is used
//! first. A record is complete when all its sectors are complete.
//!
//! Events that are slightly out of time order are first sorted within a window of
//! [`Limits::reorder_max`] events.
//!
//! If the first [`HEAD_MAX`] events contain no queue event, the trace is treated as a trace without
//! queue events. Issue events then begin the records, and the reader adds a warning.
//!
//! Memory is limited: at most [`Limits::pending_max`] records are incomplete at the same time, for
//! at most [`Limits::pending_ns`] of trace time. When a limit is exceeded, the oldest record is
//! returned without a completion.

use crate::blk::BlkEvent;
use crate::error::Place;
use crate::notes::Notes;
use crate::options::{ReadOptions, Stream};
use crate::record::Record;
use crate::tally::Tally;
use seekwell_core::{Action, CgroupId, Op, Sector, Sectors, TaskId};
use std::collections::{BTreeMap, VecDeque};

/// Note that counts completions that match no incomplete record.
pub const NOTE_ORPHAN: &str =
    "completions without a submission (the trace began under load, or events were lost)";
/// Note that counts records that do not complete within the limits.
pub const NOTE_UNFINISHED: &str = "records without a completion";

/// Note that counts events that follow an event with a later time.
pub const NOTE_SORTED: &str = "events out of time order, sorted";

/// Warning about a trace without queue events, in which issue events begin the records.
pub const NOTE_ISSUE_STREAM: &str = "no queue events (Q, block_bio_queue): records are the requests \
     issued to the driver (D, block_rq_issue), after merging; how long they waited before that is \
     not known";
/// Note that counts queue events after issue events were selected to begin the records.
pub const NOTE_LATE_QUEUE: &str =
    "queue events skipped: the trace began without any, so issue events are the records";

/// Number of events that are searched for a queue event, before issue events are used instead. So
/// many bios can be in flight when the recording of a trace begins.
const HEAD_MAX: usize = 1 << 16;

/// Factor of the window of events for a trace in order of completion.
const LATE_WINDOWS: usize = 32;

/// (device, first sector, id). The value for this key is the end of the range.
type Key = (u32, u64, u64);

/// Maximum number of ranges to which one event is applied. A request of the maximum size has 2,560
/// bios of one sector.
const WALK_MAX: usize = 4096;
/// Maximum number of ranges with the same start that are examined.
const TWINS_MAX: usize = 16;

struct Pending {
    record: Record,
    /// Number of ranges of this record in the index.
    parts: u32,
    /// True if the record is a flush with the write bit. It then waits for a completion with the
    /// write bit.
    write_bit: bool,
    flush: bool,
    done: bool,
    /// True if a requeue removed the record. It is then never returned.
    gone: bool,
}

/// Sorts events by time within a window. With several CPUs, blkparse prints events slightly out of
/// order, and a completion must not precede its submission.
struct Sorter {
    window: VecDeque<BlkEvent>,
    window_max: usize,
    /// True if the trace is not in order of time by design, so sorting needs no note.
    quiet: bool,
}

impl Sorter {
    /// Adds an event. Returns the earliest event when the window is full.
    #[inline]
    fn push(&mut self, e: &BlkEvent, notes: &mut Notes, place: Place) -> Option<BlkEvent> {
        if self.window.back().is_none_or(|last| last.t_ns <= e.t_ns) {
            self.window.push_back(*e);
        } else {
            if !self.quiet {
                notes.count(NOTE_SORTED, place);
            }
            // At equal times, the event that is earlier in the file comes first.
            let at = self.window.partition_point(|w| w.t_ns <= e.t_ns);
            self.window.insert(at, *e);
        }
        if self.window.len() > self.window_max {
            return self.window.pop_front();
        }
        None
    }
}

/// The first events, which are stored until it is known which events begin records.
#[derive(Default)]
struct Head {
    events: Vec<(BlkEvent, Place)>,
    issues: bool,
    /// True if a queue event of any device was found.
    queues: bool,
    /// Devices of the issue events, including devices that the user did not select.
    devices: Tally,
}

/// Converts events to records, in the order of the stream.
pub struct Join {
    stream: Stream,
    /// `None` after it is known whether the trace has queue events.
    head: Option<Head>,
    /// True if issue events replace queue events.
    stands_in: bool,
    pending_max: usize,
    pending_ns: u64,
    waiting: VecDeque<Pending>,
    /// Id of the front of `waiting`.
    front: u64,
    index: BTreeMap<Key, u64>,
    /// Incomplete flushes by id. They have no sectors.
    flushes: BTreeMap<(u32, u64), ()>,
    now_ns: u64,
    saw_completion: bool,
    ended: bool,
    sorter: Sorter,
    /// Events in order of time that the caller has not taken yet. `None` if the caller does not
    /// need events.
    kept: Option<Vec<BlkEvent>>,
}

impl Join {
    /// Makes a converter without events. `by_completion` is true for a trace with one line per
    /// request, in order of completion: the issue of a slow request follows many later events, so
    /// the window is [`LATE_WINDOWS`] times as large.
    pub fn new(options: &ReadOptions, by_completion: bool) -> Self {
        let limits = &options.limits;
        let windows = if by_completion { LATE_WINDOWS } else { 1 };
        Join {
            stream: options.stream,
            head: (options.stream == Stream::Queue).then(Head::default),
            stands_in: false,
            kept: options.keep_events.then(Vec::new),
            pending_max: limits.pending_max.max(1),
            pending_ns: limits.pending_ns,
            waiting: VecDeque::new(),
            front: 0,
            index: BTreeMap::new(),
            flushes: BTreeMap::new(),
            now_ns: 0,
            saw_completion: false,
            ended: false,
            sorter: Sorter {
                window: VecDeque::new(),
                window_max: limits.reorder_max.saturating_mul(windows),
                quiet: by_completion,
            },
        }
    }

    /// Adds an event. The caller must then call [`Join::pop`] until it returns `None`, before it
    /// adds the next event.
    pub fn push(&mut self, e: &BlkEvent, notes: &mut Notes, place: Place) {
        if let Some(head) = &mut self.head {
            head.issues |= e.action == Action::Issue;
            head.events.push((*e, place));
            if e.action == Action::Queue || head.events.len() >= HEAD_MAX {
                self.decide(notes);
            }
            return;
        }
        if self.stands_in && e.action == Action::Queue {
            notes.count(NOTE_LATE_QUEUE, place);
        }
        self.sort(e, notes, place);
    }

    #[inline]
    fn sort(&mut self, e: &BlkEvent, notes: &mut Notes, place: Place) {
        if let Some(e) = self.sorter.push(e, notes, place) {
            self.take(&e, notes, place);
        }
    }

    /// Determines which events begin records, and processes the stored events.
    #[cold]
    fn decide(&mut self, notes: &mut Notes) {
        let Some(head) = self.head.take() else { return };
        let queue = |e: &(BlkEvent, Place)| e.0.action == Action::Queue;
        if head.issues && !head.events.iter().any(queue) {
            self.stream = Stream::Issue;
            self.stands_in = true;
            notes.say(NOTE_ISSUE_STREAM.to_owned());
        }
        if self.stands_in || !head.queues {
            notes.all_devices(&head.devices);
        }
        for (e, place) in &head.events {
            self.sort(e, notes, *place);
        }
    }

    /// Counts the device of an event that begins a record, even if the user did not select this
    /// device.
    #[inline]
    pub fn device(&mut self, e: &BlkEvent, notes: &mut Notes) {
        if self.begins(e.action) {
            notes.device(e.device);
        }
        if let Some(head) = &mut self.head {
            match e.action {
                Action::Queue => head.queues = true,
                Action::Issue => head.devices.add(e.device),
                _ => {}
            }
        }
    }

    /// Returns true if an event with this action begins a record.
    #[inline]
    fn begins(&self, action: Action) -> bool {
        match self.stream {
            Stream::Queue => action == Action::Queue,
            Stream::Issue => action == Action::Issue,
        }
    }

    fn take(&mut self, e: &BlkEvent, notes: &mut Notes, place: Place) {
        self.now_ns = self.now_ns.max(e.t_ns);
        if let Some(kept) = &mut self.kept {
            kept.push(*e);
        }
        match e.action {
            a if self.begins(a) => self.begin(e),
            Action::Complete => self.complete(e, notes, place),
            Action::Requeue if self.stream == Stream::Issue => self.take_back(e),
            Action::Requeue => self.stamp(e, |r, _| r.issue_ns = None),
            Action::Issue => self.stamp(e, |r, t| r.issue_ns = Some(t)),
            Action::Insert | Action::BackMerge | Action::FrontMerge => {
                self.stamp(e, |r, t| r.insert_ns = Some(t));
            }
            _ => {}
        }
    }

    /// Moves the events since the last call to `into`, in order of time.
    pub fn take_events(&mut self, into: &mut Vec<BlkEvent>) {
        if let Some(kept) = &mut self.kept {
            into.append(kept);
        }
    }

    /// Marks the end of the events.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Returns the next record in order, if it is complete or if it will never be complete.
    pub fn pop(&mut self, notes: &mut Notes, place: Place) -> Option<Record> {
        if self.ended {
            self.decide(notes);
        }
        loop {
            let drained = self.ended && self.sorter.window.is_empty();
            let ready = self.waiting.front().is_some_and(|p| {
                let overdue = self.now_ns.saturating_sub(p.record.t_ns) > self.pending_ns;
                p.done || p.gone || overdue || drained || self.waiting.len() > self.pending_max
            });
            if !ready {
                if !self.ended {
                    return None;
                }
                let e = self.sorter.window.pop_front()?;
                self.take(&e, notes, place);
                continue;
            }
            let id = self.front;
            let p = self.waiting.pop_front()?;
            self.front += 1;
            if !p.done {
                self.forget(&p, id);
                if self.saw_completion && !p.gone && p.record.complete_ns.is_none() {
                    notes.count(NOTE_UNFINISHED, place);
                }
            }
            if !p.gone {
                return Some(p.record);
            }
        }
    }

    fn begin(&mut self, e: &BlkEvent) {
        let id = self.front + self.waiting.len() as u64;
        let flush = e.is_flush();
        let mut record = Record {
            flags: e.flags,
            ioprio: e.ioprio,
            task: Some(TaskId(e.task)),
            cpu: u16::try_from(e.cpu).ok(),
            cgroup: CgroupId::ROOT,
            device: e.device,
            sector: Sector(e.sector),
            sectors: Sectors(e.sectors),
            ..Record::new(e.t_ns, e.op, 0, 0)
        };
        if self.stream == Stream::Issue {
            record.issue_ns = Some(e.t_ns);
        }
        let end = e.sector.checked_add(u64::from(e.sectors));
        let mut parts = 0;
        if flush {
            self.flushes.insert((e.device, id), ());
        } else if let Some(end) = end.filter(|&end| end > e.sector) {
            self.index.insert((e.device, e.sector, id), end);
            parts = 1;
        }
        self.waiting.push_back(Pending {
            record,
            parts,
            write_bit: e.write_bit,
            flush,
            // A record without sectors cannot complete. The reader checks such a record.
            done: !flush && parts == 0,
            gone: false,
        });
    }

    fn at(&mut self, id: u64) -> Option<&mut Pending> {
        let i = id.checked_sub(self.front)?;
        self.waiting.get_mut(usize::try_from(i).ok()?)
    }

    /// Removes the ranges of a record that is returned incomplete.
    fn forget(&mut self, p: &Pending, id: u64) {
        let r = &p.record;
        if p.flush {
            self.flushes.remove(&(r.device, id));
            return;
        }
        let from = (r.device, r.sector.0, 0);
        let to = (r.device, r.end().0, 0);
        let keys: Vec<Key> = self
            .index
            .range(from..to)
            .map(|(k, _)| *k)
            .filter(|k| k.2 == id)
            .collect();
        for k in keys {
            self.index.remove(&k);
        }
    }

    /// Returns the first range of the device that starts in `from..to`, with its end. Among ranges
    /// with the same start, returns the oldest range that `wants` accepts, or the oldest range if
    /// `wants` accepts none.
    fn first(
        &self,
        device: u32,
        from: u64,
        to: u64,
        wants: impl Fn(&Record) -> bool,
    ) -> Option<(Key, u64)> {
        if from >= to {
            return None;
        }
        let mut best: Option<(Key, u64)> = None;
        let range = (device, from, 0)..(device, to, 0);
        for (&k, &end) in self.index.range(range).take(TWINS_MAX) {
            if best.is_some_and(|b| b.0.1 != k.1) {
                break;
            }
            let i = usize::try_from(k.2 - self.front).ok()?;
            if self.waiting.get(i).is_some_and(|p| wants(&p.record)) {
                return Some((k, end));
            }
            best = best.or(Some((k, end)));
        }
        best
    }

    /// Sets a time in all records that start inside the range of the event.
    fn stamp(&mut self, e: &BlkEvent, set: impl Fn(&mut Record, u64)) {
        if e.is_flush() {
            self.stamp_flush(e, set);
            return;
        }
        let issue = e.action == Action::Issue;
        let write = e.op.is_write();
        let end = e.sector.saturating_add(u64::from(e.sectors));
        let mut at = e.sector;
        for _ in 0..WALK_MAX {
            let lacks = |r: &Record| {
                let known = if issue { r.issue_ns } else { r.insert_ns };
                r.op.is_write() == write && known.is_none()
            };
            let Some((key, part_end)) = self.first(e.device, at, end, lacks) else {
                return;
            };
            at = key.1 + 1;
            if let Some(p) = self.at(key.2)
                && p.record.op.is_write() == write
            {
                set(&mut p.record, e.t_ns);
                // All bios of a request have its priority: the kernel merges no others.
                p.record.ioprio = e.ioprio.or(p.record.ioprio);
                at = at.max(part_end);
            }
        }
    }

    fn stamp_flush(&mut self, e: &BlkEvent, set: impl Fn(&mut Record, u64)) {
        let ids = (e.device, 0)..(e.device, u64::MAX);
        let found = self.flushes.range(ids).map(|(k, _)| k.1).find(|&id| {
            let p = usize::try_from(id - self.front)
                .ok()
                .and_then(|i| self.waiting.get(i));
            p.is_some_and(|p| match e.action {
                Action::Issue => p.record.issue_ns.is_none(),
                _ => p.record.insert_ns.is_none(),
            })
        });
        if let Some(p) = found.and_then(|id| self.at(id)) {
            set(&mut p.record, e.t_ns);
        }
    }

    fn complete(&mut self, e: &BlkEvent, notes: &mut Notes, place: Place) {
        self.saw_completion = true;
        if e.is_flush() {
            self.complete_flush(e);
            return;
        }
        let write = e.op.is_write();
        let end = e.sector.saturating_add(u64::from(e.sectors));
        let mut at = e.sector;
        let mut any = false;
        self.cut_before(e.device, at);
        for _ in 0..WALK_MAX {
            let same = |r: &Record| r.op.is_write() == write;
            let Some((key, part_end)) = self.first(e.device, at, end, same) else {
                break;
            };
            at = key.1 + 1;
            if !self.at(key.2).is_some_and(|p| same(&p.record)) {
                continue;
            }
            any = true;
            at = at.max(part_end);
            self.index.remove(&key);
            if part_end > end {
                self.index.insert((key.0, end, key.2), part_end);
                break;
            }
            if let Some(p) = self.at(key.2) {
                p.parts -= 1;
                if p.parts == 0 {
                    p.done = true;
                    p.record.complete_ns = Some(e.t_ns);
                }
                if e.error != 0 {
                    p.record.error = e.error;
                }
            }
        }
        if !any && e.sectors > 0 {
            notes.count(NOTE_ORPHAN, place);
        }
    }

    /// Handles a completion that starts inside a stored range, because the block layer split the
    /// bio. Splits the range at this sector, so that its second part can complete separately.
    fn cut_before(&mut self, device: u32, sector: u64) {
        let before = self.index.range(..(device, sector, 0)).next_back();
        let Some((&key, &end)) = before.filter(|(k, end)| k.0 == device && **end > sector) else {
            return;
        };
        self.index.insert(key, sector);
        self.index.insert((device, sector, key.2), end);
        if let Some(p) = self.at(key.2) {
            p.parts += 1;
        }
    }

    /// Completes a flush. A flush request of the kernel's flush machinery (`FN`) ends before the
    /// submitter's flush (`FW`). Its time is stored until the completion of the submitter's flush
    /// replaces it.
    fn complete_flush(&mut self, e: &BlkEvent) {
        let own = e.write_bit || e.op == Op::Write;
        let mut stand_in = None;
        let mut found = None;
        for (&(_, id), ()) in self.flushes.range((e.device, 0)..(e.device, u64::MAX)) {
            let Some(i) = id
                .checked_sub(self.front)
                .and_then(|i| usize::try_from(i).ok())
            else {
                continue;
            };
            let Some(p) = self.waiting.get(i) else {
                continue;
            };
            if p.write_bit == own {
                found = Some(id);
                break;
            }
            if !own && stand_in.is_none() && p.record.complete_ns.is_none() {
                stand_in = Some(id);
            }
        }
        if let Some(id) = found {
            self.flushes.remove(&(e.device, id));
            if let Some(p) = self.at(id) {
                p.done = true;
                p.record.complete_ns = Some(e.t_ns);
                p.record.error = e.error;
            }
        } else if let Some(p) = stand_in.and_then(|id| self.at(id)) {
            p.record.complete_ns = Some(e.t_ns);
        }
    }

    /// Removes the record of a requeued request, if issue events begin records. The driver returned
    /// this request without serving it, and it will be issued again.
    fn take_back(&mut self, e: &BlkEvent) {
        let end = e.sector.saturating_add(u64::from(e.sectors));
        let write = e.op.is_write();
        let same = |r: &Record| r.op.is_write() == write;
        let Some((key, _)) = self.first(e.device, e.sector, end, same) else {
            return;
        };
        if let Some(p) = self.at(key.2)
            && same(&p.record)
        {
            p.gone = true;
            self.index.remove(&key);
        }
    }
}
