//! The kernel as an executor of programs sees it: calls in, results out, on the virtual clock.

use crate::call::{Call, Outcome, Ret, TaskConfig};
use crate::config::Config;
use crate::raw;
use crate::rt::{Actor, K, Timer, parked, pay, sleep_until};
use crate::stats::{Mark, Stats};
use crate::world::World;
use seekwell_core::{BioSink, CgroupId, Control, Errno, Instant, IoPrio, Op, TaskId};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

/// Task numbers below this are the kernel's own.
pub const FIRST_USER_TASK: u32 = 32;

type Program = Pin<Box<dyn Future<Output = ()>>>;

/// A modelled kernel over a disk.
///
/// Time is the caller's: it never goes back, and everything due before `now` has been advanced
/// through before a call is made at `now`.
pub struct Kernel {
    k: K,
    programs: Vec<Option<Program>>,
}

impl Kernel {
    /// Boots at [`Instant::START`].
    pub fn new(config: Config, disk: Box<dyn BioSink>) -> Self {
        Kernel {
            k: K::new(World::new(config, disk)),
            programs: (0..FIRST_USER_TASK).map(|_| None).collect(),
        }
    }
    /// A new task; it may call at once.
    pub fn task_new(&mut self, now: Instant, config: TaskConfig) -> TaskId {
        let a = self.programs.len() as Actor;
        {
            let mut w = self.k.w();
            w.rt.now = now.max(w.rt.now);
            w.add_task(a, config);
            w.tasks[a as usize].idle = true;
        }
        self.programs.push(Some(Box::pin(serve(self.k.clone(), a))));
        TaskId(a)
    }
    /// The task exits, and its io context if nobody shares it. It must have no call under way.
    pub fn task_exit(&mut self, now: Instant, tid: TaskId) {
        let mut w = self.k.w();
        w.rt.now = now.max(w.rt.now);
        let now = w.now();
        let Some(t) = w.tasks.get_mut(tid.0 as usize).filter(|t| t.exists) else {
            return;
        };
        debug_assert!(t.call.is_none(), "a task exits between calls");
        (t.exists, t.idle) = (false, false);
        w.sink.control(now, Control::Exit(tid));
        w.sink_changed();
        drop(w);
        self.programs[tid.0 as usize] = None;
    }
    /// ioprio_set.
    pub fn set_ioprio(&mut self, now: Instant, tid: TaskId, ioprio: IoPrio) {
        self.control(now, Control::Prio(tid, ioprio));
        if let Some(t) = self.k.w().tasks.get_mut(tid.0 as usize) {
            t.config.ioprio = ioprio;
        }
    }
    /// Moves a task to another cgroup.
    pub fn set_cgroup(&mut self, now: Instant, tid: TaskId, cgroup: CgroupId) {
        self.control(now, Control::Cgroup(tid, cgroup));
        if let Some(t) = self.k.w().tasks.get_mut(tid.0 as usize) {
            t.config.cgroup = cgroup;
        }
    }
    /// Tells the block layer something (a cgroup's weight, for instance).
    pub fn control(&mut self, now: Instant, what: Control) {
        let mut w = self.k.w();
        w.rt.now = now.max(w.rt.now);
        let now = w.now();
        w.sink.control(now, what);
        w.sink_changed();
    }
    /// A task's next step. Its result comes out of [`Kernel::advance`], never from here.
    ///
    /// # Panics
    /// If the task does not exist or has a call under way.
    pub fn call(&mut self, now: Instant, tid: TaskId, call: Call) {
        {
            let mut w = self.k.w();
            w.rt.now = now.max(w.rt.now);
            let t = &mut w.tasks[tid.0 as usize];
            assert!(t.exists, "task {} does not exist", tid.0);
            assert!(t.idle, "task {} has a call under way", tid.0);
            t.idle = false;
            t.call = Some(call);
            w.rt.ready.push_back(tid.0);
        }
        self.run_ready();
    }
    /// When something happens next by itself.
    pub fn next_event(&self) -> Option<Instant> {
        let w = self.k.w();
        if !w.ended.is_empty() || !w.rt.ready.is_empty() {
            return Some(w.now());
        }
        match (w.rt.next_timer(), w.sink_next) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    /// Runs to `to`, or to the first instant before it at which calls end; these are appended, in
    /// the order of their ends. The caller answers (with new calls) before it advances further.
    pub fn advance(&mut self, to: Instant, out: &mut Vec<(TaskId, Ret)>) {
        loop {
            self.run_ready();
            {
                let mut w = self.k.w();
                if !w.ended.is_empty() {
                    out.append(&mut w.ended);
                    return;
                }
                let disk = w.sink_next.filter(|t| *t <= to);
                let timer = w.rt.next_timer().filter(|t| *t <= to);
                let Some(t) = disk.into_iter().chain(timer).min() else {
                    w.rt.now = w.rt.now.max(to);
                    return;
                };
                w.rt.now = w.rt.now.max(t);
                if disk.is_some_and(|d| d <= t) {
                    w.run_disk();
                }
                while let Some(t) = w.rt.pop_due() {
                    match t {
                        Timer::Wake(a, n) => w.rt.timer_wake(a, n),
                        Timer::Core(c, n) => {
                            if let Some(a) = w.rt.core_event(c, n) {
                                w.cpu_had(a);
                            }
                        }
                    }
                }
            }
        }
    }
    /// The last call's by-products.
    pub fn outcome(&self, tid: TaskId) -> Outcome {
        std::mem::take(&mut self.k.w().tasks[tid.0 as usize].out)
    }
    /// Now.
    pub fn now(&self) -> Instant {
        self.k.w().now()
    }
    /// Counters.
    pub fn stats(&self) -> Stats {
        self.k.w().stats
    }
    /// Marks since the last time they were taken.
    pub fn take_marks(&mut self) -> Vec<(Instant, Mark)> {
        std::mem::take(&mut self.k.w().marks)
    }
    /// Bios with the block layer.
    pub fn in_flight(&self) -> u32 {
        self.k.w().bios.in_flight
    }

    fn run_ready(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            let Some(a) = self.k.w().rt.ready.pop_front() else {
                return;
            };
            if let Some(p) = &mut self.programs[a as usize] {
                // A kernel thread or a program's server never returns.
                let _ = p.as_mut().poll(&mut cx);
            }
        }
    }
}

