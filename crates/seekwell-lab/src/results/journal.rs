//! The journal of a running experiment: one line per finished run.
//!
//! Each line contains the CRC-32 of a text in eight hexadecimal digits, a space, and the text
//! itself. The text is JSON without line breaks. A killed process leaves at most one incomplete
//! line. When the journal is opened again, incomplete and damaged lines are ignored. If a run
//! occurs several times, its last line counts.
//!
//! Each line is written to the kernel immediately, so that no line is lost if the process is
//! killed. The lines are flushed to disk at most once per second. A power failure can lose the
//! lines since the last flush.

use super::entry::{Entry, Slim};
use super::{Interned, Run, RunKey};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The first line: file type and version.
const HEAD: &[u8] = b"seekwell journal 1\n";
/// Largest length of a line. The series of a run of one day has 100 MB.
const LINE_MAX: u64 = 1 << 30;
/// Length of the CRC and the space, in bytes.
const PREFIX: usize = 9;
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// Why a journal cannot be opened.
pub(super) enum Refused {
    /// Another process has the journal open.
    Busy,
    /// The file is not a journal, for this reason.
    Bad(String),
    /// The file cannot be read or locked.
    Io(io::Error),
}

impl From<io::Error> for Refused {
    fn from(e: io::Error) -> Self {
        Refused::Io(e)
    }
}

/// Position of the line of a run in the file.
#[derive(Clone, Copy)]
struct Line {
    at: u64,
    bytes: usize,
}

/// What a journal contains.
#[derive(Default)]
pub(super) struct Found {
    /// Number of bytes after the last complete line.
    pub tail_bytes: u64,
    /// Numbers of the damaged lines, counted from 1.
    pub damaged: Vec<usize>,
    lines: BTreeMap<RunKey, Line>,
    end: u64,
}

impl Found {
    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        self.lines.len()
    }
}

/// A journal that is open for writing. A lock keeps out other processes.
pub(super) struct Journal {
    file: File,
    lines: BTreeMap<RunKey, Line>,
    end: u64,
    synced: Instant,
}

impl Journal {
    /// Creates a journal.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = options().write(true).create_new(true).open(path)?;
        lock(&file).map_err(|e| match e {
            Refused::Io(e) => e,
            _ => io::ErrorKind::WouldBlock.into(),
        })?;
        file.write_all_at(HEAD, 0)?;
        file.sync_all()?;
        Ok(Journal {
            file,
            lines: BTreeMap::new(),
            end: HEAD.len() as u64,
            synced: Instant::now(),
        })
    }

    /// Opens an existing journal to continue it. An incomplete line at its end is removed.
    pub fn open(path: &Path) -> Result<(Self, Found), Refused> {
        let file = options().write(true).open(path)?;
        lock(&file)?;
        // The previous owner may have completed the folder and removed the journal just before.
        let same = std::fs::symlink_metadata(path).map(|m| m.ino());
        if same.ok() != Some(file.metadata()?.ino()) {
            return Err(Refused::Busy);
        }
        let mut found = scan(&file, &mut |_| {})?;
        file.set_len(found.end)?;
        if found.end == 0 {
            file.write_all_at(HEAD, 0)?;
            found.end = HEAD.len() as u64;
        }
        let journal = Journal {
            file,
            lines: std::mem::take(&mut found.lines),
            end: found.end,
            synced: Instant::now(),
        };
        Ok((journal, found))
    }

    /// Appends a run. If this fails, the journal is unchanged.
    pub fn append(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = vec![b' '; PREFIX];
        serde_json::to_writer(&mut line, entry)?;
        let sum = format!("{:08x}", crc32fast::hash(&line[PREFIX..]));
        line[..PREFIX - 1].copy_from_slice(sum.as_bytes());
        line.push(b'\n');
        if line.len() as u64 >= LINE_MAX {
            return Err(io::Error::other("a run is too long for a journal line"));
        }
        if let Err(e) = self.file.write_all_at(&line, self.end) {
            // Removes the partial line, which would otherwise be reported as incomplete when the
            // journal is opened again.
            let _ = self.file.set_len(self.end);
            return Err(e);
        }
        let place = Line {
            at: self.end,
            bytes: line.len(),
        };
        self.lines.insert(entry.run.key, place);
        self.end += line.len() as u64;
        if self.synced.elapsed() >= SYNC_EVERY {
            self.file.sync_data()?;
            self.synced = Instant::now();
        }
        Ok(())
    }

    /// Returns the keys of the stored runs, in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &RunKey> {
        self.lines.keys()
    }
    /// Returns whether the journal contains a run.
    pub fn has(&self, key: RunKey) -> bool {
        self.lines.contains_key(&key)
    }

    /// Reads a part of the entry of a run, and skips the other fields.
    pub fn part<T: DeserializeOwned>(&self, key: RunKey) -> io::Result<T> {
        match self.lines.get(&key) {
            Some(line) => self.line(line),
            None => Err(io::Error::other("a stored run is missing")),
        }
    }

    /// Reads all runs in order. They are read from disk each time, so that they take no memory.
    pub fn runs(&self) -> io::Result<Vec<Run>> {
        let mut metrics = Interned::default();
        let mut all = Vec::with_capacity(self.lines.len());
        for line in self.lines.values() {
            all.push(self.line::<Slim>(line)?.run(&mut metrics));
        }
        Ok(all)
    }

    fn line<T: DeserializeOwned>(&self, line: &Line) -> io::Result<T> {
        let mut text = vec![0; line.bytes];
        self.file.read_exact_at(&mut text, line.at)?;
        match checked(&text) {
            Some(json) => Ok(serde_json::from_slice(json)?),
            None => Err(io::Error::other("a line has changed since it was read")),
        }
    }
}

