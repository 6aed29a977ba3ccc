//! Checks values against a JSON Schema. It supports only those keywords of draft 7 that the schema
//! of experiment files uses. Crates that support all of draft 7 have thirty more dependencies, for
//! URLs and languages.

use regex_lite::Regex;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A schema with its compiled patterns.
pub struct Validator {
    root: Value,
    patterns: RefCell<BTreeMap<String, Regex>>,
}

type Fault = Result<(), String>;

fn is(kind: &str, v: &Value) -> bool {
    match kind {
        "object" => v.is_object(),
        "array" => v.is_array(),
        "string" => v.is_string(),
        "boolean" => v.is_boolean(),
        "integer" => v.is_i64() || v.is_u64(),
        "number" => v.is_number(),
        other => panic!("the schema has a type {other}"),
    }
}

impl Validator {
    pub fn new(root: Value) -> Self {
        Validator {
            root,
            patterns: RefCell::default(),
        }
    }

    /// Returns the first fault.
    pub fn check(&self, value: &Value) -> Fault {
        self.one(&self.root, value, "")
    }

    fn matches(&self, pattern: &str, text: &str) -> bool {
        let mut all = self.patterns.borrow_mut();
        let compiled = all
            .entry(pattern.to_owned())
            .or_insert_with(|| Regex::new(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}")));
        compiled.is_match(text)
    }

    fn one(&self, schema: &Value, v: &Value, at: &str) -> Fault {
        let schema = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Bool(false) => return Err(format!("{at}: nothing may stand here")),
            Value::Object(s) => s,
            other => panic!("no schema: {other}"),
        };
        for (word, of) in schema {
            self.word(schema, word, of, v, at)
                .map_err(|e| format!("{e} ({word})"))?;
        }
        Ok(())
    }

    fn word(
        &self,
        schema: &Map<String, Value>,
        word: &str,
        of: &Value,
        v: &Value,
        at: &str,
    ) -> Fault {
        let good = |yes: bool| match yes {
            true => Ok(()),
            false => Err(format!("{at}: {v:.60} and {of:.60}")),
        };
        let list = || of.as_array().expect("a list");
        let bound = |holds: fn(f64, f64) -> bool, x: Option<f64>| {
            good(x.is_none_or(|x| holds(x, of.as_f64().expect("a number"))))
        };
        let letters = v.as_str().map(|s| s.chars().count() as f64);
        let items = v.as_array().map(|a| a.len() as f64);
        match word {
            "$schema" | "title" | "description" | "definitions" | "examples" | "then" => Ok(()),
            "type" => match of {
                Value::String(kind) => good(is(kind, v)),
                _ => good(list().iter().any(|k| is(k.as_str().expect("a type"), v))),
            },
            "enum" => good(list().contains(v)),
            "const" => good(of == v),
            "pattern" => {
                let pattern = of.as_str().expect("a pattern");
                good(v.as_str().is_none_or(|s| self.matches(pattern, s)))
            }
            "minimum" => bound(|x, b| x >= b, v.as_f64()),
            "maximum" => bound(|x, b| x <= b, v.as_f64()),
            "exclusiveMinimum" => bound(|x, b| x > b, v.as_f64()),
            "exclusiveMaximum" => bound(|x, b| x < b, v.as_f64()),
            "minLength" => bound(|x, b| x >= b, letters),
            "maxLength" => bound(|x, b| x <= b, letters),
            "minItems" => bound(|x, b| x >= b, items),
            "minProperties" => bound(|x, b| x >= b, v.as_object().map(|o| o.len() as f64)),
            "required" => match v.as_object() {
                Some(o) => good(
                    list()
                        .iter()
                        .all(|k| o.contains_key(k.as_str().expect("a key"))),
                ),
                None => Ok(()),
            },
            "anyOf" => {
                let all = list().iter().map(|s| self.one(s, v, at));
                let faults: Vec<String> = all.map_while(Result::err).collect();
                match faults.len() < list().len() {
                    true => Ok(()),
                    false => Err(faults.join(" | ")),
                }
            }
            "allOf" => list().iter().try_for_each(|s| self.one(s, v, at)),
            "not" => good(self.one(of, v, at).is_err()),
            "if" => match self.one(of, v, at) {
                Ok(()) => self.one(&schema["then"], v, at),
                Err(_) => Ok(()),
            },
            "$ref" => {
                let path = of
                    .as_str()
                    .and_then(|p| p.strip_prefix('#'))
                    .expect("of this file");
                self.one(self.root.pointer(path).expect("there"), v, at)
            }
            "items" => {
                let all = v.as_array().into_iter().flatten().enumerate();
                let mut all = all.map(|(i, v)| self.one(of, v, &format!("{at}/{i}")));
                all.try_for_each(|r| r)
            }
            "properties" => {
                let known = of.as_object().expect("properties");
                let own = v.as_object().into_iter().flatten();
                let mut own = own.filter_map(|(k, v)| Some((k, v, known.get(k)?)));
                own.try_for_each(|(k, v, s)| self.one(s, v, &format!("{at}/{k}")))
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                let own = v.as_object().into_iter().flatten();
                let mut own = own.filter(|(k, _)| known.is_none_or(|o| !o.contains_key(*k)));
                own.try_for_each(|(k, v)| self.one(of, v, &format!("{at}/{k}")))
            }
            other => panic!("the schema says {other}, which is not known here"),
        }
    }
}

#[test]
fn schema_checker_detects_violations() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "a": { "anyOf": [{ "type": "integer", "minimum": 2 }, { "const": "x" }] },
            "b": { "type": "array", "minItems": 1, "items": { "type": "string", "pattern": "^y+$" } },
        },
        "required": ["a"],
        "additionalProperties": false,
        "allOf": [{ "if": { "required": ["b"] }, "then": { "properties": { "a": { "enum": [7] } } } }],
    });
    let v = Validator::new(schema);
    for good in [r#"{"a":2}"#, r#"{"a":"x"}"#, r#"{"a":7,"b":["y","yy"]}"#] {
        let value = serde_json::from_str(good).expect("JSON");
        assert_eq!(v.check(&value), Ok(()), "{good}");
    }
    for bad in [
        "{}",
        "[]",
        r#"{"a":1}"#,
        r#"{"a":2.5}"#,
        r#"{"a":"z"}"#,
        r#"{"a":2,"c":1}"#,
        r#"{"a":7,"b":[]}"#,
        r#"{"a":7,"b":["yx"]}"#,
        r#"{"a":2,"b":["y"]}"#,
    ] {
        let value = serde_json::from_str(bad).expect("JSON");
        assert!(v.check(&value).is_err(), "{bad}");
    }
}
