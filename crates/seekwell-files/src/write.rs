//! Writing: a file is replaced atomically and keeps its owner and permissions. Everything that is
//! not a regular file is written directly.

use crate::read::Kind;
use crate::target::{Target, target};
use rustix::fs::{Gid, Mode, OFlags, Uid, XattrFlags};
use rustix::io::Errno;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// A result that is being written. [`Sink::finish`] puts it in place; if it is dropped earlier, an
/// existing file stays unchanged.
#[derive(Debug)]
pub struct Sink(To);

#[derive(Debug)]
enum To {
    /// A terminal, a pipe or a descriptor: writes cannot be undone.
    Direct(File),
    /// A new file next to the target, which is renamed at the end; and the old file, if any.
    Replace {
        new: NamedTempFile,
        real: PathBuf,
        old: Option<File>,
    },
    /// If a new file cannot replace the old one (an unwritable directory, an owner that cannot be
    /// set): the data is collected elsewhere and copied at the end.
    Copy { collected: File, into: File },
}

impl Sink {
    /// Opens the target. On a pipe without a reader this blocks, as usual.
    ///
    /// Links are followed, and the target is replaced in its own directory. Other hard links to it
    /// keep the old content.
    pub fn open(path: &Path) -> io::Result<Self> {
        let to = match target(path)? {
            Target::Own(fd) => To::Direct(duplicate(fd)?),
            Target::Direct => To::Direct(direct(path)?),
            Target::Existing(real) => existing(real)?,
            Target::New(real) => {
                let new = builder(0o666).tempfile_in(parent(&real))?;
                let old = None;
                To::Replace { new, real, old }
            }
        };
        Ok(Sink(to))
    }

    /// Completes the file: flushes it to disk and renames it.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            To::Direct(mut file) => file.flush(),
            To::Replace { new, real, old } => {
                new.as_file().sync_all()?;
                match (new.persist(&real), old) {
                    (Ok(_), _) => Ok(()),
                    // A file that is itself a mount point cannot be renamed.
                    (Err(e), Some(into)) if e.error.raw_os_error() == BUSY => {
                        copy(e.file.as_file(), &into)
                    }
                    (Err(e), _) => Err(e.error),
                }
            }
            To::Copy { collected, into } => copy(&collected, &into),
        }
    }
}

const BUSY: Option<i32> = Some(libc::EBUSY);

impl Write for Sink {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            To::Direct(f) => f.write(buf),
            To::Replace { new, .. } => new.write(buf),
            To::Copy { collected, .. } => collected.write(buf),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens a file for incremental writing, for data that must survive a kill of the program (a log).
/// The file is truncated and written in place, with its owner and mode. Links are treated as in
/// [`Sink::open`].
pub fn stream(path: &Path) -> io::Result<File> {
    match target(path)? {
        Target::Own(fd) => duplicate(fd),
        Target::Direct => direct(path),
        Target::Existing(real) => {
            let file = in_place(&real)?;
            file.set_len(0)?;
            Ok(file)
        }
        // If someone creates the name meanwhile, do not write through it.
        Target::New(real) => OpenOptions::new().write(true).create_new(true).open(real),
    }
}

/// An unnamed file for intermediate data. It disappears when the program ends, however it ends.
///
/// # Errors
/// There is no writable folder for temporary files.
pub fn scratch() -> io::Result<File> {
    tempfile::tempfile()
}

/// Removes files that killed writers left in a folder; no other process may be writing there.
/// Returns the number of files.
///
/// # Errors
/// The folder cannot be read, or a file cannot be removed.
pub fn sweep(folder: &Path) -> io::Result<usize> {
    let mut gone = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        let ours = name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes());
        if ours && entry.file_type()?.is_file() {
            std::fs::remove_file(entry.path())?;
            gone += 1;
        }
    }
    Ok(gone)
}

fn parent(real: &Path) -> &Path {
    real.parent().unwrap_or(Path::new("/"))
}

/// Name of a file before it gets its final name.
const PREFIX: &str = ".seekwell-";
const SUFFIX: &str = ".part";

/// An unpredictable name, opened only if it is new (O_EXCL, which follows no link).
fn builder(mode: u32) -> Builder<'static, 'static> {
    let mut b = Builder::new();
    b.prefix(PREFIX)
        .suffix(SUFFIX)
        .permissions(Permissions::from_mode(mode));
    b
}

