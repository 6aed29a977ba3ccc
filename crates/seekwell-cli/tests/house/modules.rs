//! The order of the top-level modules in each crate: a module uses only modules below it, directly
//! or indirectly, and a module folder does not expose its submodules.

use crate::{Graph, LAYERED, ROOMED, below, files, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The text of a crate's lib.rs, or main.rs if it is a program only.
fn crate_root_text(name: &str) -> String {
    let src = root().join("crates").join(name).join("src");
    let lib = std::fs::read_to_string(src.join("lib.rs"));
    lib.unwrap_or_else(|_| std::fs::read_to_string(src.join("main.rs")).expect(name))
}

/// The folder or file (without its suffix) of each module that a source declares for tests only.
fn test_modules(path: &Path, text: &str) -> Vec<PathBuf> {
    let top = ["lib.rs", "main.rs", "mod.rs"].map(|n| path.ends_with(n));
    let folder = match top.contains(&true) {
        true => path.parent().expect("a folder").to_owned(),
        false => path.with_extension(""),
    };
    let declared = text.split("#[cfg(test)]\n").skip(1).filter_map(|rest| {
        let (_, name) = rest.lines().next()?.split_once("mod ")?;
        Some(folder.join(name.strip_suffix(';')?))
    });
    declared.collect()
}

/// The code of a source, without comments and without modules for tests.
fn code(text: &str) -> String {
    let (mut out, mut attribute, mut inside) = (String::new(), false, false);
    for line in text.lines() {
        let comment = line.trim_start().starts_with("//");
        let tested = attribute;
        attribute = line == "#[cfg(test)]" || (attribute && line.starts_with('#'));
        inside |= tested && line.starts_with("mod ") && line.ends_with('{');
        if !comment && !inside {
            out += line;
            out.push('\n');
        }
        inside &= line != "}";
    }
    out
}

/// (module, text) of a crate's sources, without tests.
fn modules_of(name: &str) -> Vec<(String, String)> {
    let src = root().join("crates").join(name).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    all.retain(|p| p.extension().is_some_and(|e| e == "rs"));
    let read = |p: PathBuf| {
        let text = std::fs::read_to_string(&p).expect("a source");
        (p, text)
    };
    let all: Vec<(PathBuf, String)> = all.into_iter().map(read).collect();
    let tests: Vec<PathBuf> = all.iter().flat_map(|(p, t)| test_modules(p, t)).collect();
    let mut out = Vec::new();
    for (path, text) in &all {
        let rest = path.strip_prefix(&src).expect("below it");
        let first = rest.iter().next().expect("a name").to_string_lossy();
        let module = first.trim_end_matches(".rs").to_owned();
        let stem = path.with_extension("");
        let test = tests.iter().any(|t| stem.starts_with(t));
        if !matches!(&*module, "lib" | "main") && !test {
            // `super::` as often as the module is deep is the root of the crate.
            let depth = rest.iter().count() - usize::from(rest.ends_with("mod.rs"));
            let root = "super::".repeat(depth);
            out.push((module, code(text).replace(&root, "crate::")));
        }
    }
    out
}

/// Names that other modules find in the root of a crate, each with the module that it comes from.
fn exports(crate_root_text: &str) -> BTreeMap<&str, &str> {
    let mut all = BTreeMap::new();
    for part in crate_root_text.split("\npub").skip(1) {
        let line = part.strip_prefix("(crate)").unwrap_or(part);
        let Some(path) = line.strip_prefix(" use ") else {
            continue;
        };
        let path = path.split(';').next().unwrap_or_default();
        let names = path[word(path).len()..].split(|c: char| !c.is_alphanumeric() && c != '_');
        all.extend(names.filter(|n| !n.is_empty()).map(|n| (n, word(path))));
    }
    all
}

/// The entries of a list in braces. `text` begins behind the opening brace.
fn entries(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut out) = (0, 0, Vec::new());
    for (i, c) in text.char_indices() {
        if depth == 0 && matches!(c, ',' | '}') {
            out.push(text[from..i].trim());
            from = i + 1;
        }
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            _ => {}
        }
    }
    out
}

/// The word at the start of a text.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The uses between modules by path. `exported` has the names that the root of the crate
/// re-exports.
fn uses(sources: &[(String, String)], exported: &BTreeMap<&str, &str>) -> Graph {
    let names: BTreeSet<&str> = sources.iter().map(|s| &*s.0).collect();
    let module_of = |name| names.get(name).or_else(|| names.get(*exported.get(name)?));
    let mut graph = Graph::new();
    for (module, text) in sources {
        let used_modules = graph.entry(module.clone()).or_default();
        let paths = text.split("crate::").skip(1).map(word);
        let listed = text.split("crate::{").skip(1).flat_map(entries);
        let paths = paths.chain(listed.map(word));
        used_modules.extend(paths.filter_map(module_of).map(|r| (*r).to_owned()));
        used_modules.remove(module);
    }
    graph
}

