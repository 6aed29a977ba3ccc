//! Execution of commands in the detailed variant: arrival, reads through the map, the write buffer,
//! FLUSH and TRIM.

use super::super::host::pages;
use super::super::map_cache::COVERS;
use super::super::streams::Found;
use super::map::{NONE, Place};
use super::unit::For;
use super::{COMING, Cmd, DetailedSsd, READY};
use seekwell_core::{Command, Op};

impl DetailedSsd {
    /// Accepts a command at `t`. Its length must not be zero, and it must be inside the capacity.
    pub(super) fn take_in(&mut self, t: u64, command: &Command) {
        if self.p.slc_pages > 0 && self.open == 0 && self.finishes.len() == 0 {
            let idle = t.saturating_sub(self.latest.max(seekwell_core::Instant::START.0));
            let folded = idle as f64 * 1e-9 * self.p.slc_fold;
            self.slc_used = self.slc_used.saturating_sub(folded as u64);
        }
        let inside = self.open > 0 || self.finishes.len() > 0;
        let since = if inside { self.busy.until() } else { t };
        self.busy.note(since, t);
        let (sector, sectors) = (command.sector.0, command.sectors.0);
        let (first, n, partial) = if command.op == Op::Flush {
            (0, 0, 0)
        } else {
            pages(sector, sectors)
        };
        let cmd = Cmd {
            id: command.id,
            op: command.op,
            fua: command.fua,
            first: first as u32,
            end: first as u32 + n,
            sectors,
            parts: 0,
            linked: false,
            partial: partial as u8,
            stream: None,
        };
        let c = match self.cmd_free.pop() {
            Some(c) => {
                self.cmds[c as usize] = cmd;
                c
            }
            None => {
                self.cmds.push(cmd);
                self.cmds.len() as u32 - 1
            }
        };
        self.open += 1;
        match command.op {
            Op::Read => {
                let f = self.front.command(t, 0);
                if self.p.read_ahead > 0 && self.note_stream(c, sector, sectors, t) {
                    self.hits += 1;
                    self.note_hit(c);
                    self.hits_in.push_back((f, c));
                } else {
                    self.reads_in.push_back((f + self.p.lat_ns, c));
                }
            }
            Op::Write | Op::WriteZeroes => {
                let f = self.front.command(t, 1);
                let data = if command.op == Op::Write { sectors } else { 0 };
                let ns = self.front.link_ns(data);
                let at = self.front.link(t, 1, ns).max(f + ns);
                self.enter_writes(at, c);
            }
            Op::Flush | Op::Discard if !self.p.queued_flush => {
                self.alone = Some((c, false));
                self.begin_alone();
            }
            Op::Flush | Op::Discard => {
                let at = self.front.command(t, 1);
                self.enter_writes(at, c);
            }
        }
    }

    /// Queues a write, FLUSH or TRIM that leaves the command stage at `at`. These commands keep
    /// their order.
    fn enter_writes(&mut self, at: u64, c: u32) {
        let last = self.writes_in.back().map_or(0, |e| e.0);
        self.writes_in.push_back((at.max(last), c));
    }

    /// Returns true if the read belongs to a stream and all its pages are in RAM. In that case,
    /// also continues the read-ahead of the stream.
    fn note_stream(&mut self, c: u32, sector: u64, sectors: u32, t: u64) -> bool {
        let (first, end) = {
            let cmd = &self.cmds[c as usize];
            (cmd.first, cmd.end)
        };
        let (i, begins) = match self.readers.note(sector, sector + u64::from(sectors)) {
            Found::Alone => return false,
            Found::Begins(i) => (i, true),
            Found::Continues(i) => (i, false),
        };
        let ahead = &mut self.ahead[i];
        // If the old stream of this place was not replaced, it may lie behind this one.
        if begins || first < ahead.from {
            // Commands may still wait for pages of the old stream in this place, so do not replace
            // the old stream.
            if ahead
                .ring
                .iter()
                .any(|cell| *cell != READY && *cell != COMING)
            {
                return false;
            }
            ahead.life = ahead.life.wrapping_add(1);
            (ahead.from, ahead.to) = (first, first);
            // Pages of the old stream that still arrive are ignored.
            ahead.ring.fill(READY);
        }
        self.cmds[c as usize].stream = Some((i as u8, ahead.life));
        let mask = ahead.ring.len() as u32 - 1;
        let known = (first..end).len() as u32 <= mask
            && end <= ahead.to
            && (first..end).all(|q| ahead.ring[(q & mask) as usize] == READY);
        if known {
            self.ahead[i].from = end;
            self.read_ahead(i, end, t);
        }
        known
    }

