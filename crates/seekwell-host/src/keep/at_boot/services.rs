//! Finds services and other files of a distribution that write a scheduler, as far as the text of
//! the files shows it.

use super::files::Files;
use super::pattern::{Truth, matches};
use super::{By, Setter};
use regex_lite::Regex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Directories of systemd units. If several contain a file of the same name, the first directory
/// counts.
const UNITS: &[&str] = &[
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
/// Directories with the configuration of systemd-tmpfiles, which writes files at boot.
const TMPFILES: &[&str] = &[
    "/etc/tmpfiles.d",
    "/run/tmpfiles.d",
    "/usr/local/lib/tmpfiles.d",
    "/usr/lib/tmpfiles.d",
];
/// Scripts that run at boot, and files of sysfsutils, whose lines are `ATTRIBUTE = VALUE`.
const SINGLE: &[&str] = &["/etc/rc.local", "/etc/rc.d/rc.local", "/etc/sysfs.conf"];
/// Directories with such files.
const DIRS: &[&str] = &["/etc/sysfs.d", "/etc/cron.d"];
/// Configuration files of TLP.
const TLP: &[&str] = &["/etc/tlp.conf", "/etc/default/tlp"];
/// Maximum size of a script that is searched, bytes.
const SCRIPT_BYTES: u64 = 64 << 10;

/// A scheduler that is written by a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Written {
    /// Whether the line applies to the device.
    pub truth: Truth,
    /// The scheduler, if the line contains its name.
    pub value: Option<String>,
}

static ECHO: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?:echo|printf)\s+(?:-n\s+)?["']?([A-Za-z0-9_-]+)["']?\s*[>|]"#).ok()
});
static ASSIGNED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"queue/scheduler\s*=\s*([A-Za-z0-9_-]+)").ok());

/// Returns the scheduler that a line writes for the device, or `None` if the line writes none.
pub fn written(line: &str, device: &str) -> Option<Written> {
    let at = line.find("queue/scheduler")?;
    let before = line[..at].trim_end_matches('/');
    let first = |of: &LazyLock<Option<Regex>>| {
        let found = of.as_ref().and_then(|r| r.captures(line));
        found.and_then(|c| Some(c.get(1)?.as_str().to_owned()))
    };
    let value = first(&ECHO).or_else(|| first(&ASSIGNED));
    let reads = ["cat ", "grep ", "read ", "test ", "[ "]
        .iter()
        .any(|w| line.contains(w));
    if value.is_none() && reads && !line.contains('>') {
        return None;
    }
    let ends = |c: char| c.is_whitespace() || "'\"<>;=(".contains(c);
    let word = before.rsplit(ends).next().unwrap_or_default();
    let truth = named(word.rsplit('/').next().unwrap_or_default(), device);
    (truth != Truth::No).then_some(Written { truth, value })
}

/// Returns whether a name or a pattern in a path matches the device.
pub fn named(name: &str, device: &str) -> Truth {
    match name {
        "" => Truth::Maybe,
        name if name.contains(['$', '%', '{', '`', '}']) => Truth::Maybe,
        name => Truth::from(matches(name, device)),
    }
}

/// Returns the lines of a text without comments, with their numbers.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let all = text.lines().enumerate();
    all.map(|(i, l)| (i + 1, l.trim()))
        .filter(|(_, l)| !l.starts_with(['#', ';']))
}

/// Returns all assignments by lines that write the scheduler of this device.
pub fn writing(files: &Files<'_>, device: &str) -> Vec<Setter> {
    let mut all = Vec::new();
    let started = started(files);
    for (unit, path) in &started {
        units_lines(files, device, unit, path, &mut all);
    }
    for path in files.overriding(TMPFILES, ".conf").into_values() {
        for (line, text) in lines(&files.text(&path)) {
            let fields: Vec<&str> = text.split_whitespace().collect();
            let (Some(kind), Some(target)) = (fields.first(), fields.get(1)) else {
                continue;
            };
            if let Some(w) = written(target, device).filter(|_| kind.starts_with(['w', 'f', 'F'])) {
                let value = fields.get(6).map(|v| (*v).to_owned());
                all.push(setter(
                    &path,
                    line,
                    "systemd-tmpfiles",
                    Written { value, ..w },
                ));
            }
        }
    }
    let in_dirs = DIRS
        .iter()
        .flat_map(|d| files.names(d).into_iter().map(|n| Path::new(d).join(n)));
    for path in SINGLE
        .iter()
        .map(PathBuf::from)
        .chain(in_dirs.collect::<Vec<_>>())
    {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for (line, text) in lines(&files.text(&path)) {
            if let Some(w) = written(text, device) {
                all.push(setter(&path, line, &name, w));
            }
        }
    }
    if started.iter().any(|u| u.0 == "tlp.service") {
        let more = files
            .names("/etc/tlp.d")
            .into_iter()
            .map(|n| Path::new("/etc/tlp.d").join(n));
        for path in TLP.iter().map(PathBuf::from).chain(more) {
            for (line, text) in
                lines(&files.text(&path)).filter(|l| l.1.starts_with("DISK_IOSCHED="))
            {
                let quoted = text
                    .split_once('=')
                    .map_or("", |p| p.1)
                    .trim_matches(['"', '\'']);
                let other = quoted.split_whitespace().any(|v| v != "keep" && v != "_");
                let w = Written {
                    truth: Truth::Maybe,
                    value: None,
                };
                all.extend(other.then(|| setter(&path, line, "tlp.service", w)));
            }
        }
    }
    all
}

