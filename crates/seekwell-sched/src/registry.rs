//! The one list of schedulers that the command line, the documentation and the tests read.
//!
//! To add a scheduler is to add a file and a line here. A scheduler from outside the tree joins the
//! list while the program runs ([`register`]) and is from then on found, listed, compared and tested
//! like any other.

use crate::contract::Scheduler;
use crate::cx::Cx;
use crate::tunable::Tunable;
use seekwell_core::{Era, OpenList};
use thiserror::Error;

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

/// What is in the tree.
const BUILT_IN: &[SchedulerInfo] = &[
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

static ALL: OpenList<SchedulerInfo> = OpenList::new(BUILT_IN);

/// All schedulers, in the order people list them; behind those of the tree the registered ones.
pub fn registry() -> &'static [SchedulerInfo] {
    ALL.all()
}

/// Why a scheduler was not registered.
#[derive(Error, Debug, Clone, PartialEq, Eq)]
pub enum RegisterError {
    /// A name that the notations of the command line could not take apart.
    #[error(
        "scheduler `{0}`: a name has small letters, digits, `-` and `_`, begins with a letter, and \
         is none of all, single-queue, blk-mq"
    )]
    Name(String),
    /// Somebody has that name already, or one of the versions would be taken for his.
    #[error("scheduler `{0}` is registered already: choose another name")]
    Taken(String),
    /// No versions, one twice, or one that cannot be typed.
    #[error(
        "scheduler `{name}`: version `{version}`: name at least one version, each once, of letters, \
         digits, `.`, `-` and `_`"
    )]
    Version {
        /// Whose.
        name: String,
        /// Which.
        version: String,
    },
    /// A version whose kernel has the other layer.
    #[error("scheduler `{name}`: version `{version}` is of a kernel with the other layer")]
    Layer {
        /// Whose.
        name: String,
        /// Which.
        version: String,
    },
}

/// Words that stand for several schedulers.
const GROUPS: &[&str] = &["all", "single-queue", "blk-mq"];

/// Adds a scheduler from outside the tree, for the rest of the process.
///
/// # Errors
/// Names and versions that are taken, or that nobody could type.
pub fn register(info: SchedulerInfo) -> Result<(), RegisterError> {
    let name = info.name;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !begins || !name.chars().all(plain) || GROUPS.contains(&name) {
        return Err(RegisterError::Name(name.to_owned()));
    }
    let bad = |version: &str| RegisterError::Version {
        name: name.to_owned(),
        version: version.to_owned(),
    };
    if info.versions.is_empty() {
        return Err(bad(""));
    }
    for (i, (version, era)) in info.versions.iter().enumerate() {
        let typed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let twice = info.versions[..i].iter().any(|v| v.0 == *version);
        if version.is_empty() || twice || !version.chars().all(typed) {
            return Err(bad(version));
        }
        if era.is_mq() != (info.layer == Layer::Mq) {
            return Err(RegisterError::Layer {
                name: name.to_owned(),
                version: (*version).to_owned(),
            });
        }
    }
    let words = |s: &SchedulerInfo| {
        let versioned = s.versions.iter().map(|v| format!("{}-{}", s.name, v.0));
        versioned.chain([s.name.to_owned()]).collect::<Vec<_>>()
    };
    let own = words(&info);
    ALL.add(info, |all| {
        let aliases = ALIASES.iter().map(|a| a.0.to_owned());
        let mut taken = all.iter().flat_map(words).chain(aliases);
        match taken.any(|t| own.contains(&t)) {
            true => Err(RegisterError::Taken(name.to_owned())),
            false => Ok(()),
        }
    })
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
