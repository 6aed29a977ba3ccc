//! What is asked for: the levels of each factor.

use crate::results::Method;
use seekwell::words::{TypedMachine, TypedScheduler};
use seekwell::{BesideSpec, DeviceSpec, QueueSpec, SchedulerSpec, WorkloadSpec};
use std::collections::BTreeMap;

/// An experiment as it is asked for: factors with their levels, grids already spread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Design {
    /// Its name; results are found by it.
    pub name: String,
    /// In a sentence.
    pub description: String,
    /// How runs are repeated and judged.
    pub method: Method,
    /// On what; at least one.
    pub devices: Vec<Level<DeviceSpec>>,
    /// Under what: the treatments; at least one.
    pub schedulers: Vec<Level<SchedulerSpec>>,
    /// What runs; at least one.
    pub workloads: Vec<Level<Work>>,
    /// The machines over the queue; none: the usual one. A trace runs below all of them.
    pub machines: Vec<Level<TypedMachine>>,
    /// Settings of the queue; none: the usual ones.
    pub queues: Vec<Level<QueueSpec>>,
    /// The treatment that the others are compared with, by its label or its scheduler's name;
    /// `None`: the kernel's default for that device, if it is among them, else the first.
    pub reference: Option<String>,
    /// Only what one of these picks is run; empty: everything.
    pub only: Vec<Pick>,
    /// What one of these picks is left out.
    pub exclude: Vec<Pick>,
    /// What was made of the kernels that were named.
    pub notes: Vec<String>,
}

/// A level of a factor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level<T> {
    /// What tables call it; `None`: what it is, as short as is clear.
    pub name: Option<String>,
    /// What it is.
    pub spec: T,
    /// Values that a grid gave it, by parameter.
    pub axes: BTreeMap<String, String>,
}

impl<T> Level<T> {
    /// A level without a name of its own.
    pub fn of(spec: T) -> Self {
        Level {
            name: None,
            spec,
            axes: BTreeMap::new(),
        }
    }
}

/// What runs, and what of it decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The workload that is measured.
    pub spec: WorkloadSpec,
    /// What decides, as [`super::Primary::parse`] reads it; `None`: the workload's own metric.
    pub metric: Option<String>,
    /// Stop a run after so much of its own time, seconds; `None`: what the machine says.
    pub limit_s: Option<u64>,
    /// What runs at the same time on the same machine and is not measured.
    pub beside: Vec<BesideSpec>,
}

/// Picks runs by the labels of their levels; `*` stands for any letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pick {
    /// Device.
    pub device: Option<String>,
    /// Scheduler.
    pub scheduler: Option<String>,
    /// Workload.
    pub workload: Option<String>,
    /// Machine.
    pub machine: Option<String>,
}

impl From<WorkloadSpec> for Level<Work> {
    fn from(spec: WorkloadSpec) -> Self {
        Level::of(Work {
            spec,
            metric: None,
            limit_s: None,
            beside: Vec::new(),
        })
    }
}

impl From<TypedScheduler> for Level<SchedulerSpec> {
    /// Tables call it as it was typed.
    fn from(typed: TypedScheduler) -> Self {
        Level {
            name: Some(typed.text),
            ..Level::of(typed.spec)
        }
    }
}

impl From<TypedMachine> for Level<TypedMachine> {
    fn from(typed: TypedMachine) -> Self {
        Level::of(typed)
    }
}

impl From<DeviceSpec> for Level<DeviceSpec> {
    fn from(spec: DeviceSpec) -> Self {
        Level::of(spec)
    }
}

impl From<QueueSpec> for Level<QueueSpec> {
    fn from(spec: QueueSpec) -> Self {
        Level::of(spec)
    }
}

/// Does `text` match a pattern in which `*` stands for any letters, none included? Takes time in
/// proportion to the two lengths' product at most.
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
                // The last star takes one letter more.
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

/// The labels of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Labels<'a> {
    pub device: &'a str,
    pub scheduler: &'a str,
    pub workload: &'a str,
    pub machine: &'a str,
}

impl Pick {
    /// Its conditions with their names, for messages and files.
    pub(super) fn conditions(&self) -> [(&'static str, &Option<String>); 4] {
        [
            ("device", &self.device),
            ("scheduler", &self.scheduler),
            ("workload", &self.workload),
            ("machine", &self.machine),
        ]
    }
    /// Does it pick this run?
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
    fn a_star_is_any_letters() {
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
        // No star multiplies the work of those before it.
        assert!(!matches(&"*a".repeat(200), &"b".repeat(2000)));
    }
}
