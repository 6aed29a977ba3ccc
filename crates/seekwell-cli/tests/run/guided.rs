//! Builds for use are laid out by the profile of `pgo/`, with the compiler that it is of.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn project(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// What the profile is of: release and host of a compiler.
fn of() -> (String, String) {
    let text = fs::read_to_string(project("pgo/compiler")).expect("it is there");
    let (host, release) = text.trim().split_once(' ').expect("two words");
    (host.to_owned(), release.to_owned())
}

/// The flags and the messages that a command gets with a compiler that says so of itself.
fn flags(release: &str, env: &[(&str, &str)]) -> (Option<String>, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let rustc = dir.path().join("rustc");
    let (host, _) = of();
    let says = format!("#!/bin/sh\nprintf 'rustc\\nhost: {host}\\nrelease: {release}\\n'\n");
    fs::write(&rustc, says).expect("written");
    fs::set_permissions(&rustc, fs::Permissions::from_mode(0o755)).expect("runs");
    let path = std::env::var("PATH").unwrap_or_default();
    let o = Command::new("bash")
        .arg(project("scripts/guided.sh"))
        .args(["printenv", "CARGO_ENCODED_RUSTFLAGS"])
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .env_remove("SEEKWELL_PLAIN")
        .env("PATH", format!("{}:{path}", dir.path().display()))
        .envs(env.iter().copied())
        .output()
        .expect("bash");
    let said = String::from_utf8(o.stdout).expect("text");
    let found = o.status.success().then(|| said.trim_end().to_owned());
    (found, String::from_utf8(o.stderr).expect("text"))
}

#[test]
fn builds_for_use_have_the_profile_behind_flags_of_ones_own() {
    let (_, release) = of();
    let (given, said) = flags(&release, &[("RUSTFLAGS", "-Copt-level=2  -g")]);
    assert_eq!(said, "");
    let given = given.expect("flags");
    let each: Vec<&str> = given.split('\u{1f}').collect();
    assert_eq!(each[..2], ["-Copt-level=2", "-g"]);
    let file = each[2].strip_prefix("-Cprofile-use=").expect("a profile");
    let profile = fs::read(file).expect("it is there");
    assert_eq!(
        profile[..8],
        *b"\xfflprofi\x81",
        "an indexed profile of LLVM"
    );
    assert!(each.ends_with(&["--cfg", "seekwell_guided"]), "{each:?}");
    let (given, _) = flags(&release, &[]);
    assert!(given.expect("flags").starts_with("-Cprofile-use="));
    let (given, _) = flags(&release, &[("CARGO_ENCODED_RUSTFLAGS", "-Copt-level=2")]);
    assert!(
        given
            .expect("flags")
            .starts_with("-Copt-level=2\u{1f}-Cprofile-use=")
    );
}

#[test]
fn another_compiler_builds_without_and_says_so() {
    let (given, said) = flags("1.200.0", &[]);
    assert_eq!(given, None);
    let (host, release) = of();
    assert!(said.contains(&format!("{host} {release}")), "{said}");
    assert!(said.contains("1.200.0"), "{said}");
}

#[test]
fn who_wants_a_plain_build_gets_one() {
    let (_, release) = of();
    let plain = flags(&release, &[("SEEKWELL_PLAIN", "1")]);
    assert_eq!(plain, (None, String::new()));
}

/// A newer compiler comes with a newer profile: `make profile`.
#[test]
fn the_profile_is_of_the_compiler_that_is_pinned() {
    let pinned = fs::read_to_string(project("rust-toolchain.toml")).expect("it is there");
    let (_, release) = of();
    assert!(
        pinned.contains(&format!("channel = \"{release}\"")),
        "{release}"
    );
}
