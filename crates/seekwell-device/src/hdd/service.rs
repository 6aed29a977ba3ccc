//! The service loop of the disk. It handles three events: a new command, a free mechanism, and the
//! end of a media operation.

use super::readahead::ReadAhead;
use super::{Activity, Hdd, Moved, NEVER, Queued, Ticks, Waiting, unit};

/// The kind of work that the free mechanism starts next.
enum Turn {
    Queue,
    Destage,
    Rest,
}

impl Hdd {
    /// Returns true if the mechanism can start other work immediately or after one sector of
    /// read-ahead.
    fn at_hand(&self) -> bool {
        matches!(self.activity, Activity::Idle | Activity::ReadAhead)
    }

    /// Handles new work at `t`. An idle mechanism selects a command. A running read-ahead ends as
    /// soon as its rules permit.
    fn wake(&mut self, t: Ticks) {
        match self.activity {
            Activity::Idle => self.choose(t),
            Activity::ReadAhead => match self.ra.cut(&mut self.mech, t, &mut self.rng) {
                Err(again) => self.next = self.next.min(again),
                Ok((lba, at)) => {
                    self.activity = Activity::Idle;
                    self.next = NEVER;
                    self.segments.grow(self.ra.segment, lba);
                    if !self.serve_from(at, self.ra.segment) {
                        self.choose(at);
                    }
                }
            },
            _ => {}
        }
    }

    /// Updates the segment of a running read-ahead, if this can affect a request at `lba`. Ends a
    /// read-ahead that has reached its limit.
    fn follow_read_ahead(&mut self, t: Ticks, lba: u64) {
        if !matches!(self.activity, Activity::ReadAhead)
            || lba < self.segments.run(self.ra.segment).0
            || lba > self.ra.limit
        {
            return;
        }
        let (lba, at) = self.ra.boundary(&mut self.mech, t, &mut self.rng);
        if lba >= self.ra.limit && at <= t {
            self.stop_read_ahead(t);
            self.choose(t);
        } else {
            // A sector that is passing under the head at `t` is not in the cache yet.
            self.segments.grow(
                self.ra.segment,
                if at > t { lba.saturating_sub(1) } else { lba },
            );
        }
    }

    /// Ends the read-ahead. Returns the first sector that was not read, and the time at which that
    /// sector starts to pass.
    fn stop_read_ahead(&mut self, t: Ticks) -> (u64, Ticks) {
        let (lba, at) = self.ra.stop(&mut self.mech, t, &mut self.rng);
        self.segments.grow(self.ra.segment, lba);
        self.activity = Activity::Idle;
        self.next = NEVER;
        (lba, at)
    }

    pub(super) fn arrive_read(&mut self, t: Ticks, id: u32, lba: u64, n: u32) {
        let end = lba + u64::from(n);
        let sequential = lba == self.read_end;
        self.read_end = end;
        self.follow_read_ahead(t, lba);
        if self.dirty.covers(lba, end) {
            return self.hit(t, t, id, n);
        }
        let mut from = lba;
        if let Some(i) = self.segments.find(lba) {
            let (_, have) = self.segments.run(i);
            if end <= have {
                self.segments.touch(i);
                self.hit(t, t, id, n);
                return self.consumed(t, i, end);
            }
            // The cached beginning of the request crosses the link while the rest is read.
            from = have.max(lba);
        }
        if self.joins(lba, end) {
            return self.join(t, id, n, end, sequential);
        }
        self.enqueue(t, id, false, sequential, from, end, n);
        self.wake(t);
    }

    #[allow(clippy::too_many_arguments)]
    fn enqueue(
        &mut self,
        t: Ticks,
        id: u32,
        write: bool,
        sequential: bool,
        from: u64,
        end: u64,
        bus: u32,
    ) {
        let place = self.mech.geometry.locate(from);
        self.queue.push(Queued {
            id,
            write,
            sequential,
            lba: from,
            n: (end - from) as u32,
            bus,
            arrived: t,
            place,
            theta: self.mech.geometry.angle(place.zone, place.slot),
        });
    }

