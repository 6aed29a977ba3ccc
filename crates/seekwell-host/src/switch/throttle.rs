//! Writeback throttling over several runs: what the kernel does for each scheduler, also after a
//! value was written by hand for one of them.
//!
//! The kernel switches throttling off and on with bfq only as long as nobody has written
//! `wbt_lat_usec`. Before the first write each scheduler is entered once, and what it reads then is
//! what later runs get that ask for nothing.

use super::{Queue, SwitchError};
use std::collections::BTreeMap;

/// Its attribute.
pub(super) const WBT: &str = "wbt_lat_usec";

/// Values by scheduler, and whether one was written.
#[derive(Debug, Default)]
struct Throttle {
    untouched: BTreeMap<String, String>,
    written: bool,
}

/// That of each device, by name.
#[derive(Debug, Default)]
pub(super) struct Throttles(BTreeMap<String, Throttle>);

impl Throttles {
    /// A value is going to be written: each scheduler is entered to see what it has without.
    ///
    /// # Errors
    /// What the kernel refuses.
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
    /// Nothing is asked for: as the kernel has it under that scheduler.
    ///
    /// # Errors
    /// What the kernel refuses.
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
