//! Tests the names of kernels in all commands, the limits of queues, and writeback throttling in
//! answers.

use crate::{good, seekwell};
use serde_json::Value;

const SATA: &str = "ssd:sata3-256-2011";
const NVME: &str = "ssd:nvme-gen4-tlc-2t";

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&good(args)).expect("one JSON document")
}

/// Returns the record of one short run on a device.
fn record(device: &str, more: &[&str]) -> Value {
    let args = [
        "run",
        "seeker:seconds=1s",
        "-d",
        device,
        "--seeds",
        "1",
        "--json",
        "-q",
    ];
    json(&[&args[..], more].concat())["records"][0].clone()
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The limit is 1280 KiB from 6.2 to 6.16, and 4 MiB from 6.17 on. Below 6.16, each page is a
/// separate segment.
#[test]
fn queue_limits_follow_the_kernel_and_are_recorded() {
    for (kernel, device, max, list, largest) in [
        ("5.15", SATA, 1280, Some(168), Some(672)),
        ("6.2", SATA, 1280, Some(168), Some(672)),
        ("6.12", SATA, 1280, Some(168), Some(672)),
        ("6.16", SATA, 1280, Some(168), None),
        ("6.17", SATA, 4096, Some(168), None),
        ("7.0", SATA, 4096, Some(168), None),
        ("6.12", NVME, 1280, None, Some(1280)),
        ("6.18", NVME, 4096, None, Some(4096)),
    ] {
        let q = &record(device, &["-s", "none", "--kernel", kernel])["queue"];
        let number = |name: &str| q[name].as_u64();
        assert_eq!(
            (
                number("max_sectors_kb"),
                number("max_segments"),
                number("largest_kb")
            ),
            (Some(max), list, largest),
            "{kernel} {device}"
        );
        assert_eq!(number("read_ahead_kb"), Some(128), "{kernel}");
    }
    let q = record(NVME, &["-s", "none"])["queue"].clone();
    assert!(
        q["hw_queues"].as_u64() > Some(1) && q["nr_requests"].as_u64() > Some(100),
        "{q}"
    );
    let text = good(&[
        "run",
        "seeker:seconds=1s",
        "-d",
        SATA,
        "-s",
        "none,bfq",
        "--seeds",
        "1",
        "-q",
        "--details",
    ]);
    assert!(
        words(&text).contains(
            "Queue of bfq: max_sectors_kb 1280, scatter list of 168 entries, so requests of 672 KiB \
             at most, nr_requests 62, read_ahead_kb 128, depth 31, 1 hardware queue."
        ),
        "{text}"
    );
}

/// All names of one kernel give the same run.
#[test]
fn all_names_of_a_kernel_give_the_same_run() {
    let of = |more: &[&str]| {
        let mut r = record(SATA, more);
        r["scheduler"]["spec"] = Value::Null;
        r["spec"]["label"] = Value::Null;
        r
    };
    let told = of(&["-s", "bfq", "--kernel", "5.15"]);
    assert_eq!(told["scheduler"]["version"], "6.1");
    assert_eq!(told["scheduler"]["kernel"], "6.1");
    assert_eq!(told["spec"]["machine"]["kernel"], "6.1");
    assert_eq!(of(&["-s", "bfq-5.15"]), told);
    assert_eq!(
        of(&["-s", "bfq-5.15.0-91-generic", "--kernel", "5.15"]),
        told
    );
    let machine = of(&["-s", "bfq-6.1", "--machine", "kernel=5.15"]);
    assert_eq!(machine, told);
    // A scheduler that belongs to no kernel runs in the requested layer.
    let turns = of(&["-s", "turns", "--kernel", "6.18"]);
    assert_eq!(turns["scheduler"]["kernel"], "6.18");
    assert_eq!(turns["scheduler"]["version"], "1");
    assert_eq!(turns["queue"]["max_sectors_kb"], 4096);
    // The rules of `none` in 6.16 are those of 6.12, but the block layer of 6.16 differs.
    let none = of(&["-s", "none-6.16"]);
    assert_eq!(
        (&none["scheduler"]["version"], &none["scheduler"]["kernel"]),
        (&"6.12".into(), &"6.16".into())
    );
}

#[test]
fn substituted_kernel_version_is_reported() {
    let args = ["run", "seeker:seconds=1s", "-d", SATA, "--seeds", "1", "-q"];
    let told = |more: &[&str]| words(&good(&[&args[..], more].concat()));
    let text = told(&["-s", "mq-deadline", "--kernel", "6.8"]);
    assert!(text.contains("Kernel 6.8: modelled as 6.12."), "{text}");
    assert!(told(&["-s", "mq-deadline-6.8"]).contains("Kernel 6.8: modelled as 6.12."));
    let text = told(&["-s", "mq-deadline,bfq", "--kernel", "5.4"]);
    assert!(
        text.contains("Kernel 5.4: modelled as 6.1, mq-deadline as 5.10; bfq changed in most"),
        "{text}"
    );
    assert!(!told(&["-s", "mq-deadline", "--kernel", "6.12"]).contains("modelled as"));
    // Without a list of schedulers, those that the kernel ships are used.
    let doc = json(&[
        "run",
        "seeker:seconds=1s",
        "--seeds",
        "1",
        "--json",
        "-q",
        "--kernel",
        "2.6.24",
    ]);
    let names: Vec<&str> = doc["records"]
        .as_array()
        .expect("records")
        .iter()
        .map(|r| r["scheduler"]["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["cfq", "noop", "deadline", "anticipatory"]);
    let here = told(&["-s", "none", "--kernel", "here"]);
    assert!(
        here.contains("Kernel ") && here.contains(": modelled as "),
        "{here}"
    );
}

#[test]
fn invalid_or_contradictory_kernels_are_rejected_with_a_remedy() {
    let run = ["run", "seeker:seconds=1s", "-d", SATA];
    for (more, says) in [
        (
            &["--kernel", "6"][..],
            "\"6\" is not a kernel release: write 6.8",
        ),
        (&["--kernel", "latest"], "or here for the running kernel"),
        (&["--kernel", "2.6.9"], "kernel 2.6.9 is older than 2.6.18"),
        (&["--kernel", "68.1"], "kernel 68.1 is newer than 7.0"),
        (
            &["--kernel", "6.8", "-s", "cfq"],
            "cfq was removed in 5.0: kernel 6.8 has none, mq-deadline",
        ),
        (
            &["-s", "bfq-4.11"],
            "bfq came with 4.12: kernel 4.11 has noop",
        ),
        (
            &["--kernel", "6.8", "-s", "none-6.1"],
            "none-6.1 belongs to kernel 6.1, but the requested kernel is 6.8",
        ),
        (
            &["--kernel", "6.8", "--machine", "phoronix-2012"],
            "the machine has kernel 3.4",
        ),
        (
            &["--machine", "kernel=new"],
            "\"new\" is not a kernel release",
        ),
    ] {
        let r = seekwell(&[&run[..], more].concat());
        assert!(
            r.code != 0 && words(&r.err).contains(says),
            "{more:?}: {}",
            r.err
        );
    }
    // An experiment file gives the same runs.
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("e.toml");
    let text = |kernel: &str, scheduler: &str| {
        format!(
            "[experiment]\nname = \"k\"\nkernel = \"{kernel}\"\nrepeats = 2\n[device]\nuse = \
             \"{SATA}\"\n[scheduler]\nuse = \"{scheduler}\"\n[workload]\nuse = \"seeker\"\nseconds = \"1s\"\n"
        )
    };
    let path_text = path.display().to_string();
    let results = dir.path().join("r").display().to_string();
    std::fs::write(&path, text("6.8", "cfq")).expect("written");
    let refused = |says: &[&str]| {
        let r = seekwell(&["compare", &path_text]);
        assert!(
            r.code == 2 && says.iter().all(|s| words(&r.err).contains(s)),
            "{}",
            r.err
        );
    };
    refused(&["cfq was removed in 5.0"]);
    std::fs::write(&path, text("eleven", "none")).expect("written");
    refused(&[
        "e.toml: line 3, column 10",
        "\"eleven\" is not a kernel release",
    ]);
    std::fs::write(&path, text("6.8", "bfq")).expect("written");
    let told = words(&good(&["compare", &path_text, "--results", &results, "-q"]));
    assert!(
        told.contains("Kernel 6.8: modelled as 6.12; the changes of bfq"),
        "{told}"
    );
    assert!(
        told.contains("Writeback throttling (wbt_lat_usec): bfq off."),
        "{told}"
    );
}

const READER: &str = "interactive:size=8m,bulk=64m,seconds=2s";

#[test]
fn results_report_the_wbt_setting_of_each_scheduler() {
    let on = "Writeback throttling (wbt_lat_usec): ";
    let hdd = ["-d", "hdd:hitachi-7k200", "-q"];
    let of = |args: &[&str]| words(&good(args));
    let text = of(&[
        &[
            "compare",
            "-w",
            READER,
            "--seeds",
            "2",
            "-s",
            "none,cfq,bfq",
        ],
        &hdd[..],
    ]
    .concat());
    assert!(
        text.contains(&format!("{on}none 75000; bfq off.")),
        "{text}"
    );
    let text = of(&[
        &[
            "run",
            READER,
            "--seeds",
            "1",
            "-s",
            "none:wbt_lat_usec=0,bfq:wbt_lat_usec=75001",
        ],
        &hdd[..],
    ]
    .concat());
    assert!(
        text.contains(&format!(
            "{on}none:wbt_lat_usec=0 off; bfq:wbt_lat_usec=75001 75001."
        )),
        "{text}"
    );
    let text = of(&[
        "arena",
        "none",
        "--device",
        SATA,
        "--workload",
        "fs-mark:files=3",
        "--seeds",
        "2",
        "-q",
    ]);
    assert!(
        text.contains(&format!(
            "{on}none, mq-deadline, kyber, adios 2000; bfq, turns off."
        )),
        "{text}"
    );
    let trace = crate::project("crates/seekwell-trace/tests/data/ftrace-6.18.txt");
    let text = of(&[
        "replay", &trace, "-d", SATA, "-s", "none,bfq", "--seeds", "1", "-q",
    ]);
    assert!(text.contains(&format!("{on}none 2000; bfq off.")), "{text}");
}

/// Under bfq, the kernel ignores a write of the value that it remembers.
#[test]
fn ineffective_wbt_target_is_reported() {
    let text = words(&good(&[
        "run",
        READER,
        "-d",
        SATA,
        "--seeds",
        "1",
        "-q",
        "-s",
        "bfq:wbt_lat_usec=2000,bfq:wbt_lat_usec=2001",
    ]));
    assert!(
        text.contains(
            "bfq:wbt_lat_usec=2000 off; bfq:wbt_lat_usec=2001 2001. bfq:wbt_lat_usec=2000 had no \
             effect: bfq keeps throttling off"
        ) && text.contains("write 2001."),
        "{text}"
    );
}

/// Each scheduler runs with throttling off and on. The answer says whether the scheduler or the
/// throttling causes the lead.
#[test]
fn recommendation_separates_throttling_from_scheduler_effect() {
    let args = [
        "recommend",
        "-w",
        "interactive:size=64m,bulk=128m,seconds=3s",
        "-d",
        "ssd:sata-tlc-1t",
    ];
    let more = [
        "-s",
        "mq-deadline,bfq",
        "--kernel",
        "6.18",
        "--seeds",
        "3",
        "--json",
        "-q",
    ];
    let doc = json(&[&args[..], &more].concat());
    let a = &doc["recommendations"][0];
    let said = a["throttling"].as_str().expect("a sentence");
    assert!(
        said.contains("times ahead of itself with throttling off"),
        "{a}"
    );
    let notes = doc["notes"].as_str().expect("notes");
    assert!(
        notes.contains(
            "Writeback throttling (wbt_lat_usec): mq-deadline 2000; bfq, mq-deadline:wbt_lat_usec=0 \
             off; bfq:wbt_lat_usec=2001 2001."
        ),
        "{notes}"
    );
}
