//! Several runs on the same devices, each with its own settings.

use super::journal::Records;
use super::settings::{ATTRIBUTES, Queue};
use super::throttle::{Throttles, WBT};
use super::{Change, SwitchError, Switched, Wish, apply};
use crate::block::{Device, Tree};

impl Switched {
    /// Takes devices and records their settings without changing them. The settings are restored
    /// when this is dropped, after any number of calls of [`Switched::again`].
    ///
    /// # Errors
    /// Another run holds one of them, or the settings cannot be recorded.
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

    /// Sets each held device to the requested settings. Leaves and re-enters the scheduler even if
    /// it is active: only that resets its tunables and its learned state. Restores settings that an
    /// earlier call changed and this one does not. Writeback throttling gets the kernel's value for
    /// that scheduler.
    ///
    /// # Errors
    /// The kernel refuses a value, or changes it.
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
                // The switch of the scheduler has reset the number of requests.
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
            // Values that are already set are not written: some have another meaning after a manual
            // write.
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
}
