//! Starvation in a run: tasks of one kind that should get equal fractions and did not.
//!
//! Tasks are of one kind if their names differ only in the number at the end ("main/reader0",
//! "main/reader1"), and if they have the same I/O priority and cgroup. A task is starved if it did
//! less than a tenth of the mean of its kind. The mean is used because starved tasks can be the
//! majority, so that the median would be their own value. Two conditions exclude chance and
//! intended differences. A task counts only if it existed for nine tenths of the measured time. The
//! mean must be at least [`MEAN_LEAST`], because with a small mean a task can do 0 to 2 operations
//! by chance.

use super::{Record, TaskPart};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A task is starved if it did less than this fraction of the mean.
const STARVED: f64 = 0.1;
/// A task counts if it existed for at least this fraction of the measured time.
const THERE: f64 = 0.9;
/// Smallest mean number of operations per task of a kind that is examined.
const MEAN_LEAST: f64 = 30.0;

/// A kind of tasks in which some tasks were starved by the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starved {
    /// Name of the tasks without its number ("reader").
    pub tasks: String,
    /// Number of tasks that were starved.
    pub starved: u64,
    /// Number of tasks of this kind.
    pub of: u64,
    /// Smallest and largest number of operations of a starved task.
    pub did: (u64, u64),
    /// Smallest and largest number of operations of the other tasks.
    pub others_did: (u64, u64),
}

/// Returns a text such as "6" or "6 to 7".
fn span((least, most): (u64, u64)) -> String {
    match least == most {
        true => least.to_string(),
        false => format!("{least} to {most}"),
    }
}

impl Starved {
    /// Adds the starvation of the same tasks in another run. Returns false if the tasks are
    /// different.
    pub fn merge(&mut self, o: &Starved) -> bool {
        let same = self.tasks == o.tasks && (self.starved, self.of) == (o.starved, o.of);
        if same {
            let wider = |a: (u64, u64), b: (u64, u64)| (a.0.min(b.0), a.1.max(b.1));
            self.did = wider(self.did, o.did);
            self.others_did = wider(self.others_did, o.others_did);
        }
        same
    }
    /// Returns for example "5 of 8 readers starved: 6 to 7 operations each while others did 1136 to
    /// 1139".
    pub fn words(&self) -> String {
        let (n, of, tasks) = (self.starved, self.of, &self.tasks);
        // The plural "job.0s" would not be a word.
        let plural = match tasks.ends_with(|c: char| c.is_alphabetic()) {
            true => format!("{tasks}s"),
            false => format!("tasks {tasks}"),
        };
        format!(
            "{n} of {of} {plural} starved: {} operations each while others did {}",
            span(self.did),
            span(self.others_did)
        )
    }
}

/// Returns the number of operations of a task, or of its calls if its script counts no operations.
fn done(t: &TaskPart, by_operations: bool) -> u64 {
    match by_operations {
        true => t.ops,
        false => t.reads + t.writes,
    }
}

/// Returns the kinds of tasks in which some tasks were starved by others.
pub fn starved(r: &Record) -> Vec<Starved> {
    let (from, to) = r.window_ns();
    let least = (to - from) as f64 * THERE;
    let there = |t: &&TaskPart| {
        let (began, ended) = (t.began_ns.max(from), t.ended_ns.min(to));
        ended.saturating_sub(began) as f64 >= least
    };
    let mut kinds: BTreeMap<(&str, &str), Vec<&TaskPart>> = BTreeMap::new();
    let beside = r.beside.iter().flat_map(|b| &b.tasks);
    for t in r.tasks.iter().chain(beside).filter(there) {
        let kind = t.path.trim_end_matches(|c: char| c.is_ascii_digit());
        kinds.entry((kind, &t.priority)).or_default().push(t);
    }
    let one = |((kind, _), tasks): (&(&str, &str), &Vec<&TaskPart>)| {
        let by_operations = tasks.iter().any(|t| t.ops > 0);
        let did: Vec<u64> = tasks.iter().map(|t| done(t, by_operations)).collect();
        let mean = did.iter().sum::<u64>() as f64 / did.len() as f64;
        if mean < MEAN_LEAST {
            return None;
        }
        let (few, rest): (Vec<u64>, Vec<u64>) =
            did.iter().partition(|n| (**n as f64) < mean * STARVED);
        let ends = |all: &[u64]| Some((*all.iter().min()?, *all.iter().max()?));
        Some(Starved {
            tasks: kind.rsplit('/').next().unwrap_or(kind).to_owned(),
            starved: few.len() as u64,
            of: did.len() as u64,
            did: ends(&few)?,
            others_did: ends(&rest)?,
        })
    };
    kinds.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(tasks: &[(&str, u64)]) -> Record {
        let task = |(path, ops): &(&str, u64)| TaskPart {
            path: (*path).to_owned(),
            ended_ns: 10_000_000_000,
            ops: *ops,
            ..TaskPart::default()
        };
        Record {
            duration_ns: 10_000_000_000,
            tasks: tasks.iter().map(task).collect(),
            ..Record::default()
        }
    }

    #[test]
    fn majority_of_tasks_can_be_starved() {
        let readers = [
            ("main/reader0", 1139),
            ("main/reader1", 6),
            ("main/reader2", 7),
            ("main/reader3", 1136),
            ("main/reader4", 6),
            ("main/reader5", 6),
            ("main/reader6", 1139),
            ("main/reader7", 6),
            ("main/writer0", 1),
        ];
        let found = starved(&record(&readers));
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].words(),
            "5 of 8 readers starved: 6 to 7 operations each while others did 1136 to 1139"
        );
    }

    #[test]
    fn equal_starvation_in_several_runs_is_merged() {
        let mut one = Starved {
            tasks: "stream".to_owned(),
            starved: 1,
            of: 4,
            did: (7, 7),
            others_did: (525, 687),
        };
        let other = Starved {
            did: (13, 13),
            others_did: (517, 600),
            ..one.clone()
        };
        assert!(one.merge(&other));
        assert_eq!(
            one.words(),
            "1 of 4 streams starved: 7 to 13 operations each while others did 517 to 687"
        );
        assert!(!one.merge(&Starved {
            starved: 2,
            ..other
        }));
    }

    #[test]
    fn fair_shares_few_operations_and_different_kinds_are_not_starvation() {
        let none = |tasks: &[(&str, u64)]| assert_eq!(starved(&record(tasks)), [], "{tasks:?}");
        // A task with exactly a tenth of the mean (10 of 100) is not starved.
        none(&[("main/r0", 10), ("main/r1", 190)]);
        assert_eq!(
            starved(&record(&[("main/r0", 9), ("main/r1", 191)])).len(),
            1
        );
        // With a mean of 29.5, starvation cannot be distinguished from chance.
        none(&[("main/r0", 1), ("main/r1", 58)]);
        none(&[("main/reader", 1), ("main/writer", 5000)]);
        none(&[("main/copy0", 1), ("main/scan0", 5000)]);
        none(&[("main/r0", 0), ("main/r1", 0)]);
        none(&[]);
    }

    #[test]
    fn tasks_with_other_lifetime_or_priority_are_not_compared() {
        let mut r = record(&[("main/app0", 5000), ("main/app1", 0)]);
        assert_eq!(starved(&r).len(), 1);
        r.tasks[1].began_ns = 1_100_000_000;
        assert_eq!(starved(&r), []);
        r.tasks[1].began_ns = 0;
        r.tasks[1].priority = "BE7".to_owned();
        assert_eq!(starved(&r), []);
    }
}
