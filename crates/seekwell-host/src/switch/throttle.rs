//! Writeback throttling over several runs: keeps the kernel's default for each scheduler, even
//! after a manual write of the value for one of them.
//!
//! The kernel switches throttling off and on with bfq only until `wbt_lat_usec` is first written.
//! So each scheduler is entered once before the first write, and later runs without a request get
//! the value read there.

use super::{Queue, SwitchError};
use std::collections::BTreeMap;

/// Name of the attribute.
pub(super) const WBT: &str = "wbt_lat_usec";

/// Values by scheduler, and whether a value was written.
#[derive(Debug, Default)]
struct Throttle {
    untouched: BTreeMap<String, String>,
    written: bool,
}

/// The values of each device, by name.
#[derive(Debug, Default)]
pub(super) struct Throttles(BTreeMap<String, Throttle>);

impl Throttles {
    /// Before a value is written: enters each scheduler and reads its default.
    ///
    /// # Errors
    /// The kernel refuses a scheduler.
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
    /// Without a request: sets the kernel's default for that scheduler.
    ///
    /// # Errors
    /// The kernel refuses the value.
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
