//! Bios in progress: the tasks that wait for them, and the effects of their completion.

use super::K;
use super::files::Notify;
use super::threads::FIRST_USER_TASK;
use super::world::World;
use crate::executor::{Actor, Sleep, parked};
use seekwell_core::{
    Bio, BioDone, BioId, Control, Flags, Instant, List, Nanos, Op, Sector, Sectors, TaskId,
};

pub(crate) const NIL: u32 = u32::MAX;

/// The effect of a bio's completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Target {
    /// The completion has no effect except on its group.
    #[default]
    Plain,
    /// Pages of a file have been read.
    Read { ino: u32, idx: u32, n: u32 },
    /// Pages of a file have been written.
    Write { ino: u32, idx: u32, n: u32 },
    /// A metadata block is in the journal.
    Log { meta: u32 },
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BioSlot {
    pub(crate) target: Target,
    pub(crate) group: u32,
    pub(crate) wait: List,
    used: bool,
}

/// Bios in progress, indexed by number.
#[derive(Default, Debug)]
pub(crate) struct Bios {
    all: Vec<BioSlot>,
    free: Vec<u32>,
    made: u64,
    pub(crate) in_flight: u32,
}

const SLOT_BITS: u32 = 24;

impl Bios {
    /// Takes a number for a new bio.
    ///
    /// This function is inlined, because a `target` that is passed through memory is read in larger
    /// pieces than it was written in. Such a read stalls the CPU.
    #[inline(always)]
    fn alloc(&mut self, target: Target, group: u32) -> (u32, BioId) {
        let i = match self.free.pop() {
            Some(i) => i,
            None => self.one_more(),
        };
        self.all[i as usize] = BioSlot {
            target,
            group,
            wait: List::new(),
            used: true,
        };
        self.made += 1;
        self.in_flight += 1;
        (i, BioId(self.made << SLOT_BITS | u64::from(i)))
    }
    #[cold]
    fn one_more(&mut self) -> u32 {
        self.all.push(BioSlot::default());
        (self.all.len() - 1) as u32
    }
    #[cfg(test)]
    pub(crate) fn is_under_way(&self, i: u32) -> bool {
        self.all.get(i as usize).is_some_and(|b| b.used)
    }
    pub(crate) fn get_mut(&mut self, i: u32) -> &mut BioSlot {
        &mut self.all[i as usize]
    }
}

/// A group of bios that one actor waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Group {
    pub(crate) pending: u32,
    pub(crate) error: bool,
    pub(crate) wait: List,
    notify: Option<Notify>,
}

#[derive(Default, Debug)]
pub(crate) struct Groups {
    all: Vec<Group>,
    free: Vec<u32>,
}

impl Groups {
    pub(crate) fn alloc(&mut self) -> u32 {
        match self.free.pop() {
            Some(i) => {
                self.all[i as usize] = Group::default();
                i
            }
            None => {
                self.all.push(Group::default());
                (self.all.len() - 1) as u32
            }
        }
    }
    pub(crate) fn get(&self, g: u32) -> &Group {
        &self.all[g as usize]
    }
    pub(crate) fn get_mut(&mut self, g: u32) -> &mut Group {
        &mut self.all[g as usize]
    }
    pub(crate) fn free(&mut self, g: u32) {
        self.free.push(g);
    }
}

/// The properties of a bio to be submitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    pub(crate) target: Target,
    pub(crate) group: u32,
    /// Mean number of sectors that are contiguous in memory.
    pub(crate) segment: u16,
}

