//! The redo log: a preallocated ring, written in blocks of 512 bytes by one task at a time.

use super::super::common::*;
use super::Server;
use crate::fail::{Context, Outcome};
use crate::machine::{Fd, Machine};

/// Bytes per block of the log.
const BLOCK: u64 = 512;
/// The header, with both checkpoint blocks; the ring begins after it.
pub(super) const HEADER: u64 = 4 * BLOCK;
/// The first write to a piece of this size writes it completely, so that nothing must be read first
/// (innodb_log_write_ahead_size).
const WRITE_AHEAD: u64 = 8192;

/// Progress of the log, in bytes since the server was made.
pub(super) struct Redo {
    pub(super) fd: Fd,
    /// Bytes of the ring.
    pub(super) capacity: u64,
    inserted: u64,
    written: u64,
    flushed: u64,
    /// End of the padding.
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
    /// Inserts a record. Returns its start.
    pub(super) fn insert(&mut self, bytes: u64) -> u64 {
        self.inserted += bytes;
        self.inserted - bytes
    }
    /// End of the last record.
    pub(super) fn end(&self) -> u64 {
        self.inserted
    }
    /// Number of bytes that a recovery would have to apply.
    pub(super) fn age(&self) -> u64 {
        self.inserted - self.checkpoint
    }
    pub(super) fn checkpoint(&self) -> u64 {
        self.checkpoint
    }
    /// Records that the tables have all changes before `lsn`.
    pub(super) fn checkpoint_at(&mut self, lsn: u64) {
        self.checkpoint = lsn;
    }
    /// The next write: offset in the file, length, and the log position after it.
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

/// Writes the log up to `lsn` into the page cache, because the log has no direct I/O.
pub(super) async fn write<M: Machine>(m: &mut M, s: &Server, lsn: u64) -> Outcome {
    if s.redo.with(|r| r.written >= lsn) {
        return Ok(());
    }
    m.acquire(s.redo_lock).await.doing(|| "lock the log")?;
    let done = write_locked(m, s, lsn).await;
    m.release(s.redo_lock);
    done
}

/// Waits until the log is on disk up to `lsn`. A task that flushes includes all records inserted
/// before it gets the lock, which is group commit.
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
    fn blocks_of_512_bytes_and_a_fresh_piece_of_8_kib_whole() {
        let mut r = Redo::new(Fd(0), HEADER + 16_384);
        r.insert(700);
        assert_eq!(r.next_write(r.end()), Some((HEADER, 8192, 8192)));
        (r.written, r.ahead) = (700, 8192);
        r.insert(700);
        // The last block again, and the blocks after it.
        assert_eq!(r.next_write(r.end()), Some((HEADER + 512, 1024, 1536)));
        r.written = 16_000;
        r.ahead = 16_384;
        r.inserted = 17_000;
        // Up to the end of the ring; another write does the rest at its start.
        assert_eq!(r.next_write(r.end()), Some((HEADER + 15_872, 512, 16_384)));
        r.written = 16_384;
        assert_eq!(r.next_write(r.end()), Some((HEADER, 8192, 24_576)));
    }
}
