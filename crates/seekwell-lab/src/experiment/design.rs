//! An experiment as the user requests it: a list of levels for each factor.

use crate::data::Method;
use seekwell::words::{TypedMachine, TypedScheduler};
use seekwell::{BackgroundSpec, DeviceSpec, QueueSpec, SchedulerSpec, WorkloadSpec};
use std::collections::BTreeMap;

/// An experiment as the user requests it: the factors with their levels. Grids are already
/// expanded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Design {
    /// Name of the experiment, by which its results are found.
    pub name: String,
    /// Description in one sentence.
    pub description: String,
    /// The rules for repetitions and verdicts.
    pub method: Method,
    /// The devices; at least one.
    pub devices: Vec<Level<DeviceSpec>>,
    /// The schedulers, which are the treatments; at least one.
    pub schedulers: Vec<Level<SchedulerSpec>>,
    /// The workloads; at least one.
    pub workloads: Vec<Level<Work>>,
    /// The machines above the queue; empty for the default machine. A trace uses no machine.
    pub machines: Vec<Level<TypedMachine>>,
    /// The settings of the queue; empty for the defaults.
    pub queues: Vec<Level<QueueSpec>>,
    /// The treatment that the others are compared with, by its label or the name of its scheduler.
    /// `None` means the scheduler that the kernel uses by default for the device. If that is not a
    /// treatment, it means the first treatment.
    pub reference: Option<String>,
    /// If not empty, only the runs that match one of these picks are made.
    pub only: Vec<Pick>,
    /// The runs that match one of these picks are left out.
    pub exclude: Vec<Pick>,
    /// Notes for the reader on how kernel names were interpreted.
    pub notes: Vec<String>,
}

/// A level of a factor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level<T> {
    /// Name in tables; `None` means a short description of `spec`.
    pub name: Option<String>,
    /// The specification.
    pub spec: T,
    /// The parameter values that a grid set, by parameter.
    pub axes: BTreeMap<String, String>,
}

impl<T> Level<T> {
    /// Builds a level without a name.
    pub fn unnamed(spec: T) -> Self {
        Level {
            name: None,
            spec,
            axes: BTreeMap::new(),
        }
    }
}

/// A workload with its deciding metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The workload that is measured.
    pub spec: WorkloadSpec,
    /// The deciding metric, in the syntax of [`super::Primary::parse`]; `None` means the metric of
    /// the workload.
    pub metric: Option<String>,
    /// Limit of a run, in s of simulated time; `None` means the limit of the machine.
    pub limit_s: Option<u64>,
    /// Background workloads, which run at the same time on the same machine and are not measured.
    pub beside: Vec<BackgroundSpec>,
}

/// A condition that selects runs by the labels of their levels. In a label, `*` matches any
/// characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pick {
    /// Label of the device.
    pub device: Option<String>,
    /// Label of the scheduler.
    pub scheduler: Option<String>,
    /// Label of the workload.
    pub workload: Option<String>,
    /// Label of the machine.
    pub machine: Option<String>,
}

impl From<WorkloadSpec> for Level<Work> {
    fn from(spec: WorkloadSpec) -> Self {
        Level::unnamed(Work {
            spec,
            metric: None,
            limit_s: None,
            beside: Vec::new(),
        })
    }
}

impl From<TypedScheduler> for Level<SchedulerSpec> {
    /// Builds a level. Its label is the text that the user typed.
    fn from(typed: TypedScheduler) -> Self {
        Level {
            name: Some(typed.text),
            ..Level::unnamed(typed.spec)
        }
    }
}

impl From<TypedMachine> for Level<TypedMachine> {
    fn from(typed: TypedMachine) -> Self {
        Level::unnamed(typed)
    }
}

impl From<DeviceSpec> for Level<DeviceSpec> {
    fn from(spec: DeviceSpec) -> Self {
        Level::unnamed(spec)
    }
}

impl From<QueueSpec> for Level<QueueSpec> {
    fn from(spec: QueueSpec) -> Self {
        Level::unnamed(spec)
    }
}

/// Returns whether `text` matches a pattern in which `*` stands for any number of characters. The
/// time is at most proportional to the product of the two lengths.
fn matches(pattern: &str, text: &str) -> bool {
    let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut i, mut j, mut star) = (0, 0, None);
    while j < t.len() {
        match p.get(i) {
            Some('*') => {
                star = Some((i, j));
                i += 1;
            }
            Some(c) if *c == t[j] => (i, j) = (i + 1, j + 1),
            _ => match star {
                // Backtrack: let the last star match one more character.
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (i, j) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    p[i..].iter().all(|c| *c == '*')
}

/// The labels of a run, one for each factor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Labels<'a> {
    pub device: &'a str,
    pub scheduler: &'a str,
    pub workload: &'a str,
    pub machine: &'a str,
}

impl Pick {
    /// Returns the conditions with their names, for messages and files.
    pub(super) fn conditions(&self) -> [(&'static str, &Option<String>); 4] {
        [
            ("device", &self.device),
            ("scheduler", &self.scheduler),
            ("workload", &self.workload),
            ("machine", &self.machine),
        ]
    }
    /// Returns whether the pick selects this run.
    pub(super) fn picks(&self, run: Labels<'_>) -> bool {
        let texts = [run.device, run.scheduler, run.workload, run.machine];
        let mut all = self.conditions().into_iter().zip(texts);
        all.all(|((_, pattern), text)| pattern.as_ref().is_none_or(|p| matches(p, text)))
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn star_matches_any_letters() {
        for (p, t) in [
            ("", ""),
            ("*", ""),
            ("cfq*", "cfq"),
            ("cfq*", "cfq:slice_idle=0"),
            ("*=16", "a=1=16"),
            ("a*b*c", "axxbyc"),
            ("a**c", "ac"),
        ] {
            assert!(matches(p, t), "{p} {t}");
        }
        for (p, t) in [
            ("", "a"),
            ("a", ""),
            ("a*b", "axc"),
            ("*a", "ab"),
            ("A", "a"),
        ] {
            assert!(!matches(p, t), "{p} {t}");
        }
        // Only the last star is tried again, so the time stays quadratic even with many stars.
        assert!(!matches(&"*a".repeat(200), &"b".repeat(2000)));
    }
}
