//! Reads the workloads of an experiment file: scripts, fio job files and traces.

use super::grid::{Axis, Point, added};
use super::value::{Switch, kind};
use super::{Entry, Reader};
use crate::experiment::Primary;
use crate::experiment::design::Work;
use crate::experiment::fault::Place;
use seekwell::{BackgroundSpec, Fit, SpecErrors, Stream, WorkloadSpec, words};
use seekwell_core::once::Once;
use seekwell_sim::spec::workload::checked;
use seekwell_workload::{unknown_workload, workload};
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The keys of all workloads with their descriptions.
#[rustfmt::skip]
pub(in crate::experiment) const WORK: &[(&str, &str)] = &[
    ("use", "A workload of `seekwell workloads`, optionally with parameters after a colon."),
    ("fio", "A fio job file; a relative path starts at the folder of this file."),
    ("trace", "A recorded trace; a relative path starts at the folder of this file."),
    ("name", "Name in tables."),
    ("metric",
        "The deciding metric: a metric of the workload, or the rate, mean, max or p99 of its \
         operations, for example \"fsync p99\"."),
    ("limit", "Limit of a run in simulated time, for example \"30s\"."),
    ("beside",
        "Background workloads, which are not measured; the prefix `loop:` restarts them when they end."),
];

/// The additional keys of a fio job file.
#[rustfmt::skip]
pub(in crate::experiment) const FIO: &[(&str, &str)] = &[
    ("text", "Text of the job file, instead of a file."),
    ("includes", "Texts of the files that the job file includes, by name."),
    ("variables", "Values of the variables of the job file, by name."),
];

/// The additional keys of a trace.
#[rustfmt::skip]
pub(in crate::experiment) const TRACE: &[(&str, &str)] = &[
    ("mode",
        "When records are submitted: \"timed\", \"scaled:FACTOR\", \"depth:N\", \"closed\" or \"steady\"."),
    ("fit", "What to do with records beyond the end of the device: \"strict\" or \"wrap\"."),
    ("format", "A format of `seekwell formats`; default: detected from the first bytes."),
    ("columns", "Fields of a delimited text, for example \"t_s=1,op=2,sector=3,sectors=4\"."),
    ("stream", "Events of a block trace to replay: \"queue\" (bios) or \"issue\" (requests)."),
    ("records", "Stop after this many records."),
    ("volume", "Only records of this device, for example \"8,16\", or of this volume."),
    ("from", "Only records at least this long after the first, for example \"10s\"."),
    ("until", "Only records less than this long after the first, for example \"60s\"."),
    ("pids", "Only records of these processes."),
    ("response_unit", "Unit of response times, if the format does not define it: ns, us or ms."),
    ("allow_truncated", "True: a truncated trace ends with a warning instead of an error."),
    ("sha256", "SHA-256 of the file. A file with another hash is rejected."),
];

/// What happens to trace records beyond the end of the device, by name.
pub(in crate::experiment) const FITS: &[(&str, Fit)] =
    &[("strict", Fit::Strict), ("wrap", Fit::Wrap)];

/// Which events of a block trace are replayed, by name.
pub(in crate::experiment) const STREAMS: &[(&str, Stream)] =
    &[("queue", Stream::Queue), ("issue", Stream::Issue)];

/// The extensions of fio job files.
const JOBS: &[&str] = &["fio", "ini", "job"];

/// Returns whether a text is the name of a fio job file.
pub(in crate::experiment) fn is_job(text: &str) -> bool {
    let suffix = Path::new(text).extension().and_then(|s| s.to_str());
    suffix.is_some_and(|s| JOBS.contains(&s))
}

/// The settings that all workloads have.
#[derive(Default)]
struct Common {
    name: Option<String>,
    metric: Option<(String, Place)>,
    limit_s: Option<u64>,
    beside: Vec<BackgroundSpec>,
    axes: BTreeMap<String, String>,
}

