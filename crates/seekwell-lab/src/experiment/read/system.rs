//! Reads the devices and schedulers of an experiment file.

use super::grid::{Axis, added};
use super::value::{Switch, Text, kind};
use super::{Entry, Reader};
use crate::experiment::design::Level;
use crate::experiment::fault::Place;
use seekwell::{DeviceSpec, SchedulerSpec, SpecErrors, words};
use seekwell_device::{describe, files_of, with_files};
use seekwell_files::read_text;
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;
use toml::de::DeValue;

/// Largest size of a preset file, in bytes.
const PRESET_MAX: u64 = 1 << 20;
/// Largest number of files that a device can refer to, directly or through other files.
const PRESETS_MAX: usize = 64;

/// Sets the state of a drive that has states and does not name one.
///
/// # Errors
/// Returns an error if the device consists of several drives, and one with states names no state.
/// The state is not passed on to the drives, because each drive has its own options.
pub(super) fn set_state(device: &mut DeviceSpec, state: &str) -> Result<(), String> {
    let described = |text: &str| with_files(&device.files, || describe(text));
    let typed = |p: &seekwell_device::Param| p.source == seekwell_device::Source::Override;
    let open = |text: &str| {
        let preset = described(text).ok();
        preset.is_some_and(|p| p.get("state").is_some_and(|p| !typed(p)))
    };
    if open(&device.spec) {
        device.spec += &format!(",state={state}");
        return Ok(());
    }
    match members(&device.spec).into_iter().find(|m| open(m)) {
        None => Ok(()),
        Some(member) => Err(format!(
            "is not passed on to the members of {}: write it for the member, \
             ({member},state={state})",
            device.spec
        )),
    }
}

/// Returns the member drives of a composed device, as written in its text.
fn members(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for word in ["of=", "over="] {
        for (at, _) in text.match_indices(word) {
            let rest = &text[at + word.len()..];
            let (mut depth, mut end) = (0_usize, rest.len());
            for (i, c) in rest.char_indices() {
                match c {
                    '(' => depth += 1,
                    ')' | ',' if depth == 0 => {
                        end = i;
                        break;
                    }
                    ')' => depth -= 1,
                    _ => {}
                }
            }
            let own = rest[..end].trim();
            let own = own.strip_prefix('(').and_then(|o| o.strip_suffix(')'));
            let own = own.unwrap_or(rest[..end].trim());
            let bare = |m: &str| {
                let inner = m.strip_prefix('(').and_then(|m| m.strip_suffix(')'));
                inner.unwrap_or(m).to_owned()
            };
            all.extend(own.split('+').map(|m| bare(m.trim())));
        }
    }
    all
}

/// Returns the words of a text that are paths of preset files.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let split =
        |c: char| c.is_whitespace() || matches!(c, ',' | '+' | '(' | ')' | '=' | '"' | '\'');
    text.split(split).filter(|w| w.ends_with(".toml"))
}

/// Returns the preset files in `dir` that a text names, and the files that those files name.
fn named_files(text: &str, dir: &Path) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut todo: Vec<String> = paths(text).map(str::to_owned).collect();
    while let Some(name) = todo.pop() {
        if found.contains_key(&name) || found.len() >= PRESETS_MAX || Path::new(&name).is_absolute()
        {
            continue;
        }
        if let Ok(text) = read_text(&dir.join(&name), PRESET_MAX) {
            todo.extend(paths(&text).map(str::to_owned));
            found.insert(name, text);
        }
    }
    found
}

/// Writes a value that follows a comma in the notation of devices, in parentheses if it needs them.
fn guarded(value: &str) -> String {
    let bare = seekwell_device::spec::bare(value) != value.trim();
    match value.contains(',') && !bare {
        true => format!("({value})"),
        false => value.to_owned(),
    }
}

