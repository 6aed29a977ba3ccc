//! On a full disk, finished runs are kept, and the experiment can be resumed.

use crate::seekwell;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE: &str = "
devices = ['hdd:hitachi-7k200']
schedulers = ['noop', 'cfq']
workloads = ['fs-mark:files=5', 'fsync-latency:seconds=1s']
[experiment]
name = 'full'
repeats = 6
";

fn compare<'a>(file: &'a str, to: &'a str) -> [&'a str; 5] {
    ["compare", file, "--results", to, "--threads=1"]
}

/// A limit on the file size takes the place of a full disk, because that needs no root.
#[test]
fn full_disk_loses_only_the_unfinished_run() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("full");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("made");
    let at = |name: &str| dir.join(name).display().to_string();
    let (file, cut, whole) = (at("full.toml"), at("cut"), at("whole"));
    std::fs::write(&file, FILE).expect("written");
    let limited = |blocks: &str| {
        let shell = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let program = env!("CARGO_BIN_EXE_seekwell");
        let mut c = Command::new("sh");
        c.args(["-c", &shell, "sh", program])
            .args(compare(&file, &cut));
        let o = c.output().expect("a shell");
        let said = String::from_utf8(o.stderr).expect("UTF-8");
        (o.status.code(), said)
    };
    let (code, said) = limited("100");
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("runs are stored; free some space, and the same"),
        "{said}"
    );
    let kept = |dir: &str| seekwell(&["results", dir, "--json"]).out;
    assert!(kept(&cut).contains("\"resumable\""));
    // When there is space again, the same command completes the experiment. The result equals that
    // of an experiment that was not interrupted.
    for to in [&cut, &whole] {
        let ran = seekwell(&compare(&file, to));
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    let bytes = |dir: &str| std::fs::read(Path::new(dir).join("runs.parquet")).expect("read");
    assert!(bytes(&cut) == bytes(&whole));
    // Here there is no space for the folder itself.
    std::fs::remove_dir_all(&cut).expect("removed");
    let (code, said) = limited("1");
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("nothing was stored") && !Path::new(&cut).exists(),
        "{said}"
    );
}
