//! Runs a table of wrong inputs, and checks message, exit code, time and memory.
//!
//! A line of `wrong/table.txt` has an exit code, the words that the message must contain (separated
//! by `|`), and a command line. This test creates the files that the line names.
//! `SEEKWELL_WRONG=FILE` writes the current messages in the same format, with CPU time and peak
//! memory.

use super::host::phone;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Limits for a wrong input: private memory in KiB and CPU time in seconds. A program that exceeds
/// one of them is ended.
const MEMORY_KIB: u32 = 256 << 10;
const CPU_S: u32 = 10;
const GOOD: &str = "t_ns,op,sector,sectors\n0,R,0,8\n9000000,W,800,8\n";

/// Returns random bytes, the same every time.
fn noise(bytes: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    let mut all = Vec::with_capacity(bytes + 8);
    while all.len() < bytes {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        all.extend(x.to_le_bytes());
    }
    all.truncate(bytes);
    all
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("wrong-plain-{n}"));
    std::fs::write(&file, bytes).expect("written");
    let o = Command::new("gzip").arg("-1c").arg(&file).output();
    let _ = std::fs::remove_file(&file);
    o.expect("gzip").stdout
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory")
}

/// Returns a trace with a valid header and these rows.
fn rows(text: &str) -> Vec<u8> {
    format!("t_ns,op,sector,sectors\n{text}").into_bytes()
}

/// Writes all files into a separate directory.
fn make_files(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    for d in ["dir.csv", "dir.toml", "dir.fio", "hollow", "torn"] {
        std::fs::create_dir_all(dir.join(d)).expect("made");
    }
    let whole = GOOD.repeat(400).into_bytes();
    let half = |all: Vec<u8>| all[..all.len() / 2].to_vec();
    // A line of 192 MiB without an end is stored in a few hundred kilobytes.
    let zeros = vec![b'0'; 192 << 20];
    let utf16: Vec<u8> = GOOD.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let magic = [&0x6561_7407_u32.to_le_bytes()[..], &[0xff; 60]].concat();
    let good = |name: &str| -> (String, Vec<u8>) { (name.to_owned(), GOOD.as_bytes().to_vec()) };
    let experiment = "[experiment]\nname = \"x\"\n[[workload]]\nuse = \"fs-mark:files=3\"\n\
                      [[scheduler]]\nuse = \"noop\"\n";
    let files: Vec<(&str, Vec<u8>)> = vec![
        ("empty.csv", Vec::new()),
        ("blank.csv", b"\n\n\n".to_vec()),
        ("zeros.csv", vec![0; 4096]),
        ("noise.csv", noise(4096)),
        ("prose.csv", b"Dear disk,\nhow are you?\n".to_vec()),
        ("utf16.csv", utf16),
        ("nul.csv", rows("0,R,0,8\n\0,R,0,8\n")),
        ("header.csv", rows("")),
        ("noheader.csv", b"0;R;0;8\n".to_vec()),
        ("neg-time.csv", rows("-5,R,0,8\n")),
        ("neg-sector.csv", rows("0,R,-8,8\n")),
        ("nan.csv", rows("NaN,R,0,8\n")),
        ("huge.csv", rows("0,R,99999999999999999999999,8\n")),
        ("zero-length.csv", rows("0,R,0,0\n")),
        ("op.csv", rows("0,Q,0,8\n")),
        ("few.csv", rows("0,R,0\n")),
        ("many.csv", rows("0,R,0,8,9,9,9\n")),
        ("back.csv", rows("9000000000000000001,R,0,8\n0,R,0,8\n")),
        ("quote.csv", rows("0,\"R,0,8\n")),
        ("half.csv.gz", half(gz(&whole))),
        ("half.csv.zst", half(zst(&whole))),
        ("noise.csv.gz", noise(500)),
        ("noise.csv.zst", noise(500)),
        ("bomb.csv.gz", gz(&zeros)),
        ("bomb.csv.zst", zst(&zeros)),
        ("magic.blktrace", magic.clone()),
        ("cut.blktrace", magic[..20].to_vec()),
        ("par1.parquet", b"PAR1PAR1".to_vec()),
        (
            "cut.parquet",
            [
                &b"PAR1"[..],
                &noise(200),
                &[0xff, 0xff, 0xff, 0x7f],
                b"PAR1",
            ]
            .concat(),
        ),
        (
            "cut.ftrace",
            b"  a-1 [000] ..... 1.5: block_bio_queue: 7,0 R 8 +\n".to_vec(),
        ),
        (
            "cut.iolog",
            b"fio version 2 iolog\n/dev/sda add\n/dev/sda read 0\n".to_vec(),
        ),
        (
            "neg.msr",
            b"128166372003061629,usr,0,Read,-512,4096,1\n".to_vec(),
        ),
        ("cut.vscsi", noise(24)),
        (
            "self.toml",
            b"kind = \"raid0\"\nmembers = 2\nof = \"self.toml\"\n".to_vec(),
        ),
        ("empty.toml", Vec::new()),
        ("noise.toml", noise(300)),
        (
            "odd.toml",
            format!("{experiment}[oddity]\nx = 1\n").into_bytes(),
        ),
        ("types.toml", experiment.replace("\"x\"", "7").into_bytes()),
        ("none.toml", b"[experiment]\nname = \"x\"\n".to_vec()),
        (
            "zero.toml",
            experiment
                .replace("[[work", "repeats = 0\n[[work")
                .into_bytes(),
        ),
        (
            "minus.toml",
            experiment
                .replace("[[work", "repeats = -5\n[[work")
                .into_bytes(),
        ),
        (
            "many.toml",
            experiment
                .replace("[[work", "repeats = 1000000000000\n[[work")
                .into_bytes(),
        ),
        (
            "twice.toml",
            experiment
                .replace("[[work", "name = \"y\"\n[[work")
                .into_bytes(),
        ),
        (
            "nested.toml",
            format!("a = {}", "[".repeat(100_000)).into_bytes(),
        ),
        (
            "nan.toml",
            experiment
                .replace("[[work", "repeats = nan\n[[work")
                .into_bytes(),
        ),
        (
            "given.toml",
            experiment
                .replace("files=3\"", "files=3\"\nfiles = 4")
                .into_bytes(),
        ),
        (
            "given-tunable.toml",
            experiment
                .replace("\"noop\"", "\"deadline:fifo_batch=1\"\nfifo_batch = 2")
                .into_bytes(),
        ),
        (
            "given-device.toml",
            format!("{experiment}[[device]]\nuse = \"hitachi-7k200,rpm=7200\"\nrpm = 5400\n")
                .into_bytes(),
        ),
        (
            "given-machine.toml",
            format!("{experiment}[[machine]]\nuse = \"memory=2G\"\nmemory = \"3G\"\n").into_bytes(),
        ),
        ("empty.fio", Vec::new()),
        ("noise.fio", noise(300)),
        ("section.fio", b"[a\nrw=read\n".to_vec()),
        ("odd.fio", b"[a]\nrw=sideways\nsize=1m\n".to_vec()),
        ("negative.fio", b"[a]\nrw=read\nsize=-1m\n".to_vec()),
        ("torn/runs.parquet", noise(1000)),
        ("torn/results.json", b"{\"schema\": 1, \"".to_vec()),
        ("torn/journal", noise(1000)),
    ];
    let names = files.iter().map(|f| (f.0.to_owned(), f.1.clone()));
    let odd = [
        good("good.csv"),
        good("new\nline.csv"),
        good("esc\u{1b}[31m.csv"),
    ];
    for (name, bytes) in names.chain(odd) {
        std::fs::write(dir.join(name), bytes).expect("written");
    }
    std::os::unix::fs::symlink("nowhere", dir.join("dangling.csv")).expect("linked");
    std::os::unix::fs::symlink("loop.csv", dir.join("loop.csv")).expect("linked");
    let tree = phone(&format!("{name}-tree"));
    std::os::unix::fs::symlink(&tree.0, dir.join("tree")).expect("linked");
    dir
}

