//! Creates directories of Seekwell inside a directory of the user. They are removed whenever the
//! program ends, except after kill -9.
//!
//! A directory belongs to a killed run if it contains a marker file that no process has locked. If
//! a run was killed before it created the marker or after it removed the marker, its directory is
//! empty. An empty directory belongs to a killed run if its name contains the ID of a process that
//! has ended.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use thiserror::Error;

/// Returns whether only this user can have written the file.
pub(crate) fn ours(meta: &fs::Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o022 == 0
}

/// Reasons why no working directory can be created.
#[derive(Error, Debug)]
pub enum PlaceError {
    /// The directory does not exist.
    #[error("{0}: there is no such directory; make it, or name another with --dir")]
    Missing(PathBuf),
    /// The path is not a directory.
    #[error("{0}: is not a directory; name one with --dir")]
    NotDirectory(PathBuf),
    /// This user may not write to the directory.
    #[error("{0}: may not be written by this user; name another directory with --dir")]
    Unwritable(PathBuf),
    /// The file system is mounted read-only.
    #[error("{0}: its file system is mounted read-only; name another directory with --dir")]
    ReadOnly(PathBuf),
    /// The file system has no free space or no free inode.
    #[error(
        "{0}: no space is left, not even for a directory; free some, or name another with --dir"
    )]
    Full(PathBuf),
    /// Any other error.
    #[error("{path}: {source}")]
    Other {
        /// Path of the directory.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
}

/// A directory that this run creates. Dropping it removes the directory with its contents, also
/// after an error or a panic.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    gone: bool,
    /// The marker file, which is locked. The kernel releases the lock when the process ends.
    marker: Option<File>,
}

/// Name of the file that marks a directory as created by Seekwell. The file is empty. The process
/// locks it (flock) during the run. The lock is valid even if process IDs are reused.
pub const MARKER: &str = ".seekwell-run";
/// Name of the marker before it is locked.
const EARLY: &str = ".seekwell-new";
/// Prefix of the names of the directories.
const PREFIX: &str = "seekwell-";
/// Maximum number of attempts to create and mark a directory. A concurrent cleanup may remove each
/// directory before it is marked.
const TRIES: u32 = 100;