    /// Returns true if the running read-ahead will soon read the sectors of the request. This is
    /// the case if the request begins in the segment of the read-ahead or just after the head. It
    /// is also the case if the head will arrive at the request within one track. Waiting for the
    /// read-ahead is then at least as fast as new positioning.
    fn joins(&self, lba: u64, end: u64) -> bool {
        if !matches!(self.activity, Activity::ReadAhead) {
            return false;
        }
        let (start, have) = self.segments.run(self.ra.segment);
        if lba < start || lba >= self.facts.capacity.0 {
            return false;
        }
        let track = u64::from(self.mech.geometry.track_sectors(lba));
        lba <= have + 1 || (end <= self.ra.limit && lba < have + track)
    }

    /// Converts the running read-ahead to a read up to `end`, without positioning.
    fn join(&mut self, t: Ticks, id: u32, n: u32, end: u64, sequential: bool) {
        let (lba, at) = self.stop_read_ahead(t);
        self.hits += 1;
        let ready = self.link(t + self.cost.hit, n);
        if end <= lba {
            // The last sector of the request is passing under the head.
            self.complete(ready.max(at), t, id, false);
            self.activity = Activity::Read {
                from: lba,
                to: lba,
                sequential,
            };
            self.next = at;
            return;
        }
        let from = self.mech.at.lba;
        let stop = self
            .mech
            .access(at, lba, (end - lba) as u32, false, true, &mut self.rng);
        let moved = Moved {
            id: Some(id),
            lba,
            n: (end - lba) as u32,
            write: false,
        };
        self.note_head(at, from, &moved, stop);
        let done = self.over_link((end - lba) as u32, stop) + self.cost.status;
        self.complete(done.max(ready), t, id, false);
        self.activity = Activity::Read {
            from: lba,
            to: end,
            sequential,
        };
        self.next = stop;
        self.note_busy(at, stop);
    }

    /// Handles the transfer of sectors up to `end` from segment `i` to the host. The segment then
    /// has space for more read-ahead.
    fn consumed(&mut self, t: Ticks, i: usize, end: u64) {
        let limit = (end + self.cost.ra_max).min(self.facts.capacity.0);
        match self.activity {
            Activity::ReadAhead if self.ra.segment == i => {
                self.ra.limit = self.ra.limit.max(limit);
            }
            Activity::Idle if self.mech.at.lba == self.segments.run(i).1 => {
                // The head is still at the end of this segment. Read-ahead resumes only when half
                // of the segment is free, so that it does not restart for every sector.
                let have = self.mech.at.lba;
                if limit.saturating_sub(have) >= self.cost.ra_max.div_ceil(2) && limit > have {
                    self.read_ahead(t, i, limit, have);
                }
            }
            _ => {}
        }
    }

    pub(super) fn arrive_write(&mut self, t: Ticks, id: u32, lba: u64, n: u32, fua: bool) {
        let end = lba + u64::from(n);
        let cached = self.cost.write_cache && !fua && self.dirty.can_hold(u64::from(n));
        if !cached {
            self.enqueue(t, id, true, false, lba, end, n);
            return self.wake(t);
        }
        if self.waiting.is_empty() && self.dirty.fits(lba, end) {
            self.hit(t, t, id, n);
            self.dirty.insert(lba, end, &self.mech);
        } else {
            self.waiting.push_back(Waiting {
                id,
                lba,
                n,
                arrived: t,
            });
        }
        self.mark();
        if self.forced || !self.waiting.is_empty() {
            self.wake(t);
        } else if self.at_hand() {
            self.rest(t);
        }
    }

    pub(super) fn arrive_flush(&mut self, t: Ticks, id: u32) {
        if self.at_hand() && self.dirty.is_empty() && self.queue.is_empty() {
            return self.complete(t + self.cost.hit, t, id, false);
        }
        self.flush = Some(id);
        self.wake(t);
    }

