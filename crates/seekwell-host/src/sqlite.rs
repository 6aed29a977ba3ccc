//! Runs the workload `sqlite` on the host with the real SQLite library instead of the script.
//!
//! The library is part of the program, so that it is available and the same on every machine. The
//! record contains its version. Table, pragmas and transactions are the same as in the script. Each
//! transaction writes one row with two texts. The key is an integer with AUTOINCREMENT, the page
//! size is 4 KiB, auto-vacuum is full, and synchronous is FULL.

use crate::machine::HostMachine;
use crate::run::{HostError, Options, Ran, run_script};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use seekwell_core::{Errno, NSEC_PER_SEC, Nanos};
use seekwell_workload::{Context, Fail, Machine, Mark, Outcome, Params, Plan};

/// Name of the workload that the library runs.
pub const WORKLOAD: &str = "sqlite";

fn fail(what: &str, e: &rusqlite::Error) -> Fail {
    let errno = match e.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Errno::ENOSPC,
        Some(ErrorCode::ReadOnly) => Errno::EROFS,
        Some(ErrorCode::CannotOpen) => Errno::ENOENT,
        Some(ErrorCode::PermissionDenied) => Errno::EACCES,
        Some(ErrorCode::OutOfMemory) => Errno::ENOMEM,
        _ => Errno::EIO,
    };
    Fail {
        what: format!("SQLite, {what}: {e}"),
        errno,
    }
}

/// Runs SQL statements.
fn exec(db: &Connection, sql: &str) -> Outcome {
    let what = || sql.split_whitespace().next().unwrap_or("run");
    db.execute_batch(sql).map_err(|e| fail(what(), &e))
}

/// Runs the workload with the library.
pub fn run(plan: &Plan, o: &Options) -> Result<Ran, HostError> {
    let p = plan.values().clone();
    let mut ran = run_script(WORKLOAD, o, async move |mut m: HostMachine| {
        transactions(&mut m, &p).await
    })?;
    ran.record.warnings.push(format!(
        "ran by the SQLite library, {}",
        rusqlite::version()
    ));
    Ok(ran)
}