    /// Refills the read-ahead window of stream `i` when half of it is used up. The reader continues
    /// at page `end`.
    fn read_ahead(&mut self, i: usize, end: u32, t: u64) {
        let (window, k) = (self.p.read_ahead, self.p.k);
        let ahead = &self.ahead[i];
        if ahead.to >= end + window / 2 {
            return;
        }
        let mask = ahead.ring.len() as u32 - 1;
        let from = ahead.to;
        let to = ((end + window).next_multiple_of(k))
            .min(end + mask)
            .min(self.p.pages as u32);
        let life = ahead.life;
        let mut page = from;
        while page < to {
            let (place, n) = self.together(page, to);
            // A cell is free when its earlier page has arrived. Commands may wait for that page.
            let ring = &self.ahead[i].ring;
            let free = (page..page + n).take_while(|q| ring[(q & mask) as usize] == READY);
            let n = free.count() as u32;
            if n == 0 {
                break;
            }
            for q in page..page + n {
                let cell = if matches!(place, Place::Flash(_)) {
                    COMING
                } else {
                    READY
                };
                self.ahead[i].ring[(q & mask) as usize] = cell;
            }
            if let Place::Flash(ppn) = place {
                let whom = For::Ahead {
                    stream: i as u8,
                    life,
                    page,
                };
                self.ask_flash(ppn, n, whom, t);
            }
            page += n;
        }
        self.ahead[i].to = self.ahead[i].to.max(page);
    }

    /// Returns the place of a user page. Also returns the number of pages from this page on (before
    /// `end`) that follow each other in the same program unit. One array read fetches all of them.
    #[inline]
    fn together(&self, page: u32, end: u32) -> (Place, u32) {
        let place = self.map.place(page);
        let mut n = 1;
        if let Place::Flash(ppn) = place {
            let room = self.p.k - self.map.block_of(ppn).1 % self.p.k;
            while n < room && page + n < end && self.map.place(page + n) == Place::Flash(ppn + n) {
                n += 1;
            }
        }
        (place, n)
    }

    /// Queues a flash read of `n` physical pages from `ppn` on.
    #[inline]
    fn ask_flash(&mut self, ppn: u32, n: u32, whom: For, t: u64) {
        let (block, at) = self.map.block_of(ppn);
        let u = self.map.unit_of(block) as usize;
        let kind = if self.p.read_add_ns == [0; 3] {
            0
        } else {
            (at / self.p.k % 3) as u8
        };
        let op = self.ops.add(whom, n as u16, kind);
        self.ask(u, op, t);
    }

    /// Handles a read that has passed the command stage. If its translation page is not in RAM,
    /// this page is read first.
    pub(super) fn arrive_read(&mut self, c: u32, t: u64) {
        let first = self.cmds[c as usize].first;
        let look = self.cache.touch(u64::from(first), false);
        if look.write_back {
            self.write_map_page();
        }
        if look.miss {
            // The place of translation pages is not modelled, so a hash selects the unit.
            let u = (u64::from(first) / COVERS).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let u = (u % self.units.len() as u64) as usize;
            let op = self.ops.add(For::Lookup(c), 1, 0);
            return self.ask(u, op, t);
        }
        self.look_at(c, t);
    }