/// Checks whether a directory could be created inside `dir`, without creating one.
pub fn usable(dir: &Path) -> Result<(), PlaceError> {
    let meta = fs::metadata(dir).map_err(|e| place_error(dir, e))?;
    if !meta.is_dir() {
        return Err(PlaceError::NotDirectory(dir.to_owned()));
    }
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(dir, access).map_err(|e| place_error(dir, e.into()))
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Scratch {
    /// Creates the directory `DIR/seekwell-NAME-PID-N`. The call fails if it exists.
    pub fn new(dir: &Path, name: &str) -> Result<Self, PlaceError> {
        usable(dir)?;
        // The path must be absolute, because the program may change its current directory before
        // the cleanup.
        let dir = fs::canonicalize(dir).map_err(|e| place_error(dir, e))?;
        let mut tries = 0;
        loop {
            let n = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = dir.join(format!("{PREFIX}{name}-{}-{n}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {
                    let marked = mark(&path);
                    tries += 1;
                    // A concurrent cleanup has removed the directory, so another name is tried.
                    if let Err(e) = &marked
                        && matches!(
                            e.kind(),
                            io::ErrorKind::NotFound | io::ErrorKind::WouldBlock
                        )
                        && tries < TRIES
                    {
                        let _ = fs::remove_dir_all(&path);
                        continue;
                    }
                    // If there is no space for the marker, or the file system does not support
                    // locks, the directory has no marker. A cleanup does not remove the directory
                    // while this process is running, because its name contains the process ID.
                    let (marker, gone) = (marked.ok(), false);
                    return Ok(Scratch { path, gone, marker });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(place_error(&dir, e)),
            }
        }
    }
    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Removes the directory and returns an error if this fails. A missing directory is not an
    /// error.
    pub fn remove(mut self) -> Result<(), PlaceError> {
        self.gone = true;
        remove(&self.path, self.marker.take())
    }
}

/// Removes a directory while its marker is locked. Because of the lock, no other process treats the
/// directory as that of a killed run.
fn remove(path: &Path, marker: Option<File>) -> Result<(), PlaceError> {
    empty(path);
    let first = fs::remove_dir_all(path);
    drop(marker);
    let all = match first {
        // NFS keeps a temporary name for files that are still open, so the removal is tried again.
        Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => fs::remove_dir_all(path),
        first => first,
    };
    match all {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(place_error(path, e)),
        _ => Ok(()),
    }
}

/// Removes the contents of a directory except for the marker. If the removal is interrupted, the
/// directory still has its marker.
fn empty(path: &Path) {
    for e in fs::read_dir(path).into_iter().flatten().flatten() {
        if e.file_name() != MARKER {
            let real = e.file_type().is_ok_and(|t| t.is_dir());
            // Errors are ignored here. The final removal finds the remaining files and reports
            // them.
            let _ = if real {
                fs::remove_dir_all(e.path())
            } else {
                fs::remove_file(e.path())
            };
        }
    }
}

/// Creates the marker in a new directory. The marker is locked under the name [`EARLY`] and then
/// renamed to [`MARKER`], so a marker of a running process is always locked. If the marker cannot
/// be locked, it keeps the name [`EARLY`], so that the directory is not empty.
fn mark(dir: &Path) -> io::Result<File> {
    let early = dir.join(EARLY);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&early)?;
    file.try_lock()
        .map_err(io::Error::from)
        .and_then(|()| fs::rename(&early, dir.join(MARKER)))?;
    Ok(file)
}

/// A directory of a killed run. Such a directory contains a marker that no process has locked. If
/// it contains no marker, because the run was killed before it created one, the directory is
/// recognised by the process ID in its name.
#[derive(Debug)]
pub struct Leftover {
    /// Path of the directory.
    pub path: PathBuf,
    /// Space that the directory occupies on the disk, bytes.
    pub bytes: u64,
    /// Whether another file system is mounted inside the directory.
    mounted: bool,
    /// The marker, which this process has locked. `None` if there is no marker. Then the directory
    /// is empty.
    marker: Option<File>,
}

/// Returns the directories of killed runs inside `dir`, sorted by name. Directories of running
/// processes and directories of other users are left out. A directory without a marker is returned
/// only if it is empty and the process in its name has ended.
pub fn leftovers(dir: &Path) -> Vec<Leftover> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let ours = entries.filter(|e| {
        let name = e.file_name();
        let real = e.file_type().is_ok_and(|t| t.is_dir());
        real && name.to_string_lossy().starts_with(PREFIX)
    });
    let mut found: Vec<Leftover> = ours.filter_map(|e| leftover(e.path())).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Removes the directories of killed runs inside `dir`. Returns the removed paths, and the errors.
/// If `dir` does not exist, there is nothing to remove.
///
/// # Errors
/// The directory cannot be read.
pub fn remove_leftovers(dir: &Path) -> io::Result<(Vec<PathBuf>, Vec<PlaceError>)> {
    match fs::read_dir(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let (mut gone, mut left) = (Vec::new(), Vec::new());
    for l in leftovers(dir) {
        let path = l.path.clone();
        match l.remove() {
            Ok(()) => gone.push(path),
            Err(e) => left.push(e),
        }
    }
    Ok((gone, left))
}

/// Returns the directories that a process created inside `dir`.
///
/// # Errors
/// The directory cannot be read.
pub(crate) fn of_process(dir: &Path, pid: u32) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?.collect::<io::Result<Vec<_>>>()?,
    };
    let own = |e: &fs::DirEntry| process_of(&e.file_name().to_string_lossy()) == Some(pid);
    let mut all: Vec<PathBuf> = entries
        .iter()
        .filter(|e| own(e))
        .map(fs::DirEntry::path)
        .collect();
    all.sort();
    Ok(all)
}

/// Opens and locks a marker. Returns an error if another process has locked the marker.
fn held_by_none(path: &Path) -> io::Result<File> {
    // The marker is opened for writing, because network file systems require this for locks. The
    // flags prevent that the call follows a symbolic link or waits for a pipe.
    let open = |write: bool| {
        let mut how = OpenOptions::new();
        how.read(!write).write(write);
        how.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
    };
    let marker = match open(true) {
        // On a read-only file system, leftovers are reported although they cannot be removed.
        Err(e) if e.kind() == io::ErrorKind::ReadOnlyFilesystem => open(false)?,
        opened => opened?,
    };
    if !marker.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    marker.try_lock()?;
    Ok(marker)
}

/// Returns the process ID in a name such as `seekwell-NAME-PID-N`.
fn process_of(name: &str) -> Option<u32> {
    let mut parts = name.strip_prefix(PREFIX)?.rsplit('-');
    let mut number = || parts.next().and_then(|p| p.parse::<u32>().ok());
    number()?;
    number()
}

