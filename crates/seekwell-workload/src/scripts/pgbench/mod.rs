//! pgbench: TPC-B-like transactions on PostgreSQL 8.4 to 9.5, with write-ahead log, group commit,
//! full-page writes, shared buffers, background writer and checkpoints.
//!
//! A transaction updates a row of the table accounts by key (an index leaf and a table page), and
//! reads this row with a SELECT. It then updates one row of tellers and one row of branches, and
//! holds their row locks until the commit. It also inserts a row into history. Each change is
//! logged when it is made. The commit waits until the log is on disk up to the end of the
//! transaction's own log record. A flush of the log includes all records that were inserted before
//! the flush begins ([`wal`]).
//!
//! Pages are in shared buffers with clock replacement ([`buffers`]). The backend that needs a
//! buffer writes its dirty page. Checkpoints begin after a certain log volume or time. They write
//! every dirty buffer, spread over their interval, and then fsync each file ([`keepers`]). After
//! the start of a checkpoint, the first change of a page logs the whole page. Each statement costs
//! CPU time in its backend and in the client program. A thread of the client program serves its
//! clients one after another (8.4 has one thread).
//!
//! The CPU times of statements were measured with PostgreSQL 15 and pgbench on a machine of 2026,
//! with one to eight threads and without syncs. The seven statements of a transaction took 280 to
//! 310 us in the backend and 70 to 90 us in the client. A single SELECT took 41 to 46 us in the
//! backend and 12 us in the client. These are CPU times divided by the number of transactions. The
//! profiles of older machines multiply them by the relative speed of their processors
//! (single-thread ratings): 2.5 for the laptops of 2012, whose speed is 1 by definition, and 1.4
//! for the i5-2500K.
//!
//! The script leaves out the commit log, vacuum, connections, the log writer, index pages above the
//! leaves (which are always in memory), and waits for a page that another backend is reading. It
//! does not rename recycled log segments, but overwrites a ring of files.

mod buffers;
mod keepers;
mod wal;

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{Barrier, Fd, How, Lock, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload};
use buffers::Pool;
use seekwell_core::{Instant, NSEC_PER_SEC, Nanos};
use std::sync::Arc;
use wal::Wal;

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "pgbench",
    summary: "TPC-B-like transactions on PostgreSQL, with log and checkpoints",
    metric: "transactions/s without connecting (tps excluding connections establishing), higher is better",
    stresses: "log flushes and random reads of many clients while checkpoints write many pages",
    source: "pgbench and PostgreSQL 8.4 to 9.5; pts/pgbench-1.4.0 and a published series on a DC S3700",
    #[rustfmt::skip]
    params: &[
        param("scale", Kind::Count(1, 100_000), "4",
            "scale factor: 100000 accounts, about 15 MiB, per unit (-s)"),
        param("clients", Kind::Count(1, 1024), "2", "number of clients (-c)"),
        param("transactions", Kind::Count(0, 1_000_000_000), "30000",
            "number of transactions per client (-t); 0: run for `seconds`"),
        param("seconds", Kind::Time(0, 24 * 3600 * NSEC_PER_SEC), "0",
            "duration (-T); 0: run `transactions`"),
        param("mode", Kind::Choice(&["tpcb", "select"]), "tpcb",
            "read-write transactions, or only the SELECT (-S)"),
        param("shared_buffers", Kind::Bytes(128 << 10, 1 << 40), "24MiB",
            "size of the shared buffers of the server, which reduce the page cache"),
        param("wal_buffers", Kind::Bytes(16 << 10, 1 << 30), "64KiB",
            "size of the log buffers in memory"),
        param("segments", Kind::Count(1, 10_000), "8",
            "number of log segments of 16 MiB between checkpoints (checkpoint_segments)"),
        param("checkpoint_timeout", Kind::Time(NSEC_PER_SEC, 24 * 3600 * NSEC_PER_SEC), "5min",
            "maximum time between checkpoints"),
        param("completion_target", Kind::Ratio(0.0, 1.0), "0.5",
            "fraction of the interval over which a checkpoint spreads its writes"),
        param("full_page_writes", Kind::Flag, "yes",
            "log the whole page at its first change after a checkpoint"),
        param("record", Kind::Bytes(64, 1 << 20), "700",
            "log bytes per transaction, without whole pages"),
        param("jobs", Kind::Count(1, 1024), "1", "number of threads of the client program (-j)"),
        param("think", Kind::Time(0, NSEC_PER_SEC), "45us",
            "CPU time per statement in the server, in addition to its system calls"),
        param("client_think", Kind::Time(0, NSEC_PER_SEC), "12us",
            "CPU time per statement in the client program"),
    ],
    profiles: &[
        profile(
            "penryn",
            "PTS, NUM_CPU_JOBS 4: scale 4, 2 clients",
            &[("think", "110us"), ("client_think", "30us")],
        ),
        profile(
            "sandy-bridge",
            "PTS, NUM_CPU_JOBS 8",
            &[
                ("scale", "8"),
                ("clients", "4"),
                ("think", "110us"),
                ("client_think", "30us"),
            ],
        ),
        profile(
            "clarksfield",
            "PTS, NUM_CPU_JOBS 16",
            &[
                ("scale", "16"),
                ("clients", "8"),
                ("think", "110us"),
                ("client_think", "30us"),
            ],
        ),
        profile("s3700-small", "150 MB, 16 clients, 30 minutes", S3700_SMALL),
        profile("s3700-medium", "2 GB, 16 clients, 30 minutes", S3700_MEDIUM),
        profile("s3700-large", "16 GB, 16 clients, 30 minutes", S3700_LARGE),
    ],
    needs: Needs::Directory,
    space: |p| {
        p.int("scale") * (16 << 20) + (2 * p.int("segments") + 1) * wal::SEGMENT + (256 << 20)
    },
    check: |p| {
        if (p.int("transactions") == 0) == (p.int("seconds") == 0) {
            return Err("give either transactions or seconds; set the other to 0".into());
        }
        Ok(())
    },
};

