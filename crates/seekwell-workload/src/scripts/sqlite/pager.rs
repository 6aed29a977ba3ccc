//! The calls of a transaction for each journal mode, with synchronous FULL and normal locking.

use super::super::common::*;
use super::tree::Change;
use crate::fail::{Context, Outcome};
use crate::machine::{Fd, Machine};
use crate::note::Mark;
use seekwell_core::{Nanos, OpenFlags};
use std::collections::BTreeMap;

/// The journal mode.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Delete,
    Truncate,
    Persist,
    Wal,
}

const PAGE: u32 = 4096;
const FRAME_HEADER: u32 = 24;
const WAL_HEADER: u32 = 32;
/// Size of the page number before each page in the journal, in bytes. The checksum after each page
/// has the same size.
const WORD: u32 = 4;
/// Size of the journal's header, in bytes: one sector.
const JOURNAL_HEADER: u32 = 512;

pub(super) struct Pager {
    dir: String,
    db_path: String,
    journal_path: String,
    wal_path: String,
    mode: Mode,
    db: Fd,
    wal: Option<Wal>,
    /// True if the journal of an earlier transaction exists.
    journal_left: bool,
    /// Number of frames at which the log is copied back to the database.
    limit: u64,
}

struct Wal {
    fd: Fd,
    frames: u64,
    /// The latest frame of each page.
    latest: BTreeMap<u64, u64>,
    size: u64,
}

impl Wal {
    fn offset(frame: u64) -> u64 {
        u64::from(WAL_HEADER) + frame * u64::from(FRAME_HEADER + PAGE)
    }
}

impl Pager {
    /// Makes the database file with this number of pages.
    pub(super) async fn create<M: Machine>(
        m: &mut M,
        dir: &str,
        mode: Mode,
        pages: u64,
        limit: u64,
    ) -> Outcome<Pager> {
        let db_path = format!("{dir}/db");
        let db = open(m, &db_path, FRESH).await?;
        // One call writes all pages, so that it differs from the writes of transactions.
        let all = u32::try_from(pages * u64::from(PAGE)).unwrap_or(u32::MAX);
        m.write(db, 0, all)
            .await
            .doing(|| format!("write {db_path}"))?;
        m.fdatasync(db)
            .await
            .doing(|| format!("fdatasync {db_path}"))?;
        let mut pager = Pager {
            dir: dir.to_owned(),
            journal_path: format!("{db_path}-journal"),
            wal_path: format!("{db_path}-wal"),
            db_path,
            mode,
            db,
            wal: None,
            journal_left: false,
            limit,
        };
        if mode == Mode::Wal {
            pager.wal = Some(Wal {
                fd: open(m, &pager.wal_path, FRESH).await?,
                frames: 0,
                latest: BTreeMap::new(),
                size: pages,
            });
        }
        Ok(pager)
    }

    /// Commits a change. The CPU time is divided as on a phone: most of it before the journal is
    /// written and after the commit, and a little at each step between them.
    pub(super) async fn transaction<M: Machine>(
        &mut self,
        m: &mut M,
        change: &Change,
        think: Nanos,
    ) -> Outcome {
        let part = |n: u64| Nanos(think.0 * n / 10);
        if self.wal.is_some() {
            m.compute(part(5)).await.doing(|| "compute")?;
            self.log(m, change).await?;
            return m.compute(part(5)).await.doing(|| "compute");
        }
        self.look(m).await?;
        m.compute(part(4)).await.doing(|| "compute")?;
        let journal = self.write_journal(m, change).await?;
        self.sync(m, journal, "sync journal").await?;
        self.sync_directory(m).await?;
        m.compute(part(1)).await.doing(|| "compute")?;
        // The number of records makes the journal valid.
        self.put(m, journal, 0, 12).await?;
        self.sync(m, journal, "sync journal").await?;
        m.compute(part(1)).await.doing(|| "compute")?;
        for page in &change.pages {
            let off = (page - 1) * u64::from(PAGE);
            self.put_db(m, off).await?;
        }
        if let Some(size) = change.cut {
            let len = size * u64::from(PAGE);
            let done = m.truncate(self.db, len).await;
            done.doing(|| format!("cut {} to {len}", self.db_path))?;
        }
        self.sync(m, self.db, "sync database").await?;
        self.end_journal(m, journal).await?;
        m.compute(part(4)).await.doing(|| "compute")
    }

    /// Makes the checks at the start of every transaction: whether a crash left a journal, and
    /// whether another process has changed the database.
    async fn look<M: Machine>(&mut self, m: &mut M) -> Outcome {
        // Usually the journal does not exist.
        let there = m.stat(&self.journal_path).await.is_ok();
        if there && self.journal_left {
            let fd = open(m, &self.journal_path, OpenFlags::RDONLY).await?;
            m.read(fd, 0, 1).await.doing(|| "read the old journal")?;
            close(m, fd, &self.journal_path).await?;
        }
        let n = m.read(self.db, 24, 16).await;
        n.doing(|| format!("read {}", self.db_path)).map(|_| ())
    }

