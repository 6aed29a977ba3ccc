//! Warnings: what a reader tolerated, how often, and where it first met it. Bounded.

use crate::error::Place;
use crate::tally::Tally;
use std::collections::BTreeMap;

/// Free texts kept; more are only counted.
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
    /// Says something once.
    pub(crate) fn say(&mut self, text: String) {
        if self.texts.len() < TEXTS_MAX {
            self.texts.push(text);
        } else {
            self.texts_lost += 1;
        }
    }
    /// Counts one more case of `what`, which reads on from a number: "records without data skipped".
    pub(crate) fn count(&mut self, what: &'static str, place: Place) {
        self.counts.entry(what).or_insert((0, place)).0 += 1;
    }
    /// One more record (or event that begins one) of this device, whether it is wanted or not.
    #[inline]
    pub(crate) fn device(&mut self, device: u32) {
        self.devices.add(device);
    }
    /// The same of many.
    pub(crate) fn all_devices(&mut self, devices: &Tally) {
        self.devices.join(devices);
    }
    /// The devices met.
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
