//! The state of the test machine, and its executor.

use crate::fail::{Fail, Outcome};
use crate::measures::Measures;
use seekwell_core::{Errno, Instant, Nanos, OpenFlags};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A logged call of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Name of the call, for example "write".
    pub name: &'static str,
    /// Number of the task.
    pub task: usize,
    /// Path; for an open file, the path that was opened.
    pub path: Rc<str>,
    /// Offset in bytes.
    pub off: u64,
    /// Length in bytes.
    pub len: u64,
    /// Start time of the call.
    pub at: Instant,
}

/// A failure to inject.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Name of the call that fails.
    pub call: &'static str,
    /// Number of successful calls before the first failure.
    pub after: u64,
    /// Error of all later calls.
    pub errno: Errno,
}

pub(super) struct File {
    pub ino: usize,
    pub path: Rc<str>,
    pub flags: OpenFlags,
    pub device: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Dir,
    File(usize),
}

#[derive(Default)]
pub(super) struct LockState {
    pub held: bool,
    pub queue: VecDeque<usize>,
}

pub(super) struct BarrierState {
    pub size: usize,
    pub here: Vec<usize>,
}

pub(super) struct ChannelState {
    pub room: usize,
    pub items: VecDeque<u64>,
    pub ended: bool,
    pub senders: VecDeque<usize>,
    pub receivers: VecDeque<usize>,
}

type Script = Pin<Box<dyn Future<Output = Outcome>>>;

pub(super) struct Task {
    pub path: String,
    future: Option<Script>,
    pub outcome: Option<Outcome>,
    pub joiners: Vec<usize>,
}

/// The state of the test machine.
pub struct World {
    pub(super) seed: u64,
    pub(super) now: Instant,
    seq: u64,
    ready: BTreeMap<(Instant, u64), usize>,
    pub(super) tasks: Vec<Task>,
    pub(super) nodes: BTreeMap<String, Node>,
    /// Length of each inode in bytes. Only `set_len` changes it.
    pub(super) inodes: Vec<u64>,
    /// Sum of all lengths.
    pub(super) used: u64,
    pub(super) files: Vec<Option<File>>,
    pub(super) maps: Vec<usize>,
    pub(super) locks: Vec<LockState>,
    pub(super) barriers: Vec<BarrierState>,
    pub(super) channels: Vec<ChannelState>,
    pub(super) aios: Vec<(usize, VecDeque<crate::machine::AioDone>)>,
    pub(super) stopped: bool,
    /// The failure that stopped the run. The run reports it, whatever the main task returns.
    cause: Option<Fail>,
    pub(super) log: Vec<Call>,
    pub(super) measures: Measures,
    counts: BTreeMap<&'static str, u64>,
    /// Failure to inject.
    pub fault: Option<Fault>,
    /// Time at which the run is stopped, as by a signal.
    pub stop_at: Option<Instant>,
    /// Capacity for all files together, in bytes.
    pub capacity: u64,
    /// Size of the raw device in bytes; 0 if there is none.
    pub device: u64,
}

pub(super) type Shared = Rc<RefCell<World>>;

impl World {
    /// Makes a test machine without files and tasks.
    pub fn new(seed: u64) -> Self {
        World {
            seed,
            now: Instant::START,
            seq: 0,
            ready: BTreeMap::new(),
            tasks: Vec::new(),
            nodes: BTreeMap::new(),
            inodes: Vec::new(),
            used: 0,
            files: Vec::new(),
            maps: Vec::new(),
            locks: Vec::new(),
            barriers: Vec::new(),
            channels: Vec::new(),
            aios: Vec::new(),
            stopped: false,
            cause: None,
            log: Vec::new(),
            measures: Measures::default(),
            counts: BTreeMap::new(),
            fault: None,
            stop_at: None,
            capacity: 1 << 50,
            device: 100 << 30,
        }
    }

    pub(super) fn wake_at(&mut self, task: usize, at: Instant) {
        self.seq += 1;
        self.ready.insert((at, self.seq), task);
    }
    pub(super) fn wake(&mut self, task: usize) {
        self.wake_at(task, self.now);
    }

