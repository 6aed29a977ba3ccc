//! SQLite transactions of one row, like those of AndroBench: insert, update, delete.
//!
//! A small model of one table ([`tree`]) determines the pages that a transaction changes. [`pager`]
//! makes the resulting calls for each journal mode. Both reproduce the observed calls of the SQLite
//! library (3.40), and tests compare the numbers of calls. The model leaves out calls that only
//! check state (stat of the database file, file locks). It also leaves out the index of the
//! write-ahead log, which is in shared memory.
//!
//! AndroBench is closed-source. The number of transactions (300), the row size and the CPU time are
//! estimates, and are parameters.

mod pager;
mod tree;

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload, any};
use pager::{Mode, Pager};
use seekwell_core::{NSEC_PER_SEC, OpenFlags};
use tree::Table;

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "sqlite",
    summary: "SQLite insert, update and delete, one row per transaction",
    metric: "transactions/s of each kind, higher is better",
    stresses: "consecutive syncs by one task: journal file, directory, database, each with a jbd2 commit",
    source: "AndroBench 3.4 (Kim and Kim, 2012); calls as observed with SQLite 3.40.1",
    #[rustfmt::skip]
    params: &[
        param("transactions", Kind::Count(1, 10_000_000), "300",
            "number of transactions of each kind"),
        param("journal", Kind::Choice(&["delete", "truncate", "persist", "wal"]), "delete",
            "journal mode"),
        param("kinds", Kind::Choice(&["all", "insert", "update", "delete"]), "all",
            "kinds of transactions; the rows that they need are made before the measurement"),
        param("row", Kind::Bytes(8, 1000), "100", "length of the text in a row"),
        param("autoincrement", Kind::Flag, "yes", "an insert also updates sqlite_sequence"),
        param("think", Kind::Time(0, NSEC_PER_SEC), "1ms",
            "CPU time per transaction in addition to its system calls"),
        param("pause", Kind::Time(0, 3600 * NSEC_PER_SEC), "0",
            "sleep before each kind of transaction; see pause_before"),
        param("pause_before", Kind::Choice(&["each", "prepared"]), "each",
            "before which kinds to sleep: each, or only those on existing rows (update, delete)"),
        param("file_writes", Kind::Count(0, 10_000_000), "0",
            "synchronous direct 4 KiB writes at random places of a file, made by the same task \
             directly before, like AndroBench's file test"),
        param("services", Kind::Time(0, 3600 * NSEC_PER_SEC), "0",
            "mean time between groups of three fsyncs by other services; 0: no services"),
        param("checkpoint", Kind::Count(1, 10_000_000), "1000",
            "number of frames at which the write-ahead log is copied back (Android's framework: 100)"),
    ],
    #[rustfmt::skip]
    profiles: &[
        profile("android", "journal mode of Android 4.1 to 4.4", &[("journal", "persist")]),
        profile("truncate", "journal mode of later Android versions", &[("journal", "truncate")]),
        profile("wal", "write-ahead log", &[("journal", "wal")]),
    ],
    needs: Needs::Directory,
    space: |p| (p.int("transactions") / 4 + 2000) * 4096 + p.int("checkpoint") * 8192,
    check: any,
};

