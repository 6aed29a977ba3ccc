//! Makes a scheduler permanent by files that identify the disk, and removes these files again.
//!
//! [`udev`] and [`tuned`] create files. [`nixos`] creates lines for a configuration file of the
//! user. [`boot`] handles the kernel parameter `elevator=`. [`files`] writes files and undoes the
//! change byte for byte. Later changes by other services, such as TLP, are not prevented. The
//! number in the name of a udev rule places it after the rules of the distribution, but services
//! run later.

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

/// A file to be written, with the commands that are needed after writing and after removing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Path of the file.
    pub path: PathBuf,
    /// Content of the file.
    pub text: String,
    /// Commands that root can run to activate the file without a reboot.
    pub activate: Vec<String>,
    /// Commands that root should run after the file was removed.
    pub after_undo: Vec<String>,
}

/// The settings that the user wants for a device.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The device.
    pub device: &'a Device,
    /// Name of the scheduler in the kernel.
    pub scheduler: &'a str,
    /// Tunables of the scheduler, and attributes of the queue.
    pub tunables: &'a [(String, String)],
    /// Whether the kernel preserves the order of writes to a zone with every scheduler
    /// ([`crate::block::Tree::plugs_zone_writes`]).
    pub zones_keep_order: bool,
}

/// Reasons why no file can be created.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum KeepError {
    /// The device has no scheduler.
    #[error("{0} takes no scheduler, so there is nothing to make permanent")]
    NoScheduler(String),
    /// udev cannot distinguish the device from other devices.
    #[error(
        "{0} has no serial number or other name that survives a boot: a rule would have to use its \
         kernel name, which another device may have after the next boot"
    )]
    Nameless(String),
    /// The device is zoned, and the order of writes to a zone could be lost.
    #[error(
        "{0} is zoned: its scheduler cannot be made permanent before Linux 6.10, because only \
         mq-deadline keeps the order of writes there"
    )]
    Zoned(String),
    /// A word contains characters that are not allowed in a rule.
    #[error("\"{0}\" is not allowed in a rule: use only letters, digits, `-`, `_` and `.`")]
    Word(String),
    /// The kernel ignores the parameter.
    #[error(
        "Linux {release} ignores elevator= on its command line, as all kernels do since 5.0: use \
         udev instead (--persist=udev)"
    )]
    Ignored {
        /// Release of the kernel.
        release: String,
    },
    /// The text is not a release of Linux.
    #[error("\"{0}\" is not a release of Linux: write it as in 4.19.0")]
    Release(String),
    /// This method cannot express the settings.
    #[error("{0}")]
    Unfit(String),
}

/// Checks that a scheduler, tunable or value contains only allowed characters.
fn word(text: &str) -> Result<&str, KeepError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !text.is_empty() && text.chars().all(plain) && text != ".." {
        true => Ok(text),
        false => Err(KeepError::Word(text.to_owned())),
    }
}

/// Returns a udev pattern that matches the value. Special characters are replaced by `?`. Returns
/// `None` if a rule cannot contain the value.
fn pattern(value: &str) -> Option<String> {
    let bad = |c: char| c.is_control() || c == '"' || c == '\\' || c == '\u{fffd}';
    if value.contains(bad) {
        return None;
    }
    let wild = |c: char| if "*?[]|".contains(c) { '?' } else { c };
    Some(value.chars().map(wild).collect())
}

impl Wanted<'_> {
    /// Checks that a scheduler can be made permanent for the device.
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

    /// Returns the key and the pattern that identify this device in udev, and the value itself.
    fn identity(&self) -> Result<(&str, String, &str), KeepError> {
        let d = self.device;
        let mut known = d.identity.iter();
        known
            .find_map(|(key, value)| Some((key.as_str(), pattern(value)?, value.as_str())))
            .ok_or_else(|| KeepError::Nameless(d.name.clone()))
    }

    /// Returns the files below `queue/` with their values, in the order in which they must be
    /// written. `nr_requests` comes first, because writing it resets a tunable.
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

    /// Describes the device for a comment in the file. The name of the model may contain any text.
    fn describe(&self) -> String {
        let what = self.device.model.as_deref();
        let what = what.unwrap_or(self.device.kind.word());
        let what: String = what.chars().filter(|c| !c.is_control()).collect();
        format!(
            "{what}, which was {} when this file was written",
            self.device.name
        )
    }

    /// Returns the part of a file name that identifies the device.
    fn slug(&self) -> Result<String, KeepError> {
        let (_, _, raw) = self.identity()?;
        let plain = raw.chars().filter(char::is_ascii_alphanumeric);
        let all: String = plain.collect();
        // The end of a path or serial number is more specific than its start.
        let skip = all.len().saturating_sub(40);
        Ok(all[skip..].to_owned())
    }
}
