//! The objects that a scheduler in Python gets: requests, bios, the queue, and the context with
//! which it acts. Its actions are stored, and done after its method has returned.

use super::watch;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use seekwell_core::{Bio as OfBio, Flags, Op, Request as OfRequest, RqId};
use seekwell_sched::Emit;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Returns the name of an operation.
pub fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Discard => "discard",
        Op::WriteZeroes => "write_zeroes",
    }
}

/// One bio, or several merged bios. The same object is used from `insert` to the completion. Its
/// address and length change when something is merged into it. Compared and hashed by identity.
#[pyclass(module = "seekwell")]
pub struct Request {
    pub(super) rq: u32,
    /// Number of the request, in the order of allocation.
    #[pyo3(get)]
    id: u64,
    /// "read", "write", "flush", "discard" or "write_zeroes".
    #[pyo3(get)]
    op: &'static str,
    /// Whether the scheduler treats it as a write. Every operation except a read counts as a write.
    #[pyo3(get)]
    is_write: bool,
    /// Whether a task waits for it, by the rule of the queue's kernel.
    #[pyo3(get)]
    sync: bool,
    /// First sector, in units of 512 bytes.
    #[pyo3(get)]
    sector: u64,
    /// Length in sectors.
    #[pyo3(get)]
    sectors: u32,
    /// Number of the io context that submitted it.
    #[pyo3(get)]
    task: u32,
    /// Whether it is metadata (flag META).
    #[pyo3(get)]
    meta: bool,
    /// I/O priority as (class, level): class 0 none, 1 real time, 2 best effort, 3 idle.
    #[pyo3(get)]
    ioprio: (u8, u8),
    /// The CPU that submitted it.
    #[pyo3(get)]
    cpu: u16,
    /// The hardware queue of the request.
    #[pyo3(get)]
    hctx: u16,
    /// Time at which it was allocated, ns since the start of the run.
    #[pyo3(get)]
    start_ns: u64,
    /// Time at which the driver got it, ns. 0: the driver has not got it.
    #[pyo3(get)]
    issue_ns: u64,
}

#[pymethods]
impl Request {
    /// The first sector after the request.
    #[getter]
    fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }
    fn __repr__(&self) -> String {
        let (id, op, sector, n) = (self.id, self.op, self.sector, self.sectors);
        format!("<Request {id}: {op} {sector}+{n} of task {}>", self.task)
    }
}

impl Request {
    /// Returns the view of a request in its present state.
    pub fn of(rq: RqId, r: &OfRequest, task: u32) -> Self {
        let class = r.ioprio.class as u8;
        Request {
            rq: rq.0,
            id: r.seq,
            op: op_name(r.op),
            is_write: r.is_write(),
            sync: r.sync,
            sector: r.sector.0,
            sectors: r.sectors.0,
            task,
            meta: r.flags.contains(Flags::META),
            ioprio: (class, r.ioprio.level),
            cpu: r.cpu,
            hctx: r.hctx,
            start_ns: r.start.since_start(),
            issue_ns: r.issue.since_start(),
        }
    }
}

/// An I/O that a program submits, before it becomes a request.
#[pyclass(frozen, module = "seekwell")]
pub struct Bio {
    /// "read", "write", "flush", "discard" or "write_zeroes".
    #[pyo3(get)]
    op: &'static str,
    /// Whether it is a write. Every operation except a read counts as a write.
    #[pyo3(get)]
    is_write: bool,
    /// First sector, in units of 512 bytes.
    #[pyo3(get)]
    sector: u64,
    /// Length in sectors.
    #[pyo3(get)]
    sectors: u32,
    /// The first sector after the bio.
    #[pyo3(get)]
    end: u64,
    /// Number of the task that submits it.
    #[pyo3(get)]
    task: u32,
}

impl Bio {
    /// Returns the view of a bio.
    pub fn of(b: &OfBio) -> Self {
        Bio {
            op: op_name(b.op),
            is_write: b.op.is_write(),
            sector: b.sector.0,
            sectors: b.sectors.0,
            end: b.end().0,
            task: b.task.0,
        }
    }
}

/// An action that a scheduler requested.
pub enum Command {
    /// Dispatches a request.
    Emit(u32, Emit),
    /// Arms a timer for a time in ns.
    Arm(u8, u64),
    /// Arms a timer for a jiffy.
    ArmJiffy(u8, u64),
    /// Disarms a timer.
    Disarm(u8),
    /// Requests a run of the queue.
    Kick,
    /// Names a rule and the reason for a decision.
    Why(String, String),
}

