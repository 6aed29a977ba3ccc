//! The environment that a results folder recorded, as names and values that can be compared one by
//! one.

use crate::results::Environment;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Largest size of an environment record in bytes. The record of a host has some kilobytes.
const BYTES_MAX: u64 = 8 << 20;
/// Largest number of names that are kept.
const NAMES_MAX: usize = 1_000;

/// Returns the environment of a folder; empty if it has no readable record. Clock times are left
/// out, because they always differ.
pub fn environment(folder: &Path) -> BTreeMap<String, String> {
    let text = seekwell_files::read_text(&folder.join("environment.json"), BYTES_MAX);
    let record: Environment = match text {
        Ok(text) => serde_json::from_str(&text).unwrap_or_default(),
        Err(_) => return BTreeMap::new(),
    };
    let mut out = BTreeMap::new();
    if let Some(last) = record.sessions.last() {
        out.insert("seekwell".to_owned(), last.seekwell.clone());
        out.insert("build".to_owned(), last.build.clone());
    }
    for (i, host) in record.hosts.iter().enumerate() {
        let name = match i {
            0 => "host".to_owned(),
            i => format!("host {}", i + 1),
        };
        flat(
            &name,
            &serde_json::to_value(host).unwrap_or_default(),
            &mut out,
        );
    }
    out
}

fn flat(name: &str, value: &Value, out: &mut BTreeMap<String, String>) {
    if out.len() >= NAMES_MAX {
        return;
    }
    match value {
        Value::Null => {}
        Value::Object(all) => all
            .iter()
            .for_each(|(k, v)| flat(&format!("{name} {k}"), v, out)),
        Value::String(text) => {
            let shown = |c: char| {
                if seekwell_core::foreign::acts(c) {
                    ' '
                } else {
                    c
                }
            };
            out.insert(name.to_owned(), text.chars().map(shown).collect());
        }
        other => {
            out.insert(name.to_owned(), other.to_string());
        }
    }
}
