//! Architecture rules that a test can check: directions of dependency, length of files, words.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "house/modules.rs"]
mod modules;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the workspace")
}

/// Returns the crates of the workspace, each with the workspace crates that it depends on.
/// Dependencies of tests are left out.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let mut all = all_dependencies();
    for of in all.values_mut() {
        of.retain(|n| n == "seekwell" || n.starts_with("seekwell-"));
    }
    all
}

/// Returns the same as `dependencies`, with external crates.
fn all_dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let out = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let meta: Value = serde_json::from_slice(&out.stdout).expect("cargo metadata");
    let packages = meta["packages"].as_array().expect("packages");
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let ours = |p: &Value| {
        let all = p["dependencies"].as_array().expect("dependencies").iter();
        let normal = all.filter(|d| d["kind"].is_null() || d["kind"] == "build");
        normal.map(|d| text(&d["name"])).collect()
    };
    packages
        .iter()
        .map(|p| (text(&p["name"]), ours(p)))
        .collect()
}

/// Returns the dependencies of each crate in the lock file of another workspace of this tree.
fn locked(workspace: &str) -> BTreeMap<String, BTreeSet<String>> {
    let file = root().join(workspace).join("Cargo.lock");
    let text = std::fs::read_to_string(file).expect("a lock file");
    let mut all = BTreeMap::new();
    for package in text.split("[[package]]").skip(1) {
        let name = package.split('"').nth(1).unwrap_or_default();
        let list = package.split_once("dependencies = [").map_or("", |p| p.1);
        // A name has its version after it if there are two.
        let names = list.lines().filter_map(|l| l.trim().strip_prefix('"'));
        let first = |l: &str| l.split(['"', ' ']).next().unwrap_or_default().to_owned();
        if (name == "seekwell" || name.starts_with("seekwell-")) && name != "seekwell-fuzz" {
            all.insert(name.to_owned(), names.map(first).collect());
        }
    }
    all
}

#[test]
fn fuzz_lock_file_is_up_to_date() {
    let all = all_dependencies();
    let locked = locked("fuzz");
    assert!(locked.contains_key("seekwell-trace"), "{locked:?}");
    for (name, of) in &locked {
        assert_eq!(
            Some(of),
            all.get(name),
            "{name}: cargo metadata --manifest-path fuzz/Cargo.toml"
        );
    }
}

/// The floors of the architecture. Crates on no floor (benchmarks) may use everything, but no crate
/// may use them.
const FLOORS: &[(&str, u32)] = &[
    ("seekwell-core", 0),
    ("seekwell-stats", 0),
    ("seekwell-files", 5),
    ("seekwell-sched", 10),
    ("seekwell-device", 10),
    ("seekwell-block", 15),
    ("seekwell-trace", 20),
    ("seekwell-workload", 20),
    ("seekwell-stack", 20),
    ("seekwell-calibrate", 25),
    ("seekwell-microscope", 25),
    ("seekwell-sim", 30),
    ("seekwell-server", 30),
    ("seekwell-guest", 30),
    ("seekwell-host", 30),
    ("seekwell", 35),
    ("seekwell-lab", 40),
    ("seekwell-evidence", 45),
    ("seekwell-report", 50),
    ("seekwell-cli", 60),
    ("seekwell-python", 60),
];

#[test]
fn crates_depend_only_on_lower_floors() {
    let floor = |name: &str| FLOORS.iter().find(|f| f.0 == name).map(|f| f.1);
    for (name, deps) in dependencies() {
        for d in deps {
            let below = floor(&d).unwrap_or_else(|| panic!("{name} uses {d}, which has no floor"));
            if let Some(own) = floor(&name) {
                assert!(
                    below < own,
                    "{name} (floor {own}) depends on {d} (floor {below})"
                );
            }
        }
    }
}

/// Returns the table of crates. It has the floor, the name and the description of each crate. The
/// highest floor comes first.
fn table_of_crates() -> String {
    let manifest = |name: &str| {
        let dir = match name {
            "seekwell-python" => "python".to_owned(),
            name => format!("crates/{name}"),
        };
        std::fs::read_to_string(root().join(dir).join("Cargo.toml")).expect(name)
    };
    let mut rows: Vec<&(&str, u32)> = FLOORS.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.1));
    let mut out = "| floor | crate | content |\n|---|---|---|\n".to_owned();
    for (name, floor) in rows {
        let text = manifest(name);
        let description = text
            .lines()
            .find_map(|l| l.strip_prefix("description = \""));
        let description = description.expect(name).trim_end_matches('"');
        out += &format!("| {floor} | `{name}` | {description} |\n");
    }
    out
}