/// Returns whether a directory's name contains the ID of a process that has ended.
fn of_a_dead_one(name: &str) -> bool {
    process_of(name).is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

/// Returns a directory whose process was killed before it created the marker or after it removed
/// the marker. The directory is empty, or contains only a marker with the name [`EARLY`].
fn unmarked(path: PathBuf) -> Option<Leftover> {
    let dead = of_a_dead_one(&path.file_name()?.to_string_lossy());
    let entries = fs::read_dir(&path).ok()?;
    let bare = entries.flatten().all(|e| e.file_name() == EARLY);
    let marker = match held_by_none(&path.join(EARLY)) {
        Ok(marker) => Some(marker),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(_) => return None,
    };
    (dead && bare).then_some(Leftover {
        path,
        bytes: 0,
        mounted: false,
        marker,
    })
}

fn leftover(path: PathBuf) -> Option<Leftover> {
    let marker = match held_by_none(&path.join(MARKER)) {
        Ok(marker) => Some(marker),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return unmarked(path),
        Err(_) => return None,
    };
    let device = path.symlink_metadata().ok()?.dev();
    let (mut bytes, mut mounted) = (0, false);
    let mut todo = vec![path.clone()];
    while let Some(dir) = todo.pop() {
        for e in fs::read_dir(dir).into_iter().flatten().flatten() {
            // The metadata are those of the entry itself, not of the target of a symbolic link.
            let Ok(meta) = e.metadata() else { continue };
            bytes += meta.blocks() * 512;
            mounted |= meta.dev() != device;
            if meta.is_dir() && meta.dev() == device {
                todo.push(e.path());
            }
        }
    }
    Some(Leftover {
        path,
        bytes,
        mounted,
        marker,
    })
}

impl Leftover {
    /// Removes the directory with its contents. Returns an error if another file system is mounted
    /// inside.
    pub fn remove(self) -> Result<(), PlaceError> {
        if self.mounted {
            let source = io::Error::other("something is mounted inside; unmount it first");
            return Err(PlaceError::Other {
                path: self.path,
                source,
            });
        }
        remove(&self.path, self.marker)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.gone {
            // An error cannot be returned here. Call `remove` to get it.
            let _ = remove(&self.path, self.marker.take());
        }
    }
}

fn place_error(path: &Path, source: io::Error) -> PlaceError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => PlaceError::Missing(path),
        io::ErrorKind::NotADirectory => PlaceError::NotDirectory(path),
        io::ErrorKind::PermissionDenied => PlaceError::Unwritable(path),
        io::ErrorKind::ReadOnlyFilesystem => PlaceError::ReadOnly(path),
        io::ErrorKind::StorageFull => PlaceError::Full(path),
        _ => PlaceError::Other { path, source },
    }
}

