//! Writes output files. A regular file is replaced atomically and keeps its owner and permissions.
//! All other objects, such as pipes and terminals, are written directly.

use crate::read::Kind;
use crate::target::{Target, own_is_writable, target};
use rustix::fs::{Gid, Mode, Uid, XattrFlags};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// An output file that is being written. The data appear under the final name when [`Sink::finish`]
/// is called. If the sink is dropped earlier, an existing file of that name stays unchanged.
#[derive(Debug)]
pub struct Sink(To);

#[derive(Debug)]
enum To {
    /// A terminal, a pipe or an open descriptor. Data written to it cannot be withdrawn.
    Direct(File),
    /// A new file in the directory of the target. [`Sink::finish`] renames it to the target. `old`
    /// is the existing target, if there is one.
    Replace {
        new: NamedTempFile,
        real: PathBuf,
        old: Option<File>,
    },
    /// Used if a new file cannot replace the old one, because the directory is not writable or the
    /// owner cannot be set. The data are collected in an unnamed file and copied into the old file
    /// at the end.
    Copy { collected: File, into: File },
}

impl Sink {
    /// Opens the target. If the target is a pipe without a reader, the call waits for a reader.
    ///
    /// Symbolic links are followed: the file that they lead to is replaced, in its own directory.
    /// Other hard links to that file keep the old content.
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

    /// Completes the file: writes it to the storage medium and renames it.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            To::Direct(mut file) => file.flush(),
            To::Replace { new, real, old } => {
                new.as_file().sync_all()?;
                match (new.persist(&real), old) {
                    (Ok(_), _) => Ok(()),
                    // A file that is a mount point cannot be replaced by a rename.
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

/// Opens a file for data that must survive a kill of the program, such as a log. The file is
/// truncated and written in place; it keeps its owner and mode. Symbolic links are followed as in
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
        // If another process creates the file after the check, this call fails instead of writing
        // to it.
        Target::New(real) => OpenOptions::new().write(true).create_new(true).open(real),
    }
}

/// Creates an unnamed file for intermediate data. The kernel removes it when the program ends, even
/// after a crash.
///
/// # Errors
/// There is no writable folder for temporary files.
pub fn scratch() -> io::Result<File> {
    tempfile::tempfile()
}

/// Removes temporary files that killed writers left in a folder. No other process may be writing in
/// that folder. Returns the number of removed files.
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

/// Start of the temporary name of a file that is being written.
const PREFIX: &str = ".seekwell-";
const SUFFIX: &str = ".part";

/// Creates files with an unpredictable name. They are opened with O_EXCL, so an existing file or
/// link is never used.
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
    match Kind::from_metadata(&file.metadata()?) {
        Kind::File => Ok(file),
        kind => Err(io::Error::other(format!(
            "it has been replaced by {kind} while it was being opened"
        ))),
    }
}

fn direct(path: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.write(true).custom_flags(libc::O_NOCTTY);
    // If the descriptor of another process refers to a file, append to it, so that the data of that
    // process are not overwritten.
    how.append(std::fs::metadata(path)?.is_file());
    how.open(path)
}

fn existing(real: PathBuf) -> io::Result<To> {
    // A user who cannot write to a file must not be able to replace it. Therefore the old file is
    // opened for writing, although it is replaced.
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

/// Copies owner, permissions, access control list and attributes from the old file to the new file,
/// as far as possible. Returns an error if the owner cannot be set.
fn keep(old: &File, new: &File) -> io::Result<()> {
    let (was, is) = (old.metadata()?, new.metadata()?);
    if (was.uid(), was.gid()) != (is.uid(), is.gid()) {
        let (uid, gid) = (Uid::from_raw(was.uid()), Gid::from_raw(was.gid()));
        rustix::fs::fchown(new, Some(uid), Some(gid))?;
    }
    keep_attributes(old, new);
    // The bits set-user-ID and set-group-ID are not copied, because a write to the old file would
    // remove them too.
    rustix::fs::fchmod(new, Mode::from_raw_mode(was.mode() & 0o777))?;
    Ok(())
}

/// Linux's limit for the size of the list of attribute names, and for the size of one value, bytes.
const XATTR_MAX: usize = 64 << 10;
/// Attributes that are not copied, because they describe the content of the old file.
const OF_CONTENT: &[&[u8]] = &[b"security.capability", b"security.ima", b"security.evm"];
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";

fn keep_attributes(old: &File, new: &File) {
    let (mut names, mut value) = (vec![0; XATTR_MAX], vec![0; XATTR_MAX]);
    // This fails on a file system without attributes. Then there is nothing to copy.
    let length = rustix::fs::flistxattr(old, &mut names[..]).unwrap_or(0);
    let names: Vec<&[u8]> = names[..length].split(|b| *b == 0).collect();
    if !names.contains(&ACCESS_LIST) {
        // The new file has inherited the default access control list of the directory.
        let _ = rustix::fs::fremovexattr(new, ACCESS_LIST);
    }
    for name in names {
        if name.is_empty() || OF_CONTENT.contains(&name) {
            continue;
        }
        if let Ok(n) = rustix::fs::fgetxattr(old, name, &mut value[..]) {
            // Some attributes can be set only by an administrator, so an error is ignored.
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

/// Returns a new descriptor for the same open file. Both descriptors share the file position, so
/// output that other programs write before and after stays in order.
fn duplicate(fd: RawFd) -> io::Result<File> {
    own_is_writable(fd)?;
    // The new descriptor must not be one of the three standard descriptors.
    let least = io::stderr().as_raw_fd() + 1;
    #[expect(
        unsafe_code,
        reason = "a descriptor known only by its number has no safe wrapper"
    )]
    // SAFETY: fcntl gets only numbers. A closed descriptor gives EBADF. This code owns the new
    // descriptor.
    unsafe {
        match libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, least) {
            -1 => Err(io::Error::last_os_error()),
            new => Ok(File::from_raw_fd(new)),
        }
    }
}

#[cfg(test)]
mod tests;
