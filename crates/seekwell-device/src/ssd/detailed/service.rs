//! The work of flash units: order of service, programs, cleaning, suspension.

use super::super::host::{NEVER, enter};
use super::map::NONE;
use super::unit::{For, Open, Phase};
use super::{COMING, DetailedSsd, READY};
use seekwell_core::{Action, Event, Instant, More};

/// Maximum number of reads in one suspension before the program or erase resumes.
const PATIENCE: u32 = 16;

impl DetailedSsd {
    #[inline]
    fn phase(&mut self, u: usize, phase: Phase, until: u64) {
        if self.units[u].phase == Phase::Idle {
            self.idle[u / 64] &= !(1 << (u % 64));
        }
        self.units[u].phase = phase;
        self.events.set(u, until);
        if self.log.listening() {
            self.note_phase(u, phase, until);
        }
    }
    #[cold]
    #[inline(never)]
    fn note_phase(&mut self, u: usize, phase: Phase, until: u64) {
        let Some(doing) = phase.word() else { return };
        let (now, channel) = (Instant(self.now), self.units[u].channel);
        self.log.push(|| Event {
            more: More::Die {
                die: u as u32,
                channel,
                doing,
                until: Instant(until),
            },
            ..Event::new(now, Action::Flash)
        });
    }
    #[inline]
    fn bus(&mut self, u: usize, at: u64, pages: u32) -> u64 {
        let channel = self.units[u].channel as usize;
        enter(
            &mut self.channels[channel],
            at,
            u64::from(pages) * self.p.xfer_ns,
        )
    }

    /// Queues a read at its unit at `t`.
    pub(super) fn ask(&mut self, u: usize, op: u32, t: u64) {
        let ahead = matches!(self.ops.get(op).whom, For::Ahead { .. } | For::Nobody);
        let unit = &mut self.units[u];
        if ahead {
            unit.ahead.push(&mut self.ops, op);
        } else {
            unit.reads.push(&mut self.ops, op);
        }
        match unit.phase {
            Phase::Idle => self.choose(u, t),
            Phase::Program | Phase::Erase
                if self.p.susp_ns > 0 && !ahead && !unit.was_suspended =>
            {
                let left = self.events.get(u) - t;
                if left > self.p.susp_ns {
                    unit.was_suspended = true;
                    unit.suspended = Some((unit.phase, left - self.p.susp_ns));
                    unit.patience = PATIENCE;
                    self.wear.suspensions += 1;
                    self.phase(u, Phase::Suspending, t + self.p.susp_ns);
                }
            }
            _ => {}
        }
    }

    fn start_read(&mut self, u: usize, op: u32, t: u64) {
        self.wear.array_reads += 1;
        let kind = self.ops.get(op).kind;
        let until = t + self.p.read_ns + self.p.read_add_ns[usize::from(kind)];
        self.phase(u, Phase::Array(op), until);
    }

    /// Starts the first waiting work of an idle unit.
    pub(super) fn choose(&mut self, u: usize, t: u64) {
        let unit = &mut self.units[u];
        if let Some((phase, left)) = unit.suspended {
            if unit.patience > 0
                && let Some(op) = unit.reads.pop(&self.ops)
            {
                unit.patience -= 1;
                return self.start_read(u, op, t);
            }
            unit.suspended = None;
            return self.phase(u, phase, t + left);
        }
        if let Some(op) = unit.reads.pop(&self.ops) {
            return self.start_read(u, op, t);
        }
        if let Some(op) = unit.ahead.pop(&self.ops) {
            return self.start_read(u, op, t);
        }
        if self.must_clean(u) && self.clean(u, t) {
            return;
        }
        if self.program_next(u, t) {
            return;
        }
        if self.may_clean(u) && self.clean(u, t) {
            return;
        }
        if self.units[u].phase != Phase::Idle {
            self.phase(u, Phase::Idle, NEVER);
            self.units[u].rests_since = t;
            self.idle[u / 64] |= 1 << (u % 64);
        }
    }

