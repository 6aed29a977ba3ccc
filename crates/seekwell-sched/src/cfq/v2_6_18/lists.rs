//! 2.6.18: the lists of queues, and the choice of the next queue.

use super::{BUSY, CUR, Cfq18, IDLE, LEVELS};
use crate::cfq::GRACE_TIMER;
use crate::cfq::rules;
use crate::cx::Cx;
use seekwell_core::Class;

impl Cfq18 {
    pub(super) fn leave_list(&mut self, q: u32) {
        if let Some(l) = self.flat.queue_mut(q).list.take() {
            self.links.remove(&mut self.lists[l as usize], q);
        }
    }

    /// `cfq_resort_rr_list`: moves a queue to the list of its class and state, sorted by the time
    /// of its last service. With `preempted`, inserts it before the last queue of that list.
    pub(super) fn resort(&mut self, q: u32, preempted: bool) {
        self.leave_list(q);
        let x = self.flat.queue(q);
        let at = match x.class {
            Class::Rt => CUR,
            Class::Idle => IDLE,
            _ if x.dispatched > 0 => BUSY,
            _ => x.level,
        };
        let served = x.served;
        let list = &mut self.lists[at as usize];
        let last = list.last();
        if preempted {
            match last {
                Some(last) => self.links.insert_before(list, last, q),
                None => self.links.push_back(list, q),
            }
        } else if at == BUSY {
            self.links.push_back(list, q);
        } else {
            // The queue goes behind queues that were served earlier. A queue that was never served
            // goes behind other queues that were never served.
            let mut behind = last;
            while let Some(i) = behind {
                let theirs = self.flat.queues[i as usize].served;
                if theirs == 0 || theirs < served {
                    break;
                }
                behind = self.links.prev(i);
            }
            match behind {
                Some(i) => self.links.insert_after(list, i, q),
                None => self.links.push_front(list, q),
            }
        }
        self.flat.queue_mut(q).list = Some(at);
    }

    /// `cfq_get_next_prio_level`: moves the list of the next level to the list in service. Returns
    /// false if all lists are empty.
    pub(super) fn next_level(&mut self) -> bool {
        let mut wrapped = false;
        let found = loop {
            let mut sweep = self.level..=self.level_end;
            if let Some(i) = sweep.find(|i| !self.lists[*i].is_empty()) {
                break i;
            }
            self.level = 0;
            self.level_end += 1;
            if self.level_end == LEVELS {
                self.level_end = 0;
                if wrapped {
                    return false;
                }
                wrapped = true;
            }
        };
        let mut list = std::mem::take(&mut self.lists[found]);
        let mut at = list.first();
        while let Some(q) = at {
            self.flat.queue_mut(q).list = Some(CUR);
            at = self.links.next(q);
        }
        self.links.append(&mut self.lists[CUR as usize], &mut list);
        self.level = found + 1;
        if self.level > self.level_end {
            self.level_end = self.level;
            self.level = 0;
        }
        if self.level_end == LEVELS {
            self.level = 0;
            self.level_end = 0;
        }
        true
    }

    /// `cfq_get_next_queue`: returns the next queue by level, then a queue with requests in the
    /// driver, then an IDLE queue whose grace period is over.
    pub(super) fn first_served(&mut self, cx: &mut Cx) -> Option<u32> {
        if !self.lists[CUR as usize].is_empty() || self.next_level() {
            return self.lists[CUR as usize].first();
        }
        if let Some(q) = self.lists[BUSY as usize].first() {
            return Some(q);
        }
        let q = self.lists[IDLE as usize].first()?;
        let end = self.flat.last_end_any + cx.hz() / 10;
        if cx.jiffies() < end {
            cx.arm_jiffy(GRACE_TIMER, end);
            cx.why_text(
                rules::IDLE_GRACE,
                "grace period: requests of the IDLE class wait",
            );
            return None;
        }
        Some(q)
    }
}
