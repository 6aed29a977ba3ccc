//! Runs an experiment with the built binary, and kills it repeatedly.

use crate::{command, scratch};
use rand::Rng;
use seekwell_core::rng::stream;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Enough short runs for all kills.
const SMALL: &str = r#"
[experiment]
name = "killed"
seed = 5
repeats = 12
devices = ["hdd:hitachi-7k200", "ssd:sata3-256-2011"]
schedulers = ["noop", "cfq", "bfq"]

[[workload]]
use = "fs-mark"
files = 5

[[workload]]
use = "streams"
seconds = "100ms"
size = "4m"
"#;

/// Number of kills, at random moments.
const KILLS: usize = 20;

fn start(file: &str, to: &Path, threads: usize) -> Child {
    let (to, threads) = (to.display().to_string(), threads.to_string());
    let words = [
        "compare",
        file,
        "--results",
        &to,
        "--threads",
        &threads,
        "-q",
    ];
    let mut c = command(&words);
    c.stdout(Stdio::null()).stderr(Stdio::null());
    c.spawn().expect("the binary runs")
}

/// All files without timestamps.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let all = std::fs::read_dir(dir).expect("listed");
    let each = all.map(|f| {
        let f = f.expect("an entry");
        let bytes = std::fs::read(f.path()).expect("read");
        (f.file_name().to_string_lossy().into_owned(), bytes)
    });
    each.filter(|(name, _)| name != "environment.json")
        .collect()
}

fn length(dir: &Path) -> u64 {
    dir.join("journal").metadata().map_or(0, |m| m.len())
}

/// Kills the process immediately, or after its journal has grown by some runs. Returns whether the
/// process had already ended.
fn killed(child: &mut Child, dir: &Path, rng: &mut impl Rng) -> bool {
    let before = length(dir);
    if rng.random_bool(0.6) {
        // A run takes 2 to 4 kB in the journal.
        let more = rng.random_range(1..9_000);
        while length(dir) < before + more && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    std::thread::sleep(Duration::from_micros(rng.random_range(0..20_000)));
    child.kill().expect("killed");
    child.wait().expect("waited for").success()
}

#[test]
fn twenty_kills_and_any_number_of_threads_give_the_same_bytes() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kills");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory");
    let file = scratch("kills.toml", SMALL.as_bytes());
    let (whole, broken) = (dir.join("whole"), dir.join("broken"));
    assert!(
        start(&file, &whole, 1)
            .wait()
            .expect("waited for")
            .success()
    );
    let expected = files(&whole);
    assert!(expected.contains_key("runs.parquet") && expected.contains_key("results.json"));

    let mut rng = stream(7, "kills");
    let (mut kills, mut longest) = (0, 0);
    for i in 0.. {
        assert!(
            i < 200,
            "it never comes to an end, or ends too soon each time"
        );
        if kills == KILLS {
            break;
        }
        let mut child = start(&file, &broken, 1 + i % 4);
        if killed(&mut child, &broken, &mut rng) || broken.join("results.json").exists() {
            // The experiment was complete before all kills were done, so it starts again.
            assert_eq!(files(&broken), expected, "after {kills} kills");
            std::fs::remove_dir_all(&broken).expect("removed");
            continue;
        }
        kills += 1;
        longest = longest.max(length(&broken));
    }
    assert!(longest > 0, "no kill left a run behind");
    if !broken.join("results.json").exists() {
        assert!(
            start(&file, &broken, 2)
                .wait()
                .expect("waited for")
                .success()
        );
    }
    let found = files(&broken);
    let names: Vec<&String> = found.keys().collect();
    assert_eq!(names, expected.keys().collect::<Vec<_>>());
    for (name, bytes) in &expected {
        assert!(found[name] == *bytes, "{name} differs after {KILLS} kills");
    }
}
