//! A directory of Seekwell inside a directory of the user. It is removed on every exit path except
//! kill -9. A directory left by a killed run is recognised by its marker file, which no process has
//! locked. A run killed just before the marker has its name, or just after its removal, leaves an
//! empty directory. That directory is recognised by its name, which contains the number of a
//! process that has ended.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use thiserror::Error;

/// Whether only this user can have written it.
pub(crate) fn ours(meta: &fs::Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o022 == 0
}

/// Why no working directory can be created.
#[derive(Error, Debug)]
pub enum PlaceError {
    /// It does not exist.
    #[error("{0}: there is no such directory; make it, or name another with --dir")]
    Missing(PathBuf),
    /// It is not a directory.
    #[error("{0}: is not a directory; name one with --dir")]
    NotDirectory(PathBuf),
    /// No permission to write.
    #[error("{0}: may not be written by this user; name another directory with --dir")]
    Unwritable(PathBuf),
    /// Mounted read-only.
    #[error("{0}: its file system is mounted read-only; name another directory with --dir")]
    ReadOnly(PathBuf),
    /// No space, or no inode.
    #[error(
        "{0}: no space is left, not even for a directory; free some, or name another with --dir"
    )]
    Full(PathBuf),
    /// Anything else.
    #[error("{path}: {source}")]
    Other {
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

/// A directory that this run creates. It is removed with its contents when dropped: at the end, on
/// an error, and while a panic unwinds.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    gone: bool,
    /// Locked as long as this lives; the kernel releases the lock when the process ends.
    marker: Option<File>,
}

/// The file that marks a directory as Seekwell's. It is empty and locked (flock) while its run
/// lives, independently of process numbers.
pub const MARKER: &str = ".seekwell-run";
/// Name of the marker before it is locked.
const EARLY: &str = ".seekwell-new";
/// Prefix of the directories' names.
const PREFIX: &str = "seekwell-";
/// Attempts to create and mark a directory; a concurrent cleanup may remove each one before it is
/// marked.
const TRIES: u32 = 100;

/// Whether a directory could be created inside `dir`, checked without trying it.
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
    /// Creates `DIR/seekwell-NAME-PID-N`, which must not exist.
    pub fn new(dir: &Path, name: &str) -> Result<Self, PlaceError> {
        usable(dir)?;
        // Absolute: the program may change its directory before it cleans up.
        let dir = fs::canonicalize(dir).map_err(|e| place_error(dir, e))?;
        let mut tries = 0;
        loop {
            let n = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = dir.join(format!("{PREFIX}{name}-{}-{n}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {
                    let marked = mark(&path);
                    tries += 1;
                    // A concurrent cleanup took it for a leftover: try another name.
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
                    // Without space for a name or support for locks: the directory stays unmarked.
                    // No cleanup takes it for a leftover while this process lives.
                    let (marker, gone) = (marked.ok(), false);
                    return Ok(Scratch { path, gone, marker });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(place_error(&dir, e)),
            }
        }
    }
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Removes the directory and reports a failure. A missing directory is not a failure.
    pub fn remove(mut self) -> Result<(), PlaceError> {
        self.gone = true;
        remove(&self.path, self.marker.take())
    }
}

/// Removes a directory under its lock, so that no other process takes it for a leftover meanwhile.
fn remove(path: &Path, marker: Option<File>) -> Result<(), PlaceError> {
    empty(path);
    let first = fs::remove_dir_all(path);
    drop(marker);
    let all = match first {
        // NFS keeps a name for files that are still open.
        Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => fs::remove_dir_all(path),
        first => first,
    };
    match all {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(place_error(path, e)),
        _ => Ok(()),
    }
}

/// Removes what can be removed, except the marker, so that an interrupted removal leaves a marked
/// directory.
fn empty(path: &Path) {
    for e in fs::read_dir(path).into_iter().flatten().flatten() {
        if e.file_name() != MARKER {
            let real = e.file_type().is_ok_and(|t| t.is_dir());
            // Remaining files are found again by the final removal, which reports them.
            let _ = if real {
                fs::remove_dir_all(e.path())
            } else {
                fs::remove_file(e.path())
            };
        }
    }
}

/// Creates the marker in a new directory. It gets its final name only when it is locked, so that
/// the marker of a live run is always locked. A marker that cannot be locked keeps its first name,
/// so that the directory is not empty.
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

