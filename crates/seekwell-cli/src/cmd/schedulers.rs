//! `seekwell schedulers [NAME]`: lists or describes the schedulers.

use crate::cli::Schedulers;
use crate::fail::Failure;
use crate::out::{Out, width};
use seekwell::words::{Found, named};
use seekwell_core::Rule;
use seekwell_report::{brief, catalog};
use seekwell_sched::kernels::stands_for;
use seekwell_sched::registry;
use serde_json::{Value, json};

fn rule_json(r: &Rule) -> Value {
    json!({ "id": r.id, "kernel": r.kernel, "says": r.says })
}

fn as_json(c: &Found) -> Value {
    let s = c.info;
    let tunables = (s.tunables)(c.version).iter().map(|t| {
        json!({
            "name": t.name, "unit": t.unit, "default": t.default,
            "min": t.min, "max": t.max, "range": catalog::range(t), "help": t.help,
        })
    });
    json!({
        "name": s.name,
        "layer": catalog::layer_name(s.layer),
        "versions": s.versions.iter().map(|v| v.0).collect::<Vec<_>>(),
        "version": c.version,
        "stands_for": stands_for(s.name)
            .into_iter()
            .map(|(version, kernels, same)| {
                json!({ "version": version, "kernels": kernels, "same_rules": same })
            })
            .collect::<Vec<_>>(),
        "summary": s.summary,
        "history": s.history,
        "not_when": s.not_when,
        "per_process": s.per_process,
        "tunables": tunables.collect::<Vec<_>>(),
        "rules": s.rules.iter().map(|r| rule_json(r)).collect::<Vec<_>>(),
        "source": s.source,
    })
}

fn scheduler(name: &str) -> Result<Found, Failure> {
    named(name).map_err(|e| Failure::words("", &e))
}

/// Lists the schedulers, or describes one.
pub fn run(a: &Schedulers) -> Result<(), Failure> {
    let chosen = a.name.as_deref().map(scheduler).transpose()?;
    let mut out = Out::open(a.output.output.as_deref())?;
    match chosen {
        Some(c) if a.json => out.json(&as_json(&c))?,
        Some(c) if a.details => out.text(&catalog::scheduler(c.info, c.version, width()))?,
        Some(c) => out.text(&brief::scheduler(c.info, c.version, width()))?,
        None if a.markdown => out.text(&catalog::schedulers_markdown(registry()))?,
        None if a.json => {
            let all: Result<Vec<_>, _> = registry()
                .iter()
                .map(|s| scheduler(s.name).map(|c| as_json(&c)))
                .collect();
            out.json(&Value::from(all?))?;
        }
        None if !a.details => {
            out.text(&brief::schedulers(registry(), width()))?;
            out.prose(
                "\nVersions and more: --details. One scheduler in full: seekwell schedulers \
                 NAME[-VERSION]",
            )?;
        }
        None => {
            out.text(&catalog::schedulers(registry(), width()))?;
            out.prose(&format!("\n{}", catalog::all_releases(registry())))?;
            out.prose(
                "\nNAME means the first listed version, NAME-VERSION another version: \
                 --schedulers cfq,cfq-2.6.18,bfq-v7r8\n(bfq is the scheduler of today's kernels, \
                 bfq-v7r8 that of 3.x kernels and phones). One scheduler in full: seekwell \
                 schedulers NAME[-VERSION]",
            )?;
        }
    }
    out.done()
}
