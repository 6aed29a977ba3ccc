//! Replay modes, and the dependencies of the closed loop.
//!
//! The simulator contains the driver that submits. This module provides its information: when a
//! record is due, or what it waits for.

use crate::error::{ErrorKind, Place, TraceError};
use crate::reader::Reader;
use crate::record::Record;
use crate::registry::{Format, Has};
use seekwell_core::TaskId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// A positive rational factor on time: it stretches above 1 and compresses below 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Factor {
    num: NonZeroU32,
    den: NonZeroU32,
}

impl Factor {
    /// `num / den`.
    pub const fn new(num: NonZeroU32, den: NonZeroU32) -> Self {
        Factor { num, den }
    }
    /// The scaled time `t_ns`, rounded down; saturates.
    pub fn apply(self, t_ns: u64) -> u64 {
        let scaled = u128::from(t_ns) * u128::from(self.num.get()) / u128::from(self.den.get());
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
    /// Parses "2", "0.25" or "1/3".
    fn parse(s: &str) -> Option<Factor> {
        let (num, den) = if let Some((num, den)) = s.split_once('/') {
            (num.parse().ok()?, den.parse().ok()?)
        } else if let Some((whole, fraction)) = s.split_once('.') {
            let digits = fraction.len();
            if digits > 9 || !fraction.bytes().all(|c| c.is_ascii_digit()) {
                return None;
            }
            (
                format!("{whole}{fraction}").parse().ok()?,
                10u32.pow(digits as u32),
            )
        } else {
            (s.parse().ok()?, 1)
        };
        Some(Factor::new(NonZeroU32::new(num)?, NonZeroU32::new(den)?))
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.den.get() {
            1 => write!(f, "{}", self.num),
            den => write!(f, "{}/{den}", self.num),
        }
    }
}

/// How the submissions of a replay are timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayMode {
    /// At the recorded times.
    AsTimed,
    /// At the recorded times, multiplied by a factor.
    Scaled(Factor),
    /// In recorded order, with a constant number in flight.
    FixedDepth(NonZeroU32),
    /// Each process waits for the completions that it waited for in the recording, then pauses for
    /// its recorded think time.
    ClosedLoop,
}

impl ReplayMode {
    /// An example of each mode, for help texts.
    pub const EXAMPLES: [(&'static str, ReplayMode); 4] = {
        const fn n(n: u32) -> NonZeroU32 {
            NonZeroU32::new(n).unwrap()
        }
        [
            ("timed", ReplayMode::AsTimed),
            ("scaled:1/2", ReplayMode::Scaled(Factor::new(n(1), n(2)))),
            ("depth:32", ReplayMode::FixedDepth(n(32))),
            ("closed", ReplayMode::ClosedLoop),
        ]
    };

    /// A paragraph about what the mode does, can show and cannot show.
    pub const fn explain(&self) -> &'static str {
        match self {
            ReplayMode::AsTimed => {
                "Each I/O is submitted at its recorded time (open loop). It does not wait for \
                 earlier ones. This shows how a device and scheduler handle exactly this \
                 load. On a device slower than the recorded one the queue grows without bound, and \
                 then the comparison measures queue length, not the scheduler; on a faster one the \
                 pauses stay as long as they were."
            }
            ReplayMode::Scaled(_) => {
                "As timed, but every time is multiplied by a factor first: 1/2 replays in half the \
                 time, 2 in twice the time. Use it to fit a load to a device of another speed, or \
                 to find the load that saturates a scheduler. This is still an open loop: no \
                 process waits, and beyond saturation only queue length is measured."
            }
            ReplayMode::FixedDepth(_) => {
                "The order is kept, the times are dropped: a fixed number of I/Os is in flight, \
                 and each completion submits the next. This measures throughput with this access \
                 pattern and cannot overload anything. Bursts, idle times and the think time of \
                 processes are gone, so schedulers that wait for a process (anticipatory, CFQ, \
                 BFQ) see processes without think time; latency has little meaning."
            }
            ReplayMode::ClosedLoop => {
                "A process submits an I/O after the completion of its own I/O that had completed \
                 last before in the trace, plus the recorded think time. A faster device makes the \
                 processes faster and a slower one delays them, as in reality. This is the mode \
                 for a fair comparison of schedulers. It needs a trace with pids and completions. \
                 Other waits of processes (for locks, each other, or writeback by kernel threads) \
                 are unknown and count as think time."
            }
        }
    }

