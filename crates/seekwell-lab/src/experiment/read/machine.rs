//! Reads the machines and queues of an experiment file.

use super::grid::Axis;
use super::value::{Switch, kind};
use super::{Entry, Reader};
use crate::experiment::design::Level;
use crate::experiment::fault::Place;
use seekwell::{QueueSpec, words};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::DeValue;

/// The settings of a queue with their descriptions.
#[rustfmt::skip]
pub(in crate::experiment) const QUEUE: &[(&str, &str)] = &[
    ("hz", "Kernel ticks per second (CONFIG_HZ), 24 to 10000."),
    ("nr_requests", "queue/nr_requests, 4 to 10240. Default: that of the block layer."),
    ("depth", "device/queue_depth, 1 to 65536. Default: the depth of the device."),
    ("max_sectors_kb", "queue/max_sectors_kb, 4 to 32767. Default: that of the kernel."),
    ("max_segments", "queue/max_segments, 1 to 65535. Default: that of the default driver."),
    ("nomerges", "queue/nomerges: 0 merge, 1 simple merges only, 2 none."),
];

impl Reader<'_> {
    pub(super) fn machine(&mut self, field: &str, at: Place, v: &Spanned<DeValue<'_>>) {
        let table = match v.get_ref() {
            DeValue::String(s) => {
                let typed = words::machine(s);
                if let Some(machine) = self.faults.take(at, field, typed) {
                    self.design.machines.push(Level::unnamed(machine));
                    self.places.machines.push(at);
                }
                return;
            }
            DeValue::Table(t) => t,
            other => {
                let what = format!(
                    "is {}, not a machine: write \"memory=4G,cores=2\" or a table of these options",
                    kind(other)
                );
                self.bad(at, field, &what);
                return;
            }
        };
        let (mut name, mut given) = (None, BTreeMap::new());
        let mut set: Vec<Entry<'_, '_>> = Vec::new();
        for e in self.entries(table) {
            match e.key {
                "name" => name = self.text(&format!("{field}.name"), e.value),
                "axes" => given = self.map(&format!("{field}.axes"), e.value),
                _ => set.push(e),
            }
        }
        let mut axes = Vec::new();
        for e in set {
            let f = format!("{field}.{}", e.key);
            let mut values = Vec::new();
            for v in self.texts(&f, e.value, Switch::Word) {
                // The value becomes one option in the notation of `--machine`, in which a comma
                // would start the next option.
                if e.key != "use" && v.text.contains(',') {
                    let what = format!(
                        "\"{}\": a value cannot contain a comma; write several values as a list",
                        v.text
                    );
                    self.bad(v.at, &f, &what);
                    continue;
                }
                match words::machine(&option(e.key, &v.text)) {
                    Ok(_) => values.push(v),
                    Err(errors) => {
                        for mut error in errors.0 {
                            error.field.clone_from(&f);
                            self.faults.add(v.at, error);
                        }
                    }
                }
            }
            axes.push(Axis {
                name: e.key.to_owned(),
                values,
            });
        }
        // The named machine comes first, because the other options change it.
        axes.sort_by_key(|a| a.name != "use");
        for p in self.product(field, at, &axes) {
            let parts: Vec<String> = p.values.iter().map(|(k, v)| option(k, v)).collect();
            let typed = words::machine(&parts.join(","));
            if let Some(spec) = self.faults.take(at, field, typed) {
                self.design
                    .machines
                    .push(p.level(name.as_deref(), ' ', spec, &given));
                self.places.machines.push(at);
            }
        }
    }

    pub(super) fn queue(&mut self, field: &str, at: Place, v: &Spanned<DeValue<'_>>) {
        let DeValue::Table(table) = v.get_ref() else {
            self.bad(at, field, "must be a table: [queue]");
            return;
        };
        let (mut name, mut given) = (None, BTreeMap::new());
        let mut axes = Vec::new();
        for e in self.entries(table) {
            let f = format!("{field}.{}", e.key);
            if e.key == "name" {
                name = self.text(&f, e.value);
                continue;
            }
            if e.key == "axes" {
                given = self.map(&f, e.value);
                continue;
            }
            if QUEUE.iter().all(|q| q.0 != e.key) {
                let known: Vec<&str> = QUEUE.iter().map(|q| q.0).collect();
                let what = "there is no such setting";
                self.faults.unknown(e.at, &f, what, e.key, &known);
                continue;
            }
            let mut values = Vec::new();
            for v in self.texts(&f, e.value, Switch::Digit) {
                let set = set_queue(&mut QueueSpec::default(), e.key, &v.text);
                match set {
                    Ok(()) => values.push(v),
                    Err(what) => self.bad(v.at, &f, &what),
                }
            }
            axes.push(Axis {
                name: e.key.to_owned(),
                values,
            });
        }
        for p in self.product(field, at, &axes) {
            let mut spec = QueueSpec::default();
            for (k, v) in &p.values {
                // Each value was already checked.
                let _ = set_queue(&mut spec, k, v);
            }
            self.design
                .queues
                .push(p.level(name.as_deref(), ' ', spec, &given));
            self.places.queues.push(at);
        }
    }
}

/// Writes an option in the notation of `--machine`. `use` gives a name that stands for several
/// options.
fn option(key: &str, value: &str) -> String {
    match key {
        "use" => value.to_owned(),
        key => format!("{key}={value}"),
    }
}

/// Sets one value of a queue after it has checked the range.
fn set_queue(q: &mut QueueSpec, key: &str, text: &str) -> Result<(), String> {
    let n: u32 = text
        .parse()
        .map_err(|_| format!("\"{text}\" is not a whole number"))?;
    match key {
        "hz" => q.hz = n,
        "nr_requests" => q.nr_requests = Some(n),
        "depth" => q.depth = Some(n),
        "max_sectors_kb" => q.max_sectors_kb = Some(n),
        "max_segments" => q.max_segments = Some(n),
        _ => q.nomerges = u8::try_from(n).unwrap_or(u8::MAX),
    }
    let checked = seekwell_sim::spec::check::queue(q);
    checked.map_err(|e| {
        e.0.into_iter()
            .map(|e| e.what)
            .collect::<Vec<_>>()
            .join("; ")
    })
}
