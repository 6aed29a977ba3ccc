//! Io contexts: the submitting task, its priority, and whether it is still alive.

use std::fmt;

/// The kernel generation of the block layer. Behaviour differs between these generations only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Era {
    /// 2.6.18 (RHEL 5).
    K2_6_18,
    /// 2.6.24, 2.6.25.
    K2_6_24,
    /// 3.4 (Ubuntu 12.04, phones).
    K3_4,
    /// 4.0, the last single-queue form.
    K4_0,
    /// blk-mq, 6.1 form.
    Mq6_1,
    /// blk-mq, 6.12 form: the default for a scheduler that is named without a version.
    Mq,
    /// Like `Mq`, and ext4 keeps its cache in large folios.
    Mq6_16,
    /// Like `Mq6_16`, and requests may be 4 MiB long: 6.17 and later.
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
    /// Whether it is the multi-queue layer.
    pub const fn is_mq(self) -> bool {
        matches!(self, Era::Mq6_1 | Era::Mq | Era::Mq6_16 | Era::Mq6_18)
    }
    /// The year in which its first kernel was released.
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
    /// The kernel's name, for messages.
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
    /// Not set: derived from CPU policy and nice.
    #[default]
    None = 0,
    /// Real time.
    Rt = 1,
    /// Best effort.
    Be = 2,
    /// Idle.
    Idle = 3,
}

/// CPU scheduling policy: it decides the class of a task without ioprio.
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

/// Class and level; level 0 is the most urgent of 0..=7.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct IoPrio {
    /// Class.
    pub class: Class,
    /// Level inside RT and BE.
    pub level: u8,
}

impl IoPrio {
    /// "None": the priority of a task that never called ioprio_set.
    pub const NONE: IoPrio = IoPrio {
        class: Class::None,
        level: 0,
    };
    /// Best effort at a level.
    pub const fn be(level: u8) -> Self {
        IoPrio {
            class: Class::Be,
            level,
        }
    }
    /// Converts the numbers of a case file; `None` if the class is above 3 or the level above 7.
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

/// A task of the modelled machine, by number. Several tasks may share an io context.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub u32);

/// A block-I/O cgroup, by number; 0 is the root.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CgroupId(pub u32);

impl CgroupId {
    /// The root group.
    pub const ROOT: CgroupId = CgroupId(0);
}

/// Index of an io context in one queue's [`Contexts`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IocId(pub u32);

impl IocId {
    /// The index for side tables.
    pub const fn idx(self) -> usize {
        self.0 as usize
    }
}

/// One io context as a queue sees it.
#[derive(Clone, Debug)]
pub struct IoContext {
    /// The number by which it is known outside (a pid in cases and traces).
    pub task: TaskId,
    /// Whether a task still uses it. A dead context still owns its queued requests.
    pub alive: bool,
    /// Set by ioprio_set; class `None` if never set.
    pub ioprio: IoPrio,
    /// The task's nice value, -20..=19.
    pub nice: i8,
    /// The task's CPU policy.
    pub policy: Policy,
    /// Cgroup it belongs to.
    pub cgroup: CgroupId,
    /// Incremented at each ioprio change.
    pub prio_gen: u32,
    /// Number of requests that refer to it, queued or in flight.
    pub requests: u32,
    /// Number of tasks that use it.
    pub users: u32,
}

impl IoContext {
    /// Class and level in force: the ioprio if set, else derived from policy and nice. Kernels
    /// before 2.6.26 always use best effort for a task without ioprio.
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

/// The io contexts of a queue. An index stays valid while the context lives or has requests.
#[derive(Default, Debug)]
pub struct Contexts {
    all: Vec<IoContext>,
    free: Vec<u32>,
    /// (task, index) of living contexts, sorted by task.
    by_task: Vec<(TaskId, u32)>,
}

impl Contexts {
    /// An empty set of contexts.
    pub fn new() -> Self {
        Self::default()
    }
    /// The living context of `task`.
    #[inline]
    pub fn find(&self, task: TaskId) -> Option<IocId> {
        // Tasks are usually numbered from 0 or 1, and then found at their own number.
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
    /// Creates a living context for `task`, which must have none.
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
    /// `task` also uses the living context `id` (CLONE_IO).
    pub fn share(&mut self, task: TaskId, id: IocId) {
        self.all[id.idx()].users += 1;
        let pos = self.by_task.partition_point(|e| e.0 < task);
        self.by_task.insert(pos, (task, id.0));
    }
    /// `task` stops using it. True if it was the last task: the context is then dead.
    pub fn leave(&mut self, task: TaskId, id: IocId) -> bool {
        if let Ok(i) = self.by_task.binary_search_by_key(&task, |e| e.0) {
            self.by_task.remove(i);
        }
        let c = &mut self.all[id.idx()];
        c.users -= 1;
        c.alive = c.users > 0;
        !c.alive
    }
    /// Frees the index of a dead context without requests.
    pub fn release(&mut self, id: IocId) {
        debug_assert!(!self.all[id.idx()].alive && self.all[id.idx()].requests == 0);
        self.free.push(id.0);
    }
    /// Read access.
    pub fn get(&self, id: IocId) -> &IoContext {
        &self.all[id.idx()]
    }
    /// Write access.
    pub fn get_mut(&mut self, id: IocId) -> &mut IoContext {
        &mut self.all[id.idx()]
    }
    /// Number of indices used so far, living or dead: the size that a side table needs.
    pub fn capacity(&self) -> usize {
        self.all.len()
    }
    /// Living contexts, by task number.
    pub fn living(&self) -> impl Iterator<Item = IocId> + '_ {
        self.by_task.iter().map(|e| IocId(e.1))
    }
}