/// Splits a line into words, which are separated by blanks or in quotes. `\n` and `\e` have the
/// meaning of a shell's $'...'. `%500` stands for five hundred letters.
fn words(line: &str) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, behind) = match rest.strip_prefix('\'') {
            Some(inner) => inner.split_once('\'').expect("a second quote"),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        let mut word = word.replace("\\n", "\n").replace("\\e", "\u{1b}");
        if let Some(at) = word.find('%') {
            let digits = word[at + 1..]
                .chars()
                .take_while(char::is_ascii_digit)
                .count();
            let n = word[at + 1..at + 1 + digits].parse().expect("a number");
            word = format!(
                "{}{}{}",
                &word[..at],
                "x".repeat(n),
                &word[at + 1 + digits..]
            );
        }
        all.push(word.into_bytes());
        rest = behind.trim_start();
    }
    all
}

struct Ended {
    code: Option<i32>,
    err: String,
    /// CPU time in seconds and peak memory in KiB, if time(1) is installed.
    cost: Option<(f64, u64)>,
}

fn run(dir: &Path, line: &str) -> Ended {
    let cost = dir.join("cost");
    let timed = Path::new("/usr/bin/time").exists();
    let limits = format!("ulimit -c 0; ulimit -d {MEMORY_KIB}; ulimit -t {CPU_S}; exec \"$@\"");
    let mut c = Command::new("sh");
    c.args(["-c", &limits, "sh"]);
    if timed {
        c.args(["/usr/bin/time", "-q", "-f", "%U %S %M", "-o"])
            .arg(&cost);
    }
    c.arg(env!("CARGO_BIN_EXE_seekwell"));
    c.args(words(line).into_iter().map(std::ffi::OsString::from_vec));
    let o = c
        .current_dir(dir)
        .env("COLUMNS", "100")
        .env("RUST_BACKTRACE", "0")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let told = std::fs::read_to_string(&cost).ok().and_then(|t| {
        let mut n = t.lines().last()?.split(' ');
        let mut next = || n.next()?.parse::<f64>().ok();
        Some((next()? + next()?, next()? as u64))
    });
    Ended {
        code: o.status.code(),
        err: String::from_utf8_lossy(&o.stderr).into_owned(),
        cost: told.filter(|_| timed),
    }
}

