//! Runs the built binary as users do.

mod apply;
mod author_commands;
mod bad_input;
mod bounds;
mod calibrate;
mod compare;
mod convert;
mod defaults;
mod experiment;
mod explain;
mod full_disk;
mod golden;
mod help;
mod host;
mod imports;
mod independent_figures;
mod install;
mod interrupted;
mod json;
mod kernels;
mod kills;
mod limits;
mod names;
mod new;
mod output_streams;
mod plot;
mod predict;
mod profile_guided;
mod readme;
mod real;
mod recorded_command;
mod registries;
mod replay;
mod report;
mod reproduce;
mod results;
mod safety;
mod screen;
mod spec;
mod stored_results;
mod trial;
mod watched_run;
mod workloads;
mod wrong;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Result of a run of `seekwell`.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// Returns a command that runs the binary with these arguments and a fixed environment.
fn command(args: &[&str]) -> Command {
    // A background job ignores SIGINT, and so do its child processes. The command resets this.
    let mut c = Command::new("env");
    c.args([
        "--default-signal=INT,TERM,HUP",
        env!("CARGO_BIN_EXE_seekwell"),
    ])
    .args(args)
    .env_remove("NO_COLOR")
    .env_remove("CLICOLOR_FORCE")
    .env("COLUMNS", "100")
    .stdin(Stdio::null());
    c
}

fn ran(o: Output) -> Ran {
    Ran {
        // A process that a signal has ended has no exit code. That is always a failure.
        code: o.status.code().expect("ended by itself"),
        out: String::from_utf8(o.stdout).expect("UTF-8"),
        err: String::from_utf8(o.stderr).expect("UTF-8"),
    }
}

/// Adds the option for one seed, if the command would use several seeds. Most tests are about other
/// things.
fn one_seed<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let several = matches!(args.first(), Some(&("compare" | "run" | "replay")))
        || matches!(args, ["demo", _, ..]);
    let said = ["--seeds", "--dir", "--repeats", "--"];
    let file = args.get(1).is_some_and(|a| a.ends_with(".toml"));
    let one = several && !file && !args.iter().any(|a| said.contains(a));
    let more: &[&str] = if one { &["--seeds", "1"] } else { &[] };
    [args, more].concat()
}

/// Runs the binary. It uses one seed, unless the arguments say otherwise.
fn seekwell(args: &[&str]) -> Ran {
    ran(command(&one_seed(args)).output().expect("the binary runs"))
}

/// Runs a command that must succeed without output on stderr.
fn good(args: &[&str]) -> String {
    let r = seekwell(args);
    assert_eq!((r.code, &*r.err), (0, ""), "{args:?}");
    r.out
}

/// A file of the project.
fn project(path: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(path).display().to_string()
}

/// Writes a file for one test, in a directory that cargo keeps for tests.
fn scratch(name: &str, content: &[u8]) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut f = std::fs::File::create(&path).expect("scratch file");
    f.write_all(content).expect("scratch file");
    path.display().to_string()
}
