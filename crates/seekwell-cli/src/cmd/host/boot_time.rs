//! The files and lines that set schedulers at boot.

use seekwell_host::block::{Device, Machine};
use seekwell_host::keep::at_boot::{Setter, at_boot};
use seekwell_report::table::wrap;
use serde_json::{Value, json};

/// Returns the lines (of udev rules, services and so on) that set schedulers at boot. Each is
/// returned with the devices whose scheduler it sets. Only devices that `of` accepts are examined.
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

/// Returns the setters as text, or an empty text if there are none.
pub fn text(all: &[(Setter, Vec<String>)], width: usize) -> String {
    let line = |(s, devices): &(Setter, Vec<String>)| {
        wrap(&format!("{}: {s}", devices.join(", ")), 2, width)
    };
    match all.is_empty() {
        true => String::new(),
        false => {
            let lines: String = all.iter().map(line).collect();
            format!("\nAt boot (if several set the same device, the last one wins):\n{lines}")
        }
    }
}

/// Returns the setters as JSON.
pub fn json(all: &[(Setter, Vec<String>)]) -> Value {
    all.iter()
        .map(|(s, devices)| json!({ "devices": devices, "setter": s }))
        .collect()
}
