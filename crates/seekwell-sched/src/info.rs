//! The registry entry of a scheduler. Each scheduler has one in its own file.

use crate::contract::Scheduler;
use crate::cx::Cx;
use crate::tunable::Tunable;
use seekwell_core::{Era, Nanos, Rule};

/// The block layer that a scheduler belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// The single-queue layer, 2.6 to 4.20.
    Legacy,
    /// The multi-queue layer (blk-mq).
    Mq,
}

/// Creates an instance of a scheduler. `cx` contains the facts about its queue. `version` is one of
/// [`SchedulerInfo::versions`].
pub type Make = fn(&Cx, version: &str) -> Box<dyn Scheduler>;

/// Limits for the time that a best-effort request may wait while other tasks keep the device busy.
/// The limits are derived from the scheduler's rules and its default tunables; they are not kernel
/// parameters. Property tests over the registry check them for every version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Time until the request goes before all others (because of a deadline or a plug), ms.
    pub fixed_ms: u32,
    /// Number of other tasks' requests that still go before it after that time: the rest of a batch
    /// or of a cycle.
    pub requests: u32,
    /// Time for each other task that has requests: its slice and the idle wait for it, ms.
    pub per_task_ms: u32,
    /// Number of further requests of each other task, for example those that overrun its slice.
    pub per_task_requests: u32,
    /// Largest number of writes that go to a device before a read that has just arrived. On a
    /// phone's card that fetches requests ahead, the number is always at least three.
    pub writes_before_read: u32,
    /// Versions in which a request can wait longer than these limits while other requests keep
    /// arriving. Only a version for which the property tests observe such a wait may be listed.
    pub except: &'static [&'static str],
}

impl Waiting {
    /// Returns the longest wait from submission to completion. There are `others` other tasks with
    /// one request at a time each, and the device takes at most `service` for a request.
    pub fn bound(&self, others: u32, service: Nanos) -> Nanos {
        let clock_ms = u64::from(self.fixed_ms) + u64::from(self.per_task_ms) * u64::from(others);
        // The requests of other tasks that are ahead, the request itself, and the requests that
        // still pass it.
        let per_task = u64::from(self.per_task_requests) + 1;
        let requests = u64::from(self.requests) + per_task * u64::from(others) + 1;
        Nanos::from_ms(clock_ms) + Nanos(service.0 * requests)
    }
}

/// The registry entry of a scheduler.
#[derive(Clone, Copy)]
pub struct SchedulerInfo {
    /// The kernel's name of the scheduler.
    pub name: &'static str,
    /// The block layer that the scheduler belongs to.
    pub layer: Layer,
    /// Versions or variants, each with its kernel generation. The first one is the default.
    pub versions: &'static [(&'static str, Era)],
    /// Description of the scheduler in one line.
    pub summary: &'static str,
    /// The kernels that contained it, its author, and its purpose.
    pub history: &'static str,
    /// The situations in which not to use it.
    pub not_when: &'static str,
    /// The source of its rules.
    pub source: &'static str,
    /// True if it distinguishes processes. Then a trace without pids does not show its behaviour.
    pub per_process: bool,
    /// Returns true if this version searches the end-sector hash for a bio (noop of 2.6.18 does
    /// not).
    pub hash: fn(version: &str) -> bool,
    /// Limits for the waiting time of a request, with default tunables.
    pub waiting: Waiting,
    /// The rules that its reasons name ([`seekwell_core::rules!`]).
    pub rules: &'static [&'static Rule],
    /// Returns the tunables of a version.
    pub tunables: fn(version: &str) -> &'static [Tunable],
    /// Creates an instance.
    pub make: Make,
}

impl SchedulerInfo {
    /// Returns the version called `version`, or the default version for an empty name.
    pub fn version(&self, version: &str) -> Option<(&'static str, Era)> {
        if version.is_empty() {
            return self.versions.first().copied();
        }
        self.versions.iter().copied().find(|v| v.0 == version)
    }
}

/// The `hash` function of all schedulers except noop of 2.6.18; returns true.
pub fn hash_always(_: &str) -> bool {
    true
}
