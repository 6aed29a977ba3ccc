//! A database with direct I/O, like InnoDB. It reads pages without the page cache, and has a page
//! cleaner with a doublewrite buffer, and a redo log with group commit.
//!
//! The model covers:
//! - transactions that access pages of 16 KiB at uniformly distributed positions, and change some
//!   of them
//! - the buffer pool ([`pool`])
//! - the redo log, which is buffered and written in blocks of 512 bytes; a flush includes all
//!   records that were inserted before the flush begins ([`redo`])
//! - the page cleaner, whose rate depends on the fraction of dirty pages, on the age of the
//!   checkpoint and on the end of the LRU list; it first writes copies of the pages sequentially
//!   and syncs them, and then writes the pages in place ([`cleaner`])
//! - writes by a thread that finds no clean buffer for its page
//! - waits of transactions for the cleaner when the log is nearly full (log_free_check)
//!
//! The model leaves out rows, locks, undo and purge, index pages above the leaves (which are always
//! in memory), read-ahead, the change buffer, the binary log, several pools and cleaners, averages
//! over past rounds in the cleaner's rate, and waits for a page that another task is reading.

mod cleaner;
mod pool;
mod redo;
#[cfg(test)]
mod tests;

use super::common::*;
use super::interactive;
use crate::fail::{Context, Outcome};
use crate::machine::{Fd, How, Lock, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload};
use pool::{Place, Pool};
use redo::Redo;
use seekwell_core::{Errno, Instant, NSEC_PER_SEC, Nanos, OpenFlags};
use std::sync::Arc;

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "innodb",
    summary: "a database with direct I/O: page reads, doublewrite buffer, redo log",
    metric: "transactions/s, higher is better; also commit latency and hit ratio of the buffer pool",
    stresses: "random reads of many threads while a page cleaner writes, and small synced log writes",
    source: "InnoDB of MySQL 8.0.26 to 8.4, defaults of 8.0 but for fdatasync; transactions like \
             those of sysbench oltp_read_write, uniform",
    #[rustfmt::skip]
    params: &[
        param("size", Kind::Bytes(1 << 20, 1 << 40), "1GiB", "size of the tables"),
        param("threads", Kind::Count(1, 1024), "16", "number of connections, each with a thread"),
        param("seconds", Kind::Time(NSEC_PER_SEC / 100, 24 * 3600 * NSEC_PER_SEC), "30s",
            "duration"),
        param("reads", Kind::Count(0, 10_000), "14", "number of pages that a transaction reads"),
        param("updates", Kind::Count(0, 10_000), "4",
            "number of pages that a transaction changes; 0: transactions commit nothing"),
        param("record", Kind::Bytes(16, 64 << 10), "250", "log bytes that a change writes"),
        param("think", Kind::Time(0, NSEC_PER_SEC), "500us",
            "CPU time per transaction in addition to its system calls"),
        param("innodb_buffer_pool_size", Kind::Bytes(1 << 20, 1 << 40), "128MiB",
            "size of the buffer pool, which reduces the page cache; it is full at the start"),
        param("innodb_flush_log_at_trx_commit", Kind::Choice(&["0", "1", "2"]), "1",
            "log at a commit: 1 writes and syncs it, 2 writes it, 0 does neither; with 2 and 0, \
             the log is synced each second"),
        param("innodb_doublewrite", Kind::Flag, "yes",
            "write pages twice, first sequentially to the doublewrite buffer"),
        param("innodb_flush_method", Kind::Choice(&["O_DIRECT", "O_DIRECT_NO_FSYNC"]), "O_DIRECT",
            "whether the tables are synced after pages are written in place"),
        param("innodb_use_fdatasync", Kind::Flag, "yes",
            "use fdatasync instead of fsync; the default since 8.4"),
        param("innodb_redo_log_capacity", Kind::Bytes(8 << 20, 128 << 30), "100MiB",
            "size of the redo log"),
        param("innodb_io_capacity", Kind::Count(100, 1_000_000), "200",
            "pages per second that the cleaner writes when innodb_max_dirty_pages_pct of them are dirty"),
        param("innodb_io_capacity_max", Kind::Count(100, 1_000_000), "2000",
            "maximum rate of the cleaner, in pages per second, until the log is nearly full"),
        param("innodb_max_dirty_pages_pct", Kind::Ratio(0.0, 99.99), "90",
            "percentage of dirty pages at which the cleaner writes innodb_io_capacity"),
        param("innodb_max_dirty_pages_pct_lwm", Kind::Ratio(0.0, 99.99), "10",
            "percentage of dirty pages at which flushing begins; 0: at innodb_max_dirty_pages_pct"),
        param("innodb_adaptive_flushing_lwm", Kind::Ratio(0.0, 70.0), "10",
            "percentage of the maximum checkpoint age at which flushing for the log begins"),
        param("innodb_lru_scan_depth", Kind::Count(100, 1_000_000), "1024",
            "number of buffers at the end of the LRU list that the cleaner examines"),
    ],
    #[rustfmt::skip]
    profiles: &[
        profile(
            "cached",
            "all pages in memory: only log and cleaner do I/O",
            &[("innodb_buffer_pool_size", "1g")],
        ),
        profile("read-only", "transactions change nothing: only random reads", &[("updates", "0")]),
    ],
    needs: Needs::Directory,
    space: |p| p.int("size") + p.int("innodb_redo_log_capacity") + cleaner::DOUBLEWRITE,
    check: |p| {
        if p.int("innodb_io_capacity") > p.int("innodb_io_capacity_max") {
            return Err("innodb_io_capacity must not exceed innodb_io_capacity_max".into());
        }
        if p.int("reads") + p.int("updates") == 0 {
            return Err("reads or updates must be above 0".into());
        }
        Ok(())
    },
};

