//! Anticipation: decides when and for which process the disk idles, and what ends the wait.

use super::context::{Ctx, ONE, decay};
use super::rules;
use super::{ANTIC, Anticipatory, SYNC};
use crate::cx::Cx;
use seekwell_core::{About, RqId, Rule};

/// Largest distance, in sectors, between a request that counts as near and the position of the disk
/// head, right after a completion.
const NEAR: u64 = 8192;

/// State of the anticipation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// The disk does not wait.
    Off,
    /// The disk will start to wait when the request in flight of the process served last completes.
    ForRequest,
    /// The disk idles, and the timer runs.
    ForNext,
    /// A wait has just ended. The next sync dispatch starts without a wait.
    Finished,
}

impl Anticipatory {
    pub(super) fn waiting(&self) -> bool {
        matches!(self.wait, Wait::ForRequest | Wait::ForNext)
    }
    pub(super) fn set_antic_ctx(&mut self, ctx: Option<Ctx>) {
        if let Some(c) = ctx {
            self.ctxs.get(c);
        }
        if let Some(c) = std::mem::replace(&mut self.antic_ctx, ctx) {
            self.ctxs.put(c);
        }
    }

    /// Returns the process that the disk waits for, for the text of a decision.
    pub(super) fn served_last(&self) -> About {
        About {
            task: self.antic_task,
            ..About::default()
        }
    }
    /// `as_antic_waitreq`: starts to wait for the process served last.
    pub(super) fn start(&mut self, cx: &mut Cx) {
        if self.wait != Wait::Off {
            return;
        }
        if self.antic_ctx.is_none() || self.ctx_done {
            self.wait_next(cx);
        } else {
            self.wait = Wait::ForRequest;
        }
    }
    pub(super) fn wait_next(&mut self, cx: &mut Cx) {
        let until_j = self.antic_start_j + self.antic_expire_j;
        cx.arm_jiffy_for(ANTIC, until_j, || self.served_last());
        self.wait = Wait::ForNext;
    }
    /// `as_antic_stop`: ends the wait.
    pub(super) fn stop(&mut self, cx: &mut Cx) {
        if self.waiting() {
            cx.disarm(ANTIC);
            self.wait = Wait::Finished;
            cx.kick();
        }
    }
    pub(super) fn may_exit(&mut self, x: Ctx) {
        if self.ctxs[x].tt_samples == 0 {
            self.all.exit_prob = decay(self.all.exit_prob, ONE);
        }
    }

    /// `as_close_req`: returns true if sync request `rq` is near the position of the disk head.
    /// The largest distance that counts as near grows while the disk waits for process `x`. A
    /// distance below the mean seek distance of `x` always counts as near.
    pub(super) fn close(&self, cx: &Cx, rq: RqId, x: Ctx) -> bool {
        let (last, s) = (self.head[self.batch].0, cx.rqs[rq].sector.0);
        let mut delay = 0;
        if self.wait != Wait::Off && self.ctx_done {
            delay = cx.jiffies().saturating_sub(self.antic_start_j);
        }
        let limit = if self.old {
            delay = cx.clock().to_ms(delay);
            20
        } else {
            cx.ms_to_jiffies(20)
        };
        let window = match delay {
            0 => NEAR,
            d if d <= limit && d <= self.antic_expire_j => NEAR << d,
            _ => return true,
        };
        if last <= s + window / 2 && s <= last + window {
            return true;
        }
        let x = &self.ctxs[x];
        let usual = match x.seek_samples {
            0 => self.all.new_seek_mean,
            _ => x.seek_mean,
        };
        s.abs_diff(last) < usual
    }

    /// `as_can_break_anticipation`: decides whether the wait for process `x` ends. The cause can be
    /// request `rq`, or the time that has passed (`None`). Returns the rule that ends the wait, or
    /// `None` if the wait continues. Also updates the seek statistics of `x`.
    pub(super) fn can_break(
        &mut self,
        cx: &mut Cx,
        rq: Option<RqId>,
        x: Ctx,
    ) -> Option<&'static Rule> {
        let now = cx.jiffies();
        if rq.is_some_and(|r| self.ctx_of(r) == Some(x)) {
            return Some(rules::ANTICIPATED_CAME);
        }
        if self.ctx_done && now.saturating_sub(self.antic_start_j) >= self.antic_expire_j {
            return Some(rules::WAITED_ENOUGH);
        }
        if self.ctxs[x].queued > 0 || self.ctxs[x].dispatched > 0 {
            return Some(rules::STILL_QUEUED);
        }
        if let Some(r) = rq
            && Self::class(cx, r) == SYNC
            && self.close(cx, r, x)
        {
            if !self.ctxs[x].alive {
                self.may_exit(x);
                self.all.no_coop = decay(self.all.no_coop, 0);
            }
            let (start, end) = (cx.rqs[r].sector, cx.rqs[r].end());
            self.ctxs[x].history(&mut self.all, cx.hz(), now, start, end);
            return Some(rules::CLOSE_REQUEST);
        }
        if !self.ctxs[x].alive {
            self.may_exit(x);
            if self.all.no_coop > ONE / 2 {
                return Some(rules::PROCESS_GONE);
            }
        }
        let think_j = match self.ctxs[x].tt_samples {
            0 => {
                if self.all.exit_prob * self.all.no_coop > ONE * ONE / 2 {
                    return Some(rules::THINKS_TOO_LONG);
                }
                self.all.new_tt_mean
            }
            _ => self.ctxs[x].tt_mean,
        };
        (think_j > self.antic_expire_j).then_some(rules::THINKS_TOO_LONG)
    }
    /// `as_can_anticipate`: returns true if the disk should idle instead of serving `rq`.
    pub(super) fn can_anticipate(&mut self, cx: &mut Cx, rq: Option<RqId>) -> bool {
        let Some(x) = self.antic_ctx else {
            return false;
        };
        if self.wait == Wait::Finished {
            return false;
        }
        match self.can_break(cx, rq, x) {
            Some(rule) => {
                cx.why(rule, || {
                    self.served_last()
                        .says("the disk does not wait for {who}, served last")
                });
                false
            }
            None => true,
        }
    }
}
