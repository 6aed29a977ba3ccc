//! A directory of our own inside a directory of the user's: made fresh, removed on every path.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use thiserror::Error;

/// Why there is no place to work in.
#[derive(Error, Debug)]
pub enum PlaceError {
    /// It is not there.
    #[error("{0}: there is no such directory; make it, or name another with --dir")]
    Missing(PathBuf),
    /// It is a file.
    #[error("{0}: is not a directory; name one with --dir")]
    NotDirectory(PathBuf),
    /// No right to write.
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
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Made by us alone, removed with everything in it when dropped: at the end, on an error, and
/// while a panic unwinds.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    gone: bool,
}

/// Whether a directory of ours could be made inside, without trying it.
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
    /// Makes `DIR/seekwell-NAME-PID-N`, which must not exist.
    pub fn new(dir: &Path, name: &str) -> Result<Self, PlaceError> {
        usable(dir)?;
        // Absolute: the program may change its directory before it cleans up.
        let dir = fs::canonicalize(dir).map_err(|e| place_error(dir, e))?;
        loop {
            let n = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = dir.join(format!("seekwell-{name}-{}-{n}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Scratch { path, gone: false }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(place_error(&dir, e)),
            }
        }
    }
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Removes it now, and says if that failed. Already gone is as good.
    pub fn remove(mut self) -> Result<(), PlaceError> {
        self.gone = true;
        match fs::remove_dir_all(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(place_error(&self.path, e)),
            _ => Ok(()),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.gone {
            // Nobody is left to tell; `remove` is the way to hear of it.
            let _ = fs::remove_dir_all(&self.path);
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
        // Other tests draw numbers too: enough of them that ours meets one.
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
    fn one_that_vanished_is_no_error() {
        let a = Scratch::new(&here(), "vanished").expect("made");
        fs::remove_dir(a.path()).expect("removed");
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
