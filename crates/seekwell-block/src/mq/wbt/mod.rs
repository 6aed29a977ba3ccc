//! Writeback throttling (`blk-wbt.c`, 4.19 to 6.18): a limit for the number of buffered writes in
//! the device, so that reads do not become slow. The limit follows the smallest read latency in
//! windows of about 100 ms. A throttled task sleeps before it gets a tag, so it holds neither a tag
//! nor a request.
//!
//! Modelled:
//! - the three classes with their lists;
//! - limits that depend on the kind of write and on recent reads;
//! - the groups in which sleeping tasks are woken;
//! - windows in jiffies, the verdict, and the steps;
//! - `wbt_lat_usec`, and the effect of a temporary switch to bfq.
//!
//! This module does not depend on a queue. Tests replay rounds that were recorded on a running
//! kernel (`tests/wbt.rs`).
//!
//! Not modelled:
//! - swap-out (the model does not swap, but the class exists);
//! - the throttle of the single-queue layer of 4.10 to 4.20 (it is off by default);
//! - the wake-ups of 4.10 to 4.18, where each sleeping task checked the limit by itself.

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

/// Returns the default latency target of a disk, ns.
const fn target_ns(facts: Facts) -> u64 {
    target_usec(facts.rotational) * 1000
}
/// Number of windows without a verdict after which the step moves towards 0.
const UNKNOWN: u32 = 5;

/// The class of a write. Each class has its own slots and its own list of sleeping bios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// All writes that are in neither of the other classes.
    Write,
    /// Writes that free memory.
    Swap,
    /// Discards (`REQ_OP_DISCARD`).
    Discard,
}

impl Class {
    /// All classes, in the order of their lists.
    pub const ALL: [Class; 3] = [Class::Write, Class::Swap, Class::Discard];
}

/// A bio that needs a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asks {
    /// Number that is returned when a sleeping bio gets its slot.
    pub id: u64,
    /// The class of its slot.
    pub class: Class,
    /// Whether a task waits for the write (SYNC, META or PRIO).
    pub high: bool,
    /// Whether a flusher writes, so that no task waits for the write.
    pub background: bool,
}

impl Asks {
    /// Returns what a bio with these flags needs (`bio_to_wbt_flags`), or `None` if it is not
    /// throttled. Writes are throttled, except those with both `SYNC` and `REQ_IDLE` (direct I/O,
    /// the journal). A task waits for such a write, and more writes will follow. `NOIDLE` is the
    /// absence of `REQ_IDLE`.
    pub fn throttled_kind(id: u64, op: Op, flags: Flags) -> Option<Asks> {
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

/// The verdict of a window (`latency_exceeded`). The numbers are those of the tracepoint
/// `wbt_timer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The read latency is within the target.
    Ok = 1,
    /// There are too few samples for a verdict.
    Unknown,
    /// There were no reads.
    OnlyWrites,
    /// The read latency exceeds the target.
    Exceeded,
}

/// Whether throttling is on, and what decided this (`enable_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enabled {
    /// It is on by the kernel's default.
    OnByDefault = 1,
    /// It is on because `wbt_lat_usec` was written.
    OnByHand,
    /// It is off because the scheduler (bfq) disables it.
    OffByDefault,
    /// It is off because 0 was written to `wbt_lat_usec`.
    OffByHand,
}

/// Constant properties of a disk.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Clock ticks of the kernel per second (CONFIG_HZ).
    pub hz: u32,
    /// The depth from which the limits are computed. It is the `queue_depth` of a SCSI disk. For
    /// other disks, it is `nr_requests` at the time when the disk appeared.
    pub depth: u32,
    /// Whether `queue/write_cache` is "write back".
    pub write_back: bool,
    /// Whether the disk is rotational. Determines the default target.
    pub rotational: bool,
}

/// A time far in the past, jiffies.
const LONG_AGO: i64 = i64::MIN / 2;

/// The writeback throttle of one disk.
#[derive(Clone, Debug)]
pub struct Wbt {
    facts: Facts,
    state: Enabled,
    /// Latency target (`min_lat_nsec`), ns. It is kept while throttling is off by default.
    target_ns: u64,
    /// A target that was written without effect, because throttling was off by default, us.
    ignored_usec: Option<u64>,
    limits: Limits,
    unknown: u32,
    used: [u32; 3],
    waiting: [VecDeque<Asks>; 3],
    /// Sleeping bios that have got a slot, in the order in which they got it.
    granted: VecDeque<Asks>,
    window: Window,
    /// Jiffies of the last arrival of a read. The next two fields: jiffies of the last completion
    /// of a read, and of the last sleep of a task for dirty pages.
    read_asked: i64,
    read_done: i64,
    dirty_sleep: i64,
}

