//! Writeback throttling (`blk-wbt.c`, 4.19 to 6.18): limits the buffered writes in the device while
//! reads suffer. The limit follows the smallest read latency in windows of about 100 ms. A held
//! task sleeps before the tag, so it holds neither tag nor request.
//!
//! Modelled: the three classes with their lists, limits that depend on the kind of write and on
//! recent reads, the groups in which sleepers are woken, windows in jiffies, the verdict, the
//! steps, `wbt_lat_usec`, and the effect of a temporary switch to bfq. The state machine does not
//! depend on a queue: recorded rounds of a running kernel are replayed over it unchanged
//! (`tests/wbt.rs`).
//!
//! Not modelled: swap-out (nothing here swaps, but the class exists), the hook of the single-queue
//! layer of 4.10 to 4.20, which throttled only on explicit request, and the older wake-ups of 4.10
//! to 4.18, where each sleeper tried for itself.

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

/// Default target of a disk, ns.
const fn target_ns(facts: Facts) -> u64 {
    target_usec(facts.rotational) * 1000
}
/// Number of windows without a verdict after which the step moves towards 0.
const UNKNOWN: u32 = 5;

/// The kind of write; each kind has its own slots and list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// All writes except the two other kinds.
    Write,
    /// Written to free memory.
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
    /// Returned when a sleeper gets its slot.
    pub id: u64,
    /// The class of its slot.
    pub class: Class,
    /// SYNC, META or PRIO: a task waits for it.
    pub high: bool,
    /// Written by a flusher; no task waits for it.
    pub background: bool,
}

impl Asks {
    /// The request of a bio with these flags (`bio_to_wbt_flags`); `None` if it is not tracked.
    /// Writes are tracked, except those with both `SYNC` and `REQ_IDLE`: a task waits for them and
    /// more will follow (direct I/O, the journal). `NOIDLE` is the absence of `REQ_IDLE`.
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

/// The verdict of a window (`latency_exceeded`), with the numbers of the tracepoint `wbt_timer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Read latency is within the target.
    Ok = 1,
    /// Too few samples for a verdict.
    Unknown,
    /// There are no reads.
    OnlyWrites,
    /// Read latency exceeds the target.
    Exceeded,
}

/// Whether throttling is on, and who decided that (`enable_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enabled {
    /// On by the kernel's default.
    OnByDefault = 1,
    /// `wbt_lat_usec` was written.
    OnByHand,
    /// Off because the scheduler (bfq) does not want it.
    OffByDefault,
    /// 0 was written.
    OffByHand,
}

/// Constant properties of a disk.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// CONFIG_HZ.
    pub hz: u32,
    /// The depth used for the limits: `queue_depth` of a SCSI disk, else `nr_requests` at the time
    /// the disk appeared.
    pub depth: u32,
    /// Whether `queue/write_cache` is "write back".
    pub write_back: bool,
    /// Decides the default target.
    pub rotational: bool,
}

/// A timestamp far in the past.
const LONG_AGO: i64 = i64::MIN / 2;

/// The throttle of one disk.
#[derive(Clone, Debug)]
pub struct Wbt {
    facts: Facts,
    state: Enabled,
    /// `min_lat_nsec`; remembered while off by default.
    target_ns: u64,
    /// A target that was written while throttling was off by default, without effect.
    ignored_usec: Option<u64>,
    limits: Limits,
    unknown: u32,
    used: [u32; 3],
    waiting: [VecDeque<Asks>; 3],
    /// Sleepers that have got a slot, in the order of the grants.
    granted: VecDeque<Asks>,
    window: Window,
    /// Jiffies of the last read request, of the last read completion, and of the last sleep for
    /// dirty pages.
    read_asked: i64,
    read_done: i64,
    dirty_sleep: i64,
}

