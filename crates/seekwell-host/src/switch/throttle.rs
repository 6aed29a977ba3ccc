//! Keeps the kernel's default of writeback throttling for each scheduler over several runs, even if
//! one run writes another value.
//!
//! The kernel switches throttling off for bfq, and on again for other schedulers, only until
//! `wbt_lat_usec` is first written. Therefore each scheduler is activated once before the first
//! write, and its default is read. Later runs that do not request a value get this default.

use super::{Queue, SwitchError};
use std::collections::BTreeMap;

/// Name of the attribute.
pub(super) const WBT: &str = "wbt_lat_usec";

/// Defaults of `wbt_lat_usec` by scheduler, and whether a value was written.
#[derive(Debug, Default)]
struct Throttle {
    untouched: BTreeMap<String, String>,
    written: bool,
}

/// Values for each device, by the name of the device.
#[derive(Debug, Default)]
pub(super) struct Throttles(BTreeMap<String, Throttle>);

impl Throttles {
    /// Must be called before a value is written. Activates each scheduler and reads its default.
    ///
    /// # Errors
    /// The kernel rejects a scheduler.
    pub fn before_write(
        &mut self,
        device: &str,
        queue: &Queue,
        offered: &[String],
    ) -> Result<(), SwitchError> {
        let of = self.0.entry(device.to_owned()).or_default();
        if of.written {
            return Ok(());
        }
        for name in offered {
            queue.put("scheduler", name)?;
            if let Ok(value) = queue.value(WBT) {
                of.untouched.insert(name.clone(), value);
            }
        }
        of.written = true;
        Ok(())
    }
    /// Sets the kernel's default for the active scheduler. It is used if no value was requested.
    ///
    /// # Errors
    /// The kernel rejects the value.
    pub fn as_usual(
        &self,
        device: &str,
        queue: &Queue,
        scheduler: &str,
    ) -> Result<(), SwitchError> {
        let of = self.0.get(device).filter(|t| t.written);
        let Some(value) = of.and_then(|t| t.untouched.get(scheduler)) else {
            return Ok(());
        };
        match queue.value(WBT)? == *value {
            true => Ok(()),
            false => queue.put(WBT, value),
        }
    }
}
