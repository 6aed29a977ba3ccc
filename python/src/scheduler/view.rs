//! What a scheduler in Python sees: requests, bios, the queue, and the means to act. What it does
//! is written down and carried out when its method has returned.

use super::watch;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use seekwell_core::{Bio as OfBio, Flags, Op, Request as OfRequest, RqId};
use seekwell_sched::Emit;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How an operation is called.
pub fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Discard => "discard",
        Op::WriteZeroes => "write_zeroes",
    }
}

/// One or several merged bios. The same object from `insert` to the end; its address and length
/// change when something is merged into it. Compared and hashed by identity.
#[pyclass(module = "seekwell")]
pub struct Request {
    pub(super) rq: u32,
    /// Number of the request, in the order of allocation.
    #[pyo3(get)]
    id: u64,
    /// "read", "write", "flush", "discard" or "write_zeroes".
    #[pyo3(get)]
    op: &'static str,
    /// Whether it is a write, to the elevator's eyes: all but a read.
    #[pyo3(get)]
    is_write: bool,
    /// Whether somebody waits for it, by the rule of the queue's kernel.
    #[pyo3(get)]
    sync: bool,
    /// First sector, of 512 bytes.
    #[pyo3(get)]
    sector: u64,
    /// Length in sectors.
    #[pyo3(get)]
    sectors: u32,
    /// The io context's number: who submitted it.
    #[pyo3(get)]
    task: u32,
    /// Metadata, by its flag.
    #[pyo3(get)]
    meta: bool,
    /// I/O priority as (class, level): class 0 none, 1 real time, 2 best effort, 3 idle.
    #[pyo3(get)]
    ioprio: (u8, u8),
    /// The CPU that submitted it.
    #[pyo3(get)]
    cpu: u16,
    /// Its hardware queue.
    #[pyo3(get)]
    hctx: u16,
    /// When it was allocated, ns since the run began.
    #[pyo3(get)]
    start_ns: u64,
    /// When the driver was given it, ns; 0 before.
    #[pyo3(get)]
    issue_ns: u64,
}

#[pymethods]
impl Request {
    /// The sector behind the last.
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
    /// As it is now.
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

/// What a program submits, before it is a request.
#[pyclass(frozen, module = "seekwell")]
pub struct Bio {
    /// "read", "write", "flush", "discard" or "write_zeroes".
    #[pyo3(get)]
    op: &'static str,
    /// All but a read.
    #[pyo3(get)]
    is_write: bool,
    /// First sector, of 512 bytes.
    #[pyo3(get)]
    sector: u64,
    /// Length in sectors.
    #[pyo3(get)]
    sectors: u32,
    /// The sector behind the last.
    #[pyo3(get)]
    end: u64,
    /// Who submits it.
    #[pyo3(get)]
    task: u32,
}

impl Bio {
    /// As it is.
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

/// What it asked for.
pub enum Command {
    /// Lets a request go.
    Emit(u32, Emit),
    /// Arms a timer at ns.
    Arm(u8, u64),
    /// Arms one at a jiffy.
    ArmJiffy(u8, u64),
    /// Takes it back.
    Disarm(u8),
    /// A run of the queue, please.
    Kick,
    /// Names a rule, with a reason.
    Why(String, String),
}

/// What it sees, as of the call.
#[derive(Default)]
pub struct Seen {
    /// Clock, ns since the run began.
    pub now_ns: u64,
    /// Jiffies.
    pub jiffies: u64,
    /// Ticks a second.
    pub hz: u64,
    /// Requests inside.
    pub queued: u32,
    /// Requests in the driver.
    pub in_driver: u32,
    /// Somebody reads the reasons.
    pub listening: bool,
    /// What was asked for since.
    pub commands: Vec<Command>,
}

/// Everything outside a scheduler: the clock, and the means to act.
#[pyclass(frozen, module = "seekwell")]
#[derive(Default)]
pub struct Cx {
    seen: Mutex<Seen>,
}

impl Cx {
    /// What it sees.
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
    /// The clock, ns since the run began.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.seen().now_ns
    }
    /// The kernel's tick count.
    #[getter]
    fn jiffies(&self) -> u64 {
        self.seen().jiffies
    }
    /// Ticks a second.
    #[getter]
    fn hz(&self) -> u64 {
        self.seen().hz
    }
    /// Requests inside the scheduler, as the queue counts them.
    #[getter]
    fn queued(&self) -> u32 {
        self.seen().queued
    }
    /// Requests that the driver has and has not completed.
    #[getter]
    fn in_driver(&self) -> u32 {
        self.seen().in_driver
    }
    /// Milliseconds in ticks, rounded up.
    fn ms_to_jiffies(&self, ms: u64) -> u64 {
        let hz = u128::from(self.seen().hz);
        u64::try_from((u128::from(ms) * hz).div_ceil(1000)).unwrap_or(u64::MAX)
    }
    /// Lets a request go, to the `"tail"` of the dispatch list, to its `"head"`, or `"sorted"` into
    /// it by sector.
    #[pyo3(signature = (rq, how="tail"))]
    fn emit(&self, rq: PyRef<'_, Request>, how: &str) -> PyResult<()> {
        let how = match how {
            "tail" => Emit::Tail,
            "head" => Emit::Head,
            "sorted" => Emit::Sorted,
            _ => {
                let what =
                    format!("emit: `{how}` is no place; use \"tail\", \"head\" or \"sorted\"");
                return Err(PyValueError::new_err(what));
            }
        };
        self.seen().commands.push(Command::Emit(rq.rq, how));
        Ok(())
    }
    /// Arms timer `number` (0 to 3) for `at_ns`; a new time replaces the old one. `timer` is told.
    fn arm(&self, number: u8, at_ns: u64) -> PyResult<()> {
        let command = Command::Arm(slot(number)?, at_ns);
        self.seen().commands.push(command);
        Ok(())
    }
    /// Arms timer `number` for the first instant of a jiffy, or the next tick if that is past.
    fn arm_jiffy(&self, number: u8, jiffy: u64) -> PyResult<()> {
        let command = Command::ArmJiffy(slot(number)?, jiffy);
        self.seen().commands.push(command);
        Ok(())
    }
    /// Takes a timer back; harmless if it was not armed.
    fn disarm(&self, number: u8) -> PyResult<()> {
        let command = Command::Disarm(slot(number)?);
        self.seen().commands.push(command);
        Ok(())
    }
    /// Asks for a run of the queue, behind what goes on now.
    fn kick(&self) {
        self.seen().commands.push(Command::Kick);
    }
    /// Names the rule that decided, and why, for `explain`.
    #[pyo3(signature = (rule, reason=String::new()))]
    fn why(&self, rule: String, reason: String) {
        let mut seen = self.seen();
        if seen.listening {
            seen.commands.push(Command::Why(rule, reason));
        }
    }
}

/// Ends the run because of what was asked for.
pub fn misuse(what: String) -> ! {
    let by = PyValueError::new_err(what.clone());
    watch::fail("SchedulerError", what, by)
}