/// A directory that a killed run left. It is recognised by its unlocked marker, or by its name if
/// the run was killed before it had one.
#[derive(Debug)]
pub struct Leftover {
    /// Its path.
    pub path: PathBuf,
    /// Bytes on the disk.
    pub bytes: u64,
    /// Whether another file system is mounted inside.
    mounted: bool,
    /// `None` without a marker; then the directory is empty.
    marker: Option<File>,
}

/// Leftovers of killed runs in a directory, by name. Excludes live runs, other users' directories
/// and directories without a marker.
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

/// Removes the leftovers of killed runs in a directory. Returns the removed paths, and the
/// failures. A missing directory has no leftovers.
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

/// Directories that a process created.
///
/// # Errors
/// The parent directory cannot be read.
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

/// Locks a marker that no process holds.
fn held_by_none(path: &Path) -> io::Result<File> {
    // Opened for writing, which locks on network file systems need; follows no link and waits for
    // no pipe.
    let open = |write: bool| {
        let mut how = OpenOptions::new();
        how.read(!write).write(write);
        how.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
    };
    let marker = match open(true) {
        // On a read-only file system leftovers are recognised, although they cannot be removed.
        Err(e) if e.kind() == io::ErrorKind::ReadOnlyFilesystem => open(false)?,
        opened => opened?,
    };
    if !marker.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    marker.try_lock()?;
    Ok(marker)
}

/// The process number in a name `seekwell-NAME-PID-N`.
fn process_of(name: &str) -> Option<u32> {
    let mut parts = name.strip_prefix(PREFIX)?.rsplit('-');
    let mut number = || parts.next().and_then(|p| p.parse::<u32>().ok());
    number()?;
    number()
}

/// Whether a name has the number of a process that has ended.
fn of_a_dead_one(name: &str) -> bool {
    process_of(name).is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

/// A directory whose process had not marked it yet or had removed the marker. It is empty, or has a
/// marker under its first name.
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
            // Metadata of the entry itself, not of a link's target.
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
    /// Removes the directory with its contents. Fails if something is mounted inside.
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
            // A failure cannot be reported here; `remove` reports it.
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

/// Number of entries in a test's directory besides its own marker.
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
    fn it_goes_when_dropped_removed_or_unwound() {
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
    fn a_name_that_is_taken_is_not_touched() {
        let t = Scratch::new(&here(), "taken").expect("made");
        let next = COUNT.load(Ordering::Relaxed);
        let name = |n| format!("seekwell-x-{}-{n}", std::process::id());
        // Other tests take numbers too, so there are enough names for a collision.
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
    fn what_is_left_is_known_by_a_marker_that_nobody_holds() {
        let t = Scratch::new(&here(), "left").expect("made");
        let at = |name: &str| t.path().join(name);
        let lives = Scratch::new(t.path(), "lives").expect("made");
        fs::write(lives.path().join("file"), "x").expect("written");
        // Lookalikes that are not Seekwell's: no marker, a link to a marked directory, a link in
        // place of the marker.
        for name in ["seekwell-alike", "elsewhere", "seekwell-planted"] {
            fs::create_dir(at(name)).expect("made");
        }
        fs::write(at("elsewhere").join(MARKER), "").expect("written");
        std::os::unix::fs::symlink("elsewhere", at("seekwell-link")).expect("linked");
        let planted = at("seekwell-planted").join(MARKER);
        std::os::unix::fs::symlink("../elsewhere/.seekwell-run", planted).expect("linked");
        assert_eq!(leftovers(t.path()).len(), 0);
        // Like kill -9: everything exists, and the lock is released.
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

    /// A number that no process has.
    const NOBODY: u32 = 4_194_999;

    #[test]
    fn one_killed_before_it_was_marked_is_known_by_its_name() {
        let t = Scratch::new(&here(), "unmarked").expect("made");
        let made = |name: &str| {
            let path = t.path().join(name);
            fs::create_dir(&path).expect("made");
            path
        };
        let bare = made(&format!("seekwell-cmd-{NOBODY}-2"));
        let early = made(&format!("seekwell-fio-{NOBODY}-3"));
        fs::write(early.join(EARLY), "").expect("written");
        // Not leftovers: another user's file, a marker that is locked, a live process, a name
        // without its numbers.
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
    fn the_marker_goes_last() {
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
    fn one_that_vanished_is_no_error() {
        let a = Scratch::new(&here(), "vanished").expect("made");
        fs::remove_dir_all(a.path()).expect("removed");
        assert!(a.remove().is_ok());
    }

    #[test]
    fn errors_name_the_directory_and_a_way_out() {
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