const S3700_SMALL: &[(&str, &str)] = &[
    ("scale", "10"),
    ("clients", "16"),
    ("transactions", "0"),
    ("seconds", "30min"),
    ("shared_buffers", "1g"),
    ("wal_buffers", "16m"),
    ("segments", "64"),
    ("jobs", "16"),
    ("think", "75us"),
    ("client_think", "20us"),
];
const S3700_MEDIUM: &[(&str, &str)] = &[
    ("scale", "135"),
    ("clients", "16"),
    ("transactions", "0"),
    ("seconds", "30min"),
    ("shared_buffers", "1g"),
    ("wal_buffers", "16m"),
    ("segments", "64"),
    ("jobs", "16"),
    ("think", "75us"),
    ("client_think", "20us"),
];
const S3700_LARGE: &[(&str, &str)] = &[
    ("scale", "1090"),
    ("clients", "16"),
    ("transactions", "0"),
    ("seconds", "30min"),
    ("shared_buffers", "1g"),
    ("wal_buffers", "16m"),
    ("segments", "64"),
    ("jobs", "16"),
    ("think", "75us"),
    ("client_think", "20us"),
];

/// Number of log records per transaction: four changes and the commit.
const RECORDS: u64 = 5;
/// Number of statements of a transaction that hold no branch lock: BEGIN, UPDATE accounts, SELECT,
/// UPDATE tellers.
const FREE: u64 = 4;
/// Number of statements of a transaction that hold a branch lock: UPDATE branches, INSERT, END.
const HOLDING: u64 = 3;
/// Size of a page, in bytes.
const PAGE: u32 = 8192;
const ACCOUNTS: u64 = 100_000;
/// Number of rows of accounts per page.
const ROWS: u64 = 61;
/// Number of index entries per leaf page.
const ENTRIES: u64 = 366;
/// Number of rows of the other tables per page.
const SMALL_ROWS: u64 = 150;
/// A table is split into files of 1 GiB. This is the number of pages per file.
const FILE_PAGES: u64 = (1 << 30) / PAGE as u64;

/// A table or index of the server: pages in files of 1 GiB.
struct Relation {
    /// Number of its first page. Pages are numbered over all relations.
    first: u64,
    pages: u64,
    files: Vec<Fd>,
}

/// State that all tasks of the server share.
struct Server {
    accounts: Relation,
    index: Relation,
    tellers: Relation,
    branches: Relation,
    /// The table history. It is the last relation because it grows.
    history: Relation,
    control: Fd,
    pool: Shared<Pool>,
    wal: Shared<Wal>,
    /// The WALWriteLock: one task at a time writes the log.
    wal_lock: Lock,
    branch_locks: Vec<Lock>,
    teller_locks: Vec<Lock>,
    history_rows: Shared<u64>,
    stop: Shared<bool>,
    done: Shared<(u64, Instant)>,
    start: Barrier,
    scale: u64,
    select: bool,
    record: u64,
    /// CPU time of a statement in the backend.
    think: Nanos,
    /// CPU time of a statement in the client program.
    client_think: Nanos,
    /// One lock per thread of the client program, if clients share threads.
    threads: Vec<Lock>,
    per_client: u64,
    time: Nanos,
}

