//! The part of the controller that manages its disks: it decides which command each disk gets next,
//! and collects the events and snapshots of the disks.

use super::Controller;
use seekwell_core::{Accept, Action, Event, Instant, MemberKind, Snapshot, Tap};

impl Controller {
    /// Sends queued commands to the disks.
    pub(super) fn issue(&mut self) {
        let full = self.dirty_sectors() >= self.p.hi_sectors() || !self.waiting.is_empty();
        for d in 0..self.disks.len() {
            while self.disks[d].in_flight < self.p.disk_depth {
                let disk = &mut self.disks[d];
                let both = !disk.urgent.is_empty() && !disk.lazy.is_empty();
                let share = full || !self.p.reads_first;
                let lazy = match both {
                    true => share && !disk.turn,
                    false => disk.urgent.is_empty(),
                };
                let list = match lazy {
                    true => &disk.lazy,
                    false => &disk.urgent,
                };
                let Some(id) = list.front().copied() else {
                    break;
                };
                let c = self.command(id);
                let disk = &mut self.disks[d];
                if disk.device.accept(self.now, c) == Accept::Busy {
                    break;
                }
                let now = self.now;
                disk.log.push(|| Event::of_command(now, Action::Issue, &c));
                disk.turn = lazy;
                disk.in_flight += 1;
                match lazy {
                    true => disk.lazy.pop_front(),
                    false => disk.urgent.pop_front(),
                };
            }
        }
    }
    /// Sends the events of the controller and of its disks to `tap`.
    pub(super) fn join(&mut self, tap: Option<&Tap>) {
        self.log.join(tap.cloned());
        for (i, d) in self.disks.iter_mut().enumerate() {
            let own = tap.map(|t| t.member(&format!("disk{i}")));
            if let Some(own) = &own {
                own.introduce(MemberKind::Disk, &d.device.facts().name);
            }
            d.log.join(own.clone());
            d.device.listen(own.as_ref());
        }
    }
    /// Appends the snapshots of the disks to `out`. Only the controller can access the disks.
    pub(super) fn disks_inside(&self, now: Instant, out: &mut Vec<Snapshot>) {
        for d in &self.disks {
            let mut own = Snapshot {
                t: now.since_start(),
                q: d.log.member(),
                ..Snapshot::default()
            };
            d.device.state(&mut own.device);
            out.push(own);
        }
    }
}
