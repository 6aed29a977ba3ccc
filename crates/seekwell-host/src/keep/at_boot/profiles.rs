//! The active profile of tuned and the profiles that it includes.

use super::facts::Facts;
use super::files::Files;
use super::pattern::{Truth, matches};
use super::services::{is_started, lines, named, written};
use super::{By, Setter};
use crate::block::Device;
use regex_lite::Regex;
use std::path::{Path, PathBuf};

/// Directories of profiles. If several contain a profile of the same name, the first directory
/// counts.
const DIRS: &[&str] = &[
    "/etc/tuned/profiles",
    "/etc/tuned",
    "/usr/lib/tuned/profiles",
    "/usr/lib/tuned",
];
/// The file with the names of the active profiles.
const ACTIVE: &str = "/etc/tuned/active_profile";
/// Maximum depth of includes.
const DEEPEST: usize = 16;

/// A line `key=value` with its position.
struct Line {
    key: String,
    value: String,
    path: PathBuf,
    line: usize,
}

/// A section `[name]`, combined from all profiles. A line of a later profile replaces the same key
/// of an earlier profile.
struct Section {
    name: String,
    lines: Vec<Line>,
}

impl Section {
    fn get(&self, key: &str) -> Option<&Line> {
        self.lines.iter().find(|l| l.key == key)
    }
    /// Returns the name of the plugin: the value of `type`, or else the name of the section.
    fn plugin(&self) -> &str {
        self.get("type").map_or(&self.name, |l| &l.value)
    }
    fn is_on(&self) -> bool {
        let off = ["0", "false", "no", "off"];
        self.get("enabled")
            .is_none_or(|l| !off.contains(&&*l.value.to_lowercase()))
    }
}

/// Returns the names of the profiles that are active or planned.
fn active(files: &Files<'_>) -> Vec<String> {
    let planned = files.planned().iter().find_map(|k| {
        let dir = k.path.strip_prefix("/etc/tuned").ok()?.parent()?;
        Some(dir.to_str()?.to_owned())
    });
    match planned {
        Some(one) => vec![one],
        None => files
            .text(Path::new(ACTIVE))
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
    }
}

/// Adds the sections of a profile. The sections of included profiles come first.
fn load(files: &Files<'_>, name: &str, depth: usize, all: &mut Vec<Section>) {
    let paths = DIRS
        .iter()
        .map(|d| Path::new(d).join(name).join("tuned.conf"));
    let Some(path) = paths.into_iter().find(|p| files.is_there(p)) else {
        return;
    };
    if depth > DEEPEST || name.contains("..") {
        return;
    }
    let text = files.text(&path);
    let mut section = String::new();
    let mut own: Vec<Section> = Vec::new();
    for (line, text) in lines(&text) {
        if let Some(name) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            section = name.trim().to_owned();
            if !own.iter().any(|s| s.name == section) {
                own.push(Section {
                    name: section.clone(),
                    lines: Vec::new(),
                });
            }
        } else if let Some((key, value)) = text.split_once('=') {
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            if section == "main" && key == "include" {
                let included = value.split([',', ';', ' ', '\t']).filter(|n| !n.is_empty());
                included.for_each(|n| load(files, n, depth + 1, all));
            } else if let Some(s) = own.iter_mut().find(|s| s.name == section) {
                s.lines.push(Line {
                    key,
                    value,
                    path: path.clone(),
                    line,
                });
            }
        }
    }
    for s in own {
        let Some(there) = all.iter_mut().find(|a| a.name == s.name) else {
            all.push(s);
            continue;
        };
        if s.get("replace")
            .is_some_and(|l| ["1", "true", "yes"].contains(&&*l.value.to_lowercase()))
        {
            there.lines.clear();
        }
        for l in s.lines {
            there.lines.retain(|old| old.key != l.key);
            there.lines.push(l);
        }
    }
}

/// Returns the assignments of the active profiles to the scheduler of a device.
pub fn setting(files: &Files<'_>, d: &Device, facts: &Facts<'_>) -> Vec<Setter> {
    let names = active(files);
    let mut sections = Vec::new();
    names.iter().for_each(|n| load(files, n, 0, &mut sections));
    let runs = is_started(files, "tuned.service");
    let mut all = Vec::new();
    let mut add = |l: &Line, truth: Truth, sets: Option<String>| {
        let why = match (truth, runs) {
            (Truth::No, _) => return,
            (Truth::Yes, true) => None,
            (Truth::Yes, false) => Some("tuned runs at boot".to_owned()),
            (Truth::Maybe, _) => {
                Some("the profile takes this disk, which cannot be decided from here".to_owned())
            }
        };
        all.push(Setter {
            path: l.path.clone(),
            line: l.line,
            sets,
            by: By::Tuned(names.join(" ")),
            only_if: why,
        });
    };
    for s in sections.iter().filter(|s| s.is_on()) {
        match s.plugin() {
            "disk" => {
                if let Some(l) = s.get("elevator") {
                    let known = !l.value.contains("${");
                    add(l, takes(s, d, facts), known.then(|| l.value.clone()));
                }
            }
            "sysfs" => {
                for l in s
                    .lines
                    .iter()
                    .filter(|l| l.key.ends_with("/queue/scheduler"))
                {
                    let device = l
                        .key
                        .trim_end_matches("/queue/scheduler")
                        .rsplit('/')
                        .next();
                    add(
                        l,
                        named(device.unwrap_or_default(), &d.name),
                        Some(l.value.clone()),
                    );
                }
            }
            "script" => {
                for l in s.lines.iter().filter(|l| l.key == "script") {
                    let dir = l
                        .path
                        .parent()
                        .unwrap_or(Path::new("/"))
                        .display()
                        .to_string();
                    let script = PathBuf::from(l.value.replace("${i:PROFILE_DIR}", &dir));
                    for (line, text) in lines(&files.text(&script)) {
                        if let Some(w) = written(text, &d.name) {
                            let place = Line {
                                key: String::new(),
                                value: String::new(),
                                path: script.clone(),
                                line,
                            };
                            add(&place, w.truth.min(Truth::Maybe), w.value);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    all
}

/// Returns whether a section applies to a disk. No section applies to removable disks.
fn takes(s: &Section, d: &Device, facts: &Facts<'_>) -> Truth {
    let mut truth = Truth::from(!d.removable);
    if let Some(l) = s.get("devices") {
        let listed = l.value.split([',', ' ', ';']).filter(|n| !n.is_empty());
        let (not, yes): (Vec<&str>, Vec<&str>) = listed.partition(|n| n.starts_with('!'));
        let is = |n: &&str| matches(n.trim_start_matches('!'), &d.name);
        let all = yes.is_empty() || yes.iter().any(|n| is(n) || *n == "*");
        truth = truth.min(match l.value.contains("${") {
            true => Truth::Maybe,
            false => Truth::from(all && !not.iter().any(is)),
        });
    }
    if let Some(l) = s.get("devices_udev_regex") {
        truth = truth.min(match Regex::new(&l.value) {
            Ok(r) => Truth::from(facts.properties().any(|p| r.is_match(&p))),
            Err(_) => Truth::Maybe,
        });
    }
    truth
}