impl Server {
    /// Returns the file and the offset of a page.
    fn place(&self, page: u64) -> (Fd, u64) {
        let all = [&self.history, &self.branches, &self.tellers, &self.index];
        let found = all.into_iter().find(|r| page >= r.first);
        let r = found.unwrap_or(&self.accounts);
        let n = page - r.first;
        // The table history exceeds its file only after 17 million transactions. It then stays in
        // this file.
        let file = ((n / FILE_PAGES) as usize).min(r.files.len() - 1);
        (r.files[file], (n % FILE_PAGES) * u64::from(PAGE))
    }
    fn files(&self) -> impl Iterator<Item = Fd> {
        let all = [
            &self.accounts,
            &self.index,
            &self.tellers,
            &self.branches,
            &self.history,
        ];
        let mut files: Vec<Fd> = Vec::new();
        for r in all {
            files.extend(&r.files);
        }
        files.into_iter()
    }
}

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    m.mark(Mark::Phase("init"));
    let server = Arc::new(init(m, p, dir).await?);
    let clients = p.int("clients");
    let mut keepers = Group::new();
    if !server.select {
        let s = server.clone();
        let timing = keepers::Timing::new(p);
        keepers
            .spawn(m, How::named("checkpointer"), move |m| {
                keepers::checkpointer(m, s, timing)
            })
            .await?;
        let s = server.clone();
        keepers
            .spawn(m, How::named("bgwriter"), move |m| keepers::writer(m, s))
            .await?;
    }
    let mut group = Group::new();
    for c in 0..clients {
        let s = server.clone();
        group
            .spawn(m, How::named(format!("client{c}")), move |m| {
                client(m, s, c)
            })
            .await?;
    }
    let started = m.arrive(server.start).await;
    let started = started.doing(|| "wait for the start");
    m.mark(Mark::ClockStart);
    let start = m.now();
    let outcome = both(started, group.join(m).await);
    server.stop.with(|s| *s = true);
    let (n, end) = server.done.with(|d| *d);
    let secs = end.since(start).as_secs_f64();
    if n > 0 {
        m.counts("transaction");
        m.metric("transactions", "transactions/s", rate(n as f64, secs), true);
        let ms = secs * 1000.0 * clients as f64 / n as f64;
        m.metric("mean latency", "ms", ms, false);
    }
    let kept = keepers.join(m).await;
    both(outcome, kept)
}

/// Makes the files in their state after `pgbench -i`: written, synced, and in the page cache as far
/// as they fit.
async fn init<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome<Server> {
    let scale = p.int("scale");
    let held = p.int("shared_buffers");
    hold(m, held, "shared_buffers").await?;
    let mut next = 0;
    let accounts = relation(
        m,
        dir,
        "accounts",
        (scale * ACCOUNTS).div_ceil(ROWS),
        &mut next,
    )
    .await?;
    let index = relation(
        m,
        dir,
        "accounts_pkey",
        (scale * ACCOUNTS).div_ceil(ENTRIES),
        &mut next,
    )
    .await?;
    let tellers = relation(
        m,
        dir,
        "tellers",
        (10 * scale).div_ceil(SMALL_ROWS),
        &mut next,
    )
    .await?;
    let branches = relation(m, dir, "branches", scale.div_ceil(SMALL_ROWS), &mut next).await?;
    let history = relation(m, dir, "history", 1, &mut next).await?;
    let control_path = format!("{dir}/pg_control");
    let control = open(m, &control_path, FRESH).await?;
    m.write(control, 0, PAGE)
        .await
        .doing(|| format!("write {control_path}"))?;
    let wal = Wal::create(m, dir, p).await?;
    m.syncfs().await.doing(|| "sync")?;
    let mut branch_locks = Vec::new();
    let mut teller_locks = Vec::new();
    for _ in 0..scale {
        branch_locks.push(m.lock());
    }
    for _ in 0..10 * scale {
        teller_locks.push(m.lock());
    }
    let (clients, jobs) = (p.int("clients"), p.int("jobs"));
    let mut threads = Vec::new();
    if jobs < clients {
        threads.extend((0..jobs).map(|_| m.lock()));
    }
    let buffers = held / u64::from(PAGE);
    Ok(Server {
        accounts,
        index,
        tellers,
        branches,
        history,
        control,
        pool: Shared::new(Pool::new(buffers as usize, p.flag("full_page_writes"))),
        wal: Shared::new(wal),
        wal_lock: m.lock(),
        branch_locks,
        teller_locks,
        history_rows: Shared::new(0),
        stop: Shared::new(false),
        done: Shared::new((0, Instant::START)),
        start: m.barrier(p.small("clients") + 1),
        scale,
        select: p.word("mode") == "select",
        record: p.int("record"),
        think: p.time("think"),
        client_think: p.time("client_think"),
        threads,
        per_client: p.int("transactions"),
        time: p.time("seconds"),
    })
}

