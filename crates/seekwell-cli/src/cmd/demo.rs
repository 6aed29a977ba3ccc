//! `seekwell demo [NAME]`: the behaviours that made schedulers famous, with numbers.

use crate::cli::DemoArgs;
use crate::fail::Failure;
use crate::out::{Out, width};
use seekwell_report::demo as report;
use seekwell_sim::compare::run_all;
use seekwell_sim::demo::{Demo, Shown, demos, find, unknown};
use serde_json::{Value, json};

fn as_json(d: &Demo, s: &Shown) -> Value {
    let checks = s
        .checks
        .iter()
        .map(|(words, holds)| json!({ "claim": words, "holds": holds }));
    json!({
        "name": d.name, "claim": d.claim, "setting": s.setting, "columns": s.columns,
        "rows": s.rows, "checks": checks.collect::<Vec<_>>(), "holds": s.holds(),
    })
}

/// Lists the demos, or runs one or all.
pub fn run(a: &DemoArgs) -> Result<(), Failure> {
    let chosen: Vec<&Demo> = match a.name.as_deref() {
        None => {
            let mut out = Out::open(a.output.output.as_deref())?;
            out.text(&report::list(demos(), width()))?;
            out.line("\nRun one: seekwell demo NAME; all of them: seekwell demo all")?;
            return out.done();
        }
        Some("all") => demos().collect(),
        Some(name) => vec![find(name).ok_or_else(|| {
            Failure::input(format!("there is no demo `{name}`; {}", unknown(name)))
        })?],
    };
    Out::check(a.output.output.as_deref())?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let each = a.seeds as usize;
    let runs = run_all(chosen.len() * each, threads, |i| {
        (chosen[i / each].run)(a.seed.wrapping_add((i % each) as u64))
    });
    let runs = runs.into_iter().collect::<Result<Vec<Shown>, _>>();
    let runs = runs.map_err(|e| Failure::input(e.to_string()))?;
    let shown: Vec<Shown> = runs.chunks(each).filter_map(Shown::over).collect();
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        let list: Vec<_> = chosen
            .iter()
            .zip(&shown)
            .map(|(d, s)| as_json(d, s))
            .collect();
        out.json(&json!({ "schema": 1, "seed": a.seed, "seeds": a.seeds, "demos": list }))?;
    } else {
        for (i, (d, s)) in chosen.iter().zip(&shown).enumerate() {
            if i > 0 {
                out.line("")?;
            }
            out.text(&report::shown(d, s, width()))?;
        }
    }
    out.done()?;
    if shown.iter().all(Shown::holds) {
        Ok(())
    } else {
        Err(Failure::Difference)
    }
}
