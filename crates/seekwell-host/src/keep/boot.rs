//! The kernel parameter `elevator=`. Kernels before 5.0 set the scheduler of all devices from it,
//! and later kernels ignore it.

use super::{KeepError, word};
use crate::block::{Tree, release};
use std::path::PathBuf;

/// Files that contain the kernel's command line for the next boot.
const FILES: &[&str] = &[
    "/etc/default/grub",
    "/etc/kernel/cmdline",
    "/boot/cmdline.txt",
    "/boot/firmware/cmdline.txt",
];
/// Directories with the entries of systemd-boot.
const ENTRIES: &[&str] = &["/boot/loader/entries", "/efi/loader/entries"];

/// Returns the kernel parameter for a scheduler of all devices, such as `elevator=deadline`, for a
/// kernel of release `of`.
///
/// # Errors
/// Returns an error for kernels since 5.0, because they ignore the parameter.
pub fn parameter(of: &str, scheduler: &str) -> Result<String, KeepError> {
    match release(of) {
        Some((major, _)) if major >= 5 => Err(KeepError::Ignored {
            release: of.to_owned(),
        }),
        Some(_) => Ok(format!("elevator={}", word(scheduler)?)),
        None => Err(KeepError::Release(of.to_owned())),
    }
}

/// Returns the files whose command line for the next boot contains `elevator=`, with its value.
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
