//! The executor. It runs the tasks and the kernel model that they call, and advances the clock.
//!
//! At one instant, the kernel runs first. The tasks whose calls it completed follow, in the order
//! of completion. A task is polled only when the event that it waits for has happened, so no waker
//! is needed.

mod calls;

use super::WorldError;
use super::bound::Bound;
use super::cgroups::Placed;
use super::disk::Handle;
use super::interval::Laps;
use super::machine::SimMachine;
use super::options::WorldSetup;
use super::phase;
use super::programs::{Beside, Program, begin};
use super::sync::{Answer, Syncs, Task};
use super::tell::{TELL_EACH, Tell};
use super::whole::Whole;
use seekwell_core::result::MarkAt;
use seekwell_core::{CgroupId, Errno, Instant, IoPrio, Nanos, Sector, TaskId};
use seekwell_stack::{Kernel, Ret, Stats, TaskConfig};
use seekwell_workload::{
    AioDone, Clock, Facts, Fail, How, IoContextOf, Mark, Measures, Moved, Note, Outcome,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

pub(super) type Script = Pin<Box<dyn Future<Output = Outcome>>>;

/// The event that a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Nothing,
    Kernel,
    Lock(u32),
    Barrier(u32),
    Send(u32),
    Recv(u32),
    Join(Task),
}

struct State {
    tid: TaskId,
    path: String,
    wait: Wait,
    ret: Option<Ret>,
    /// The file that the task reads from start to end.
    whole: Option<Whole>,
    answer: Option<Answer>,
    outcome: Option<Outcome>,
    joined: bool,
    alive: bool,
    /// Index of the task in the measures.
    part: usize,
    /// The program that the task belongs to.
    program: Program,
    /// True if no other task started this task.
    first: bool,
    cgroup: CgroupId,
}

/// The state that all machines of a run share.
pub(super) struct World {
    pub(super) kernel: Kernel,
    pub(super) now: Instant,
    pub(super) seed: u64,
    pub(super) phase_drawn: bool,
    pub(super) facts: Facts,
    pub(super) syncs: Syncs,
    pub(super) measures: Measures,
    meter: Handle,
    tasks: Vec<State>,
    /// Task numbers of the executor, indexed by the task numbers of the kernel.
    by_tid: Vec<Task>,
    ready: VecDeque<Task>,
    spawned: Vec<(Task, Script)>,
    /// Number of tasks that wait for the kernel.
    in_kernel: u32,
    /// The reason why the run was stopped. It is empty if the script finished.
    pub(super) stop: Option<String>,
    /// A limit ended the run. Every call then fails immediately, and time stands still.
    pub(super) over: bool,
    /// The run reached its limit before the clock of the measured program stopped.
    limited: bool,
    /// Time at which the workload's own clock started.
    pub(super) clock_start: Option<Instant>,
    cgroups: u32,
    /// Cgroups of the machine.
    pub(super) placed: Vec<Placed>,
    /// Capacity of the device, sectors.
    pub(super) capacity: Sector,
    /// Queues of asynchronous operations, by the number of their AIO context.
    pub(super) queues: BTreeMap<u32, Queue>,
    /// Paths of open directories.
    pub(super) directories: Vec<Box<str>>,
    /// Background programs.
    pub(super) beside: Vec<Beside>,
    /// Programs that are about to start.
    pub(super) begin: VecDeque<Program>,
    /// Whether programs are about to start, or new tasks exist.
    pub(super) news: bool,
    /// Whether a background program is being held.
    pub(super) holding: bool,
    /// Number of active tasks of the measured program.
    measured: u32,
}

/// A queue of asynchronous operations, as its tasks see it.
pub(super) struct Queue {
    pub(super) depth: u32,
    /// Number of operations in the kernel.
    pub(super) under_way: u32,
    /// Operations that ended without a call to the kernel.
    pub(super) done: VecDeque<AioDone>,
}

