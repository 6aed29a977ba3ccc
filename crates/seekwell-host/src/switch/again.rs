//! Several runs on the same devices, each with its own settings.

use super::journal::Records;
use super::settings::{ATTRIBUTES, Queue};
use super::throttle::{Throttles, WBT};
use super::{Change, SwitchError, Switched, Wish, apply, differences};
use crate::block::{Device, Tree};

impl Switched {
    /// Locks devices and records their settings without changing them. Afterwards,
    /// [`Switched::again`] can be called any number of times. The settings are restored when the
    /// value is dropped.
    ///
    /// # Errors
    /// Another run has locked one of the devices, or the settings cannot be recorded.
    pub fn hold(
        tree: &Tree,
        records: &Records,
        devices: &[&Device],
        words: &str,
    ) -> Result<Switched, SwitchError> {
        let mut all = Switched {
            tree: tree.clone(),
            records: Vec::new(),
            changes: Vec::new(),
            throttles: Throttles::default(),
        };
        for d in devices {
            let (record, before) = records.begin(tree, d, words)?;
            all.records.push(record);
            all.changes.push(Change {
                device: d.name.clone(),
                after: before.clone(),
                before,
                asked: Vec::new(),
                notes: Vec::new(),
            });
        }
        Ok(all)
    }

    /// Sets each locked device to the requested settings. If the requested scheduler is already
    /// active, another scheduler is set first. Only this resets the tunables and the learned state
    /// of the scheduler. Settings that an earlier call changed and this call does not request are
    /// restored. Writeback throttling gets the kernel's default for the scheduler.
    ///
    /// # Errors
    /// The kernel rejects a value, or stores another value.
    pub fn again(&mut self, wishes: &[Wish<'_>]) -> Result<(), SwitchError> {
        for w in wishes {
            let Some(c) = self.changes.iter_mut().find(|c| c.device == w.device.name) else {
                continue;
            };
            let queue = Queue::new(self.tree.queue(&c.device));
            let throttle = w.tunables.iter().any(|t| t.0 == WBT);
            if throttle {
                let offered = w.device.scheduler.offered();
                self.throttles.before_write(&c.device, &queue, offered)?;
            }
            if queue.scheduler()? == w.scheduler {
                let mut others = w.device.scheduler.offered().iter();
                if let Some(other) = others.find(|o| *o != w.scheduler) {
                    queue.put("scheduler", other)?;
                }
            }
            queue.put("scheduler", w.scheduler)?;
            for name in &c.asked {
                let wished = w.tunables.iter().any(|t| t.0 == *name);
                // The change of the scheduler has already reset `nr_requests`.
                let own =
                    ATTRIBUTES.contains(&name.as_str()) && name != "nr_requests" && name != WBT;
                if let Some(value) = c.before.attributes.get(name).filter(|_| own && !wished)
                    && queue.value(name)? != *value
                {
                    queue.put(name, value)?;
                }
            }
            if !throttle {
                self.throttles.as_usual(&c.device, &queue, w.scheduler)?;
            }
            // Values that are already set are not written, because some have another meaning after
            // a manual write.
            let mut left = Vec::new();
            for t in w.tunables {
                let attribute = ATTRIBUTES.contains(&t.0.as_str());
                if !attribute || queue.value(&t.0)? != t.1 {
                    left.push(t.clone());
                }
            }
            let wish = Wish {
                tunables: &left,
                ..w.clone()
            };
            c.notes = apply(&queue, &wish)?;
            c.after = queue.read()?;
            c.asked = w.tunables.iter().map(|t| t.0.clone()).collect();
        }
        Ok(())
    }

    /// Writes the recorded settings back, and keeps the devices locked and recorded. Returns the
    /// tunables and attributes that this changed, one text per device and setting.
    ///
    /// # Errors
    /// The kernel rejects a value, or stores another value.
    pub fn write_back(&mut self) -> Result<Vec<String>, SwitchError> {
        let mut written = Vec::new();
        for c in &mut self.changes {
            let queue = Queue::new(self.tree.queue(&c.device));
            let now = queue.read()?;
            queue.restore(&c.before)?;
            let changed = differences(&now, &c.before).into_iter();
            let changed = changed.filter(|d| d.name != "scheduler");
            written.extend(changed.map(|d| format!("{}: {} is {}", c.device, d.name, d.after)));
            c.after = queue.read()?;
            c.asked.clear();
        }
        Ok(written)
    }
}
