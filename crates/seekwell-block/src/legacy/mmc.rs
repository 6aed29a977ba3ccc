//! The driver of eMMC and SD cards: two slots, packed writes, and stopped writes that are inserted
//! again.
//!
//! One worker thread has two slots: one for the request on the bus, and one for the request that
//! was fetched last. The driver asks the elevator for the next request right after it issued a
//! request, and not when a request completes. The elevator therefore decides one request earlier.
//! After it fetched a write, the driver may fetch more writes and send all of them as a packed
//! group. For an urgent request, the driver returns its fetched requests to the elevator and stops
//! the write on the bus.
//!
//! Not modelled:
//! - the later packing control by Code Aurora, which adapts the threshold to the length of recent
//!   runs of writes;
//! - limits by scatter-gather segments (a group is limited by its number of requests and its size).

use super::LegacyQueue;
use crate::host::HostDriver;
use seekwell_core::{
    Accept, Action, Command, Device, Done, Flags, Instant, MmcHost, Op, Packing, Request, RqId,
    State,
};
use seekwell_sched::{Insert, Scheduler};

/// Sectors that the header of a packed group takes.
const HEADER_SECTORS: u32 = 1;

/// State of the worker thread.
#[derive(Debug, Default)]
pub struct Mmc {
    /// The request or group that was fetched and started, but not issued. The requests stay on the
    /// dispatch list.
    slot: Vec<RqId>,
    /// The request or group on the bus, in the order of the group.
    bus: Vec<RqId>,
    /// Time at which the preparation of the fetched request ends.
    ready: Instant,
    /// Number of writes fetched since the last read.
    writes: u32,
    /// The elevator had no request while the card was busy. New requests do not wake this worker.
    pub(super) dry: bool,
    /// A flush or discard is on the bus, so no other request is fetched.
    alone: bool,
    commands: Vec<Command>,
}

impl Mmc {
    /// Returns whether a request is fetched but not issued.
    #[inline]
    pub(super) fn holds(&self) -> bool {
        !self.slot.is_empty()
    }
    /// Returns the time at which the preparation of the fetched request ends, if it is running.
    pub(super) fn next_event(&self, now: Instant, in_flight: u32) -> Option<Instant> {
        (!self.slot.is_empty() && in_flight == 0 && self.ready > now).then_some(self.ready)
    }
    /// Removes a request from the slots of the worker.
    pub(super) fn forget(&mut self, rq: RqId) {
        self.slot.retain(|r| *r != rq);
        self.bus.retain(|r| *r != rq);
    }
    /// Returns whether the preparation of a request has just ended.
    pub(super) fn prepared(&self, now: Instant) -> bool {
        !self.slot.is_empty() && self.ready == now
    }
    /// Wakes the worker because of a completion.
    #[cold]
    pub(super) fn completed(&mut self) {
        (self.dry, self.alone) = (false, false);
        self.bus.clear();
    }
}

/// Returns whether the request may be part of a packed group.
fn packable(r: &Request) -> bool {
    r.op == Op::Write
        && r.sectors.0 > 0
        && !r.flags.intersects(Flags::PREFLUSH.union(Flags::FUA))
        && r.elv
}

impl<S: Scheduler + ?Sized, D: Device> LegacyQueue<S, D> {
    /// Runs one round of the worker. Returns false if it must wait.
    #[cold]
    #[inline(never)]
    pub(super) fn step_mmc(&mut self) -> bool {
        let HostDriver::Mmc(host) = self.host else {
            return false;
        };
        if self.mmc.slot.is_empty() && !self.fetch(host) {
            return false;
        }
        if self.mmc.slot.is_empty() {
            return true;
        }
        if self.in_flight > 0 || self.cx.now() < self.mmc.ready {
            return false;
        }
        if let &[rq] = &self.mmc.slot[..] {
            if !self.issue(rq) {
                return false;
            }
            self.mmc.alone = matches!(self.cx.rqs[rq].op, Op::Flush | Op::Discard);
        } else if !self.issue_group() {
            return false;
        }
        std::mem::swap(&mut self.mmc.slot, &mut self.mmc.bus);
        self.mmc.slot.clear();
        true
    }

    /// Fetches the next request. Returns true if the slot was filled, or if the elevator moved a
    /// request to the dispatch list. Returns false if there is no request, or if the worker may not
    /// fetch one.
    fn fetch(&mut self, host: MmcHost) -> bool {
        if self.mmc.alone || self.mmc.dry {
            return false;
        }
        let Some(rq) = self.cx.out.first() else {
            let found = self.ask();
            self.mmc.dry = !found && !host.wakes && self.in_flight > 0;
            return found;
        };
        let is_barrier = self.is_barrier(rq);
        if (self.barrier.is_some() && !is_barrier) || (is_barrier && !self.barrier_step(rq)) {
            return false;
        }
        self.start(rq);
        self.mmc.slot.push(rq);
        self.mmc.ready = self.cx.now() + host.prepare;
        let pack = self.note_direction(rq, host);
        if pack && packable(&self.cx.rqs[rq]) {
            self.gather(host);
        }
        true
    }

