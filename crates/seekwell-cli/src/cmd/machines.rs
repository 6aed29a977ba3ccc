//! `seekwell machines [NAME]`: lists or describes the modelled machines.

use crate::cli::Machines;
use crate::fail::Failure;
use crate::out::{Out, width};
use seekwell::words::{Machine, machines, named_machine};
use seekwell_report::catalog;
use serde_json::{Value, json};

fn as_json(m: &Machine) -> Value {
    let option = |o: &seekwell::words::Sourced| json!({ "name": o.name, "value": o.value, "source": o.source });
    json!({
        "name": m.name, "summary": m.summary, "year": m.year, "devices": m.devices,
        "options": m.options.iter().map(option).collect::<Vec<_>>(),
    })
}

/// Returns the machine of this name. The error contains similar names.
fn find(name: &str) -> Result<&'static Machine, Failure> {
    named_machine(name).ok_or_else(|| {
        let known: Vec<&str> = machines().iter().map(|m| &*m.name).collect();
        let remedy = seekwell_core::suggest::remedy(name, &known, &[], "`seekwell machines`");
        Failure::input(format!("no machine is called \"{name}\"; {remedy}"))
    })
}

/// Lists the machines, or describes one.
pub fn run(a: &Machines) -> Result<(), Failure> {
    let chosen = a.name.as_deref().map(find).transpose()?;
    let mut out = Out::open(a.output.output.as_deref())?;
    match chosen {
        Some(m) if a.json => out.json(&as_json(m))?,
        Some(m) => out.text(&catalog::machine(m, width()))?,
        None if a.json => out.json(&Value::from_iter(machines().iter().map(as_json)))?,
        None => {
            out.text(&catalog::machines(machines(), width()))?;
            out.prose(
                "\nTo use a machine, with or without changes: seekwell run WORKLOAD --machine \
                 laptop,memory=8G. One machine in full: seekwell machines NAME.\nAll settings of \
                 --machine: seekwell run --help",
            )?;
        }
    }
    out.done()
}
