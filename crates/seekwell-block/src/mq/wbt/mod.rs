//! Writeback throttling (`blk-wbt.c`, 4.19 to 6.18): few buffered writes are let to the device
//! while reads suffer. How few is found by watching the smallest read latency in windows of about
//! 100 ms; what is held sleeps in front of the tag, so it holds neither tag nor request.
//!
//! Models: the three classes with their lists, limits by who writes and who reads close by, the
//! groups in which sleepers are woken, windows in jiffies, the verdict, the steps, `wbt_lat_usec`
//! and what a visit of bfq does. The state machine knows nothing of a queue: recorded rounds of a
//! running kernel are replayed over it as they are (`tests/wbt.rs`).
//!
//! Left out: swap-out (nothing here swaps; the class is there), the hook of the single-queue layer
//! of 4.10 to 4.20, which throttled nothing unless asked by hand, and the older wakers of 4.10 to
//! 4.18, where each sleeper tried for itself.

mod depth;
pub(super) mod rules;
mod window;

pub use super::jiffies::Moment;
use depth::Limits;
use seekwell_core::{Flags, Op};
use seekwell_sched::wbt::target_usec;
use seekwell_sched::{StoreError, WBT_LAT_USEC};
use std::collections::VecDeque;
use window::Window;

/// Target of a disk that nobody has written one for, ns.
const fn target_ns(facts: Facts) -> u64 {
    target_usec(facts.rotational) * 1000
}
/// Windows without a verdict after which the step goes back towards 0.
const UNKNOWN: u32 = 5;

/// What kind of write asks; each has slots and a list of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Everything but the two others.
    Write,
    /// Written to make memory free.
    Swap,
    /// `REQ_OP_DISCARD`.
    Discard,
}

impl Class {
    /// In the order of their lists.
    pub const ALL: [Class; 3] = [Class::Write, Class::Swap, Class::Discard];
}

/// A bio that asks for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asks {
    /// Comes back when the slot is given to one that slept.
    pub id: u64,
    /// Which slots.
    pub class: Class,
    /// SYNC, META or PRIO: somebody waits for it.
    pub high: bool,
    /// Written by a flusher that nobody waits for.
    pub background: bool,
}

impl Asks {
    /// What a bio of these marks asks for (`bio_to_wbt_flags`); `None`: it is not tracked.
    /// Tracked are writes but those that somebody waits for and that will be followed by more
    /// (direct I/O, the journal): of `SYNC` and `REQ_IDLE` not both. `NOIDLE` is the absence of
    /// `REQ_IDLE`.
    pub fn of(id: u64, op: Op, flags: Flags) -> Option<Asks> {
        let class = match op {
            Op::Read | Op::WriteZeroes => return None,
            Op::Discard => Class::Discard,
            Op::Write | Op::Flush => Class::Write,
        };
        let awaited = flags.contains(Flags::SYNC) && !flags.contains(Flags::NOIDLE);
        if class == Class::Write && awaited {
            return None;
        }
        Some(Asks {
            id,
            class,
            high: flags.intersects(Flags::SYNC | Flags::META | Flags::PRIO),
            background: flags.contains(Flags::BACKGROUND),
        })
    }
}

/// What a window said (`latency_exceeded`), as the tracepoint `wbt_timer` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Reads are as fast as they should be.
    Ok = 1,
    /// Too little to say anything.
    Unknown,
    /// Nobody reads.
    OnlyWrites,
    /// Reads are too slow.
    Exceeded,
}

/// Whether it works, and who decided that (`enable_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enabled {
    /// As the kernel has it.
    OnByDefault = 1,
    /// `wbt_lat_usec` was written.
    OnByHand,
    /// The scheduler (bfq) does not want it.
    OffByDefault,
    /// 0 was written.
    OffByHand,
}

/// What does not change while a disk is there.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// CONFIG_HZ.
    pub hz: u32,
    /// The depth it believes in: `queue_depth` of a SCSI disk, else `nr_requests` as it was when
    /// the disk appeared.
    pub depth: u32,
    /// `queue/write_cache` says "write back".
    pub write_back: bool,
    /// Decides the default target.
    pub rotational: bool,
}

/// A timestamp of long ago.
const LONG_AGO: i64 = i64::MIN / 2;

/// The throttle of one disk.
#[derive(Clone, Debug)]
pub struct Wbt {
    facts: Facts,
    state: Enabled,
    /// `min_lat_nsec`; remembered while off by default.
    target_ns: u64,
    /// A target that was written while it was off by default, and changed nothing.
    ignored_usec: Option<u64>,
    limits: Limits,
    unknown: u32,
    used: [u32; 3],
    waiting: [VecDeque<Asks>; 3],
    /// Those that slept and have a slot now, in the order in which they got it.
    granted: VecDeque<Asks>,
    window: Window,
    /// When a read asked, when one completed, when a task was held for its dirty pages: jiffies.
    read_asked: i64,
    read_done: i64,
    dirty_sleep: i64,
}

