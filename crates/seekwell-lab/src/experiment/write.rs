//! Writes an experiment as a file that does not depend on its folder. Reading the file gives the
//! same experiment. The file contains the texts of presets and job files. It refers to traces by
//! absolute path and hash.

use super::Experiment;
use super::design::{Design, Level, Pick, Work};
use super::labels;
use super::read::{ORDERS, STOPS, complement};
use crate::data::Method;
use seekwell::words::{self, TypedMachine};
use seekwell::{BackgroundSpec, DeviceSpec, Fit, QueueSpec, SchedulerSpec, Stream, WorkloadSpec};
use seekwell_sim::spec::workload::checked;
use seekwell_workload::params::time_text;
use std::collections::BTreeMap;
use toml::{Table, Value};

impl Experiment {
    /// Returns the experiment as a self-contained file. Reading it with [`Experiment::from_toml`]
    /// gives the same cells, treatments and runs.
    pub fn to_toml(&self) -> String {
        self.design.to_toml()
    }

    /// Returns the text for a results folder. It is the original file with its comments if that
    /// file is self-contained, otherwise the text of [`Experiment::to_toml`].
    pub fn stored(&self) -> String {
        let d = &self.design;
        let script = |w: &WorkloadSpec| matches!(w, WorkloadSpec::Script { .. });
        let works = |w: &Work| script(&w.spec) && w.beside.iter().all(|b| script(&b.workload));
        let alone = d.devices.iter().all(|l| l.spec.files.is_empty())
            && d.workloads.iter().all(|l| works(&l.spec));
        match alone && !self.text.is_empty() {
            true => self.text.clone(),
            false => self.to_toml(),
        }
    }
}

impl Design {
    /// Returns the design as a file. See [`Experiment::to_toml`].
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        section(&mut out, "[experiment]", experiment(self));
        for l in &self.devices {
            section(&mut out, "[[device]]", named(l, device(&l.spec)));
        }
        for l in &self.schedulers {
            section(&mut out, "[[scheduler]]", named(l, scheduler(&l.spec)));
        }
        for l in &self.workloads {
            section(&mut out, "[[workload]]", named(l, work(&l.spec)));
        }
        for l in &self.machines {
            section(&mut out, "[[machine]]", named(l, machine(&l.spec)));
        }
        for l in &self.queues {
            section(&mut out, "[[queue]]", named(l, queue(&l.spec)));
        }
        for (what, picks) in [("[[only]]", &self.only), ("[[exclude]]", &self.exclude)] {
            for p in picks {
                section(&mut out, what, pick(p));
            }
        }
        out
    }
}

/// Writes a table: first its values, then its nested tables in braces.
fn section(out: &mut String, heading: &str, table: Table) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(heading);
    out.push('\n');
    for (key, value) in table {
        // A key with characters other than letters, digits, `-` and `_` needs quotes.
        let bare = !key.is_empty()
            && key
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        let key = match bare {
            true => key,
            false => Value::String(key).to_string(),
        };
        out.push_str(&format!("{key} = {value}\n"));
    }
}

fn text(s: impl Into<String>) -> Value {
    Value::String(s.into())
}

fn whole(n: u64) -> Value {
    // Larger values were already rejected.
    Value::Integer(i64::try_from(n).unwrap_or(i64::MAX))
}

fn texts(all: &BTreeMap<String, String>) -> Value {
    let pairs = all.iter().map(|(k, v)| (k.clone(), text(v)));
    Value::Table(pairs.collect())
}

fn word<T: PartialEq>(words: &[(&str, T)], value: &T) -> Value {
    let found = words.iter().find(|w| w.1 == *value);
    text(found.map_or("", |w| w.0))
}

fn experiment(d: &Design) -> Table {
    let m: &Method = &d.method;
    let mut t = Table::new();
    if !d.name.is_empty() {
        t.insert("name".into(), text(&d.name));
    }
    if !d.description.is_empty() {
        t.insert("description".into(), text(&d.description));
    }
    t.insert("seed".into(), whole(m.seed));
    t.insert("margin".into(), Value::Float(m.margin));
    t.insert("confidence".into(), Value::Float(complement(m.alpha)));
    let repeats = Table::from_iter([
        ("min".to_owned(), whole(m.repeats_min.into())),
        ("max".to_owned(), whole(m.repeats_max.into())),
    ]);
    t.insert("repeats".into(), Value::Table(repeats));
    t.insert("target".into(), Value::Float(m.target));
    t.insert("fraction".into(), Value::Float(m.fraction));
    t.insert("stop".into(), word(STOPS, &m.stop));
    t.insert("order".into(), word(ORDERS, &m.order));
    if let Some(s) = m.budget_s {
        t.insert("budget".into(), text(format!("{s}s")));
    }
    if let Some(s) = m.warmup_s {
        t.insert("warmup".into(), text(time_text((s * 1e9).round() as u64)));
    }
    if m.carried {
        t.insert("carried".into(), Value::Boolean(true));
    }
    if let Some(r) = &d.reference {
        t.insert("reference".into(), text(r));
    }
    t
}

/// Adds the name of the level and its grid values, so that tables and parameters stay the same.
fn named<T>(level: &Level<T>, mut table: Table) -> Table {
    if let Some(name) = &level.name {
        table.insert("name".into(), text(name));
    }
    if !level.axes.is_empty() {
        table.insert("axes".into(), texts(&level.axes));
    }
    table
}

