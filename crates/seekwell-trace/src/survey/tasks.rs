//! Numbers of accesses by process.

use super::data::TaskShare;
use seekwell_core::Op;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Maximum number of different processes.
const TASKS_MAX: usize = 1 << 16;
/// Maximum number of processes in the survey.
const LISTED: usize = 100;

#[derive(Default)]
struct Task {
    part: TaskShare,
    sum_ns: u128,
    /// Device and end sector of the last access.
    end: Option<(u32, u64)>,
}

/// Collects accesses by process.
#[derive(Default)]
pub(super) struct TaskSum {
    tasks: BTreeMap<Option<u32>, Task>,
    /// Lower bound of the number of processes that were not stored.
    beyond: u64,
}

impl TaskSum {
    fn task(&mut self, pid: Option<u32>) -> Option<&mut Task> {
        if self.tasks.len() >= TASKS_MAX && !self.tasks.contains_key(&pid) {
            return None;
        }
        Some(self.tasks.entry(pid).or_default())
    }

    /// Counts an access that a process queued.
    pub fn queued(&mut self, pid: Option<u32>, device: u32, op: Op, sector: u64, sectors: u64) {
        let bytes = sectors * seekwell_core::units::SECTOR_BYTES;
        let Some(task) = self.task(pid) else {
            self.beyond += 1;
            return;
        };
        let (n, moved) = match op {
            Op::Read => (&mut task.part.reads, &mut task.part.read_bytes),
            Op::Flush => return,
            _ => (&mut task.part.writes, &mut task.part.write_bytes),
        };
        *n += 1;
        *moved += bytes;
        task.part.sequential += u64::from(task.end == Some((device, sector)));
        task.end = Some((device, sector + sectors));
    }

    /// Counts a merged access of a process.
    pub fn merged(&mut self, pid: Option<u32>) {
        if let Some(task) = self.task(pid) {
            task.part.merged += 1;
        }
    }

    /// Counts a completed access of a process.
    pub fn completed(&mut self, pid: Option<u32>, ns: u64) {
        if let Some(task) = self.task(pid) {
            task.part.completed += 1;
            task.sum_ns += u128::from(ns);
            task.part.max_ns = task.part.max_ns.max(ns);
        }
    }

    /// Returns all processes, and the number of processes that are not listed. The process with the
    /// most data is first. The list is empty if the trace has no processes.
    pub fn done(self, names: Option<&BTreeMap<u32, String>>) -> (Vec<TaskShare>, u64) {
        if self.tasks.keys().all(Option::is_none) {
            return (Vec::new(), 0);
        }
        let named = |(pid, t): (Option<u32>, Task)| TaskShare {
            pid,
            name: pid
                .and_then(|p| names?.get(&p).cloned())
                .unwrap_or_default(),
            mean_ns: t.sum_ns as f64 / t.part.completed.max(1) as f64,
            ..t.part
        };
        let mut all: Vec<TaskShare> = self.tasks.into_iter().map(named).collect();
        all.retain(|t| t.reads + t.writes > 0);
        all.sort_by_key(|t| (Reverse(t.read_bytes + t.write_bytes), t.pid));
        let more = all.len().saturating_sub(LISTED) as u64 + self.beyond;
        all.truncate(LISTED);
        (all, more)
    }
}