/// The state that a scheduler can read, at the time of the call.
#[derive(Default)]
pub struct Seen {
    /// Time since the start of the run, ns.
    pub now_ns: u64,
    /// Present jiffy.
    pub jiffies: u64,
    /// Jiffies per second.
    pub hz: u64,
    /// Number of requests in the scheduler.
    pub queued: u32,
    /// Number of requests in the driver.
    pub in_driver: u32,
    /// Whether a listener reads the reasons.
    pub listening: bool,
    /// Actions that the scheduler requested since the start of the call.
    pub commands: Vec<Command>,
}

/// The environment of a scheduler: the clock, and the actions that it can request.
#[pyclass(frozen, module = "seekwell")]
#[derive(Default)]
pub struct Cx {
    seen: Mutex<Seen>,
}

impl Cx {
    /// Returns the state that the scheduler can read.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn slot(number: u8) -> PyResult<u8> {
    let most = seekwell_sched::cx::TIMER_SLOTS;
    match usize::from(number) < most {
        true => Ok(number),
        false => Err(PyValueError::new_err(format!(
            "timer {number}: a scheduler has {most} timers, 0 to {}",
            most - 1
        ))),
    }
}

#[pymethods]
impl Cx {
    /// Time since the start of the run, ns.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.seen().now_ns
    }
    /// The kernel's tick count (jiffies).
    #[getter]
    fn jiffies(&self) -> u64 {
        self.seen().jiffies
    }
    /// Jiffies per second.
    #[getter]
    fn hz(&self) -> u64 {
        self.seen().hz
    }
    /// Number of requests in the scheduler, as the queue counts them.
    #[getter]
    fn queued(&self) -> u32 {
        self.seen().queued
    }
    /// Number of requests that the driver has and has not completed.
    #[getter]
    fn in_driver(&self) -> u32 {
        self.seen().in_driver
    }
    /// Converts milliseconds to jiffies, rounded up.
    fn ms_to_jiffies(&self, ms: u64) -> u64 {
        let hz = u128::from(self.seen().hz);
        u64::try_from((u128::from(ms) * hz).div_ceil(1000)).unwrap_or(u64::MAX)
    }
    /// Dispatches a request. `how` is its place on the dispatch list: `"tail"`, `"head"`, or
    /// `"sorted"` by sector.
    #[pyo3(signature = (rq, how="tail"))]
    fn emit(&self, rq: PyRef<'_, Request>, how: &str) -> PyResult<()> {
        let how = match how {
            "tail" => Emit::Tail,
            "head" => Emit::Head,
            "sorted" => Emit::Sorted,
            _ => {
                let what =
                    format!("emit: \"{how}\" is no place; use \"tail\", \"head\" or \"sorted\"");
                return Err(PyValueError::new_err(what));
            }
        };
        self.seen().commands.push(Command::Emit(rq.rq, how));
        Ok(())
    }
    /// Arms timer `number` (0 to 3) for `at_ns`. A new time replaces the old one. The timer calls
    /// `timer`.
    fn arm(&self, number: u8, at_ns: u64) -> PyResult<()> {
        let command = Command::Arm(slot(number)?, at_ns);
        self.seen().commands.push(command);
        Ok(())
    }
    /// Arms timer `number` for the start of a jiffy, or for the next tick if that is past.
    fn arm_jiffy(&self, number: u8, jiffy: u64) -> PyResult<()> {
        let command = Command::ArmJiffy(slot(number)?, jiffy);
        self.seen().commands.push(command);
        Ok(())
    }
    /// Disarms a timer. Does nothing if it is not armed.
    fn disarm(&self, number: u8) -> PyResult<()> {
        let command = Command::Disarm(slot(number)?);
        self.seen().commands.push(command);
        Ok(())
    }
    /// Requests a run of the queue after the present call.
    fn kick(&self) {
        self.seen().commands.push(Command::Kick);
    }
    /// Names the rule that decided, and the reason, for `explain`.
    #[pyo3(signature = (rule, reason=String::new()))]
    fn why(&self, rule: String, reason: String) {
        let mut seen = self.seen();
        if seen.listening {
            seen.commands.push(Command::Why(rule, reason));
        }
    }
}

/// Ends the run because of an invalid action.
pub fn misuse(what: String) -> ! {
    let by = PyValueError::new_err(what.clone());
    watch::fail("SchedulerError", what, by)
}