impl Queue {
    pub(super) fn new(depth: u32) -> Self {
        Queue {
            depth,
            under_way: 0,
            done: VecDeque::new(),
        }
    }
}

/// Returns the name of a mark of the modelled kernel, if the time axis shows the mark. There are
/// too many commits and flushes to show. The statistics contain their numbers.
fn shown(m: seekwell_stack::Mark) -> Option<&'static str> {
    match m {
        seekwell_stack::Mark::ThrottleBegin => Some("throttling begins"),
        seekwell_stack::Mark::ThrottleEnd => Some("throttling ends"),
        _ => None,
    }
}

pub(super) type Shared = Rc<RefCell<World>>;

/// Number of tasks that a message lists if no task has the requested name.
const NAMED: usize = 8;

/// The results of a finished run.
pub(super) struct Ended {
    pub(super) measures: Measures,
    pub(super) marks: Vec<MarkAt>,
    pub(super) stats: Stats,
    pub(super) duration: Nanos,
    pub(super) error: Option<WorldError>,
    pub(super) stopped: Option<String>,
    pub(super) limited: bool,
    /// Names of tasks, with their numbers in the kernel.
    pub(super) names: Vec<(TaskId, String)>,
    pub(super) beside: Vec<Beside>,
    pub(super) warnings: Vec<String>,
}

/// Runs a script on a freshly booted kernel.
pub(super) fn run<F, Fut>(
    kernel: Kernel,
    meter: Handle,
    capacity: Sector,
    setup: &WorldSetup,
    receivers: (Tell<'_>, Laps<'_>),
    script: F,
) -> Ended
where
    F: FnOnce(SimMachine) -> Fut,
    Fut: Future<Output = Outcome> + 'static,
{
    let config = &setup.config;
    let world = Rc::new(RefCell::new(World {
        now: kernel.now(),
        kernel,
        seed: setup.setup.seed,
        phase_drawn: setup.phase_drawn,
        facts: Facts {
            cpus: u32::from(config.cores),
            cache_bytes: config.cache_pages() * 4096,
        },
        syncs: Syncs::default(),
        measures: Measures::default(),
        meter,
        tasks: Vec::new(),
        by_tid: Vec::new(),
        ready: VecDeque::new(),
        spawned: Vec::new(),
        in_kernel: 0,
        stop: None,
        over: false,
        limited: false,
        clock_start: None,
        cgroups: 0,
        placed: Vec::new(),
        capacity,
        queues: BTreeMap::new(),
        directories: Vec::new(),
        beside: Beside::all(&setup.neighbours),
        // The measured program starts when all background programs have prepared their files.
        begin: VecDeque::from([Program::from(!setup.neighbours.is_empty())]),
        news: true,
        holding: false,
        measured: 0,
    }));
    world.borrow_mut().make_cgroups(&setup.cgroups);
    let first = world
        .borrow_mut()
        .start("main".to_owned(), TaskConfig::default(), 0);
    let flusher = Nanos(config.constants.dirty_writeback_ns);
    let main = |world: &Shared| -> Script {
        let machine = SimMachine::new(world, first);
        phase::behind(world, first, flusher, Box::pin(script(machine)))
    };
    let error = drive(&world, setup, receivers, main);
    let mut w = world.borrow_mut();
    let w = &mut *w;
    let paths: Vec<&str> = w.tasks.iter().map(|t| &*t.path).take(NAMED).collect();
    let marks = w.kernel.take_marks();
    let mark = |(at, m): (Instant, seekwell_stack::Mark)| {
        Some(MarkAt {
            at_ns: at.since_start(),
            name: shown(m)?.to_owned(),
            task: String::new(),
        })
    };
    Ended {
        measures: std::mem::take(&mut w.measures),
        marks: marks.into_iter().filter_map(mark).collect(),
        stats: w.kernel.stats(),
        duration: w.now.since(Instant::START),
        error: error.err(),
        stopped: w.stop.take().filter(|s| !s.is_empty()),
        limited: w.limited,
        names: w.tasks.iter().map(|t| (t.tid, t.path.clone())).collect(),
        beside: std::mem::take(&mut w.beside),
        warnings: w.nobody_there(&paths),
    }
}

