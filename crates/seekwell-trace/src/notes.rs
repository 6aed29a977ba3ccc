//! Warnings of a reader: what it tolerated, how often, and where first. Their number is limited.

use crate::error::Place;
use crate::tally::Tally;
use std::collections::BTreeMap;

/// Number of texts that are kept; more are only counted.
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
    /// Counts a case of `what`, whose text follows a number: "records without data skipped".
    pub(crate) fn count(&mut self, what: &'static str, place: Place) {
        self.counts.entry(what).or_insert((0, place)).0 += 1;
    }
    /// Counts a record (or an event that begins one) of this device, whether it was requested or
    /// not.
    #[inline]
    pub(crate) fn device(&mut self, device: u32) {
        self.devices.add(device);
    }
    /// Counts the devices of many records.
    pub(crate) fn all_devices(&mut self, devices: &Tally) {
        self.devices.join(devices);
    }
    /// The devices found.
    pub(crate) fn devices(&self) -> &Tally {
        &self.devices
    }
    /// How often `what` was counted.
    pub fn counted(&self, what: &str) -> u64 {
        self.counts.get(what).map_or(0, |c| c.0)
    }
    /// All warnings, ready to print.
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
