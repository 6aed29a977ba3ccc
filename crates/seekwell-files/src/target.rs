//! Finds out where a write to a path would go, without opening the path.

use crate::read::Kind;
use rustix::fs::{Access, AtFlags, CWD, OFlags, PROC_SUPER_MAGIC};
use rustix::io::Errno;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Number of symbolic links after which a chain is treated as a loop. The kernel's limit is the
/// same.
const LINKS_MAX: usize = 40;

/// How to write to a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A descriptor of this process, such as `/dev/stdout` or `/dev/fd/3`.
    Own(RawFd),
    /// An existing object that is written directly: a pipe, a terminal, or a descriptor of another
    /// process.
    Direct,
    /// An existing regular file. The path contains no symbolic links.
    Existing(PathBuf),
    /// A path that does not exist yet.
    New(PathBuf),
}

fn refused(kind: io::ErrorKind, words: &str) -> io::Error {
    io::Error::new(kind, words)
}

/// Follows symbolic links in the same way as open(2), and returns how to write to the object.
pub(crate) fn target(path: &Path) -> io::Result<Target> {
    // The kernel follows the links first, because it rejects links that other users created in
    // world-writable directories (fs.protected_symlinks).
    match std::fs::metadata(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        Ok(m) if m.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Err(_) if path.as_os_str().as_bytes().ends_with(b"/") => {
            return Err(refused(
                io::ErrorKind::IsADirectory,
                "a name that ends in `/` is a directory",
            ));
        }
        _ => {}
    }
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        let name = at.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let parent = at.parent().filter(|p| !p.as_os_str().is_empty());
        let dir = parent.unwrap_or(Path::new(".")).canonicalize()?;
        let here = dir.join(name);
        let meta = match std::fs::symlink_metadata(&here) {
            // Even root cannot create a file in procfs. The path names a descriptor that is not
            // open.
            Err(e) if on_procfs(&dir) => return Err(e),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Target::New(here)),
            other => other?,
        };
        if !meta.is_symlink() {
            return match Kind::from_metadata(&meta) {
                Kind::File => Ok(Target::Existing(here)),
                Kind::CharDevice | Kind::Fifo => Ok(Target::Direct),
                Kind::Directory => Err(io::ErrorKind::IsADirectory.into()),
                Kind::BlockDevice => Err(refused(
                    io::ErrorKind::InvalidInput,
                    "it is a block device, whose contents would be lost; give the path of a file",
                )),
                Kind::Socket => Err(refused(
                    io::ErrorKind::InvalidInput,
                    "it is a socket; give the path of a file or a pipe",
                )),
            };
        }
        if on_procfs(&dir) {
            // The entry is a descriptor. The target of its link may not be a path.
            return Ok(own_descriptor(&dir, name).map_or(Target::Direct, Target::Own));
        }
        at = dir.join(std::fs::read_link(&here)?);
    }
    Err(Errno::LOOP.into())
}

fn on_procfs(dir: &Path) -> bool {
    rustix::fs::statfs(dir).is_ok_and(|s| s.f_type == PROC_SUPER_MAGIC)
}

/// Returns the number of a descriptor of this process. `dir` is the real path `/proc/PID/fd`, and
/// `name` is the name of an entry in it.
fn own_descriptor(dir: &Path, name: &std::ffi::OsStr) -> Option<RawFd> {
    let ours = Path::new("/proc/self").canonicalize().ok()?;
    let task = dir.strip_prefix(&ours).ok()?;
    let fd = task == Path::new("fd") || (task.starts_with("task") && task.ends_with("fd"));
    name.to_str().filter(|_| fd)?.parse().ok()
}

/// Returns an error unless the kernel would allow this user the given access to a path.
fn writable(path: &Path, access: Access) -> io::Result<()> {
    rustix::fs::accessat(CWD, path, access, AtFlags::EACCESS).map_err(io::Error::from)
}

/// Returns an error unless a descriptor of this process is open for writing.
pub(crate) fn own_is_writable(fd: RawFd) -> io::Result<()> {
    #[expect(
        unsafe_code,
        reason = "a descriptor known only by its number has no safe wrapper"
    )]
    // SAFETY: fcntl gets only numbers. A closed descriptor gives EBADF.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    match OFlags::from_bits_retain(flags as u32) & OFlags::RWMODE {
        OFlags::RDONLY => Err(Errno::BADF.into()),
        _ => Ok(()),
    }
}

