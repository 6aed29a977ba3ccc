//! The page cleaner. It writes dirty pages through the doublewrite buffer, and records checkpoints.

use super::{PAGE, Server, redo};
use crate::fail::{Context, Fail, Outcome};
use crate::machine::{Aio, AioDone, AioOp, AioRequest, Machine};
use crate::note::Running;
use crate::params::Params;
use seekwell_core::Nanos;
use std::sync::Arc;

/// Interval between two rounds of the cleaner.
const ROUND: Nanos = Nanos::from_ms(1000);
/// Interval at which the cleaner checks whether a transaction waits for it.
const LOOK: Nanos = Nanos::from_ms(10);
/// Number of pages per batch. The doublewrite buffer has 2 MiB; 8 of its pages are for pages that
/// are written alone (innodb_doublewrite_batch_size).
const BATCH: usize = 120;
const ALONE: u64 = 8;
/// Size of the doublewrite buffer, in bytes.
pub(super) const DOUBLEWRITE: u64 = (BATCH as u64 + ALONE) * PAGE as u64;
/// Maximum size of a write to the doublewrite buffer, in bytes.
const CHUNK: u64 = 1 << 20;

/// The parameters that determine the cleaner's rate.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    io_capacity: f64,
    io_capacity_max: f64,
    max_dirty_pct: f64,
    dirty_pct_lwm: f64,
    age_lwm_pct: f64,
    lru_scan_depth: usize,
}

impl Pace {
    pub(super) fn new(p: &Params) -> Self {
        Pace {
            io_capacity: p.int("innodb_io_capacity") as f64,
            io_capacity_max: p.int("innodb_io_capacity_max") as f64,
            max_dirty_pct: p.ratio("innodb_max_dirty_pages_pct"),
            dirty_pct_lwm: p.ratio("innodb_max_dirty_pages_pct_lwm"),
            age_lwm_pct: p.ratio("innodb_adaptive_flushing_lwm"),
            lru_scan_depth: p.int("innodb_lru_scan_depth") as usize,
        }
    }
    /// Returns the number of pages to write in a second. It is the larger of two demands: one
    /// depends on the fraction of dirty pages, the other on the age of the checkpoint.
    pub(super) fn pages(&self, dirty_pct: f64, age: f64, async_age: f64) -> usize {
        let by_dirty = if self.dirty_pct_lwm == 0.0 {
            if dirty_pct >= self.max_dirty_pct {
                100.0
            } else {
                0.0
            }
        } else if dirty_pct >= self.dirty_pct_lwm {
            dirty_pct * 100.0 / (self.max_dirty_pct + 1.0)
        } else {
            0.0
        };
        let factor = 100.0 * age / async_age;
        let by_age = if factor >= self.age_lwm_pct {
            (self.io_capacity_max / self.io_capacity) * factor * libm::sqrt(factor) / 7.5
        } else {
            0.0
        };
        let pages = self.io_capacity * by_dirty.max(by_age) / 100.0;
        pages.min(self.io_capacity_max) as usize
    }
}

/// Returns two limits of the checkpoint age, in bytes. Above the first, the cleaner writes without
/// pauses. Above the second, transactions wait.
pub(super) fn limits(capacity: u64) -> (u64, u64) {
    let margin = capacity / 10 * 9;
    (margin - margin / 8, margin - margin / 16)
}

/// Runs the cleaner until the server stops.
pub(super) async fn run<M: Machine>(mut m: M, s: Arc<Server>, pace: Pace) -> Outcome {
    let m = &mut m;
    let aio = m.aio(BATCH as u32).await.doing(|| "make a queue")?;
    let (async_age, _) = limits(s.redo.with(|r| r.capacity));
    while !s.stopped(m) {
        let next = m.now() + ROUND;
        let pages = s.pool.with(|p| {
            let age = s.redo.with(|r| r.age()) as f64;
            let n = pace.pages(p.dirty_pct(), age, async_age as f64);
            let mut pages = p.oldest(n);
            if !p.holds_all() {
                pages.extend(p.next_to_go(pace.lru_scan_depth));
            }
            pages
        });
        for batch in pages.chunks(BATCH) {
            if !s.stopped(m) {
                write_batch(m, &s, aio, batch).await?;
            }
        }
        while s.redo.with(|r| r.age()) > async_age && !s.stopped(m) {
            let batch = s.pool.with(|p| p.oldest(BATCH));
            write_batch(m, &s, aio, &batch).await?;
            checkpoint(m, &s).await?;
        }
        checkpoint(m, &s).await?;
        while m.now() < next && !s.stopped(m) && s.redo.with(|r| r.age()) <= async_age {
            let left = next.since(m.now()).min(LOOK);
            m.sleep(left).await.doing(|| "sleep")?;
        }
    }
    m.aio_close(aio).await.doing(|| "end the queue")
}

/// Records a checkpoint, if the oldest change that is not in the tables has advanced.
async fn checkpoint<M: Machine>(m: &mut M, s: &Server) -> Outcome {
    let (fd, lsn, from) = s.pool.with(|p| {
        s.redo
            .with(|r| (r.fd, p.oldest_change().unwrap_or(r.end()), r.checkpoint()))
    });
    if lsn <= from {
        return Ok(());
    }
    let op = m.op_begin("checkpoint");
    redo::flush(m, s, lsn).await?;
    let n = m.write(fd, 512, 512).await;
    n.doing(|| "write the checkpoint")?;
    s.sync(m, fd).await.doing(|| "sync the checkpoint")?;
    s.redo.with(|r| r.checkpoint_at(lsn));
    m.op_end(op, 512);
    Ok(())
}

