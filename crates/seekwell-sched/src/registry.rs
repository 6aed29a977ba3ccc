//! The one list of schedulers that the command line, the documentation and the tests read.
//!
//! To add a scheduler is to add a file and a line here.

use crate::contract::Scheduler;
use crate::cx::Cx;
use crate::tunable::Tunable;
use seekwell_core::Era;

/// Which block layer a scheduler lives in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// Single queue, 2.6 to 4.20.
    Legacy,
    /// Multi-queue.
    Mq,
}

/// Makes an instance for a queue whose facts are in `cx`; the argument is the version asked for
/// (one of [`SchedulerInfo::versions`], never anything else).
pub type Make = fn(&Cx, version: &str) -> Box<dyn Scheduler>;

/// What the registry knows of a scheduler.
#[derive(Clone, Copy)]
pub struct SchedulerInfo {
    /// The kernel's name.
    pub name: &'static str,
    /// Layer it lives in.
    pub layer: Layer,
    /// Versions or variants, the default first, each with the kernel generation of its layer.
    pub versions: &'static [(&'static str, Era)],
    /// One line.
    pub summary: &'static str,
    /// Which kernels shipped it, who wrote it, what for.
    pub history: &'static str,
    /// When not to use it.
    pub not_when: &'static str,
    /// Where the rules come from.
    pub source: &'static str,
    /// Tells processes apart (a trace without pids hides what it does).
    pub per_process: bool,
    /// Bios are searched in the end-sector hash for this version (2.6.18 noop had none).
    pub hash: fn(version: &str) -> bool,
    /// Tunables of a version.
    pub tunables: fn(version: &str) -> &'static [Tunable],
    /// Makes one.
    pub make: Make,
}

impl SchedulerInfo {
    /// The version called `version`, or the default for an empty name.
    pub fn version(&self, version: &str) -> Option<(&'static str, Era)> {
        if version.is_empty() {
            return self.versions.first().copied();
        }
        self.versions.iter().copied().find(|v| v.0 == version)
    }
}

/// `hash` of everything but 2.6.18's noop.
pub fn hash_always(_: &str) -> bool {
    true
}

/// All schedulers, in the order people list them.
pub fn registry() -> &'static [SchedulerInfo] {
    static ALL: &[SchedulerInfo] = &[
        crate::noop::INFO,
        crate::deadline::INFO,
        crate::cfq::INFO,
        crate::none::INFO,
        crate::mq_deadline::INFO,
        crate::kyber::INFO,
        crate::zen::INFO,
        crate::vr::INFO,
        crate::sio::INFO,
        crate::fiops::INFO,
        crate::row::INFO,
        crate::anticipatory::INFO,
        crate::adios::INFO,
        crate::bfq::INFO,
        crate::bfq::INFO_SQ,
    ];
    ALL
}

/// Names people know a version by, where they do not begin with the entry's own.
const ALIASES: &[(&str, &str)] = &[("bfq-v7r8", "bfq-sq-v7r8"), ("bfq-v7r5", "bfq-sq-v7r5")];

/// Finds `NAME` or `NAME-VERSION` ("cfq-3.4", "mq-deadline", "zen-v1"), or an alias of one.
pub fn find(name: &str) -> Option<(&'static SchedulerInfo, &'static str, Era)> {
    let name = ALIASES.iter().find(|a| a.0 == name).map_or(name, |a| a.1);
    for s in registry() {
        if name == s.name {
            let (v, era) = s.version("")?;
            return Some((s, v, era));
        }
    }
    for s in registry() {
        if let Some(v) = name.strip_prefix(s.name).and_then(|r| r.strip_prefix('-'))
            && let Some((v, era)) = s.version(v)
        {
            return Some((s, v, era));
        }
    }
    None
}
