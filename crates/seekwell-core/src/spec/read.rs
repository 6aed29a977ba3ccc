//! Reads a specification. All unknown fields and all values of a wrong type are reported together.

use super::{
    BackgroundSpec, DeviceSpec, MachineSpec, QueueSpec, RunSpec, SPEC_VERSION, SchedulerSpec,
    SpecErrors, WorkloadSpec,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Names of the fields of each part, by the path of the part. A test compares them with the types.
#[rustfmt::skip]
const FIELDS: &[(&str, &[&str])] = &[
    ("",
        &["version", "substrate", "device", "scheduler", "queue", "machine", "workload", "beside",
            "seed", "repeat", "limit_s", "label"]),
    ("beside", &["again", "workload"]),
    ("device", &["spec", "files"]),
    ("scheduler", &["name", "version", "tunables"]),
    ("queue", &["hz", "nr_requests", "depth", "max_sectors_kb", "max_segments", "nomerges", "virtio"]),
    ("machine",
        &["kernel", "cores", "memory_bytes", "cache_bytes", "fs", "barriers", "aged_run_blocks",
            "placement", "phase", "read_ahead_kb", "cpu_permille", "data", "commit_s",
            "dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes",
            "dirty_expire_centisecs", "dirty_writeback_centisecs", "cgroups", "without"]),
];

/// Names of the fields of a workload, by its kind.
#[rustfmt::skip]
const WORKLOADS: &[(&str, &[&str])] = &[
    ("script", &["kind", "name", "params"]),
    ("fio", &["kind", "file", "text", "includes", "variables"]),
    ("trace",
        &["kind", "file", "sha256", "format", "columns", "mode", "fit", "limit", "stream", "volume",
            "from_ns", "until_ns", "pids", "response_unit", "allow_truncated"]),
];

/// Removes unknown fields and reports them.
fn unknown(part: &str, map: &mut Map<String, Value>, known: &[&str], errors: &mut SpecErrors) {
    let names: Vec<String> = map.keys().cloned().collect();
    for name in names {
        if known.contains(&name.as_str()) {
            continue;
        }
        map.remove(&name);
        let field = match part {
            "" => name.clone(),
            part => format!("{part}.{name}"),
        };
        errors.unknown(field, "there is no such field", &name, known);
    }
}

/// Converts numbers and booleans in a table of texts to texts, for example in `fifo_batch = 1`.
fn texts(map: &mut Map<String, Value>, field: &str) {
    if let Some(Value::Object(inner)) = map.get_mut(field) {
        for v in inner.values_mut() {
            match v {
                Value::Number(n) => *v = n.to_string().into(),
                Value::Bool(b) => *v = b.to_string().into(),
                _ => {}
            }
        }
    }
}

/// Converts one part to its type. Reports faults with the path of the part.
fn part<T: DeserializeOwned>(path: &str, value: Value, errors: &mut SpecErrors) -> Option<T> {
    match serde_json::from_value(value) {
        Ok(v) => Some(v),
        Err(e) => {
            errors.push(path, e.to_string());
            None
        }
    }
}

/// Removes unknown fields from the table at a path, and returns the table.
fn table(path: &str, mut value: Value, errors: &mut SpecErrors) -> Value {
    let Value::Object(map) = &mut value else {
        return value;
    };
    match FIELDS.iter().find(|f| f.0 == path) {
        Some((_, known)) => unknown(path, map, known, errors),
        None => workload(path, map, errors),
    }
    if path == "scheduler" {
        texts(map, "tunables");
    }
    value
}

fn workload(path: &str, map: &mut Map<String, Value>, errors: &mut SpecErrors) {
    let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
    let known = WORKLOADS.iter().find(|w| w.0 == kind);
    if let Some((_, known)) = known {
        unknown(path, map, known, errors);
    }
    texts(map, "params");
}

/// Reads the programs next to the measured program: a list of tables with one workload each.
fn read_background(value: Value, errors: &mut SpecErrors) -> Vec<BackgroundSpec> {
    let Value::Array(list) = value else {
        errors.push("beside", "is a list of tables, each with a workload");
        return Vec::new();
    };
    let known = FIELDS
        .iter()
        .find(|f| f.0 == "beside")
        .map_or(&[][..], |f| f.1);
    let mut all = Vec::new();
    for (i, mut value) in list.into_iter().enumerate() {
        let path = format!("beside[{i}]");
        if let Value::Object(map) = &mut value {
            unknown(&path, map, known, errors);
            if let Some(Value::Object(inner)) = map.get_mut("workload") {
                workload(&format!("{path}.workload"), inner, errors);
            }
        }
        all.extend(part::<BackgroundSpec>(&path, value, errors));
    }
    all
}

impl RunSpec {
    /// Reads JSON.
    ///
    /// # Errors
    /// All unknown fields and wrong values. If the text is not JSON, the position of the error.
    pub fn from_json(text: &str) -> Result<RunSpec, SpecErrors> {
        match serde_json::from_str(text) {
            Ok(value) => RunSpec::from_value(value),
            Err(e) => Err(SpecErrors::single("", e.to_string())),
        }
    }
    /// Reads TOML.
    ///
    /// # Errors
    /// All unknown fields and wrong values. If the text is not TOML, the position of the error.
    pub fn from_toml(text: &str) -> Result<RunSpec, SpecErrors> {
        match toml::from_str::<Value>(text) {
            Ok(value) => RunSpec::from_value(value),
            Err(e) => Err(SpecErrors::single("", e.to_string().trim_end())),
        }
    }
    /// Reads a value that is already parsed.
    ///
    /// # Errors
    /// All unknown fields and wrong values.
    pub fn from_value(value: Value) -> Result<RunSpec, SpecErrors> {
        let Value::Object(mut top) = value else {
            return Err(SpecErrors::single(
                "",
                "a run is a table of device, scheduler, workload ...",
            ));
        };
        let mut errors = SpecErrors::default();
        let e = &mut errors;
        // Check this first, because another version has other fields.
        if let Some(version) = top.get("version").and_then(Value::as_u64)
            && version != u64::from(SPEC_VERSION)
        {
            return Err(SpecErrors::single(
                "version",
                format!("this Seekwell reads version {SPEC_VERSION}, not {version}"),
            ));
        }
        unknown("", &mut top, FIELDS[0].1, e);
        let mut required = |path: &str, e: &mut SpecErrors| match top.remove(path) {
            Some(v) => Some(table(path, v, e)),
            None => {
                e.push(path, "is missing");
                None
            }
        };
        let device = required("device", e).and_then(|v| part::<DeviceSpec>("device", v, e));
        let scheduler = required("scheduler", e);
        let scheduler = scheduler.and_then(|v| part::<SchedulerSpec>("scheduler", v, e));
        let workload = required("workload", e);
        let workload = workload.and_then(|v| part::<WorkloadSpec>("workload", v, e));
        let mut optional = |path: &str, e: &mut SpecErrors| {
            let v = top.remove(path).filter(|v| !v.is_null());
            v.map(|v| table(path, v, e))
        };
        let queue = optional("queue", e).and_then(|v| part::<QueueSpec>("queue", v, e));
        let machine = optional("machine", e).and_then(|v| part::<MachineSpec>("machine", v, e));
        let mut simple = |path: &str| top.remove(path).filter(|v| !v.is_null());
        let beside = simple("beside").map(|v| read_background(v, e));
        let substrate = simple("substrate").and_then(|v| part("substrate", v, e));
        let seed = simple("seed").and_then(|v| part("seed", v, e));
        let repeat = simple("repeat").and_then(|v| part("repeat", v, e));
        let limit_s = simple("limit_s").and_then(|v| part("limit_s", v, e));
        let label = simple("label").and_then(|v| part("label", v, e));
        if let Some(v) = simple("version") {
            part::<u32>("version", v, e);
        }
        let (Some(device), Some(scheduler), Some(workload)) = (device, scheduler, workload) else {
            return Err(errors);
        };
        let mut spec = RunSpec::new(device, scheduler, workload);
        spec.queue = queue.unwrap_or_default();
        spec.machine = machine.or(spec.machine);
        spec.beside = beside.unwrap_or_default();
        spec.substrate = substrate.unwrap_or_default();
        spec.seed = seed.unwrap_or(spec.seed);
        spec.repeat = repeat.unwrap_or_default();
        (spec.limit_s, spec.label) = (limit_s, label);
        errors.or(spec)
    }
}

#[cfg(test)]
pub(super) fn fields() -> Vec<(&'static str, &'static [&'static str])> {
    let mut all = FIELDS.to_vec();
    all.extend_from_slice(WORKLOADS);
    all
}