impl Wbt {
    /// Creates the throttle of a disk that appears at this time. `off`: the scheduler disables
    /// throttling.
    pub fn new(facts: Facts, appeared: Moment, off: bool) -> Self {
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
            // In the first second, a task counts as having slept for dirty pages.
            dirty_sleep: appeared.jiffy,
        }
    }
    /// Continues from a recorded state: the step, whether it is the maximum, and the number of
    /// windows without a verdict. `jiffies` has the times of the last arrival of a read, the last
    /// completion of a read, and the last sleep for dirty pages.
    #[must_use]
    pub fn resumed(mut self, step: i32, at_max: bool, unknown: u32, jiffies: [i64; 3]) -> Self {
        [self.read_asked, self.read_done, self.dirty_sleep] = jiffies;
        self.corrected(step, at_max, unknown)
    }

    /// Sets the step, whether it is the maximum, and the number of windows without a verdict. Used
    /// for comparisons with a record.
    #[must_use]
    pub fn corrected(mut self, step: i32, at_max: bool, unknown: u32) -> Self {
        self.limits.set(step, at_max);
        self.unknown = unknown;
        self
    }

    /// Returns whether writes are throttled.
    #[inline]
    pub fn on(&self) -> bool {
        matches!(self.state, Enabled::OnByDefault | Enabled::OnByHand)
    }
    /// Returns whether throttling is on, and what decided this.
    pub fn state(&self) -> Enabled {
        self.state
    }
    /// Returns the value of `queue/wbt_lat_usec`.
    pub fn lat_usec(&self) -> u64 {
        match self.on() {
            true => self.target_ns / 1000,
            false => 0,
        }
    }
    /// Returns a target in us that was written while the scheduler had disabled throttling. The
    /// kernel ignores such a write, because it already stores the same target.
    pub fn ignored_usec(&self) -> Option<u64> {
        self.ignored_usec
    }
    /// Returns the step, the limits (maximum, normal, background), and the number of windows
    /// without a verdict.
    pub fn depths(&self) -> (i32, [u32; 3], u32) {
        (self.limits.step, self.limits.depths(), self.unknown)
    }
    /// Returns the number of slots in use per class.
    pub fn used(&self) -> [u32; 3] {
        self.used
    }
    /// Returns the number of bios that wait for a slot.
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
    /// Returns the limit for a bio. The bio passes if fewer slots of its class are in use
    /// (`get_limit`).
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

    /// Asks for a slot for a bio (`wbt_wait`). Returns true if the bio gets the slot. Returns false
    /// if it sleeps until [`Wbt::granted`] returns it.
    pub fn ask(&mut self, asks: Asks, now: Moment) -> bool {
        let passes = self.waiting[asks.class as usize].is_empty() && self.take(asks, now);
        if !passes {
            self.waiting[asks.class as usize].push_back(asks);
        }
        passes
    }
    /// Returns the next sleeping bio that has got a slot.
    pub fn granted(&mut self) -> Option<Asks> {
        self.granted.pop_front()
    }
    /// Returns whether `granted` has more bios to return.
    pub fn has_granted(&self) -> bool {
        !self.granted.is_empty()
    }
    /// Handles the arrival of a read. Reads are never held, but they lower the limits of writes for
    /// some time.
    pub fn read_asks(&mut self, now: Moment) {
        self.read_asked = now.jiffy;
    }
    /// Handles the sleep of a task because of its dirty pages (`balance_dirty_pages`).
    pub fn dirty_sleep(&mut self, jiffy: i64) {
        self.dirty_sleep = self.dirty_sleep.max(jiffy);
    }

    /// Lets sleeping bios of a class continue in their order, until one does not fit.
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

    /// Frees a slot, because its request completed, was merged or was freed (`wbt_rqw_done`).
    /// Sleeping bios are woken if the class has no write in progress. They are also woken if the
    /// number of its writes is below the limit by at least half of the background limit.
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

    /// Handles a read that is issued to the driver. Its `id` must be unique until it completes.
    pub fn read_issued(&mut self, id: u64, start_ns: u64) {
        self.window.watch(id, start_ns);
    }
    /// Handles a read that the driver returned.
    pub fn read_requeued(&mut self, id: u64) {
        self.window.forget(id);
    }
    /// Handles the completion of a read. `latency_ns` is its time in the driver.
    pub fn read_done(&mut self, id: u64, latency_ns: u64, now: Moment) {
        self.window.forget(id);
        self.window.read(latency_ns);
        self.read_done = now.jiffy;
    }
    /// Handles the completion of a write or discard, which is a sample even if it was not
    /// throttled. Flushes are no samples.
    pub fn write_done(&mut self) {
        self.window.write();
    }

    /// Returns the jiffy at whose start the window ends.
    pub fn window_ends(&self) -> Option<i64> {
        self.window.ends()
    }

    /// Ends the window (`wb_timer_fn`) and sets the next step. Returns the verdict.
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
        // On a disk of depth 2, the maximum is one write, and no step leads away from it. The
        // kernel would start new windows for ever. Here no window is started: the state can change
        // only when a write arrives, and a write starts a window.
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

    /// Writes `queue/wbt_lat_usec`. -1 sets the default of the disk, and 0 disables throttling.
    /// Other values are the latency target in us. If the value equals the stored target, the write
    /// has no effect, even while throttling is off.
    ///
    /// # Errors
    /// Returns an error if the text is not a number, or is outside the range of the setting.
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
    /// Handles a change of the scheduler, which may disable throttling (`wbt_disable_default`) or
    /// allow it (`wbt_enable_default`). A value that the user wrote stays.
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
}