/// Size of a page, in bytes (innodb_page_size).
const PAGE: u32 = 16 << 10;
/// Interval at which a transaction that waits for the cleaner or for a buffer tries again.
const AGAIN: Nanos = Nanos::from_ms(1);
/// Interval of log syncs if commits do not sync (innodb_flush_log_at_timeout).
const TIMEOUT: Nanos = Nanos::from_ms(1000);

/// What a commit does with the log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commit {
    Nothing,
    Sync,
    Write,
}

/// State that all tasks of the server share.
struct Server {
    data: Fd,
    doublewrite: Option<Fd>,
    /// True if pages that are written in place are synced.
    syncs_data: bool,
    fdatasync: bool,
    pool: Shared<Pool>,
    redo: Shared<Redo>,
    redo_lock: Lock,
    commit: Commit,
    pages: u64,
    reads: u64,
    updates: u64,
    record: u64,
    think: Nanos,
    /// Checkpoint age above which transactions wait, in bytes.
    sync_age: u64,
    end: Instant,
    /// Number of pages that were written alone.
    alone: Shared<u64>,
    /// Number of transactions, and the time at which the last one ended.
    done: Shared<(u64, Instant)>,
    commits: Shared<Vec<u64>>,
}

impl Server {
    fn stopped<M: Machine>(&self, m: &M) -> bool {
        m.now() >= self.end
    }
    async fn sync<M: Machine>(&self, m: &mut M, fd: Fd) -> Result<(), Errno> {
        match self.fdatasync {
            true => m.fdatasync(fd).await,
            false => m.fsync(fd).await,
        }
    }
    fn slot(&self) -> u64 {
        self.alone.with(|n| {
            *n += 1;
            cleaner::slot(*n)
        })
    }
}

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    m.mark(Mark::Phase("lay out"));
    let held = p.int("innodb_buffer_pool_size");
    hold(m, held, "innodb_buffer_pool_size").await?;
    let (data, log, copies) = (
        format!("{dir}/table.ibd"),
        format!("{dir}/ib_redo0"),
        format!("{dir}/ib_16384_0.dblwr"),
    );
    let pages = p.int("size") / u64::from(PAGE);
    let log_bytes = p.int("innodb_redo_log_capacity");
    lay_out(m, &data, pages * u64::from(PAGE)).await?;
    lay_out(m, &log, log_bytes).await?;
    lay_out(m, &copies, cleaner::DOUBLEWRITE).await?;
    m.syncfs().await.doing(|| "sync")?;
    m.drop_caches().await.doing(|| "drop caches")?;
    let doublewrite = if p.flag("innodb_doublewrite") {
        Some(open(m, &copies, OpenFlags::DIRECT).await?)
    } else {
        None
    };
    let redo = Redo::new(open(m, &log, OpenFlags::default()).await?, log_bytes);
    let (_, sync_age) = cleaner::limits(redo.capacity);
    let data = open(m, &data, OpenFlags::DIRECT).await?;
    m.mark(Mark::ClockStart);
    let start = m.now();
    let s = Arc::new(Server {
        data,
        doublewrite,
        syncs_data: p.word("innodb_flush_method") == "O_DIRECT",
        fdatasync: p.flag("innodb_use_fdatasync"),
        pool: Shared::new(Pool::new(held / u64::from(PAGE), pages)),
        redo: Shared::new(redo),
        redo_lock: m.lock(),
        commit: match p.word("innodb_flush_log_at_trx_commit") {
            "0" => Commit::Nothing,
            "2" => Commit::Write,
            _ => Commit::Sync,
        },
        pages,
        reads: p.int("reads"),
        updates: p.int("updates"),
        record: p.int("record"),
        think: p.time("think"),
        sync_age,
        end: start + p.time("seconds"),
        alone: Shared::new(0),
        done: Shared::new((0, start)),
        commits: Shared::new(Vec::new()),
    });
    let mut group = Group::new();
    if s.updates > 0 {
        let (own, pace) = (s.clone(), cleaner::Pace::new(p));
        let how = How::named("page_cleaner");
        group
            .spawn(m, how, move |m| cleaner::run(m, own, pace))
            .await?;
        if s.commit != Commit::Sync {
            let own = s.clone();
            let how = How::named("log_flusher");
            group.spawn(m, how, move |m| log_flusher(m, own)).await?;
        }
    }
    for t in 0..p.int("threads") {
        let own = s.clone();
        let how = How::named(format!("thread{t}"));
        group.spawn(m, how, move |m| thread(m, own)).await?;
    }
    let outcome = group.join(m).await;
    report(m, &s, start);
    outcome
}

