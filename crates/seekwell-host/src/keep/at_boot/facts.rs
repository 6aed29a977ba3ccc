//! Facts about a device while the rules of udev are applied to it.

use super::pattern::{Truth, any};
use super::rules::{Op, Rule, RuleFile, Token};
use crate::block::{Device, Scheduler, Tree, lossy};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The device, the event, and the properties that rules have set so far.
pub struct Facts<'a> {
    tree: &'a Tree,
    device: &'a Device,
    action: &'static str,
    /// Directory of the device below `/sys/devices`.
    dir: PathBuf,
    /// Properties from the kernel's event and from udev's database.
    properties: BTreeMap<String, String>,
    /// Whether the device is in udev's database. If so, a property that is not in the database is
    /// empty.
    in_database: bool,
    /// Properties that rules have set so far. The value is `None` if it is unknown.
    set: BTreeMap<String, Option<String>>,
    /// Properties that any rule sets, with their values.
    by_rules: BTreeSet<(String, String)>,
}

fn basename(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

impl<'a> Facts<'a> {
    /// Returns the facts at an event of a device. The event is `add` or `change`.
    pub fn new(
        tree: &'a Tree,
        device: &'a Device,
        action: &'static str,
        rules: &[RuleFile],
    ) -> Self {
        let link = tree.at("/sys/block").join(&device.name);
        let dir = std::fs::canonicalize(&link).unwrap_or(link);
        let mut properties = BTreeMap::new();
        for line in lossy(&dir.join("uevent")).lines() {
            if let Some((k, v)) = line.split_once('=') {
                properties.insert(k.to_owned(), v.to_owned());
            }
        }
        let database = device
            .numbers
            .map(|(major, minor)| format!("/run/udev/data/b{major}:{minor}"));
        let database = database.map(|d| lossy(&tree.at(d))).unwrap_or_default();
        for line in database.lines().filter_map(|l| l.strip_prefix("E:")) {
            if let Some((k, v)) = line.split_once('=') {
                properties.insert(k.to_owned(), v.to_owned());
            }
        }
        // The kernel always sets these properties.
        for (k, v) in [
            ("DEVTYPE", "disk"),
            ("SUBSYSTEM", "block"),
            ("ACTION", action),
        ] {
            properties.insert(k.to_owned(), v.to_owned());
        }
        let tokens = rules.iter().flat_map(|f| f.rules.iter().flatten());
        let set_by_rules = tokens.filter(|t| t.key == "ENV" && !t.is_match());
        Facts {
            by_rules: set_by_rules
                .map(|t| (t.attribute.clone(), t.value.clone()))
                .collect(),
            in_database: !database.is_empty(),
            set: BTreeMap::new(),
            tree,
            device,
            action,
            dir,
            properties,
        }
    }

    /// Returns a property, or `None` if its value is unknown. The database contains only its final
    /// value.
    pub fn property(&self, name: &str) -> Option<String> {
        let set = self.set.get(name);
        if let Some(Some(value)) = set {
            return Some(value.clone());
        }
        match self.properties.get(name) {
            // A later rule may set this value.
            Some(value) if set.is_none() && self.is_by_rule(name, value) => None,
            Some(value) => Some(value.clone()),
            // The database does not store properties whose name starts with a dot.
            None => (self.in_database && set.is_none() && !name.starts_with('.')).then(String::new),
        }
    }

    fn is_by_rule(&self, name: &str, value: &str) -> bool {
        let pair = (name.to_owned(), value.to_owned());
        self.by_rules.contains(&pair)
    }

    /// Returns the known properties, in the form `KEY=value`.
    pub fn properties(&self) -> impl Iterator<Item = String> + '_ {
        self.properties.iter().map(|(k, v)| format!("{k}={v}"))
    }

    /// Records that a rule sets a property. `certain` is true if the rule certainly applies.
    pub fn set_property(&mut self, name: &str, value: Option<String>, certain: bool) {
        self.set.insert(name.to_owned(), value.filter(|_| certain));
    }

    /// Returns a value after udev's substitutions, or `None` if a substituted value is unknown.
    pub fn substituted(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '%']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let braced = ["$env{", "%E{"]
                .into_iter()
                .find_map(|p| rest.strip_prefix(p));
            if let Some(inner) = braced {
                let (name, after) = inner.split_once('}')?;
                out.push_str(&self.property(name)?);
                rest = after;
            } else if let Some(after) = ["$$", "%%"].into_iter().find_map(|p| rest.strip_prefix(p))
            {
                out.push_str(&rest[..1]);
                rest = after;
            } else {
                let names = ["$kernel", "%k", "$name"];
                rest = names.into_iter().find_map(|p| rest.strip_prefix(p))?;
                out.push_str(&self.device.name);
            }
        }
        out.push_str(rest);
        Some(out)
    }

    /// Returns whether all conditions of a rule hold.
    pub fn holds(&self, rule: &Rule) -> Truth {
        let of_parents = |t: &&Token| {
            matches!(
                &*t.key,
                "KERNELS" | "SUBSYSTEMS" | "DRIVERS" | "ATTRS" | "TAGS"
            )
        };
        let conditions = || rule.iter().filter(|t| t.is_match());
        let own = conditions()
            .filter(|t| !of_parents(t))
            .map(|t| self.truth_of(t));
        let truth = own.min().unwrap_or(Truth::Yes);
        let parents: Vec<&Token> = conditions().filter(of_parents).collect();
        match parents.is_empty() {
            true => truth,
            false => truth.min(self.some_parent(&parents)),
        }
    }

    fn truth_of(&self, t: &Token) -> Truth {
        let name = &self.device.name;
        let link = |what: &str| {
            std::fs::read_link(self.dir.join(what))
                .ok()
                .map(|p| basename(&p))
        };
        match &*t.key {
            "ACTION" => compared(t, self.action),
            "KERNEL" => compared(t, &name.replace('!', "/")).max(compared(t, name)),
            "SUBSYSTEM" => compared(t, "block"),
            "DRIVER" => compared(t, &link("driver").unwrap_or_default()),
            "DEVPATH" => match self.dir.strip_prefix(self.tree.at("/sys")) {
                Ok(path) => compared(t, &format!("/{}", path.display())),
                Err(_) => Truth::Maybe,
            },
            "ENV" => self
                .property(&t.attribute)
                .map_or(Truth::Maybe, |v| compared(t, &v)),
            "ATTR" => self.attribute(t, &self.dir),
            "TEST" => self.test(t),
            // A word on the kernel's command line becomes a property.
            "IMPORT" if t.attribute == "cmdline" => {
                Truth::from(self.on_command_line(&t.value).is_some() == (t.op != Op::IsNot))
            }
            // The results of programs, other properties and links are unknown.
            _ => Truth::Maybe,
        }
    }

    /// Returns the value of a word on the kernel's command line. If the word has no value, returns
    /// `1`.
    pub fn on_command_line(&self, word: &str) -> Option<String> {
        let line = lossy(&self.tree.at("/proc/cmdline"));
        let mut words = line.split_whitespace();
        words.find_map(|w| match w.split_once('=') {
            Some((k, v)) => (k == word).then(|| v.to_owned()),
            None => (w == word).then(|| "1".to_owned()),
        })
    }

    /// Compares an attribute with a pattern. For a missing attribute, both `==` and `!=` are false.
    fn attribute(&self, t: &Token, dir: &Path) -> Truth {
        let Some(name) = self
            .substituted(&t.attribute)
            .filter(|n| !n.starts_with('['))
        else {
            return Truth::Maybe;
        };
        if name == "queue/scheduler" && dir == self.dir {
            return self.scheduler(t);
        }
        if with_scheduler(&name) {
            return Truth::Maybe;
        }
        let path = dir.join(&name);
        if path.is_symlink() {
            let to = std::fs::read_link(&path).unwrap_or_default();
            return compared(t, &basename(&to));
        }
        match path.is_file() {
            true => compared(t, lossy(&path).trim_end()),
            false => Truth::No,
        }
    }

    /// At boot another scheduler may be active than at present. Therefore the condition is
    /// evaluated for each scheduler.
    fn scheduler(&self, t: &Token) -> Truth {
        match &self.device.scheduler {
            Scheduler::Absent => Truth::No,
            Scheduler::Fixed { word } => compared(t, word),
            Scheduler::Choice { offered, .. } => {
                let shown = offered.iter().map(|active| {
                    let bracketed = |o: &String| match o == active {
                        true => format!("[{o}]"),
                        false => o.clone(),
                    };
                    offered.iter().map(bracketed).collect::<Vec<_>>().join(" ")
                });
                let all: Vec<Truth> = shown.map(|s| compared(t, &s)).collect();
                match all.split_first() {
                    Some((first, rest)) if rest.iter().all(|t| t == first) => *first,
                    _ => Truth::Maybe,
                }
            }
        }
    }

    fn test(&self, t: &Token) -> Truth {
        let path = self
            .substituted(&t.value)
            .filter(|p| !p.contains(['*', '?', '[']) && !with_scheduler(p));
        let Some(path) = path else {
            return Truth::Maybe;
        };
        let there = match path.starts_with('/') {
            true => self.tree.at(&path).exists(),
            false => self.dir.join(&path).exists(),
        };
        // The mode in braces is tested on an existing file.
        match (there, t.attribute.is_empty()) {
            (true, false) => Truth::Maybe,
            _ => Truth::from(there == (t.op == Op::Is)),
        }
    }

    /// Returns whether the device or one of its parents fulfils all these conditions.
    fn some_parent(&self, conditions: &[&Token]) -> Truth {
        let devices = self.tree.at("/sys/devices");
        let mut found = Truth::No;
        let mut seen_above = false;
        for dir in self
            .dir
            .ancestors()
            .take_while(|d| d.starts_with(&devices) && **d != devices)
        {
            let subsystem = std::fs::read_link(dir.join("subsystem"))
                .ok()
                .map(|p| basename(&p));
            let itself = dir == self.dir;
            if subsystem.is_none() && !itself {
                continue;
            }
            seen_above |= !itself;
            let subsystem = subsystem.unwrap_or_else(|| "block".to_owned());
            let driver = std::fs::read_link(dir.join("driver")).map(|p| basename(&p));
            let one = |t: &&Token| match &*t.key {
                "KERNELS" => compared(t, &basename(dir)),
                "SUBSYSTEMS" => compared(t, &subsystem),
                "DRIVERS" => compared(t, driver.as_deref().unwrap_or_default()),
                "ATTRS" => self.attribute(t, dir),
                _ => Truth::Maybe,
            };
            found = found.max(conditions.iter().map(one).min().unwrap_or(Truth::Yes));
        }
        // A copied tree may lack the parents of the device.
        match seen_above || self.dir.starts_with(self.tree.at("/sys/devices/virtual")) {
            true => found,
            false => found.max(Truth::Maybe),
        }
    }
}

/// Returns whether an attribute depends on the scheduler, so that its value at boot may differ.
fn with_scheduler(attribute: &str) -> bool {
    let own = ["queue/nr_requests", "queue/wbt_lat_usec"];
    attribute.starts_with("queue/iosched") || own.contains(&attribute)
}

/// Returns whether a value matches a token.
fn compared(t: &Token, value: &str) -> Truth {
    let matched = match t.any_case {
        true => any(&t.value.to_lowercase(), &value.to_lowercase()),
        false => any(&t.value, value),
    };
    let truth = Truth::from(matched == (t.op == Op::Is));
    // Older releases of udev ignore a line with the prefix `i`.
    match t.any_case {
        true => truth.min(Truth::Maybe),
        false => truth,
    }
}
