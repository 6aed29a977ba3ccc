//! Image files of the guest's disks.

use crate::error::GuestError;
use rustix::fs::ftruncate;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// Time of creation: 2024-01-01 00:00 UTC, in seconds.
const EPOCH_S: &str = "1704067200";

/// A file system that a disk of the guest contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// Btrfs.
    Btrfs,
    /// F2FS.
    F2fs,
}

impl FileSystem {
    /// All file systems.
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::F2fs];

    /// Returns the kernel's name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::F2fs => "f2fs",
        }
    }
    /// Returns the Debian package with its mkfs program.
    pub const fn package(self) -> &'static str {
        match self {
            Self::Ext4 => "e2fsprogs",
            Self::Xfs => "xfsprogs",
            Self::Btrfs => "btrfs-progs",
            Self::F2fs => "f2fs-tools",
        }
    }
    /// Returns the options of mkfs that make its result depend on the seed only. ext4 derives the
    /// block groups of directories from the hash seed.
    fn options(self, seed: u64) -> Vec<String> {
        let uuid = format!("5ee4e11a-0000-4000-8000-{:012x}", seed & ((1 << 48) - 1));
        let words = match self {
            Self::Ext4 => format!(
                "-q -F -U {uuid} -E hash_seed={uuid},lazy_itable_init=0,lazy_journal_init=0"
            ),
            Self::Xfs => format!("-q -f -K -m uuid={uuid}"),
            Self::Btrfs => format!("-q -f -K -U {uuid}"),
            Self::F2fs => "-q -f -t 0".to_owned(),
        };
        words.split(' ').map(str::to_owned).collect()
    }
}

impl std::str::FromStr for FileSystem {
    type Err = GuestError;
    fn from_str(name: &str) -> Result<Self, GuestError> {
        let found = Self::ALL.into_iter().find(|f| f.name() == name);
        found.ok_or_else(|| {
            let all = Self::ALL.map(Self::name).join(", ");
            GuestError::Usage(format!(
                "no file system is called \"{name}\" (known: {all})"
            ))
        })
    }
}

/// Returns a new sparse image of `bytes`, without a name, with the file system if one is given.
pub fn new(dir: &Path, bytes: u64, fs: Option<FileSystem>, seed: u64) -> Result<File, GuestError> {
    let path = dir.join("disk.img");
    let image = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(GuestError::host(format!("create {}", path.display())))?;
    let made = ftruncate(&image, bytes).map_err(GuestError::host("size the disk's image"));
    let made = made.and_then(|()| fs.map_or(Ok(()), |fs| make(&path, fs, seed)));
    // Without a name, the file vanishes with this process.
    fs::remove_file(&path).map_err(GuestError::host(format!("remove {}", path.display())))?;
    made.map(|()| image)
}

fn make(path: &Path, fs: FileSystem, seed: u64) -> Result<(), GuestError> {
    let program = format!("mkfs.{}", fs.name());
    let done = Command::new(&program)
        .args(fs.options(seed))
        .arg(path)
        .env("E2FSPROGS_FAKE_TIME", EPOCH_S)
        .env("SOURCE_DATE_EPOCH", EPOCH_S)
        .env("DETERMINISTIC_SEED", "1")
        .output()
        .map_err(|_| GuestError::Missing(program.clone(), fs.package().to_owned()))?;
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        return Err(GuestError::Usage(format!("{program} failed: {why}")));
    }
    Ok(())
}
