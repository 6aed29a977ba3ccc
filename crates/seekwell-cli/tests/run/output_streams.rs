//! Tests pipes, files and colours.

use crate::{command, good, project, scratch, seekwell};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

#[test]
fn closed_output_pipe_is_no_error() {
    let file = project("crates/seekwell-sim/tests/decisions/deadline-4.0.jsonl.zst");
    let mut child = command(&["explain", &file, "--all", "--csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert_eq!(first, "id,t_ns,event\n");
    let o = child.wait_with_output().unwrap();
    assert_eq!(o.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&o.stderr), "");
}

#[test]
fn unwritable_output_is_reported() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(full) = full else {
        println!("skipped: no /dev/full here");
        return;
    };
    let o = command(&["schedulers"]).stdout(full).output().unwrap();
    assert_eq!(o.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&o.stderr).contains("cannot be written"));
    let r = seekwell(&["schedulers", "-o", "/nonexistent/dir/file"]);
    assert_eq!(r.code, 3);
    assert!(r.err.contains("/nonexistent/dir/file"));
}

#[test]
fn output_file_is_replaced_atomically() {
    let path = scratch("list.txt", b"old");
    let dir = Path::new(&path).parent().unwrap();
    assert_eq!(good(&["schedulers", "-o", &path]), "");
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        good(&["schedulers"])
    );
    // A failed command does not change an existing file.
    let bad = scratch("whole.csv", b"0,1,1,R,0,8\n");
    let r = seekwell(&["explain", &bad, "-s", "mq-deadline", "-o", &path]);
    if r.code != 0 {
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            good(&["schedulers"])
        );
    }
    let parts = std::fs::read_dir(dir).unwrap().filter(|f| {
        let name = f.as_ref().unwrap().file_name();
        name.to_string_lossy().contains("list.txt.")
    });
    assert_eq!(parts.count(), 0, "no temporary file stays behind");
}

#[test]
fn colours_are_used_only_on_request_or_on_a_terminal() {
    let escapes = |text: &str| text.contains('\u{1b}');
    assert!(!escapes(&good(&["schedulers"])), "not into a pipe");
    assert!(escapes(&good(&["schedulers", "--color", "always"])));
    let o = command(&["schedulers"])
        .env("CLICOLOR_FORCE", "1")
        .output()
        .unwrap();
    assert!(escapes(&String::from_utf8_lossy(&o.stdout)));
    let o = command(&["schedulers"])
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(!escapes(&String::from_utf8_lossy(&o.stdout)));
}

#[test]
fn help_and_version_go_to_stdout_with_exit_code_0() {
    assert!(good(&["--version"]).starts_with("seekwell "));
    let help = good(&["--help"]);
    assert!(help.contains("Exit codes:") && help.contains("130"));
    let r = seekwell(&[]);
    assert_eq!(r.code, 2, "no command is a usage error");
}

#[test]
fn quiet_suppresses_everything_but_the_result() {
    let file = project("crates/seekwell-sim/tests/decisions/noop.jsonl.zst");
    let loud = seekwell(&["explain", &file]);
    let quiet = seekwell(&["explain", &file, "--quiet"]);
    assert!(loud.err.contains("--case NAME"));
    assert_eq!((quiet.code, &*quiet.err), (0, ""));
    assert_eq!(loud.out, quiet.out);
}
