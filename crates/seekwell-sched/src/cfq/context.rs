//! Data of an io context: its queues, its think time, and which context is active.

use super::numbers::{SeekMean, ThinkTime};
use super::sorted::NONE;
use crate::cx::Cx;
use seekwell_core::{IoPrio, IocId, Side};

/// CFQ's data for an io context.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ctx {
    /// Queues of the context: `[async, sync]`. A queue that does not exist is [`NONE`].
    pub queue: [u32; 2],
    /// Think time of the context, measured from its first request on.
    pub think: ThinkTime,
    /// Mean seek distance (used by 2.6; 3.x records seeks per queue).
    pub seek: SeekMean,
    /// True if the context has had a request.
    pub met: bool,
    /// Generation of the last ioprio change that CFQ noticed.
    pub prio_gen: u32,
    /// The ioprio for which async queues are looked up (4.0 only).
    pub ioprio: IoPrio,
    /// True if the context moved to another cgroup after its last request.
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

/// The active context. It is the context of the first request that was dispatched since the queue
/// became active. Its think time decides how long the device idles for the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Active {
    #[default]
    None,
    Of(IocId),
    /// The index of the context was freed, but its data are kept.
    Gone,
}

/// All io contexts of the device.
#[derive(Debug, Default)]
pub(super) struct Ctxs {
    all: Side<Ctx>,
    active: Active,
    ghost: Ctx,
}

impl Ctxs {
    /// Returns the data of a context, and creates the entry if needed.
    #[inline]
    pub fn at(&mut self, ioc: IocId) -> &mut Ctx {
        self.all.at(ioc.idx())
    }
    /// Returns the data of a context, if it has an entry.
    #[inline]
    pub fn get(&self, ioc: IocId) -> Option<&Ctx> {
        self.all.try_get(ioc.idx())
    }
    /// Returns the sync or async queue of a context, if it exists.
    #[inline]
    pub fn queue(&self, ioc: IocId, sync: bool) -> Option<u32> {
        let q = self.all.try_get(ioc.idx())?.queue[sync as usize];
        (q != NONE).then_some(q)
    }
    /// Resets the data of a context that is new or whose index is reused.
    pub fn attach(&mut self, ioc: IocId) {
        *self.at(ioc) = Ctx::default();
    }
    /// Keeps the data of the active context, because its index will be freed.
    pub fn release(&mut self, ioc: IocId) {
        if self.active == Active::Of(ioc) {
            self.active = Active::Gone;
            self.ghost = *self.at(ioc);
        }
        *self.at(ioc) = Ctx::default();
    }
    /// Returns true if there is an active context.
    #[inline]
    pub fn has_active(&self) -> bool {
        self.active != Active::None
    }
    /// Returns the data of the active context.
    #[inline]
    pub fn active(&self) -> Option<&Ctx> {
        match self.active {
            Active::None => None,
            Active::Of(ioc) => self.get(ioc),
            Active::Gone => Some(&self.ghost),
        }
    }
    /// Returns true if `ioc` is the active context.
    pub fn is_active(&self, ioc: IocId) -> bool {
        self.active == Active::Of(ioc)
    }
    /// Returns true if the process of the active context has not exited.
    #[inline]
    pub fn active_alive(&self, cx: &Cx) -> bool {
        matches!(self.active, Active::Of(ioc) if cx.alive(ioc))
    }
    /// Makes `ioc` the active context, unless the present slice already has one.
    #[inline]
    pub fn activate(&mut self, ioc: IocId) {
        if self.active == Active::None {
            self.active = Active::Of(ioc);
        }
    }
    /// Removes the active context, at the end of a slice.
    #[inline]
    pub fn deactivate(&mut self) {
        self.active = Active::None;
    }
    /// Returns the number of contexts with an index below `capacity` that use `queue`.
    pub fn pointing_at(&self, queue: u32, capacity: usize) -> usize {
        (0..capacity)
            .filter_map(|i| self.all.try_get(i))
            .map(|c| c.queue.iter().filter(|q| **q == queue).count())
            .sum()
    }
}
