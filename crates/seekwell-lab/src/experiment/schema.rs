//! The JSON Schema of experiment files, for editors. It is built from the same lists that the
//! reader uses. So it contains every scheduler with its tunables and every workload with its
//! parameters.
//!
//! The schema uses Draft 7, which TOML tools support. A schema checks only the text of the file.
//! Only the reader can check that a preset file exists and that the values are compatible.

mod host;
mod values;

use super::expand::REPEATS_MAX;
use super::primary::BELOW;
use super::read::{FIO, FITS, NAME_MAX, ORDERS, PICKS, QUEUE, SETTINGS, STATES, STOPS, STREAMS};
use super::read::{TRACE, WORK};
use seekwell_sched::registry;
use seekwell_sim::spec::machine::WORDS;
use seekwell_workload::workloads;
use serde_json::{Map, Value, json};
use values::{described, grid, of_kind, of_param, of_tunable, scalar, texts, words};

/// Returns the schema as JSON.
pub fn schema() -> Value {
    let factor = |name: &str| {
        let one = json!({ "$ref": format!("#/definitions/{name}") });
        json!({ "anyOf": [one, { "type": "array", "minItems": 1, "items": one }] })
    };
    #[rustfmt::skip]
    let factors = [
        ("device", "device", "The devices; `seekwell devices` lists all."),
        ("devices", "device", "The devices; `seekwell devices` lists all."),
        ("scheduler", "scheduler", "The schedulers; `seekwell schedulers` lists all."),
        ("schedulers", "scheduler", "The schedulers; `seekwell schedulers` lists all."),
        ("workload", "workload", "The workloads; `seekwell workloads` lists all."),
        ("workloads", "workload", "The workloads; `seekwell workloads` lists all."),
        ("machine", "machine", "The machine above the queue."),
        ("machines", "machine", "The machine above the queue."),
        ("queue", "queue", "Settings of /sys/block/DEV/queue."),
        ("only", "pick", "Only runs that match one of these are made; * matches any characters."),
        ("exclude", "pick", "Runs that match one of these are left out; * matches any characters."),
    ];
    let factors: Map<String, Value> = factors
        .iter()
        .map(|(name, of, about)| ((*name).to_owned(), described(factor(of), about)))
        .collect();
    let mut settings = experiment();
    let on_host = host::top(closed(settings.clone()));
    settings.extend(factors.clone());
    let about = |v: &Value| json!({ "description": v["description"] });
    let mut shown: Map<String, Value> =
        factors.iter().map(|(k, v)| (k.clone(), about(v))).collect();
    let mut top = factors;
    let experiment = closed(settings);
    top.insert("experiment".to_owned(), json!(true));
    shown.insert("experiment".to_owned(), experiment);
    let place =
        "Runs on this host: the directory, and the settings that are the same for all schedulers.";
    shown.insert("host".to_owned(), json!({ "description": place }));
    // With `[host]`, the schedulers are those of the running kernel, and workloads can be programs.
    let named = json!({ "required": ["host"] });
    let mut schema = json!({
        "type": "object",
        "properties": shown,
        "allOf": [
            { "if": named, "then": on_host },
            { "if": { "not": named }, "then": closed(top) },
        ],
    });
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("A Seekwell experiment");
    schema["definitions"] = json!({
        "device": device(),
        "scheduler": scheduler(),
        "workload": workload(),
        "machine": machine(),
        "queue": queue(),
        "pick": pick(),
        "host": host::host(),
        "host_scheduler": host::scheduler(),
        "host_workload": host::workload(),
    });
    schema
}