    /// Handles the end of the operation of a unit.
    pub(super) fn unit_event(&mut self, u: usize, t: u64) {
        match self.units[u].phase {
            Phase::Idle => self.events.set(u, NEVER),
            Phase::Array(op) => {
                let until = self.bus(u, t, u32::from(self.ops.get(op).pages));
                self.phase(u, Phase::Transfer(op), until);
            }
            Phase::Transfer(op) => {
                let op = self.ops.remove(op);
                // Restart the unit first, because the completed read can lead to more requests for
                // this unit.
                self.choose(u, t);
                self.have_read(op.whom, op.pages, t);
            }
            Phase::Load => {
                let unit = &mut self.units[u];
                unit.was_suspended = false;
                let until = t + unit.prog;
                self.phase(u, Phase::Program, until);
            }
            Phase::Program => {
                self.programmed(u, t);
                self.choose(u, t);
                self.feed(t);
            }
            Phase::Erase => {
                let unit = &mut self.units[u];
                let block = std::mem::replace(&mut unit.doomed, NONE);
                unit.free.push_back(block);
                self.map.erased(block);
                self.wear.erases += 1;
                self.choose(u, t);
                self.feed(t);
            }
            Phase::Suspending => self.choose(u, t),
            Phase::CopyArray(pages) => {
                let until = if self.p.copyback {
                    t
                } else {
                    self.bus(u, t, pages)
                };
                self.phase(u, Phase::CopyTransfer, until);
            }
            Phase::CopyTransfer => self.choose(u, t),
        }
        if self.p.striped {
            // The next unit of the rotation may be idle.
            self.feed(t);
        }
    }