/// Checks whether a result can be written to `path`, before the result is computed. It does not
/// open, create or change any file, and does not wait for the reader of a pipe. It does not detect
/// that the disk is full.
pub fn check(path: &Path) -> io::Result<()> {
    match target(path)? {
        Target::Own(fd) => own_is_writable(fd),
        Target::Direct => writable(path, Access::WRITE_OK),
        Target::Existing(real) => writable(&real, Access::WRITE_OK),
        Target::New(real) => check_directory(real.parent().unwrap_or(Path::new("/"))),
    }
}

/// Checks whether this user can create a file in a directory. It does not create one.
pub fn check_directory(dir: &Path) -> io::Result<()> {
    if !std::fs::metadata(dir)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    writable(dir, Access::WRITE_OK | Access::EXEC_OK)
}

/// Returns whether writing to one path would change or destroy the object at the other path. This
/// is the case if both are the same existing or new file, also by different names, or the same
/// disk. For terminals and `/dev/null` it returns false, because writing to them twice does no
/// harm.
pub fn same(a: &Path, b: &Path) -> bool {
    let number = |p: &Path| {
        let m = std::fs::metadata(p).ok()?;
        match Kind::from_metadata(&m) {
            Kind::File => Some((m.dev(), m.ino(), 0)),
            Kind::BlockDevice => Some((0, 0, m.rdev())),
            _ => None,
        }
    };
    let new = |p: &Path| match target(p) {
        Ok(Target::New(real)) => Some(real),
        _ => None,
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => new(a).is_some_and(|a| new(b) == Some(a)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn same_target_is_recognised_under_two_names() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("a"), "").expect("written");
        std::fs::write(at("b"), "").expect("written");
        std::fs::hard_link(at("a"), at("hard")).expect("linked");
        symlink("a", at("soft")).expect("linked");
        symlink("new", at("dangling")).expect("linked");
        for name in ["a", "hard", "soft", "./a", "../{}/a"] {
            let up = dir.path().file_name().expect("a name").to_string_lossy();
            let other = at(&name.replace("{}", &up));
            assert!(same(&at("a"), &other), "{}", other.display());
        }
        assert!(same(&at("new"), &at("dangling")), "not there yet");
        assert!(same(&at("new"), &at("./new")));
        for (a, b) in [("a", "b"), ("a", "new"), ("new", "other")] {
            assert!(!same(&at(a), &at(b)), "{a} {b}");
        }
        let null = Path::new("/dev/null");
        assert!(!same(null, null), "does no harm");
    }

    #[test]
    fn links_are_resolved_to_their_target() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("there");
        let at = |name: &str| root.join(name);
        std::fs::create_dir(at("sub")).expect("made");
        std::fs::write(at("sub/file"), "").expect("written");
        symlink("sub/file", at("one")).expect("linked");
        symlink(at("one"), at("two")).expect("linked");
        symlink("sub/none", at("dangling")).expect("linked");
        symlink("circle", at("circle")).expect("linked");
        let real = target(&at("two")).expect("there");
        assert_eq!(real, Target::Existing(at("sub/file")));
        let new = target(&at("dangling")).expect("to be made");
        assert_eq!(new, Target::New(at("sub/none")));
        assert!(target(&at("circle")).is_err());
        for (path, kind) in [
            (at("sub"), io::ErrorKind::IsADirectory),
            (at("new/"), io::ErrorKind::IsADirectory),
            (at("none/file"), io::ErrorKind::NotFound),
            (at("one/file"), io::ErrorKind::NotADirectory),
        ] {
            let e = target(&path).expect_err("refused");
            assert_eq!(e.kind(), kind, "{}: {e}", path.display());
        }
    }

    #[test]
    fn descriptor_paths_are_recognised_by_number() {
        for (path, fd) in [("/proc/self/fd/2", 2), ("/dev/fd/1", 1), ("/dev/stderr", 2)] {
            // If `/dev/fd` does not exist or stderr is closed, there is nothing to check.
            if std::fs::metadata(path).is_ok() {
                assert_eq!(
                    target(Path::new(path)).expect("open"),
                    Target::Own(fd),
                    "{path}"
                );
            }
        }
        assert_eq!(
            target(Path::new("/dev/null")).expect("there"),
            Target::Direct
        );
        assert!(check(Path::new("/dev/fd/987654")).is_err());
        let thread = std::fs::canonicalize("/proc/thread-self").expect("procfs");
        assert_eq!(target(&thread.join("fd/2")).ok(), Some(Target::Own(2)));
    }
}
