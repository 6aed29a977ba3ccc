//! `seekwell predict --record`: the scores of all verified predictions of this machine.

use super::show::{claim, percent, times};
use crate::fail::Failure;
use crate::out::{Out, width};
use seekwell_lab::predict::track::{Line, Places, Track};
use seekwell_lab::predict::{Scores, scores};
use seekwell_report::table::{Align, Table, wrap};
use serde_json::json;
use std::path::Path;

/// Number of lines that are shown one by one.
const SHOWN: usize = 12;

/// Prints the record.
pub fn run(output: Option<&Path>, as_json: bool) -> Result<(), Failure> {
    let files = Places::here().to_read();
    let track = Track::read(&files);
    let track = track.map_err(|e| Failure::input(format!("the record of predictions: {e}")))?;
    let all = scores(&track.lines);
    let mut out = Out::open(output)?;
    if as_json {
        out.json(&json!({
            "schema": 1, "command": "predict", "files": files, "broken": track.broken,
            "scores": all, "lines": track.lines,
        }))?;
        return out.done();
    }
    if track.lines.is_empty() {
        let files: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
        out.prose(&format!(
            "No prediction of this machine has been verified yet ({} has no line). `sudo seekwell \
             predict PATH --verify` measures one.",
            files.join(", ")
        ))?;
        return out.done();
    }
    out.text(&text(&track, &all, width()))?;
    out.done()
}

fn text(track: &Track, all: &Scores, width: usize) -> String {
    let mut s = latest(&track.lines);
    let hidden = track.lines.len().saturating_sub(SHOWN);
    if hidden > 0 {
        s += &format!("  and {hidden} older lines (--json prints all)\n");
    }
    let mut t = Table::new(&[
        ("", Align::Left),
        ("RIGHT", Align::Right),
        ("BRIER", Align::Right),
        ("LOG", Align::Right),
    ]);
    for (name, score) in [
        ("predictions", &all.predictions),
        ("baseline: no difference", &all.baseline),
    ] {
        let number = |x: f64| match score.tested {
            0 => "-".to_owned(),
            _ => format!("{x:.3}"),
        };
        t.row(vec![
            name.into(),
            format!("{} of {}", score.right, score.tested).into(),
            number(score.brier).into(),
            number(score.log).into(),
        ]);
    }
    s += "\n";
    s += &t.render(2);
    s += &wrap(
        &format!(
            "{} predictions, {} of them not testable. BRIER and LOG score the stated \
             probabilities: 0 is perfect; 50 % for everything gives 0.250 and 0.693. The baseline \
             counts only pairs that the measurement decided. Lines of one measurement are not \
             independent.",
            track.lines.len(),
            all.not_testable
        ),
        0,
        width,
    );
    if track.broken > 0 {
        s += &format!("{} lines of the record cannot be read.\n", track.broken);
    }
    let mut bins = Table::new(&[
        ("STATED", Align::Left),
        ("MEAN", Align::Right),
        ("CAME TRUE", Align::Right),
    ]);
    for b in &all.calibration {
        bins.row(vec![
            format!("{} to {}", percent(b.range.0), percent(b.range.1)).into(),
            percent(b.stated).into(),
            format!("{} of {}", b.right, b.tested).into(),
        ]);
    }
    if !bins.is_empty() {
        s += "\nStated probabilities beside what came true:\n";
        s += &bins.render(2);
    }
    s
}

/// Returns the workload without its parameters, and the metric if the workload has several.
fn name(l: &Line) -> String {
    let (name, rest) = l.workload.split_once(':').unwrap_or((&l.workload, ""));
    match rest.ends_with(&format!(", {}", l.metric)) {
        true => format!("{name}, {}", l.metric),
        false => name.to_owned(),
    }
}

/// Returns a table of the latest lines.
fn latest(lines: &[Line]) -> String {
    let mut t = Table::new(&[
        ("WORKLOAD", Align::Left),
        ("SCHEDULERS", Align::Left),
        ("PREDICTED", Align::Right),
        ("CLAIM", Align::Left),
        ("STATED", Align::Right),
        ("MEASURED", Align::Right),
        ("", Align::Left),
    ]);
    let first = lines.len().saturating_sub(SHOWN);
    for l in &lines[first..] {
        t.row(vec![
            name(l).into(),
            format!("{} / {}", l.one, l.other).into(),
            times(l.predicted.times).into(),
            claim(l.claim).into(),
            percent(l.probability).into(),
            times(l.live.times).into(),
            l.outcome.word().into(),
        ]);
    }
    t.render(2)
}
