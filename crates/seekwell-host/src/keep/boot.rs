//! `elevator=` on the kernel's command line: kernels before 5.0 apply it to all devices, later ones
//! ignore it.

use super::{KeepError, word};
use crate::block::{Tree, release};
use std::path::PathBuf;

/// Files that hold a kernel's command line for the next boot.
const FILES: &[&str] = &[
    "/etc/default/grub",
    "/etc/kernel/cmdline",
    "/boot/cmdline.txt",
    "/boot/firmware/cmdline.txt",
];
/// Directories of systemd-boot entries.
const ENTRIES: &[&str] = &["/boot/loader/entries", "/efi/loader/entries"];

/// The parameter for the command line of a kernel of this release: `elevator=deadline`, for all
/// devices.
///
/// # Errors
/// Kernels since 5.0 ignore it.
pub fn parameter(of: &str, scheduler: &str) -> Result<String, KeepError> {
    match release(of) {
        Some((major, _)) if major >= 5 => Err(KeepError::Ignored {
            release: of.to_owned(),
        }),
        Some(_) => Ok(format!("elevator={}", word(scheduler)?)),
        None => Err(KeepError::Release(of.to_owned())),
    }
}

/// Files whose command line for the next boot has `elevator=`, with the value.
pub fn existing(tree: &Tree) -> Vec<(PathBuf, String)> {
    let mut files: Vec<PathBuf> = FILES.iter().map(PathBuf::from).collect();
    for dir in ENTRIES {
        let entries = std::fs::read_dir(tree.at(dir)).into_iter().flatten();
        let mut own: Vec<PathBuf> = entries
            .flatten()
            .map(|e| PathBuf::from(dir).join(e.file_name()))
            .filter(|p| p.extension().is_some_and(|x| x == "conf"))
            .collect();
        own.sort();
        files.extend(own);
    }
    let mut found = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(tree.at(&path)).unwrap_or_default();
        let lines = text.lines().filter(|l| !l.trim_start().starts_with('#'));
        let words = lines.flat_map(|l| l.split([' ', '\t', '"', '\'']));
        let mut words = words.filter_map(|w| w.strip_prefix("elevator="));
        if let Some(value) = words.next() {
            found.push((path, crate::block::clean(value)));
        }
    }
    found
}