/// `SEEKWELL_BLESS=1` writes the table into the page.
#[test]
fn contributing_lists_every_crate_with_its_floor() {
    let path = root().join("CONTRIBUTING.md");
    let page = std::fs::read_to_string(&path).expect("CONTRIBUTING.md");
    let start = page.find("| floor | crate |").expect("a table of crates");
    let end = start + page[start..].find("\n\n").expect("an end") + 1;
    let table = table_of_crates();
    if std::env::var_os("SEEKWELL_BLESS").is_some() {
        let text = format!("{}{table}{}", &page[..start], &page[end..]);
        std::fs::write(&path, text).expect("written");
        return;
    }
    assert_eq!(&page[start..end], table, "run with SEEKWELL_BLESS=1");
    let members = std::fs::read_dir(root().join("crates")).expect("crates");
    let names = members
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned());
    for name in names.filter(|n| n != "seekwell-bench") {
        assert!(table.contains(&format!("`{name}`")), "{name} has no floor");
    }
}

/// Private words, and the term of docs/glossary.md or the plain words that replace each.
const PRIVATE: &[(&str, &str)] = &[
    ("knows nothing", "null model"),
    ("know nothing", "null model"),
    ("andwriting", "the same requests under each scheduler"),
    ("a sitting", "session"),
    ("sittings of", "sessions"),
    ("made anew", "made again"),
    (" anew", "again"),
    (" of late ", "recently"),
    (" of late.", "recently"),
    (" of late,", "recently"),
    ("told of", "shown"),
    ("who asks for", "the submitter"),
    ("heeded", "applied"),
    ("a page a ", "one page per"),
    ("a row a ", "one row per"),
    ("a line a ", "one line per"),
    ("a section a ", "one section per"),
];

