//! `seekwell demo [NAME]`: known behaviour of schedulers, with numbers.

use super::report::page_of_picture;
use crate::cells::{catching, interrupted};
use crate::cli::DemoArgs;
use crate::fail::Failure;
use crate::out::{Out, width};
use crate::progress::Progress;
use seekwell::words::{self, TypedScheduler};
use seekwell_evidence::demo::{Demo, Shown, demos, find, unknown};
use seekwell_host::stop::signal;
use seekwell_report::plain::Plain;
use seekwell_report::{brief, demo as report, plot};
use seekwell_sim::compare;
use serde_json::{Value, json};

fn as_json(d: &Demo, s: &Shown) -> Value {
    let checks = s
        .checks
        .iter()
        .map(|(words, holds)| json!({ "claim": words, "holds": holds }));
    json!({
        "name": d.name, "claim": d.claim, "setting": s.setting, "columns": s.columns,
        "rows": s.rows, "seeds": s.seeds, "checks": checks.collect::<Vec<_>>(), "holds": s.holds(),
    })
}

fn as_page(d: &Demo, s: &Shown) -> Plain {
    let mut sentences = vec![d.claim.to_owned(), s.setting.clone()];
    let said = |holds| if holds { "Holds" } else { "Does not hold" };
    let checks = s.checks.iter();
    sentences.extend(checks.map(|(words, holds)| format!("{}: {words}.", said(*holds))));
    Plain {
        kind: "a demo",
        title: d.name.to_owned(),
        sentences,
        picture: plot::demo(d, s),
        heads: s.columns.clone(),
        rows: s.rows.clone(),
        again: format!("seekwell demo {}", d.name),
        ..Plain::default()
    }
}

/// Lists the demos, or runs one or all of them.
pub fn run(a: &DemoArgs, quiet: bool) -> Result<(), Failure> {
    let chosen: Vec<&'static Demo> = match a.name.as_deref() {
        None => {
            let mut out = Out::open(a.output.output.as_deref())?;
            match a.details {
                true => out.text(&report::list(demos(), width()))?,
                false => out.text(&brief::demos(demos(), width()))?,
            }
            out.prose(
                "\nRun one: seekwell demo NAME; all of them: seekwell demo all. What each shows: \
                 --details",
            )?;
            return out.done();
        }
        Some("all") if a.plot.is_some() || a.report.is_some() => {
            return Err(Failure::input(
                "--plot draws one demo and --report shows one; name it instead of `all`",
            ));
        }
        Some("all") => demos().collect(),
        Some(name) => vec![find(name).ok_or_else(|| {
            Failure::input(format!("there is no demo \"{name}\"; {}", unknown(name)))
        })?],
    };
    let (chosen, beside) = with_schedulers(a, chosen)?;
    Out::check(a.output.output.as_deref())?;
    Out::check(a.plot.as_deref())?;
    Out::check(a.report.as_deref())?;
    let runs = run_all(&chosen, a.seeds, a.seed, &beside, quiet)?;
    // Each demo is shown with the seeds that ran. The failures of other seeds are listed.
    let (mut shown, mut missing) = (Vec::new(), Vec::new());
    for (d, runs) in chosen.iter().zip(runs) {
        let whole: Vec<Shown> = runs
            .iter()
            .filter_map(|r| r.as_ref().ok().cloned())
            .collect();
        shown.extend(Shown::over(&whole).map(|s| (*d, s)));
        if let Some(Err(why)) = runs.iter().find(|r| r.is_err()) {
            missing.push(format!("{}: {why}", d.name));
        }
    }
    if let (true, Some(first), None) = (shown.is_empty(), missing.first(), signal()) {
        return Err(Failure::input(first));
    }
    if let (Some(file), [(d, s)]) = (&a.plot, &shown[..]) {
        Out::whole(file, &plot::demo(d, s))?;
    }
    if let (Some(file), [(d, s)]) = (&a.report, &shown[..]) {
        page_of_picture(file, &as_page(d, s))?;
    }
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        let list: Vec<_> = shown.iter().map(|(d, s)| as_json(d, s)).collect();
        out.json(&json!({ "schema": 1, "seed": a.seed, "demos": list }))?;
    } else {
        for (i, (d, s)) in shown.iter().enumerate() {
            if i > 0 {
                out.line("")?;
            }
            out.text(&report::shown(d, s, a.details, width()))?;
        }
    }
    out.done()?;
    if !missing.is_empty() {
        let (all, n) = (chosen.len(), chosen.len() - missing.len());
        return Err(match signal() {
            Some(signal) => interrupted(signal, n, all, "demos"),
            None => Failure::Early(format!(
                "{n} of {all} demos are shown; missing: {}",
                missing.join("; ")
            )),
        });
    }
    if shown.iter().all(|s| s.1.holds()) {
        Ok(())
    } else {
        Err(Failure::Difference)
    }
}

