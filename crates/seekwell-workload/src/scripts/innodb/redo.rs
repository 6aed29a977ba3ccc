//! The redo log: a preallocated ring. One task at a time writes it, in blocks of 512 bytes.

use super::super::common::*;
use super::Server;
use crate::fail::{Context, Outcome};
use crate::machine::{Fd, Machine};

/// Size of a block of the log, in bytes.
const BLOCK: u64 = 512;
/// Size of the header, which contains both checkpoint blocks. The ring begins after the header.
pub(super) const HEADER: u64 = 4 * BLOCK;
/// Size of a write-ahead block, in bytes. The first write to such a block writes all of it, so that
/// nothing must be read first (innodb_log_write_ahead_size).
const WRITE_AHEAD: u64 = 8192;

/// State of the log. Positions are in bytes since the server was made.
pub(super) struct Redo {
    pub(super) fd: Fd,
    /// Size of the ring, in bytes.
    pub(super) capacity: u64,
    inserted: u64,
    written: u64,
    flushed: u64,
    /// End of the padding up to which the log is written.
    ahead: u64,
    checkpoint: u64,
}

impl Redo {
    pub(super) fn new(fd: Fd, bytes: u64) -> Self {
        Redo {
            fd,
            capacity: (bytes - HEADER) / WRITE_AHEAD * WRITE_AHEAD,
            inserted: 0,
            written: 0,
            flushed: 0,
            ahead: 0,
            checkpoint: 0,
        }
    }
    /// Inserts a record of `bytes`. Returns its start.
    pub(super) fn insert(&mut self, bytes: u64) -> u64 {
        self.inserted += bytes;
        self.inserted - bytes
    }
    /// Returns the end of the last record.
    pub(super) fn end(&self) -> u64 {
        self.inserted
    }
    /// Returns the number of bytes that a recovery would have to apply.
    pub(super) fn age(&self) -> u64 {
        self.inserted - self.checkpoint
    }
    pub(super) fn checkpoint(&self) -> u64 {
        self.checkpoint
    }
    /// Records that the tables contain all changes before `lsn`.
    pub(super) fn checkpoint_at(&mut self, lsn: u64) {
        self.checkpoint = lsn;
    }
    /// Returns the next write up to `to`: offset in the file, length, and log position after the
    /// write.
    fn next_write(&self, to: u64) -> Option<(u64, u64, u64)> {
        if self.written >= to {
            return None;
        }
        let start = self.written - self.written % BLOCK;
        let border = (start / self.capacity + 1) * self.capacity;
        let mut end = to.next_multiple_of(BLOCK).min(border);
        if end > self.ahead {
            end = end.next_multiple_of(WRITE_AHEAD).min(border);
        }
        let off = HEADER + start % self.capacity;
        Some((off, end - start, end))
    }
}

/// Writes the log up to `lsn` into the page cache. The log does not use direct I/O.
pub(super) async fn write<M: Machine>(m: &mut M, s: &Server, lsn: u64) -> Outcome {
    if s.redo.with(|r| r.written >= lsn) {
        return Ok(());
    }
    m.acquire(s.redo_lock).await.doing(|| "lock the log")?;
    let done = write_locked(m, s, lsn).await;
    m.release(s.redo_lock);
    done
}

/// Waits until the log is on disk up to `lsn`. A task that flushes the log includes all records
/// that were inserted before it got the lock. This is group commit.
pub(super) async fn flush<M: Machine>(m: &mut M, s: &Server, lsn: u64) -> Outcome {
    if s.redo.with(|r| r.flushed >= lsn) {
        return Ok(());
    }
    m.acquire(s.redo_lock).await.doing(|| "lock the log")?;
    let done = flush_locked(m, s, lsn).await;
    m.release(s.redo_lock);
    done
}

async fn write_locked<M: Machine>(m: &mut M, s: &Server, lsn: u64) -> Outcome {
    if s.redo.with(|r| r.written >= lsn) {
        return Ok(());
    }
    let (fd, to) = s.redo.with(|r| (r.fd, r.inserted));
    while let Some((off, len, end)) = s.redo.with(|r| r.next_write(to)) {
        let op = m.op_begin("log write");
        let n = m.write(fd, off, size_of_call(u32::MAX, len)).await;
        n.doing(|| format!("write {len} bytes of the log"))?;
        m.op_end(op, len);
        s.redo.with(|r| {
            r.written = end.min(to);
            r.ahead = r.ahead.max(end);
        });
    }
    Ok(())
}

async fn flush_locked<M: Machine>(m: &mut M, s: &Server, lsn: u64) -> Outcome {
    if s.redo.with(|r| r.flushed >= lsn) {
        return Ok(());
    }
    let to = s.redo.with(|r| r.inserted);
    write_locked(m, s, to).await?;
    let op = m.op_begin("log sync");
    let fd = s.redo.with(|r| r.fd);
    s.sync(m, fd).await.doing(|| "sync the log")?;
    m.op_end(op, 0);
    s.redo.with(|r| r.flushed = r.flushed.max(to));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_writes_are_512_byte_blocks_and_fresh_8_kib_pieces() {
        let mut r = Redo::new(Fd(0), HEADER + 16_384);
        r.insert(700);
        assert_eq!(r.next_write(r.end()), Some((HEADER, 8192, 8192)));
        (r.written, r.ahead) = (700, 8192);
        r.insert(700);
        // The last block is written again, and then the blocks after it.
        assert_eq!(r.next_write(r.end()), Some((HEADER + 512, 1024, 1536)));
        r.written = 16_000;
        r.ahead = 16_384;
        r.inserted = 17_000;
        // This write ends at the end of the ring. Another write continues at its start.
        assert_eq!(r.next_write(r.end()), Some((HEADER + 15_872, 512, 16_384)));
        r.written = 16_384;
        assert_eq!(r.next_write(r.end()), Some((HEADER, 8192, 24_576)));
    }
}
