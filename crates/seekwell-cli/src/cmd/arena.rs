//! `seekwell arena NAME`: compares a scheduler with all other schedulers of its layer.

use crate::cells::cancelling;
use crate::cli::Arena as Asked;
use crate::cmd::switch::show::quoted;
use crate::fail::Failure;
use crate::lab::Collect;
use crate::out::{Out, columns, note, width};
use crate::progress::Progress;
use seekwell::Cancel;
use seekwell::words::{self, Kernel, named};
use seekwell_core::numbers::signed;
use seekwell_lab::arena::{Arena, Figure, Mean, Met, Standing, experiment, standing, usual};
use seekwell_lab::conduct::{How, Memory, conduct};
use seekwell_report::arena::{Facts, Ground, page};
use seekwell_report::table::wrap;
use seekwell_report::{throttle, units};
use seekwell_sched::kernels::modelled;
use seekwell_sched::registry;
use serde_json::json;
use std::path::Path;

/// Maximum number of cells that are shown as those where the scheduler is behind.
const TOLD: usize = 8;

/// Returns whether the output file is an HTML page.
fn is_page(output: &Path) -> bool {
    let ending = output.extension().and_then(|e| e.to_str());
    matches!(ending, Some("html" | "htm"))
}

fn bad(e: impl std::fmt::Display) -> Failure {
    Failure::input(e.to_string())
}

/// Returns the scheduler and all others of its layer. With a kernel, returns only those that this
/// kernel has.
fn met(name: &str, kernel: Option<&Kernel>) -> Result<Vec<String>, Failure> {
    let plain = name.split(':').next().unwrap_or(name);
    let own = named(plain).map_err(|e| Failure::words("", &e))?;
    let mut all = vec![name.to_owned()];
    let rivals = registry().iter().filter(|s| s.layer == own.info.layer);
    let rivals = rivals.filter(|s| kernel.is_none_or(|k| modelled(s, k.release).is_ok()));
    all.extend(rivals.map(|s| s.name.to_owned()).filter(|s| s != plain));
    Ok(all)
}