/// Size of the file in AndroBench's file test, in bytes.
const FILE: u64 = 32 << 20;
/// Size of a random write to this file, in bytes.
const CALL: u32 = 4096;

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let mode = match p.word("journal") {
        "truncate" => Mode::Truncate,
        "persist" => Mode::Persist,
        "wal" => Mode::Wal,
        _ => Mode::Delete,
    };
    let n = p.int("transactions");
    let mut table = Table::new(p.int("row"), p.flag("autoincrement"));
    let kinds: &[&'static str] = match p.word("kinds") {
        "insert" => &["insert"],
        "update" => &["update"],
        "delete" => &["delete"],
        _ => &["insert", "update", "delete"],
    };
    if kinds[0] != "insert" {
        for _ in 0..n {
            table.insert();
        }
    }
    file_test(m, p.int("file_writes"), dir).await?;
    let mut pager = Pager::create(m, dir, mode, table.pages(), p.int("checkpoint")).await?;
    let stop = Shared::new(false);
    let mut others = Group::new();
    if p.int("services") > 0 {
        let (path, mean, stop) = (format!("{dir}/services"), p.time("services"), stop.clone());
        let script = move |m| services(m, path, mean, stop);
        others.spawn(m, How::named("services"), script).await?;
    }
    m.mark(Mark::ClockStart);
    m.counts(kinds[0]);
    let outcome = transactions(m, p, kinds, &mut table, &mut pager).await;
    stop.with(|s| *s = true);
    let others = others.join(m).await;
    both(outcome, others)?;
    pager.close(m).await
}

/// Runs the last file test of AndroBench, which precedes the SQLite test.
async fn file_test<M: Machine>(m: &mut M, writes: u64, dir: &str) -> Outcome {
    if writes == 0 {
        return Ok(());
    }
    m.mark(Mark::Phase("file test"));
    let path = format!("{dir}/androbench");
    lay_out(m, &path, FILE).await?;
    m.syncfs().await.doing(|| "sync")?;
    let fd = open(m, &path, OpenFlags::DIRECT | OpenFlags::SYNC).await?;
    for _ in 0..writes {
        let off = uniform(m, 0, FILE / u64::from(CALL) - 1) * u64::from(CALL);
        let op = m.op_begin("file write");
        m.write(fd, off, CALL).await.doing(|| "write")?;
        m.op_end(op, u64::from(CALL));
    }
    close(m, fd, &path).await
}

