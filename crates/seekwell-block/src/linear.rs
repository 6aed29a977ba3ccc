//! Linear concatenation (md linear, dm-linear): members one behind the other.
//!
//! Bio-based: it has no scheduler of its own; the elevator that matters is each member's.

use crate::stripe::Split;
use seekwell_core::{Bio, BioDone, BioSink, Control, Instant, Sector, Sectors, TaskId};

/// Members one behind the other.
pub struct Linear<B> {
    members: Vec<B>,
    split: Split,
}

impl<B: BioSink> Linear<B> {
    /// Over members in order; at least one.
    pub fn new(members: Vec<B>) -> Self {
        assert!(!members.is_empty(), "a linear array has members");
        Linear {
            members,
            split: Split::default(),
        }
    }
    /// The members.
    pub fn members(&self) -> &[B] {
        &self.members
    }
}

impl<B: BioSink> BioSink for Linear<B> {
    fn submit(&mut self, now: Instant, bio: Bio) {
        if bio.sectors.0 == 0 {
            return self.split.to_all(now, bio, &mut self.members);
        }
        let mut parts = Vec::new();
        let (mut base, mut at, mut left) = (0u64, bio.sector.0, u64::from(bio.sectors.0));
        for (m, member) in self.members.iter().enumerate() {
            let size = member.capacity().0;
            if left > 0 && at < base + size {
                let n = left.min(base + size - at);
                parts.push((m, Sector(at - base), Sectors(n as u32)));
                at += n;
                left -= n;
            }
            base += size;
        }
        if left > 0 {
            return self.split.fail(now, bio);
        }
        self.split.submit(now, bio, &parts, &mut self.members);
    }
    fn next_event(&self) -> Option<Instant> {
        self.split.next_event(&self.members)
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        self.split.advance(to, &mut self.members, out);
    }
    fn control(&mut self, now: Instant, what: Control) {
        for m in &mut self.members {
            m.control(now, what);
        }
    }
    fn capacity(&self) -> Sector {
        Sector(self.members.iter().map(|m| m.capacity().0).sum())
    }
    fn congested(&self, write: bool) -> bool {
        self.members.iter().any(|m| m.congested(write))
    }
    fn waits(&self, task: TaskId) -> bool {
        self.members.iter().any(|m| m.waits(task))
    }
}