/// Writes a dirty page whose buffer is needed, unless another task is writing this page.
pub(super) async fn write_alone<M: Machine>(m: &mut M, s: &Server, page: u32) -> Outcome {
    if !s.pool.with(|p| p.begin_write(page)) {
        return Ok(());
    }
    before(m, s, 1, s.slot()).await?;
    let op = m.op_begin("page write");
    let off = u64::from(page) * u64::from(PAGE);
    let n = m.write(s.data, off, PAGE).await;
    n.doing(|| format!("write page {page}"))?;
    m.op_end(op, u64::from(PAGE));
    after(m, s, &[page]).await
}

async fn write_batch<M: Machine>(m: &mut M, s: &Server, aio: Aio, pages: &[u32]) -> Outcome {
    let begins = |p: &u32| s.pool.with(|pool| pool.begin_write(*p));
    let pages: Vec<u32> = pages.iter().copied().filter(begins).collect();
    if pages.is_empty() {
        return Ok(());
    }
    before(m, s, pages.len() as u64, 0).await?;
    let mut running: Vec<Running> = Vec::with_capacity(pages.len());
    let mut batch = Vec::with_capacity(pages.len());
    for (tag, page) in pages.iter().enumerate() {
        running.push(m.op_begin("page write"));
        batch.push(AioRequest {
            fd: s.data,
            op: AioOp::Write,
            off: u64::from(*page) * u64::from(PAGE),
            len: PAGE,
            tag: tag as u64,
        });
    }
    m.aio_submit(aio, &batch).await.doing(|| "submit pages")?;
    let (mut done, mut left): (Vec<AioDone>, _) = (Vec::new(), pages.len());
    while left > 0 {
        done.clear();
        m.aio_reap(aio, 1, &mut done)
            .await
            .doing(|| "wait for pages")?;
        for d in &done {
            let tag = d.tag as usize;
            let n = d.result.map_err(|errno| Fail {
                what: format!("write page {}", pages[tag]),
                errno,
            })?;
            m.op_end(running[tag], u64::from(n));
        }
        left -= done.len();
    }
    after(m, s, &pages).await
}

/// Does the work that must precede the write of pages in place: flushes the log up to their
/// changes, and writes copies of the pages to the doublewrite buffer.
async fn before<M: Machine>(m: &mut M, s: &Server, pages: u64, slot: u64) -> Outcome {
    redo::flush(m, s, s.redo.with(|r| r.end())).await?;
    let Some(fd) = s.doublewrite else {
        return Ok(());
    };
    let op = m.op_begin("doublewrite");
    let (from, bytes) = (slot * u64::from(PAGE), pages * u64::from(PAGE));
    let mut off = 0;
    while off < bytes {
        let n = m.write(fd, from + off, (bytes - off).min(CHUNK) as u32);
        off += u64::from(n.await.doing(|| "write the doublewrite buffer")?);
    }
    let done = s.sync(m, fd).await;
    done.doing(|| "sync the doublewrite buffer")?;
    m.op_end(op, bytes);
    Ok(())
}

/// Does the work that must follow the write of pages in place: syncs the tables, so that the copies
/// can be overwritten.
async fn after<M: Machine>(m: &mut M, s: &Server, pages: &[u32]) -> Outcome {
    if s.syncs_data {
        s.sync(m, s.data).await.doing(|| "sync the tables")?;
    }
    s.pool
        .with(|p| pages.iter().for_each(|page| p.end_write(*page)));
    Ok(())
}

/// Returns the slot of the doublewrite buffer for the n-th page that is written alone.
pub(super) fn slot(n: u64) -> u64 {
    BATCH as u64 + n % ALONE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flush_rate_follows_dirty_page_share_and_checkpoint_age() {
        let pace = Pace {
            io_capacity: 200.0,
            io_capacity_max: 2000.0,
            max_dirty_pct: 90.0,
            dirty_pct_lwm: 10.0,
            age_lwm_pct: 10.0,
            lru_scan_depth: 1024,
        };
        assert_eq!(pace.pages(9.0, 0.0, 100.0), 0);
        // A dirty fraction of 45.5 % is half of 91 % (the maximum plus 1), so it gives half of
        // io_capacity.
        assert_eq!(pace.pages(45.5, 0.0, 100.0), 100);
        assert_eq!(pace.pages(0.0, 9.0, 100.0), 0);
        // The age factor is 25 %. The rate is 10 * 25 * sqrt(25) / 7.5 percent of io_capacity
        // (200).
        assert_eq!(pace.pages(0.0, 25.0, 100.0), 333);
        assert_eq!(pace.pages(0.0, 100.0, 100.0), 2000);
        let old = Pace {
            dirty_pct_lwm: 0.0,
            ..pace
        };
        assert_eq!(
            (old.pages(89.0, 0.0, 1.0), old.pages(90.0, 0.0, 1.0)),
            (0, 200)
        );
        assert_eq!(limits(1600), (1260, 1350));
    }
}
