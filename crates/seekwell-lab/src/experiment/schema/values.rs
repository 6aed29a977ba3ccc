//! Schemas of single values.

use seekwell_sched::{Kind as TunableKind, Tunable};
use seekwell_workload::{Kind, Param};
use serde_json::{Value, json};

/// The pattern of a time with its unit, as `parse_time` reads it.
pub const TIME: &str =
    r"^ *(0|[0-9]+(\.[0-9]+)? *([nN][sS]|[uU][sS]|[mM][sS]|[sS]|[mM]|[mM][iI][nN]|[hH]|[dD])) *$";

/// Adds a description to a schema.
pub fn described(mut schema: Value, about: &str) -> Value {
    schema["description"] = json!(about);
    schema
}

/// Escapes a text for use in a pattern.
pub fn quoted(text: &str) -> String {
    let special = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '='));
    let mut out = String::new();
    for c in text.chars() {
        if special(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns the schema of any value except lists and tables.
pub fn scalar() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

/// Returns the schema of a value or a list of values.
pub fn grid(value: Value) -> Value {
    json!({ "anyOf": [value, { "type": "array", "minItems": 1, "items": value }] })
}

/// Returns the schema of a table of texts.
pub fn texts() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

/// Returns the schema of one of these words.
pub fn words<'a>(all: impl Iterator<Item = &'a str>) -> Value {
    json!({ "enum": all.collect::<Vec<_>>() })
}

/// Returns the schema of an integer, or of a text that matches a pattern.
fn amount(pattern: &str, min: u64, max: u64) -> Value {
    json!({ "anyOf": [
        { "type": "integer", "minimum": min, "maximum": max },
        { "type": "string", "pattern": pattern },
    ] })
}

/// Returns the schema of a parameter of a workload.
pub fn of_param(p: &Param) -> Value {
    of_kind(&p.kind)
}

/// Returns the schema of a value of this kind.
pub fn of_kind(kind: &Kind) -> Value {
    match *kind {
        Kind::Count(min, max) => amount(r"^ *[0-9]+(\.[0-9]+)? *[kKmMgG]? *$", min, max),
        Kind::Bytes(min, max) => amount(
            r"^ *[0-9]+(\.[0-9]+)? *([kKmMgGtT][iI]?)?[bB]? *$",
            min,
            max,
        ),
        Kind::Time(min, _) => {
            let text = json!({ "type": "string", "pattern": TIME });
            match min {
                0 => json!({ "anyOf": [text, { "const": 0 }] }),
                _ => text,
            }
        }
        Kind::Ratio(min, max) => json!({ "anyOf": [
            { "type": "number", "minimum": min, "maximum": max },
            { "type": "string", "pattern": r"^[0-9]*\.?[0-9]+$" },
        ] }),
        Kind::Flag => json!({ "anyOf": [
            { "type": "boolean" },
            { "enum": ["yes", "no", "true", "false", "on", "off", "1", "0", 1, 0] },
        ] }),
        Kind::Choice(all) => words(all.iter().copied()),
    }
}

/// Returns the schema of a tunable: one value, or a list of values (a grid).
pub fn of_tunable(t: &Tunable) -> Value {
    match t.kind {
        TunableKind::Text => grid(scalar()),
        // A read-only tunable accepts no value.
        TunableKind::ReadOnly => json!({ "not": {} }),
        TunableKind::Bool => grid(json!({ "anyOf": [
            { "type": "boolean" },
            { "enum": [0, 1, "0", "1"] },
        ] })),
        _ => grid(json!({ "anyOf": [
            { "type": "integer", "minimum": t.min, "maximum": t.max },
            { "type": "string", "pattern": "^ *-?[0-9]+ *$" },
        ] })),
    }
}

/// Returns the description of a tunable.
pub fn about(t: &Tunable) -> String {
    let unit = match t.unit {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    format!("{} (default {}{unit})", t.help, t.default)
}
