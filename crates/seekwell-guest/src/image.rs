//! Image files of the guest's disks: a template per file system, and a sparse copy per run.

use crate::error::GuestError;
use rustix::fs::{SeekFrom, copy_file_range, ftruncate, seek};
use rustix::io::Errno;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The identifier of every file system, so that the same command gives the same bytes.
const UUID: &str = "5ee4e11a-0000-4000-8000-000000000017";
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
    /// Returns the options of mkfs that make its result repeatable.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &[
                "-q",
                "-F",
                "-U",
                UUID,
                "-E",
                "hash_seed=5ee4e11a-0000-4000-8000-000000000017,lazy_itable_init=0,lazy_journal_init=0",
            ],
            Self::Xfs => &[
                "-q",
                "-f",
                "-K",
                "-m",
                "uuid=5ee4e11a-0000-4000-8000-000000000017",
            ],
            Self::Btrfs => &["-q", "-f", "-K", "-U", UUID],
            Self::F2fs => &["-q", "-f", "-t", "0"],
        }
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

/// Returns a new image of `bytes`, without a name, with the file system if one is given.
pub fn new(
    dir: &Path,
    cache: &Path,
    bytes: u64,
    fs: Option<FileSystem>,
) -> Result<File, GuestError> {
    let path = dir.join("disk.img");
    let image = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(GuestError::host(format!("create {}", path.display())))?;
    // Without a name, the file vanishes with this process.
    fs::remove_file(&path).map_err(GuestError::host(format!("remove {}", path.display())))?;
    ftruncate(&image, bytes).map_err(GuestError::host("size the disk's image"))?;
    if let Some(fs) = fs {
        let template = template(cache, bytes, fs)?;
        copy_sparse(&template, &image)?;
    }
    Ok(image)
}

/// Returns the template of a file system, and makes it if the cache does not have it.
fn template(cache: &Path, bytes: u64, fs: FileSystem) -> Result<File, GuestError> {
    let program = format!("mkfs.{}", fs.name());
    let version = Command::new(&program)
        .arg("-V")
        .output()
        .map_err(|_| GuestError::Missing(program.clone(), fs.package().to_owned()))?;
    let text = [version.stdout, version.stderr].concat();
    // The bytes depend on the version of mkfs. The file name contains a checksum of it.
    let sum = text
        .iter()
        .fold(0u32, |s, b| s.rotate_left(5) ^ u32::from(*b));
    let dir = cache.join("images");
    let path = dir.join(format!("{}-{bytes}-{sum:08x}.img", fs.name()));
    if let Ok(f) = File::open(&path) {
        return Ok(f);
    }
    fs::create_dir_all(&dir).map_err(GuestError::host(format!("create {}", dir.display())))?;
    // Parallel runs may make the same template; each uses a file of its own.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let n = NUMBER.fetch_add(1, Ordering::Relaxed);
    let part = dir.join(format!(".{}-{}-{n}.part", fs.name(), std::process::id()));
    let made = make(&program, &part, bytes, fs);
    let kept = made.and_then(|()| {
        fs::rename(&part, &path).map_err(GuestError::host(format!("write {}", path.display())))
    });
    if kept.is_err() {
        let _ = fs::remove_file(&part);
    }
    kept?;
    File::open(&path).map_err(GuestError::host(format!("open {}", path.display())))
}

fn make(program: &str, part: &Path, bytes: u64, fs: FileSystem) -> Result<(), GuestError> {
    let _ = fs::remove_file(part);
    let file =
        File::create(part).map_err(GuestError::host(format!("create {}", part.display())))?;
    ftruncate(&file, bytes).map_err(GuestError::host("size the template"))?;
    let done = Command::new(program)
        .args(fs.options())
        .arg(part)
        .env("E2FSPROGS_FAKE_TIME", EPOCH_S)
        .env("SOURCE_DATE_EPOCH", EPOCH_S)
        .env("DETERMINISTIC_SEED", "1")
        .output()
        .map_err(|_| GuestError::Missing(program.to_owned(), fs.package().to_owned()))?;
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        return Err(GuestError::Usage(format!("{program} failed: {why}")));
    }
    Ok(())
}

/// Copies the data of a file and leaves its holes.
fn copy_sparse(from: &File, to: &File) -> Result<(), GuestError> {
    let error = || GuestError::host("copy the template of the file system");
    let mut at = 0;
    loop {
        at = match seek(from, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => return Ok(()),
            Err(e) => return Err(error()(e)),
        };
        let end = seek(from, SeekFrom::Hole(at)).map_err(error())?;
        while at < end {
            let (mut src, mut dst) = (at, at);
            let n = copy_file_range(
                from,
                Some(&mut src),
                to,
                Some(&mut dst),
                (end - at) as usize,
            )
            .map_err(error())?;
            if n == 0 {
                return Ok(());
            }
            at += n as u64;
        }
    }
}