fn in_place(real: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(real)?;
    match Kind::of(&file.metadata()?) {
        Kind::File => Ok(file),
        kind => Err(io::Error::other(format!(
            "it has changed to {kind} meanwhile"
        ))),
    }
}

fn direct(path: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.write(true).custom_flags(libc::O_NOCTTY);
    // A file behind another process's descriptor: append, so that nothing is lost.
    how.append(std::fs::metadata(path)?.is_file());
    how.open(path)
}

fn existing(real: PathBuf) -> io::Result<To> {
    // Opened although it is replaced: a user who cannot write a file must not replace it either.
    let old = in_place(&real)?;
    let beside = builder(0o600).tempfile_in(parent(&real));
    match beside.and_then(|new| keep(&old, new.as_file()).map(|()| new)) {
        Ok(new) => Ok(To::Replace {
            new,
            real,
            old: Some(old),
        }),
        Err(_) => Ok(To::Copy {
            collected: tempfile::tempfile()?,
            into: old,
        }),
    }
}

/// Copies owner, permissions, access list and attributes of the old file, as far as possible. An
/// owner that cannot be kept is an error.
fn keep(old: &File, new: &File) -> io::Result<()> {
    let (was, is) = (old.metadata()?, new.metadata()?);
    if (was.uid(), was.gid()) != (is.uid(), is.gid()) {
        let (uid, gid) = (Uid::from_raw(was.uid()), Gid::from_raw(was.gid()));
        rustix::fs::fchown(new, Some(uid), Some(gid))?;
    }
    keep_attributes(old, new);
    // Without set-user-ID and set-group-ID, which writing also removes.
    rustix::fs::fchmod(new, Mode::from_raw_mode(was.mode() & 0o777))?;
    Ok(())
}

/// Linux's limits for the list of names and for a value.
const XATTR_MAX: usize = 64 << 10;
/// Attributes that describe the content; they would be wrong for another file.
const OF_CONTENT: &[&[u8]] = &[b"security.capability", b"security.ima", b"security.evm"];
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";

fn keep_attributes(old: &File, new: &File) {
    let (mut names, mut value) = (vec![0; XATTR_MAX], vec![0; XATTR_MAX]);
    // On a file system without attributes this fails, and there is nothing to copy.
    let length = rustix::fs::flistxattr(old, &mut names[..]).unwrap_or(0);
    let names: Vec<&[u8]> = names[..length].split(|b| *b == 0).collect();
    if !names.contains(&ACCESS_LIST) {
        // The new file has inherited the directory's default list.
        let _ = rustix::fs::fremovexattr(new, ACCESS_LIST);
    }
    for name in names {
        if name.is_empty() || OF_CONTENT.contains(&name) {
            continue;
        }
        if let Ok(n) = rustix::fs::fgetxattr(old, name, &mut value[..]) {
            // Only the administrator can set some of them.
            let _ = rustix::fs::fsetxattr(new, name, &value[..n], XattrFlags::empty());
        }
    }
}

fn copy(mut from: &File, mut into: &File) -> io::Result<()> {
    from.rewind()?;
    into.set_len(0)?;
    into.rewind()?;
    io::copy(&mut from, &mut into)?;
    into.sync_all()
}

/// Another descriptor for the same open file, so that the output of others stays in order before
/// and after this one's.
fn duplicate(fd: RawFd) -> io::Result<File> {
    own_is_writable(fd)?;
    // Not one of the three standard descriptors.
    let least = io::stderr().as_raw_fd() + 1;
    #[expect(
        unsafe_code,
        reason = "a descriptor known only by its number has no safe wrapper"
    )]
    // SAFETY: only numbers are passed. A closed descriptor gives EBADF, and this code owns the new
    // one.
    unsafe {
        match libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, least) {
            -1 => Err(io::Error::last_os_error()),
            new => Ok(File::from_raw_fd(new)),
        }
    }
}

/// Checks whether a descriptor of this process is open for writing.
pub(crate) fn own_is_writable(fd: RawFd) -> io::Result<()> {
    #[expect(
        unsafe_code,
        reason = "a descriptor known only by its number has no safe wrapper"
    )]
    // SAFETY: only numbers are passed. A closed descriptor gives EBADF.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    match OFlags::from_bits_retain(flags as u32) & OFlags::RWMODE {
        OFlags::RDONLY => Err(Errno::BADF.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
