//! Creates an ext4 file system on a device that the run created, and finds the location of its
//! journal.

use super::{WatchError, call};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Number of sectors in a block of 4 KiB.
const BLOCK_SECTORS: u64 = 8;
const PACKAGE: &str = "root and the package e2fsprogs are needed";

/// A file system that this run created.
#[derive(Clone, Debug)]
pub struct Ext4 {
    device: PathBuf,
    /// Ranges of sectors that contain the journal.
    pub journal: Vec<RangeInclusive<u64>>,
}

/// Returns the ranges of blocks in the output of `debugfs -R "stat <8>"`, such as
/// `(0-16383):491520-507903, (9):12`.
pub fn extents_of(text: &str) -> Vec<RangeInclusive<u64>> {
    let Some((_, list)) = text.split_once("EXTENTS:") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for part in list.split([',', '\n']) {
        // The blocks of the extent tree itself (ETB) contain no data.
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
    /// Creates a file system with 4 KiB blocks and the default journal, without lazy
    /// initialisation.
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
                what: "does not print the extents of the journal".into(),
                remedy: "e2fsprogs 1.42 or later is needed",
            });
        }
        Ok(Ext4 {
            device: device.to_owned(),
            journal,
        })
    }

    /// Mounts the file system at `at`.
    pub fn mount(&self, at: &Path) -> Result<Mounted, WatchError> {
        let (dev, dir) = (self.device.display().to_string(), at.display().to_string());
        call("mount", &["-t", "ext4", &dev, &dir], "root is needed")?;
        Ok(Mounted(at.to_owned()))
    }

    /// Checks the file system with e2fsck, and returns its output as an error if it finds faults.
    /// The file system must not be mounted.
    pub fn check(&self) -> Result<(), WatchError> {
        let dev = self.device.display().to_string();
        call("e2fsck", &["-f", "-n", &dev], "the file system is damaged").map(|_| ())
    }
}

/// A mounted file system. Dropping it unmounts the file system.
#[derive(Debug)]
pub struct Mounted(PathBuf);

impl Mounted {
    /// Returns the mount point.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let dir = self.0.display().to_string();
        if call("umount", &[&dir], "").is_err() {
            // The file system is still in use. It is detached immediately, and the kernel unmounts
            // it when its last user ends.
            let _ = call("umount", &["--lazy", &dir], "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_extents_are_parsed_from_debugfs() {
        let text = "Inode: 8\nEXTENTS:\n(0-16383):491520-507903\n\n";
        assert_eq!(extents_of(text), [491_520..=507_903]);
        let text = "EXTENTS:\n(ETB0):9, (0-1):20-21, (2):40\n";
        assert_eq!(extents_of(text), [20..=21, 40..=40]);
        assert!(extents_of("BLOCKS:\n(0):1").is_empty());
    }
}
