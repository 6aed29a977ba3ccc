//! The setters of schedulers at boot, by file and line.

use seekwell_host::block::{Device, Machine};
use seekwell_host::keep::at_boot::{Setter, at_boot};
use seekwell_report::table::wrap;
use serde_json::{Value, json};

/// The setters of some devices' schedulers at boot: a line of a file, with its devices.
pub fn setters(m: &Machine, of: impl Fn(&Device) -> bool) -> Vec<(Setter, Vec<String>)> {
    let mut all: Vec<(Setter, Vec<String>)> = Vec::new();
    for d in m.devices.iter().filter(|d| of(d)) {
        for s in at_boot(m, d, &[]) {
            match all.iter_mut().find(|a| a.0 == s) {
                Some((_, devices)) => devices.push(d.name.clone()),
                None => all.push((s, vec![d.name.clone()])),
            }
        }
    }
    all
}

/// As text; empty if there are no setters.
pub fn text(all: &[(Setter, Vec<String>)], width: usize) -> String {
    let line = |(s, devices): &(Setter, Vec<String>)| {
        wrap(&format!("{}: {s}", devices.join(", ")), 2, width)
    };
    match all.is_empty() {
        true => String::new(),
        false => {
            let lines: String = all.iter().map(line).collect();
            format!("\nAt boot (of several for a device, the last wins):\n{lines}")
        }
    }
}

/// As JSON.
pub fn json(all: &[(Setter, Vec<String>)]) -> Value {
    all.iter()
        .map(|(s, devices)| json!({ "devices": devices, "setter": s }))
        .collect()
}