/// Returns the schema of a table that can only have these keys.
fn closed(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// Returns the same keys with any value. The types of the values are checked elsewhere.
fn anything(keys: &Map<String, Value>) -> Map<String, Value> {
    keys.keys().map(|k| (k.clone(), json!(true))).collect()
}

fn experiment() -> Map<String, Value> {
    let share = |lo: f64, hi: f64| {
        json!({ "anyOf": [
            { "type": "number", "exclusiveMinimum": lo, "exclusiveMaximum": hi },
            { "type": "string", "pattern": r"^[0-9_]*\.?[0-9]+ *%$|^0?\.[0-9]+$" },
        ] })
    };
    let time = json!({ "type": "string", "pattern": values::TIME });
    let blocks = json!({ "type": "integer", "minimum": 1, "maximum": REPEATS_MAX });
    let one = |name: &str| match name {
        "name" => json!({
            "type": "string", "minLength": 1, "maxLength": NAME_MAX, "pattern": "^[^/\\u0000-\\u001f]*$",
        }),
        "seed" => json!({ "type": "integer", "minimum": 0 }),
        "margin" | "target" => share(0.0, 1.0),
        "confidence" => share(0.5, 1.0),
        "fraction" => json!({ "anyOf": [
            { "type": "number", "minimum": 0, "exclusiveMaximum": 1 },
            { "type": "string", "pattern": r"^[0-9]*\.?[0-9]+ *%?$" },
        ] }),
        "repeats" => json!({ "anyOf": [
            blocks,
            { "type": "string", "pattern": r"^ *[0-9]+ *\.\.=? *[0-9]+ *$" },
            {
                "type": "object",
                "properties": { "min": blocks, "max": blocks },
                "additionalProperties": false,
            },
        ] }),
        "stop" => words(STOPS.iter().map(|s| s.0)),
        "order" => words(ORDERS.iter().map(|s| s.0)),
        "state" => words(STATES.iter().map(|s| s.0)),
        "budget" => time.clone(),
        "kernel" => kernel(),
        "warmup" => json!({ "anyOf": [{ "const": "auto" }, time] }),
        "carried" => json!({ "type": "boolean" }),
        _ => json!({ "type": "string" }),
    };
    SETTINGS
        .iter()
        .map(|(name, about)| ((*name).to_owned(), described(one(name), about)))
        .collect()
}

/// Returns a pattern that matches one of the names: `a|b|c`.
fn any(names: impl Iterator<Item = impl AsRef<str>>) -> String {
    let quoted: Vec<String> = names.map(|n| values::quoted(n.as_ref())).collect();
    quoted.join("|")
}

/// Returns the keys that the table of every factor has.
fn common(about: &str) -> Map<String, Value> {
    let mut all = Map::new();
    let name = described(json!({ "type": "string" }), about);
    all.insert("name".to_owned(), name);
    let axes = "Values of a grid that is already expanded, by parameter.";
    all.insert("axes".to_owned(), described(texts(), axes));
    all
}

fn device() -> Value {
    let presets = seekwell_device::catalogue();
    let full = presets
        .iter()
        .flat_map(|p| p.aliases.iter().chain([&p.name]));
    let full: Vec<&str> = full.map(String::as_str).collect();
    let bare = full.iter().filter_map(|n| n.split_once(':')).map(|n| n.1);
    let plain = seekwell_device::kinds()
        .iter()
        .filter(|k| k.plain.is_some());
    // In `raid5:members=4`, a RAID level takes the place of the kind.
    let levels = seekwell_device::raid::LEVELS.iter();
    let open = any(plain.map(|k| k.name).chain(levels.copied()));
    let names = any(full.iter().copied().chain(bare));
    let pattern = format!(r"^ *(({names})(,.*)?|({open})(:?|:.*=.*)|.*\.toml(,.*)?) *$");
    let text = json!({ "type": "string", "pattern": pattern });
    let mut keys = common("Name in tables.");
    let one_or_more = json!({ "anyOf": [text, { "type": "array", "minItems": 1, "items": text }] });
    let about = "A device of `seekwell devices`, or the path of a preset file.";
    keys.insert("use".to_owned(), described(one_or_more, about));
    let about = "Texts of the preset files that the device refers to, by path.";
    keys.insert("files".to_owned(), described(texts(), about));
    for kind in seekwell_device::kinds() {
        for def in kind.defs {
            let of = keys.entry(def.key).or_insert_with(|| {
                let about = format!("{}: {}", kind.name, def.doc);
                described(grid(scalar()), &about)
            });
            let more = format!("; {}: {}", kind.name, def.doc);
            if let Some(Value::String(about)) = of.get_mut("description")
                && !about.contains(&*format!("{}:", kind.name))
            {
                about.push_str(&more);
            }
        }
    }
    let mut table = closed(keys);
    table["required"] = json!(["use"]);
    json!({ "anyOf": [text, table] })
}

fn scheduler() -> Value {
    let groups = ["all", "single-queue", "blk-mq"];
    let names = any(registry().iter().map(|s| s.name).chain(groups));
    let one = format!(r"({names})(-[A-Za-z0-9._-]+)?(:[^,]*)?");
    let text = json!({ "type": "string", "pattern": format!("^ *{one} *(, *{one} *)*,? *$") });
    let mut keys = common("Name in tables; the values of a grid are added.");
    let one_or_more = json!({ "anyOf": [text, { "type": "array", "minItems": 1, "items": text }] });
    let about = "A scheduler of `seekwell schedulers`, optionally with version and tunables.";
    keys.insert("use".to_owned(), described(one_or_more, about));
    let about = "Version of the scheduler; `seekwell schedulers NAME` lists the versions.";
    keys.insert("version".to_owned(), described(grid(scalar()), about));
    let about = "Tunables. Needed if a tunable has the same name as another key.";
    keys.insert(
        "tunables".to_owned(),
        described(json!({ "type": "object" }), about),
    );
    let shared = keys.clone();
    let mut own = Vec::new();
    for s in registry() {
        let mut exact = anything(&shared);
        for version in s.versions {
            for t in (s.tunables)(version.0) {
                let value = described(of_tunable(t), &values::about(t));
                exact.entry(t.name).or_insert(value);
                let about = format!("{}: {}", s.name, values::about(t));
                keys.entry(t.name)
                    .or_insert_with(|| described(grid(scalar()), &about));
            }
        }
        // All versions are listed by name, so that `bfq` does not match the beginning of `bfq-sq`.
        let versions = any(s.versions.iter().map(|v| v.0));
        let name = values::quoted(s.name);
        let of = format!("^ *{name}(-({versions}))?(:[^,]*)? *$");
        own.push(json!({
            "if": {
                "properties": { "use": { "type": "string", "pattern": of } },
                "required": ["use"],
            },
            "then": closed(exact),
        }));
    }
    let mut table = closed(keys);
    table["required"] = json!(["use"]);
    table["allOf"] = json!(own);
    json!({ "anyOf": [text, table] })
}

/// Returns the keys of a table with their descriptions and the schema of each value.
fn keys(of: &[(&str, &str)], value: impl Fn(&str) -> Value) -> Map<String, Value> {
    of.iter()
        .map(|(name, about)| ((*name).to_owned(), described(value(name), about)))
        .collect()
}

fn workload() -> Value {
    let names = any(workloads().iter().map(|w| w.name));
    let named = format!("^ *({names}) *(:.*)?$");
    let text = json!({ "anyOf": [
        { "type": "string", "pattern": named },
        { "type": "string", "pattern": r"\.(fio|ini|job) *$" },
    ] });
    let script = json!({ "type": "string", "pattern": named });
    let shared = |name: &str| match name {
        "use" => {
            json!({ "anyOf": [script, { "type": "array", "minItems": 1, "items": script }] })
        }
        "limit" => json!({ "type": "string", "pattern": values::TIME }),
        "beside" => {
            let again = format!("^ *(loop:)? *({names}) *(:.*)?$");
            let one = json!({ "anyOf": [{ "type": "string", "pattern": again }, text] });
            json!({ "anyOf": [one, { "type": "array", "items": one }] })
        }
        "metric" => json!({
            "type": "string",
            "minLength": 1,
            "examples": BELOW,
        }),
        _ => json!({ "type": "string" }),
    };
    let mut base = common("Name in tables; the values of a grid are added.");
    base.extend(keys(WORK, shared));
    base.insert(
        "params".to_owned(),
        json!({
            "type": "object",
            "description": "Parameters. Needed if a parameter has the same name as another key.",
        }),
    );
    let further = |name: &str| match name {
        "fit" => words(FITS.iter().map(|f| f.0)),
        "stream" => words(STREAMS.iter().map(|f| f.0)),
        "records" => json!({ "type": "integer", "minimum": 1 }),
        "pids" => grid(json!({ "type": "integer", "minimum": 0 })),
        "allow_truncated" => json!({ "type": "boolean" }),
        "includes" | "variables" => texts(),
        "from" | "until" => json!({ "type": "string", "pattern": values::TIME }),
        "mode" => grid(json!({
            "type": "string", "pattern": "^(timed|closed|scaled:[0-9./]+|depth:[0-9]+)$",
        })),
        "sha256" => json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" }),
        _ => json!({ "type": "string" }),
    };
    let (fio, trace) = (keys(FIO, further), keys(TRACE, further));
    let without = |names: &[&str]| {
        let mut of = base.clone();
        for n in names {
            of.remove(*n);
        }
        of
    };
    let with = |names: &[&str], more: &Map<String, Value>| {
        let mut of = anything(&without(names));
        of.extend(more.clone());
        closed(of)
    };
    let mut union = base.clone();
    let mut own = Vec::new();
    for w in workloads() {
        let mut exact = anything(&without(&["fio", "trace"]));
        let profiles: Vec<&str> = w.profiles.iter().map(|p| p.name).collect();
        if !profiles.is_empty() {
            let about = "The values of a published profile; other parameters override them.";
            let value = described(grid(words(profiles.into_iter())), about);
            exact.insert("profile".to_owned(), value);
        }
        for p in w.params {
            let about = format!("{} ({}; default {})", p.summary, p.kind, p.default);
            exact.insert(p.name.to_owned(), described(grid(of_param(p)), &about));
        }
        // These keys allow an editor to complete a key before the workload is named.
        for (k, v) in exact.iter().filter(|(_, v)| v.is_object()) {
            let about = v["description"].as_str().unwrap_or_default();
            let known = || described(grid(scalar()), &format!("{}: {about}", w.name));
            union.entry(k.clone()).or_insert_with(known);
        }
        let of = format!("^ *{} *(:.*)?$", values::quoted(w.name));
        own.push(json!({
            "if": {
                "properties": { "use": { "type": "string", "pattern": of } },
                "required": ["use"],
            },
            "then": closed(exact),
        }));
    }
    for (kind, exact) in [
        ("fio", with(&["use", "trace", "params"], &fio)),
        ("trace", with(&["use", "fio", "params"], &trace)),
    ] {
        own.push(json!({ "if": { "required": [kind] }, "then": exact }));
    }
    // A parameter of a workload may have the same name, for example `mode`.
    for (k, v) in fio.into_iter().chain(trace) {
        union.entry(k).or_insert(v);
    }
    let mut table = closed(union);
    table["allOf"] = json!(own);
    table["anyOf"] =
        json!([{ "required": ["use"] }, { "required": ["fio"] }, { "required": ["trace"] }]);
    json!({ "anyOf": [text, table] })
}

fn machine() -> Value {
    let mut keys = common("Name in tables; the values of a grid are added.");
    let also = ("barriers", "alias of barrier");
    for (name, help) in WORDS.iter().map(|w| (w.name, w.help)).chain([also]) {
        let value = match name {
            "kernel" => kernel(),
            "fs" => words(["ext3", "ext4"].into_iter()),
            "cores" => of_kind(&seekwell_workload::Kind::Count(1, 1024)),
            "data" => words(["ordered", "writeback"].into_iter()),
            "barrier" | "barriers" => of_kind(&seekwell_workload::Kind::Flag),
            _ => scalar(),
        };
        let about = format!("The option `{name}` of --machine: {help}.");
        keys.insert(name.to_owned(), described(grid(value), &about));
    }
    let text = json!({ "type": "string" });
    let about = "Options of --machine in one text, for example \"memory=4G,cores=2\".";
    keys.insert("use".to_owned(), described(grid(text.clone()), about));
    json!({ "anyOf": [text, closed(keys)] })
}

/// Returns the schema for the name of a kernel.
fn kernel() -> Value {
    json!({ "anyOf": [
        { "const": "here" },
        { "type": "string", "pattern": "^v?[2-7]\\.[0-9]+" },
    ] })
}

fn queue() -> Value {
    let range = |name: &str| match name {
        "hz" => (24, 10_000),
        "nr_requests" => (4, 10_240),
        "depth" => (1, 65_536),
        "max_sectors_kb" => (4, 32_767),
        "max_segments" => (1, 65_535),
        _ => (0, 2),
    };
    let mut all = common("Name in tables; the values of a grid are added.");
    all.extend(keys(QUEUE, |name| {
        let (min, max) = range(name);
        grid(json!({ "type": "integer", "minimum": min, "maximum": max }))
    }));
    closed(all)
}

fn pick() -> Value {
    let text = json!({ "type": "string" });
    let all = PICKS.iter();
    let all: Map<String, Value> = all
        .map(|name| {
            let about = format!("Name of the {name} in tables; * matches any characters.");
            ((*name).to_owned(), described(grid(text.clone()), &about))
        })
        .collect();
    let mut table = closed(all);
    table["minProperties"] = json!(1);
    table
}
