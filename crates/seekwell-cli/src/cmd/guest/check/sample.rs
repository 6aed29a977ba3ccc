//! What one run is compared by: the workload's own figures, and the requests that reached the disk,
//! by operation and size.

use seekwell::{Hooks, Record, RunSpec};
use seekwell_core::{Action, Event, Op, Sectors};
use seekwell_guest::Outcome;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Kind of a figure. Each kind has its own tolerance and its own total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A result of the workload: rate, duration, latency.
    Result,
    /// A number of requests.
    Count,
}

/// The figures of a run, by kind and name.
pub type Sample = BTreeMap<(Kind, String), f64>;

/// Upper limits of the size classes in KiB, with their names.
const CLASSES: [(u64, &str); 4] = [
    (4, "of 4 KiB"),
    (32, "to 32 KiB"),
    (256, "to 256 KiB"),
    (u64::MAX, "above 256 KiB"),
];

/// Returns the figures of a record, and of the requests that were issued in its measured time.
fn sample(record: &Record, requests: impl Iterator<Item = (Op, Sectors)>) -> Sample {
    let mut all = Sample::new();
    for m in record.metric.iter().chain(&record.more_metrics) {
        let name = match m.operation.is_empty() || m.operation == m.name {
            true => m.name.clone(),
            false => format!("{} {}", m.operation, m.name),
        };
        all.insert((Kind::Result, format!("{name}, {}", m.unit)), m.value);
    }
    for (op, sectors) in requests {
        let word = match op {
            Op::Read => "reads",
            Op::Write => "writes",
            Op::Flush => "flushes",
            Op::Discard | Op::WriteZeroes => continue,
        };
        let mut add = |name: String| *all.entry((Kind::Count, name)).or_default() += 1.0;
        add(word.to_owned());
        if op != Op::Flush {
            let kib = sectors.bytes().div_ceil(1024);
            let class = CLASSES.iter().find(|c| kib <= c.0).map_or("", |c| c.1);
            add(format!("{word} {class}"));
        }
    }
    all
}

/// Returns the figures of a run in a guest.
pub fn of_guest(record: &Record, done: &Outcome, window_ns: (u64, u64)) -> Sample {
    let log = done.logs.iter().flatten();
    let during = log.filter(|e| (window_ns.0..=window_ns.1).contains(&e.arrive_ns));
    sample(record, during.map(|e| (e.op, e.sectors)))
}

/// Simulates a run and returns its figures.
///
/// # Errors
/// The run failed.
pub fn of_simulation(spec: &RunSpec) -> Result<Sample, seekwell::Error> {
    let issued = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&issued);
    let listener = move |e: &Event| {
        if e.action == Action::Issue {
            seen.borrow_mut()
                .push((e.at.since_start(), e.op, e.sectors));
        }
    };
    let record = seekwell::run(spec, Hooks::default().events(listener))?;
    let (from, to) = record.window_ns();
    let all = issued.borrow();
    let during = all.iter().filter(|e| (from..=to).contains(&e.0));
    Ok(sample(&record, during.map(|e| (e.1, e.2))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_operation_and_size() {
        let requests = [
            (Op::Read, Sectors(8)),
            (Op::Write, Sectors(9)),
            (Op::Write, Sectors(64)),
            (Op::Write, Sectors(2560)),
            (Op::Flush, Sectors(0)),
            (Op::Discard, Sectors(8)),
        ];
        let all = sample(&Record::default(), requests.into_iter());
        let count = |name: &str| all.get(&(Kind::Count, name.to_owned())).copied();
        assert_eq!(count("reads"), Some(1.0));
        assert_eq!(count("reads of 4 KiB"), Some(1.0));
        assert_eq!(count("writes"), Some(3.0));
        assert_eq!(count("writes of 4 KiB"), None);
        assert_eq!(count("writes to 32 KiB"), Some(2.0));
        assert_eq!(count("writes above 256 KiB"), Some(1.0));
        assert_eq!(count("flushes"), Some(1.0));
        assert_eq!(all.len(), 6);
    }
}
