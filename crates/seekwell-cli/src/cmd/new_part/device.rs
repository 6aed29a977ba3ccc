//! `seekwell new device NAME`.

use super::{Edit, Part, check, read};
use crate::fail::Failure;
use seekwell_device::{catalogue, describe};
use std::path::Path;

/// The list of presets.
const LIST: &str = "crates/seekwell-device/src/embedded.rs";

/// Returns a copy of the preset `like` with the new name, and its line in the list of presets.
pub(super) fn part(name: &str, like: &str, tree: &Path) -> Result<Part, Failure> {
    let full = |e: &seekwell_device::Entry| e.name == like || e.aliases.iter().any(|a| a == like);
    let Some(entry) = catalogue().into_iter().find(full) else {
        return Err(Failure::input(match describe(like) {
            Err(e) => e.to_string(),
            Ok(_) => format!(
                "\"{like}\" is not the full name of a built-in device; `seekwell devices` lists \
                 them"
            ),
        }));
    };
    let kind = entry.name.split(':').next().unwrap_or_default();
    check("device", name, |n| describe(&format!("{kind}:{n}")).is_ok())?;
    let preset = |name: &str| format!("{}.toml", name.replace(':', "-"));
    let folder = "crates/seekwell-device/presets";
    let file = preset(&format!("{kind}:{name}"));
    let text = read(tree, &format!("{folder}/{}", preset(&entry.name)))?;
    let (path, own) = (format!("{folder}/{file}"), kind.to_owned());
    let edit: Edit = Box::new(move |list| with_preset(list, &own, &file));
    Ok(Part {
        kinds: "devices",
        page: "docs/add-a-device.md",
        files: vec![(path, copy(&text, name, &entry.name))],
        lists: vec![(LIST, edit)],
        about: "(a copy of a preset, in which each value is an estimate). Replace its values by \
                those of your device and name the source of each value, then run:",
        next: vec![
            format!("cargo run -p seekwell-cli -- devices {kind}:{name} --details"),
            "cargo test -p seekwell-device --test all presets::".to_owned(),
            format!("cargo run --release -p seekwell-cli -- compare -d {kind}:{name}"),
            "make docs".to_owned(),
        ],
    })
}

/// Returns a preset's text under a new name. The values stay, but for the new device each of them is
/// an estimate. Its aliases, its year and the description of the old device go.
fn copy(text: &str, name: &str, like: &str) -> String {
    let mut out = format!(
        "# {name}: begun as a copy of {like}. Each value is an estimate until you replace it by a\n\
         # value of your device and name its source (docs/add-a-device.md).\n"
    );
    let mut params = false;
    for line in text.lines() {
        params |= line == "[params]";
        let key = line.split(' ').next().unwrap_or_default();
        match key {
            "#" | "aliases" | "year" if !params => continue,
            "name" if !params => out += &format!("name = \"{name}\""),
            "summary" if !params => {
                out += &format!("summary = \"{name}, with the values of {like}\"");
            }
            _ => match line.split_once("source = \"") {
                Some((before, rest)) if key != "#" => {
                    let after = rest.split_once('"').map_or("", |r| r.1);
                    out += &format!("{before}source = \"estimate: as {like}\"{after}");
                }
                _ => out += line,
            },
        }
        out.push('\n');
    }
    out
}

