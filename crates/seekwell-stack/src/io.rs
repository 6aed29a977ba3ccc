//! Bios on their way: who waits for them and what their end changes.

use crate::rt::{Actor, K, parked};
use crate::world::World;
use seekwell_core::{
    Bio, BioDone, BioId, Control, Errno, Flags, List, Op, Sector, Sectors, TaskId,
};

pub(crate) const NIL: u32 = u32::MAX;

/// What a bio's end changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Target {
    /// Nothing but its group.
    #[default]
    Plain,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BioSlot {
    pub(crate) target: Target,
    pub(crate) group: u32,
    pub(crate) op: u8,
    pub(crate) wait: List,
    used: bool,
}

/// Bios under way, by number.
#[derive(Default, Debug)]
pub(crate) struct Bios {
    all: Vec<BioSlot>,
    free: Vec<u32>,
    made: u64,
    pub(crate) in_flight: u32,
}

const SLOT_BITS: u32 = 24;

impl Bios {
    fn alloc(&mut self, s: BioSlot) -> (u32, BioId) {
        let i = match self.free.pop() {
            Some(i) => {
                self.all[i as usize] = s;
                i
            }
            None => {
                self.all.push(s);
                (self.all.len() - 1) as u32
            }
        };
        self.made += 1;
        self.in_flight += 1;
        (i, BioId(self.made << SLOT_BITS | u64::from(i)))
    }
    pub(crate) fn get_mut(&mut self, i: u32) -> &mut BioSlot {
        &mut self.all[i as usize]
    }
}

/// Bios that one actor waits for together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Group {
    pub(crate) pending: u32,
    pub(crate) error: bool,
    wait: List,
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
    pub(crate) fn free(&mut self, g: u32) {
        self.free.push(g);
    }
}

/// What a bio is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    pub(crate) target: Target,
    pub(crate) group: u32,
}

impl World {
    /// Hands a bio to the block layer. The submitter has to await [`after_submit`] next.
    pub(crate) fn submit(&mut self, a: Actor, want: Want) -> u32 {
        let (slot, id) = self.bios.alloc(BioSlot {
            target: want.target,
            group: want.group,
            op: want.op as u8,
            wait: List::new(),
            used: true,
        });
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
            cpu: a as u16 % self.cfg.cores.max(1),
        };
        self.stats.bio(&bio);
        let now = self.now();
        self.sink.submit(now, bio);
        self.sink_changed();
        slot
    }
    pub(crate) fn plug(&mut self, a: Actor, open: bool) {
        if !self.cfg.plugging {
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
    }
    /// Runs the disk to now and does what ended bios call for.
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
                self.rt.wake(a);
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
        self.rt.wake_all(&mut slot.wait);
        if slot.group != NIL {
            let g = &mut self.groups.all[slot.group as usize];
            g.pending -= 1;
            g.error |= d.error;
            if g.pending == 0 {
                let mut q = std::mem::take(&mut g.wait);
                self.rt.wake_all(&mut q);
            }
        }
    }
}

/// After a submission: sleeps while the block layer makes the submitter wait for a request.
pub(crate) async fn after_submit(k: &K, a: Actor) {
    loop {
        {
            let mut w = k.w();
            if !w.sink.waits(TaskId(a)) {
                return;
            }
            w.stats.request_waits += 1;
            let now = w.now();
            w.sink.control(now, Control::Sleep(TaskId(a)));
            w.sink_changed();
            w.starved.push(a);
            w.rt.sleep_plain(a);
        }
        parked(k, a).await;
    }
}

/// Waits until all bios of a group have ended; frees it. EIO if one failed.
pub(crate) async fn wait_group(k: &K, a: Actor, g: u32) -> Result<(), Errno> {
    crate::rt::pay(k, a).await;
    let mut told = false;
    loop {
        {
            let mut w = k.w();
            if w.groups.get(g).pending == 0 {
                let error = w.groups.get(g).error;
                w.groups.free(g);
                return if error { Err(Errno::EIO) } else { Ok(()) };
            }
            if !told {
                // Whoever sleeps flushes its plug.
                told = true;
                let now = w.now();
                w.sink.control(now, Control::Sleep(TaskId(a)));
                w.sink_changed();
            }
            let w = &mut *w;
            w.rt.sleep_on(&mut w.groups.all[g as usize].wait, a);
        }
        parked(k, a).await;
    }
}
