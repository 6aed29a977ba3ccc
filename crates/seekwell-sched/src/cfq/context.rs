//! Data per process: the queues of a context, its think time, and which context is active.

use super::numbers::{SeekMean, ThinkTime};
use super::sorted::NONE;
use crate::cx::Cx;
use seekwell_core::{IoPrio, IocId, Side};

/// CFQ's data for an io context.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ctx {
    /// Its queues, `[async, sync]`; [`NONE`] if a queue does not exist yet.
    pub queue: [u32; 2],
    /// Think time. Its clock starts at the first request.
    pub think: ThinkTime,
    /// Seek distance (2.6 keeps it per context, 3.x per queue).
    pub seek: SeekMean,
    /// Whether it has had a request.
    pub met: bool,
    /// Generation of the last ioprio change that was noticed.
    pub prio_gen: u32,
    /// The ioprio used to look up async queues (4.0).
    pub ioprio: IoPrio,
    /// It moved to another cgroup after its last request.
    pub moved: bool,
}

impl Default for Ctx {
    fn default() -> Self {
        Ctx {
            queue: [NONE; 2],
            think: ThinkTime::default(),
            seek: SeekMean::default(),
            met: false,
            prio_gen: 0,
            ioprio: IoPrio::NONE,
            moved: false,
        }
    }
}

/// The context by which the active queue is judged: the context of the first request dispatched
/// since the queue became active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Active {
    #[default]
    None,
    Of(IocId),
    /// Its index was freed meanwhile; its data are kept.
    Gone,
}

/// All contexts of a queue.
#[derive(Debug, Default)]
pub(super) struct Ctxs {
    all: Side<Ctx>,
    active: Active,
    ghost: Ctx,
}

impl Ctxs {
    /// The data of a context.
    #[inline]
    pub fn at(&mut self, ioc: IocId) -> &mut Ctx {
        self.all.at(ioc.idx())
    }
    /// The data of a context that has had a request.
    #[inline]
    pub fn get(&self, ioc: IocId) -> Option<&Ctx> {
        self.all.try_get(ioc.idx())
    }
    /// The queue of `kind` (0 async, 1 sync), if it has one.
    #[inline]
    pub fn queue(&self, ioc: IocId, sync: bool) -> Option<u32> {
        let q = self.all.try_get(ioc.idx())?.queue[sync as usize];
        (q != NONE).then_some(q)
    }
    /// Sets up a new context, or a reused index.
    pub fn attach(&mut self, ioc: IocId) {
        *self.at(ioc) = Ctx::default();
    }
    /// The index will be freed.
    pub fn release(&mut self, ioc: IocId) {
        if self.active == Active::Of(ioc) {
            self.active = Active::Gone;
            self.ghost = *self.at(ioc);
        }
        *self.at(ioc) = Ctx::default();
    }
    /// Whether there is an active context.
    #[inline]
    pub fn has_active(&self) -> bool {
        self.active != Active::None
    }
    /// The active context's data.
    #[inline]
    pub fn active(&self) -> Option<&Ctx> {
        match self.active {
            Active::None => None,
            Active::Of(ioc) => self.get(ioc),
            Active::Gone => Some(&self.ghost),
        }
    }
    /// Whether this context is the active one.
    pub fn is_active(&self, ioc: IocId) -> bool {
        self.active == Active::Of(ioc)
    }
    /// Whether the active context's process is alive.
    #[inline]
    pub fn active_alive(&self, cx: &Cx) -> bool {
        matches!(self.active, Active::Of(ioc) if cx.alive(ioc))
    }
    /// Sets the active context, unless one was set since the last expiry.
    #[inline]
    pub fn activate(&mut self, ioc: IocId) {
        if self.active == Active::None {
            self.active = Active::Of(ioc);
        }
    }
    /// Clears the active context at the end of a slice.
    #[inline]
    pub fn deactivate(&mut self) {
        self.active = Active::None;
    }
    /// How many contexts (below `capacity`) use `queue`.
    pub fn pointing_at(&self, queue: u32, capacity: usize) -> usize {
        (0..capacity)
            .filter_map(|i| self.all.try_get(i))
            .map(|c| c.queue.iter().filter(|q| **q == queue).count())
            .sum()
    }
}
