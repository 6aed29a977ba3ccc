//! The part of the schema for experiments on a real host: the table `[host]`, the schedulers of the
//! running kernel, and programs as workloads.
//!
//! The running kernel determines the schedulers and the attributes of a queue. So the schema
//! suggests the known names but accepts others.

use super::values::{TIME, scalar};
use super::{closed, keys};
use seekwell_host::program::recipes;
use seekwell_host::switch::settings::ATTRIBUTES;
use serde_json::{Map, Value, json};

/// Returns the tables and lists of an experiment on a host, by key. All other keys are rejected.
pub(super) fn top(experiment: Value) -> Value {
    let factor = |name: &str| {
        let one = json!({ "$ref": format!("#/definitions/{name}") });
        json!({ "anyOf": [one, { "type": "array", "minItems": 1, "items": one }] })
    };
    let mut all = Map::new();
    all.insert("experiment".to_owned(), experiment);
    all.insert("host".to_owned(), json!({ "$ref": "#/definitions/host" }));
    for name in ["scheduler", "workload"] {
        for key in [name.to_owned(), format!("{name}s")] {
            all.insert(key, factor(&format!("host_{name}")));
        }
    }
    closed(all)
}

/// Returns the schema of the table `[host]`.
pub(super) fn host() -> Value {
    let value = |name: &str| match name {
        "equal" => {
            let all = ATTRIBUTES.iter().map(|a| ((*a).to_owned(), scalar()));
            json!({ "anyOf": [{ "const": "kernel" }, closed(all.collect())] })
        }
        "settle" => json!({ "type": "string", "pattern": r"^ *[0-9.]+ *(ms|s|m|h) *$" }),
        _ => json!({ "type": "string", "minLength": 1 }),
    };
    #[rustfmt::skip]
    let of = [
        ("path", "A directory on the disk; Seekwell writes its own files there and removes them."),
        ("device",
            "Name of the disk below the directory. If it is given, Seekwell does not ask for confirmation."),
        ("equal",
            "Queue attributes that are the same in all runs, or \"kernel\" for each scheduler's \
             own defaults. Default: iostats = 1."),
        ("settle", "Pause between the change of the scheduler and the run. Default: 500ms."),
    ];
    let mut table = closed(keys(&of, value));
    table["required"] = json!(["path"]);
    table
}

/// Returns the schema of a scheduler of the running kernel.
pub(super) fn scheduler() -> Value {
    let name = json!({
        "type": "string",
        "minLength": 1,
        "examples": ["none", "mq-deadline", "kyber", "bfq", "bfq:low_latency=0"],
    });
    #[rustfmt::skip]
    let of = [
        ("use", "A scheduler of the disk's queue, in the kernel's spelling."),
        ("name", "Name in tables."),
    ];
    let mut table = open(keys(&of, |key| match key {
        "use" => name.clone(),
        _ => json!({ "type": "string" }),
    }));
    table["required"] = json!(["use"]);
    json!({ "anyOf": [name, table] })
}

/// Returns the schema of a table with these keys and any tunables or parameters.
fn open(properties: Map<String, Value>) -> Value {
    json!({
        "type": "object", "properties": properties, "additionalProperties": scalar(),
    })
}

/// Returns the schema of a workload: a program, script, job file or command line.
pub(super) fn workload() -> Value {
    let known: Vec<String> = recipes().into_iter().map(|r| r.name).collect();
    let name = json!({ "type": "string", "minLength": 1, "examples": known });
    let text = json!({ "type": "string" });
    let value = |key: &str| match key {
        "use" => name.clone(),
        "limit" => json!({ "type": "string", "pattern": TIME }),
        "beside" => json!({ "anyOf": [text, { "type": "array", "items": text }] }),
        "better" => json!({ "enum": ["higher", "lower"] }),
        "nice" => json!({ "type": "integer", "minimum": -20, "maximum": 19 }),
        "riops" | "wiops" => json!({ "type": "integer", "minimum": 1 }),
        "rbps" | "wbps" => json!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": "^[0-9]+[kKmMgG]?$" },
        ] }),
        "weight" => json!({ "type": "integer", "minimum": 1, "maximum": 1000 }),
        "ionice" => json!({ "type": "string", "pattern": "^((rt|be)(:[0-7])?|idle(:[0-7])?)$" }),
        _ => text.clone(),
    };
    #[rustfmt::skip]
    let of = [
        ("use",
            "The program of a recipe, a script of `seekwell workloads`, NAME.toml or NAME.fio."),
        ("command", "A command line; its duration is measured, unless `regex` finds a number."),
        ("name", "Name in tables."),
        ("metric", "Name of the deciding metric, if it is not the first metric."),
        ("limit", "Time limit of a run, for example 90s or 10m."),
        ("beside", "Background workloads, for example loop:streams:kind=read,ionice=idle."),
        ("regex", "For a command: a regular expression whose group is the measured number."),
        ("metric_name", "Name of the measured number."),
        ("unit", "Its unit."),
        ("better", "Which direction is better."),
        ("ionice", "I/O priority class and level, for example rt:0, be:7 or idle."),
        ("nice", "Niceness."),
        ("weight", "Weight of the workload's cgroup."),
        ("rbps", "Limit on the bytes that the workload's cgroup reads per second."),
        ("wbps", "Limit on the bytes that the workload's cgroup writes per second."),
        ("riops", "Limit on the reads per second of the workload's cgroup."),
        ("wiops", "Limit on the writes per second of the workload's cgroup."),
    ];
    let mut table = open(keys(&of, value));
    table["anyOf"] = json!([
        { "required": ["use"], "not": { "required": ["command"] } },
        { "required": ["command"], "not": { "required": ["use"] } },
    ]);
    json!({ "anyOf": [name, table] })
}