impl Wbt {
    /// The throttle of a new disk. `off`: the scheduler does not want throttling.
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
            // The first second counts as if a task had been held.
            dirty_sleep: now.jiffy,
        }
    }
    /// Continues from a recorded state: step, whether it is the maximum, windows without a verdict,
    /// jiffies of the last read request, of the last read completion, and of the last dirty sleep.
    #[must_use]
    pub fn resumed(mut self, step: i32, at_max: bool, unknown: u32, jiffies: [i64; 3]) -> Self {
        [self.read_asked, self.read_done, self.dirty_sleep] = jiffies;
        self.corrected(step, at_max, unknown)
    }

    /// Sets step, whether it is the maximum, and windows without a verdict; for comparisons with a
    /// record.
    #[must_use]
    pub fn corrected(mut self, step: i32, at_max: bool, unknown: u32) -> Self {
        self.limits.set(step, at_max);
        self.unknown = unknown;
        self
    }

    /// Whether writes are tracked.
    #[inline]
    pub fn on(&self) -> bool {
        matches!(self.state, Enabled::OnByDefault | Enabled::OnByHand)
    }
    /// Whether throttling is on, and why.
    pub fn state(&self) -> Enabled {
        self.state
    }
    /// The value of `queue/wbt_lat_usec`.
    pub fn lat_usec(&self) -> u64 {
        match self.on() {
            true => self.target_ns / 1000,
            false => 0,
        }
    }
    /// A target that was written while the scheduler had switched throttling off, us. The kernel
    /// ignored the write because it remembers the same target.
    pub fn ignored_usec(&self) -> Option<u64> {
        self.ignored_usec
    }
    /// Step, limits (maximum, normal, background), and windows without a verdict.
    pub fn depths(&self) -> (i32, [u32; 3], u32) {
        (self.limits.step, self.limits.depths(), self.unknown)
    }
    /// Number of slots in use per class.
    pub fn used(&self) -> [u32; 3] {
        self.used
    }
    /// Number of bios that wait for a slot.
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
    /// The limit for a bio: it passes if fewer slots of its class are in use (`get_limit`).
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

    /// A bio asks for a slot (`wbt_wait`). True: it has its slot. False: it sleeps until
    /// [`Wbt::granted`] names it.
    pub fn ask(&mut self, asks: Asks, now: Moment) -> bool {
        let passes = self.waiting[asks.class as usize].is_empty() && self.take(asks, now);
        if !passes {
            self.waiting[asks.class as usize].push_back(asks);
        }
        passes
    }
    /// The next sleeper that has got a slot.
    pub fn granted(&mut self) -> Option<Asks> {
        self.granted.pop_front()
    }
    /// Whether a sleeper has got a slot and has not been reported yet.
    pub fn has_granted(&self) -> bool {
        !self.granted.is_empty()
    }
    /// A read arrives: it is never held, but the limits of writes fall for a while.
    pub fn read_asks(&mut self, now: Moment) {
        self.read_asked = now.jiffy;
    }
    /// A task was put to sleep for its dirty pages (`balance_dirty_pages`).
    pub fn dirty_sleep(&mut self, jiffy: i64) {
        self.dirty_sleep = self.dirty_sleep.max(jiffy);
    }

    /// Lets sleepers of a class continue in their order, until one does not fit.
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

    /// Returns a slot (`wbt_rqw_done`): its request completed, was merged or freed. Sleepers are
    /// woken if the class is empty, or at least half a background limit below the current limit.
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

    /// A read is issued to the driver; its `id` stays unique until it completes.
    pub fn read_issued(&mut self, id: u64, start_ns: u64) {
        self.window.watch(id, start_ns);
    }
    /// The driver returned a read.
    pub fn read_requeued(&mut self, id: u64) {
        self.window.forget(id);
    }
    /// A read completed, with its time in the driver.
    pub fn read_done(&mut self, id: u64, latency_ns: u64, now: Moment) {
        self.window.forget(id);
        self.window.read(latency_ns);
        self.read_done = now.jiffy;
    }
    /// A write (or discard) completed, tracked or not: a sample. Flushes are not samples.
    pub fn write_done(&mut self) {
        self.window.write();
    }

    /// The jiffy at whose start the window ends.
    pub fn window_ends(&self) -> Option<i64> {
        self.window.ends()
    }

    /// Ends the window (`wb_timer_fn`) and sets the next step; returns the verdict.
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
        // On a disk of depth 2 the maximum is one write, and no step leads away from it, so the
        // kernel's window would continue for ever. Nothing can change there until a write arrives,
        // and that starts a window.
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

    /// Writes `queue/wbt_lat_usec`: -1 for the disk's default, 0 for off, else the target in us. A
    /// value equal to the remembered target has no effect, even while throttling is off.
    ///
    /// # Errors
    /// Not a number, or outside the range of the setting.
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
    /// The scheduler changes to one that does not want throttling, or from such a one
    /// (`wbt_disable_default` and `wbt_enable_default`). A setting by hand stays.
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
