//! Flash units and channels. The model of each stores only the time at which it becomes idle. A
//! unit also stores the duration of its pending background work (cleaning).

use super::super::host::enter;
use super::super::params::SsdParams;
use super::super::tree::Tree;
use seekwell_core::{Action, Event, EventLog, Instant, More};

/// A flash unit. `read_end` is the end of its last read, `write_end` is the end of its last
/// scheduled program, and `debt` is its pending cleaning work in ns. The unit cleans whenever it is
/// idle.
#[derive(Debug, Clone, Copy, Default)]
struct Unit {
    read_end: u64,
    write_end: u64,
    debt: u64,
    /// End of the operation that was suspended last. A second read does not suspend this operation
    /// again.
    suspended: u64,
    channel: u32,
}

impl Unit {
    #[inline]
    fn free(&self) -> u64 {
        self.read_end.max(self.write_end)
    }
    /// Subtracts the cleaning that the unit has done in its idle time up to `at`.
    #[inline]
    fn settle(&mut self, at: u64) {
        self.debt = self.debt.saturating_sub(at.saturating_sub(self.free()));
    }
    /// Returns how long a read waits for the running operation, in ns. The operation needs `left`
    /// more ns. If that is long, the read suspends the operation, which takes `susp` ns.
    #[inline]
    fn wait(&mut self, at: u64, left: u64, susp: u64) -> u64 {
        if susp == 0 || left <= susp || self.suspended == at + left {
            return left;
        }
        self.suspended = at + left;
        susp
    }
    /// Returns the time at which the unit will have finished all its work, including the pending
    /// cleaning. This time changes only when the unit gets new work.
    #[inline]
    fn load(&self) -> u64 {
        self.free() + self.debt
    }
}

/// All units and channels of a drive.
#[derive(Debug, Clone)]
pub(super) struct Flash {
    units: Vec<Unit>,
    channels: Vec<u64>,
    /// A lower bound of [`Unit::load`] for each unit. The value is not exact, because reads do not
    /// update this tree.
    loads: Tree,
    read: u64,
    xfer: u64,
    susp: u64,
    prog: u64,
    prog_rested: u64,
    /// Time of a program operation including its transfer, in ns.
    prog_all: u64,
    /// Maximum pending cleaning of a unit, in ns. A program on a unit with more pending cleaning
    /// waits until the pending cleaning has fallen to this maximum.
    debt_max: u64,
    /// End of the last scheduled program.
    pub last_end: u64,
    /// Number of reads of the flash array and of program operations.
    pub ops: u64,
    pub log: EventLog,
    /// Arrival time of the current command, for events. Operations are scheduled ahead of time.
    pub now: u64,
}

impl Flash {
    pub fn new(p: &SsdParams) -> Self {
        let unit = |u: u32| Unit {
            channel: u % p.channels,
            ..Unit::default()
        };
        let mut loads = Tree::new(p.units as usize);
        for u in 0..p.units as usize {
            loads.set(u, 0);
        }
        let all = u64::from(p.k) * p.xfer_ns;
        Flash {
            units: (0..p.units).map(unit).collect(),
            channels: vec![0; p.channels as usize],
            loads,
            read: p.read_ns,
            xfer: p.xfer_ns,
            susp: p.susp_ns,
            prog: p.prog_ns,
            prog_rested: p.prog_rested_ns,
            prog_all: p.prog_ns + all,
            debt_max: 8 * (p.prog_ns + p.read_ns + 2 * all),
            last_end: 0,
            ops: 0,
            log: EventLog::default(),
            now: 0,
        }
    }