impl Reader<'_> {
    /// Reads a device with the texts of its files. Files in the folder of the experiment take
    /// precedence.
    fn typed_device(
        &self,
        text: &str,
        given: &BTreeMap<String, String>,
    ) -> Result<DeviceSpec, SpecErrors> {
        let mut files = named_files(text, &self.dir);
        files.extend(given.clone());
        let text = text.trim();
        let found = with_files(&files, || files_of(text));
        let files = found.map_err(|e| SpecErrors::single("", e.to_string()))?;
        Ok(DeviceSpec {
            spec: text.to_owned(),
            files,
        })
    }

    pub(super) fn device(&mut self, field: &str, at: Place, v: &Spanned<DeValue<'_>>) {
        let table = match v.get_ref() {
            DeValue::String(s) => {
                let device = self.typed_device(s, &BTreeMap::new());
                if let Some(device) = self.faults.take(at, field, device) {
                    self.design.devices.push(Level::unnamed(device));
                    self.places.devices.push(at);
                }
                return;
            }
            DeValue::Table(t) => t,
            other => {
                let what = format!(
                    "is {}, not a device: write \"hdd:hitachi-7k200\", or a table with `use`",
                    kind(other)
                );
                self.bad(at, field, &what);
                return;
            }
        };
        let (mut name, mut uses) = (None, Vec::new());
        let (mut files, mut given) = (BTreeMap::new(), BTreeMap::new());
        let mut changes: Vec<Entry<'_, '_>> = Vec::new();
        for e in self.entries(table) {
            let f = format!("{field}.{}", e.key);
            match e.key {
                "use" => uses = self.texts(&f, e.value, Switch::Word),
                "name" => name = self.text(&f, e.value),
                "files" => files = self.map(&f, e.value),
                "axes" => given = self.map(&f, e.value),
                _ => changes.push(e),
            }
        }
        if !table.contains_key("use") {
            let what =
                "has no `use`: add use = \"hdd:hitachi-7k200\"; `seekwell devices` lists all";
            self.bad(at, field, what);
        }
        // Each device is checked separately first, so that a fault is reported at the position of
        // its device.
        let mut good = Vec::new();
        for u in uses {
            let f = format!("{field}.use");
            let device = self.typed_device(&u.text, &files);
            if self.faults.take(u.at, &f, device).is_some() {
                good.push(u);
            }
        }
        let mut axes = Vec::new();
        for e in changes {
            let f = format!("{field}.{}", e.key);
            let mut values = Vec::new();
            for v in self.texts(&f, e.value, Switch::Word) {
                let value = guarded(&v.text);
                let whole = good.iter().all(|u| {
                    let text = format!("{},{}={value}", u.text, e.key);
                    let device = self.typed_device(&text, &files);
                    self.faults.take(v.at, &f, device).is_some()
                });
                if whole {
                    values.push(Text {
                        text: value,
                        at: v.at,
                    });
                }
            }
            axes.push(Axis {
                name: e.key.to_owned(),
                values,
            });
        }
        let base = Axis {
            name: "use".to_owned(),
            values: good,
        };
        axes.insert(0, base);
        let several = axes[0].values.len() > 1;
        for mut p in self.product(field, at, &axes) {
            let mut text = String::new();
            for (k, v) in &p.values {
                text += &match k.as_str() {
                    "use" => v.clone(),
                    k => format!(",{k}={v}"),
                };
            }
            if several && let Some(u) = p.axes.remove("use") {
                p.axes.insert("device".to_owned(), u);
            }
            let device = self.typed_device(&text, &files);
            if let Some(spec) = self.faults.take(at, field, device) {
                self.design
                    .devices
                    .push(p.level(name.as_deref(), ' ', spec, &given));
                self.places.devices.push(at);
            }
        }
    }

    /// Reads schedulers in the notation of the command line, and adds them to the typed schedulers.
    fn typed_schedulers(&mut self, field: &str, at: Place, text: &str) -> Vec<SchedulerSpec> {
        let typed = words::schedulers_in(text, self.kernel.as_ref());
        let typed = self.faults.take(at, field, typed).unwrap_or_default();
        self.typed.extend(typed.iter().cloned());
        typed.into_iter().map(|t| t.spec).collect()
    }

    pub(super) fn scheduler(&mut self, field: &str, at: Place, v: &Spanned<DeValue<'_>>) {
        let table = match v.get_ref() {
            DeValue::String(s) => {
                for spec in self.typed_schedulers(field, at, s) {
                    self.design.schedulers.push(Level::unnamed(spec));
                    self.places.schedulers.push(at);
                }
                return;
            }
            DeValue::Table(t) => t,
            other => {
                let what = format!(
                    "is {}, not a scheduler: write \"mq-deadline\", or a table with `use`",
                    kind(other)
                );
                self.bad(at, field, &what);
                return;
            }
        };
        let (mut name, mut uses, mut versions) = (None, Vec::new(), Vec::new());
        let mut given = BTreeMap::new();
        let mut set: Vec<Entry<'_, '_>> = Vec::new();
        for e in self.entries(table) {
            let f = format!("{field}.{}", e.key);
            match (e.key, e.value.get_ref()) {
                ("use", _) => uses = self.texts(&f, e.value, Switch::Word),
                ("name", _) => name = self.text(&f, e.value),
                ("axes", _) => given = self.map(&f, e.value),
                ("version", _) => versions = self.texts(&f, e.value, Switch::Word),
                // `tunables` is for tunables with the same name as one of these keys.
                ("tunables", DeValue::Table(t)) => set.extend(self.entries(t)),
                _ => set.push(e),
            }
        }
        if !table.contains_key("use") {
            let what = "has no `use`: add use = \"mq-deadline\"; `seekwell schedulers` lists all";
            self.bad(at, field, what);
        }
        let mut bases = Vec::new();
        for u in &uses {
            let f = format!("{field}.use");
            if versions.is_empty() {
                bases.extend(self.typed_schedulers(&f, u.at, &u.text));
            }
            for v in &versions {
                // In `cfq:slice_idle=0`, the version must be added after the name and before the
                // colon.
                let (head, rest) = match u.text.split_once(':') {
                    Some((head, rest)) => (head, format!(":{rest}")),
                    None => (&*u.text, String::new()),
                };
                if words::named(head).is_err() {
                    self.typed_schedulers(&f, u.at, head);
                    break;
                }
                let text = format!("{head}-{}{rest}", v.text);
                let f = format!("{field}.version");
                bases.extend(self.typed_schedulers(&f, v.at, &text));
            }
        }
        let mut axes = Vec::new();
        for e in set {
            let f = format!("{field}.{}", e.key);
            let mut values = Vec::new();
            for v in self.texts(&f, e.value, Switch::Digit) {
                let whole = bases.iter().all(|s| {
                    let checked = words::named(&s.versioned()).and_then(|found| {
                        seekwell_sim::spec::scheduler::tunable(&found, e.key, &v.text)
                    });
                    self.faults.take(v.at, &f, checked).is_some()
                });
                if whole {
                    values.push(v);
                }
            }
            axes.push(Axis {
                name: e.key.to_owned(),
                values,
            });
        }
        let several = bases.len() > 1;
        for p in self.product(field, at, &axes) {
            for base in &bases {
                let mut spec = base.clone();
                if let Err(what) = added(&mut spec.tunables, &p.values) {
                    self.bad(at, field, &what);
                    return;
                }
                let checked = seekwell_sim::spec::scheduler::checked(&spec);
                let Some((_, spec)) = self.faults.take(at, field, checked) else {
                    continue;
                };
                let mut level = p.level(name.as_deref(), ':', spec, &given);
                if several {
                    let named = level.name.map(|n| format!("{n} {}", base.versioned()));
                    level.name = named;
                }
                self.design.schedulers.push(level);
                self.places.schedulers.push(at);
            }
        }
    }
}
