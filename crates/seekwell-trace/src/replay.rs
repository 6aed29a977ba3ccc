//! The modes of replay, and the dependencies between records for the closed loop.
//!
//! The simulator submits the requests. This module determines when a record is due, or for which
//! completion it waits.

use crate::error::{ErrorKind, Place, TraceError};
use crate::info::{Format, Has};
use crate::reader::Reader;
use crate::record::Record;
use seekwell_core::TaskId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// A positive rational factor for times. Values above 1 stretch time, and values below 1 compress
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Factor {
    num: NonZeroU32,
    den: NonZeroU32,
}

impl Factor {
    /// Makes the factor `num / den`.
    pub const fn new(num: NonZeroU32, den: NonZeroU32) -> Self {
        Factor { num, den }
    }
    /// Returns `t_ns` multiplied by the factor, rounded down and limited to the maximum of the
    /// type.
    pub fn apply(self, t_ns: u64) -> u64 {
        let scaled = u128::from(t_ns) * u128::from(self.num.get()) / u128::from(self.den.get());
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
    /// Parses a factor: "2", "0.25" or "1/3".
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
    /// In recorded order, with a constant number of I/Os in flight.
    FixedDepth(NonZeroU32),
    /// Each process waits for the completions for which it waited in the recording, and then for
    /// its recorded think time.
    ClosedLoop,
    /// As [`ReplayMode::ClosedLoop`], until the first process that was active to the end of the
    /// recording has no more I/Os.
    Steady,
}

impl ReplayMode {
    /// An example of each mode, for help texts.
    pub const EXAMPLES: [(&'static str, ReplayMode); 5] = {
        const fn n(n: u32) -> NonZeroU32 {
            NonZeroU32::new(n).unwrap()
        }
        [
            ("timed", ReplayMode::AsTimed),
            ("scaled:1/2", ReplayMode::Scaled(Factor::new(n(1), n(2)))),
            ("depth:32", ReplayMode::FixedDepth(n(32))),
            ("closed", ReplayMode::ClosedLoop),
            ("steady", ReplayMode::Steady),
        ]
    };

    /// Returns a paragraph about what the mode does, what it can show, and what it cannot show.
    pub const fn explain(&self) -> &'static str {
        match self {
            ReplayMode::AsTimed => {
                "Each I/O is submitted at its recorded time (open loop). It does not wait for \
                 earlier I/Os. This mode shows how a device and a scheduler handle exactly this \
                 load. If the device is slower than the recorded device, the queue grows without \
                 bound. The comparison then measures the queue length and not the scheduler. If the \
                 device is faster, the pauses between I/Os are as long as in the recording."
            }
            ReplayMode::Scaled(_) => {
                "Like the mode timed, but every time is first multiplied by a factor. The factor \
                 1/2 replays in half the time, and 2 in twice the time. Use it to adapt a load to \
                 a device of another speed, or to find the load that saturates a scheduler. This \
                 is also an open loop: no process waits, and above saturation the comparison \
                 measures only the queue length."
            }
            ReplayMode::FixedDepth(_) => {
                "The order is kept and a fixed number of I/Os is in flight, without regard to the \
                 recorded times. Each completion submits the next I/O. This mode measures the \
                 throughput of this access pattern, and cannot overload the device. \
                 It does not reproduce bursts, idle times and the think time of processes. So \
                 schedulers that wait for a process (anticipatory, CFQ, BFQ) see processes without \
                 think time, and latency has little meaning."
            }
            ReplayMode::ClosedLoop => {
                "Each process waits for its own completions as in the recording, and then for the \
                 recorded think time. It submits an I/O after the I/O that was its last to complete \
                 before this I/O in the recording. A faster device makes the processes faster, and \
                 a slower device delays them, as in reality. Use this mode for a fair comparison \
                 of schedulers. It needs a trace with pids and completions. Other waits of \
                 processes (for locks, for each other, or for writeback by kernel threads) are \
                 unknown and count as think time."
            }
            ReplayMode::Steady => {
                "Like the mode closed, but the replay ends when the first process that was active \
                 to the end of the recording has no more I/Os. Use this mode for programs that ran \
                 for a fixed time, and compare rates and latencies. A process that a scheduler \
                 favours would otherwise end early, and leave the disk to the others."
            }
        }
    }