    /// Reads `pages` of one program unit, starting at `ready` or later. Returns the time at which
    /// the pages are in the controller. `add` is the extra read time of this page type.
    #[inline]
    pub fn read(&mut self, ready: u64, unit: u32, pages: u32, add: u64) -> u64 {
        self.ops += 1;
        let die = unit;
        let unit = &mut self.units[unit as usize];
        let writing = unit.write_end > ready;
        let start = if unit.read_end >= ready {
            // Reads run one after another. A program that was suspended resumes after them.
            unit.read_end
        } else if writing {
            // Programs follow each other without gaps, so the remainder of this division is the
            // time that the running program still needs.
            let left = (unit.write_end - ready) % self.prog_all;
            ready + unit.wait(ready, left, self.susp)
        } else {
            let since = unit.free();
            unit.settle(ready);
            if unit.debt > 0 {
                // Cleaning began when the unit became free, and runs one operation after another.
                // The running operation progresses while the read waits for it.
                let left = match unit.suspended.checked_sub(ready) {
                    Some(left) if left > 0 => left,
                    _ => self.prog_all - (ready - since.max(unit.suspended)) % self.prog_all,
                };
                let wait = unit.wait(ready, left.min(unit.debt), self.susp);
                unit.debt -= wait;
                ready + wait
            } else {
                ready
            }
        };
        let data = start + self.read + add;
        // The transfer enters the channel at the earliest possible end of the array read, even if
        // the read ends later. So the transfer never occupies the channel in the far future.
        let xfer = u64::from(pages) * self.xfer;
        let bus = enter(
            &mut self.channels[unit.channel as usize],
            ready + self.read,
            xfer,
        );
        let end = bus.max(data + xfer);
        unit.read_end = end;
        unit.suspended += end - start;
        if writing {
            unit.write_end += end - start;
        }
        let channel = unit.channel;
        if self.log.listening() {
            self.note(die, channel, "read", end);
        }
        end
    }
    #[cold]
    #[inline(never)]
    fn note(&mut self, die: u32, channel: u32, doing: &'static str, end: u64) {
        let now = Instant(self.now);
        self.log.push(|| Event {
            more: More::Die {
                die,
                channel,
                doing,
                until: Instant(end),
            },
            ..Event::new(now, Action::Flash)
        });
    }

    /// Programs `pages` on the unit with the smallest load, and adds `debt` to its pending
    /// cleaning. The program takes `prog` ns (`None`: the ordinary time). The data are in the
    /// buffer at `at`. Returns the end of the program. The transfer enters the channel at `since`,
    /// the arrival time of the command. If it entered at `at`, after a long wait for the buffer, an
    /// unused channel would look busy.
    #[inline]
    pub fn program(
        &mut self,
        since: u64,
        at: u64,
        pages: u32,
        prog: Option<u64>,
        debt: u64,
    ) -> u64 {
        self.ops += 1;
        let u = loop {
            let u = self.loads.winner();
            let load = self.units[u].load();
            if load == self.loads.get(u) {
                break u;
            }
            self.loads.set(u, load);
        };
        let unit = &mut self.units[u];
        unit.settle(at);
        let free = unit.free();
        let rested = unit.debt == 0 && at >= free + self.prog;
        let mut start = at.max(free);
        if unit.debt > self.debt_max {
            start += unit.debt - self.debt_max;
            unit.debt = self.debt_max;
        }
        let xfer = u64::from(pages) * self.xfer;
        let bus = enter(&mut self.channels[unit.channel as usize], since, xfer);
        let prog = prog.unwrap_or(if rested { self.prog_rested } else { self.prog });
        let end = bus.max(start + xfer) + prog;
        unit.write_end = end;
        unit.debt += debt;
        self.loads.set(u, unit.load());
        self.last_end = self.last_end.max(end);
        if self.log.listening() {
            let channel = self.units[u].channel;
            self.note(u as u32, channel, "program", end);
        }
        end
    }

    /// Returns the total pending cleaning of all units at `at`, in ns.
    pub fn owed(&self, at: u64) -> u64 {
        let owed = |u: &Unit| u.debt.saturating_sub(at.saturating_sub(u.free()));
        self.units.iter().map(owed).sum()
    }
}