/// Returns the list of presets with a new file, in alphabetical order among those of its kind.
fn with_preset(list: &str, kind: &str, file: &str) -> Option<String> {
    let lines: Vec<&str> = list.lines().collect();
    let mut at = None;
    for (i, line) in lines.iter().enumerate() {
        let Some((_, path)) = line.split_once("include_str!(\"../presets/") else {
            continue;
        };
        let other = path.split('"').next().unwrap_or_default();
        if !other.starts_with(&format!("{kind}-")) {
            continue;
        }
        // An entry has one line, or four.
        let (first, after) = match line.starts_with("    (") {
            true => (i, i + 1),
            false => (i.checked_sub(2)?, i + 2),
        };
        if other < file {
            at = Some(after);
        } else if at.is_none() {
            at = Some(first);
        }
    }
    let (before, after) = lines.split_at_checked(at?)?;
    let entry = format!("\"{file}\", include_str!(\"../presets/{file}\")");
    // rustfmt breaks a tuple of more than 60 columns.
    let new = match entry.len() <= 60 {
        true => format!("    ({entry}),"),
        false => format!(
            "    (\n        {},\n    ),",
            entry.replace(", ", ",\n        ")
        ),
    };
    let all = [before, &[&new], after].concat();
    Some(all.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{added, of_tree};
    use super::*;

    const LIKE: &str = "hdd:hitachi-7k200";

    fn root() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn new(name: &str, like: &str) -> Part {
        part(name, like, &root()).unwrap_or_else(|e| panic!("{name} like {like}: {e}"))
    }

    /// The copy of every built-in preset is a preset with the same values.
    #[test]
    fn copied_preset_has_equal_values_and_no_sources() {
        let dir = tempfile::tempdir().expect("a directory");
        for e in catalogue() {
            let text = &new("mine", &e.name).files[0].1;
            let file = dir.path().join("mine.toml");
            std::fs::write(&file, text).expect("written");
            let spec = file.to_str().expect("UTF-8");
            let copy = describe(spec).unwrap_or_else(|err| panic!("{}: {err}", e.name));
            let was = describe(&e.name).expect("built in");
            assert_eq!((copy.kind, &*copy.name), (was.kind, "mine"));
            assert!(copy.aliases.is_empty() && copy.year.is_none());
            let values = |p: &seekwell_device::Preset| {
                let values = p.params.iter().map(|q| q.value.to_string());
                values.collect::<Vec<_>>()
            };
            assert_eq!(values(&copy), values(&was), "{}", e.name);
            for line in text.lines().filter(|l| l.contains("source = ")) {
                let own = format!("source = \"estimate: as {}\"", e.name);
                assert!(line.contains(&own), "{line}");
            }
        }
    }

    #[test]
    fn page_quotes_the_start_of_a_new_device_file() {
        let text = &new("my-disk", LIKE).files[0].1;
        let page = of_tree("docs/add-a-device.md");
        let block = page.split("```toml\n").nth(1).expect("a preset");
        let block = block.split("```").next().expect("its end");
        assert!(
            text.starts_with(block),
            "{block}\nis not the start of\n{text}"
        );
    }

    #[test]
    fn preset_is_inserted_in_the_sorted_list() {
        let entry = |name: &str, like: &str| added(&new(name, like).lists[0]);
        let lines = |name, like| {
            entry(name, like)
                .into_iter()
                .map(|l| l.1)
                .collect::<Vec<_>>()
        };
        let expected = [
            "    (",
            "        \"hdd-my-disk.toml\",",
            "        include_str!(\"../presets/hdd-my-disk.toml\"),",
            "    ),",
        ];
        let list = part_list("my-disk", LIKE);
        assert!(list.contains(&expected.join("\n")), "{list}");
        let at = |text: &str| list.find(text).unwrap_or_else(|| panic!("{text}"));
        assert!(at("\"hdd-hus728t8.toml\"") < at("\"hdd-my-disk.toml\""));
        assert!(at("\"hdd-my-disk.toml\"") < at("\"hdd-sata320-2006.toml\""));
        let short = "    (\"hdd-a.toml\", include_str!(\"../presets/hdd-a.toml\")),";
        assert_eq!(lines("a", LIKE), [short]);
        let last = part_list("zzz-zzz", "ssd:x25m-g2-160");
        let at = |text: &str| last.find(text).unwrap_or_else(|| panic!("{text}"));
        assert!(at("\"ssd-x25m-g2-160.toml\"") < at("\"ssd-zzz-zzz.toml\""));
        assert!(at("\"ssd-zzz-zzz.toml\"") < at("\"emmc-motog-sandisk8.toml\""));
        assert_eq!(with_preset("", "hdd", "hdd-a.toml"), None);
    }

    fn part_list(name: &str, like: &str) -> String {
        new(name, like).lists[0].1(&of_tree(LIST)).expect("a list")
    }

    #[test]
    fn used_names_and_devices_with_options_are_rejected() {
        for (name, like, says) in [
            ("hitachi-7k500", LIKE, "already"),
            ("hts722010-100", LIKE, "already"),
            ("mine", "hdd:hitachi-7k20", "did you mean"),
            ("mine", "hdd:hitachi-7k200,rpm=5400", "full name"),
        ] {
            let e = part(name, like, &root()).err().map(|e| e.to_string());
            let e = e.unwrap_or_else(|| panic!("{name} like {like}"));
            assert!(e.contains(says), "{e}");
        }
    }
}
