//! The queue as a [`BioSink`]: time, and control messages.

use super::submit::SubmitStep;
use super::{MqQueue, sooner};
use crate::inside;
use seekwell_core::{
    Bio, BioDone, BioSink, Control, Device, Instant, SchedulerWork, Sector, Snapshot, Tap, TaskId,
};
use seekwell_sched::Scheduler;

impl<S: Scheduler + ?Sized, D: Device> BioSink for MqQueue<S, D> {
    fn submit(&mut self, now: Instant, bio: Bio) {
        self.cx.set_now(now);
        self.come(&bio);
        self.keep();
    }

    fn next_event(&self) -> Option<Instant> {
        if self.runs_due() {
            return Some(self.cx.now());
        }
        self.next_outside()
    }

    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        loop {
            let due = self.runs_due();
            let besides = self.next_besides();
            let outside = sooner(self.dev.next_event(), besides);
            let next = if due { Some(self.cx.now()) } else { outside };
            let Some(t) = next.filter(|t| *t <= to) else {
                return;
            };
            let t = t.max(self.cx.now());
            self.cx.set_now(t);
            if outside.is_some_and(|o| o <= t) {
                self.take_ready(out);
                let done = self.completions(t, out);
                // A step of the device without a completion changes nothing here. A disk, for
                // example, takes two steps per request.
                if !done && !due && besides.is_none_or(|b| b > t) {
                    continue;
                }
                self.timers(t);
                self.wake_sleepers();
                self.take_ready(out);
                if t == to {
                    self.keep();
                    if self.runs_due() {
                        return; // submissions of this instant come before its runs
                    }
                }
            }
            self.due_runs();
            self.keep();
        }
    }

    fn control(&mut self, now: Instant, what: Control) {
        self.cx.set_now(now);
        match what {
            Control::Plug(t) => self.act_one(t, SubmitStep::Plug),
            Control::Unplug(t) => self.act_one(t, SubmitStep::Unplug),
            // A task that waits for the layer has flushed its plug already. A second flush after it
            // wakes would separate requests that the plug keeps together.
            Control::Sleep(t) if self.is_asleep(t) => {}
            Control::Sleep(t) => self.flush_plug_of(t, true),
            Control::Exit(t) => self.act_one(t, SubmitStep::Exit),
            Control::DirtySleep(_) => self.dirty_sleep(),
            other => {
                self.tasks.control(&mut self.cx, &mut *self.sched, other);
                self.limits_told(other);
                self.latency_told(other);
                self.cost_told(other);
                // The write may have removed a limit.
                self.wake_sleepers();
            }
        }
        self.after_callback();
        self.keep();
    }

    fn capacity(&self) -> Sector {
        self.dev.facts().capacity
    }
    fn waits(&self, task: TaskId) -> bool {
        self.is_asleep(task)
    }
    fn count_work(&mut self, counts: bool) {
        self.cx.count_work(counts);
    }
    fn take_work(&mut self) -> Option<SchedulerWork> {
        self.cx.take_work()
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        inside::listen(tap, &mut self.cx, &mut self.dev);
    }
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        let asleep = self.sleepers.asleep(now);
        inside::snapshot(now, &self.cx, &*self.sched, &self.dev, asleep, out);
    }
}

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    /// Moves the finished bios to `out`.
    #[inline]
    fn take_ready(&mut self, out: &mut Vec<BioDone>) {
        if !self.ready.is_empty() {
            out.append(&mut self.ready);
        }
    }
    fn timers(&mut self, t: Instant) {
        self.wbt_timer(t);
        if self.controlled {
            self.limits_timer(t);
            self.latency_timer(t);
            self.cost_timers(t);
        }
        while let Some((at, slot)) = self.cx.next_timer()
            && at <= t
        {
            self.cx.fired(slot);
            self.sched.timer(&mut self.cx, slot);
            self.after_callback();
        }
        for h in 0..self.hctx.len() {
            if self.hctx[h].rerun_at.is_some_and(|at| at <= t) {
                self.hctx[h].rerun_at = None;
                self.hctx[h].pending = true;
            }
            if self.hctx[h].flush.deadline().is_some_and(|d| d <= t) {
                self.kick_flush(h);
            }
        }
    }
}