impl World {
    /// An actor has had the CPU it asked for.
    fn cpu_had(&mut self, a: Actor) {
        let t = &mut self.tasks[a as usize];
        match t.short.take() {
            Some(ret) => {
                t.idle = true;
                self.stats.calls += 1;
                self.ended.push((TaskId(a), ret));
            }
            None => self.rt.wake(a),
        }
    }
}

/// A task's life: takes calls and answers them.
async fn serve(k: K, a: Actor) {
    loop {
        let call = next_call(&k, a).await;
        let ret = perform(&k, a, call).await;
        let cost = k.w().cfg.cpu.call_ns;
        k.w().spend(a, cost);
        pay(&k, a).await;
        let mut w = k.w();
        w.stats.calls += 1;
        w.tasks[a as usize].idle = true;
        w.ended.push((TaskId(a), ret));
    }
}

async fn next_call(k: &K, a: Actor) -> Call {
    std::future::poll_fn(|_| match k.w().tasks[a as usize].call.take() {
        Some(c) => std::task::Poll::Ready(c),
        None => std::task::Poll::Pending,
    })
    .await
}

async fn perform(k: &K, a: Actor, call: Call) -> Ret {
    match call {
        Call::Compute(d) => {
            k.w().spend(a, d.0);
            Ok(0)
        }
        Call::Sleep(d) => {
            pay(k, a).await;
            let at = k.w().now() + d;
            sleep_until(k, a, at).await;
            Ok(0)
        }
        Call::RawRead { off, len, .. } => raw::direct(k, a, Op::Read, off, len).await,
        Call::RawWrite { off, len, .. } => raw::direct(k, a, Op::Write, off, len).await,
        Call::RawDiscard { off, len } => raw::direct(k, a, Op::Discard, off, len).await,
        Call::RawFlush => raw::flush(k, a).await.map(|()| 0),
        _ => {
            let _ = parked;
            Err(Errno::EOPNOTSUPP)
        }
    }
}