    /// Starts forced destaging at the high mark, and ends it at the low mark.
    fn mark(&mut self) {
        let fill = self.dirty.fill();
        if fill > self.cost.wc_hi {
            self.forced = true;
        } else if fill <= self.cost.wc_lo {
            self.forced = false;
        }
    }

    /// Sets the time at which background destaging starts, if there is no work at `t`.
    fn rest(&mut self, t: Ticks) {
        if !self.dirty.is_empty() {
            let at = (self.host_at + self.cost.wc_idle).max(t);
            self.next = match self.activity {
                Activity::ReadAhead => self.next.min(at),
                _ => at,
            };
        }
    }

    /// Starts the next work at `t`, when the mechanism is free. First the overhead of the firmware
    /// passes, and then the firmware selects a command. So the firmware also considers commands
    /// that arrive during the overhead. An extent that continues the previous write needs no
    /// overhead.
    fn choose(&mut self, t: Ticks) {
        self.activity = Activity::Idle;
        self.next = NEVER;
        match self.turn(t) {
            Turn::Destage if self.stream(t).is_some() => self.destage(t),
            Turn::Queue | Turn::Destage => {
                self.activity = Activity::Think;
                self.next = t + self.cost.overhead;
            }
            Turn::Rest => {
                if let Some(id) = self.flush.take() {
                    self.complete(t + self.cost.status, t, id, false);
                }
                self.rest(t);
            }
        }
    }

    /// Starts the selected work at `t`, after the overhead has passed.
    fn decide(&mut self, t: Ticks) {
        match self.turn(t) {
            Turn::Queue => {
                let picked = self.rules.pick(&self.queue, &self.mech, t);
                self.commit(t, picked.index, picked.by_position, false);
            }
            Turn::Destage => self.destage(t),
            Turn::Rest => self.choose(t),
        }
    }

    /// Returns the next kind of work. Queued commands take precedence over destaging. While
    /// destaging is forced, commands and destaging alternate, but a command past its age limit
    /// still takes precedence.
    fn turn(&self, t: Ticks) -> Turn {
        let must = self.forced || !self.waiting.is_empty();
        let can = !self.dirty.is_empty();
        if !self.queue.is_empty() {
            return if must && can && self.destage_turn && !self.rules.overdue(&self.queue, t) {
                Turn::Destage
            } else {
                Turn::Queue
            };
        }
        let idle = t >= self.host_at + self.cost.wc_idle;
        if can && (must || self.flush.is_some() || idle) {
            Turn::Destage
        } else {
            Turn::Rest
        }
    }

    /// Returns the end sector of the write that ended at `t`, if a dirty extent begins there.
    fn stream(&self, t: Ticks) -> Option<u64> {
        (self.write_end.1 == t && self.dirty.begins(self.write_end.0)).then_some(self.write_end.0)
    }

    /// Starts the queued command `i` at `t`.
    fn commit(&mut self, t: Ticks, i: usize, by_position: bool, streaming: bool) {
        let q = self.queue.remove(i);
        self.destage_turn = true;
        let from = self.mech.at.lba;
        self.mech.known = Some((q.lba, q.place));
        let mut end = self
            .mech
            .access(t, q.lba, q.n, q.write, streaming, &mut self.rng);
        end += self.miss(by_position) + self.recovery();
        if q.write {
            end += self.merge_physical(q.lba, q.end());
            self.dirty.remove(q.lba, q.end(), &self.mech);
            self.complete(end + self.cost.status, q.arrived, q.id, false);
            self.activity = Activity::Write {
                from: q.lba,
                to: q.end(),
            };
        } else {
            let ready = q.arrived + self.cost.hit + ((u64::from(q.bus) * self.cost.link) >> 10);
            let done = self.over_link(q.n, end) + self.cost.status;
            self.complete(done.max(ready), q.arrived, q.id, false);
            self.activity = Activity::Read {
                from: q.lba,
                to: q.end(),
                sequential: q.sequential,
            };
        }
        let moved = Moved {
            id: Some(q.id),
            lba: q.lba,
            n: q.n,
            write: q.write,
        };
        self.note_head(t, from, &moved, end);
        self.media_ops += 1;
        self.note_busy(t, end);
        self.next = end;
    }

