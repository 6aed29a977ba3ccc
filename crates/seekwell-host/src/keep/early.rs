//! Writes files atomically: under a temporary name first, then by a rename. Temporary files of
//! killed processes are recognised by their names and removed.

use crate::block::{Tree, names};
use crate::place::ours;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Directory of the notes.
pub(super) const NOTES: &str = "/var/lib/seekwell/applied";
/// Directories in which Seekwell writes files. For each, the suffix of the file names and a text
/// that the names contain.
const PLACES: &[(&str, &str, &str)] = &[
    (NOTES, ".json", ""),
    ("/etc/udev/rules.d", ".rules", "-seekwell-"),
    ("/etc/systemd/system", ".service", "seekwell-"),
];
/// The directory that contains tuned's profile directories.
const TUNED: &str = "/etc/tuned";
const PROFILE: &str = "seekwell-";
/// Suffix of temporary names.
const END: &str = ".seekwell";
/// Maximum number of attempts to create a temporary file. A concurrent cleanup may remove each file
/// before it is locked.
const TRIES: u32 = 20;

/// Returns the temporary name of a file. udev, systemd and tuned ignore files with such names.
fn early_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{END}"))
}

/// Returns whether Seekwell writes files at this path. Notes do not count.
pub(super) fn is_of_ours(path: &Path) -> bool {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) else {
        return false;
    };
    let profile = dir
        .file_name()
        .is_some_and(|d| d.to_string_lossy().starts_with(PROFILE))
        && dir.parent() == Some(Path::new(TUNED));
    let of =
        |p: &(&str, &str, &str)| dir == Path::new(p.0) && name.ends_with(p.1) && name.contains(p.2);
    (profile && name == "tuned.conf") || PLACES[1..].iter().any(of)
}

/// Writes a complete file to the medium, then renames it. Bits such as setuid are never set.
pub(super) fn put(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let early = early_name(path);
    let mode = mode & 0o777;
    let mut file = begun(&early, mode)?;
    let mut write = || {
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&early, path)?;
        File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&early);
    })
}

/// Creates a temporary file and locks it while it is written, so that a cleanup does not remove it.
fn begun(early: &Path, mode: u32) -> io::Result<File> {
    for _ in 0..TRIES {
        let mut how = OpenOptions::new();
        let opened = how.write(true).create_new(true).mode(mode).open(early);
        match opened {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                if !removed(early) {
                    return Err(e);
                }
            }
            Err(e) => return Err(e),
            // A concurrent cleanup may have removed the file before it was locked.
            Ok(file) => {
                let own = file.metadata()?.ino();
                let there = || fs::symlink_metadata(early).is_ok_and(|m| m.ino() == own);
                if file.try_lock().is_ok() && there() {
                    return Ok(file);
                }
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes a temporary file of this user unless a process is writing it. Returns whether the file
/// was removed.
fn removed(early: &Path) -> bool {
    let mut how = OpenOptions::new();
    how.write(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let Ok(file) = how.open(early) else {
        return false;
    };
    let own = file
        .metadata()
        .is_ok_and(|m| m.is_file() && m.nlink() == 1 && ours(&m));
    own && file.try_lock().is_ok() && fs::remove_file(early).is_ok()
}

/// Removes temporary files of killed runs and returns their paths. Also removes empty directories
/// of notes.
pub fn sweep(tree: &Tree) -> Vec<PathBuf> {
    let mut gone = Vec::new();
    let mut within = |dir: &Path, end: &str, part: &str| {
        for name in names(&tree.at(dir)) {
            let real = name.strip_prefix('.').and_then(|n| n.strip_suffix(END));
            let is = real.is_some_and(|r| r.ends_with(end) && r.contains(part));
            if is && removed(&tree.at(dir).join(&name)) {
                gone.push(dir.join(&name));
            }
        }
    };
    for (dir, end, part) in PLACES {
        within(Path::new(dir), end, part);
    }
    for profile in names(&tree.at(TUNED))
        .iter()
        .filter(|n| n.starts_with(PROFILE))
    {
        within(&Path::new(TUNED).join(profile), "tuned.conf", "");
    }
    for dir in Path::new(NOTES).ancestors().take(2) {
        let _ = fs::remove_dir(tree.at(dir));
    }
    gone
}
