//! Tests reports of traces, recommendations, and the pages of a command's runs.

use crate::{good, project, scratch, seekwell};
use serde_json::Value;

fn kernel_trace() -> String {
    project("crates/seekwell-trace/tests/data/ftrace-6.18.txt")
}

#[test]
fn trace_report_fits_one_screen_and_has_four_formats() {
    let trace = kernel_trace();
    let screen = good(&["report", &trace]);
    assert!(screen.lines().count() <= 24, "{screen}");
    for word in ["Q2G", "D2C", "Q2C", "SEQUENTIAL", "writer"] {
        assert!(screen.contains(word), "no {word} in\n{screen}");
    }
    let doc: Value = serde_json::from_str(&good(&["report", &trace, "--json"])).expect("JSON");
    let queued = doc["trace"]["merges"]["queued"].as_u64().expect("a number");
    assert!(queued > 5, "{queued}");
    let details = good(&["report", &trace, "--details"]);
    assert!(details.contains("Place against time"), "{details}");
    let page = scratch("trace.html", b"");
    good(&["report", &trace, "-o", &page]);
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(html.contains("<svg") && !html.contains("<script"));
    let md = scratch("trace.md", b"");
    good(&["report", &trace, "-o", &md]);
    let md = std::fs::read_to_string(&md).expect("Markdown");
    assert_eq!(md, good(&["report", &trace, "--markdown"]));
    assert!(md.contains("| Q2C |"), "{md}");
    // Every number in the phases of the page is in the document.
    let phases = doc["trace"]["phases"].as_array().expect("phases");
    for p in phases {
        let n = p["n"].as_u64().expect("a count");
        assert!(html.contains(&format!(">{n}</td>")), "{p}");
    }
}

#[test]
fn unknown_report_inputs_are_rejected() {
    let text = scratch("nothing.txt", b"one two three\nfour\n");
    for args in [&["report", &*text][..], &["recommend", &*text]] {
        let r = seekwell(args);
        assert_eq!(r.code, 2, "{args:?}: {}", r.err);
        assert!(r.err.contains("nothing.txt"), "{}", r.err);
    }
    let r = seekwell(&["report", "no-such-folder"]);
    assert!(r.code == 2 && r.err.contains("no-such-folder"), "{}", r.err);
}

#[test]
fn recommendation_has_evidence_and_a_command() {
    let csv = "scheduler,workload,device,value,unit,better\n".to_owned();
    let rows = |scheduler: &str, base: f64| -> String {
        let row = |i: u32| {
            let value = base * (1.0 + 0.002 * f64::from(i % 3));
            format!("{scheduler},copy,sda,{value},MB/s,higher\n")
        };
        (0..8).map(row).collect()
    };
    let faster = csv.clone() + &rows("mq-deadline", 100.0) + &rows("bfq", 130.0);
    let faster = scratch("faster.csv", faster.as_bytes());
    let doc: Value = serde_json::from_str(&good(&["recommend", &faster, "--json"])).expect("JSON");
    let r = &doc["recommendations"][0];
    assert_eq!(r["decision"], "change", "{doc}");
    assert_eq!(
        (&r["scheduler"], &r["matters"]),
        (&"bfq".into(), &true.into())
    );
    let command = r["apply"]["command"].as_str().expect("a line");
    assert!(
        command.starts_with("seekwell apply bfq --device"),
        "{command}"
    );
    let text = good(&["recommend", &faster]);
    assert!(
        text.contains("Take bfq") && text.contains(command),
        "{text}"
    );
    let same = csv + &rows("mq-deadline", 100.0) + &rows("bfq", 100.1);
    let same = scratch("same.csv", same.as_bytes());
    let text = good(&["recommend", &same]);
    assert!(text.contains("It does not matter here"), "{text}");
    let r = seekwell(&["recommend", &same, "--workload", "cpoy"]);
    assert!(r.code == 2 && r.err.contains("there are copy"), "{}", r.err);
}

#[test]
fn report_option_writes_a_page_of_the_runs() {
    let page = |name: &str, args: &[&str]| {
        let file = scratch(name, b"");
        good(&[args, &["--report", &file]].concat());
        std::fs::read_to_string(file).expect("a page")
    };
    let five = project("cases/five.csv");
    let html = page("five.html", &["explain", &five, "--scheduler", "deadline"]);
    assert!(
        html.contains("<svg") && html.contains("fifo-head"),
        "steps and picture"
    );
    let html = page("demo.html", &["demo", "cfq-idle-class"]);
    assert!(
        html.contains("<svg") && html.contains("Holds:"),
        "claim and picture"
    );
}

/// Returns the scenes of the replay in a page.
fn scenes(html: &str) -> Vec<Value> {
    let own = html.split("id=\"sw-index\">").nth(1).expect("an index");
    let own = own.split("</script>").next().expect("its end");
    let index: Value = serde_json::from_str(own).expect("JSON");
    index["scenes"].as_array().expect("scenes").clone()
}

