//! What makes a choice last beyond the next boot: files with the disk's own identity in them, how
//! they are written, and how all of it is taken away again.
//!
//! [`udev`] and [`tuned`] give files, [`nixos`] gives lines for a file that is its owner's,
//! [`boot`] knows which kernels heed a word on their command line. [`files`] writes, and undoes
//! byte for byte. Left out: what other services (TLP, a distribution's own rules) set later; a
//! rule stands behind those of a distribution by its number, not behind a service.

pub mod at_boot;
pub mod boot;
mod early;
pub mod files;
pub mod nixos;
pub mod tuned;
pub mod udev;
pub mod unit;

#[cfg(test)]
mod tests;

use crate::block::{Device, Scheduler};
use crate::switch::settings::ATTRIBUTES;
use std::path::PathBuf;
use thiserror::Error;

/// A file to write, what makes it work now, and how to be rid of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where it belongs.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
    /// Commands for root that make it work without a boot.
    pub activate: Vec<String>,
    /// Commands for root, after it was taken away.
    pub after_undo: Vec<String>,
}

/// What a device is to have.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Which.
    pub device: &'a Device,
    /// As the kernel calls it.
    pub scheduler: &'a str,
    /// Tunables of the scheduler, and attributes of the queue.
    pub tunables: &'a [(String, String)],
    /// Is the order of writes to a zone kept under every scheduler
    /// ([`crate::block::Tree::plugs_zone_writes`])?
    pub zones_keep_order: bool,
}

/// Why there is no such text.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum KeepError {
    /// Nothing to set.
    #[error("{0} takes no scheduler: there is nothing to keep")]
    NoScheduler(String),
    /// udev could not tell it from others.
    #[error(
        "{0} has no serial number or other name that survives a boot: a rule could only take its \
         kernel name, which may be another device's next time"
    )]
    Nameless(String),
    /// Order within zones.
    #[error(
        "{0} is zoned: nothing is kept for it before Linux 6.10, where another scheduler than \
         mq-deadline can cost writes their order"
    )]
    Zoned(String),
    /// A word that a rule cannot hold.
    #[error("`{0}` cannot stand in a rule: letters, digits, `-`, `_` and `.` only")]
    Word(String),
    /// The kernel would not look at it.
    #[error(
        "Linux {release} ignores elevator= on its command line, as all do since 5.0: keep it by \
         udev instead (--persist=udev)"
    )]
    Ignored {
        /// The kernel's release.
        release: String,
    },
    /// Not a release of Linux.
    #[error("`{0}` is no release of Linux (write 4.19.0)")]
    Release(String),
    /// A way that cannot say it.
    #[error("{0}")]
    Unfit(String),
}

/// A word of a scheduler, tunable or value.
fn word(text: &str) -> Result<&str, KeepError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !text.is_empty() && text.chars().all(plain) && text != ".." {
        true => Ok(text),
        false => Err(KeepError::Word(text.to_owned())),
    }
}

/// As a pattern of udev's that matches it: signs that mean something in a pattern stand for any one
/// sign. `None` for what a rule cannot hold.
fn pattern(value: &str) -> Option<String> {
    let bad = |c: char| c.is_control() || c == '"' || c == '\\' || c == '\u{fffd}';
    if value.contains(bad) {
        return None;
    }
    let wild = |c: char| if "*?[]|".contains(c) { '?' } else { c };
    Some(value.chars().map(wild).collect())
}

impl Wanted<'_> {
    /// Is it a device that something can be kept for?
    fn fit(&self) -> Result<(), KeepError> {
        let d = self.device;
        if !matches!(d.scheduler, Scheduler::Choice { .. }) {
            return Err(KeepError::NoScheduler(d.name.clone()));
        }
        match d.is_zoned() && !self.zones_keep_order {
            true => Err(KeepError::Zoned(d.name.clone())),
            false => Ok(()),
        }
    }

    /// Key and value that udev knows this very device by, and the value as it is.
    fn identity(&self) -> Result<(&str, String, &str), KeepError> {
        let d = self.device;
        let mut known = d.identity.iter();
        known
            .find_map(|(key, value)| Some((key.as_str(), pattern(value)?, value.as_str())))
            .ok_or_else(|| KeepError::Nameless(d.name.clone()))
    }

    /// Files below `queue/` with their values, in the order a switch sets them: `nr_requests`
    /// resets a tunable, so that it stands before them.
    fn settings(&self) -> Result<Vec<(String, &str)>, KeepError> {
        let queue = |name: &str| ATTRIBUTES.contains(&name);
        let (of_queue, own): (Vec<_>, Vec<_>) = self.tunables.iter().partition(|t| queue(&t.0));
        let all = of_queue.into_iter().chain(own);
        let file = |(name, value): &'_ (String, String)| -> Result<String, KeepError> {
            let dir = if queue(name) { "" } else { "iosched/" };
            word(value)?;
            Ok(format!("{dir}{}", word(name)?))
        };
        all.map(|t| Ok((file(t)?, t.1.as_str()))).collect()
    }

    /// The device in a comment: a model's name is any text.
    fn said(&self) -> String {
        let what = self.device.model.as_deref();
        let what = what.unwrap_or(self.device.kind.word());
        let what: String = what.chars().filter(|c| !c.is_control()).collect();
        format!("{what}, {} when this was written", self.device.name)
    }

    /// A part of a file's name that is this device's.
    fn slug(&self) -> Result<String, KeepError> {
        let (_, _, raw) = self.identity()?;
        let plain = raw.chars().filter(char::is_ascii_alphanumeric);
        let all: String = plain.collect();
        // The end of a path or serial number tells more than its beginning.
        let skip = all.len().saturating_sub(40);
        Ok(all[skip..].to_owned())
    }
}