async fn transactions<M: Machine>(
    m: &mut M,
    p: &Params,
    kinds: &[&'static str],
    table: &mut Table,
    pager: &mut Pager,
) -> Outcome {
    let (n, think) = (p.int("transactions"), p.time("think"));
    for kind in kinds {
        if *kind != "insert" || p.word("pause_before") == "each" {
            m.sleep(p.time("pause")).await.doing(|| "pause")?;
        }
        m.mark(Mark::Phase(kind));
        let (start, mut done) = (m.now(), 0);
        let mut outcome = Ok(());
        for i in 0..n {
            let change = match *kind {
                "insert" => table.insert(),
                "update" => table.update(i),
                _ => table.delete(),
            };
            let op = m.op_begin(kind);
            outcome = pager.transaction(m, &change, think).await;
            if outcome.is_err() {
                break;
            }
            m.op_end(op, 0);
            done += 1;
        }
        if done > 0 {
            let tps = rate(done as f64, seconds(m, start));
            m.metric(kind, "transactions/s", tps, true);
        }
        outcome?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    /// Observed numbers of calls of the library for 300 transactions of each kind: writes to the
    /// journal, writes to the database, fdatasync of the journal, fdatasync of the database. The
    /// library was version 3.40.1 with pages of 4 KiB, full auto-vacuum, synchronous FULL, a
    /// journal limit of 512 KiB, rows of two texts of 50 bytes, and an integer key with
    /// AUTOINCREMENT.
    const SEEN: &[(&str, &str, [usize; 4])] = &[
        ("delete", "insert", [3324, 917, 600, 300]),
        ("delete", "update", [2400, 600, 600, 300]),
        ("delete", "delete", [2547, 643, 600, 300]),
        ("truncate", "insert", [3324, 917, 900, 300]),
        ("truncate", "update", [2400, 600, 900, 300]),
        ("persist", "insert", [3624, 917, 900, 300]),
        ("persist", "update", [2700, 600, 900, 300]),
        ("persist", "delete", [2847, 643, 900, 300]),
    ];

    /// Runs 300 transactions of one kind. Returns the same four numbers of calls as [`SEEN`].
    fn counts(mode: &str, kind: &str) -> [usize; 4] {
        let t = Trial::run(
            "sqlite",
            &[("journal", mode), ("kinds", kind), ("think", "0")],
        );
        assert_eq!(t.left_over(), 0);
        assert_eq!(t.ops(kind), 300);
        [
            t.calls_on("write", "db-journal"),
            t.ranges("write", "/db")
                .iter()
                .filter(|r| r.1 == 4096)
                .count()
                - t.ranges("write", "db-journal")
                    .iter()
                    .filter(|r| r.1 == 4096)
                    .count(),
            t.calls_on("fdatasync", "db-journal"),
            // The first fdatasync followed the creation of the database, so it is not counted.
            t.calls_on("fdatasync", "/db") - t.calls_on("fdatasync", "db-journal") - 1,
        ]
    }

    #[test]
    fn calls_equal_those_of_the_sqlite_library() {
        for (mode, kind, seen) in SEEN {
            let ours = counts(mode, kind);
            for (i, (a, b)) in ours.iter().zip(seen).enumerate() {
                // The numbers of syncs must be equal. For deletions, the numbers of writes may
                // differ by 1 %. When a leaf of the tree becomes too empty, the library selects
                // neighbour pages by row sizes in bytes, which the model does not know.
                let off = a.abs_diff(*b);
                let allowed = if i < 2 && *kind == "delete" {
                    b / 100
                } else {
                    0
                };
                assert!(off <= allowed, "{mode} {kind}: {ours:?}, seen {seen:?}");
            }
        }
    }

    #[test]
    fn other_services_sync_three_times_at_their_mean_interval() {
        let given = [
            ("transactions", "3000"),
            ("think", "10ms"),
            ("services", "1s"),
        ];
        let t = Trial::run("sqlite", &given);
        let n = t.ops("service fsync");
        let secs = t.world.elapsed().as_secs_f64();
        assert_eq!(n % 3, 0);
        // Four standard deviations of a Poisson-distributed number.
        let bursts = n as f64 / 3.0;
        assert!(
            (bursts - secs).abs() < 4.0 * secs.sqrt(),
            "{bursts} in {secs} s"
        );
        assert_eq!(t.calls_on("fsync", "services"), n as usize);
        assert_eq!(t.left_over(), 0);
    }

    #[test]
    fn update_transaction_makes_the_expected_calls() {
        let t = Trial::run(
            "sqlite",
            &[("kinds", "update"), ("transactions", "1"), ("think", "0")],
        );
        let all = t.sequence("seekwell-sqlite");
        let from = all
            .iter()
            .position(|c| *c == "stat")
            .expect("looks for a hot journal");
        let expect = [
            "stat",
            "read",
            "open",
            "write",
            "write",
            "write",
            "write",
            "write",
            "write",
            "write",
            "read",
            "fdatasync",
            "open",
            "fdatasync",
            "close",
            "write",
            "fdatasync",
            "write",
            "write",
            "fdatasync",
            "close",
            "unlink",
        ];
        assert_eq!(all[from..from + expect.len()], expect);
        let j = t.ranges("write", "db-journal");
        assert_eq!(
            j,
            [
                (0, 512),
                (512, 4),
                (516, 4096),
                (4612, 4),
                (4616, 4),
                (4620, 4096),
                (8716, 4),
                (0, 12)
            ]
        );
    }

    #[test]
    fn write_ahead_log_is_synced_per_transaction_and_checkpointed_at_its_limit() {
        let given = [("journal", "wal"), ("think", "0")];
        let t = Trial::run("sqlite", &given);
        // The log is synced at each of 900 commits, after its header each time it starts again, and
        // before each copy back.
        let frames = t
            .ranges("write", "db-wal")
            .iter()
            .filter(|r| r.1 == 24)
            .count();
        assert!(
            (1270..1290).contains(&frames),
            "1250/2 + 300 + 703/2, was {frames}"
        );
        assert_eq!(
            t.calls_on("fdatasync", "db-wal"),
            900 + 2 * frames.div_ceil(1000) - 1 + 1
        );
    }
}