/// Returns a description if the exit code is not `code`, or if the message is wrong.
fn failure_of_run(e: &Ended, code: i32, says: &str) -> Option<String> {
    if e.code != Some(code) {
        return Some(format!("exit code {:?}", e.code));
    }
    if e.err.contains("panicked") || e.err.contains('\u{1b}') {
        return Some("a panic, or what controls a terminal".to_owned());
    }
    let error = e.err.lines().filter(|l| l.starts_with("error: "));
    if error.count() != 1 {
        return Some("not one message".to_owned());
    }
    let missing = says.split('|').find(|s| !e.err.contains(s.trim()));
    missing.map(|s| format!("`{s}` is not said"))
}

#[test]
fn two_hundred_wrong_inputs_are_reported_cheaply() {
    let dir = make_files("wrong");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run/wrong/table.txt");
    let table = std::fs::read_to_string(path).expect("the table");
    let (mut bad, mut seen) = (Vec::new(), String::new());
    let (mut rows, mut most) = (0, (0.0_f64, 0_u64));
    for line in table.lines().filter(|l| !l.starts_with('#')) {
        let [code, says, args] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else {
            panic!("not a line of the table: {line}");
        };
        let e = run(&dir, args);
        rows += 1;
        let (cpu, kib) = e.cost.unwrap_or_default();
        most = (most.0.max(cpu), most.1.max(kib));
        let first = e
            .err
            .lines()
            .find(|l| l.starts_with("error: "))
            .unwrap_or(&e.err);
        let code_now = e.code.unwrap_or(-1);
        let _ = writeln!(seen, "{code_now}\t{first:?}\t{args}\t{cpu:.2} s\t{kib} KiB");
        let code = code.parse().expect("an exit code");
        if let Some(why) = failure_of_run(&e, code, says) {
            bad.push(format!("seekwell {args}\n  {why}: {:.600}", e.err));
        }
    }
    if let Some(file) = std::env::var_os("SEEKWELL_WRONG") {
        std::fs::write(file, seen).expect("written");
    }
    println!(
        "{rows} inputs; at most {:.2} s of a CPU and {} MB",
        most.0,
        most.1 >> 10
    );
    assert!(rows >= 200, "{rows}");
    assert!(
        bad.is_empty(),
        "{} of {rows}:\n{}",
        bad.len(),
        bad.join("\n")
    );
}

/// Tests a reader that closes the pipe, a file without permission, and a name that is not text.
#[test]
fn closed_pipes_missing_permissions_and_non_text_names_are_reported() {
    let dir = make_files("wrong-pipes");
    let seekwell = env!("CARGO_BIN_EXE_seekwell");
    let sh = |script: &str| {
        let mut c = Command::new("bash");
        c.args(["-c", script, "bash", seekwell]).current_dir(&dir);
        let o = c.env("RUST_BACKTRACE", "0").output().expect("bash");
        (
            o.status.code(),
            String::from_utf8_lossy(&[o.stdout, o.stderr].concat()).into_owned(),
        )
    };
    for command in [
        "workloads",
        "schedulers --json",
        "man",
        "replay good.csv -s noop,bfq",
    ] {
        let (_, said) = sh(&format!(
            "\"$1\" {command} | head -n 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
        ));
        // The pipe has ended the program, or the program has ended by itself. There is no message
        // in either case.
        assert!(["141\n", "0\n"].contains(&&*said), "{command}: {said}");
    }
    let (code, said) = sh("exec \"$1\" replay $'\\xff\\xfe.csv' -s noop");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("No such file"), "{said}");
    if rustix::process::geteuid().is_root() {
        let (code, said) = sh(
            "chmod 000 good.csv; exec setpriv --reuid=65534 --regid=65534 --clear-groups \
             --inh-caps=-all \"$1\" replay good.csv -s noop",
        );
        if !said.contains("setpriv:") && !said.contains("exec:") {
            assert_eq!(code, Some(2), "{said}");
            assert!(said.contains("ermission denied"), "{said}");
        }
    }
}