/// Returns the requested names, or the default names if none are requested.
fn or<'a>(asked: &'a [String], usual: &[&'a str]) -> Vec<&'a str> {
    match asked.is_empty() {
        true => usual.to_vec(),
        false => asked.iter().map(String::as_str).collect(),
    }
}

/// Returns the standing as an HTML page.
fn page_of(a: &Asked, s: &Standing, ground: Ground<'_>, failed: u64) -> Result<String, Failure> {
    let words = a.device.iter().map(|d| ("--device", d.as_str()));
    let words = words.chain(a.workload.iter().map(|w| ("--workload", w.as_str())));
    let mut again = format!("seekwell arena {} --seeds {}", a.name, a.seeds);
    if a.seed != 1 {
        again += &format!(" --seed {}", a.seed);
    }
    if let Some(k) = &a.kernel {
        again += &format!(" --kernel {}", quoted(k));
    }
    for (option, word) in words.chain(ground.traces.iter().map(|t| ("--trace", t.as_str()))) {
        again += &format!(" {option} {}", quoted(word));
    }
    let facts = Facts {
        seeds: (a.seed, a.seed + u64::from(a.seeds) - 1),
        ground,
        failed,
        again,
    };
    page(s, &facts).map_err(|e| Failure::input(format!("the page cannot be created: {e}")))
}

/// Runs all schedulers and prints the standing.
pub fn run(a: &Asked, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    Out::check(output)?;
    Out::apart(output, a.trace.iter().map(|t| &**t))?;
    let kernel = a.kernel.as_deref().map(words::kernel).transpose();
    let kernel = kernel.map_err(|e| Failure::words("--kernel: ", &e))?;
    let met = met(&a.name, kernel.as_ref())?;
    let text = |p: &std::path::PathBuf| p.to_string_lossy().into_owned();
    let traces: Vec<String> = a.trace.iter().map(text).collect();
    let usual = usual(&met);
    let devices = or(&a.device, usual.devices);
    let workloads = or(&a.workload, usual.workloads);
    let asked = Met {
        devices: &devices,
        workloads: &workloads,
        traces: &traces,
        kernel: a.kernel.as_deref(),
    };
    let e = experiment(&met, &asked, a.seeds, a.seed).map_err(|faults| {
        let each = faults.0.iter().map(|f| f.what.clone()).collect::<Vec<_>>();
        Failure::input(each.join("\n"))
    })?;
    let runs = e.cells.len() * met.len() * a.seeds as usize;
    let (cells, rivals) = (e.cells.len(), met.len() - 1);
    note(
        quiet,
        &format!(
            "{} and {rivals} other schedulers in {cells} cells, {runs} runs",
            a.name
        ),
    );
    let arena = Arena::default();
    let (done, depends) = {
        let progress = Progress::new(quiet, "runs", 0, e.cells.len());
        let told = Collect::new(&progress, 1, 0);
        let cancel = Cancel::new();
        let mut store = Memory::default();
        let how = How {
            threads: a.threads.map(|n| n as usize),
            cancel: cancel.clone(),
            told: &told,
        };
        let done = cancelling(&cancel, || conduct(&e, &arena, &mut store, &how))?.map_err(bad)?;
        let results = done.results(&e, store.runs);
        let throttle = Some(throttle::line(&results)).filter(|t| !t.is_empty());
        let notes: Vec<String> = e.about.notes.iter().cloned().chain(throttle).collect();
        (done, notes)
    };
    let s = standing(&e, &arena.figures());
    let mut out = Out::open(output)?;
    if a.json {
        out.json(&json!({
            "schema": 1, "command": "arena", "scheduler": a.name, "seed": a.seed,
            "finished": done.finished(), "failed": done.failed, "standing": s, "notes": depends,
        }))?;
    } else if output.is_some_and(is_page) {
        let ground = Ground {
            devices: &devices,
            workloads: &workloads,
            traces: &traces,
        };
        out.bytes(page_of(a, &s, ground, done.failed)?.as_bytes())?;
    } else {
        print(&mut out, a, &s)?;
        for text in &depends {
            out.text(&wrap(text, 0, width()))?;
        }
    }
    out.done()?;
    if done.failed > 0 {
        let n = done.failed;
        return Err(Failure::Early(format!(
            "{n} of {runs} runs failed; results of the others are shown"
        )));
    }
    if let (true, Some(signal)) = (done.cancelled, seekwell_host::stop::signal()) {
        let what = format!(
            "stopped by signal {signal}: results of {} of {runs} runs are shown",
            done.made
        );
        return Err(Failure::Interrupted { signal, what });
    }
    Ok(())
}

fn percent(factor: f64) -> String {
    units::signed_percent((factor - 1.0) * 100.0, 1)
}

/// Formats a factor with its interval, for example "+3.1 %  (+2.0 to +4.2)".
fn figure(mean: Option<&Mean>) -> String {
    let Some(mean) = mean else {
        return "-".to_owned();
    };
    let span = mean.interval95.map_or(String::new(), |(low, high)| {
        let bare = |x: f64| signed((x - 1.0) * 100.0, 1);
        format!(" ({} to {})", bare(low), bare(high))
    });
    format!("{}{span}", percent(mean.factor))
}

fn print(out: &mut Out, a: &Asked, s: &Standing) -> Result<(), Failure> {
    let last = a.seed + u64::from(a.seeds) - 1;
    out.text(&wrap(
        &format!(
            "{} compared with the schedulers of its layer: {} cells, seeds {} to {last}. Each \
             figure is relative to the mean of all schedulers in the same cell; larger is better, \
             also for p99 and fairness.",
            a.name, s.cells, a.seed
        ),
        0,
        width(),
    ))?;
    out.line("")?;
    let name = s.places.iter().map(|p| p.scheduler.chars().count());
    let name = name.max().unwrap_or(0).max(9);
    // On a narrow screen, intervals are omitted; --json contains them.
    let narrow = columns() < name + 3 * 28 + 9;
    let cell = if narrow { 12 } else { 28 };
    let show = |m: Option<&Mean>| match narrow {
        true => m.map_or("-".to_owned(), |m| percent(m.factor)),
        false => figure(m),
    };
    let heads = format!(
        "{:name$}  {:>cell$}{:>cell$}{:>cell$}",
        "scheduler", "throughput", "p99", "fairness"
    );
    out.line(&format!("{heads}  front"))?;
    for p in &s.places {
        let f: Vec<String> = p.means.iter().map(|m| show(m.as_ref())).collect();
        let front = if p.front { "  yes" } else { "" };
        out.line(&format!(
            "{:name$}  {:>cell$}{:>cell$}{:>cell$}{front}",
            p.scheduler, f[0], f[1], f[2]
        ))?;
    }
    out.line("")?;
    let on = s.places.first().is_some_and(|p| p.front);
    out.text(&wrap(
        &match on {
            true => format!(
                "{} is on the Pareto front: no rival is at least as good in all three figures and \
                 better in one.",
                a.name
            ),
            false => format!(
                "{} is not on the Pareto front: another scheduler is at least as good in all three \
                 figures and better in one.",
                a.name
            ),
        },
        0,
        width(),
    ))?;
    if s.behind.is_empty() {
        return out.line("It is not significantly behind any rival in any cell.");
    }
    out.line("")?;
    out.line("Where it is furthest behind (95 % intervals over the seeds):")?;
    for b in s.behind.iter().take(TOLD) {
        let what = match b.figure {
            Figure::Throughput => "throughput",
            Figure::P99 => "p99",
            Figure::Fairness => "fairness",
        };
        out.text(&wrap(
            &format!(
                "  {what} {} against {}: {} ({} seeds)",
                figure(Some(&b.mean)),
                b.rival,
                b.cell,
                b.seeds
            ),
            4,
            width(),
        ))?;
    }
    if s.behind.len() > TOLD {
        let more = s.behind.len() - TOLD;
        out.line(&format!("  and {more} more: --json"))?;
    }
    Ok(())
}
