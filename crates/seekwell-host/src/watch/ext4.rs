//! A new ext4 on a device owned by the run, and the location of its journal.

use super::{WatchError, call};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Sectors per block of 4 KiB.
const BLOCK_SECTORS: u64 = 8;
const PACKAGE: &str = "root and the package e2fsprogs are needed";

/// A file system created here.
#[derive(Clone, Debug)]
pub struct Ext4 {
    device: PathBuf,
    /// Sector ranges of the journal.
    pub journal: Vec<RangeInclusive<u64>>,
}

/// Block ranges in the output of `debugfs -R "stat <8>"`: `(0-16383):491520-507903, (9):12`.
pub fn extents_of(text: &str) -> Vec<RangeInclusive<u64>> {
    let Some((_, list)) = text.split_once("EXTENTS:") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for part in list.split([',', '\n']) {
        // Blocks of the extent tree itself (ETB) hold no data.
        let Some((logical, physical)) = part.trim().split_once(':') else {
            continue;
        };
        if logical.starts_with("(ETB") {
            continue;
        }
        let (first, last) = physical.split_once('-').unwrap_or((physical, physical));
        if let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse()) {
            found.push(first..=last);
        }
    }
    found
}

impl Ext4 {
    /// Creates a file system without lazy initialisation, with 4 KiB blocks and the default
    /// journal.
    pub fn make(device: &Path) -> Result<Self, WatchError> {
        let dev = device.display().to_string();
        let options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
        call(
            "mkfs.ext4",
            &["-q", "-F", "-b", "4096", "-E", options, &dev],
            PACKAGE,
        )?;
        let text = call("debugfs", &["-R", "stat <8>", &dev], PACKAGE)?;
        let sectors = |r: RangeInclusive<u64>| {
            r.start() * BLOCK_SECTORS..=r.end() * BLOCK_SECTORS + BLOCK_SECTORS - 1
        };
        let journal: Vec<_> = extents_of(&text).into_iter().map(sectors).collect();
        if journal.is_empty() {
            return Err(WatchError::Program {
                program: "debugfs".into(),
                what: "names no extents of the journal".into(),
                remedy: "e2fsprogs 1.42 or later is needed",
            });
        }
        Ok(Ext4 {
            device: device.to_owned(),
            journal,
        })
    }

    /// Mounts it.
    pub fn mount(&self, at: &Path) -> Result<Mounted, WatchError> {
        let (dev, dir) = (self.device.display().to_string(), at.display().to_string());
        call("mount", &["-t", "ext4", &dev, &dir], "root is needed")?;
        Ok(Mounted(at.to_owned()))
    }

    /// Runs e2fsck and returns its findings, if any. Not while mounted.
    pub fn check(&self) -> Result<(), WatchError> {
        let dev = self.device.display().to_string();
        call("e2fsck", &["-f", "-n", &dev], "the file system is damaged").map(|_| ())
    }
}

/// A mounted file system; unmounted when dropped.
#[derive(Debug)]
pub struct Mounted(PathBuf);

impl Mounted {
    /// The mount point.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let dir = self.0.display().to_string();
        if call("umount", &[&dir], "").is_err() {
            // Still in use: detached now, unmounted when the last user leaves.
            let _ = call("umount", &["--lazy", &dir], "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_read_from_debugfs() {
        let text = "Inode: 8\nEXTENTS:\n(0-16383):491520-507903\n\n";
        assert_eq!(extents_of(text), [491_520..=507_903]);
        let text = "EXTENTS:\n(ETB0):9, (0-1):20-21, (2):40\n";
        assert_eq!(extents_of(text), [20..=21, 40..=40]);
        assert!(extents_of("BLOCKS:\n(0):1").is_empty());
    }
}