/// Returns the demos with additional schedulers. If all demos run, selects those that accept them.
fn with_schedulers(
    a: &DemoArgs,
    mut chosen: Vec<&'static Demo>,
) -> Result<(Vec<&'static Demo>, Vec<String>), Failure> {
    let Some(list) = &a.schedulers else {
        return Ok((chosen, Vec::new()));
    };
    let typed = words::schedulers(list).map_err(|e| Failure::words("", &e))?;
    chosen.retain(|d| d.each > 0);
    if chosen.is_empty() {
        let name = a.name.as_deref().unwrap_or_default();
        let others: Vec<_> = demos().filter(|d| d.each > 0).map(|d| d.name).collect();
        return Err(Failure::input(format!(
            "--schedulers: the demo {name} runs only with its own schedulers; demos that accept \
             this option: {}",
            others.join(", ")
        )));
    }
    // The user separates settings by colons, and demos separate them by commas.
    let spec = |t: &TypedScheduler| match t.text.split_once(':') {
        None => t.text.clone(),
        Some((name, set)) => format!("{name}:{}", set.replace(':', ",")),
    };
    Ok((chosen, typed.iter().map(spec).collect()))
}

/// Runs each demo with each seed. A stopped or failed demo returns the reason. If the user does not
/// set the number of seeds, the work of the first seed determines it.
fn run_all(
    chosen: &[&Demo],
    asked: Option<u64>,
    seed: u64,
    beside: &[String],
    quiet: bool,
) -> Result<Vec<Vec<Ran>>, Failure> {
    let n = chosen.len() * asked.unwrap_or(1) as usize;
    let progress = Progress::new(quiet, "demos", n, 1);
    let first: Vec<(usize, u64)> = (0..chosen.len()).map(|d| (d, 0)).collect();
    let mut all: Vec<Vec<Ran>> = vec![Vec::new(); chosen.len()];
    let ran = run_some(chosen, &first, seed, beside, &progress)?;
    for (of, ran) in all.iter_mut().zip(ran) {
        of.push(ran);
    }
    let mut more = Vec::new();
    for (demo, ran) in all.iter().enumerate() {
        let worth = ran[0].as_ref().map_or(1, Shown::worth);
        more.extend((1..asked.unwrap_or(worth)).map(|s| (demo, s)));
    }
    progress.set_total((chosen.len() + more.len()) as u64);
    let ran = match signal() {
        // The signal has arrived; catching signals again would lose it.
        Some(_) => more.iter().map(|_| Err("not begun".to_owned())).collect(),
        None => run_some(chosen, &more, seed, beside, &progress)?,
    };
    for ((demo, _), ran) in more.into_iter().zip(ran) {
        all[demo].push(ran);
    }
    Ok(all)
}

type Ran = Result<Shown, String>;

/// Runs each demo with these seeds, which are offsets from the first seed.
fn run_some(
    chosen: &[&Demo],
    jobs: &[(usize, u64)],
    seed: u64,
    beside: &[String],
    progress: &Progress,
) -> Result<Vec<Ran>, Failure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    catching(|| {
        compare::run_all(jobs.len(), threads, |i| {
            if signal().is_some() {
                return Err("not begun".to_owned());
            }
            let (demo, further) = jobs[i];
            let demo = chosen[demo];
            let mut task = progress.task(0, demo.name);
            let seed = seed.wrapping_add(further);
            let shown = demo.show_beside(seed, beside, &mut |done, of| task.at(done, of));
            match task.refused() {
                true => Err("stopped".to_owned()),
                false => shown.map_err(|e| e.to_string()),
            }
        })
    })
}