fn drive(
    world: &Shared,
    setup: &WorldSetup,
    (mut tell, mut laps): (Tell<'_>, Laps<'_>),
    main: impl FnOnce(&Shared) -> Script,
) -> Result<(), WorldError> {
    let mut main = Some(main);
    let (mut calls, mut tell_at) = (0u64, TELL_EACH);
    let mut cx = Context::from_waker(Waker::noop());
    let mut scripts: Vec<Option<Script>> = Vec::new();
    let mut ended: Vec<(TaskId, Ret)> = Vec::new();
    let mut bound = Bound::new(setup.limit, tell.span);
    loop {
        loop {
            let mut w = world.borrow_mut();
            if w.news {
                let program = w.begin.pop_front();
                for (t, script) in w.spawned.drain(..) {
                    let n = scripts.len().max(t as usize + 1);
                    scripts.resize_with(n, || None);
                    scripts[t as usize] = Some(script);
                }
                w.news = !w.begin.is_empty();
                drop(w);
                match program {
                    Some(0) => {
                        if let Some(main) = main.take() {
                            world.borrow_mut().begun(0);
                            let main = main(world);
                            world.borrow_mut().push(0, main);
                        }
                    }
                    Some(program) => begin(world, program),
                    None => {}
                }
                continue;
            }
            let Some(t) = w.ready.pop_front() else { break };
            if w.reads_on(t) {
                continue;
            }
            drop(w);
            let slot = &mut scripts[t as usize];
            let Some(script) = slot else { continue };
            if let Poll::Ready(outcome) = script.as_mut().poll(&mut cx) {
                // The script releases its machine before its task exits.
                *slot = None;
                world.borrow_mut().exit(t, outcome);
            }
        }
        let w = &mut *world.borrow_mut();
        if w.measured == 0 || w.over {
            return Ok(());
        }
        if w.in_kernel == 0 {
            return Err(WorldError::Deadlock {
                at: w.now.to_string(),
                waits: w.waits(),
            });
        }
        bound.clock(w.clock_start);
        if w.now >= laps.at && !laps.next(w) {
            w.stop = Some("stopped by its observer".to_owned());
            return Ok(());
        }
        let patience = w.now + PATIENCE;
        let until = bound.at.min(laps.end(w));
        w.kernel.advance(until.min(patience), &mut ended);
        if ended.is_empty() && patience < until {
            return Err(WorldError::Stuck {
                scheduler: setup.setup.scheduler.clone(),
                waits: w.waits(),
            });
        }
        w.now = w.kernel.now();
        if ended.is_empty() {
            if w.now >= bound.at {
                w.reached(bound.time_is_up());
            }
            continue;
        }
        calls += ended.len() as u64;
        if calls >= tell_at {
            tell_at = calls + TELL_EACH;
            if let Some(why) = bound.too_much(calls + w.meter.ios()) {
                w.reached(why);
                continue;
            }
            if !tell.report(w, calls) {
                let s = w.now.since(Instant::START).as_secs_f64();
                w.stop = Some(format!("stopped after {s:.3} s of simulated time"));
                return Ok(());
            }
        }
        for (tid, ret) in ended.drain(..) {
            let t = w.by_tid[tid.0 as usize];
            let s = &mut w.tasks[t as usize];
            (s.ret, s.wait) = (Some(ret), Wait::Nothing);
            w.in_kernel -= 1;
            w.ready.push_back(t);
        }
    }
}

/// Returns a suffix that distinguishes tasks of the same name, for example "BE7, cgroup 2".
fn priority(ioprio: IoPrio, cgroup: CgroupId) -> String {
    let own = (ioprio != IoPrio::NONE).then(|| ioprio.to_string());
    let group = (cgroup != CgroupId::ROOT).then(|| format!("cgroup {}", cgroup.0));
    own.into_iter().chain(group).collect::<Vec<_>>().join(", ")
}