    /// Counts consecutive writes. Returns whether packing is active.
    fn note_direction(&mut self, rq: RqId, host: MmcHost) -> bool {
        match self.cx.rqs[rq].op {
            Op::Read => self.mmc.writes = 0,
            Op::Write => self.mmc.writes = self.mmc.writes.saturating_add(1),
            _ => {}
        }
        host.max_packed > 1
            && match host.packing {
                Packing::Off => false,
                Packing::Always => true,
                Packing::After(n) => self.mmc.writes > n,
            }
    }

    /// Fetches more writes for the group of the write in the slot. Puts back the first request that
    /// does not fit.
    fn gather(&mut self, host: MmcHost) {
        let limit = self.cx.queue.max_sectors.0;
        let mut total = HEADER_SECTORS + self.cx.rqs[self.mmc.slot[0]].sectors.0;
        while self.mmc.slot.len() < host.max_packed as usize {
            let waiting = |q: &Self| {
                let state = |rq: &RqId| q.cx.rqs[*rq].state;
                q.cx.out.iter().find(|rq| state(rq) < State::Started)
            };
            let next = match waiting(self) {
                Some(rq) => rq,
                None => {
                    let moved = self.sched.dispatch(&mut self.cx, 0, false);
                    self.cx.take_run();
                    match waiting(self) {
                        Some(rq) if moved > 0 => rq,
                        _ => return,
                    }
                }
            };
            if self.is_barrier(next) {
                return;
            }
            self.start(next);
            let r = &self.cx.rqs[next];
            if !packable(r) || total + r.sectors.0 > limit {
                return self.put_back(next);
            }
            total += r.sectors.0;
            self.note_direction(next, host);
            self.mmc.slot.push(next);
        }
    }

    /// Puts back a started request that the driver does not take. It keeps its position on the
    /// dispatch list. No other request may pass it, and nothing may be merged with it.
    #[cold]
    fn put_back(&mut self, rq: RqId) {
        if self.cx.rqs[rq].elv {
            self.cx.in_driver -= 1;
            self.sched.deactivate(&mut self.cx, rq);
        }
        let r = &mut self.cx.rqs[rq];
        r.state = State::Dispatched;
        r.flags |= Flags::BARRIER;
        self.cx.event(Action::Requeue, rq);
    }

    fn issue_group(&mut self) -> bool {
        let now = self.cx.now();
        let mut commands = std::mem::take(&mut self.mmc.commands);
        commands.clear();
        commands.extend(self.mmc.slot.iter().map(|rq| {
            let r = &self.cx.rqs[*rq];
            Command {
                id: rq.0,
                op: r.op,
                sector: r.sector,
                sectors: r.sectors,
                fua: false,
            }
        }));
        let accepted = self.dev.accept_packed(now, &commands) == Accept::Accepted;
        self.mmc.commands = commands;
        if !accepted {
            return false;
        }
        self.acct.stats.packed += 1;
        for i in 0..self.mmc.slot.len() {
            self.issued(self.mmc.slot[i]);
        }
        true
    }

    /// Called for an urgent request: wakes the worker and ends packing. Fetched requests that were
    /// not issued return to the elevator. The last one returns first, so that the first one ends up
    /// in front.
    pub(super) fn give_back_slot(&mut self) {
        (self.mmc.writes, self.mmc.dry) = (0, false);
        if self.mmc.slot.iter().any(|rq| !self.cx.rqs[*rq].elv) {
            return;
        }
        while let Some(rq) = self.mmc.slot.pop() {
            self.cx.out.remove(rq);
            self.reinsert(rq);
        }
    }

    /// Stops the write on the bus, if the device can do this. The rest of the write returns to the
    /// elevator. The requests of a packed group return one by one.
    pub(super) fn stop_the_bus(&mut self) {
        let write = |rq: &RqId| self.cx.rqs[*rq].op == Op::Write && self.cx.rqs[*rq].elv;
        if self.mmc.bus.first().is_some_and(write) {
            let members = std::mem::take(&mut self.mmc.bus);
            self.stop_members(&members);
        }
    }

    /// Stops the requests of one transaction. If the device cannot stop, the transaction continues.
    #[cold]
    pub(super) fn stop_members(&mut self, members: &[RqId]) {
        let now = self.cx.now();
        for &rq in members.iter().rev() {
            let Some(done) = self.dev.stop(now, rq.0) else {
                continue;
            };
            if done >= self.cx.rqs[rq].sectors {
                // All data of the request are on the medium, so it completes immediately.
                self.done.push(Done {
                    id: rq.0,
                    at: now,
                    error: false,
                });
                continue;
            }
            self.in_flight -= 1;
            self.acct.stats.set_depth(now, self.in_flight);
            let r = &mut self.cx.rqs[rq];
            if done.0 > 0 {
                // The rest of the request is written later, and its bios end then. Nothing may be
                // merged with this rest.
                r.sector = r.sector + done;
                r.sectors.0 -= done.0;
                r.flags |= Flags::NOMERGE;
            }
            self.acct.stats.stops += 1;
            self.reinsert(rq);
        }
    }

    /// Returns the request to the elevator, at the head of its queue.
    #[cold]
    fn reinsert(&mut self, rq: RqId) {
        self.cx.in_driver -= 1;
        self.sched.deactivate(&mut self.cx, rq);
        self.cx.rqs[rq].state = State::Sorted;
        self.cx.nr_sorted += 1;
        self.cx.event(Action::Requeue, rq);
        self.sched.insert(&mut self.cx, rq, Insert::Reinsert);
    }
}