/// Adds the uses between modules by methods that they add to a shared type.
fn add_uses_of_methods(graph: &mut Graph, sources: &[(String, String)], shared: &str, value: &str) {
    let own = format!("\nimpl {shared} {{\n");
    let mut methods = BTreeMap::new();
    for (module, text) in sources {
        for block in text.split(&own).skip(1) {
            let block = block.split("\n}\n").next().unwrap_or_default();
            for line in block.lines().filter(|l| l.starts_with("    pub(crate) ")) {
                if let Some((_, rest)) = line.split_once("fn ") {
                    methods.insert(word(rest), module.as_str());
                }
            }
        }
    }
    for (module, text) in sources {
        let used_modules = graph.entry(module.clone()).or_default();
        let mut callers = vec![
            format!(" {value}."),
            format!("({value}."),
            ".w().".to_owned(),
        ];
        if text.contains(&own) {
            callers.push("self.".to_owned());
        }
        for caller in &callers {
            let called = text.split(caller.as_str()).skip(1);
            let called = called.filter(|c| c[word(c).len()..].starts_with('('));
            used_modules
                .extend(called.filter_map(|c| methods.get(word(c)).map(|r| (*r).to_owned())));
        }
        used_modules.remove(module);
    }
}

/// Modules that use each other, directly or indirectly.
fn modules_in_a_cycle(graph: &Graph) -> Vec<String> {
    let back = |module: &&String| {
        graph[*module]
            .iter()
            .any(|d| below(graph, d).contains(*module))
    };
    graph.keys().filter(back).cloned().collect()
}

#[test]
fn modules_depend_only_on_lower_modules() {
    let with_shared_type = ROOMED.iter().map(|r| (r.0, Some((r.1, r.2))));
    for (name, shared) in with_shared_type.chain(LAYERED.iter().map(|n| (*n, None))) {
        let sources = modules_of(name);
        let mut graph = uses(&sources, &exports(&crate_root_text(name)));
        if let Some((shared, value)) = shared {
            add_uses_of_methods(&mut graph, &sources, shared, value);
        }
        for (module, used_modules) in &graph {
            println!("{name}: {module} uses {used_modules:?}");
        }
        assert_eq!(
            modules_in_a_cycle(&graph),
            [""; 0],
            "{name}: these modules use each other"
        );
        // A planted upward use is detected: from a lowest module to the one that uses most.
        let top = graph.keys().max_by_key(|r| below(&graph, r).len());
        let top = top.expect("a top").clone();
        let mut used = below(&graph, &top).into_iter();
        let Some(lowest) = used.find(|r| graph[r].is_empty()) else {
            // No module of this crate uses another one.
            continue;
        };
        let ground = graph.get_mut(&lowest).expect("there");
        ground.insert(top);
        assert!(
            modules_in_a_cycle(&graph).contains(&lowest),
            "{name}: {lowest}"
        );
    }
}

#[test]
fn module_folders_expose_no_submodules() {
    for (name, ..) in ROOMED {
        let src = root().join("crates").join(name).join("src");
        let mut folders = 0;
        for e in std::fs::read_dir(src).expect("sources").flatten() {
            let mod_file = e.path().join("mod.rs");
            if e.file_name() == "tests" || !mod_file.is_file() {
                continue;
            }
            let text = std::fs::read_to_string(&mod_file).expect("mod.rs");
            let open = text
                .lines()
                .filter(|l| l.starts_with("pub") && l.contains(" mod "));
            assert_eq!(open.count(), 0, "{}: a module is open", mod_file.display());
            assert!(
                text.starts_with("//! "),
                "{}: what is inside",
                mod_file.display()
            );
            folders += 1;
        }
        assert!(folders >= 5, "{name}: {folders} module folders");
    }
}

#[test]
fn method_on_a_shared_type_counts_as_a_dependency() {
    let source = |module: &str, text: &str| (module.to_owned(), format!("\n{text}\n"));
    let sources = [
        source("low", "fn f(w: &mut World) {\n    w.high_one();\n}"),
        source(
            "high",
            "impl World {\n    pub(crate) fn high_one(&mut self) {}\n}\nuse crate::low::f;",
        ),
    ];
    let mut graph = uses(&sources, &BTreeMap::new());
    assert_eq!(modules_in_a_cycle(&graph), [""; 0]);
    add_uses_of_methods(&mut graph, &sources, "World", "w");
    assert_eq!(modules_in_a_cycle(&graph), ["high", "low"]);
}

/// A use counts if it is in a nested list or goes through a name that the root of the crate
/// re-exports. It does not count in comments and in tests.
#[test]
fn every_form_of_module_use_is_detected() {
    let uses_high = |text: &str| {
        let all = [("low", text), ("high", ""), ("other", "")];
        let sources = all.map(|(module, text)| (module.to_owned(), code(text)));
        let exported = exports("\npub mod high;\npub use high::{Part, whole};\n");
        uses(&sources, &exported)["low"].contains("high")
    };
    for used in [
        "use crate::high::Part;",
        "use crate::{other::{a, b}, high::Part};",
        "use crate::{\n    Part,\n    other,\n};",
        "fn f() {\n    crate::whole();\n}",
        "#[cfg(test)]\nmod tests;\nuse crate::Part;",
        "#[cfg(test)]\nmod tests {\n}\nuse crate::Part;",
    ] {
        assert!(uses_high(used), "{used}");
    }
    for unused in [
        "use crate::other::{high, Part};",
        "/// See [`crate::high`].",
        "#[cfg(test)]\n#[allow(unused)]\nmod tests {\n    use crate::high::Part;\n}",
    ] {
        assert!(!uses_high(unused), "{unused}");
    }
}