async fn transactions(m: &mut HostMachine, p: &Params) -> Outcome {
    let how = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let db = Connection::open_with_flags(m.directory().join("db"), how);
    let db = db.map_err(|e| fail("open the database", &e))?;
    let n = p.int("transactions");
    let (mode, kinds) = (p.word("journal"), p.word("kinds"));
    exec(
        &db,
        &format!(
            "PRAGMA page_size = 4096; PRAGMA auto_vacuum = FULL; PRAGMA journal_mode = {mode}; \
         PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 524288; \
         PRAGMA wal_autocheckpoint = {};",
            p.int("checkpoint")
        ),
    )?;
    let auto = if p.flag("autoincrement") {
        " AUTOINCREMENT"
    } else {
        ""
    };
    exec(
        &db,
        &format!("CREATE TABLE t (id INTEGER PRIMARY KEY{auto}, a TEXT, b TEXT);"),
    )?;
    // Returns two texts, each half as long as the row. The texts of every row are different.
    let row = p.int("row") as usize;
    let text = |i: u64, len: usize| format!("{i:0>len$}").chars().take(len).collect::<String>();
    let texts = |i: u64| (text(i, row / 2), text(i, row - row / 2));
    let insert = |i: u64| {
        let (a, b) = texts(i);
        format!("INSERT INTO t (a, b) VALUES ('{a}', '{b}');")
    };
    let kinds: &[&'static str] = match kinds {
        "insert" => &["insert"],
        "update" => &["update"],
        "delete" => &["delete"],
        _ => &["insert", "update", "delete"],
    };
    if kinds[0] != "insert" {
        exec(&db, "BEGIN;")?;
        for i in 0..n {
            exec(&db, &insert(i))?;
        }
        exec(&db, "COMMIT;")?;
    }
    let think = p.time("think");
    m.mark(Mark::ClockStart);
    m.counts(kinds[0]);
    for kind in kinds {
        m.sleep(p.time("pause")).await.doing(|| "pause")?;
        m.mark(Mark::Phase(kind));
        let (start, mut done) = (m.now(), 0u64);
        let mut outcome = Ok(());
        for i in 0..n {
            let sql = match *kind {
                "insert" => insert(i),
                "update" => {
                    let (a, b) = texts(i + n);
                    format!("UPDATE t SET a = '{a}', b = '{b}' WHERE id = {};", i + 1)
                }
                _ => format!("DELETE FROM t WHERE id = {};", i + 1),
            };
            let op = m.op_begin(kind);
            // These calls also return an error if the run is stopped. The library does not check
            // this.
            let thought = m.compute(think).await.and(m.sleep(Nanos::ZERO).await);
            outcome = match thought.doing(|| "compute") {
                Ok(()) => exec(&db, &sql),
                e => e,
            };
            if outcome.is_err() {
                break;
            }
            m.op_end(op, 0);
            done += 1;
        }
        if done > 0 {
            let s = m.now().since(start).0 as f64 / NSEC_PER_SEC as f64;
            m.metric(kind, "transactions/s", done as f64 / s.max(1e-9), true);
        }
        outcome?;
    }
    drop(db);
    m.mark(Mark::ClockStop);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{Scratch, held};
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::process::Command;

    const CASE: &str = "SEEKWELL_TEST_SQLITE";

    fn plan(journal: &str, kinds: &str, n: u64) -> Plan {
        let n = n.to_string();
        let given = [
            ("journal", journal),
            ("kinds", kinds),
            ("transactions", n.as_str()),
            ("think", "0"),
        ];
        let given = given.map(|(k, v)| (k.to_owned(), v.to_owned()));
        Plan::new(WORKLOAD, &given).expect("good parameters")
    }
    fn options(dir: &Path) -> Options {
        Options {
            signals: false,
            ..Options::new(dir, 1)
        }
    }

    /// The next test runs this test in another process and traces its system calls.
    #[test]
    fn sqlite_library_and_script_run_in_the_same_directory() {
        let case = std::env::var(CASE).unwrap_or_else(|_| "library delete all 20".to_owned());
        let words: Vec<&str> = case.split(' ').collect();
        let [who, journal, kinds, n] = words[..] else {
            panic!("{CASE}: `{case}`");
        };
        let n: u64 = n.parse().expect("a number");
        let plan = plan(journal, kinds, n);
        let t = Scratch::new(&std::env::temp_dir(), "sqlite").expect("a directory");
        let ran = if who == "script" {
            let script = plan.clone();
            run_script(WORKLOAD, &options(t.path()), |m| script.run(m))
        } else {
            run(&plan, &options(t.path()))
        };
        let ran = ran.expect("it begins");
        assert_eq!(ran.stopped, None);
        assert!(ran.record.metric.as_ref().is_some_and(|m| m.value > 0.0));
        let kind = if kinds == "all" { "delete" } else { kinds };
        let done = ran.record.operation(kind).map(|o| o.latency.count());
        assert_eq!(done, Some(n));
        assert_eq!(held(t.path()), 0);
    }

    /// Returns the number of system calls by kind and file, from strace.
    fn traced(case: &str) -> Option<BTreeMap<&'static str, i64>> {
        let t = Scratch::new(&std::env::temp_dir(), "strace").expect("a directory");
        let log = t.path().join("log");
        let calls = "trace=write,pwrite64,fsync,fdatasync,unlink,unlinkat,ftruncate";
        let out = Command::new("strace")
            .args(["-f", "-y", "-e", calls, "-o"])
            .arg(&log)
            .arg(std::env::current_exe().expect("this test"))
            .args(["--exact", "--nocapture"])
            .arg("sqlite::tests::sqlite_library_and_script_run_in_the_same_directory")
            .env(CASE, case)
            .output()
            .ok()?;
        let said = String::from_utf8_lossy(&out.stdout);
        if !out.status.success() || said.contains("skipped") {
            assert!(!said.contains("FAILED"), "{said}");
            return None;
        }
        let text = std::fs::read_to_string(&log).ok()?;
        let mut n = BTreeMap::new();
        for line in text.lines().filter(|l| l.contains("seekwell-sqlite")) {
            let call = line.split_once(' ').map_or("", |l| l.1.trim_start());
            let write = call.starts_with("write(") || call.starts_with("pwrite64(");
            let sync = call.starts_with("fsync(") || call.starts_with("fdatasync(");
            let of = |file: &str| call.contains(&format!("{file}>"));
            let what = match (write, sync) {
                (true, _) if of("/db-journal") || of("/db-wal") => "journal writes",
                (true, _) if of("/db") => "database writes",
                (_, true) if of("/db-journal") || of("/db-wal") => "journal syncs",
                (_, true) if of("/db") => "database syncs",
                (_, true) => "directory syncs",
                _ if call.starts_with("unlink") && call.contains("db-journal") => "unlinks",
                _ => continue,
            };
            *n.entry(what).or_insert(0) += 1;
        }
        Some(n)
    }

    #[test]
    fn script_and_sqlite_library_make_the_same_number_of_calls() {
        const N: i64 = 60;
        for journal in ["delete", "truncate", "persist"] {
            for kind in ["insert", "update", "delete"] {
                let of = |who| traced(&format!("{who} {journal} {kind} {N}"));
                let (Some(script), Some(library)) = (of("script"), of("library")) else {
                    println!("skipped: needs strace, allowed to trace");
                    return;
                };
                println!("{journal} {kind}: script {script:?}, library {library:?}");
                for (what, n) in &library {
                    let ours = script.get(what).copied().unwrap_or(0);
                    // The library needs two or three more transactions, which create the table and
                    // the rows to be changed. The script creates its table in one call.
                    let each = (ours + N - 1) / N;
                    let made = match *what {
                        "journal writes" | "database writes" => 32,
                        _ => 3 * each,
                    };
                    assert!(
                        (ours - n).abs() <= made,
                        "{journal} {kind}, {what}: script {ours}, library {n}"
                    );
                }
            }
        }
    }
}