    /// Returns the time lost by missing the target: 0 or one revolution. A drive that selected its
    /// target by angle can narrowly miss it. A miss of a destaged extent is not counted, because no
    /// command waits for a particular extent.
    fn miss(&mut self, by_position: bool) -> Ticks {
        if by_position && self.cost.p_miss > 0.0 && unit(&mut self.rng) < self.cost.p_miss {
            self.mech.spent.rotation += self.mech.turn();
            return self.mech.turn();
        }
        0
    }

    /// Returns the time of an error recovery. Most accesses need none, so the time is 0.
    fn recovery(&mut self) -> Ticks {
        if self.cost.p_err > 0.0 && unit(&mut self.rng) < self.cost.p_err {
            return self.cost.t_err;
        }
        0
    }

    /// Returns the extra time of a write that covers a physical sector only in part. The drive
    /// first reads this sector, and then waits for a revolution.
    fn merge_physical(&mut self, from: u64, to: u64) -> Ticks {
        let odd = |x: u64| u64::from(!x.is_multiple_of(self.cost.physical));
        let parts = odd(from) + odd(to);
        if parts == 0 {
            return 0;
        }
        self.internal += parts * self.cost.physical * 512;
        self.mech.turn()
    }

    /// Starts to write a dirty extent to the medium at `t`.
    fn destage(&mut self, t: Ticks) {
        let stream = self.stream(t);
        let Some(i) = self.dirty.pick(&self.mech, t, self.rules.guard, stream) else {
            return self.choose(t);
        };
        self.destage_turn = false;
        let f = self.dirty.take(i, &self.mech);
        let streaming = stream.is_some();
        let from = self.mech.at.lba;
        let mut end = self
            .mech
            .access(t, f.lba, f.n, true, streaming, &mut self.rng);
        end += self.recovery();
        end += self.merge_physical(f.lba, f.lba + u64::from(f.n));
        self.segments.keep(f.lba, f.lba + u64::from(f.n));
        let moved = Moved {
            id: None,
            lba: f.lba,
            n: f.n,
            write: true,
        };
        self.note_head(t, from, &moved, end);
        self.media_ops += 1;
        self.note_busy(t, end);
        self.activity = Activity::Destage(f);
        self.next = end;
    }

    /// Handles the event at `t`, which is the end of a media operation or a time at which the
    /// mechanism must be checked.
    pub(super) fn step(&mut self, t: Ticks) {
        match self.activity {
            Activity::Idle => self.choose(t),
            Activity::Think => self.decide(t),
            Activity::ReadAhead => self.step_read_ahead(t),
            Activity::Read {
                from,
                to,
                sequential,
            } => self.read_ended(t, from, to, sequential),
            Activity::Write { from, to } => {
                self.segments.keep(from, to);
                self.write_end = (to, t);
                self.host_at = self.host_at.max(t);
                // The write may have replaced dirty data, so a waiting write may now fit.
                self.admit(t);
                self.mark();
                // A queued write that continues this write starts without losing a revolution, if
                // its command overhead has already passed.
                let on = self
                    .queue
                    .iter()
                    .position(|q| q.write && q.lba == to && q.arrived + self.cost.overhead <= t);
                match on {
                    Some(i) if self.rules.goes_on(&self.queue, i, &self.mech, t) => {
                        self.commit(t, i, false, true)
                    }
                    _ => self.choose(t),
                }
            }
            Activity::Destage(f) => {
                self.dirty.landed(f);
                self.write_end = (f.lba + u64::from(f.n), t);
                self.admit(t);
                self.mark();
                self.choose(t);
            }
        }
    }

