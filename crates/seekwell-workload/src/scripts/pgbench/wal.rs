//! The write-ahead log: a ring of preallocated files of 16 MiB each. One task at a time writes the
//! log.

use super::super::common::*;
use super::{PAGE, Server};
use crate::fail::{Context, Outcome};
use crate::machine::{Fd, Machine};
use crate::params::Params;

/// Size of a file of the log, in bytes.
pub(super) const SEGMENT: u64 = 16 << 20;

/// State of the log.
pub(super) struct Wal {
    /// Number of bytes inserted.
    inserted: u64,
    /// Number of bytes written to the kernel. `flushed` is the number of bytes on disk.
    written: u64,
    flushed: u64,
    /// Maximum number of inserted bytes that are not yet written.
    buffers: u64,
    files: Vec<Fd>,
}

impl Wal {
    /// Makes the ring of a server that has run for some time, so all files were written before.
    pub(super) async fn create<M: Machine>(m: &mut M, dir: &str, p: &Params) -> Outcome<Wal> {
        let mut files = Vec::new();
        if p.word("mode") != "select" {
            for n in 0..2 * p.int("segments") + 1 {
                let path = format!("{dir}/wal.{n}");
                lay_out(m, &path, SEGMENT).await?;
                files.push(open(m, &path, Default::default()).await?);
            }
        }
        Ok(Wal {
            inserted: 0,
            written: 0,
            flushed: 0,
            buffers: p.int("wal_buffers"),
            files,
        })
    }
    /// Returns the number of bytes inserted since the start.
    pub(super) fn inserted(&self) -> u64 {
        self.inserted
    }
    fn file(&self, pos: u64) -> Fd {
        self.files[(pos / SEGMENT) as usize % self.files.len()]
    }
}

/// Inserts a record. Returns the end of the record, and true if the log buffers are full. In this
/// case the caller must call [`make_room`].
pub(super) fn insert(s: &Server, bytes: u64) -> (u64, bool) {
    s.wal.with(|w| {
        w.inserted += bytes;
        (w.inserted, w.inserted - w.written > w.buffers)
    })
}

/// Writes the older half of full log buffers.
pub(super) async fn make_room<M: Machine>(m: &mut M, s: &Server) -> Outcome {
    m.acquire(s.wal_lock).await.doing(|| "lock the log")?;
    let to = s.wal.with(|w| {
        let keep = w.inserted.saturating_sub(w.buffers / 2);
        keep - keep % u64::from(PAGE)
    });
    let done = write(m, s, to).await;
    m.release(s.wal_lock);
    done
}

/// Returns true if the log is on disk up to `lsn`.
fn is_flushed(s: &Server, lsn: u64) -> bool {
    s.wal.with(|w| w.flushed >= lsn)
}

/// Waits until the log is on disk up to `lsn`. A task that flushes the log includes all records
/// that were inserted before it got the lock. This is group commit.
pub(super) async fn flush<M: Machine>(m: &mut M, s: &Server, lsn: u64) -> Outcome {
    if is_flushed(s, lsn) {
        return Ok(());
    }
    m.acquire(s.wal_lock).await.doing(|| "lock the log")?;
    let done = flush_locked(m, s, lsn).await;
    m.release(s.wal_lock);
    done
}

async fn flush_locked<M: Machine>(m: &mut M, s: &Server, lsn: u64) -> Outcome {
    if is_flushed(s, lsn) {
        return Ok(());
    }
    let to = s.wal.with(|w| w.inserted);
    write(m, s, to).await?;
    if is_flushed(s, to) {
        // `to` was the end of a log file, which `write` has synced.
        return Ok(());
    }
    let fd = s.wal.with(|w| w.file(to.saturating_sub(1)));
    fdatasync(m, fd, "the log").await?;
    s.wal.with(|w| w.flushed = to);
    Ok(())
}

/// Writes the log up to `to` in whole pages, beginning with the page of the last written byte.
/// Syncs a file when the log reaches the next file.
async fn write<M: Machine>(m: &mut M, s: &Server, to: u64) -> Outcome {
    let page = u64::from(PAGE);
    loop {
        let (from, fd) = s.wal.with(|w| (w.written, w.file(w.written)));
        if from >= to {
            return Ok(());
        }
        let start = from - from % page;
        let border = (start / SEGMENT + 1) * SEGMENT;
        let end = to.next_multiple_of(page).min(border);
        let len = size_of_call(u32::MAX, end - start);
        let op = m.op_begin("log write");
        let n = m.write(fd, start % SEGMENT, len).await;
        n.doing(|| format!("write {len} bytes of log"))?;
        m.op_end(op, u64::from(len));
        s.wal.with(|w| w.written = to.min(end));
        if end == border {
            fdatasync(m, fd, "the log").await?;
            s.wal.with(|w| w.flushed = w.flushed.max(w.written));
        }
    }
}
