//! SQLite itself: on a host the workload `sqlite` is the library's own doing, not the script's.
//!
//! The library the machine has is loaded at run time (its C interface has been stable since 2004),
//! so that what is measured is what the machine's programs use; its version goes into the record.
//! Table, pragmas and transactions are those the script models: one row of two texts a
//! transaction, an integer key with AUTOINCREMENT, 4 KiB pages, full auto-vacuum, synchronous FULL.

use crate::machine::HostMachine;
use crate::run::{HostError, Options, Ran, run_script};
use seekwell_core::{Errno, NSEC_PER_SEC, Nanos};
use seekwell_workload::{Context, Fail, Machine, Mark, Outcome, Params, Plan};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use thiserror::Error;

/// The workload that is run by the library.
pub const WORKLOAD: &str = "sqlite";

/// The library could not be loaded.
#[derive(Error, Debug)]
#[error(
    "SQLite's library is not here ({0}): install libsqlite3 (package libsqlite3-0 or sqlite-libs)"
)]
pub struct Missing(String);

type Open = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, *const c_char) -> c_int;
type Exec = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    *const c_void,
    *mut c_void,
    *mut *mut c_char,
) -> c_int;
type Message = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type SystemErrno = unsafe extern "C" fn(*mut c_void) -> c_int;
type Close = unsafe extern "C" fn(*mut c_void) -> c_int;
type Version = unsafe extern "C" fn() -> *const c_char;

/// SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE.
const READ_WRITE_CREATE: c_int = 2 | 4;

/// The functions used, of a library that stays loaded.
#[derive(Clone, Copy)]
pub struct Library {
    open: Open,
    exec: Exec,
    message: Message,
    system_errno: SystemErrno,
    close: Close,
    version: Version,
}

impl Library {
    /// Loads it.
    pub fn load() -> Result<Self, Missing> {
        let mut why = String::new();
        for name in [c"libsqlite3.so.0", c"libsqlite3.so"] {
            #[expect(unsafe_code, reason = "loading a library runs its initialisers")]
            // SAFETY: SQLite's have no side effects on the program.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if !handle.is_null() {
                return Self::of(handle);
            }
            why = last_error();
        }
        Err(Missing(why))
    }
    fn of(handle: *mut c_void) -> Result<Self, Missing> {
        let symbol = |name: &CStr| {
            #[expect(unsafe_code, reason = "no safe wrapper exists")]
            // SAFETY: the handle is a loaded library's, which is never unloaded.
            let p = unsafe { libc::dlsym(handle, name.as_ptr()) };
            if p.is_null() {
                Err(Missing(last_error()))
            } else {
                Ok(p)
            }
        };
        let (open, exec) = (symbol(c"sqlite3_open_v2")?, symbol(c"sqlite3_exec")?);
        let (message, close) = (symbol(c"sqlite3_errmsg")?, symbol(c"sqlite3_close_v2")?);
        let system_errno = symbol(c"sqlite3_system_errno")?;
        let version = symbol(c"sqlite3_libversion")?;
        #[expect(unsafe_code, reason = "addresses become functions")]
        // SAFETY: the symbols are SQLite's, whose documented signatures these types repeat.
        unsafe {
            Ok(Library {
                open: std::mem::transmute::<*mut c_void, Open>(open),
                exec: std::mem::transmute::<*mut c_void, Exec>(exec),
                message: std::mem::transmute::<*mut c_void, Message>(message),
                system_errno: std::mem::transmute::<*mut c_void, SystemErrno>(system_errno),
                close: std::mem::transmute::<*mut c_void, Close>(close),
                version: std::mem::transmute::<*mut c_void, Version>(version),
            })
        }
    }
    /// Its version ("3.40.1").
    pub fn version(&self) -> String {
        #[expect(unsafe_code, reason = "a C function")]
        // SAFETY: returns a static string.
        let v = unsafe { CStr::from_ptr((self.version)()) };
        v.to_string_lossy().into_owned()
    }
    /// Opens or makes a database.
    fn open(self, path: &Path) -> Outcome<Connection> {
        let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
        let name = CString::new(bytes).map_err(|_| fail("open the database", Errno::EINVAL))?;
        let mut db = std::ptr::null_mut();
        #[expect(unsafe_code, reason = "a C function")]
        // SAFETY: the name ends with a zero and `db` is a place for a pointer; a null VFS name
        // means the default one.
        let code =
            unsafe { (self.open)(name.as_ptr(), &mut db, READ_WRITE_CREATE, std::ptr::null()) };
        let c = Connection { lib: self, db };
        if code == 0 {
            Ok(c)
        } else {
            Err(c.failure("open the database"))
        }
    }
}

fn last_error() -> String {
    #[expect(unsafe_code, reason = "a C function")]
    // SAFETY: returns null or a string that lives until the next call on this thread.
    let text = unsafe {
        let p = libc::dlerror();
        if p.is_null() {
            return "no reason given".to_owned();
        }
        CStr::from_ptr(p)
    };
    text.to_string_lossy().into_owned()
}

fn fail(what: &str, errno: Errno) -> Fail {
    Fail {
        what: what.to_owned(),
        errno,
    }
}

/// An open database.
struct Connection {
    lib: Library,
    db: *mut c_void,
}

