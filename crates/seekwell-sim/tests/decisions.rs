//! Recorded decision logs of the original schedulers: their dispatches for given request lists,
//! with the times and the timer expiries. Every case must match exactly; each is a test with its
//! own name.
//!
//! An additional test per log replaces the scheduler by another: then some case must differ, or the
//! log would prove nothing.

use libtest_mimic::{Arguments, Failed, Trial};
use seekwell_microscope::format::CsvOptions;
use seekwell_microscope::{Agreement, Case, read_cases, run};
use std::path::Path;

/// The logs, each with another scheduler that must differ from the recorded one.
const LOGS: &[(&str, &str)] = &[
    ("noop", "sio"),
    ("noop-2.6.18", "sio"),
    ("deadline-2.6.18", "deadline-3.4"),
    ("deadline-2.6.24", "deadline-3.4"),
    ("deadline-3.4", "deadline-2.6.24"),
    ("deadline-4.0", "deadline-2.6.24"),
    ("zen", "zen-v1"),
    ("zen-v1", "zen"),
    ("zen-ge", "zen-v1"),
    ("vr", "vr-glitch"),
    ("sio", "zen"),
    ("fiops", "fiops-v1"),
    ("row", "sio"),
    ("cfq-2.6.18", "cfq-2.6.24"),
    ("cfq-2.6.24", "cfq-2.6.25"),
    ("cfq-3.4", "cfq-2.6.24"),
    ("cfq-4.0", "cfq-2.6.24"),
    ("bfq-v7r8", "bfq-v7r5"),
];

fn agreement(case: &Case) -> Result<Agreement, Failed> {
    let want = case.expected()?.ok_or("the case carries no `dispatch`")?;
    let got = run(case, false)?;
    Ok(Agreement::compare(
        &want,
        case.expected_timers().as_deref(),
        &got,
    ))
}

fn same(case: &Case) -> Result<(), Failed> {
    let a = agreement(case)?;
    if a.identical() {
        return Ok(());
    }
    let (n, of, prefix) = (a.same, a.expected, a.prefix);
    Err(format!(
        "{n} of {of} decisions are the same, the first {prefix} in a row; timers the same: {:?}",
        a.timers
    )
    .into())
}

/// One scheduler does not know the other's tunables, so it uses its defaults.
fn check_distinguished(cases: &[Case], other: &str) -> Result<(), Failed> {
    for case in cases {
        let mut case = case.clone();
        case.elevator = other.to_owned();
        let (info, version, _) = seekwell_sched::find(other).ok_or("no such scheduler")?;
        let known = (info.tunables)(version);
        let knows = |name: &str| known.iter().any(|t| t.name == name);
        case.tunables.retain(|name, _| knows(name));
        case.input.retain(|row| {
            row.get(1).and_then(|v| v.as_str()) != Some("t")
                || row.get(2).and_then(|v| v.as_str()).is_some_and(knows)
        });
        if !agreement(&case)?.identical() {
            return Ok(());
        }
    }
    Err(format!("{other} agrees with every case as well").into())
}

fn main() {
    let args = Arguments::from_args();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/decisions");
    let mut trials = Vec::new();
    for &(log, other) in LOGS {
        let file = dir.join(format!("{log}.jsonl.zst"));
        match read_cases(&file, &CsvOptions::default()) {
            Ok(cases) => {
                trials.extend(cases.iter().cloned().map(|c| {
                    let name = c.case.clone();
                    Trial::test(name, move || same(&c))
                }));
                let name = format!("{log}: distinguished from {other}");
                trials.push(Trial::test(name, move || {
                    check_distinguished(&cases, other)
                }));
            }
            Err(e) => trials.push(Trial::test(log, move || Err(e.to_string().into()))),
        }
    }
    libtest_mimic::run(&args, trials).exit();
}
