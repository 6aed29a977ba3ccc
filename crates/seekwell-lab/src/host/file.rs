//! Reads experiment files with a table `[host]`. The table contains the directory in which the runs
//! are made, and the settings that are the same for all runs. In these files, workloads can be
//! programs. Everything else is as in other experiment files.

use super::words::{self, HostWork};
use super::{EQUAL, HostDesign, expand};
use crate::experiment::{Design, Faults, Level, Place};
use seekwell::SpecErrors;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The table `[host]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    /// A directory, relative to the directory of the experiment file.
    path: PathBuf,
    /// The expected name of the device, as a safety check.
    #[serde(default)]
    device: Option<String>,
    /// The text "kernel", or a table of queue attributes with values.
    #[serde(default)]
    equal: Option<Value>,
    /// A pause as text, such as "500ms" or "2s".
    #[serde(default)]
    settle: Option<String>,
}

/// Returns whether the text is an experiment on this machine.
pub fn is_host(text: &str) -> bool {
    text.parse::<Table>().is_ok_and(|t| t.contains_key("host"))
}

/// Reads an experiment file. Relative paths in the file start at `dir`.
///
/// # Errors
/// All errors in the file.
pub fn read(text: &str, dir: &Path) -> Result<HostDesign, Faults> {
    let mut table: Table = text
        .parse()
        .map_err(|e: toml::de::Error| Faults::single("", e.to_string().trim().to_owned()))?;
    let mut faults = Faults::default();
    let host = table.remove("host").unwrap_or(Value::Table(Table::new()));
    let host: Option<Host> = match host.try_into() {
        Ok(host) => Some(host),
        Err(e) => {
            let e: toml::de::Error = e;
            faults.push(Place::default(), "host", e.message().to_owned());
            None
        }
    };
    let mut work = Vec::new();
    for key in ["workload", "workloads"] {
        for (i, v) in list(table.remove(key)).into_iter().enumerate() {
            let field = format!("{key}[{}]", i + 1);
            if let Some(w) = faults.take(Place::default(), &field, one_work(v, dir)) {
                work.push(w);
            }
        }
    }
    let mut asked = Vec::new();
    for key in ["scheduler", "schedulers"] {
        for (i, v) in list(table.remove(key)).into_iter().enumerate() {
            match scheduler(v) {
                Ok(all) => asked.extend(all),
                Err(why) => faults.push(Place::default(), format!("{key}[{}]", i + 1), why),
            }
        }
    }
    for key in [
        "device", "devices", "machine", "machines", "queue", "only", "exclude",
    ] {
        if table.remove(key).is_some() {
            let what = "is only for modelled machines: on a host use [host] path";
            faults.push(Place::default(), key, what);
        }
    }
    let settings = table.get("experiment").and_then(Value::as_table);
    if settings.is_some_and(|t| t.contains_key("kernel")) {
        let what = "is only for modelled machines: a host is measured under its running kernel";
        faults.push(Place::default(), "experiment.kernel", what);
    }
    // Other experiment files have the same table [experiment].
    let rest = Design::from_toml(&table.to_string(), dir).map_err(|mut f| {
        for fault in &mut f.0 {
            fault.at = Place::default();
        }
        f
    });
    let mut design = match rest {
        Ok(d) => d,
        Err(f) => {
            faults.0.extend(f.0);
            Design::default()
        }
    };
    let level = |(name, spec)| Level {
        name: Some(name),
        ..Level::unnamed(spec)
    };
    design.schedulers = asked.into_iter().map(level).collect();
    let Some(host) = host else {
        return faults.or(HostDesign::default());
    };
    let equal = equal(host.equal.as_ref());
    let equal = faults.take(Place::default(), "host.equal", equal);
    let settle = host.settle.as_deref().map_or(Ok(0.5), seconds);
    let settle = faults.take(Place::default(), "host.settle", settle);
    faults.or(HostDesign {
        design,
        path: dir.join(host.path),
        device: host.device,
        equal: equal.unwrap_or_default(),
        settle_s: settle.unwrap_or_default(),
        work,
        text: text.to_owned(),
    })
}

fn list(v: Option<Value>) -> Vec<Value> {
    match v {
        None => Vec::new(),
        Some(Value::Array(all)) => all,
        Some(one) => vec![one],
    }
}

fn show_value(v: &Value) -> String {
    match v {
        Value::String(s) => s.clone(),
        v => v.to_string(),
    }
}

fn bad(what: impl Into<String>) -> SpecErrors {
    SpecErrors::single("", what)
}

/// Parses a duration such as `2s`, `500ms` or `1m`. Returns seconds.
fn seconds(text: &str) -> Result<f64, SpecErrors> {
    let text = text.trim();
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let found = units.iter().find_map(|(unit, times)| {
        Some(text.strip_suffix(unit)?.trim().parse::<f64>().ok()? * times)
    });
    let found = found.filter(|s| s.is_finite() && (0.0..=86_400.0).contains(s));
    found.ok_or_else(|| bad(format!("\"{text}\" is not a time: write 500ms, 2s or 1m")))
}

/// Returns the queue attributes that are the same for all runs, with their values.
fn equal(v: Option<&Value>) -> Result<Vec<(String, String)>, SpecErrors> {
    use seekwell_host::switch::settings::ATTRIBUTES;
    let usual = || {
        let all = EQUAL.iter();
        all.map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
    };
    match v {
        None => Ok(usual().collect()),
        Some(Value::String(s)) if s == "kernel" => Ok(Vec::new()),
        Some(Value::Table(t)) => {
            let mut errors = SpecErrors::default();
            let mut all: BTreeMap<String, String> = usual().collect();
            for (name, value) in t {
                if !ATTRIBUTES.contains(&name.as_str()) {
                    errors.unknown(
                        name,
                        "there is no such attribute of a queue",
                        name,
                        ATTRIBUTES,
                    );
                }
                all.insert(name.clone(), show_value(value));
            }
            errors.or(all.into_iter().collect())
        }
        Some(_) => Err(bad(
            "write \"kernel\" (keep each scheduler's defaults), or attributes with values: \
             { nr_requests = 256, read_ahead_kb = 128 }",
        )),
    }
}

fn scheduler(v: Value) -> Result<Vec<(String, seekwell::SchedulerSpec)>, String> {
    match v {
        Value::String(s) => expand::schedulers(&s),
        Value::Table(mut t) => {
            let name = t.remove("use").as_ref().map(show_value);
            let name = name.ok_or("a scheduler's table must contain `use`")?;
            let label = t.remove("name").as_ref().map(show_value);
            let mut text = name;
            for (k, v) in &t {
                text += &format!(":{k}={}", show_value(v));
            }
            let mut all = expand::schedulers(&text)?;
            if let (Some(label), [one]) = (label, all.as_mut_slice()) {
                one.0 = label;
            }
            Ok(all)
        }
        _ => Err("must be a name, or a table with `use` and tunables".to_owned()),
    }
}

fn one_work(v: Value, dir: &Path) -> Result<HostWork, SpecErrors> {
    let mut t = match v {
        Value::String(s) => return words::work(&at(&s, dir), &BTreeMap::new()),
        Value::Table(t) => t,
        _ => return Err(bad("must be a name, or a table with `use` or `command`")),
    };
    let mut take = |key: &str| t.remove(key);
    let name = take("name").as_ref().map(show_value);
    let (used, command) = (
        take("use").as_ref().map(show_value),
        take("command").as_ref().map(show_value),
    );
    let metric = take("metric").as_ref().map(show_value);
    let limit = take("limit").as_ref().map(show_value);
    let beside = list(take("beside"));
    let params: BTreeMap<String, String> =
        t.iter().map(|(k, v)| (k.clone(), show_value(v))).collect();
    let mut w = match (used, command) {
        (Some(used), None) => words::work(&at(&used, dir), &params)?,
        (None, Some(line)) => {
            let mut params = params;
            // Here, `name` is the name of the workload, and `metric_name` is the name of the
            // metric.
            if let Some(label) = params.remove("metric_name") {
                params.insert("name".to_owned(), label);
            }
            words::command(&line, params)?
        }
        _ => {
            return Err(bad(
                "must contain either `use` (a program or script) or `command`",
            ));
        }
    };
    if let Some(name) = name {
        w.label = name;
    }
    w.metric = metric;
    if let Some(limit) = limit {
        w.limit_s = Some(seconds(&limit)?.ceil().max(1.0) as u64);
    }
    for b in beside {
        w = w.with(&show_value(&b))?;
    }
    Ok(w)
}

/// Resolves the path of a recipe or job file relative to the directory of the experiment file.
fn at(text: &str, dir: &Path) -> String {
    let file = [".toml", ".fio", ".ini", ".job"]
        .iter()
        .any(|s| text.ends_with(s));
    match file && !text.starts_with(words::COMMAND) {
        true => dir.join(text).display().to_string(),
        false => text.to_owned(),
    }
}

impl HostDesign {
    /// Returns the text of an experiment file for the same experiment.
    pub fn to_toml(&self) -> String {
        let text = |s: &str| Value::String(s.to_owned()).to_string();
        let absolute = |p: &Path| {
            let real = std::fs::canonicalize(p).unwrap_or_else(|_| p.to_owned());
            text(&real.display().to_string())
        };
        let mut out = self.design.to_toml();
        out += &format!("\n[host]\npath = {}\n", absolute(&self.path));
        if let Some(d) = &self.device {
            out += &format!("device = {}\n", text(d));
        }
        let equal = self.equal.iter().map(|(k, v)| format!("{k} = {}", text(v)));
        let equal: Vec<String> = equal.collect();
        out += &format!("equal = {{ {} }}\n", equal.join(", "));
        out += &format!("settle = \"{}ms\"\n", (self.settle_s * 1e3).round());
        for w in &self.work {
            let asked = match Path::new(&w.asked.0).is_file() {
                true => absolute(Path::new(&w.asked.0)),
                false => text(&w.asked.0),
            };
            out += &format!("\n[[workload]]\nuse = {asked}\n");
            let beside: Vec<String> = w.asked.1.iter().map(|b| text(b)).collect();
            if !beside.is_empty() {
                out += &format!("beside = [{}]\n", beside.join(", "));
            }
        }
        out
    }
}

/// Parses the schedulers of a command line.
///
/// # Errors
/// The text cannot be parsed.
pub fn schedulers(text: &str) -> Result<Vec<Level<seekwell::SchedulerSpec>>, Faults> {
    let all = expand::schedulers(text).map_err(|why| Faults::single("--schedulers", why))?;
    let level = |(name, spec)| Level {
        name: Some(name),
        ..Level::unnamed(spec)
    };
    Ok(all.into_iter().map(level).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
[experiment]
name = \"mine\"
repeats = 5
margin = \"5 %\"

[host]
path = \"data\"
device = \"sda\"
equal = { read_ahead_kb = 256 }
settle = \"2s\"
";

    #[test]
    fn host_file_defines_path_scheduler_workload_and_neighbours() {
        let text = TEXT.to_owned()
            + "[[scheduler]]\nuse = \"bfq\"\nlow_latency = 0\n\
               [[workload]]\nuse = \"sqlite3\"\ninserts = 100\nbeside = [\"loop:streams:kind=write,ionice=idle\"]\n\
               [[workload]]\nname = \"build\"\ncommand = \"make\"\nlimit = \"90s\"\n";
        assert!(is_host(&text));
        let d = read(&text, Path::new("/x")).expect("good");
        assert_eq!((d.path.to_str(), d.settle_s), (Some("/x/data"), 2.0));
        assert_eq!(d.design.method.repeats_max, 5);
        assert_eq!(
            d.design.schedulers[0].name.as_deref(),
            Some("bfq:low_latency=0")
        );
        let labels: Vec<&str> = d.work.iter().map(|w| &*w.label).collect();
        assert_eq!(labels, ["sqlite3:inserts=100", "build"]);
        assert_eq!((d.work[0].beside.len(), d.work[1].limit_s), (1, Some(90)));
        let equal: Vec<String> = d.equal.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(equal.join(" "), "iostats=1 read_ahead_kb=256");
    }

    #[test]
    fn all_faults_are_reported_together() {
        let text = TEXT
            .replace("margin", "margine")
            .replace("read_ahead_kb", "read_ahead")
            + "device = \"sda\"\n[[workload]]\nuse = \"pgbanch\"\n[queue]\nnr_requests = 3\n";
        let text = text.replace("settle = \"2s\"\ndevice = \"sda\"", "settle = \"soon\"");
        let e = read(&text, Path::new("/x")).expect_err("bad").to_string();
        for says in [
            "margine",
            "did you mean `read_ahead_kb`",
            "\"soon\" is not a time",
            "`pgbench`",
            "queue: is only for modelled",
        ] {
            assert!(e.contains(says), "{says}: {e}");
        }
        assert!(!is_host("[experiment]\nname = \"x\"\n"));
    }
}