    /// Lets idle units program waiting pages.
    pub(super) fn feed(&mut self, t: u64) {
        while self.ready_to_program() {
            let start = self.turn;
            let n = self.units.len();
            let mut started = false;
            if self.p.striped {
                let u = self.turn;
                if self.units[u].phase == Phase::Idle {
                    self.choose(u, t);
                    started = self.turn != u;
                }
            } else {
                let words = n.div_ceil(64);
                // Search in a circle from the end of the last search.
                'search: for i in 0..=words {
                    let w = (start / 64 + i) % words;
                    let mut bits = self.idle[w];
                    if i == 0 {
                        bits &= u64::MAX << (start % 64);
                    }
                    while bits != 0 {
                        let u = w * 64 + bits.trailing_zeros() as usize;
                        bits &= bits - 1;
                        self.choose(u, t);
                        if self.units[u].phase != Phase::Idle {
                            self.turn = (u + 1) % n;
                            started = true;
                            break 'search;
                        }
                    }
                }
            }
            if !started {
                break;
            }
        }
    }

    /// Returns the number of pages of the next program. The fast region takes fewer pages at a
    /// time.
    #[inline]
    fn step(&self) -> u32 {
        if self.slc_used < self.slc_limit {
            self.p.slc_k
        } else {
            self.p.k
        }
    }
    #[inline]
    fn ready_to_program(&self) -> bool {
        let b = &self.buffer;
        b.line.len() >= self.step() as usize || b.forced > 0
    }

    /// Starts a program of host pages, if there are enough pages and the unit has space. Returns
    /// true if it started one.
    fn program_next(&mut self, u: usize, t: u64) -> bool {
        if !self.ready_to_program() || (self.p.striped && u != self.turn) {
            return false;
        }
        let fast = self.slc_used < self.slc_limit;
        let step = self.step();
        if self.map.held(u) + step > self.unit_max {
            return false;
        }
        let unit = &mut self.units[u];
        if unit.host.block == NONE {
            // The last free block is reserved for cleaning.
            if unit.free.len() < 2 {
                return false;
            }
            unit.host = open(&mut unit.free, self.p.wear_spread > 0, &self.map);
        }
        let room = step.min(self.map.block - unit.host.at);
        let base = unit.host.block * self.map.block + unit.host.at;
        unit.host.at += room;
        unit.for_host = true;
        unit.base = base;
        let n = (self.buffer.line.len() as u32).min(room);
        for i in 0..n {
            let Some(slot) = self.buffer.line.pop_front() else {
                break;
            };
            unit.group.push(slot);
            self.buffer.taken[slot as usize] = true;
            self.map.assign(base + i, self.buffer.lpn[slot as usize]);
        }
        for i in n..room {
            self.map.assign(base + i, NONE);
        }
        self.buffer.forced = self.buffer.forced.saturating_sub(n as usize);
        let rested = unit.phase == Phase::Idle && t >= unit.rests_since + self.p.prog_ns;
        unit.prog = match (fast, rested) {
            (true, _) => self.p.slc_prog_ns,
            (false, true) => self.p.prog_rested_ns,
            (false, false) => self.p.prog_ns,
        };
        if unit.free.len() < self.p.gc_marks.0 as usize {
            unit.owed = (unit.owed + f64::from(room) * unit.price).min(self.owed_max);
        }
        self.wear.host_pages += u64::from(n);
        self.wear.padded_pages += u64::from(room - n);
        self.slc_used += if fast { u64::from(room) } else { 0 };
        if self.p.striped {
            self.turn = (u + 1) % self.units.len();
        }
        self.load(u, t, n, true);
        true
    }

    /// Sends the data of a program to the unit.
    fn load(&mut self, u: usize, t: u64, pages: u32, over_bus: bool) {
        let unit = &mut self.units[u];
        // Writes of parity and journal data: from time to time a program takes twice as long.
        unit.extra += self.p.write_factor - 1.0;
        if unit.extra >= 1.0 {
            unit.extra -= 1.0;
            unit.prog += self.p.prog_ns + u64::from(self.p.k) * self.p.xfer_ns;
        }
        let until = if over_bus { self.bus(u, t, pages) } else { t };
        self.phase(u, Phase::Load, until);
    }

    /// Handles the end of a program. Its pages are on flash, and its slots become free.
    fn programmed(&mut self, u: usize, t: u64) {
        let mut group = std::mem::take(&mut self.units[u].group);
        let base = self.units[u].base;
        self.map.written(base, &group);
        for slot in &group {
            self.buffer.taken[*slot as usize] = false;
        }
        let host = self.units[u].for_host;
        let full = self.map.block;
        let unit = &mut self.units[u];
        let opened = if host { &mut unit.host } else { &mut unit.copy };
        if opened.at == full {
            self.map.close(opened.block);
            *opened = Open::NO;
        }
        if host {
            self.give_back(&group, t);
        } else {
            self.units[u].spare.extend(&group);
        }
        group.clear();
        self.units[u].group = group;
    }

    /// Returns true if cleaning must take precedence over programs of host pages.
    fn must_clean(&mut self, u: usize) -> bool {
        let unit = &mut self.units[u];
        if unit.free.len() >= self.p.gc_marks.0 as usize {
            unit.owed = 0.0;
            return false;
        }
        unit.owed > 0.0 || unit.free.len() < 2
    }
    /// Returns true if cleaning may continue, because the unit has no other work.
    fn may_clean(&self, u: usize) -> bool {
        let unit = &self.units[u];
        unit.free.len() < self.p.gc_marks.1 as usize || unit.doomed != NONE
    }

    /// Starts one operation of cleaning. Returns false if there is nothing to clean.
    fn clean(&mut self, u: usize, t: u64) -> bool {
        let k = self.p.k as usize;
        if self.units[u].copied.len() >= k && self.copy_back(u, t) {
            return true;
        }
        loop {
            if self.units[u].doomed != NONE {
                self.units[u].was_suspended = false;
                self.phase(u, Phase::Erase, t + self.p.erase_ns);
                return true;
            }
            if self.units[u].copied.len() >= k {
                return false;
            }
            if self.units[u].victim == NONE {
                let picked = self
                    .map
                    .victim(u, self.p.victim, self.p.wear_spread, &mut self.rng);
                let Some(block) = picked else { return false };
                self.map.take(block);
                let valid = f64::from(self.map.valid(block));
                let unit = &mut self.units[u];
                (unit.victim, unit.at) = (block, 0);
                // The price is never zero, because the erase must be paid too.
                unit.price = (valid + 1.0) / (f64::from(self.map.block) - valid).max(1.0);
            }
            let (pages, arrays) = self.collect(u);
            if pages > 0 {
                let until = t + u64::from(arrays) * self.p.read_ns;
                self.phase(u, Phase::CopyArray(pages), until);
                return true;
            }
        }
    }

    /// Moves the next valid pages of the block that is being cleaned into slots, up to the size of
    /// one program. Returns the number of pages, and the number of program units that they were in.
    /// If the block is finished, marks it for erasure.
    fn collect(&mut self, u: usize) -> (u32, u32) {
        let unit = &mut self.units[u];
        let (k, block) = (self.p.k, self.map.block);
        let (mut pages, mut arrays, mut last) = (0, 0, NONE);
        let (spare, copied, lpns) = (&mut unit.spare, &mut unit.copied, &mut self.buffer.lpn);
        while unit.at < block && copied.len() < k as usize {
            let room = k as usize - copied.len();
            let each = |at: u32, lpn, slot: u32| {
                lpns[slot as usize] = lpn;
                copied.push(slot);
                pages += 1;
                if at / k != last {
                    last = at / k;
                    arrays += 1;
                }
            };
            let next = || spare.pop();
            let to = self
                .map
                .take_out(unit.victim, unit.at, room as u32, next, each);
            if to == unit.at {
                break;
            }
            unit.at = to;
        }
        if unit.at == block {
            unit.doomed = std::mem::replace(&mut unit.victim, NONE);
        }
        (pages, arrays)
    }

    /// Programs the pages that cleaning has collected. Returns false if no block is free.
    fn copy_back(&mut self, u: usize, t: u64) -> bool {
        let unit = &mut self.units[u];
        if unit.copy.block == NONE {
            if unit.free.is_empty() {
                return false;
            }
            unit.copy = open(&mut unit.free, false, &self.map);
        }
        let n = self.p.k.min(self.map.block - unit.copy.at);
        let base = unit.copy.block * self.map.block + unit.copy.at;
        unit.copy.at += n;
        (unit.for_host, unit.base) = (false, base);
        for (i, slot) in unit.copied.drain(..n as usize).enumerate() {
            self.map
                .assign(base + i as u32, self.buffer.lpn[slot as usize]);
            unit.group.push(slot);
        }
        unit.owed -= f64::from(n);
        unit.prog = self.p.prog_ns;
        self.wear.copied_pages += u64::from(n);
        self.load(u, t, n, !self.p.copyback);
        true
    }

    /// Delivers the result of a flash read to its receiver.
    fn have_read(&mut self, whom: For, pages: u16, t: u64) {
        match whom {
            For::Command(c) => {
                let sectors = u32::from(pages) * 8;
                self.part_done(c, sectors, t);
            }
            For::Lookup(c) => self.look_at(c, t),
            For::Ahead { stream, life, page } => {
                let i = usize::from(stream);
                if self.ahead[i].life != life {
                    return;
                }
                let mask = self.ahead[i].ring.len() as u32 - 1;
                for q in page..page + u32::from(pages) {
                    let cell =
                        std::mem::replace(&mut self.ahead[i].ring[(q & mask) as usize], READY);
                    if cell != READY && cell != COMING {
                        self.part_done(cell, 8, t);
                    }
                }
            }
            For::Nobody => {}
        }
    }
}

/// Opens a free block. With wear levelling it is the least erased free block, otherwise the next
/// free block.
fn open(free: &mut std::collections::VecDeque<u32>, level: bool, map: &super::map::Map) -> Open {
    let i = if level {
        (0..free.len())
            .min_by_key(|i| map.erases(free[*i]))
            .unwrap_or(0)
    } else {
        0
    };
    Open {
        block: free.remove(i).unwrap_or(NONE),
        at: 0,
    }
}
