//! The checkpointer and the background writer of PostgreSQL.

use super::{PAGE, Server, buffers, wal};
use crate::fail::{Context, Outcome};
use crate::machine::Machine;
use crate::note::Mark;
use crate::params::Params;
use seekwell_core::{Instant, Nanos};
use std::sync::Arc;

/// Interval of both tasks (bgwriter_delay).
const DELAY: Nanos = Nanos::from_ms(200);
/// Maximum number of pages that the background writer cleans per round (bgwriter_lru_maxpages).
const CLEAN: usize = 100;
/// Size of a checkpoint record, in bytes.
const RECORD: u64 = 100;

/// When checkpoints begin, and over which part of their interval they spread their writes.
#[derive(Clone, Copy)]
pub(super) struct Timing {
    volume: u64,
    timeout: Nanos,
    target: f64,
}

impl Timing {
    pub(super) fn new(p: &Params) -> Self {
        Timing {
            volume: p.int("segments") * wal::SEGMENT,
            timeout: p.time("checkpoint_timeout"),
            target: p.ratio("completion_target"),
        }
    }
    /// Returns the fraction of the checkpoint interval that has passed. It is the larger of the
    /// fractions by time and by log volume.
    fn passed(&self, now: Instant, log: u64, since: (Instant, u64)) -> f64 {
        let time = now.since(since.0).0 as f64 / self.timeout.0 as f64;
        let volume = (log - since.1) as f64 / self.volume as f64;
        time.max(volume)
    }
}

/// Begins checkpoints when they are due, until the server stops.
pub(super) async fn checkpointer<M: Machine>(mut m: M, s: Arc<Server>, t: Timing) -> Outcome {
    let m = &mut m;
    let mut since = (m.now(), 0);
    while !s.stop.with(|s| *s) {
        m.sleep(DELAY).await.doing(|| "sleep")?;
        let log = s.wal.with(|w| w.inserted());
        if t.passed(m.now(), log, since) >= 1.0 {
            since = (m.now(), log);
            checkpoint(m, &s, t, since).await?;
        }
    }
    Ok(())
}

async fn checkpoint<M: Machine>(
    m: &mut M,
    s: &Server,
    t: Timing,
    since: (Instant, u64),
) -> Outcome {
    m.mark(Mark::CheckpointStart);
    let op = m.op_begin("checkpoint");
    let dirty = s.pool.with(|p| p.checkpoint());
    let all = dirty.len() as f64;
    for (i, page) in dirty.into_iter().enumerate() {
        if let Some(e) = s.pool.with(|p| p.clean(page)) {
            buffers::write(m, s, e).await?;
        }
        if s.stop.with(|s| *s) {
            return Ok(());
        }
        // If the checkpoint is ahead of schedule, sleep after each page.
        let log = s.wal.with(|w| w.inserted());
        if (i + 1) as f64 / all * t.target >= t.passed(m.now(), log, since) {
            m.sleep(DELAY).await.doing(|| "sleep")?;
        }
    }
    for fd in s.files() {
        let op = m.op_begin("checkpoint fsync");
        m.fsync(fd).await.doing(|| "fsync a table")?;
        m.op_end(op, 0);
    }
    // The record of the checkpoint must be on disk before pg_control refers to it.
    let (lsn, full) = wal::insert(s, RECORD);
    if full {
        wal::make_room(m, s).await?;
    }
    wal::flush(m, s, lsn).await?;
    let done = m.write(s.control, 0, PAGE).await;
    done.doing(|| "write pg_control")?;
    m.fsync(s.control).await.doing(|| "fsync pg_control")?;
    m.op_end(op, 0);
    m.mark(Mark::CheckpointEnd);
    Ok(())
}

/// Writes dirty pages in advance, so that backends need not write them.
pub(super) async fn writer<M: Machine>(mut m: M, s: Arc<Server>) -> Outcome {
    while !s.stop.with(|s| *s) {
        m.sleep(DELAY).await.doing(|| "sleep")?;
        for page in s.pool.with(|p| p.ahead(CLEAN)) {
            if let Some(e) = s.pool.with(|p| p.clean(page)) {
                buffers::write(&mut m, &s, e).await?;
            }
        }
    }
    Ok(())
}
