//! Io contexts: the task that submits, its priority, and whether it is alive.

use std::fmt;

/// The kernel generation of the block layer. Between kernels of one generation, behaviour does not
/// differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Era {
    /// 2.6.18 (RHEL 5).
    K2_6_18,
    /// 2.6.24, 2.6.25.
    K2_6_24,
    /// 3.4 (Ubuntu 12.04, phones).
    K3_4,
    /// 4.0, the last single-queue generation.
    K4_0,
    /// blk-mq as in 6.1.
    Mq6_1,
    /// blk-mq as in 6.12, the default for a scheduler that is named without a version.
    Mq,
    /// Like `Mq`, but ext4 keeps its page cache in large folios.
    Mq6_16,
    /// Like `Mq6_16`, but requests can be 4 MiB long (6.17 and later).
    Mq6_18,
}

impl Era {
    /// All generations, the oldest first.
    pub const ALL: [Era; 8] = [
        Era::K2_6_18,
        Era::K2_6_24,
        Era::K3_4,
        Era::K4_0,
        Era::Mq6_1,
        Era::Mq,
        Era::Mq6_16,
        Era::Mq6_18,
    ];
    /// Returns true for the multi-queue layer.
    pub const fn is_mq(self) -> bool {
        matches!(self, Era::Mq6_1 | Era::Mq | Era::Mq6_16 | Era::Mq6_18)
    }
    /// Returns the year in which the first kernel of the generation was released.
    pub const fn year(self) -> u16 {
        match self {
            Era::K2_6_18 => 2006,
            Era::K2_6_24 => 2008,
            Era::K3_4 => 2012,
            Era::K4_0 => 2015,
            Era::Mq6_1 => 2022,
            Era::Mq => 2024,
            Era::Mq6_16 | Era::Mq6_18 => 2025,
        }
    }
    /// Returns the name of the generation's kernel, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Era::K2_6_18 => "2.6.18",
            Era::K2_6_24 => "2.6.24",
            Era::K3_4 => "3.4",
            Era::K4_0 => "4.0",
            Era::Mq6_1 => "6.1",
            Era::Mq => "6.12",
            Era::Mq6_16 => "6.16",
            Era::Mq6_18 => "6.18",
        }
    }
}

/// I/O scheduling class (ioprio_set(2)).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Class {
    /// Not set. The class is derived from CPU policy and nice value.
    #[default]
    None = 0,
    /// Real time.
    Rt = 1,
    /// Best effort.
    Be = 2,
    /// Idle.
    Idle = 3,
}

/// CPU scheduling policy. It determines the class of a task without ioprio.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub enum Policy {
    /// SCHED_OTHER, SCHED_BATCH.
    #[default]
    Normal,
    /// SCHED_FIFO, SCHED_RR.
    RealTime,
    /// SCHED_IDLE.
    Idle,
}

/// An I/O priority: class and level. Levels are 0..=7, and 0 is the most urgent.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct IoPrio {
    /// Class.
    pub class: Class,
    /// Level inside the classes RT and BE.
    pub level: u8,
}

impl IoPrio {
    /// The priority of a task that did not call ioprio_set.
    pub const NONE: IoPrio = IoPrio {
        class: Class::None,
        level: 0,
    };
    /// Returns a best-effort priority.
    pub const fn be(level: u8) -> Self {
        IoPrio {
            class: Class::Be,
            level,
        }
    }
    /// Converts the numbers in a case file. Returns `None` if the class is above 3 or the level is
    /// above 7.
    pub const fn from_numbers(class: u64, level: u64) -> Option<Self> {
        if level > 7 {
            return None;
        }
        let class = match class {
            0 => Class::None,
            1 => Class::Rt,
            2 => Class::Be,
            3 => Class::Idle,
            _ => return None,
        };
        Some(IoPrio {
            class,
            level: level as u8,
        })
    }
}

impl fmt::Display for IoPrio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            Class::None => f.write_str("none"),
            Class::Rt => write!(f, "RT{}", self.level),
            Class::Be => write!(f, "BE{}", self.level),
            Class::Idle => f.write_str("IDLE"),
        }
    }
}

/// Number of a task of the modelled machine. Several tasks can share an io context.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub u32);

/// Number of a block-I/O cgroup; 0 is the root.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CgroupId(pub u32);

impl CgroupId {
    /// The root cgroup.
    pub const ROOT: CgroupId = CgroupId(0);
}

/// Index of an io context in the [`Contexts`] of one queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IocId(pub u32);

impl IocId {
    /// Returns the index for side tables.
    pub const fn idx(self) -> usize {
        self.0 as usize
    }
}