    /// Puts a changed translation page into a slot of the write buffer, like a page of the host.
    fn write_map_page(&mut self) {
        if let Some(slot) = self.buffer.free.pop() {
            self.queue_slot(slot, NONE);
        }
    }

    /// Looks up each page of a read. A page is in RAM, unwritten, being read ahead, or on flash.
    pub(super) fn look_at(&mut self, c: u32, t: u64) {
        let cmd = &mut self.cmds[c as usize];
        // This part keeps the command open until all its other parts have been requested.
        cmd.parts = 1;
        let (mut page, end) = (cmd.first, cmd.end);
        let stream = cmd
            .stream
            .filter(|s| self.ahead[usize::from(s.0)].life == s.1);
        let mut in_ram = true;
        if let Some((i, _)) = stream {
            let i = usize::from(i);
            let mask = self.ahead[i].ring.len() as u32 - 1;
            let ahead_to = self.ahead[i].to.min(end);
            // Pages before `from` may have been overwritten in the ring.
            let known = page >= self.ahead[i].from && end - page <= mask;
            while known && page < ahead_to {
                let cell = &mut self.ahead[i].ring[(page & mask) as usize];
                match *cell {
                    READY => {}
                    COMING => {
                        *cell = c;
                        self.cmds[c as usize].parts += 1;
                        in_ram = false;
                    }
                    // Another command already waits for this page, so this command reads the page
                    // from flash.
                    _ => break,
                }
                page += 1;
            }
        }
        while page < end {
            let (place, n) = self.together(page, end);
            if let Place::Flash(ppn) = place {
                self.cmds[c as usize].parts += 1;
                in_ram = false;
                self.ask_flash(ppn, n, For::Command(c), t);
            }
            page += n;
        }
        if let Some((i, _)) = stream {
            let i = usize::from(i);
            self.ahead[i].from = self.ahead[i].from.max(end);
            self.ahead[i].to = self.ahead[i].to.max(end);
            self.read_ahead(i, end, t);
        }
        self.hits += u64::from(in_ram);
        if in_ram {
            self.note_hit(c);
        }
        self.part_done(c, 0, t);
    }

    /// Sends `sectors` of a read, which are in RAM, over the link. The last part completes the
    /// read.
    pub(super) fn part_done(&mut self, c: u32, sectors: u32, t: u64) {
        let cmd = &mut self.cmds[c as usize];
        cmd.parts -= 1;
        let last = cmd.parts == 0;
        let now = if last {
            cmd.sectors
        } else {
            sectors.min(cmd.sectors)
        };
        cmd.sectors -= now;
        let first = !cmd.linked;
        cmd.linked |= now > 0;
        let mut ns = self.front.link_ns(now);
        if !first || (now == 0 && !last) {
            ns -= self.front.link_ns(0);
        }
        let at = self.front.link(t, 0, ns);
        if last {
            self.finish(c, at);
        }
    }

    /// Sends a read over the link whose pages are all in RAM.
    pub(super) fn reply(&mut self, c: u32, t: u64) {
        self.cmds[c as usize].parts = 1;
        self.part_done(c, 0, t);
    }

    /// Handles a write (with its data), FLUSH or TRIM that has passed the command stage.
    pub(super) fn arrive_other(&mut self, c: u32, t: u64) {
        match self.cmds[c as usize].op {
            Op::Flush => self.flush(c, t),
            Op::Discard => self.trim(c, t),
            _ => {
                self.buffer.waiting.push_back(c);
                self.admit(t);
                self.feed(t);
            }
        }
    }

    fn queue_slot(&mut self, slot: u32, lpn: u32) {
        let b = &mut self.buffer;
        b.lpn[slot as usize] = lpn;
        b.period[slot as usize] = b.oldest + b.left.len() as u64 - 1;
        if let Some(n) = b.left.back_mut() {
            *n += 1;
        }
        b.line.push_back(slot);
    }

