//! Runs the lab on the running kernel: its four schedulers and three workloads, with five blocks.
//! They run on ext4 on a loop device over a modelled disk in real time. Differences that theory
//! predicts must appear. A scheduler that is compared with itself must show no difference.

use crate::disk::{Served, missing_requirement, serialize_tests};
use seekwell_host::watch::{Ext4, Queue};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

/// bfq without weight raising for new programs. Each run starts its programs again. Which of them
/// bfq raises would depend on which start within its burst interval.
const BFQ: &str = "bfq:low_latency=0";
/// The same scheduler under another name: `slice_idle` is set to its default.
const BFQ_AGAIN: &str = "bfq:low_latency=0:slice_idle=8";

/// Returns the command of a fio reader or writer that bypasses the page cache and runs for
/// `seconds` seconds.
fn fio(name: &str, rw: &str, bs: &str, depth: u32, seconds: u32) -> String {
    format!(
        "fio --name={name} --rw={rw} --bs={bs} --size=8m --direct=1 --ioengine=libaio \
         --iodepth={depth} --time_based --runtime={seconds} --randseed=$seed"
    )
}

/// Returns the comparison of two treatments in a cell: the log ratio of the first to the second, p,
/// and p corrected over all comparisons.
fn comparison_of(cell: &Value, labels: &[&str], one: &str, other: &str) -> Option<(f64, f64, f64)> {
    let place = |name: &str| labels.iter().position(|l| *l == name);
    let (a, b) = (place(one)? as u64, place(other)? as u64);
    for p in cell["pairs"].as_array()? {
        let (x, y) = (p["one"].as_u64()?, p["other"].as_u64()?);
        let turned = match (x, y) {
            _ if (x, y) == (a, b) => 1.0,
            _ if (x, y) == (b, a) => -1.0,
            _ => continue,
        };
        return Some((
            turned * p["mean"].as_f64()?,
            p["p"].as_f64()?,
            p["p_adjusted"].as_f64()?,
        ));
    }
    None
}

#[test]
fn host_experiment_of_four_schedulers_and_three_workloads_agrees_with_prediction() {
    let _turn = serialize_tests();
    if let Some(why) = missing_requirement(&["losetup", "mkfs.ext4", "debugfs", "fio", "sqlite3"]) {
        println!("skipped: the lab on the running kernel: {why}");
        return;
    }
    let served = Served::start("hdd:hitachi-7k200,write_cache=no", "1G", &[]);
    let mut device = served.attach();
    let queue = Queue {
        depth: Some(4),
        ..Queue::default()
    };
    device.settle(&queue).expect("settled");
    let name = device
        .path()
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let ext4 = Ext4::make(device.path()).expect("mkfs");
    let mnt = served.dir().join("mnt");
    fs::create_dir(&mnt).expect("made");
    let mounted = ext4.mount(&mnt).expect("mounted");
    fs::create_dir(mnt.join("work")).expect("made");
    let bw = "regex = 'IOPS=([0-9.k]+)'\nmetric_name = \"IOPS\"\nunit = \"IOPS\"\n";
    let file = served.dir().join("lab.toml");
    let text = format!(
        "[experiment]\nname = \"lab\"\nrepeats = 5\n\n[host]\npath = \"{}\"\ndevice = \"{name}\"\n\
         settle = \"50ms\"\n\n\
         [[workload]]\nname = \"reader\"\ncommand = '{}'\n{bw}beside = ['loop:cmd:{}']\n\n\
         [[workload]]\nname = \"beside idle\"\ncommand = '{}'\n{bw}beside = ['loop:cmd:ionice -c 3 {}']\n\n\
         [[workload]]\nuse = \"sqlite3:inserts=5\"\n\n{}",
        mnt.join("work").display(),
        fio("r", "read", "64k", 1, 1),
        fio("w", "randwrite", "4k", 16, 600),
        fio("i", "randread", "4k", 4, 2),
        fio("b", "randread", "4k", 4, 600),
        ["none", "mq-deadline", "kyber", BFQ, BFQ_AGAIN]
            .map(|s| format!("[[scheduler]]\nuse = \"{s}\"\n"))
            .concat()
    );
    fs::write(&file, text).expect("written");
    let results = served.dir().join("results");
    let o = Command::new("env")
        .args([
            "--default-signal=INT,TERM,HUP",
            env!("CARGO_BIN_EXE_seekwell"),
            "compare",
        ])
        .arg(&file)
        .args(["--json", "--results"])
        .arg(&results)
        .env("SEEKWELL_RUN_DIR", served.dir().join("records"))
        .env("SEEKWELL_STATE_DIR", served.dir().join("state"))
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let err = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!(o.status.code(), Some(0), "{err}");
    let doc: Value = serde_json::from_slice(&o.stdout).expect("JSON");
    assert_eq!(
        (&doc["finished"], &doc["failed"]),
        (&Value::Bool(true), &0.into()),
        "{err}"
    );
    let labels = doc["analysis"]["treatments"]
        .as_array()
        .expect("a list")
        .clone();
    let labels: Vec<&str> = labels.iter().filter_map(Value::as_str).collect();
    assert_eq!(labels.len(), 5);
    let cells = doc["analysis"]["cells"].as_array().expect("cells");
    let cell = |workload: &str| {
        let mut all = cells.iter();
        all.find(|c| c["workload"] == workload).expect("there")
    };
    for c in cells {
        println!("{}: {}", c["workload"], c["sentence"]);
        assert_eq!(c["blocks"], 5);
        // The same scheduler under two names must show no difference. The error probability is 0.1
        // % over all comparisons.
        let (_, _, p) = comparison_of(c, &labels, BFQ, BFQ_AGAIN).expect("compared");
        assert!(p > 0.001, "a scheduler differs from itself: {c}");
    }
    // These are predictions of theory, each with a p value of its own. In the first, a sequential
    // reader competes with random writers. bfq waits for the reader, while mq-deadline and kyber
    // dispatch the writes. In the second, a reader competes with a reader of the idle class. bfq
    // and mq-deadline delay the reader of the idle class. kyber ignores classes and gives half to
    // each. `none` is not a reference in either. There, the next request to get a free tag is the
    // winner of a race, and one task may win it for a whole run. Ten runs gave 48 to 173 IOPS,
    // compared with 246 without the competitor.
    let mut demanded = Vec::new();
    for (workload, s, against) in [
        ("reader", BFQ, "mq-deadline"),
        ("reader", BFQ, "kyber"),
        ("beside idle", BFQ, "kyber"),
        ("beside idle", "mq-deadline", "kyber"),
    ] {
        let (ratio, p, _) = comparison_of(cell(workload), &labels, s, against).expect("compared");
        println!("{workload}, {s} against {against}: log ratio {ratio:.2}, p {p:.1e}");
        demanded.push((workload, s, against, ratio, p));
    }
    drop(mounted);
    drop(device);
    // On a busy machine, the disk differs from its model, so the predictions are not checked.
    crate::disk::check_if_machine_had_time(&served.stop(), |_| {
        for (workload, s, against, ratio, p) in &demanded {
            let so = *ratio > 0.0 && *p < 0.01;
            assert!(so, "{workload}, {s} against {against}: {ratio} {p}");
        }
    });
}
