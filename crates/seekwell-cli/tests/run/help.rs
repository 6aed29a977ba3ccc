//! Tests the short help of the commands with the most options.

use crate::{command, ran};

/// Returns the output of `-h` on a terminal of 80 columns.
fn short(name: &str) -> String {
    let o = command(&[name, "-h"]).env("COLUMNS", "80").output();
    let r = ran(o.expect("it runs"));
    assert_eq!((r.code, &*r.err), (0, ""), "{name}");
    r.out
}

/// Returns the options in a text, in their order.
fn options(text: &str) -> Vec<&str> {
    let starts = |l: &&str| l.trim_start().starts_with('-') && l.starts_with("  ");
    text.lines()
        .filter(starts)
        .filter_map(|l| l.split_whitespace().find(|w| w.starts_with("--")))
        .collect()
}

#[test]
fn short_help_is_grouped_and_fits_45_lines() {
    for (name, first, groups) in [
        (
            "compare",
            ["--workload", "--device", "--schedulers"],
            ["Modelled machine:", "Results and pages:", "For real:"],
        ),
        (
            "run",
            ["--device", "--schedulers", "--param"],
            ["Modelled machine:", "Results and pages:", "For real:"],
        ),
        (
            "replay",
            ["--device", "--schedulers", "--mode"],
            ["Results and pages:", "Trace:", "General:"],
        ),
    ] {
        let text = short(name);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() <= 45, "{name}: {} lines\n{text}", lines.len());
        let wide = lines.iter().map(|l| l.chars().count()).max();
        assert!(wide <= Some(80), "{name}\n{text}");
        let options = options(&text);
        assert_eq!(options[..3], first, "{name}\n{text}");
        assert_eq!(options.last(), Some(&"--color"), "{name}\n{text}");
        for group in groups {
            assert!(lines.contains(&group), "{name}: {group}\n{text}");
        }
        // The examples follow all options. After the examples there is only the reference to the
        // long help.
        let (before, examples) = text.split_once("\nExamples:\n").expect("examples");
        assert!(before.contains("--color"), "{name}\n{text}");
        let examples: Vec<&str> = examples.lines().collect();
        let (last, examples) = examples.split_last().expect("examples");
        assert_eq!(*last, format!("All options: seekwell {name} --help"));
        let own = format!("seekwell {name} ");
        assert!(!examples.is_empty() && examples.iter().all(|e| e.contains(&own)));
    }
}

/// The long help contains the options that the short help leaves out.
#[test]
fn long_help_lists_every_option() {
    for name in ["compare", "run", "replay"] {
        let r = ran(command(&[name, "--help"]).output().expect("it runs"));
        for option in [
            "--seed ",
            "--hz ",
            "--nr-requests ",
            "--events ",
            "--window ",
        ] {
            assert!(r.out.contains(option), "{name}: {option}");
            assert!(!short(name).contains(option), "{name}: {option}");
        }
    }
}