fn setter(path: &Path, line: usize, service: &str, w: Written) -> Setter {
    let certain = w.truth == Truth::Yes;
    Setter {
        path: path.to_owned(),
        line,
        sets: w.value,
        by: By::Service(service.to_owned()),
        only_if: (!certain).then(|| "this disk is among those it is for".to_owned()),
    }
}

/// Returns the units that other units start at boot, with their files.
fn started(files: &Files<'_>) -> Vec<(String, PathBuf)> {
    let mut wanted = BTreeSet::new();
    for dir in UNITS {
        for by in files.names(dir) {
            if by.ends_with(".wants") || by.ends_with(".requires") {
                wanted.extend(files.names(&format!("{dir}/{by}")));
            }
        }
    }
    let all = files.overriding(UNITS, ".service");
    let file = |unit: String| {
        // The unit `name@instance.service` has the file `name@.service`.
        let template = unit.split_once('@').map(|p| format!("{}@.service", p.0));
        let path = all.get(&unit).or_else(|| all.get(&template?))?.clone();
        Some((unit, path))
    };
    wanted.into_iter().filter_map(file).collect()
}

/// Adds the assignments of a unit and of the scripts that it runs.
fn units_lines(files: &Files<'_>, device: &str, unit: &str, path: &Path, all: &mut Vec<Setter>) {
    for (line, text) in lines(&files.text(path)).filter(|l| l.1.starts_with("Exec")) {
        if let Some(w) = written(text, device) {
            all.push(setter(path, line, unit, w));
            continue;
        }
        let words = text
            .split(['=', ' '])
            .map(|w| w.trim_start_matches(['-', '@', ':', '+', '!']));
        for script in words.filter(|w| w.starts_with('/')).map(Path::new) {
            let short = files.len(script).is_some_and(|n| n <= SCRIPT_BYTES);
            let body = if short {
                files.text(script)
            } else {
                String::new()
            };
            let body = if body.starts_with("#!") {
                body
            } else {
                String::new()
            };
            for (line, text) in lines(&body) {
                if let Some(w) = written(text, device) {
                    all.push(setter(script, line, unit, w));
                }
            }
        }
    }
}

/// Returns whether a unit is started at boot.
pub fn is_started(files: &Files<'_>, unit: &str) -> bool {
    started(files).iter().any(|u| u.0 == unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_write_a_scheduler_are_distinguished_from_reads() {
        let said =
            |line: &str| written(line, "sda").map(|w| (w.truth, w.value.unwrap_or_default()));
        let yes = |v: &str| Some((Truth::Yes, v.to_owned()));
        let maybe = |v: &str| Some((Truth::Maybe, v.to_owned()));
        assert_eq!(
            said("echo bfq > /sys/block/sda/queue/scheduler"),
            yes("bfq")
        );
        assert_eq!(
            said("/bin/sh -c 'echo none >/sys/block/sda/queue/scheduler'"),
            yes("none")
        );
        assert_eq!(
            said("echo kyber | tee /sys/block/sd?/queue/scheduler"),
            yes("kyber")
        );
        assert_eq!(
            said("for f in /sys/block/sd*/queue/scheduler; do echo bfq > $f; done"),
            yes("bfq")
        );
        assert_eq!(
            said("echo \"bfq\" > /sys/block/$d/queue/scheduler"),
            maybe("bfq")
        );
        assert_eq!(said("echo $s > /sys/block/sda/queue/scheduler"), yes(""));
        assert_eq!(said("block/sda/queue/scheduler = bfq"), yes("bfq"));
        for none in [
            "echo bfq > /sys/block/sdb/queue/scheduler",
            "cat /sys/block/sda/queue/scheduler",
            "grep -q bfq /sys/block/sda/queue/scheduler",
            "echo 1 > /sys/block/sda/queue/iostats",
        ] {
            assert_eq!(said(none), None, "{none}");
        }
    }
}