fn device(d: &DeviceSpec) -> Table {
    let mut t = Table::from_iter([("use".to_owned(), text(&d.spec))]);
    if !d.files.is_empty() {
        t.insert("files".into(), texts(&d.files));
    }
    t
}

fn scheduler(s: &SchedulerSpec) -> Table {
    let mut t = Table::from_iter([("use".to_owned(), text(&s.name))]);
    if let Some(v) = &s.version {
        t.insert("version".into(), text(v));
    }
    if !s.tunables.is_empty() {
        t.insert("tunables".into(), texts(&s.tunables));
    }
    t
}

/// Returns the parameters that differ from the defaults of the workload and its profile.
fn changed(name: &str, params: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let profile = params.get("profile");
    let given = profile.map(|p| ("profile".to_owned(), p.clone()));
    let given: BTreeMap<String, String> = given.into_iter().collect();
    let usual = checked(&WorkloadSpec::Script {
        name: name.to_owned(),
        params: given.clone(),
    });
    let Ok(WorkloadSpec::Script { params: usual, .. }) = usual else {
        return params.clone();
    };
    let differs = params.iter().filter(|(k, v)| usual.get(*k) != Some(*v));
    let mut all: BTreeMap<_, _> = differs.map(|(k, v)| (k.clone(), v.clone())).collect();
    all.extend(given);
    all
}

/// Writes a background workload as one text. A job file is given by its absolute path.
fn in_a_word(b: &BackgroundSpec) -> String {
    let again = if b.again { words::LOOP } else { "" };
    let word = match &b.workload {
        WorkloadSpec::Script { name, params } => {
            let parts = changed(name, params);
            let parts: Vec<String> = parts.iter().map(|(k, v)| format!("{k}={v}")).collect();
            match parts.is_empty() {
                true => name.clone(),
                false => format!("{name}:{}", parts.join(",")),
            }
        }
        WorkloadSpec::Fio { file, .. } | WorkloadSpec::Trace { file, .. } => {
            let path = std::path::absolute(file);
            path.map_or(file.clone(), |p| p.display().to_string())
        }
    };
    format!("{again}{word}")
}

fn work(w: &Work) -> Table {
    let mut t = Table::new();
    let mut put = |key: &str, value: Value| {
        t.insert(key.to_owned(), value);
    };
    match &w.spec {
        WorkloadSpec::Script { name, params } => {
            put("use", text(name));
            let params = changed(name, params);
            if !params.is_empty() {
                put("params", texts(&params));
            }
        }
        WorkloadSpec::Fio {
            file,
            text: job,
            includes,
            variables,
        } => {
            put("fio", text(file));
            put("text", text(job));
            if !includes.is_empty() {
                put("includes", texts(includes));
            }
            if !variables.is_empty() {
                put("variables", texts(variables));
            }
        }
        WorkloadSpec::Trace {
            file,
            sha256,
            format,
            columns,
            mode,
            fit,
            limit,
            stream,
            volume,
            from_ns,
            until_ns,
            pids,
            response_unit,
            allow_truncated,
        } => {
            let path = std::path::absolute(file);
            put(
                "trace",
                text(path.map_or(file.clone(), |p| p.display().to_string())),
            );
            put("sha256", text(sha256));
            put("mode", text(mode));
            let some = [
                ("format", format),
                ("columns", columns),
                ("volume", volume),
                ("response_unit", response_unit),
            ];
            for (key, value) in some {
                if let Some(v) = value {
                    put(key, text(v));
                }
            }
            if *fit == Fit::Wrap {
                put("fit", text("wrap"));
            }
            if *stream == Stream::Issue {
                put("stream", text("issue"));
            }
            if let Some(n) = limit {
                put("records", whole(*n));
            }
            if *from_ns > 0 {
                put("from", text(time_text(*from_ns)));
            }
            if let Some(ns) = until_ns {
                put("until", text(time_text(*ns)));
            }
            if !pids.is_empty() {
                put(
                    "pids",
                    Value::Array(pids.iter().map(|p| whole(u64::from(*p))).collect()),
                );
            }
            if *allow_truncated {
                put("allow_truncated", Value::Boolean(true));
            }
        }
    }
    if let Some(m) = &w.metric {
        put("metric", text(m));
    }
    if let Some(s) = w.limit_s {
        put("limit", text(format!("{s}s")));
    }
    if !w.beside.is_empty() {
        let all = w.beside.iter().map(|b| text(in_a_word(b)));
        put("beside", Value::Array(all.collect()));
    }
    t
}

fn machine(m: &TypedMachine) -> Table {
    let parts = labels::machine(&m.spec).into_iter();
    let mut t: Table = parts.map(|(k, v)| (k.to_owned(), text(v))).collect();
    if let Some(s) = m.limit_s {
        t.insert("limit".into(), whole(s));
    }
    t
}

fn queue(q: &QueueSpec) -> Table {
    let parts = labels::queue(q).into_iter();
    parts.map(|(k, v)| (k.to_owned(), whole(v))).collect()
}

fn pick(p: &Pick) -> Table {
    let parts = p.conditions().into_iter();
    let some = parts.filter_map(|(k, v)| Some((k.to_owned(), text(v.as_ref()?))));
    some.collect()
}