/// Opens a file without following links, because a journal must be a file in the folder itself.
fn options() -> OpenOptions {
    let mut how = OpenOptions::new();
    how.read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    how
}

fn lock(file: &File) -> Result<(), Refused> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Refused::Busy),
        Err(TryLockError::Error(e)) => Err(Refused::Io(e)),
    }
}

/// Reads a journal without locking it for writing. Calls `each` with each run; if a run was stored
/// several times, the last call counts. The second result is true if a process is writing to the
/// journal.
pub(super) fn look(path: &Path, each: &mut dyn FnMut(Run)) -> Result<(Found, bool), Refused> {
    let file = options().open(path)?;
    let busy = match file.try_lock_shared() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(e)) => return Err(Refused::Io(e)),
    };
    Ok((scan(&file, each)?, busy))
}

/// Returns the text of a line if its checksum is right.
fn checked(line: &[u8]) -> Option<&[u8]> {
    let json = line.strip_suffix(b"\n")?.get(PREFIX..)?;
    let sum = std::str::from_utf8(line.get(..PREFIX - 1)?).ok()?;
    let blank = line.get(PREFIX - 1) == Some(&b' ');
    let same = u32::from_str_radix(sum, 16) == Ok(crc32fast::hash(json));
    (blank && same).then_some(json)
}

fn scan(file: &File, each: &mut dyn FnMut(Run)) -> Result<Found, Refused> {
    if !file.metadata()?.is_file() {
        return Err(Refused::Bad("is not a file".to_owned()));
    }
    let (mut found, mut metrics) = (Found::default(), Interned::default());
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        let read = (&mut reader).take(LINE_MAX).read_until(b'\n', &mut line)? as u64;
        if read == 0 {
            return Ok(found);
        }
        if line.last() != Some(&b'\n') {
            if number == 0 && !HEAD.starts_with(&line) {
                return Err(Refused::Bad("is not a seekwell journal".to_owned()));
            }
            if read == LINE_MAX {
                return Err(Refused::Bad(format!("line {} has no end", number + 1)));
            }
            found.tail_bytes = read;
            return Ok(found);
        }
        let at = found.end;
        found.end += read;
        number += 1;
        if number == 1 {
            match line.as_slice() {
                HEAD => continue,
                _ if line.starts_with(b"seekwell journal ") => {
                    return Err(Refused::Bad(
                        "was started by another version of seekwell; continue with that version"
                            .to_owned(),
                    ));
                }
                _ => return Err(Refused::Bad("is not a seekwell journal".to_owned())),
            }
        }
        let slim = checked(&line).and_then(|json| serde_json::from_slice::<Slim>(json).ok());
        let Some(slim) = slim else {
            found.damaged.push(number);
            continue;
        };
        let run = slim.run(&mut metrics);
        let place = Line {
            at,
            bytes: line.len(),
        };
        found.lines.insert(run.key, place);
        each(run);
    }
}