    async fn write_journal<M: Machine>(&mut self, m: &mut M, change: &Change) -> Outcome<Fd> {
        let journal = open(m, &self.journal_path, OpenFlags::CREATE).await?;
        self.put(m, journal, 0, JOURNAL_HEADER).await?;
        let mut off = u64::from(JOURNAL_HEADER);
        for _ in 0..change.journaled {
            for len in [WORD, PAGE, WORD] {
                self.put(m, journal, off, len).await?;
                off += u64::from(len);
            }
        }
        // Check whether the header of an older journal follows.
        let next = off.next_multiple_of(u64::from(JOURNAL_HEADER));
        let n = m.read(journal, next, 8).await;
        n.doing(|| format!("read {}", self.journal_path))?;
        Ok(journal)
    }

    async fn sync_directory<M: Machine>(&mut self, m: &mut M) -> Outcome {
        let op = m.op_begin("sync directory");
        let fd = open(m, &self.dir, OpenFlags::DIRECTORY | OpenFlags::RDONLY).await?;
        let done = m.fdatasync(fd).await;
        done.doing(|| format!("fdatasync {}", self.dir))?;
        close(m, fd, &self.dir).await?;
        m.op_end(op, 0);
        Ok(())
    }

    async fn end_journal<M: Machine>(&mut self, m: &mut M, journal: Fd) -> Outcome {
        match self.mode {
            Mode::Truncate => {
                let cut = m.truncate(journal, 0).await;
                cut.doing(|| format!("cut {}", self.journal_path))?;
                self.sync(m, journal, "sync journal").await?;
            }
            Mode::Persist => {
                self.put(m, journal, 0, 28).await?;
                self.sync(m, journal, "sync journal").await?;
                self.journal_left = true;
            }
            Mode::Delete | Mode::Wal => {}
        }
        close(m, journal, &self.journal_path).await?;
        if self.mode == Mode::Delete {
            let gone = m.unlink(&self.journal_path).await;
            gone.doing(|| format!("remove {}", self.journal_path))?;
        }
        Ok(())
    }

    /// Appends the changed pages to the write-ahead log. Copies the log back to the database when
    /// the log is long.
    async fn log<M: Machine>(&mut self, m: &mut M, change: &Change) -> Outcome {
        let Some(mut wal) = self.wal.take() else {
            return Ok(());
        };
        if wal.frames == 0 {
            self.put(m, wal.fd, 0, WAL_HEADER).await?;
            self.sync(m, wal.fd, "sync log").await?;
        }
        for page in &change.pages {
            if *page == 1 && change.counter_only {
                continue;
            }
            let off = Wal::offset(wal.frames);
            self.put(m, wal.fd, off, FRAME_HEADER).await?;
            self.put(m, wal.fd, off + u64::from(FRAME_HEADER), PAGE)
                .await?;
            wal.latest.insert(*page, wal.frames);
            wal.frames += 1;
        }
        wal.size = change.size;
        self.sync(m, wal.fd, "sync log").await?;
        if wal.frames >= self.limit {
            self.copy_back(m, &mut wal).await?;
        }
        self.wal = Some(wal);
        Ok(())
    }

    async fn copy_back<M: Machine>(&mut self, m: &mut M, wal: &mut Wal) -> Outcome {
        m.mark(Mark::CheckpointStart);
        self.sync(m, wal.fd, "sync log").await?;
        for (page, frame) in std::mem::take(&mut wal.latest) {
            if page > wal.size {
                continue;
            }
            let off = Wal::offset(frame) + u64::from(FRAME_HEADER);
            let n = m.read(wal.fd, off, PAGE).await;
            n.doing(|| format!("read {}", self.wal_path))?;
            self.put_db(m, (page - 1) * u64::from(PAGE)).await?;
        }
        let len = wal.size * u64::from(PAGE);
        let cut = m.truncate(self.db, len).await;
        cut.doing(|| format!("cut {}", self.db_path))?;
        self.sync(m, self.db, "sync database").await?;
        wal.frames = 0;
        m.mark(Mark::CheckpointEnd);
        Ok(())
    }

    async fn put<M: Machine>(&self, m: &mut M, fd: Fd, off: u64, len: u32) -> Outcome {
        let path = if self.mode == Mode::Wal {
            &self.wal_path
        } else {
            &self.journal_path
        };
        let n = m.write(fd, off, len).await;
        n.doing(|| format!("write {len} bytes at {off} of {path}"))
            .map(|_| ())
    }
    async fn put_db<M: Machine>(&self, m: &mut M, off: u64) -> Outcome {
        let n = m.write(self.db, off, PAGE).await;
        n.doing(|| format!("write {PAGE} bytes at {off} of {}", self.db_path))
            .map(|_| ())
    }
    async fn sync<M: Machine>(&self, m: &mut M, fd: Fd, kind: &'static str) -> Outcome {
        let op = m.op_begin(kind);
        m.fdatasync(fd).await.doing(|| kind)?;
        m.op_end(op, 0);
        Ok(())
    }

    /// Copies the log back to the database, removes the log and closes the database.
    pub(super) async fn close<M: Machine>(mut self, m: &mut M) -> Outcome {
        if let Some(mut wal) = self.wal.take() {
            self.copy_back(m, &mut wal).await?;
            close(m, wal.fd, &self.wal_path).await?;
            let gone = m.unlink(&self.wal_path).await;
            gone.doing(|| format!("remove {}", self.wal_path))?;
        }
        close(m, self.db, &self.db_path).await
    }
}