    /// Whether a trace of this format can be replayed in this mode. The error names what is
    /// missing.
    pub fn check(&self, format: Format, name: &str) -> Result<(), TraceError> {
        if *self != ReplayMode::ClosedLoop {
            return Ok(());
        }
        let c = format.carries;
        let lacks = match (c.pids == Has::No, c.completions == Has::No) {
            (false, false) => return Ok(()),
            (true, true) => "pids and completions",
            (true, false) => "pids",
            (false, true) => "completions",
        };
        Err(cannot_close(
            name,
            &format!("the format {} has no {lacks}", format.name),
        ))
    }

    /// When a record is due, in ns since the start of the replay, in modes that depend on time.
    pub fn due_ns(&self, record: &Record) -> Option<u64> {
        match self {
            ReplayMode::AsTimed => Some(record.t_ns),
            ReplayMode::Scaled(f) => Some(f.apply(record.t_ns)),
            ReplayMode::FixedDepth(_) | ReplayMode::ClosedLoop => None,
        }
    }
}

fn cannot_close(name: &str, why: &str) -> TraceError {
    TraceError::new(
        ErrorKind::Mode,
        name,
        Place::File,
        format!("cannot be replayed as a closed loop: {why}"),
        "replay it as timed, scaled:FACTOR or depth:N, or record it with blktrace, \
         including completions",
    )
}

impl fmt::Display for ReplayMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayMode::AsTimed => f.write_str("timed"),
            ReplayMode::Scaled(factor) => write!(f, "scaled:{factor}"),
            ReplayMode::FixedDepth(n) => write!(f, "depth:{n}"),
            ReplayMode::ClosedLoop => f.write_str("closed"),
        }
    }
}

impl FromStr for ReplayMode {
    type Err = TraceError;

    fn from_str(s: &str) -> Result<Self, TraceError> {
        let mode = match s.split_once(':') {
            None if s == "timed" => Some(ReplayMode::AsTimed),
            None if s == "closed" => Some(ReplayMode::ClosedLoop),
            Some(("scaled", f)) => Factor::parse(f).map(ReplayMode::Scaled),
            Some(("depth", n)) => n.parse().ok().map(ReplayMode::FixedDepth),
            _ => None,
        };
        mode.ok_or_else(|| {
            TraceError::new(
                ErrorKind::Mode,
                "replay mode",
                Place::File,
                format!("\"{s}\" is not a mode"),
                "use timed, scaled:FACTOR (2, 0.5 or 1/3, not 0), depth:N (1 or more) or closed",
            )
        })
    }
}

/// One record of a closed loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Number of the record in the trace, from 0.
    pub index: u64,
    /// The record.
    pub record: Record,
    /// Its process.
    pub task: TaskId,
    /// The record of the same process whose completion it waited for: the last one to complete
    /// before this submission. Always smaller than `index`. `None` if no I/O of the process had
    /// completed yet.
    pub after: Option<u64>,
    /// How many I/Os of the process had completed before. On a device that completes in another
    /// order, a driver may instead wait for this number of completions of any of them.
    pub completed_before: u64,
    /// Time from that completion to this submission, in ns; if `after` is `None`, from the start of
    /// the trace.
    pub think_ns: u64,
}

/// Number of records searched for one with pid and completion.
const PROBE_MAX: usize = 4096;
/// Number of processes remembered. Beyond it, the half of the idle processes that has been idle
/// longest is forgotten, and counts as new if it returns.
const TASKS_MAX: usize = 1 << 16;
/// Number of I/Os in flight remembered; completions of more are treated as unknown.
const IN_FLIGHT_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
struct Task {
    /// (completion, index) of the I/Os in flight.
    in_flight: BinaryHeap<Reverse<(u64, u64)>>,
    /// Completion and index of the last completed I/O.
    last: Option<(u64, u64)>,
    completed: u64,
    active_ns: u64,
}

impl Task {
    /// Processes the completions up to `t_ns`. Returns their number.
    fn see(&mut self, t_ns: u64) -> usize {
        let before = self.in_flight.len();
        while let Some(&Reverse(done)) = self.in_flight.peek()
            && done.0 <= t_ns
        {
            self.in_flight.pop();
            self.last = Some(done);
            self.completed += 1;
        }
        before - self.in_flight.len()
    }
}

/// Determines what each record waited for. Memory is bounded by processes and I/Os in flight.
pub struct ClosedLoop<I> {
    records: I,
    name: String,
    ahead: VecDeque<Record>,
    /// An error found while reading ahead, which is returned after the records before it.
    failed: Option<TraceError>,
    tasks: BTreeMap<TaskId, Task>,
    in_flight: usize,
    /// Number of processes at which idle ones are forgotten.
    forget_at: usize,
    index: u64,
    done: bool,
}

