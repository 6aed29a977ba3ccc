//! Makes a choice permanent: files that name the disk by its identity, the way they are written,
//! and their removal.
//!
//! [`udev`] and [`tuned`] create files, [`nixos`] creates lines for a file of the user, and
//! [`boot`] knows which kernels read `elevator=`. [`files`] writes files and undoes the change byte
//! for byte. Not covered: later changes by other services (TLP, a distribution's own rules). The
//! number of a rule sorts it after those of a distribution, but not after a service.

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

/// A file to write, with the commands that activate it and that follow its removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its path.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
    /// Commands for root that activate it without a boot.
    pub activate: Vec<String>,
    /// Commands for root after its removal.
    pub after_undo: Vec<String>,
}

/// The settings wanted for a device.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The device.
    pub device: &'a Device,
    /// The kernel's name of the scheduler.
    pub scheduler: &'a str,
    /// Tunables of the scheduler, and attributes of the queue.
    pub tunables: &'a [(String, String)],
    /// Whether the kernel keeps the order of writes to a zone under every scheduler
    /// ([`crate::block::Tree::plugs_zone_writes`]).
    pub zones_keep_order: bool,
}

/// Why no file can be created.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum KeepError {
    /// The device has no scheduler.
    #[error("{0} takes no scheduler: there is nothing to keep")]
    NoScheduler(String),
    /// udev could not distinguish it from other devices.
    #[error(
        "{0} has no serial number or other name that survives a boot: a rule could only take its \
         kernel name, which may be another device's next time"
    )]
    Nameless(String),
    /// The order of writes within zones would be lost.
    #[error(
        "{0} is zoned: nothing is kept for it before Linux 6.10, where another scheduler than \
         mq-deadline can cost writes their order"
    )]
    Zoned(String),
    /// A word that is not allowed in a rule.
    #[error("`{0}` cannot stand in a rule: letters, digits, `-`, `_` and `.` only")]
    Word(String),
    /// The kernel ignores the parameter.
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
    /// This way cannot express the settings.
    #[error("{0}")]
    Unfit(String),
}

/// Checks a word: a scheduler, tunable or value.
fn word(text: &str) -> Result<&str, KeepError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !text.is_empty() && text.chars().all(plain) && text != ".." {
        true => Ok(text),
        false => Err(KeepError::Word(text.to_owned())),
    }
}

/// A udev pattern that matches the value: special characters are replaced by `?`. `None` if a rule
/// cannot contain the value.
fn pattern(value: &str) -> Option<String> {
    let bad = |c: char| c.is_control() || c == '"' || c == '\\' || c == '\u{fffd}';
    if value.contains(bad) {
        return None;
    }
    let wild = |c: char| if "*?[]|".contains(c) { '?' } else { c };
    Some(value.chars().map(wild).collect())
}

impl Wanted<'_> {
    /// Checks that the device supports a permanent choice.
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

    /// Key and pattern that identify this device in udev, and the plain value.
    fn identity(&self) -> Result<(&str, String, &str), KeepError> {
        let d = self.device;
        let mut known = d.identity.iter();
        known
            .find_map(|(key, value)| Some((key.as_str(), pattern(value)?, value.as_str())))
            .ok_or_else(|| KeepError::Nameless(d.name.clone()))
    }

    /// Files below `queue/` with their values, in the order of a switch: `nr_requests` resets a
    /// tunable, so it comes first.
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

    /// The device for a comment; a model name may contain any text.
    fn said(&self) -> String {
        let what = self.device.model.as_deref();
        let what = what.unwrap_or(self.device.kind.word());
        let what: String = what.chars().filter(|c| !c.is_control()).collect();
        format!("{what}, {} when this was written", self.device.name)
    }

    /// The part of a file name that identifies the device.
    fn slug(&self) -> Result<String, KeepError> {
        let (_, _, raw) = self.identity()?;
        let plain = raw.chars().filter(char::is_ascii_alphanumeric);
        let all: String = plain.collect();
        // The end of a path or serial number is more specific than its beginning.
        let skip = all.len().saturating_sub(40);
        Ok(all[skip..].to_owned())
    }
}
