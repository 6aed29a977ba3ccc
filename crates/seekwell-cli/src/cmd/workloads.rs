//! `seekwell workloads [NAME]`: lists or describes the workloads.

use crate::cli::Workloads;
use crate::fail::Failure;
use crate::out::{Out, width};
use seekwell_report::{brief, workload as report};
use seekwell_workload::{Needs, Workload, unknown_workload, workload, workloads};
use serde_json::{Value, json};

fn as_json(w: &Workload) -> Value {
    let param = |p: &seekwell_workload::Param| {
        json!({
            "name": p.name, "default": p.default, "range": p.kind.to_string(), "help": p.summary,
        })
    };
    let profile = |p: &seekwell_workload::Profile| {
        let set: serde_json::Map<String, Value> = p
            .set
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).into()))
            .collect();
        json!({ "name": p.name, "summary": p.summary, "set": set })
    };
    json!({
        "name": w.name, "summary": w.summary, "metric": w.metric, "stresses": w.stresses,
        "source": w.source,
        "needs": match w.needs { Needs::Directory => "directory", Needs::Device => "device" },
        "parameters": w.params.iter().map(param).collect::<Vec<_>>(),
        "profiles": w.profiles.iter().map(profile).collect::<Vec<_>>(),
    })
}

/// Lists the workloads, or describes one.
pub fn run(a: &Workloads) -> Result<(), Failure> {
    let mut out = Out::open(a.output.output.as_deref())?;
    if let Some(name) = &a.name {
        let w = workload(name).ok_or_else(|| {
            Failure::input(format!(
                "no workload is called \"{name}\"; {}",
                unknown_workload(name)
            ))
        })?;
        if a.json {
            out.json(&as_json(w))?;
        } else if a.details {
            out.text(&report::page(w, width()))?;
        } else {
            out.text(&brief::workload(w, width()))?;
        }
        return out.done();
    }
    if a.json {
        let all: Vec<Value> = workloads().iter().map(|w| as_json(w)).collect();
        out.json(&Value::from(all))?;
    } else {
        match a.details {
            true => out.text(&report::list(workloads(), width()))?,
            false => out.text(&brief::workloads(workloads(), width()))?,
        }
        out.prose(
            "\nOne workload in full: seekwell workloads NAME. To run it: seekwell run NAME [--param \
             k=v] --device D --scheduler S, or on real files: seekwell run NAME --dir DIR. A fio \
             job file (NAME.fio) is a workload, too.",
        )?;
    }
    out.done()
}
