//! `seekwell verify-kernel`: compares the decisions of the scheduler models with those of the
//! running kernel.

use crate::cells::cancelling;
use crate::cli::VerifyKernel;
use crate::fail::Failure;
use crate::out::{Out, columns, note, width};
use crate::progress::Progress;
use seekwell::Cancel;
use seekwell_evidence::referee::{Heard, Options, RefereeError, Report, SCHEDULERS, judge};
use seekwell_report::table::{Align, Table, wrap};
use serde_json::json;

impl From<RefereeError> for Failure {
    fn from(e: RefereeError) -> Self {
        let what = e.to_string();
        match e {
            RefereeError::Input(_) => Failure::Input(what),
            RefereeError::Interrupted(signal) => Failure::Interrupted { signal, what },
        }
    }
}

fn options(a: &VerifyKernel) -> Result<Options, Failure> {
    let program = std::env::current_exe();
    let known = || SCHEDULERS.join(", ");
    if let Some(bad) = a
        .schedulers
        .iter()
        .find(|s| !SCHEDULERS.contains(&s.as_str()))
    {
        let near = seekwell_core::suggest::did_you_mean(bad, SCHEDULERS.iter().copied(), &[]);
        let near = near.unwrap_or_else(|| format!("there are {}", known()));
        return Err(Failure::input(format!(
            "{bad}: cannot be compared with a kernel: {near}"
        )));
    }
    Ok(Options {
        program: program.map_err(|e| Failure::input(format!("cannot find this program: {e}")))?,
        schedulers: match a.schedulers.is_empty() {
            true => SCHEDULERS.iter().map(|s| (*s).to_owned()).collect(),
            false => a.schedulers.clone(),
        },
        rounds: a.rounds,
        seed: a.seed,
    })
}

/// The beginning of the generated page.
const HEADER: &str = "# Fidelity of the schedulers\n\n\
    This page shows how closely the schedulers of Seekwell reproduce the decisions of the\n\
    originals. It is generated, as root, by `seekwell verify-kernel --markdown --recorded\n\
    crates/seekwell-sim/tests/decisions -o docs/fidelity.md`. Run the command on your own machine\n\
    to learn whether the schedulers of Seekwell match those of your kernel.\n\n";

fn release() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    text.unwrap_or_default().trim().to_owned()
}

/// Runs the checks and prints the results.
pub fn run(a: &VerifyKernel, quiet: bool) -> Result<(), Failure> {
    let o = options(a)?;
    let output = a.output.output.as_deref();
    Out::check(output)?;
    let recorded = a.recorded.as_deref().map(super::fidelity::section);
    let recorded = recorded.transpose()?;
    let cancel = Cancel::new();
    let progress = Progress::new(quiet, "batches", 0, 1);
    let mut told = |heard: Heard<'_>| match heard {
        Heard::Skipped(s) => progress.aside(|| {
            note(
                quiet,
                &format!("skipped: {s}: this kernel does not offer it"),
            );
        }),
        Heard::Batch(done, all, s, kind) => {
            progress.at(done.into(), all.into(), &format!("{s}, {kind}"));
        }
    };
    let mut reports = Vec::new();
    let judged = cancelling(&cancel, || judge(&o, &mut told, &mut reports))?;
    drop(progress);
    if reports.is_empty() {
        judged?;
        return Ok(());
    }
    let mut out = Out::open(output)?;
    if a.json {
        out.json(&json!({
            "schema": 1, "command": "verify-kernel", "kernel": release(), "seed": o.seed,
            "reports": reports,
        }))?;
    } else if a.markdown {
        out.text(HEADER)?;
        if let Some(section) = &recorded {
            out.text(section)?;
            out.line("")?;
        }
        out.text(&markdown(&reports))?;
    } else {
        out.text(&table(&reports))?;
        for line in verdicts(&reports) {
            out.text(&wrap(&line, 0, width()))?;
        }
    }
    out.done()?;
    judged?;
    let all = reports.iter().all(Report::agrees);
    let caught = reports
        .iter()
        .flat_map(|r| &r.planted)
        .all(|p| p.identical < p.rounds);
    match all && caught {
        true => Ok(()),
        false => Err(Failure::Difference),
    }
}

/// Returns the table rows: one for each scheduler and kind of batches.
fn rows(r: &Report) -> Vec<[String; 7]> {
    let mut all = Vec::new();
    for (name, c) in &r.classes {
        all.push([
            r.scheduler.clone(),
            name.clone(),
            c.rounds.to_string(),
            c.identical.to_string(),
            format!("{} of {}", c.same, c.positions),
            c.fifo.to_string(),
            c.clook.to_string(),
        ]);
    }
    all
}

const HEAD: [(&str, Align); 7] = [
    ("KERNEL'S", Align::Left),
    ("BATCHES", Align::Left),
    ("ROUNDS", Align::Right),
    ("IDENTICAL", Align::Right),
    ("SAME PLACE", Align::Right),
    ("FIFO", Align::Right),
    ("SWEEPS", Align::Right),
];

fn table(reports: &[Report]) -> String {
    let mut t = Table::new(&HEAD);
    for row in reports.iter().flat_map(rows) {
        t.row(row.into_iter().map(Into::into).collect());
    }
    let _ = columns();
    t.render(2)
}

fn verdicts(reports: &[Report]) -> Vec<String> {
    let mut lines = vec![format!(
        "Linux {}: order of issue, request by request. IDENTICAL: rounds in which the model issues \
         all requests in the kernel's order. FIFO and SWEEPS: the same for two null models, first \
         in first out and one-way sweeps.",
        release()
    )];
    for r in reports {
        let (identical, rounds) = r.identical();
        let word = match r.agrees() {
            true => "matches this kernel",
            false => "does NOT match this kernel",
        };
        lines.push(format!(
            "{} {word} in {identical} of {rounds} rounds. The kernel gave the same order twice in \
             {} of {} batches.{}",
            r.elevator,
            r.repeated,
            r.twice,
            match r.left_out {
                0 => String::new(),
                n => format!(" Late batches, left out because the machine was busy: {n}."),
            }
        ));
        for p in &r.planted {
            let word = match p.identical < p.rounds {
                true => "caught",
                false => "NOT caught",
            };
            lines.push(format!(
                "  planted error, {}: {word}, identical in {} of {}",
                p.what, p.identical, p.rounds
            ));
        }
    }
    lines
}

/// Returns the results as Markdown.
fn markdown(reports: &[Report]) -> String {
    let mut out = format!(
        "## Comparison with the running kernel: Linux {}\n\n",
        release()
    );
    let head: Vec<String> = HEAD.iter().map(|h| h.0.to_lowercase()).collect();
    out += &format!(
        "| {} |\n|---|---|---:|---:|---:|---:|---:|\n",
        head.join(" | ")
    );
    for row in reports.iter().flat_map(rows) {
        out += &format!("| {} |\n", row.join(" | "));
    }
    out += "\n";
    for line in verdicts(reports) {
        let (indent, text) = match line.strip_prefix("  ") {
            Some(text) => ("  - ", text),
            None => ("- ", line.as_str()),
        };
        let wrapped = wrap(text, 0, 96);
        let lines: Vec<&str> = wrapped.lines().map(str::trim_end).collect();
        let pad = format!("\n{}", " ".repeat(indent.len()));
        out += &format!("{indent}{}\n", lines.join(&pad));
    }
    out
}