impl ClosedLoop<Reader> {
    /// Makes the closed loop of a trace, if its format and its first records allow it.
    pub fn of(reader: Reader) -> Result<Self, TraceError> {
        let name = reader.name().to_string();
        ReplayMode::ClosedLoop.check(reader.format(), &name)?;
        ClosedLoop::new(reader, name)
    }
}

impl<I: Iterator<Item = Result<Record, TraceError>>> ClosedLoop<I> {
    /// Makes the closed loop of any stream of records in order of time. Searches up to 4,096
    /// records for one with a pid and a completion. If there is none, the error says what is
    /// missing.
    pub fn new(mut records: I, name: String) -> Result<Self, TraceError> {
        let mut ahead = VecDeque::new();
        let mut failed = None;
        let (mut pids, mut completions, mut both) = (false, false, false);
        while !both && failed.is_none() && ahead.len() < PROBE_MAX {
            match records.next() {
                Some(Ok(r)) => {
                    pids |= r.task.is_some();
                    completions |= r.complete_ns.is_some();
                    both = r.task.is_some() && r.complete_ns.is_some();
                    ahead.push_back(r);
                }
                Some(Err(e)) => failed = Some(e),
                None => break,
            }
        }
        if !both && failed.is_none() && !ahead.is_empty() {
            let lacks = match (pids, completions) {
                (false, false) => "pid or completion",
                (false, true) => "pid",
                (true, false) => "completion",
                (true, true) => "pid together with a completion",
            };
            let why = format!("none of its first {} records has a {lacks}", ahead.len());
            return Err(cannot_close(&name, &why));
        }
        Ok(ClosedLoop {
            records,
            name,
            ahead,
            failed,
            tasks: BTreeMap::new(),
            in_flight: 0,
            forget_at: TASKS_MAX,
            index: 0,
            done: false,
        })
    }

    /// The underlying stream of records, for warnings and process names.
    pub fn inner(&self) -> &I {
        &self.records
    }

    fn next_record(&mut self) -> Option<Result<Record, TraceError>> {
        if let Some(r) = self.ahead.pop_front() {
            return Some(Ok(r));
        }
        match self.failed.take() {
            Some(e) => Some(Err(e)),
            None => self.records.next(),
        }
    }

    fn step(&mut self, record: Record) -> Result<Step, TraceError> {
        let index = self.index;
        self.index += 1;
        let Some(id) = record.task else {
            let why = format!("its record {} has no pid", index + 1);
            return Err(cannot_close(&self.name, &why));
        };
        if self.tasks.len() >= self.forget_at && !self.tasks.contains_key(&id) {
            self.forget_idle(record.t_ns);
        }
        let t = record.t_ns;
        let task = self.tasks.entry(id).or_default();
        task.active_ns = t;
        self.in_flight -= task.see(t);
        let step = Step {
            index,
            record,
            task: id,
            after: task.last.map(|l| l.1),
            completed_before: task.completed,
            think_ns: t - task.last.map_or(0, |l| l.0),
        };
        if let Some(done) = record.complete_ns
            && self.in_flight < IN_FLIGHT_MAX
        {
            task.in_flight.push(Reverse((done, index)));
            self.in_flight += 1;
        }
        Ok(step)
    }

    fn forget_idle(&mut self, now_ns: u64) {
        for task in self.tasks.values_mut() {
            self.in_flight -= task.see(now_ns);
        }
        let idle = |t: &Task| t.in_flight.is_empty();
        let idlers = self.tasks.values().filter(|t| idle(t));
        let mut times: Vec<u64> = idlers.map(|t| t.active_ns).collect();
        times.sort_unstable();
        // At least half of them: those up to the upper median.
        if let Some(&until_ns) = times.get(times.len() / 2) {
            self.tasks.retain(|_, t| !idle(t) || t.active_ns > until_ns);
        }
        // If all have I/O in flight, check again when their number has doubled.
        self.forget_at = TASKS_MAX.max(self.tasks.len() * 2);
    }
}

impl<I: Iterator<Item = Result<Record, TraceError>>> Iterator for ClosedLoop<I> {
    type Item = Result<Step, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let step = match self.next_record() {
            Some(Ok(r)) => self.step(r),
            Some(Err(e)) => Err(e),
            None => {
                self.done = true;
                return None;
            }
        };
        self.done = step.is_err();
        Some(step)
    }
}
