//! Opens a device for calibration. Decides which devices can be probed and which may be written.
//! Each refusal has a reason and a remedy.

use super::sysfs::{self, Counts, Dirs};
use crate::buffer::Aligned;
use rustix::fs::OFlags;
use seekwell_calibrate::{Facts, SMALLEST};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Reason why a path is not probed. The text contains the path, the problem and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}; {remedy}")]
pub struct Refusal {
    path: String,
    what: String,
    remedy: String,
}

type Opened = (File, Facts, Option<(PathBuf, Counts)>);

/// Opens `path`, or returns the reason for a refusal.
pub(super) fn open(path: &Path, allow_write: bool) -> Result<Opened, Refusal> {
    let no = |what: &str, remedy: &str| Refusal {
        path: path.display().to_string(),
        what: what.to_owned(),
        remedy: remedy.to_owned(),
    };
    let meta = std::fs::metadata(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => no("there is no such file", "see `lsblk` for block devices"),
        _ => no(&e.to_string(), "check the path and its directories"),
    })?;
    let block = meta.file_type().is_block_device();
    if !block && !meta.is_file() {
        return Err(no(
            "it is neither a block device nor a regular file",
            "give a device such as /dev/sdb, or a large file on it",
        ));
    }
    let mut facts = Facts {
        name: path.display().to_string(),
        may_write: allow_write,
        identity: vec![sysfs::host()],
        ..Facts::default()
    };
    let dirs = block.then(|| dirs_of(&meta)).flatten();
    if let Some(d) = &dirs {
        if let Some((what, remedy)) = sysfs::unfit(d) {
            return Err(no(what, remedy));
        }
        sysfs::describe(d, &mut facts);
        let users = sysfs::users(d);
        if let Some(first) = users.first() {
            if allow_write {
                return Err(no(
                    &format!("{first}, and --allow-write requires an unused device"),
                    "unmount it (umount, swapoff), or omit --allow-write",
                ));
            }
            facts.identity.push(format!(
                "{}: other programs may have used it during the calibration",
                users.join(", ")
            ));
        }
        let backing = std::fs::read_to_string(d.own.join("loop/backing_file"));
        let backing = backing.map(|b| PathBuf::from(b.trim_end_matches('\n')));
        if let Ok(file) = backing
            && let Ok(meta) = std::fs::metadata(&file)
            && let Some((what, remedy)) = sparse(&file, &meta)
        {
            return Err(no(&what, remedy));
        }
    } else if !block {
        file_facts(&mut facts);
        if let Some((what, remedy)) = sparse(path, &meta) {
            return Err(no(&what, remedy));
        }
    }
    let mut flags = OFlags::DIRECT;
    if allow_write && block {
        // With O_EXCL the kernel reports whether the device is in use.
        flags |= OFlags::EXCL;
    }
    let mut file = OpenOptions::new()
        .read(true)
        .write(allow_write)
        .custom_flags(flags.bits() as i32)
        .open(path)
        .map_err(|e| match e.raw_os_error() {
            Some(22) => no(
                "its file system does not support direct I/O (O_DIRECT), so reads would be timed \
                 in the page cache",
                "put the file on a file system that supports it, such as ext4 or XFS",
            ),
            Some(16) => no(
                "it is in use, and --allow-write requires an unused device",
                "find the programs that use it (lsblk, lsof), or omit --allow-write",
            ),
            Some(1 | 13) => no(
                "you are not allowed to open it",
                "run as root (sudo), or as a member of the group that owns it",
            ),
            Some(30) => no("it is read-only", "omit --allow-write"),
            Some(6 | 19 | 123) => no("there is no device or medium behind it", "see `lsblk`"),
            _ => no(
                &e.to_string(),
                "check that it works: see the kernel's log (dmesg)",
            ),
        })?;
    let bytes = file
        .seek(SeekFrom::End(0))
        .map_err(|e| no(&format!("its size is unknown: {e}"), "see `lsblk`"))?;
    facts.capacity = bytes / 4096 * 8;
    if facts.capacity < SMALLEST {
        return Err(no(
            &format!("{} KiB are too little for a calibration", bytes / 1024),
            "use at least 16 MiB",
        ));
    }
    facts.block = smallest(&file).ok_or_else(|| {
        no(
            "a direct read of 4 KiB fails",
            "check that it works: see the kernel's log (dmesg)",
        )
    })?;
    let counted = dirs.and_then(|d| {
        let stat = d.own.join("stat");
        let counts = sysfs::counts(&stat)?;
        Some((stat, counts))
    });
    Ok((file, facts, counted))
}

fn dirs_of(meta: &Metadata) -> Option<Dirs> {
    let dev = meta.rdev();
    sysfs::dirs(rustix::fs::major(dev), rustix::fs::minor(dev))
}

/// Adds the facts about a file: those of the device under its file system.
fn file_facts(facts: &mut Facts) {
    facts
        .identity
        .push("a file: the file system's placement and journal are part of what was timed".into());
}

/// Largest fraction of a file that may be holes. Reads of holes never reach the device, so they
/// would look like a device without latency.
const HOLES: f64 = 0.05;

/// Returns the fraction of a file that is holes, 0 to 1.
fn holes(bytes: u64, allocated: u64) -> f64 {
    match bytes {
        0 => 0.0,
        n => 1.0 - (allocated as f64 / n as f64).min(1.0),
    }
}

/// Returns why a file or the file of a loop device cannot be measured, if it is sparse. A FUSE
/// server does not report the allocation of its files.
fn sparse(path: &Path, meta: &Metadata) -> Option<(String, &'static str)> {
    const FUSE: i128 = 0x6573_5546;
    let fuse = rustix::fs::statfs(path).is_ok_and(|s| i128::from(s.f_type) == FUSE);
    let share = holes(meta.len(), meta.blocks() * 512);
    (share > HOLES && !fuse).then(|| {
        (
            format!(
                "{:.0} % of {} are holes, and reads of holes never reach the device",
                share * 100.0,
                path.display()
            ),
            "fill the file with data first (dd if=/dev/urandom), or name the device below it",
        )
    })
}

/// Returns the size of the smallest direct read, sectors: 1 or 8.
fn smallest(file: &File) -> Option<u32> {
    let mut b = Aligned::default();
    let reads = |b: &mut Aligned, n: usize| file.read_exact_at(b.room(n), 0).is_ok();
    if reads(&mut b, 512) {
        Some(1)
    } else {
        reads(&mut b, 4096).then_some(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_file_is_refused_with_a_remedy() {
        assert!(holes(1000, 0) > HOLES && holes(1000, 949) > HOLES);
        assert!(holes(1000, 951) < HOLES && holes(1000, 2000) == 0.0 && holes(0, 0) == 0.0);
        let path = std::env::temp_dir().join(format!("seekwell-holes-{}", std::process::id()));
        let file = File::create(&path).expect("made");
        file.set_len(32 << 20).expect("sparse");
        let e = open(&path, false).expect_err("sparse").to_string();
        assert!(e.contains("100 % of") && e.contains("fill the file"), "{e}");
        std::fs::remove_file(path).expect("removed");
    }
}
