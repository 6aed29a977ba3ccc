//! Release builds use the profile in `pgo/`, with the compiler that it belongs to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn project(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// Returns the version text of the compiler that made the profile.
fn profile_compiler() -> String {
    fs::read_to_string(project("pgo/compiler")).expect("it is there")
}

/// Runs scripts/guided.sh with a compiler that prints this version. Returns the flags that it sets,
/// and its messages.
fn flags(compiler: &str, env: &[(&str, &str)]) -> (Option<String>, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let rustc = dir.path().join("rustc");
    fs::write(&rustc, format!("#!/bin/sh\ncat <<'E'\n{compiler}E\n")).expect("written");
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
fn release_build_flags_add_the_profile_after_user_flags() {
    let (given, said) = flags(&profile_compiler(), &[("RUSTFLAGS", " -Copt-level=2  -g ")]);
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
    let (given, _) = flags(&profile_compiler(), &[]);
    assert!(given.expect("flags").starts_with("-Cprofile-use="));
    let (given, _) = flags(
        &profile_compiler(),
        &[("CARGO_ENCODED_RUSTFLAGS", "-Copt-level=2")],
    );
    assert!(
        given
            .expect("flags")
            .starts_with("-Copt-level=2\u{1f}-Cprofile-use=")
    );
}

#[test]
fn build_with_another_compiler_omits_the_profile_and_reports_it() {
    let (given, said) = flags("rustc 1.200.0\n", &[]);
    assert_eq!(given, None);
    let of = profile_compiler();
    assert!(said.contains(of.lines().next().expect("a line")), "{said}");
    assert!(said.contains("rustc 1.200.0"), "{said}");
}

#[test]
fn plain_build_omits_the_profile() {
    let plain = flags(&profile_compiler(), &[("SEEKWELL_PLAIN", "1")]);
    assert_eq!(plain, (None, String::new()));
}

/// A newer compiler needs a new profile, which `make profile` makes.
#[test]
fn profile_belongs_to_the_pinned_compiler() {
    let pinned = fs::read_to_string(project("rust-toolchain.toml")).expect("it is there");
    let of = profile_compiler();
    let release = of.lines().find_map(|l| l.strip_prefix("release: "));
    let channel = format!("channel = \"{}\"", release.expect("a release"));
    assert!(pinned.contains(&channel), "{channel}");
}
