//! Reads input files. The type of a file is checked before it is opened, and its size is limited.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use thiserror::Error;

/// Type of the object at a path, after symbolic links were followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A disk, a partition or a loop device.
    BlockDevice,
    /// A terminal, `/dev/null`, `/dev/zero`.
    CharDevice,
    /// A named or unnamed pipe.
    Fifo,
    /// A socket.
    Socket,
}

impl Kind {
    /// Returns the type of the object that stat(2) described.
    pub fn from_metadata(m: &Metadata) -> Kind {
        let t = m.file_type();
        match () {
            () if t.is_dir() => Kind::Directory,
            () if t.is_block_device() => Kind::BlockDevice,
            () if t.is_char_device() => Kind::CharDevice,
            () if t.is_fifo() => Kind::Fifo,
            () if t.is_socket() => Kind::Socket,
            () => Kind::File,
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::File => "a file",
            Kind::Directory => "a directory",
            Kind::BlockDevice => "a block device",
            Kind::CharDevice => "a character device",
            Kind::Fifo => "a pipe",
            Kind::Socket => "a socket",
        })
    }
}

/// Reasons for not reading a file. The message does not contain the path: the caller adds it.
#[derive(Debug, Error)]
pub enum ReadError {
    /// An I/O error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The path is not a regular file.
    #[error("is {0}, not a file")]
    Kind(Kind),
    /// The file is larger than any valid file of its type. The value is the limit, in bytes.
    #[error("is larger than {} KiB: it is probably another kind of file", .0 / 1024)]
    Long(u64),
    /// The file is not valid UTF-8. The value is the number of the first invalid line, from 1.
    #[error("line {0} is not text")]
    NotText(usize),
}

/// Returns the text of a regular file of at most `max` bytes. It does not open devices, pipes or
/// other special files.
pub fn read_text(path: &Path, max: u64) -> Result<String, ReadError> {
    let kind = Kind::from_metadata(&std::fs::metadata(path)?);
    if kind != Kind::File {
        return Err(ReadError::Kind(kind));
    }
    // If a pipe has replaced the file since the check, opening it must not block.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let kind = Kind::from_metadata(&file.metadata()?);
    if kind != Kind::File {
        return Err(ReadError::Kind(kind));
    }
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(ReadError::Long(max));
    }
    String::from_utf8(bytes).map_err(|e| {
        let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        ReadError::NotText(1 + good.iter().filter(|b| **b == b'\n').count())
    })
}

/// Opens data that is read from start to end. Accepts a regular file, a pipe, or the terminal if
/// that is the standard input. Rejects disks and other devices, because they are endless or do not
/// contain text.
pub fn open_stream(path: &Path) -> Result<File, ReadError> {
    let meta = std::fs::metadata(path)?;
    match Kind::from_metadata(&meta) {
        Kind::File | Kind::Fifo => {}
        Kind::CharDevice if is_our_terminal(&meta) => {}
        kind => return Err(ReadError::Kind(kind)),
    }
    Ok(File::open(path)?)
}

fn is_our_terminal(meta: &Metadata) -> bool {
    let stdin = io::stdin();
    let ours = rustix::fs::fstat(stdin.as_fd()).map(|s| s.st_rdev);
    stdin.is_terminal() && ours == Ok(meta.rdev())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_text_files_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("good"), "one\ntwo\n").expect("written");
        assert_eq!(read_text(&at("good"), 8).expect("read"), "one\ntwo\n");
        let words = |path: &Path, max| read_text(path, max).expect_err("refused").to_string();
        assert_eq!(
            words(&at("good"), 7),
            "is larger than 0 KiB: it is probably another kind of file"
        );
        std::fs::write(at("bytes"), b"one\n\xff\n").expect("written");
        assert_eq!(words(&at("bytes"), 99), "line 2 is not text");
        assert_eq!(words(dir.path(), 99), "is a directory, not a file");
        assert_eq!(
            words(Path::new("/dev/zero"), 99),
            "is a character device, not a file"
        );
        assert!(words(&at("none"), 99).starts_with("No such file"));
        let made = rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), 0o600.into());
        made.expect("a pipe");
        // The pipe has no writer, so opening it would block forever.
        assert_eq!(words(&at("pipe"), 99), "is a pipe, not a file");
    }

    #[test]
    fn streams_reject_devices_and_directories() {
        for (path, words) in [
            ("/dev/zero", "is a character device, not a file"),
            ("/dev/urandom", "is a character device, not a file"),
            ("/", "is a directory, not a file"),
        ] {
            let e = open_stream(Path::new(path)).expect_err("refused");
            assert_eq!(e.to_string(), words);
        }
        assert!(open_stream(Path::new("/proc/self/status")).is_ok());
    }
}
