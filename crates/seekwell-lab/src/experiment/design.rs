//! An experiment as requested: the levels of each factor.

use crate::results::Method;
use seekwell::words::{TypedMachine, TypedScheduler};
use seekwell::{BesideSpec, DeviceSpec, QueueSpec, SchedulerSpec, WorkloadSpec};
use std::collections::BTreeMap;

/// An experiment as requested: factors with their levels; grids are already expanded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Design {
    /// Name; results are found by it.
    pub name: String,
    /// Description in one sentence.
    pub description: String,
    /// How runs are repeated and judged.
    pub method: Method,
    /// Devices; at least one.
    pub devices: Vec<Level<DeviceSpec>>,
    /// Schedulers (the treatments); at least one.
    pub schedulers: Vec<Level<SchedulerSpec>>,
    /// Workloads; at least one.
    pub workloads: Vec<Level<Work>>,
    /// Machines above the queue; empty for the default one. A trace does not use a machine.
    pub machines: Vec<Level<TypedMachine>>,
    /// Settings of the queue; empty for the defaults.
    pub queues: Vec<Level<QueueSpec>>,
    /// The treatment that the others are compared with, by its label or its scheduler's name.
    /// `None` means the kernel's default for the device if it is a treatment, otherwise the first
    /// treatment.
    pub reference: Option<String>,
    /// If not empty, only runs that match one of these picks are made.
    pub only: Vec<Pick>,
    /// Runs that match one of these picks are left out.
    pub exclude: Vec<Pick>,
    /// Notes on how named kernels were interpreted.
    pub notes: Vec<String>,
}

/// A level of a factor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level<T> {
    /// Name in tables; `None` means a short description of `spec`.
    pub name: Option<String>,
    /// The specification.
    pub spec: T,
    /// Parameter values that a grid set.
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

/// A workload, and the metric of it that decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The measured workload.
    pub spec: WorkloadSpec,
    /// The deciding metric, in the syntax of [`super::Primary::parse`]; `None` means the workload's
    /// own.
    pub metric: Option<String>,
    /// Stop a run after this many seconds of its own time; `None` means the machine's limit.
    pub limit_s: Option<u64>,
    /// Workloads that run at the same time on the same machine and are not measured.
    pub beside: Vec<BesideSpec>,
}

/// Selects runs by the labels of their levels; `*` matches any characters.
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
    /// The label is the text as typed.
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

/// Whether `text` matches a pattern in which `*` stands for any characters, or none. The time is at
/// most proportional to the product of the two lengths.
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
                // Backtrack: the last star matches one character more.
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
    /// Whether it selects this run.
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
        // Earlier stars do not multiply the work: the time stays quadratic.
        assert!(!matches(&"*a".repeat(200), &"b".repeat(2000)));
    }
}
