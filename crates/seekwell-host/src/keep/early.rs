//! A file that appears whole: it is written under another name first. What a kill leaves under such a
//! name is found by it, and removed.

use crate::block::{Tree, names};
use crate::place::ours;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where notes are kept.
pub(super) const NOTES: &str = "/var/lib/seekwell/applied";
/// Directories of files of ours: with what their names end, and what is within them.
const PLACES: &[(&str, &str, &str)] = &[
    (NOTES, ".json", ""),
    ("/etc/udev/rules.d", ".rules", "-seekwell-"),
    ("/etc/systemd/system", ".service", "seekwell-"),
];
/// Where profiles of tuned have directories of their own.
const TUNED: &str = "/etc/tuned";
const PROFILE: &str = "seekwell-";
/// What ends a file's first name.
const END: &str = ".seekwell";
/// New files that may be taken for left behind before they are locked.
const TRIES: u32 = 20;

/// udev, systemd and tuned look at no file of such a name.
fn early_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{END}"))
}

/// Is a path one that we write files at, besides notes?
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

/// Whole, on the medium, then under its name. Bits of setuid and the like are never set.
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

/// A new file, locked as long as it is written: nobody else takes it for left behind.
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
            // Whoever sweeps in this moment may have taken it for left behind.
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

/// Removes a file that nobody writes any more, if it is ours.
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

/// Removes what killed runs had begun to write, and gives the paths. Directories of notes that are
/// empty go, too.
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