impl Reader<'_> {
    /// Reads a workload in the notation of the command line: a name with parameters, or a job file
    /// in this folder.
    fn typed_workload(&self, text: &str) -> Result<WorkloadSpec, SpecErrors> {
        let text = text.trim();
        if is_job(text) {
            return words::workload(&self.path(text), &[]);
        }
        words::workload(text, &[])
    }

    /// Reads a background workload. The prefix `loop:` restarts the workload whenever it ends.
    fn typed_beside(&self, text: &str) -> Result<BackgroundSpec, SpecErrors> {
        let text = text.trim();
        let inner = text.strip_prefix(words::LOOP);
        let mut beside = BackgroundSpec {
            again: inner.is_some(),
            workload: self.typed_workload(inner.unwrap_or(text))?,
        };
        beside.workload = seekwell_sim::spec::workload::background_spec(&beside)?;
        Ok(beside)
    }

    /// Returns a path relative to the folder of the experiment.
    fn path(&self, text: &str) -> String {
        self.dir.join(text).display().to_string()
    }

    pub(super) fn workload(&mut self, field: &str, at: Place, v: &Spanned<DeValue<'_>>) {
        let table = match v.get_ref() {
            DeValue::String(s) => {
                let typed = self.typed_workload(s);
                if let Some(spec) = self.faults.take(at, field, typed) {
                    self.add(field, at, &Common::default(), spec, &Point::default());
                }
                return;
            }
            DeValue::Table(t) => t,
            other => {
                let what = format!(
                    "is {}, not a workload: write \"pgbench\", or a table with `use`, `fio` or \
                     `trace`",
                    kind(other)
                );
                self.bad(at, field, &what);
                return;
            }
        };
        let kinds = ["use", "fio", "trace"]
            .into_iter()
            .filter(|k| table.contains_key(*k));
        match kinds.collect::<Vec<_>>()[..] {
            ["use"] => self.script(field, at, table),
            ["fio"] => self.job(field, at, table),
            ["trace"] => self.trace(field, at, table),
            [] => {
                let what = "names no workload: add use = \"pgbench\" (`seekwell workloads` lists \
                            all), fio = \"FILE\" or trace = \"FILE\"";
                self.bad(at, field, what);
            }
            _ => self.bad(at, field, "needs exactly one of `use`, `fio` and `trace`"),
        }
    }

    /// Reads the settings that all workloads have, and returns the other keys.
    fn common<'v, 'a>(
        &mut self,
        field: &str,
        table: &'v DeTable<'a>,
    ) -> (Common, Vec<Entry<'v, 'a>>) {
        let mut all = Common::default();
        let mut rest = Vec::new();
        for e in self.entries(table) {
            let f = format!("{field}.{}", e.key);
            match e.key {
                "name" => all.name = self.text(&f, e.value),
                "metric" => {
                    let at = self.at(e.value);
                    all.metric = self.text(&f, e.value).map(|m| (m, at));
                }
                "limit" => all.limit_s = self.seconds(&f, e.value),
                "beside" => {
                    for one in self.list(&f, e.value) {
                        let typed = self.typed_beside(&one.text);
                        all.beside.extend(self.faults.take(one.at, &f, typed));
                    }
                }
                "axes" => all.axes = self.map(&f, e.value),
                _ => rest.push(e),
            }
        }
        (all, rest)
    }

    /// Adds a level if the requested metric is valid.
    fn add(&mut self, field: &str, at: Place, c: &Common, spec: WorkloadSpec, p: &Point) {
        if let Some((metric, at)) = &c.metric {
            let parsed = Primary::parse(metric, &spec);
            let f = format!("{field}.metric");
            if self.faults.take(*at, &f, parsed).is_none() {
                return;
            }
        }
        let work = Work {
            spec,
            metric: c.metric.as_ref().map(|m| m.0.clone()),
            limit_s: c.limit_s,
            beside: c.beside.clone(),
        };
        let level = p.level(c.name.as_deref(), ' ', work, &c.axes);
        self.design.workloads.push(level);
        self.places.workloads.push(at);
    }

    fn script(&mut self, field: &str, at: Place, table: &DeTable<'_>) {
        let (common, rest) = self.common(field, table);
        let mut entries = Vec::new();
        let mut uses = Vec::new();
        for e in rest {
            match (e.key, e.value.get_ref()) {
                ("use", _) => uses = self.texts(&format!("{field}.use"), e.value, Switch::Word),
                // `params` is for parameters with the same name as one of these keys.
                ("params", DeValue::Table(t)) => entries.extend(self.entries(t)),
                _ => entries.push(e),
            }
        }
        let mut bases: Vec<(String, BTreeMap<String, String>)> = Vec::new();
        for u in uses {
            let f = format!("{field}.use");
            let (name, inline) = u.text.split_once(':').unwrap_or((&u.text, ""));
            let name = name.trim();
            if is_job(name) {
                self.bad(u.at, &f, "is a fio job file: write fio = \"FILE\"");
                continue;
            }
            if workload(name).is_none() {
                let what = format!(
                    "no workload is called \"{name}\"; {}",
                    unknown_workload(name)
                );
                self.bad(u.at, &f, &what);
                continue;
            }
            let (mut given, mut once) = (BTreeMap::new(), Once::default());
            for part in inline.split(',').filter(|p| !p.trim().is_empty()) {
                match part.split_once('=') {
                    Some((k, v)) => {
                        if let Err(what) = once.take(k.trim(), part) {
                            self.bad(u.at, &f, &what);
                        }
                        given.insert(k.trim().to_owned(), v.trim().to_owned());
                    }
                    None => {
                        let what = format!("\"{part}\" is not a parameter: write NAME=VALUE");
                        self.bad(u.at, &f, &what);
                    }
                }
            }
            let alone = checked(&script(name, &given));
            if let Err(e) = alone {
                self.faults.under(u.at, &f, e);
                continue;
            }
            bases.push((name.to_owned(), given));
        }
        let mut axes = Vec::new();
        for e in entries {
            let f = format!("{field}.{}", e.key);
            let mut values = Vec::new();
            for v in self.texts(&f, e.value, Switch::Word) {
                let one = BTreeMap::from([(e.key.to_owned(), v.text.clone())]);
                let mut good = true;
                for (name, _) in &bases {
                    if let Err(errors) = checked(&script(name, &one)) {
                        for mut error in errors.0 {
                            // The value can be valid in combination with other values.
                            if error.field == "workload.params" || error.field == "params" {
                                continue;
                            }
                            good = false;
                            error.field.clone_from(&f);
                            self.faults.add(v.at, error);
                        }
                    }
                }
                if good {
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
            for (name, given) in &bases {
                let mut params = given.clone();
                if let Err(what) = added(&mut params, &p.values) {
                    self.bad(at, field, &what);
                    return;
                }
                let whole = checked(&script(name, &params));
                if let Some(spec) = self.faults.take(at, field, whole) {
                    let mut point = p.clone();
                    if several {
                        point.axes.insert("use".to_owned(), name.clone());
                    }
                    self.add(field, at, &common, spec, &point);
                }
            }
        }
    }

    fn job(&mut self, field: &str, at: Place, table: &DeTable<'_>) {
        let (common, rest) = self.common(field, table);
        let (mut file, mut text) = (None, None);
        let (mut includes, mut variables) = (BTreeMap::new(), BTreeMap::new());
        for e in rest {
            let f = format!("{field}.{}", e.key);
            match e.key {
                "fio" => file = self.text(&f, e.value).map(|t| (t, self.at(e.value))),
                "text" => text = self.text(&f, e.value),
                "includes" => includes = self.map(&f, e.value),
                "variables" => variables = self.map(&f, e.value),
                key => self.unknown_key(e.at, &f, key, FIO),
            }
        }
        let Some((file, file_at)) = file else { return };
        let path = self.path(&file);
        let spec = match text {
            Some(text) => checked(&WorkloadSpec::Fio {
                file,
                text,
                includes,
                variables,
            }),
            // The file is read as a job file, whatever its extension is.
            None => seekwell_sim::spec::workload::job_file(&path),
        };
        let f = format!("{field}.fio");
        if let Some(spec) = self.faults.take(file_at, &f, spec) {
            self.add(field, at, &common, spec, &Point::default());
        }
    }

    fn unknown_key(&mut self, at: Place, field: &str, key: &str, further: &[(&str, &str)]) {
        let known = WORK.iter().chain(further).map(|k| k.0);
        let known: Vec<&str> = known.collect();
        self.faults
            .unknown(at, field, "there is no such setting", key, &known);
    }

    fn trace(&mut self, field: &str, at: Place, table: &DeTable<'_>) {
        let (common, rest) = self.common(field, table);
        let mut spec = WorkloadSpec::Trace {
            file: String::new(),
            sha256: String::new(),
            format: None,
            mode: "timed".to_owned(),
            fit: Fit::Strict,
            limit: None,
            stream: Stream::Queue,
            volume: None,
            from_ns: 0,
            until_ns: None,
            pids: Default::default(),
            columns: None,
            response_unit: None,
            allow_truncated: false,
        };
        let mut modes = Vec::new();
        let mut file_at = at;
        if let WorkloadSpec::Trace {
            file,
            sha256,
            format,
            fit,
            limit,
            stream,
            volume,
            from_ns,
            until_ns,
            pids,
            columns,
            response_unit,
            allow_truncated,
            ..
        } = &mut spec
        {
            for e in rest {
                let f = format!("{field}.{}", e.key);
                let v = e.value;
                match e.key {
                    "trace" => {
                        file_at = self.at(v);
                        let named = self.text(&f, v);
                        *file = named.map_or(String::new(), |t| self.path(&t));
                    }
                    "mode" => modes = self.texts(&f, v, Switch::Word),
                    "sha256" => *sha256 = self.text(&f, v).unwrap_or_default(),
                    "format" => *format = self.text(&f, v),
                    "fit" => *fit = self.word(&f, v, FITS).unwrap_or_default(),
                    "stream" => *stream = self.word(&f, v, STREAMS).unwrap_or_default(),
                    "records" => *limit = self.whole(&f, v, (1, i64::MAX as u64)),
                    "volume" => *volume = self.text(&f, v),
                    "from" => *from_ns = self.time(&f, v).unwrap_or_default(),
                    "until" => *until_ns = self.time(&f, v),
                    "pids" => {
                        for t in self.texts(&f, v, Switch::Digit) {
                            match t.text.parse() {
                                Ok(pid) => {
                                    pids.insert(pid);
                                }
                                Err(_) => self.bad(t.at, &f, "is not a process number"),
                            }
                        }
                    }
                    "columns" => *columns = self.text(&f, v),
                    "response_unit" => *response_unit = self.text(&f, v),
                    "allow_truncated" => {
                        *allow_truncated = self.switch(&f, v).unwrap_or_default();
                    }
                    key => self.unknown_key(e.at, &f, key, TRACE),
                }
            }
            if file.is_empty() {
                return;
            }
            let f = format!("{field}.trace");
            if sha256.is_empty() {
                match words::trace(Path::new(file)) {
                    Ok(WorkloadSpec::Trace { sha256: own, .. }) if !own.is_empty() => *sha256 = own,
                    Ok(_) => {
                        let what = "is not a regular file: each run must read it again";
                        self.bad(file_at, &f, what);
                        return;
                    }
                    Err(e) => {
                        self.faults.under(file_at, &f, e);
                        return;
                    }
                }
            }
        }
        let axes = match modes.is_empty() {
            true => Vec::new(),
            false => vec![Axis {
                name: "mode".to_owned(),
                values: modes,
            }],
        };
        for p in self.product(field, at, &axes) {
            let mut spec = spec.clone();
            if let (WorkloadSpec::Trace { mode, .. }, Some((_, m))) = (&mut spec, p.values.first())
            {
                mode.clone_from(m);
            }
            let whole = checked(&spec);
            if let Some(spec) = self.faults.take(at, field, whole) {
                self.add(field, at, &common, spec, &p);
            }
        }
    }
}

fn script(name: &str, params: &BTreeMap<String, String>) -> WorkloadSpec {
    WorkloadSpec::Script {
        name: name.to_owned(),
        params: params.clone(),
    }
}
