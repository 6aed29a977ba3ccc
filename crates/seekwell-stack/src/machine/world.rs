//! The state of one modelled machine above its block layer.

use super::call::{Call, Outcome, Ret, TaskConfig};
use super::dirty::{Account, Bandwidth, Flusher};
use super::files::{Aio, File, Map};
use super::io::{Bios, Groups};
use super::landed::Conversions;
use super::log::Journal;
use crate::config::Config;
use crate::executor::{Actor, Rt, Runs};
use crate::fs::FileSystem;
use crate::memory::Cache;
use crate::stats::{Mark, Stats};
use seekwell_core::{BioDone, BioSink, CgroupId, Control, Instant, Nanos, OpenFlags, TaskId};

/// A task of a program, or a kernel thread.
#[derive(Default)]
pub(crate) struct Task {
    pub(crate) config: TaskConfig,
    pub(crate) call: Option<Call>,
    /// The task can accept a call.
    pub(crate) idle: bool,
    pub(crate) exists: bool,
    /// Result of a call that ended on the short path. The task still has to spend its CPU time.
    pub(crate) short: Option<Ret>,
    /// The task's call ends after calls that only read, wrote or computed.
    pub(crate) late: bool,
    pub(crate) out: Outcome,
    pub(crate) account: Account,
    /// Nesting depth of the task's open plugs.
    pub(crate) plugs: u8,
    /// Time for which the task has slept for free requests since its last action that was not a
    /// submission. Without these waits, the task would have submitted its next bio earlier by this
    /// time.
    pub(crate) held: Nanos,
}

pub(crate) struct World {
    pub(crate) cfg: Config,
    pub(crate) rt: Rt,
    pub(crate) sink: Box<dyn BioSink>,
    /// The last value of the sink's `next_event`. It is valid if `sink_stale` is false.
    sink_next: Option<Instant>,
    sink_stale: bool,
    pub(crate) done: Vec<BioDone>,
    pub(crate) bios: Bios,
    pub(crate) groups: Groups,
    /// Actors that sleep because the block layer had no free request.
    pub(crate) starved: Vec<Actor>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) files: Vec<File>,
    pub(crate) free_files: Vec<u32>,
    pub(crate) maps: Vec<Map>,
    pub(crate) aios: Vec<Aio>,
    pub(crate) cache: Cache,
    pub(crate) fs: FileSystem,
    pub(crate) journal: Journal,
    pub(crate) flusher: Flusher,
    pub(crate) conversions: Conversions,
    pub(crate) bw: Bandwidth,
    /// Number of tasks that are being throttled.
    pub(crate) throttled: u32,
    /// For each lock of the scheduler, the time at which it becomes free.
    pub(crate) locks: Vec<Instant>,
    /// Calls that ended at this instant.
    pub(crate) ended: Vec<(TaskId, Ret)>,
    pub(crate) stats: Stats,
    pub(crate) marks: Vec<(Instant, Mark)>,
}

impl Runs for World {
    #[inline]
    fn rt(&mut self) -> &mut Rt {
        &mut self.rt
    }
}

impl World {
    pub(crate) fn new(cfg: Config, mut sink: Box<dyn BioSink>) -> Self {
        sink.count_work(cfg.ablations.schedulers_cost());
        let c = &cfg.constants;
        let unlimited = cfg.ablations.no_cpu_limit;
        let start = Instant::START;
        let turns_ns = [c.slice_ns, c.sleeper_credit_ns, c.wakeup_granularity_ns];
        let rt = Rt::new(start, cfg.cores, turns_ns, unlimited, cfg.cpu_permille);
        let fs = FileSystem::make(&cfg, sink.capacity().0);
        let journal = Journal::new(fs.alloc.journal.clone());
        let mut w = World {
            rt,
            sink_next: None,
            sink_stale: true,
            sink,
            done: Vec::new(),
            bios: Bios::default(),
            groups: Groups::default(),
            starved: Vec::new(),
            tasks: Vec::new(),
            files: Vec::new(),
            free_files: Vec::new(),
            maps: Vec::new(),
            aios: Vec::new(),
            cache: Cache::new(cfg.cache_pages()),
            journal,
            flusher: Flusher::default(),
            conversions: Conversions::default(),
            bw: Bandwidth::new(c.bandwidth_first_pages),
            throttled: 0,
            locks: Vec::new(),
            ended: Vec::new(),
            stats: Stats::default(),
            marks: Vec::new(),
            fs,
            cfg,
        };
        let device = w.file_new(crate::fs::BDEV, OpenFlags::empty());
        debug_assert_eq!(device, super::files::DEVICE_FD);
        let direct = w.file_new(crate::fs::BDEV, OpenFlags::DIRECT);
        debug_assert_eq!(direct, super::files::DEVICE_DIRECT_FD);
        w.mounted();
        w
    }
    /// Loads the blocks that a mount reads (superblock, group descriptors and the root directory)
    /// into memory.
    fn mounted(&mut self) {
        let root = &self.fs.inodes[crate::fs::ROOT as usize];
        let groups = self.fs.alloc.blocks.div_ceil(crate::fs::GROUP);
        let last = self.fs.alloc.descriptor(groups.saturating_sub(1));
        let mut blocks: Vec<u32> = (0..=last).collect();
        blocks.push(self.fs.inode_block(crate::fs::ROOT));
        blocks.extend(root.map(0).map(|m| m.0));
        for b in blocks {
            let p = self.meta_page(b);
            self.cache.pages[p as usize].flags |= crate::memory::flag::UPTODATE;
            self.cache.settle(p);
        }
    }
    pub(crate) fn now(&self) -> Instant {
        self.rt.now
    }
    /// Charges CPU time to an actor. The actor spends it when it next sleeps or when its call ends.
    /// The kernel's own threads are not charged, because they wait much longer than they work.
    #[inline]
    pub(crate) fn spend(&mut self, a: Actor, ns: u64) {
        if a >= super::threads::FIRST_USER_TASK {
            self.rt.debt[a as usize] += ns;
        }
    }
    pub(crate) fn mark(&mut self, m: Mark) {
        let kept = match m {
            Mark::CommitBegin | Mark::CommitEnd(_) | Mark::Flush => self.cfg.commit_marks,
            Mark::ThrottleBegin | Mark::ThrottleEnd => self.cfg.marks,
        };
        if kept {
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
        if config.cgroup != CgroupId::ROOT {
            self.sink.control(now, Control::Cgroup(t, config.cgroup));
        }
        if let Some(with) = config.share_io {
            self.sink.control(now, Control::Share(t, with));
        }
        self.sink_changed();
        let task = &mut self.tasks[a as usize];
        (task.config, task.exists) = (config, true);
    }
    /// Marks the time of the sink's next event as stale, because the sink has changed.
    #[inline]
    pub(crate) fn sink_changed(&mut self) {
        self.sink_stale = true;
    }
    /// Returns the time of the sink's next event.
    #[inline]
    pub(crate) fn sink_next(&mut self) -> Option<Instant> {
        if std::mem::take(&mut self.sink_stale) {
            self.sink_next = self.sink.next_event();
        }
        self.sink_next
    }
}