/// Returns the number of entries in a test's directory. The marker of the directory is not counted.
#[cfg(test)]
pub(crate) fn held(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).expect("still there").flatten();
    entries.filter(|e| e.file_name() != MARKER).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> PathBuf {
        std::env::temp_dir()
    }

    #[test]
    fn scratch_directory_is_removed_on_drop_remove_and_panic() {
        let a = Scratch::new(&here(), "drop").expect("made");
        let path = a.path().to_owned();
        fs::write(path.join("file"), "x").expect("written");
        drop(a);
        assert!(!path.exists());
        let b = Scratch::new(&here(), "remove").expect("made");
        let path = b.path().to_owned();
        b.remove().expect("removed");
        assert!(!path.exists());
        let path = std::panic::catch_unwind(|| {
            let c = Scratch::new(&here(), "panic").expect("made");
            std::panic::panic_any(c.path().to_owned());
        });
        let path = path.expect_err("it panics");
        let path = path.downcast_ref::<PathBuf>().expect("a path");
        assert!(!path.exists());
    }

    #[test]
    fn existing_directory_is_not_reused() {
        let t = Scratch::new(&here(), "taken").expect("made");
        let next = COUNT.load(Ordering::Relaxed);
        let name = |n| format!("seekwell-x-{}-{n}", std::process::id());
        // Other tests take numbers too, so there are many names to make a collision likely.
        let taken: Vec<_> = (next..next + 40).map(|n| t.path().join(name(n))).collect();
        for p in &taken {
            fs::write(p, "precious").expect("written");
        }
        let ours = Scratch::new(t.path(), "x").expect("made");
        assert!(!taken.contains(&ours.path().to_owned()) && ours.path().is_dir());
        ours.remove().expect("removed");
        for p in &taken {
            assert_eq!(fs::read_to_string(p).expect("still there"), "precious");
        }
    }

    #[test]
    fn leftover_directory_is_recognised_by_an_unlocked_marker() {
        let t = Scratch::new(&here(), "left").expect("made");
        let at = |name: &str| t.path().join(name);
        let lives = Scratch::new(t.path(), "lives").expect("made");
        fs::write(lives.path().join("file"), "x").expect("written");
        // These directories were not created by Seekwell. The first has no marker. The second is a
        // symbolic link to a marked directory. In the third, the marker is a symbolic link.
        for name in ["seekwell-alike", "elsewhere", "seekwell-planted"] {
            fs::create_dir(at(name)).expect("made");
        }
        fs::write(at("elsewhere").join(MARKER), "").expect("written");
        std::os::unix::fs::symlink("elsewhere", at("seekwell-link")).expect("linked");
        let planted = at("seekwell-planted").join(MARKER);
        std::os::unix::fs::symlink("../elsewhere/.seekwell-run", planted).expect("linked");
        assert_eq!(leftovers(t.path()).len(), 0);
        // Simulates kill -9: all files exist, and the lock is released.
        let left = Scratch::new(t.path(), "dead").expect("made");
        fs::create_dir(left.path().join("d")).expect("made");
        fs::write(left.path().join("d/file"), [1; 100_000]).expect("written");
        let path = left.path().to_owned();
        assert_eq!(leftovers(t.path()).len(), 0, "it lives");
        let mut left = left;
        left.marker = None;
        left.gone = true;
        drop(left);
        let found = leftovers(t.path());
        assert_eq!(found.len(), 1);
        assert!(leftovers(t.path()).is_empty(), "one finder at a time");
        let [found] = <[Leftover; 1]>::try_from(found).expect("one");
        assert!(found.path == path && found.bytes >= 100_000, "{found:?}");
        found.remove().expect("removed");
        assert!(!path.exists() && lives.path().join("file").exists());
        assert!(at("seekwell-alike").exists() && at("elsewhere").join(MARKER).exists());
    }

    /// A process number that no process has.
    const NOBODY: u32 = 4_194_999;

    #[test]
    fn unmarked_leftover_directory_is_recognised_by_its_name() {
        let t = Scratch::new(&here(), "unmarked").expect("made");
        let made = |name: &str| {
            let path = t.path().join(name);
            fs::create_dir(&path).expect("made");
            path
        };
        let bare = made(&format!("seekwell-cmd-{NOBODY}-2"));
        let early = made(&format!("seekwell-fio-{NOBODY}-3"));
        fs::write(early.join(EARLY), "").expect("written");
        // These are not leftovers: a file of another user, a locked marker, a running process, and
        // a name without numbers.
        let other = made(&format!("seekwell-cmd-{NOBODY}-4"));
        fs::write(other.join("precious"), "x").expect("written");
        let held = made(&format!("seekwell-cmd-{NOBODY}-5"));
        let lock = File::create(held.join(EARLY)).expect("made");
        lock.try_lock().expect("locked");
        let lives = made(&format!("seekwell-cmd-{}-4000000", std::process::id()));
        let named = [made("seekwell-cmd-x-1"), made("seekwell-1")];
        let found = leftovers(t.path());
        let paths: Vec<_> = found.iter().map(|l| l.path.clone()).collect();
        assert_eq!(paths, [bare.clone(), early.clone()]);
        for l in found {
            l.remove().expect("removed");
        }
        assert!(!bare.exists() && !early.exists());
        for kept in [&other, &held, &lives, &named[0], &named[1]] {
            assert!(kept.is_dir(), "{}", kept.display());
        }
    }

    #[test]
    fn marker_is_removed_last() {
        let t = Scratch::new(&here(), "order").expect("made");
        fs::create_dir(t.path().join("d")).expect("made");
        fs::write(t.path().join("d/file"), "x").expect("written");
        fs::write(t.path().join("file"), "x").expect("written");
        std::os::unix::fs::symlink("d", t.path().join("link")).expect("linked");
        empty(t.path());
        let left = fs::read_dir(t.path()).expect("there").flatten();
        let left: Vec<_> = left.map(|e| e.file_name()).collect();
        assert_eq!(left, [MARKER]);
    }

    #[test]
    fn vanished_scratch_directory_is_no_error() {
        let a = Scratch::new(&here(), "vanished").expect("made");
        fs::remove_dir_all(a.path()).expect("removed");
        assert!(a.remove().is_ok());
    }

    #[test]
    fn errors_name_the_directory_and_a_remedy() {
        let t = Scratch::new(&here(), "errors").expect("made");
        let missing = t.path().join("none");
        let e = Scratch::new(&missing, "x").expect_err("not there");
        assert!(
            e.to_string().contains("none: there is no such directory"),
            "{e}"
        );
        let file = t.path().join("file");
        fs::write(&file, "x").expect("written");
        let e = Scratch::new(&file, "x").expect_err("a file");
        assert!(e.to_string().contains("is not a directory"), "{e}");
        let e = Scratch::new(Path::new("/proc"), "x").expect_err("not writable");
        assert!(e.to_string().starts_with("/proc: "), "{e}");
    }
}