#[test]
fn report_page_contains_the_replay_and_no_temporary_files_remain() {
    let tmp = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("page-tmp");
    std::fs::create_dir_all(&tmp).expect("a directory");
    let programs = [
        "--device",
        "hdd:hitachi-7k200",
        "-s",
        "noop,cfq",
        "--seeds",
        "2",
        "-q",
    ];
    let trace = kernel_trace();
    for (name, first) in [
        ("run.html", &["run", "fs-mark:files=10"][..]),
        (
            "compare.html",
            &["compare", "-w", "fs-mark:files=10", "-w", "hdparm"],
        ),
        ("replay.html", &["replay", &trace]),
    ] {
        let page = scratch(name, b"");
        let mut c = crate::command(&[first, &programs, &["--report", &page]].concat());
        let o = c.env("TMPDIR", &tmp).output().expect("the binary runs");
        assert!(o.status.success(), "{name}: {o:?}");
        let html = std::fs::read_to_string(page).expect("a page");
        assert!(html.contains("hitachi-7k200"), "{name}");
        let scenes = scenes(&html);
        assert!(!scenes.is_empty(), "{name}");
        for s in &scenes {
            let lanes = s["lanes"].as_array().expect("lanes");
            assert_eq!(lanes.len(), 2, "{name}: {s}");
            for lane in lanes {
                let part = lane["part"].as_str().expect("a part");
                assert!(
                    html.contains(&format!("id=\"sw-{part}\"")),
                    "{name}: {part}"
                );
            }
        }
        let left = std::fs::read_dir(&tmp).expect("the directory");
        assert_eq!(left.count(), 0, "{name}");
    }
    // The page shows the window that the user requests. A window without recorded events is
    // refused.
    let page = scratch("window.html", b"");
    let window = ["--window", "1s,500ms", "--report", &page];
    good(&[&["run", "random-read:seconds=2s"][..], &programs, &window].concat());
    let html = std::fs::read_to_string(page).expect("a page");
    assert_eq!(scenes(&html)[0]["from"], 1_000_000_000);
    let r = seekwell(&[&["run", "hdparm"][..], &programs, &["--window", "1s"]].concat());
    assert!(r.code == 2 && r.err.contains("--report"), "{}", r.err);
}

#[test]
fn experiment_file_with_report_option_writes_a_page() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("filed");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("the last run's results go");
    }
    let folder = folder.display().to_string();
    let experiment = "[experiment]\nname = \"filed\"\nrepeats = 3\n\
                      [[device]]\nuse = \"hdd:hitachi-7k200\"\n\
                      [[scheduler]]\nuse = \"none\"\n[[scheduler]]\nuse = \"bfq\"\n\
                      [[workload]]\nuse = \"fs-mark\"\nfiles = 10\n";
    let file = scratch("filed.toml", experiment.as_bytes());
    let (own, later) = (scratch("filed.html", b""), scratch("later.html", b""));
    good(&[
        "compare",
        &file,
        "--results",
        &folder,
        "--report",
        &own,
        "-q",
    ]);
    good(&["report", &folder, "-o", &later, "-q"]);
    let read = |path: &str| std::fs::read_to_string(path).expect("a page");
    let (own, later) = (scenes(&read(&own)), scenes(&read(&later)));
    assert_eq!(own.len(), 1);
    assert_eq!(own, later, "the same replay as of the folder");
}

/// Runs with a warm-up are repeated for the page like all other runs.
#[test]
fn runs_with_warm_up_are_repeated_for_the_page() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("warmed");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("the last run's results go");
    }
    let folder = folder.display().to_string();
    let experiment = "[experiment]\nname = \"warmed\"\nseed = 3\nrepeats = 2\nwarmup = \"1s\"\n\
                      [[device]]\nuse = \"ssd:sata3-256-2011\"\n\
                      [[scheduler]]\nuse = \"none\"\n[[scheduler]]\nuse = \"mq-deadline\"\n\
                      [[workload]]\nuse = \"interactive\"\nseconds = \"5s\"\n\
                      size = \"64m\"\nbulk = \"128m\"\n";
    let file = scratch("warmed.toml", experiment.as_bytes());
    good(&["compare", &file, "--results", &folder, "-q"]);
    let page = scratch("warmed.html", b"");
    let r = seekwell(&["report", &folder, "-o", &page]);
    assert_eq!(r.code, 0, "{}", r.err);
    let html = std::fs::read_to_string(page).expect("a page");
    for text in [&r.err, &html] {
        assert!(!text.contains("gives other figures"), "{}", r.err);
    }
    assert!(
        html.contains("Left out as warm-up: 1 s of"),
        "the page says it"
    );
}