    pub(super) fn add_task(&mut self, path: String) -> usize {
        // Tasks have the same numbers in the measures.
        self.measures.begin(&path, self.now);
        self.tasks.push(Task {
            path,
            future: None,
            outcome: None,
            joiners: Vec::new(),
        });
        self.tasks.len() - 1
    }
    pub(super) fn start(&mut self, task: usize, future: Script) {
        self.tasks[task].future = Some(future);
        self.wake(task);
    }

    /// Stops the run, and resumes all tasks that wait for another task.
    fn stop(&mut self) {
        self.stopped = true;
        let mut waiting = Vec::new();
        for l in &mut self.locks {
            waiting.extend(l.queue.drain(..));
        }
        for b in &mut self.barriers {
            waiting.append(&mut b.here);
        }
        for c in &mut self.channels {
            waiting.extend(c.senders.drain(..));
            waiting.extend(c.receivers.drain(..));
        }
        for t in waiting {
            self.wake(t);
        }
    }

    /// Logs a call. Returns an error if the call must fail.
    pub(super) fn call(
        &mut self,
        task: usize,
        name: &'static str,
        path: Rc<str>,
        off: u64,
        len: u64,
    ) -> Result<(), Errno> {
        let clean_up = matches!(
            name,
            "close" | "unlink" | "rmdir" | "readdir" | "stat" | "unmap" | "aio_close"
        );
        if self.stopped && !clean_up {
            return Err(Errno::ECANCELED);
        }
        let n = self.counts.entry(name).or_default();
        *n += 1;
        if let Some(f) = self.fault
            && f.call == name
            && *n > f.after
        {
            return Err(f.errno);
        }
        let at = self.now;
        self.log.push(Call {
            name,
            task,
            path,
            off,
            len,
            at,
        });
        Ok(())
    }

    pub(super) fn set_len(&mut self, ino: usize, len: u64) {
        self.used = self.used - self.inodes[ino] + len;
        self.inodes[ino] = len;
    }

    /// Makes a directory before the run.
    pub fn make_dir(&mut self, path: &str) {
        self.nodes.insert(path.to_owned(), Node::Dir);
    }
    /// Returns the log of calls.
    pub fn log(&self) -> &[Call] {
        &self.log
    }
    /// Returns the measures.
    pub fn measures(&self) -> &Measures {
        &self.measures
    }
    /// Returns the number of files and directories that still exist.
    pub fn left_over(&self) -> usize {
        self.nodes.len()
    }
    /// Returns the elapsed time.
    pub fn elapsed(&self) -> Nanos {
        self.now.since(Instant::START)
    }
}

/// Runs until every task has ended. Returns the failure that stopped the run, otherwise the outcome
/// of the main task.
///
/// # Panics
/// Panics if tasks wait for each other forever, which is an error in a script.
pub(super) fn drive(world: &Shared) -> Outcome {
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        let next = {
            let mut w = world.borrow_mut();
            match w.ready.pop_first() {
                None => break,
                Some(((at, _), task)) => {
                    w.now = w.now.max(at);
                    if w.stop_at.is_some_and(|s| w.now >= s) && !w.stopped {
                        w.stop();
                    }
                    w.tasks[task].future.take().map(|f| (task, f))
                }
            }
        };
        let Some((task, mut future)) = next else {
            continue;
        };
        let polled = future.as_mut().poll(&mut cx);
        let mut w = world.borrow_mut();
        match polled {
            Poll::Pending => w.tasks[task].future = Some(future),
            Poll::Ready(outcome) => {
                if let Err(e) = &outcome
                    && !w.stopped
                {
                    w.cause = Some(e.clone());
                    w.stop();
                }
                w.tasks[task].outcome = Some(outcome);
                for j in std::mem::take(&mut w.tasks[task].joiners) {
                    w.wake(j);
                }
            }
        }
    }
    let mut w = world.borrow_mut();
    let stuck: Vec<&str> = w
        .tasks
        .iter()
        .filter(|t| t.future.is_some())
        .map(|t| &*t.path)
        .collect();
    assert!(stuck.is_empty(), "tasks wait for ever: {stuck:?}");
    match w.cause.take() {
        Some(cause) => Err(cause),
        None => w.tasks[0].outcome.take().unwrap_or(Ok(())),
    }
}