impl Wbt {
    /// That of a disk which appears now. `off`: its scheduler wants none.
    pub fn new(facts: Facts, now: Moment, off: bool) -> Self {
        let state = match off {
            true => Enabled::OffByDefault,
            false => Enabled::OnByDefault,
        };
        Wbt {
            facts,
            state,
            target_ns: target_ns(facts),
            ignored_usec: None,
            limits: Limits::new(facts.depth),
            unknown: 0,
            used: [0; 3],
            waiting: Default::default(),
            granted: VecDeque::new(),
            window: Window::new(facts.hz),
            read_asked: LONG_AGO,
            read_done: LONG_AGO,
            // The first second counts as one in which somebody was held.
            dirty_sleep: now.jiffy,
        }
    }
    /// Goes on from a state in the middle of things: step, whether it is the top one, windows
    /// without a verdict, jiffies of the last read that asked, that completed, and of the last
    /// dirty sleep.
    #[must_use]
    pub fn resumed(mut self, step: i32, at_max: bool, unknown: u32, jiffies: [i64; 3]) -> Self {
        [self.read_asked, self.read_done, self.dirty_sleep] = jiffies;
        self.corrected(step, at_max, unknown)
    }

    /// Step, whether it is the top one, and windows without a verdict are made as given: for who
    /// holds it against a record.
    #[must_use]
    pub fn corrected(mut self, step: i32, at_max: bool, unknown: u32) -> Self {
        self.limits.set(step, at_max);
        self.unknown = unknown;
        self
    }