    fn step_read_ahead(&mut self, t: Ticks) {
        self.next = NEVER;
        let work = !self.queue.is_empty() || self.flush.is_some() || self.forced;
        let idle = t >= self.host_at + self.cost.wc_idle;
        if work || !self.waiting.is_empty() || (idle && !self.dirty.is_empty()) {
            return self.wake(t);
        }
        self.rest(t);
    }

    /// Moves waiting writes into the cache in order of arrival, while the cache has space.
    fn admit(&mut self, t: Ticks) {
        while let Some(w) = self.waiting.front().copied() {
            let end = w.lba + u64::from(w.n);
            if !self.dirty.fits(w.lba, end) {
                return;
            }
            self.waiting.pop_front();
            self.dirty.insert(w.lba, end, &self.mech);
            self.hit(t.max(w.arrived), w.arrived, w.id, w.n);
        }
    }

    /// Handles the end of a read of [from, to) at `t`.
    fn read_ended(&mut self, t: Ticks, from: u64, to: u64, sequential: bool) {
        self.host_at = self.host_at.max(t);
        if !self.segments.any() {
            return self.choose(t);
        }
        let i = self.segments.fill(from, to);
        self.activity = Activity::Idle;
        self.next = NEVER;
        if self.serve_from(t, i) {
            return;
        }
        if !self.queue.is_empty() {
            // Follow a sequential stream to the end of its track, even if other commands wait.
            let left = u64::from(self.mech.at.left);
            if sequential && left > 0 && self.cost.ra_max > 0 && self.mech.at.lba == to {
                let stop = to + left.min(self.cost.ra_max);
                self.read_ahead(t, i, stop.min(self.facts.capacity.0), stop);
                return self.wake(t);
            }
            return self.choose(t);
        }
        let must = self.flush.is_some() || self.forced || !self.waiting.is_empty();
        let limit = (to + self.cost.ra_max).min(self.facts.capacity.0);
        if must || limit <= to || self.mech.at.lba != to {
            return self.choose(t);
        }
        self.read_ahead(t, i, limit, to + self.cost.ra_min);
    }

    /// Starts to read ahead from the position of the head.
    fn read_ahead(&mut self, t: Ticks, segment: usize, limit: u64, hold: u64) {
        let lba = self.mech.at.lba;
        let hold = hold.min(limit);
        self.ra = ReadAhead::new(segment, &mut self.mech, t, lba, limit, hold, &mut self.rng);
        self.activity = Activity::ReadAhead;
        self.next = NEVER;
        self.rest(t);
    }

    /// Serves the queued reads that segment `i` contains completely. The segment has just been
    /// filled up to the position of the head. Also starts a read that continues at the end of the
    /// segment, if the policy selects this read. Returns true if it started one.
    fn serve_from(&mut self, t: Ticks, i: usize) -> bool {
        let (start, have) = self.segments.run(i);
        // Such a read is rare and this function runs after each read, so make a cheap check first.
        if !self.queue.may_begin(start, have) {
            return false;
        }
        let (mut k, mut on) = (0, None);
        while k < self.queue.len() {
            let q = self.queue[k];
            if q.write || q.lba.wrapping_sub(start) > have - start {
                k += 1;
            } else if q.end() <= have {
                self.queue.remove(k);
                self.hit(t, q.arrived, q.id, q.bus);
            } else {
                on = on.or(Some(k));
                k += 1;
            }
        }
        match on {
            Some(k)
                if self.mech.at.lba == have
                    && self.rules.goes_on(&self.queue, k, &self.mech, t) =>
            {
                self.queue.trim(k, have, self.mech.place(have));
                self.commit(t, k, false, true);
                true
            }
            _ => false,
        }
    }
}
