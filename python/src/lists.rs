//! Lists of the known schedulers, devices and workloads, in the form that the binary prints.

use crate::json;
use pyo3::prelude::*;
use seekwell::sdk::{device, sched, workload};
use serde_json::{Value, json};

/// Returns every scheduler, built-in or registered: name, layer, versions, and tunables with units
/// and defaults.
#[pyfunction]
pub fn schedulers(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let all = sched::registry().iter().map(|s| {
        let version = s.versions.first().map_or("", |v| v.0);
        let tunables = (s.tunables)(version).iter().map(|t| {
            json!({
                "name": t.name, "unit": t.unit, "default": t.default, "min": t.min, "max": t.max,
                "kind": format!("{:?}", t.kind), "help": t.help,
            })
        });
        json!({
            "name": s.name,
            "layer": match s.layer {
                sched::Layer::Legacy => "single-queue",
                sched::Layer::Mq => "blk-mq",
            },
            "versions": s.versions.iter().map(|v| v.0).collect::<Vec<_>>(),
            "summary": s.summary, "history": s.history, "not_when": s.not_when,
            "per_process": s.per_process, "source": s.source,
            "tunables": tunables.collect::<Vec<_>>(),
        })
    });
    json::to_python(py, &Value::from(all.collect::<Vec<_>>()).to_string())
}

/// Returns every modelled device: name, other names, and a summary.
#[pyfunction]
pub fn devices(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let all = device::catalogue();
    let all = all.iter().map(|p| {
        json!({
            "name": p.name, "aliases": p.aliases, "summary": p.summary,
        })
    });
    json::to_python(py, &Value::from(all.collect::<Vec<_>>()).to_string())
}

/// Returns every workload: name, summary, metric, and parameters with defaults and ranges.
#[pyfunction]
pub fn workloads(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let all = workload::workloads().iter().map(|w| {
        let params = w.params.iter().map(|p| {
            json!({
                "name": p.name, "default": p.default, "range": p.kind.to_string(),
                "help": p.summary,
            })
        });
        json!({
            "name": w.name, "summary": w.summary, "metric": w.metric, "stresses": w.stresses,
            "source": w.source, "parameters": params.collect::<Vec<_>>(),
        })
    });
    json::to_python(py, &Value::from(all.collect::<Vec<_>>()).to_string())
}