/// An io context, with the data that a queue needs.
#[derive(Clone, Debug)]
pub struct IoContext {
    /// Number of the task in cases and traces (a pid).
    pub task: TaskId,
    /// True while a task uses the context. Later the context can still have queued requests.
    pub alive: bool,
    /// The priority set by ioprio_set. Its class is `None` if it was not set.
    pub ioprio: IoPrio,
    /// The task's nice value, -20..=19.
    pub nice: i8,
    /// The task's CPU policy.
    pub policy: Policy,
    /// The cgroup of the context.
    pub cgroup: CgroupId,
    /// Counter of ioprio changes.
    pub prio_gen: u32,
    /// Number of requests, queued or in flight, that refer to the context.
    pub requests: u32,
    /// Number of tasks that use the context.
    pub users: u32,
}

impl IoContext {
    /// Returns the class and level in force: the ioprio if it is set, otherwise values derived from
    /// policy and nice value. Kernels before 2.6.26 use best effort for every task without ioprio.
    pub fn effective(&self, era: Era) -> IoPrio {
        if self.ioprio.class != Class::None {
            return self.ioprio;
        }
        let level = ((self.nice as i32 + 20) / 5) as u8;
        let class = match self.policy {
            _ if era <= Era::K2_6_24 => Class::Be,
            Policy::Normal => Class::Be,
            Policy::RealTime => Class::Rt,
            Policy::Idle => Class::Idle,
        };
        IoPrio { class, level }
    }
}

/// The io contexts of a queue. An index is valid while the context has a task or requests.
#[derive(Default, Debug)]
pub struct Contexts {
    all: Vec<IoContext>,
    free: Vec<u32>,
    /// Pairs of task and index for contexts that have a task, sorted by task.
    by_task: Vec<(TaskId, u32)>,
}

impl Contexts {
    /// Returns an empty set of contexts.
    pub fn new() -> Self {
        Self::default()
    }
    /// Returns the context of `task`, if it has one.
    #[inline]
    pub fn find(&self, task: TaskId) -> Option<IocId> {
        // Tasks are usually numbered from 0 or 1. Then the index is the task's number, or one less.
        for guess in [task.0 as usize, (task.0 as usize).wrapping_sub(1)] {
            if let Some(e) = self.by_task.get(guess)
                && e.0 == task
            {
                return Some(IocId(e.1));
            }
        }
        let i = self.by_task.binary_search_by_key(&task, |e| e.0).ok()?;
        Some(IocId(self.by_task[i].1))
    }
    /// Creates a context for `task`, which must not have one.
    pub fn create(&mut self, task: TaskId, ioprio: IoPrio, cgroup: CgroupId) -> IocId {
        let ctx = IoContext {
            task,
            alive: true,
            ioprio,
            nice: 0,
            policy: Policy::Normal,
            cgroup,
            prio_gen: 0,
            requests: 0,
            users: 1,
        };
        let id = match self.free.pop() {
            Some(i) => {
                self.all[i as usize] = ctx;
                i
            }
            None => {
                self.all.push(ctx);
                (self.all.len() - 1) as u32
            }
        };
        let pos = self.by_task.partition_point(|e| e.0 < task);
        debug_assert!(
            self.by_task.get(pos).is_none_or(|e| e.0 != task),
            "one context a task"
        );
        self.by_task.insert(pos, (task, id));
        IocId(id)
    }
    /// Lets `task` share the context `id` (CLONE_IO).
    pub fn share(&mut self, task: TaskId, id: IocId) {
        self.all[id.idx()].users += 1;
        let pos = self.by_task.partition_point(|e| e.0 < task);
        self.by_task.insert(pos, (task, id.0));
    }
    /// Ends the use of the context by `task`. Returns true if no task uses it any more.
    pub fn leave(&mut self, task: TaskId, id: IocId) -> bool {
        if let Ok(i) = self.by_task.binary_search_by_key(&task, |e| e.0) {
            self.by_task.remove(i);
        }
        let c = &mut self.all[id.idx()];
        c.users -= 1;
        c.alive = c.users > 0;
        !c.alive
    }
    /// Frees the index of a context that has no task and no requests.
    pub fn release(&mut self, id: IocId) {
        debug_assert!(!self.all[id.idx()].alive && self.all[id.idx()].requests == 0);
        self.free.push(id.0);
    }
    /// Returns the context with this index.
    pub fn get(&self, id: IocId) -> &IoContext {
        &self.all[id.idx()]
    }
    /// Returns the context with this index, mutable.
    pub fn get_mut(&mut self, id: IocId) -> &mut IoContext {
        &mut self.all[id.idx()]
    }
    /// Returns the number of indices used so far, which is the size that a side table needs.
    pub fn capacity(&self) -> usize {
        self.all.len()
    }
    /// Returns the contexts that have a task, by task number.
    pub fn living(&self) -> impl Iterator<Item = IocId> + '_ {
        self.by_task.iter().map(|e| IocId(e.1))
    }
}