    /// Returns an error if a trace of this format cannot be replayed in this mode. The error names
    /// the missing information.
    pub fn check(&self, format: Format, name: &str) -> Result<(), TraceError> {
        if !self.is_closed() {
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

    /// Returns whether processes wait for their own completions.
    pub const fn is_closed(&self) -> bool {
        matches!(self, ReplayMode::ClosedLoop | ReplayMode::Steady)
    }

    /// Returns the time at which a record is due, in ns since the start of the replay. Returns
    /// `None` for modes that do not use recorded times.
    pub fn due_ns(&self, record: &Record) -> Option<u64> {
        match self {
            ReplayMode::AsTimed => Some(record.t_ns),
            ReplayMode::Scaled(f) => Some(f.apply(record.t_ns)),
            ReplayMode::FixedDepth(_) | ReplayMode::ClosedLoop | ReplayMode::Steady => None,
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
            ReplayMode::Steady => f.write_str("steady"),
        }
    }
}

impl FromStr for ReplayMode {
    type Err = TraceError;

    fn from_str(s: &str) -> Result<Self, TraceError> {
        let mode = match s.split_once(':') {
            None if s == "timed" => Some(ReplayMode::AsTimed),
            None if s == "closed" => Some(ReplayMode::ClosedLoop),
            None if s == "steady" => Some(ReplayMode::Steady),
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
                "use timed, scaled:FACTOR (2, 0.5 or 1/3, not 0), depth:N (1 or more), closed or steady",
            )
        })
    }
}

/// A record of a closed loop, with its dependency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Number of the record in the trace; the first is 0.
    pub index: u64,
    /// The record.
    pub record: Record,
    /// Process of the record.
    pub task: TaskId,
    /// Number of the record for whose completion the process waited. It is the record of the same
    /// process that completed last before this submission, and is always less than `index`. `None`
    /// if no I/O of the process had completed yet.
    pub after: Option<u64>,
    /// Number of I/Os of the process that had completed before this submission. On a device that
    /// completes I/Os in another order, a driver can wait for this number of completions instead,
    /// in any order.
    pub completed_before: u64,
    /// Time from that completion to this submission, in ns. If `after` is `None`, it counts from
    /// the start of the trace.
    pub think_ns: u64,
}

/// Number of records that are searched for a record with process id and completion.
const PROBE_MAX: usize = 4096;
/// Maximum number of processes that are remembered. When there are more, about half of the idle
/// processes are forgotten: those that have been idle longest. A forgotten process counts as new if
/// it returns.
const TASKS_MAX: usize = 1 << 16;
/// Maximum number of I/Os in flight that are remembered. Completions of further I/Os are treated as
/// unknown.
const IN_FLIGHT_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
struct Task {
    /// (completion time, index) of the I/Os in flight.
    in_flight: BinaryHeap<Reverse<(u64, u64)>>,
    /// Completion time and index of the I/O that completed last.
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

/// Determines for which completion each record waited. The memory depends on the numbers of
/// processes and I/Os in flight, and both are limited.
pub struct ClosedLoop<I> {
    records: I,
    name: String,
    ahead: VecDeque<Record>,
    /// An error that was found while reading ahead. It is returned after the records that precede
    /// it.
    failed: Option<TraceError>,
    tasks: BTreeMap<TaskId, Task>,
    in_flight: usize,
    /// Number of processes at which idle processes are forgotten.
    forget_at: usize,
    index: u64,
    done: bool,
}

impl ClosedLoop<Reader> {
    /// Makes the closed loop of a trace. Returns an error if the format or the first records lack
    /// the required information.
    pub fn from_reader(reader: Reader) -> Result<Self, TraceError> {
        let name = reader.name().to_string();
        ReplayMode::ClosedLoop.check(reader.format(), &name)?;
        ClosedLoop::new(reader, name)
    }
}

impl<I: Iterator<Item = Result<Record, TraceError>>> ClosedLoop<I> {
    /// Makes the closed loop of any stream of records in order of time. Searches up to 4,096
    /// records for a record with process id and completion. If there is none, returns an error that
    /// names the missing information.
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

    /// Returns the underlying stream of records, for warnings and process names.
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
        // Forget at least half of the idle processes: those whose last activity is not later than
        // the upper median.
        if let Some(&until_ns) = times.get(times.len() / 2) {
            self.tasks.retain(|_, t| !idle(t) || t.active_ns > until_ns);
        }
        // If all processes have I/O in flight, try again when their number has doubled.
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
