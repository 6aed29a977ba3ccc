//! All state of one modelled machine above its block layer.

use crate::call::{Call, Outcome, Ret, TaskConfig};
use crate::config::Config;
use crate::io::{Bios, Groups};
use crate::rt::{Actor, Rt};
use crate::stats::{Mark, Stats};
use seekwell_core::{BioDone, BioSink, Control, Instant, TaskId};

/// One task: a program's or the kernel's own.
#[derive(Default)]
pub(crate) struct Task {
    pub(crate) config: TaskConfig,
    pub(crate) call: Option<Call>,
    /// Waits for a call: its future must be polled to take one.
    pub(crate) idle: bool,
    pub(crate) exists: bool,
    pub(crate) exiting: bool,
    /// Result of a call that ended on the short path and only has to pay its time.
    pub(crate) short: Option<Ret>,
    pub(crate) out: Outcome,
}

pub(crate) struct World {
    pub(crate) cfg: Config,
    pub(crate) rt: Rt,
    pub(crate) sink: Box<dyn BioSink>,
    /// What the sink said last; asked again after everything it was told.
    pub(crate) sink_next: Option<Instant>,
    pub(crate) done: Vec<BioDone>,
    pub(crate) bios: Bios,
    pub(crate) groups: Groups,
    /// Actors asleep in the block layer for want of a request.
    pub(crate) starved: Vec<Actor>,
    pub(crate) tasks: Vec<Task>,
    /// Calls that ended at this instant.
    pub(crate) ended: Vec<(TaskId, Ret)>,
    pub(crate) stats: Stats,
    pub(crate) marks: Vec<(Instant, Mark)>,
}

impl World {
    pub(crate) fn new(cfg: Config, sink: Box<dyn BioSink>) -> Self {
        let rt = Rt::new(Instant::START, cfg.cores, cfg.cpu.slice_ns);
        World {
            rt,
            sink_next: sink.next_event(),
            sink,
            done: Vec::new(),
            bios: Bios::default(),
            groups: Groups::default(),
            starved: Vec::new(),
            tasks: Vec::new(),
            ended: Vec::new(),
            stats: Stats::default(),
            marks: Vec::new(),
            cfg,
        }
    }
    pub(crate) fn now(&self) -> Instant {
        self.rt.now
    }
    /// CPU time an actor spends; paid where it sleeps or its call ends.
    #[inline]
    pub(crate) fn spend(&mut self, a: Actor, ns: u64) {
        self.rt.debt[a as usize] += ns;
    }
    pub(crate) fn mark(&mut self, m: Mark) {
        if self.cfg.marks {
            let now = self.rt.now;
            self.marks.push((now, m));
        }
    }
    pub(crate) fn add_task(&mut self, a: Actor, config: TaskConfig) {
        self.rt.add_actor(a);
        if self.tasks.len() <= a as usize {
            self.tasks.resize_with(a as usize + 1, Task::default);
        }
        let now = self.now();
        let t = TaskId(a);
        self.sink
            .control(now, Control::Nice(t, config.nice, config.policy));
        self.sink.control(now, Control::Prio(t, config.ioprio));
        if config.cgroup != seekwell_core::CgroupId::ROOT {
            self.sink.control(now, Control::Cgroup(t, config.cgroup));
        }
        if let Some(with) = config.share_io {
            self.sink.control(now, Control::Share(t, with));
        }
        self.sink_changed();
        let task = &mut self.tasks[a as usize];
        (task.config, task.exists) = (config, true);
    }
    pub(crate) fn sink_changed(&mut self) {
        self.sink_next = self.sink.next_event();
    }
}
