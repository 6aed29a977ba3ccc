//! Tests `run --dir`, and problems with the directory of the user. It may be refused before the run
//! starts, or it may fill up or disappear in the middle of the run. Measurements are printed.
//! Seekwell's files are removed, and the user's files are kept.

use crate::watched_run::until;
use crate::{Ran, command, ran, seekwell};
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a directory");
    dir
}

/// Many small files are synced one by one, so the run is long enough to be disturbed.
const LONG: &str = "fs-mark:files=100000,size=4k";

/// A run that has started to write.
struct Going {
    child: Option<Child>,
    dir: PathBuf,
}

impl Going {
    fn begin(dir: &Path, more: &[&str]) -> Self {
        let mut c = command(&["run", LONG, "--json", "--dir"]);
        c.arg(dir).args(more);
        Self::spawn(c, dir)
    }
    fn spawn(mut c: Command, dir: &Path) -> Self {
        c.stdout(Stdio::piped()).stderr(Stdio::piped());
        let going = Going {
            child: Some(c.spawn().expect("the binary runs")),
            dir: dir.to_owned(),
        };
        until("ten files are written", || going.files().len() > 10);
        going
    }
    fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }
    /// Returns Seekwell's directory inside the user's directory. Its name contains the process ID.
    fn ours(&self) -> Option<PathBuf> {
        let start = format!("seekwell-fs-mark-{}-", self.pid());
        let entries = fs::read_dir(&self.dir).expect("there").flatten();
        let mut named = entries.filter(|e| e.file_name().to_string_lossy().starts_with(&start));
        named.next().map(|e| e.path())
    }
    fn files(&self) -> Vec<PathBuf> {
        let (mut dirs, mut files) = (Vec::from_iter(self.ours()), Vec::new());
        while let Some(d) = dirs.pop() {
            for e in fs::read_dir(d).into_iter().flatten().flatten() {
                match e.file_type().is_ok_and(|t| t.is_dir()) {
                    true => dirs.push(e.path()),
                    false => files.push(e.path()),
                }
            }
        }
        files
    }
    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.pid().to_string()])
            .status();
        assert!(sent.is_ok_and(|s| s.success()), "kill -s {name}");
    }
    /// Waits until it ends.
    fn end(mut self) -> Ran {
        let child = self.child.take().expect("running");
        ran(child.wait_with_output().expect("it ends"))
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the number of files synced so far, from the JSON document.
fn synced(text: &str) -> u64 {
    let doc: Value = serde_json::from_str(text).expect("one JSON document");
    let ops = doc["records"][0]["operations"].as_array().expect("a list");
    let fsync = ops.iter().find(|o| o["kind"] == "fsync");
    fsync
        .and_then(|o| o["latency"]["count"].as_u64())
        .unwrap_or(0)
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("there").flatten();
    let mut names: Vec<_> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn invalid_run_is_rejected_before_output_or_writing() {
    let dir = directory("real-refused");
    let at = |name: &str| dir.join(name).display().to_string();
    fs::write(at("file"), "mine").expect("a file");
    let here = dir.display().to_string();
    for (args, code, words) in [
        (
            vec!["--dir", &at("none")],
            2,
            "there is no such directory; make it, or name another",
        ),
        (
            vec!["--dir", &at("file")],
            2,
            "is not a directory; name one with --dir",
        ),
        (
            vec!["--dir", &here, "-o", &at("none/out.json")],
            3,
            "none/out.json: cannot be written: No such file",
        ),
        (vec!["--dir", &here, "-o", &here], 3, "cannot be written"),
        (
            vec!["--dir", &here, "--raw", &at("file")],
            2,
            "fs-mark works on files in the directory, not on a raw device",
        ),
    ] {
        let r = seekwell(&[&["run", "fs-mark:files=2"], &args[..]].concat());
        assert_eq!((r.code, &*r.out), (code, ""), "{args:?}: {}", r.err);
        assert!(r.err.contains(words), "{args:?}: {}", r.err);
        assert!(!r.err.contains("in force"), "{args:?}: {}", r.err);
    }
    for (raw, words) in [
        ("/dev/null", "is neither a block device nor a file"),
        (&*at("none"), "No such file"),
    ] {
        let r = seekwell(&["run", "hdparm", "--dir", &here, "--raw", raw]);
        assert_eq!(r.code, 2, "{}", r.err);
        assert!(r.err.contains(words), "{}", r.err);
    }
    assert_eq!(names(&dir), ["file"]);
}

#[test]
fn unwritable_directory_is_left_unchanged() {
    let dir = directory("real-unwritable");
    let mut c = command(&["run", "fs-mark:files=2", "--dir"]);
    c.arg(&dir);
    if is_root() {
        // Root may write to every directory, so the command runs as another user.
        c.uid(65_534).gid(65_534);
    } else {
        let mut p = fs::metadata(&dir).expect("there").permissions();
        p.set_readonly(true);
        fs::set_permissions(&dir, p).expect("ours");
    }
    let Ok(output) = c.output() else {
        println!("skipped: an unwritable directory: nobody may not run the binary here");
        return;
    };
    let r = ran(output);
    assert_eq!(r.code, 2, "{}", r.err);
    assert!(
        r.err.contains("may not be written by this user"),
        "{}",
        r.err
    );
    assert!(names(&dir).is_empty());
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn signal_ends_a_run_with_its_results_and_removes_its_files() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let dir = directory(&format!("real-{name}"));
        fs::write(dir.join("mine"), "precious").expect("a file of the user's");
        let out = directory(&format!("real-{name}-out")).join("out.json");
        let going = Going::begin(&dir, &["-o", &out.display().to_string()]);
        going.signal(name);
        let r = going.end();
        assert_eq!(r.code, code, "{}", r.err);
        assert!(
            r.err.contains(&format!("stopped by SIG{name}")),
            "{}",
            r.err
        );
        let n = synced(&fs::read_to_string(&out).expect("written"));
        assert!(n >= 10, "{n} files synced");
        assert_eq!(names(&dir), ["mine"]);
        assert_eq!(names(out.parent().expect("a directory")), ["out.json"]);
    }
}

#[test]
fn ignored_signal_does_not_stop_a_run() {
    let dir = directory("real-nohup");
    let mut c = Command::new("sh");
    let script = r#"trap "" HUP; exec "$0" run "$1" --json --dir "$2""#;
    c.args(["-c", script, env!("CARGO_BIN_EXE_seekwell"), LONG])
        .arg(&dir);
    let going = Going::spawn(c, &dir);
    going.signal("HUP");
    let before = going.files().len();
    until("it writes on", || going.files().len() > before + 5);
    going.signal("TERM");
    let r = going.end();
    assert_eq!(r.code, 143, "{}", r.err);
    assert!(synced(&r.out) > 10);
    assert!(names(&dir).is_empty());
}

#[test]
fn result_file_is_replaced_atomically() {
    let dir = directory("real-kill");
    let out = directory("real-kill-out").join("out.json");
    fs::write(&out, "of before").expect("an older result");
    let going = Going::begin(&dir, &["-o", &out.display().to_string()]);
    let ours = going.ours().expect("begun");
    drop(going);
    assert_eq!(fs::read_to_string(&out).expect("there"), "of before");
    assert_eq!(names(out.parent().expect("a directory")), ["out.json"]);
    // After kill -9, one directory is left. Its name shows where it comes from.
    assert_eq!(
        names(&dir),
        [ours
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()]
    );
}

#[test]
fn leftovers_of_a_killed_run_are_named_and_removed_on_request() {
    let dir = directory("real-left");
    let here = dir.display().to_string();
    fs::write(dir.join("mine"), "precious").expect("a file of the user's");
    fs::create_dir(dir.join("seekwell-fs-mark-1-0")).expect("with a name like ours");
    fs::write(dir.join("seekwell-fs-mark-1-0/mine"), "precious").expect("written");
    let users = names(&dir);
    let going = Going::begin(&dir, &[]);
    let dead = going.ours().expect("begun");
    drop(going); // kill -9
    let name = dead
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let living = Going::begin(&dir, &[]);
    let remedy = format!("`seekwell run --clean-up --dir {here}` removes it");
    // A parallel run reports the killed run with its size, and does not report the run that is
    // still active.
    let short = ["run", "fs-mark:files=2,size=4k", "--dir", &here];
    let r = seekwell(&short);
    assert_eq!(r.code, 0, "{}", r.err);
    let said = format!("{here}: killed runs left {name} (");
    assert!(
        r.err.contains(&said) && r.err.contains(&remedy),
        "{}",
        r.err
    );
    let size = r.err.split(&said).nth(1).expect("said");
    assert!(
        size.split(')').next().is_some_and(|s| s.ends_with("kB")),
        "{size}"
    );
    let alive = format!("-{}-", living.pid());
    assert!(!r.err.contains(&alive), "{}", r.err);
    assert!(r.err.matches("killed runs left").count() == 1 && dead.exists());
    // A run that finds too little space reports the killed run too.
    let r = seekwell(&["run", "fs-mark:files=10000000,size=1g", "--dir", &here]);
    assert_eq!(r.code, 2, "{}", r.err);
    assert!(
        r.err.contains("MB are free") && r.err.contains(&said),
        "{}",
        r.err
    );
    // Only the directory of the killed run is removed. The other run continues.
    let r = seekwell(&["run", "--clean-up", "--dir", &here]);
    assert_eq!((r.code, &*r.err), (0, ""));
    assert!(
        r.out.starts_with(&format!("removed {} (", dead.display())),
        "{}",
        r.out
    );
    assert!(!dead.exists() && living.ours().is_some());
    let r = seekwell(&["run", "--clean-up", "--dir", &here]);
    assert_eq!(r.out, format!("{here}: no killed run left anything\n"));
    living.signal("TERM");
    let r = living.end();
    assert_eq!(r.code, 143, "{}", r.err);
    assert!(synced(&r.out) >= 10);
    assert_eq!(names(&dir), users);
    // If there is a workload, the command also runs it.
    let r = seekwell(&[&short[..], &["--clean-up", "--json"]].concat());
    assert_eq!((r.code, synced(&r.out)), (0, 2), "{}", r.err);
    let r = seekwell(&["run", "--clean-up"]);
    assert_eq!(r.code, 2, "nowhere to clean: {}", r.err);
}

#[test]
fn vanished_files_are_named_and_results_kept() {
    let dir = directory("real-vanish");
    fs::write(dir.join("mine"), "precious").expect("a file of the user's");
    let going = Going::begin(&dir, &[]);
    let ours = going.ours().expect("begun");
    // The run writes to the directory meanwhile, so the removal is repeated until everything is
    // gone.
    until("our directory is gone", || {
        let _ = fs::remove_dir_all(&ours);
        !ours.exists()
    });
    let r = going.end();
    assert_eq!(r.code, 4, "{}", r.err);
    assert!(r.err.contains("(ENOENT)"), "{}", r.err);
    assert!(synced(&r.out) >= 10);
    assert_eq!(names(&dir), ["mine"]);
}

#[test]
fn time_limit_ends_a_run_and_is_reported() {
    let dir = directory("real-limit");
    // The speed of the disk depends on other users of the machine, so several limits are tried.
    for limit in ["1", "10", "100"] {
        let begun = Instant::now();
        let args = ["run", LONG, "--limit", limit, "--json", "--dir"];
        let r = seekwell(&[&args[..], &[&*dir.display().to_string()]].concat());
        assert_eq!(r.code, 4, "{}", r.err);
        assert!(r.err.contains("stopped at the time limit"), "{}", r.err);
        assert!(begun.elapsed() >= Duration::from_secs(1));
        assert!(names(&dir).is_empty());
        if synced(&r.out) > 0 {
            return;
        }
    }
    panic!("nothing was synced");
}

#[test]
fn user_files_with_similar_names_are_kept() {
    let dir = directory("real-alike");
    let mine = [
        "seekwell-fs-mark/mine",
        "seekwell-fs-mark-1-0/mine",
        "seekwell-",
    ];
    for m in mine {
        let path = dir.join(m);
        fs::create_dir_all(path.parent().expect("below")).expect("made");
        fs::write(path, "precious").expect("written");
    }
    let before = names(&dir);
    let path = dir.display().to_string();
    for workload in ["fs-mark:files=3,size=4k", "sqlite:transactions=3,pause=0"] {
        let r = seekwell(&["run", workload, "--dir", &path]);
        assert_eq!(r.code, 0, "{}", r.err);
    }
    assert_eq!(names(&dir), before);
    for m in mine {
        assert_eq!(fs::read_to_string(dir.join(m)).expect(m), "precious");
    }
}

#[test]
fn parameters_are_accepted_separately_or_as_a_list() {
    let params = |given: &[&str]| {
        let mut args = vec!["run", "fs-mark", "--json", "-s", "noop"];
        args.extend_from_slice(&["-d", "ssd:sata3-256-2011"]);
        args.extend_from_slice(given);
        let r = seekwell(&args);
        assert_eq!(r.code, 0, "{}", r.err);
        let doc: Value = serde_json::from_str(&r.out).expect("JSON");
        let p = &doc["records"][0]["params"];
        (p["files"].clone(), p["size"].clone())
    };
    let one = params(&["--param", "files=3", "--param", "size=64k"]);
    assert_eq!(one, ("3".into(), "64KiB".into()));
    assert_eq!(params(&["--param", "files=3,size=64k"]), one);
    for (args, words) in [
        (
            ["run", "seeker", "--param", "seconds=3600"],
            "parameter seconds=3600 of seeker: expected a time of 10ms..1h, with its unit (such as 30s)",
        ),
        (
            ["run", "fs-mark", "--param", "size=big"],
            "parameter size=big of fs-mark: expected bytes of",
        ),
        (
            ["run", "sqlite", "--param", "kinds=insert,update"],
            "parameter kinds=insert,update of sqlite: expected one of",
        ),
        (
            ["run", "fs-mark", "--param", "files=3,size"],
            "parameter files=3,size of fs-mark: expected a number of 1..10000000 (such as ",
        ),
    ] {
        let r = seekwell(&args);
        assert_eq!(r.code, 2, "{args:?}: {}", r.err);
        assert!(r.err.contains(words), "{args:?}: {}", r.err);
    }
}