    /// Is anything tracked?
    #[inline]
    pub fn on(&self) -> bool {
        matches!(self.state, Enabled::OnByDefault | Enabled::OnByHand)
    }
    /// Whether it works, and why.
    pub fn state(&self) -> Enabled {
        self.state
    }
    /// What `queue/wbt_lat_usec` reads as.
    pub fn lat_usec(&self) -> u64 {
        match self.on() {
            true => self.target_ns / 1000,
            false => 0,
        }
    }
    /// A target that was written while the scheduler had switched it off, and that the kernel took
    /// for no change, because it remembers the same; us.
    pub fn ignored_usec(&self) -> Option<u64> {
        self.ignored_usec
    }
    /// Step, limits (at most, normal, background), windows without a verdict.
    pub fn depths(&self) -> (i32, [u32; 3], u32) {
        (self.limits.step, self.limits.depths(), self.unknown)
    }
    /// Slots in use of each class.
    pub fn used(&self) -> [u32; 3] {
        self.used
    }
    /// Bios that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    fn recent_dirty_sleep(&self, now: Moment) -> bool {
        now.jiffy < self.dirty_sleep + i64::from(self.facts.hz)
    }
    fn reads_are_close(&self, now: Moment) -> bool {
        let tenth = i64::from(self.facts.hz / 10);
        now.jiffy < self.read_asked + tenth || now.jiffy < self.read_done + tenth
    }
    /// Slots of its class that a bio must find fewer of in use to pass (`get_limit`).
    pub fn limit(&self, asks: Asks, now: Moment) -> u32 {
        let [max, normal, background] = self.limits.depths();
        if !self.on() {
            u32::MAX
        } else if asks.class == Class::Discard {
            background
        } else if asks.high || asks.class == Class::Swap || self.recent_dirty_sleep(now) {
            max
        } else if asks.background || self.reads_are_close(now) {
            background
        } else {
            normal
        }
    }
    fn take(&mut self, asks: Asks, now: Moment) -> bool {
        let fits = self.used[asks.class as usize] < self.limit(asks, now);
        if fits {
            self.used[asks.class as usize] += 1;
            self.window.start(now, self.limits.step);
        }
        fits
    }

    /// A bio asks (`wbt_wait`). True: it has its slot. False: it sleeps until [`Wbt::granted`] names
    /// it.
    pub fn ask(&mut self, asks: Asks, now: Moment) -> bool {
        let passes = self.waiting[asks.class as usize].is_empty() && self.take(asks, now);
        if !passes {
            self.waiting[asks.class as usize].push_back(asks);
        }
        passes
    }
    /// The next one that slept and has a slot now.
    pub fn granted(&mut self) -> Option<Asks> {
        self.granted.pop_front()
    }
    /// Does one have a slot that does not know yet?
    pub fn has_granted(&self) -> bool {
        !self.granted.is_empty()
    }
    /// A read asks: it is never held, but writes stand back for a while.
    pub fn read_asks(&mut self, now: Moment) {
        self.read_asked = now.jiffy;
    }
    /// A task was put to sleep for its dirty pages (`balance_dirty_pages`).
    pub fn dirty_sleep(&mut self, jiffy: i64) {
        self.dirty_sleep = self.dirty_sleep.max(jiffy);
    }

    /// Those of a class that fit go, in their order, until one does not.
    pub fn wake(&mut self, class: Class, now: Moment) {
        let c = class as usize;
        while let Some(head) = self.waiting[c].front().copied()
            && self.take(head, now)
        {
            self.waiting[c].pop_front();
            self.granted.push_back(head);
        }
    }
    fn wake_all(&mut self, now: Moment) {
        Class::ALL.into_iter().for_each(|c| self.wake(c, now));
    }

    /// A slot comes back (`wbt_rqw_done`): its request completed, was merged or freed. Sleepers are
    /// woken when the class is empty, or half a background limit below the limit of this moment.
    pub fn slot_back(&mut self, class: Class, now: Moment) {
        let c = class as usize;
        self.used[c] = self.used[c].saturating_sub(1);
        let left = self.used[c];
        if self.waiting[c].is_empty() {
            return;
        }
        if !self.on() {
            return self.wake(class, now);
        }
        let [_, normal, background] = self.limits.depths();
        let limit = if class == Class::Discard {
            background
        } else if self.facts.write_back && !self.recent_dirty_sleep(now) {
            0
        } else {
            normal
        };
        if left == 0 || (left < limit && limit - left >= background / 2) {
            self.wake(class, now);
        }
    }

    /// A read is handed to the driver; `id` is not used by another one until it completes.
    pub fn read_issued(&mut self, id: u64, start_ns: u64) {
        self.window.watch(id, start_ns);
    }
    /// A read is given back by the driver.
    pub fn read_requeued(&mut self, id: u64) {
        self.window.forget(id);
    }
    /// A read completes after so long with the driver.
    pub fn read_done(&mut self, id: u64, latency_ns: u64, now: Moment) {
        self.window.forget(id);
        self.window.read(latency_ns);
        self.read_done = now.jiffy;
    }
    /// A write (or a discard) completes, tracked or not: a sample. Flushes are none.
    pub fn write_done(&mut self) {
        self.window.write();
    }

    /// When the window ends: the first instant of this jiffy.
    pub fn window_ends(&self) -> Option<i64> {
        self.window.ends()
    }

    /// The window ends (`wb_timer_fn`): what was seen, and the step that follows.
    pub fn window_ended(&mut self, now: Moment) -> Verdict {
        let in_use = self.used.iter().any(|n| *n > 0);
        let only_writes = self.recent_dirty_sleep(now) || in_use;
        let verdict = self.window.judge(now, self.target_ns, only_writes);
        match verdict {
            Verdict::Exceeded => {
                if self.limits.scale_down(true) {
                    self.unknown = 0;
                }
            }
            Verdict::Ok | Verdict::OnlyWrites => self.scale_up(now),
            Verdict::Unknown => {
                self.unknown += 1;
                if self.unknown >= UNKNOWN {
                    match self.limits.step {
                        1.. => self.scale_up(now),
                        ..0 => {
                            if self.limits.scale_down(false) {
                                self.unknown = 0;
                            }
                        }
                        0 => {}
                    }
                }
            }
        }
        self.window.close();
        // A kernel's window would go on for ever on a disk of depth 2, whose top of one write no
        // step leads down from. Nothing can change there until a write asks, which begins one.
        let stuck = self.limits.step < 0 && self.limits.depths()[0] == 1;
        if in_use || (self.limits.step != 0 && !stuck) {
            self.window.start(now, self.limits.step);
        }
        verdict
    }
    fn scale_up(&mut self, now: Moment) {
        if self.limits.scale_up() {
            self.unknown = 0;
            self.wake_all(now);
        }
    }

    /// Writes `queue/wbt_lat_usec`: -1 the default of the disk, 0 off, else the target in us.
    /// What is remembered is not written anew, also where it is off.
    ///
    /// # Errors
    /// No number, or one that the setting's range leaves out.
    pub fn store_lat_usec(&mut self, text: &str, now: Moment) -> Result<(), StoreError> {
        WBT_LAT_USEC.validate(text)?;
        let value: i64 = text.trim().parse().unwrap_or(-1);
        let target_ns = match value {
            -1 => target_ns(self.facts),
            _ => value.unsigned_abs().saturating_mul(1000),
        };
        if target_ns == self.target_ns {
            let off = self.state == Enabled::OffByDefault;
            self.ignored_usec = off.then_some(target_ns / 1000);
            return Ok(());
        }
        self.ignored_usec = None;
        self.target_ns = target_ns;
        self.state = match target_ns {
            0 => Enabled::OffByHand,
            _ => Enabled::OnByHand,
        };
        self.limits.set(0, false);
        self.unknown = 0;
        self.wake_all(now);
        Ok(())
    }
    /// A scheduler comes that wants none, or such a one goes (`wbt_disable_default` and
    /// `wbt_enable_default`). What was set by hand stays.
    pub fn wanted(&mut self, wanted: bool, now: Moment) {
        match (self.state, wanted) {
            (Enabled::OnByDefault, false) => {
                self.state = Enabled::OffByDefault;
                self.window.stop();
                self.wake_all(now);
            }
            (Enabled::OffByDefault, true) => self.state = Enabled::OnByDefault,
            _ => {}
        }
    }
    /// `queue_depth` of a SCSI disk changed.
    pub fn depth_changed(&mut self, depth: u32, now: Moment) {
        if self.facts.depth != depth {
            self.facts.depth = depth;
            self.limits = Limits::new(depth);
            self.wake_all(now);
        }
    }
}