fn report<M: Machine>(m: &mut M, s: &Server, start: Instant) {
    let (n, last) = s.done.with(|d| *d);
    if n == 0 {
        return;
    }
    let per_second = rate(n as f64, last.since(start).as_secs_f64());
    m.counts("transaction");
    m.metric("transactions", "transactions/s", per_second, true);
    if let Some((mean, high)) = interactive::summary(s.commits.with(std::mem::take)) {
        m.metric("commit", "ms", mean, false);
        m.metric("commit 99th percentile", "ms", high, false);
    }
    let hits = s.pool.with(|p| p.hit_pct());
    m.metric("buffer pool hit ratio", "%", hits, true);
}

async fn log_flusher<M: Machine>(mut m: M, s: Arc<Server>) -> Outcome {
    let m = &mut m;
    loop {
        let left = s.end.since(m.now()).min(TIMEOUT);
        m.sleep(left).await.doing(|| "sleep")?;
        if s.stopped(m) {
            return Ok(());
        }
        redo::flush(m, &s, s.redo.with(|r| r.end())).await?;
    }
}

async fn thread<M: Machine>(mut m: M, s: Arc<Server>) -> Outcome {
    let m = &mut m;
    while !s.stopped(m) {
        let op = m.op_begin("transaction");
        transaction(m, &s).await?;
        m.op_end(op, 0);
        let now = m.now();
        s.done.with(|d| *d = (d.0 + 1, d.1.max(now)));
    }
    Ok(())
}

async fn transaction<M: Machine>(m: &mut M, s: &Server) -> Outcome {
    m.compute(s.think).await.doing(|| "compute")?;
    for _ in 0..s.reads {
        let page = uniform(m, 0, s.pages - 1) as u32;
        get(m, s, page).await?;
    }
    let mut end = None;
    for _ in 0..s.updates {
        let page = uniform(m, 0, s.pages - 1) as u32;
        end = Some(change(m, s, page).await?);
    }
    let Some(end) = end else {
        return Ok(());
    };
    let op = m.op_begin("commit");
    match s.commit {
        Commit::Nothing => {}
        Commit::Write => redo::write(m, s, end).await?,
        Commit::Sync => redo::flush(m, s, end).await?,
    }
    let took = m.now().since(op.since).0;
    s.commits.with(|c| c.push(took));
    m.op_end(op, 0);
    Ok(())
}

/// Reads a page into the buffer pool if it is not there.
async fn get<M: Machine>(m: &mut M, s: &Server, page: u32) -> Outcome {
    let mut place = s.pool.with(|p| p.get(page));
    loop {
        match place {
            Place::Here => return Ok(()),
            Place::Read => {
                let op = m.op_begin("page read");
                let off = u64::from(page) * u64::from(PAGE);
                let n = m.read(s.data, off, PAGE).await;
                let n = n.doing(|| format!("read page {page}"))?;
                m.op_end(op, u64::from(n));
                return Ok(());
            }
            Place::Write(other) => cleaner::write_alone(m, s, other).await?,
            Place::Wait => m.sleep(AGAIN).await.doing(|| "wait for a buffer")?,
        }
        place = s.pool.with(|p| p.place(page));
    }
}

/// Changes a page. Returns the end of its record in the log.
async fn change<M: Machine>(m: &mut M, s: &Server, page: u32) -> Outcome<u64> {
    if s.redo.with(|r| r.age()) > s.sync_age {
        let op = m.op_begin("log wait");
        while s.redo.with(|r| r.age()) > s.sync_age && !s.stopped(m) {
            m.sleep(AGAIN).await.doing(|| "wait for the log")?;
        }
        m.op_end(op, 0);
    }
    get(m, s, page).await?;
    loop {
        // The record and the change are made under one lock. A checkpoint between them would miss
        // the change.
        let end = s.pool.with(|p| {
            s.redo.with(|r| {
                let begins = r.end();
                p.change(page, begins).then(|| {
                    r.insert(s.record);
                    r.end()
                })
            })
        });
        match end {
            Some(end) => return Ok(end),
            // Another task has taken the buffer of the page during the read.
            None => get(m, s, page).await?,
        }
    }
}
