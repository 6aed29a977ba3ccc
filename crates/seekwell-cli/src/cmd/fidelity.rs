//! The section about recorded decisions of every scheduler, for `seekwell verify-kernel --recorded`.

use crate::fail::Failure;
use seekwell_evidence::fidelity::{replayed, without_recordings};
use seekwell_evidence::referee::SCHEDULERS;
use seekwell_report::units::share;
use seekwell_sched::Layer;
use std::path::Path;

/// Returns the section about recorded decisions, in Markdown.
pub fn section(dir: &Path) -> Result<String, Failure> {
    let rows = replayed(dir)?.ok_or_else(|| {
        Failure::input(format!(
            "{}: holds no recorded decisions (NAME.jsonl, NAME.jsonl.zst)",
            dir.display()
        ))
    })?;
    let mut out = "## Comparison with recorded decisions\n\n\
        Each row is one file of recorded decisions. The file holds the requests that the original\n\
        code, or a running kernel, dispatched for seeded lists of requests. Seekwell replays the\n\
        same lists. *Identical* counts the lists that are equal from first to last, including the\n\
        times if the recording has them. *Same decisions* counts single decisions. The last two\n\
        columns are null models: the number of identical lists under a FIFO and under a wrong\n\
        scheduler. For recordings of a running kernel the wrong scheduler is one-way sweeps.\n\n\
        | scheduler | recorded from | lists | identical | same decisions | a FIFO | a wrong one |\n\
        |---|---|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for r in &rows {
        out += &format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            r.elevator,
            r.recorded_from,
            r.cases,
            r.identical,
            share(r.same as u64, r.of as u64),
            r.null[0],
            r.null[1]
        );
    }
    let others: Vec<String> = without_recordings(&rows)
        .iter()
        .map(|s| {
            let layer = match s.layer {
                Layer::Legacy => "single queue",
                Layer::Mq => "blk-mq",
            };
            format!("{} ({layer})", s.name)
        })
        .collect();
    if !others.is_empty() {
        out += &format!(
            "\nThese schedulers have no recordings and are checked against worked examples only: \
             {}.\n",
            others.join(", ")
        );
    }
    out += &format!(
        "\nThe next section compares {} with the running kernel, decision by decision.\n",
        SCHEDULERS.join(", ")
    );
    Ok(out)
}
