//! `seekwell trial --simulated`, from the plan to the recommendation. tests/live tries the command on
//! real devices.

use crate::{good, seekwell};
use seekwell_lab::results::read;
use seekwell_lab::trial::timeline;
use std::path::PathBuf;

fn folder(name: &str) -> (String, PathBuf) {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    (dir.display().to_string(), dir)
}

/// Runs a command that must be refused, and returns its message.
fn refused(args: &[&str]) -> String {
    let r = seekwell(args);
    assert_eq!((r.code, &*r.out), (2, ""), "{args:?}: {}", r.err);
    r.err
}

const TRIAL: [&str; 10] = [
    "trial",
    "--simulated",
    "-s",
    "mq-deadline,bfq",
    "-w",
    "fsync-latency:bulk=32m",
    "--for",
    "150s",
    "--baseline",
    "10s",
];
const SHORT: [&str; 6] = ["--period", "8s", "--washout", "3s", "--guard", "0"];

#[test]
fn simulated_trial_is_stored_reported_and_repeatable() {
    let (to, dir) = folder("trial");
    let page = dir.with_extension("html");
    let words = [&TRIAL[..], &SHORT, &["--results", &to]].concat();
    let r = seekwell(&[&words[..], &["--report", &page.display().to_string()]].concat());
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(r.err.contains("6 blocks of 2 periods"), "{}", r.err);
    assert!(r.out.contains("write mean, ms"), "{}", r.out);
    assert!(r.out.contains("whose scheduler was switched"), "{}", r.out);
    let results = read(&dir).expect("complete");
    assert_eq!((results.cells.len(), results.runs.len()), (1, 12));
    assert_eq!(results.about.source, "trial");
    // The periods follow each other, and the washouts do not count.
    let t = timeline(&dir, &results)
        .expect("readable")
        .expect("a trial");
    assert_eq!((t.metric.as_str(), t.periods.len()), ("write mean, ms", 12));
    for (i, p) in t.periods.iter().enumerate() {
        let from = 11.0 * i as f64;
        assert!((p.from_s - from).abs() < 1e-6, "{p:?}");
        assert!((p.counts_from_s - from - 3.0).abs() < 1e-6, "{p:?}");
        assert!((p.to_s - from - 11.0).abs() < 1e-6, "{p:?}");
        let value = p.value.expect("a value");
        let (sum, n) = p
            .seconds
            .iter()
            .fold((0.0, 0.0), |s, v| (s.0 + v.1, s.1 + 1.0));
        assert!(n >= 4.0 && sum / n < 20.0 * value, "{p:?}");
        assert!(
            p.seconds
                .iter()
                .all(|s| (p.counts_from_s..p.to_s).contains(&s.0))
        );
    }
    let html = std::fs::read_to_string(page).expect("written");
    assert!(html.contains("id=\"timeline\"") && html.contains("data:image/svg+xml"));
    let advice = good(&["recommend", &to]);
    assert!(!advice.contains("Not compared"), "{advice}");
    // The seed determines everything.
    let (again, other) = folder("trial-again");
    let json = good(&[&TRIAL[..], &SHORT, &["--results", &again, "-q", "--json"]].concat());
    assert!(json.contains(r#""command": "trial""#), "{json}");
    for file in ["results.json", "series.parquet", "records.parquet"] {
        let bytes = |dir: &PathBuf| std::fs::read(dir.join(file)).expect("written");
        assert_eq!(bytes(&dir), bytes(&other), "{file}");
    }
    // A trial is not resumed.
    let e = refused(&words);
    assert!(e.contains("cannot be resumed"), "{e}");
}

#[test]
fn impossible_simulated_trials_are_refused_at_once() {
    for (more, why) in [
        (&["--for", "60s"][..], "6 blocks of 2 schedulers"),
        (&["-s", "cfq,bfq"], "single-queue"),
        (
            &["-s", "bfq:wbt_lat_usec=0,none"],
            "also affects the later ones",
        ),
        (&["-d", "nothing"], "nothing"),
        (&["-w", "nothing"], "nothing"),
        (
            &["--metric", "rate:cat /proc/uptime"],
            "only the built-in metrics",
        ),
        (&["--guard", "0.5"], "a number above 1"),
        (&["--period", "1s", "--guard-for", "9s"], "would never act"),
    ] {
        let mut words: Vec<&str> = vec!["trial", "--simulated", "--baseline", "5s"];
        let given = |option: &str| more.contains(&option);
        for (option, value) in [("-s", "none,bfq"), ("--for", "200s")] {
            words.extend([option, value].into_iter().filter(|_| !given(option)));
        }
        let e = refused(&[&words[..], more].concat());
        assert!(e.contains(why), "{more:?}: {e}");
    }
    let e = refused(&["trial", "-d", "hdd:hitachi-7k200", "/nowhere"]);
    assert!(e.contains("--simulated"), "{e}");
}
