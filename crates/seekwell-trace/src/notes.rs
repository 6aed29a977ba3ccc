//! Warnings of a reader: the faults that it tolerated, how often, and where the first one was. The
//! number of warnings is limited.

use crate::error::Place;
use crate::tally::Tally;
use std::collections::BTreeMap;

/// Maximum number of stored texts. Further texts are only counted.
const TEXTS_MAX: usize = 256;

/// The warnings of one reader.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    texts: Vec<String>,
    texts_lost: u64,
    counts: BTreeMap<&'static str, (u64, Place)>,
    devices: Tally,
}

impl Notes {
    /// Adds a text.
    pub(crate) fn say(&mut self, text: String) {
        if self.texts.len() < TEXTS_MAX {
            self.texts.push(text);
        } else {
            self.texts_lost += 1;
        }
    }
    /// Counts a case of `what`. `what` is a text that follows a number, for example "records
    /// without data skipped".
    pub(crate) fn count(&mut self, what: &'static str, place: Place) {
        self.counts.entry(what).or_insert((0, place)).0 += 1;
    }
    /// Counts a record of this device, or an event that begins a record. It is counted even if the
    /// user did not select this device.
    #[inline]
    pub(crate) fn device(&mut self, device: u32) {
        self.devices.add(device);
    }
    /// Adds the device counts of many records.
    pub(crate) fn all_devices(&mut self, devices: &Tally) {
        self.devices.join(devices);
    }
    /// Returns the devices in the trace.
    pub(crate) fn devices(&self) -> &Tally {
        &self.devices
    }
    /// Returns how often `what` was counted.
    pub fn counted(&self, what: &str) -> u64 {
        self.counts.get(what).map_or(0, |c| c.0)
    }
    /// Returns all warnings as text.
    pub fn lines(&self) -> Vec<String> {
        let mut out = self.texts.clone();
        if self.texts_lost > 0 {
            out.push(format!("{} more warnings", self.texts_lost));
        }
        for (what, (n, place)) in &self.counts {
            let first = match place {
                Place::File => String::new(),
                Place::Record(r) => format!(" (first at record {r})"),
                Place::Line(l) => format!(" (first at line {l})"),
            };
            out.push(format!("{n} {what}{first}"));
        }
        out
    }
}
