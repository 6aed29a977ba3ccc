//! Readable JSON: one field per line, and lists of numbers on one line.

use seekwell_core::foreign;
use seekwell_core::result::Record;
use seekwell_report::verdict;
use serde_json::{Value, json};

/// Maximum length of an object on a single line, in characters.
const LINE: usize = 100;

/// Returns the document. Each field has its own line, except in short objects and lists of numbers.
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    put(&mut out, value, 0);
    escaped(out)
}

/// Escapes characters that control a terminal. They can only occur in JSON strings, where numeric
/// escapes are allowed.
fn escaped(json: String) -> String {
    let acts = |c: char| !c.is_ascii() && foreign::acts(c);
    if !json.contains(acts) {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match acts(c) {
            true => out += &format!("\\u{:04x}", u32::from(c)),
            false => out.push(c),
        }
    }
    out
}

fn scalar(v: &Value) -> bool {
    !v.is_object() && !v.is_array()
}

/// Returns whether a value is written on one line: a list of numbers, a list of such lists, or a
/// short object of scalars.
fn one_line(v: &Value) -> bool {
    match v {
        Value::Array(all) => all.iter().all(|v| match v {
            Value::Array(inner) => inner.iter().all(scalar),
            v => scalar(v),
        }),
        Value::Object(all) => all.values().all(scalar) && v.to_string().len() <= LINE,
        _ => true,
    }
}

fn put(out: &mut String, v: &Value, indent: usize) {
    let line = |out: &mut String, n: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', n));
    };
    match v {
        _ if one_line(v) => out.push_str(&v.to_string()),
        Value::Array(all) => {
            out.push('[');
            for (i, v) in all.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                line(out, indent + 2);
                put(out, v, indent + 2);
            }
            line(out, indent);
            out.push(']');
        }
        Value::Object(all) => {
            out.push('{');
            for (i, (k, v)) in all.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                line(out, indent + 2);
                out.push_str(&Value::from(k.as_str()).to_string());
                out.push_str(": ");
                put(out, v, indent + 2);
            }
            line(out, indent);
            out.push('}');
        }
        v => out.push_str(&v.to_string()),
    }
}

/// Removes the values per second from a record, unless they are requested.
pub fn trim(r: &mut Record, series: bool) {
    if !series {
        r.seconds.clear();
        r.operations.iter_mut().for_each(|o| o.seconds.clear());
    }
}

/// Returns the document of `run`, `compare` and `replay`. Each of `groups` has the runs of one
/// workload on one device under all schedulers. With `series`, it includes the values of every
/// second.
pub fn document(command: &str, groups: Vec<Vec<Record>>, series: bool) -> Value {
    let of = |records: &Vec<Record>| {
        let told = verdict::verdict_data(records)?;
        let mut v = serde_json::to_value(told).ok()?;
        v["device"] = json!(records[0].device.spec);
        v["workload"] = json!(records[0].workload);
        v["params"] = json!(records[0].params);
        Some(v)
    };
    let verdicts: Vec<Value> = groups.iter().filter_map(of).collect();
    let mut records: Vec<Record> = groups.into_iter().flatten().collect();
    records.iter_mut().for_each(|r| trim(r, series));
    json!({ "schema": 1, "command": command, "verdicts": verdicts, "records": records })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_prints_number_lists_on_one_line_without_changing_the_document() {
        let long: Vec<u64> = (0..200).collect();
        let v = json!({
            "name": "x", "empty": [], "none": {}, "pairs": [[1, 2], [3, 4]], "long": long,
            "series": [{"reads": 1, "writes": 2}, {"reads": 3, "writes": 4}],
            "deep": {"a": {"b": [1.5, null, "q\"uote"]}},
        });
        let text = text(&v);
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), v);
        assert!(text.contains("\n  \"pairs\": [[1,2],[3,4]],\n"), "{text}");
        assert!(
            text.contains("\n    {\"reads\":1,\"writes\":2},\n"),
            "{text}"
        );
        assert!(text.lines().count() < 20, "{text}");
        let names = json!({ "a\u{202e}": "\u{9b}31m\u{7f}\x1b\n", "\u{2028}": 1 });
        let text = super::text(&names);
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), names);
        assert!(
            text.contains("\\u009b31m") && text.contains("a\\u202e"),
            "{text}"
        );
        assert!(text.is_ascii(), "{text}");
    }
}