/// The glossary's terms are used in everything that people read: pages, help, messages, comments.
#[test]
fn documents_and_comments_avoid_private_words() {
    let read = |name: &str| {
        let rust = name.ends_with(".rs") && name.contains("/src/");
        let page = name.ends_with(".md") || name.contains("/page/src/") || name.ends_with(".html");
        rust || page
    };
    let mut bad = Vec::new();
    let mut seen = 0;
    for (name, text) in texts().iter().filter(|f| read(&f.0)) {
        seen += 1;
        for (i, line) in text.lines().enumerate() {
            let found = PRIVATE.iter().filter(|p| line.contains(p.0));
            bad.extend(found.map(|p| format!("{name}:{}: `{}`: write {}", i + 1, p.0, p.1)));
        }
    }
    assert!(seen > 500, "the walk found the pages and sources");
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// The glossary defines the terms that replace private words.
#[test]
fn glossary_defines_the_standard_terms() {
    let page = std::fs::read_to_string(root().join("docs/glossary.md")).expect("the glossary");
    for term in [
        "baseline",
        "null model",
        "confidence interval",
        "effect size",
        "held-out",
        "sensitivity analysis",
        "profile-guided optimisation",
        "starvation",
        "session",
        "snapshot",
    ] {
        assert!(page.contains(&format!("*{term}*")), "{term}");
    }
}

type Graph = BTreeMap<String, BTreeSet<String>>;

/// All workspace crates that a crate depends on, directly or indirectly.
fn below(all: &Graph, from: &str) -> BTreeSet<String> {
    let mut todo = vec![from.to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(name) = todo.pop() {
        if seen.insert(name.clone()) {
            todo.extend(all.get(&name).into_iter().flatten().cloned());
        }
    }
    seen.remove(from);
    seen
}

/// Returns the crates that depend on schedulers, directly or indirectly, although they must not.
fn crates_that_wrongly_use_schedulers(all: &Graph) -> Vec<String> {
    let blind = [
        "seekwell-core",
        "seekwell-device",
        "seekwell-trace",
        "seekwell-workload",
        "seekwell-stack",
    ];
    let knows = |from: &&&str| below(all, from).contains("seekwell-sched");
    blind.iter().filter(knows).map(|n| n.to_string()).collect()
}

/// Devices, traces, workloads and the stack above the queue do not depend on schedulers, directly
/// or indirectly.
#[test]
fn only_block_layers_and_crates_above_depend_on_schedulers() {
    let all = dependencies();
    for there in ["seekwell-core", "seekwell-device", "seekwell-sched"] {
        assert!(all.contains_key(there), "{there} is not in the workspace");
    }
    assert_eq!(
        crates_that_wrongly_use_schedulers(&all),
        [""; 0],
        "these crates use schedulers"
    );
    assert!(
        !below(&all, "seekwell-sched").contains("seekwell-device"),
        "schedulers must not use devices"
    );
    assert!(
        all["seekwell-core"].is_empty(),
        "the lowest crate must not depend on other crates of the workspace"
    );
}

/// The test above must detect a dependency that is added on purpose, direct or indirect.
#[test]
fn scheduler_dependency_check_detects_a_planted_dependency() {
    let plant = |from: &str, on: &str| {
        let mut all = dependencies();
        all.entry(from.into()).or_default().insert(on.into());
        crates_that_wrongly_use_schedulers(&all)
    };
    assert_eq!(
        plant("seekwell-device", "seekwell-sched")[0],
        "seekwell-device"
    );
    assert_eq!(
        plant("seekwell-device", "seekwell-block"),
        ["seekwell-device"],
        "through the block layer"
    );
    assert!(plant("seekwell-core", "seekwell-sched").len() >= 2);
    assert_eq!(plant("seekwell-device", "seekwell-core"), [""; 0]);
}

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for e in entries.filter_map(Result::ok) {
        let (path, name) = (e.path(), e.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            if !matches!(
                &*name,
                "target" | ".git" | ".venv" | "node_modules" | "decisions" | "corpus" | "artifacts"
            ) {
                files(&path, out);
            }
        } else if name != "Cargo.lock" && name != ".git" && !name.contains(".proptest-regressions")
        {
            out.push(path);
        }
    }
}

fn texts() -> Vec<(String, String)> {
    let root = root();
    let mut all = Vec::new();
    files(&root, &mut all);
    all.sort();
    let read = |p: PathBuf| {
        let name = p.strip_prefix(&root).unwrap_or(&p).display().to_string();
        Some((name, std::fs::read_to_string(&p).ok()?))
    };
    all.into_iter().filter_map(read).collect()
}

#[test]
fn source_files_and_lines_stay_within_length_limits() {
    let all = texts();
    assert!(all.len() > 50, "the walk found the sources");
    // Reports all offenders together.
    let mut bad = Vec::new();
    for (name, text) in all.iter().filter(|f| f.0.ends_with(".rs")) {
        let limit = if name.contains("/tests/") { 900 } else { 600 };
        let lines = text.lines().count();
        if lines > limit {
            bad.push(format!("{name} has {lines} lines: make it a folder"));
        }
        for (i, line) in text.lines().enumerate() {
            let n = line.chars().count();
            // rustfmt limits lines to 100 columns, except inside macros. Two kinds of lines may be
            // longer: tables in comments, and strings that must not be broken.
            let table = line.trim_start().starts_with("//") && line.contains(" | ");
            let free = table || line.contains("proptest_config");
            if n > 125 && !line.contains('"') && !free {
                bad.push(format!("{name}:{}: {n} columns", i + 1));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn sources_contain_no_unfinished_markers_or_local_paths() {
    // Split, so that this file does not contain the words.
    let words = [
        concat!("todo", "!("),
        concat!("unimpl", "emented!("),
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("#[ig", "nore"),
        concat!("db", "g!("),
        concat!("/wo", "rk/"),
        concat!(".lib", "rary/"),
        concat!("/ro", "ot/"),
    ];
    let mut bad = Vec::new();
    for (name, text) in texts() {
        for (i, line) in text.lines().enumerate() {
            let found = words.iter().filter(|w| line.contains(**w));
            bad.extend(found.map(|w| format!("{name}:{}: {w}", i + 1)));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn manifests_have_description_licence_and_lints() {
    let licensed = "license.workspace = true";
    for (name, text) in texts() {
        if name.starts_with("crates/") && name.ends_with("/Cargo.toml") {
            assert!(text.contains("description = \""), "{name}: description");
            assert!(text.contains(licensed), "{name}: licence");
            assert!(text.contains("[lints]\nworkspace = true"), "{name}: lints");
        }
    }
    for f in [
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ] {
        assert!(root().join(f).is_file(), "{f} is missing");
    }
}

/// Files that a crate includes at build time are inside its folder, so that it can be packaged.
/// (Tests may use other files: they run in the tree.)
#[test]
fn included_files_are_inside_their_crate() {
    let mut bad = Vec::new();
    for (name, text) in texts() {
        let Some(inside) = name.strip_prefix("crates/").filter(|n| n.contains("/src/")) else {
            continue;
        };
        // Number of folders between the file and the root of its crate.
        let depth = inside.matches('/').count() - 1;
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for macro_name in ["include_str!(\"", "include_bytes!(\"", "include!(\""] {
            for part in code.split(macro_name).skip(1) {
                if part
                    .split('"')
                    .next()
                    .unwrap_or_default()
                    .matches("../")
                    .count()
                    > depth
                {
                    bad.push(name.clone());
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Cargo can package every crate: it lists the files that it would ship. They contain licences and
/// sources, but no files of tests. Dependencies inside the tree have a version, for users without
/// the tree.
#[test]
fn every_crate_can_be_packaged() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the workspace");
    for line in manifest.lines().filter(|l| l.contains("path = \"crates/")) {
        assert!(line.contains("version = "), "{line}");
    }
    // `outside` is a test, and `seekwell-python` is published as a Python package.
    let own = ["outside", "seekwell-python"];
    for name in dependencies().keys().filter(|n| !own.contains(&n.as_str())) {
        let out = Command::new(env!("CARGO"))
            .args([
                "package",
                "--list",
                "--allow-dirty",
                "--offline",
                "-p",
                name,
            ])
            .current_dir(root())
            .output()
            .expect("cargo runs");
        let list = String::from_utf8_lossy(&out.stdout);
        assert!(
            out.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        for file in ["LICENSE-MIT", "LICENSE-APACHE", "Cargo.toml"] {
            assert!(list.lines().any(|l| l == file), "{name} ships no {file}");
        }
        let lib = |l: &str| matches!(l, "src/lib.rs" | "src/main.rs");
        assert!(list.lines().any(lib), "{name} ships no sources: {list}");
    }
}

/// Crates whose top-level modules are called rooms. A room may only use the rooms below it, and has
/// one module that others may use. Each entry has a shared type, and the usual name of its values.
/// If a room adds methods to the shared type, they count as methods of that room.
const ROOMED: &[(&str, &str, &str)] = &[("seekwell-stack", "World", "w")];

/// Further crates in which a room may only use the rooms below it. Their rooms have no type in
/// common.
const LAYERED: &[&str] = &[
    "seekwell",
    "seekwell-bench",
    "seekwell-block",
    "seekwell-calibrate",
    "seekwell-cli",
    "seekwell-core",
    "seekwell-device",
    "seekwell-evidence",
    "seekwell-files",
    "seekwell-guest",
    "seekwell-host",
    "seekwell-lab",
    "seekwell-microscope",
    "seekwell-report",
    "seekwell-sched",
    "seekwell-server",
    "seekwell-sim",
    "seekwell-stats",
    "seekwell-trace",
    "seekwell-workload",
];

/// The walks of CONTRIBUTING.md: every file exists and has the named function, and none is visited
/// twice.
#[test]
fn code_walks_name_existing_files_and_functions() {
    let page = std::fs::read_to_string(root().join("CONTRIBUTING.md")).expect("there");
    let walks = page.split("## Two walks").nth(1).expect("the walks");
    let walks = walks.split("\n## ").next().expect("their end");
    let mut steps = 0;
    for walk in walks.split("\n1. ").skip(1) {
        let mut visited = BTreeSet::new();
        for line in walk.lines().take_while(|l| !l.is_empty()) {
            let mut words = line.split('`').skip(1).step_by(2);
            let path = words.next().expect("a file");
            let text = std::fs::read_to_string(root().join(path));
            let text = text.unwrap_or_else(|e| panic!("{path}: {e}"));
            let head = line.split(':').next().unwrap_or_default();
            if let Some(function) = head.split('`').nth(3) {
                let named = format!("fn {function}(");
                let any = format!("fn {function}<");
                assert!(
                    text.contains(&named) || text.contains(&any),
                    "{path}: no {function}"
                );
            }
            assert!(visited.insert(path.to_owned()), "{path} twice");
            steps += 1;
        }
    }
    assert!(steps > 12, "{steps} steps");
}