impl Connection {
    /// Runs statements.
    fn run(&self, sql: &str) -> Outcome {
        let text = CString::new(sql).map_err(|_| fail(sql, Errno::EINVAL))?;
        let none = std::ptr::null_mut();
        #[expect(unsafe_code, reason = "a C function")]
        // SAFETY: the connection is open; the text ends with a zero; no callback, and no place for
        // a message, which `failure` asks for itself.
        let code = unsafe {
            (self.lib.exec)(
                self.db,
                text.as_ptr(),
                std::ptr::null(),
                none,
                std::ptr::null_mut(),
            )
        };
        if code == 0 {
            Ok(())
        } else {
            Err(self.failure(sql.split_whitespace().next().unwrap_or("run")))
        }
    }
    /// The library's words and the kernel's number of what went wrong.
    fn failure(&self, what: &str) -> Fail {
        #[expect(unsafe_code, reason = "C functions")]
        // SAFETY: both take a connection, also one that failed to open or is null; the text lives
        // until the next call on it.
        let (text, number) = unsafe {
            let text = CStr::from_ptr((self.lib.message)(self.db));
            (text.to_string_lossy(), (self.lib.system_errno)(self.db))
        };
        // A full database is SQLITE_FULL, which carries no number.
        let errno = match number {
            0 if text.contains("full") => Errno::ENOSPC,
            0 => Errno::EIO,
            n => Errno(n),
        };
        fail(&format!("SQLite, {what}: {text}"), errno)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "a C function")]
        // SAFETY: the connection was opened, successfully or not, and is used no more.
        unsafe {
            (self.lib.close)(self.db);
        }
    }
}

/// Runs the workload with the library.
pub fn run(plan: &Plan, o: &Options) -> Result<Ran, HostError> {
    let lib = Library::load()?;
    let p = plan.values().clone();
    let mut ran = run_script(WORKLOAD, o, async move |mut m: HostMachine| {
        transactions(&mut m, &p, lib).await
    })?;
    ran.record
        .warnings
        .push(format!("ran by the SQLite library, {}", lib.version()));
    Ok(ran)
}

async fn transactions(m: &mut HostMachine, p: &Params, lib: Library) -> Outcome {
    let db = lib.open(&m.directory().join("db"))?;
    let n = p.int("transactions");
    let (mode, kinds) = (p.word("journal"), p.word("kinds"));
    db.run(&format!(
        "PRAGMA page_size = 4096; PRAGMA auto_vacuum = FULL; PRAGMA journal_mode = {mode}; \
         PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 524288; \
         PRAGMA wal_autocheckpoint = {};",
        p.int("checkpoint")
    ))?;
    let auto = if p.flag("autoincrement") {
        " AUTOINCREMENT"
    } else {
        ""
    };
    db.run(&format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY{auto}, a TEXT, b TEXT);"
    ))?;
    // Two texts of half the row each; every row different.
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
        db.run("BEGIN;")?;
        for i in 0..n {
            db.run(&insert(i))?;
        }
        db.run("COMMIT;")?;
    }
    let think = p.time("think");
    m.mark(Mark::ClockStart);
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
            // Also where a stop is noticed: the library waits for nobody.
            let thought = m.compute(think).await.and(m.sleep(Nanos::ZERO).await);
            outcome = match thought.doing(|| "compute") {
                Ok(()) => db.run(&sql),
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
    use crate::place::Scratch;
    use std::collections::BTreeMap;
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

    /// Also what the next test traces, as another process.
    #[test]
    fn library_and_script_run_in_the_same_directory() {
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
        let ran = match ran {
            Err(HostError::Sqlite(e)) => return println!("skipped: {e}"),
            r => r.expect("it begins"),
        };
        assert_eq!(ran.stopped, None);
        assert!(ran.record.metric.as_ref().is_some_and(|m| m.value > 0.0));
        let kind = if kinds == "all" { "delete" } else { kinds };
        let done = ran.record.operation(kind).map(|o| o.latency.count());
        assert_eq!(done, Some(n));
        assert_eq!(std::fs::read_dir(t.path()).expect("there").count(), 0);
    }

    /// Calls by kind and file, as strace sees them.
    fn traced(case: &str) -> Option<BTreeMap<&'static str, i64>> {
        let t = Scratch::new(&std::env::temp_dir(), "strace").expect("a directory");
        let log = t.path().join("log");
        let calls = "trace=write,pwrite64,fsync,fdatasync,unlink,unlinkat,ftruncate";
        let out = Command::new("strace")
            .args(["-f", "-y", "-e", calls, "-o"])
            .arg(&log)
            .arg(std::env::current_exe().expect("this test"))
            .args(["--exact", "--nocapture"])
            .arg("sqlite::tests::library_and_script_run_in_the_same_directory")
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
    fn the_scripts_calls_are_the_librarys_by_count() {
        const N: i64 = 60;
        for journal in ["delete", "truncate", "persist"] {
            for kind in ["insert", "update", "delete"] {
                let of = |who| traced(&format!("{who} {journal} {kind} {N}"));
                let (Some(script), Some(library)) = (of("script"), of("library")) else {
                    println!("skipped: needs strace, allowed to trace, and libsqlite3");
                    return;
                };
                println!("{journal} {kind}: script {script:?}, library {library:?}");
                for (what, n) in &library {
                    let ours = script.get(what).copied().unwrap_or(0);
                    // The library also makes the table, and rows to change, in two or three
                    // transactions of its own; the script's table is made in one call.
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