impl World {
    /// Returns the flags of a write that a task waits for.
    pub(crate) fn sync_flags(&self) -> Flags {
        let c = &self.cfg.constants;
        let mut f = Flags::empty();
        f.set(Flags::SYNC, c.sync_marked != 0);
        f.set(
            Flags::NOIDLE,
            c.noidle_marked != 0 && !self.cfg.ablations.no_noidle,
        );
        f
    }
    /// Returns the flags of a write by actor `a` that no task waits for.
    pub(crate) fn background_flags(&self, a: Actor) -> Flags {
        let mut f = Flags::empty();
        let flusher = a < FIRST_USER_TASK;
        f.set(
            Flags::BACKGROUND,
            flusher && self.cfg.constants.background_marked != 0,
        );
        f
    }
    /// Returns the flags of reads of directories and inodes.
    pub(crate) fn meta_flags(&self) -> Flags {
        let c = &self.cfg.constants;
        let mut f = Flags::empty();
        f.set(Flags::META, c.meta_marked != 0);
        f.set(Flags::PRIO, c.prio_marked != 0);
        f
    }
    /// Returns the flags of reads of bitmaps.
    pub(crate) fn bitmap_flags(&self) -> Flags {
        if self.cfg.constants.bitmaps_marked != 0 {
            self.meta_flags()
        } else {
            Flags::empty()
        }
    }
    /// Submits a bio to the block layer. The submitter must then await [`after_submit`].
    #[inline(always)]
    pub(crate) fn submit(&mut self, a: Actor, want: Want) -> u32 {
        let (slot, id) = self.bios.alloc(want.target, want.group);
        self.send(a, id, want);
        slot
    }
    fn send(&mut self, a: Actor, id: BioId, want: Want) {
        if want.group != NIL {
            self.groups.all[want.group as usize].pending += 1;
        }
        let task = &self.tasks[a as usize].config;
        let bio = Bio {
            id,
            op: want.op,
            flags: want.flags,
            sector: Sector(want.sector),
            sectors: Sectors(want.sectors),
            task: TaskId(a),
            ioprio: None,
            cgroup: task.cgroup,
            cpu: self.rt.cpu_of(a),
            segment: want.segment,
        };
        self.stats.bio(&bio);
        let held = self.tasks[a as usize].held;
        let now = self.now();
        self.sink.submit_asked(now, Instant(now.0 - held.0), bio);
        self.sink_changed();
        self.schedules(a);
    }
    /// Charges the submitter for the CPU time of the scheduler. Also charges the time for which it
    /// spins while it waits for the scheduler's lock. The kernel's own threads are not charged. The
    /// scheduler gets a request without delay. Its CPU time delays only the submitter's next
    /// request.
    pub(crate) fn schedules(&mut self, a: Actor) {
        let Some(work) = self.sink.take_work() else {
            return;
        };
        if a < FIRST_USER_TASK {
            return;
        }
        let all = u64::from(work.requests) * self.cfg.constants.instructions_ns;
        let ns = |instructions: u32| all * u64::from(instructions) / 1000;
        let more = work.instructions.saturating_sub(work.fifo_instructions);
        let spins = match work.lock {
            Some(lock) => self.locked(a, lock, ns(work.instructions)),
            None => 0,
        };
        self.spend(a, spins + ns(more));
    }
    /// Takes a lock of the scheduler as soon as it is free, and holds it for `held_ns`. Returns the
    /// waiting time. Both times are CPU time of the reference core, ns.
    fn locked(&mut self, a: Actor, lock: u16, held_ns: u64) -> u64 {
        let permille = u64::from(self.cfg.cpu_permille.max(1));
        let at = usize::from(lock);
        if self.locks.len() <= at {
            self.locks.resize(at + 1, Instant::START);
        }
        let here = self.now() + Nanos(self.rt.debt[a as usize] * 1000 / permille);
        let from = self.locks[at].max(here);
        self.locks[at] = from + Nanos(held_ns * 1000 / permille);
        from.since(here).0 * permille / 1000
    }
    pub(crate) fn plug(&mut self, a: Actor, open: bool) {
        if self.cfg.ablations.no_plugging {
            return;
        }
        // Only the outermost plug has an effect.
        let depth = &mut self.tasks[a as usize].plugs;
        *depth = if open { *depth + 1 } else { *depth - 1 };
        if *depth != u8::from(open) {
            return;
        }
        let (now, t) = (self.now(), TaskId(a));
        let what = if open {
            Control::Plug(t)
        } else {
            Control::Unplug(t)
        };
        self.sink.control(now, what);
        self.sink_changed();
        self.schedules(a);
    }
    /// Informs an AIO context when a group ends, or immediately if the group has ended.
    pub(crate) fn notify_group(&mut self, g: u32, n: Notify) {
        let group = &mut self.groups.all[g as usize];
        if group.pending > 0 {
            group.notify = Some(n);
            return;
        }
        let error = group.error;
        self.groups.free(g);
        self.aio_ended(n, error);
    }
    /// Advances the disk to the present time and handles completed bios.
    pub(crate) fn run_disk(&mut self) {
        let mut done = std::mem::take(&mut self.done);
        let now = self.now();
        self.sink.advance(now, &mut done);
        self.sink_changed();
        for d in done.drain(..) {
            self.bio_done(d);
        }
        self.done = done;
        let mut i = 0;
        while i < self.starved.len() {
            if self.sink.waits(TaskId(self.starved[i])) {
                i += 1;
            } else {
                let a = self.starved.remove(i);
                self.rt.wake(a, Sleep::Starved);
            }
        }
    }
    fn bio_done(&mut self, d: BioDone) {
        let i = (d.id.0 & ((1 << SLOT_BITS) - 1)) as u32;
        let mut slot = self.bios.all[i as usize];
        debug_assert!(slot.used, "a bio ends once");
        self.bios.all[i as usize].used = false;
        self.bios.free.push(i);
        self.bios.in_flight -= 1;
        self.stats.bio_errors += u64::from(d.error);
        match slot.target {
            Target::Plain => {}
            Target::Read { ino, idx, n } => self.pages_read(ino, idx, n, d.error),
            Target::Write { ino, idx, n } => self.pages_written(ino, idx, n, d.error),
            Target::Log { meta } => self.logged(meta),
        }
        self.rt.wake_all(&mut slot.wait);
        if slot.group != NIL {
            let g = &mut self.groups.all[slot.group as usize];
            g.pending -= 1;
            g.error |= d.error;
            if g.pending == 0 {
                let mut q = std::mem::take(&mut g.wait);
                self.rt.wake_all(&mut q);
                let (notify, error) = (g.notify.take(), g.error);
                if let Some(n) = notify {
                    self.groups.free(slot.group);
                    self.aio_ended(n, error);
                }
            }
        }
    }
}

/// Must be called after a submission. Sleeps as long as the block layer makes the submitter wait
/// for a free request.
pub(crate) async fn after_submit(k: &K, a: Actor) {
    let mut since = None;
    loop {
        {
            let mut w = k.w();
            let now = w.now();
            if !w.sink.waits(TaskId(a)) {
                // Kernel threads are excluded, because the time of their writes is not fixed by a
                // program.
                if let Some(since) = since.filter(|_| a >= FIRST_USER_TASK) {
                    w.tasks[a as usize].held += now.since(since);
                }
                return;
            }
            since = since.or(Some(now));
            w.stats.request_waits += 1;
            w.sink.control(now, Control::Sleep(TaskId(a)));
            w.sink_changed();
            w.schedules(a);
            w.starved.push(a);
            w.rt.sleep(a, Sleep::Starved);
        }
        parked(k, a).await;
    }
}