async fn relation<M: Machine>(
    m: &mut M,
    dir: &str,
    name: &str,
    pages: u64,
    next: &mut u64,
) -> Outcome<Relation> {
    let mut files = Vec::new();
    for n in 0..pages.div_ceil(FILE_PAGES) {
        let path = format!("{dir}/{name}.{n}");
        let here = (pages - n * FILE_PAGES).min(FILE_PAGES);
        lay_out(m, &path, here * u64::from(PAGE)).await?;
        files.push(open(m, &path, Default::default()).await?);
    }
    let first = *next;
    *next += pages;
    Ok(Relation {
        first,
        pages,
        files,
    })
}

async fn client<M: Machine>(mut m: M, s: Arc<Server>, number: u64) -> Outcome {
    let m = &mut m;
    m.arrive(s.start).await.doing(|| "wait for the start")?;
    let end = m.now() + s.time;
    let mut n = 0;
    let mut outcome = Ok(());
    let mine = number.checked_rem(s.threads.len() as u64);
    let thread = mine.map(|t| s.threads[t as usize]);
    while if s.per_client > 0 {
        n < s.per_client
    } else {
        m.now() < end
    } {
        let op = m.op_begin("transaction");
        outcome = transaction(m, &s, thread).await;
        if outcome.is_err() {
            break;
        }
        m.op_end(op, 0);
        n += 1;
    }
    let now = m.now();
    s.done.with(|d| *d = (d.0 + n, d.1.max(now)));
    outcome
}

/// Uses the CPU time of `n` statements. First comes the time of the client program, in a thread
/// that this client can share with others, and then the time of the backend.
async fn ask<M: Machine>(m: &mut M, s: &Server, thread: Option<Lock>, n: u64) -> Outcome {
    if let Some(t) = thread {
        m.acquire(t).await.doing(|| "wait for the client program")?;
    }
    let asked = m.compute(Nanos(n * s.client_think.0)).await;
    if let Some(t) = thread {
        m.release(t);
    }
    asked.doing(|| "compute")?;
    m.compute(Nanos(n * s.think.0)).await.doing(|| "compute")
}

/// Reads or changes a page. This macro and the next are not functions, because the call of an async
/// function copies its state, and nearly all pages are already available.
macro_rules! page {
    ($m:expr, $s:expr, $page:expr, $change:expr) => {{
        let got = buffers::want($s, $page, $change);
        if !got.is_there() {
            buffers::bring($m, $s, &got).await?;
        }
        got
    }};
}

/// Changes a page and logs the change. Returns the number of bytes logged.
macro_rules! change {
    ($m:expr, $s:expr, $page:expr) => {{
        let got = page!($m, $s, $page, true);
        let bytes = buffers::record($s, &got);
        let (lsn, full) = wal::insert($s, bytes);
        if full {
            wal::make_room($m, $s).await?;
        }
        buffers::changed($s, &got, lsn);
        bytes
    }};
}

async fn transaction<M: Machine>(m: &mut M, s: &Server, thread: Option<Lock>) -> Outcome {
    let aid = uniform(m, 0, ACCOUNTS * s.scale - 1);
    let entry = s.index.first + aid / ENTRIES;
    let account = s.accounts.first + aid / ROWS;
    s.pool.with(|p| p.soon([entry, account]));
    ask(m, s, thread, if s.select { 1 } else { FREE }).await?;
    page!(m, s, entry, false);
    if s.select {
        page!(m, s, account, false);
        return Ok(());
    }
    let tid = uniform(m, 0, 10 * s.scale - 1);
    let bid = uniform(m, 0, s.scale - 1);
    let mut bytes = change!(m, s, account);
    // The SELECT reads the same row.
    page!(m, s, entry, false);
    page!(m, s, account, false);
    let (teller, branch) = (s.teller_locks[tid as usize], s.branch_locks[bid as usize]);
    m.acquire(teller).await.doing(|| "lock a teller")?;
    bytes += change!(m, s, s.tellers.first + tid / SMALL_ROWS);
    m.acquire(branch).await.doing(|| "lock a branch")?;
    bytes += change!(m, s, s.branches.first + bid / SMALL_ROWS);
    ask(m, s, thread, HOLDING).await?;
    let row = s.history_rows.with(|n| {
        *n += 1;
        *n - 1
    });
    bytes += change!(m, s, s.history.first + row / SMALL_ROWS);
    let op = m.op_begin("commit");
    let commit = s.record - s.record / RECORDS * (RECORDS - 1);
    let (lsn, full) = wal::insert(s, commit);
    if full {
        wal::make_room(m, s).await?;
    }
    wal::flush(m, s, lsn).await?;
    m.op_end(op, bytes + commit);
    m.release(branch);
    m.release(teller);
    Ok(())
}

#[cfg(test)]
mod tests;