    /// Moves pages of waiting writes into the buffer while it has free slots.
    fn admit(&mut self, t: u64) {
        while let Some(c) = self.buffer.waiting.front().copied() {
            let cmd = self.cmds[c as usize];
            let mut page = cmd.first;
            while page < cmd.end {
                let place = self.map.place(page);
                // A page that still waits in the buffer is changed in place.
                let changed = match place {
                    Place::Slot(s) => {
                        (s as usize) < self.buffer.period.len() && !self.buffer.taken[s as usize]
                    }
                    _ => false,
                };
                if !changed {
                    let Some(slot) = self.buffer.free.pop() else {
                        break;
                    };
                    self.queue_slot(slot, page);
                    self.map.hold_in(page, slot);
                    if self.p.map_cache > 0 {
                        let look = self.cache.touch(u64::from(page), true);
                        if look.write_back {
                            self.write_map_page();
                        }
                    }
                    if cmd.partial > 0
                        && (page == cmd.first || page + 1 == cmd.end)
                        && let Place::Flash(ppn) = place
                    {
                        self.ask_flash(ppn, 1, For::Nobody, t);
                    }
                }
                page += 1;
            }
            self.cmds[c as usize].first = page;
            self.buffer.dirty = true;
            if page < cmd.end {
                break;
            }
            self.buffer.waiting.pop_front();
            if cmd.fua && !self.p.plp {
                self.sync(c, t);
            } else {
                self.finish(c, t + self.p.ack_ns);
            }
        }
    }

    /// Frees the slots of a finished program, so that waiting writes can use them. Completes
    /// flushes that waited for these pages.
    pub(super) fn give_back(&mut self, slots: &[u32], t: u64) {
        for slot in slots {
            let b = &mut self.buffer;
            let i = (b.period[*slot as usize] - b.oldest) as usize;
            if let Some(n) = b.left.get_mut(i) {
                *n -= 1;
            }
            b.free.push(*slot);
        }
        self.settle(t);
        if !self.buffer.waiting.is_empty() {
            self.admit(t);
        }
    }

    /// Completes the flushes whose pages are all programmed.
    fn settle(&mut self, t: u64) {
        while self.buffer.left.len() > 1 && self.buffer.left.front() == Some(&0) {
            self.buffer.left.pop_front();
            let period = self.buffer.oldest;
            self.buffer.oldest += 1;
            while let Some((p, c)) = self.buffer.flushes.front().copied() {
                if p > period {
                    break;
                }
                self.buffer.flushes.pop_front();
                self.finish(c, t + self.p.flush_ns);
            }
        }
    }

    /// Lets command `c` complete when all pages that are in the buffer at `t` have been programmed.
    fn sync(&mut self, c: u32, t: u64) {
        let b = &mut self.buffer;
        b.forced = b.line.len();
        b.flushes.push_back((b.oldest + b.left.len() as u64 - 1, c));
        b.left.push_back(0);
        self.settle(t);
        self.feed(t);
    }

    fn flush(&mut self, c: u32, t: u64) {
        if !std::mem::take(&mut self.buffer.dirty) {
            self.finish(c, t);
        } else if self.p.plp {
            self.finish(c, t + self.p.flush_ns);
        } else {
            self.sync(c, t);
        }
    }

    fn trim(&mut self, c: u32, t: u64) {
        let cmd = self.cmds[c as usize];
        let (mut from, mut to) = (cmd.first, cmd.end);
        // Pages that the TRIM covers only in part keep their data.
        if cmd.partial > 0 {
            from += 1;
            to -= 1;
        }
        for page in from..to {
            if !matches!(self.map.place(page), Place::Nowhere) {
                self.map.forget(page);
            }
        }
        self.finish(c, t + self.p.trim_ns);
    }
}