/// Longest wait of a task. The longest sleep of a workload is a day, so a task that waits longer
/// waits forever.
const PATIENCE: Nanos = Nanos::from_secs(2 * 86_400);

impl World {
    /// Creates a task. The caller must then call [`World::begun`] and push the script of the task.
    pub(super) fn start(&mut self, path: String, config: TaskConfig, program: Program) -> Task {
        let cgroup = match config.cgroup {
            CgroupId::ROOT => self.place_of(&path, CgroupId::ROOT),
            own => own,
        };
        let config = TaskConfig { cgroup, ..config };
        let tid = self.kernel.task_new(self.now, config);
        let t = self.tasks.len() as Task;
        self.tasks.push(State {
            tid,
            path,
            wait: Wait::Nothing,
            ret: None,
            whole: None,
            answer: None,
            outcome: None,
            joined: false,
            alive: true,
            part: 0,
            program,
            first: true,
            cgroup,
        });
        let i = tid.0 as usize;
        if self.by_tid.len() <= i {
            self.by_tid.resize(i + 1, 0);
        }
        self.by_tid[i] = t;
        self.measured += u32::from(program == 0);
        t
    }
    /// Returns the meter above the queue.
    pub(super) fn meter(&self) -> &Handle {
        &self.meter
    }
    /// Marks the start of a task.
    pub(super) fn begun(&mut self, t: Task) {
        let (now, s) = (self.now, &self.tasks[t as usize]);
        let (path, program) = (s.path.clone(), s.program);
        self.tasks[t as usize].part = self.measures_of(program).begin(&path, now);
        self.ready.push_back(t);
    }
    /// Creates a task that a running task starts.
    pub(super) fn spawn(&mut self, parent: Task, how: How) -> Task {
        let path = format!("{}/{}", self.tasks[parent as usize].path, how.name);
        let cgroup = match how.cgroup {
            CgroupId::ROOT => self.place_of(&path, self.tasks[parent as usize].cgroup),
            own => own,
        };
        let p = &self.tasks[parent as usize];
        let config = TaskConfig {
            ioprio: how.ioprio,
            nice: how.nice,
            cgroup,
            share_io: (how.io_context == IoContextOf::Share).then_some(p.tid),
            ..TaskConfig::default()
        };
        let (name, program) = (how.name, p.program);
        let priority = priority(how.ioprio, cgroup);
        let t = self.start(path, TaskConfig { name, ..config }, program);
        self.tasks[t as usize].first = false;
        self.begun(t);
        let part = self.part(t);
        self.measures_of(program).set_priority(part, priority);
        t
    }
    /// Adds the task's script.
    pub(super) fn push(&mut self, t: Task, script: Script) {
        self.spawned.push((t, script));
        self.news = true;
    }
    pub(super) fn path(&self, t: Task) -> &str {
        &self.tasks[t as usize].path
    }
    pub(super) fn tid(&self, t: Task) -> TaskId {
        self.tasks[t as usize].tid
    }
    pub(super) fn part(&self, t: Task) -> usize {
        self.tasks[t as usize].part
    }
    pub(super) fn program(&self, t: Task) -> Program {
        self.tasks[t as usize].program
    }
    /// Records a note from a task of the measured program.
    pub(super) fn note(&mut self, part: usize, note: &Note) {
        self.measures.note(part, note);
        match *note {
            Note::Mark(at, Mark::ClockStart) => {
                self.clock_start = Some(at);
                self.meter.clock_starts(at);
                self.clock_beside(at, true);
            }
            Note::Mark(at, Mark::ClockStop) => {
                self.meter.clock_stops(at);
                self.clock_beside(at, false);
            }
            _ => {}
        }
    }
    /// Records the end of a task's script, which has released its machine.
    pub(super) fn leave(&mut self, t: Task, moved: Moved) {
        let (part, now) = (self.part(t), self.now);
        let program = self.program(t);
        self.measures_of(program).end(part, now, moved);
    }
    fn exit(&mut self, t: Task, outcome: Outcome) {
        let s = &mut self.tasks[t as usize];
        s.alive = false;
        let (tid, program) = (s.tid, s.program);
        self.measured -= u32::from(program == 0);
        if !self.over {
            self.kernel.task_exit(self.now, tid);
        }
        match &outcome {
            Err(f) if !f.stopped() || self.stop.is_none() => {
                let why = format!("{}: {f}", self.tasks[t as usize].path);
                self.halt(why);
            }
            // The end of the first task ends the run, and so the remaining tasks.
            Ok(()) if t == 0 => self.halt(String::new()),
            _ => {}
        }
        let well = outcome.is_ok();
        self.tasks[t as usize].outcome = Some(outcome);
        if program != 0 && self.tasks[t as usize].first {
            self.ended_beside(program, well);
        }
        for j in 0..self.tasks.len() {
            if self.tasks[j].wait == Wait::Join(t) {
                self.tasks[j].wait = Wait::Nothing;
                self.ready.push_back(j as Task);
            }
        }
    }
    /// Stops the run, unless it is already stopped.
    fn halt(&mut self, why: String) {
        if self.stop.is_none() {
            self.stop = Some(why);
            self.syncs.cancel();
            self.wake();
            self.release();
        }
    }
    /// Ends the run because it reached a limit. A task in the kernel could wait forever. Therefore
    /// all active calls fail, and the scripts report the results that they have.
    #[cold]
    fn reached(&mut self, why: String) {
        if self.stop.is_none() {
            self.stop = Some(why);
            self.limited = self.measures.clock() != Clock::Stopped;
        }
        (self.over, self.holding) = (true, true);
        self.syncs.cancel();
        self.wake();
        for (t, s) in self.tasks.iter_mut().enumerate() {
            if s.alive && s.wait == Wait::Kernel {
                (s.ret, s.wait) = (Some(Err(Errno::ECANCELED)), Wait::Nothing);
                self.ready.push_back(t as Task);
            }
        }
        self.in_kernel = 0;
    }
    /// Makes a call fail because the run is over.
    #[cold]
    pub(super) fn refuse(&mut self, t: Task) {
        let s = &mut self.tasks[t as usize];
        (s.ret, s.wait) = (Some(Err(Errno::ECANCELED)), Wait::Nothing);
        self.in_kernel -= 1;
        self.ready.push_back(t);
    }
    /// Returns ECANCELED if the run is stopped.
    pub(super) fn going(&self) -> Result<(), Errno> {
        match self.stop {
            None => Ok(()),
            Some(_) => Err(Errno::ECANCELED),
        }
    }
    /// Passes results to the tasks that wait for other tasks.
    pub(super) fn wake(&mut self) {
        for (t, answer) in self.syncs.wake.drain(..) {
            let s = &mut self.tasks[t as usize];
            (s.answer, s.wait) = (Some(answer), Wait::Nothing);
            self.ready.push_back(t);
        }
    }
    pub(super) fn answer(&mut self, t: Task) -> Option<Answer> {
        self.tasks[t as usize].answer.take()
    }
    pub(super) fn wait(&mut self, t: Task, wait: Wait) {
        self.tasks[t as usize].wait = wait;
    }
    /// Takes the outcome of a task. Returns `None` while the task runs.
    pub(super) fn reap(&mut self, t: Task) -> Option<Outcome> {
        let fail = || Fail {
            what: format!("join task {t}"),
            errno: Errno::EINVAL,
        };
        let Some(s) = self.tasks.get_mut(t as usize) else {
            return Some(Err(fail()));
        };
        if s.joined {
            return Some(Err(fail()));
        }
        let outcome = s.outcome.take();
        s.joined = outcome.is_some();
        outcome
    }
    pub(super) fn cgroup(&mut self) -> CgroupId {
        self.cgroups += 1;
        CgroupId(self.cgroups)
    }
}
