//! The one list of schedulers that the command line, the documentation and the tests read.
//!
//! To add a scheduler is to add a file and a line here. A scheduler from outside the tree joins the
//! list while the program runs ([`register`]) and is from then on found, listed, compared and tested
//! like any other.

use crate::contract::Scheduler;
use crate::cx::Cx;
use crate::kernels::{self, Release};
use crate::tunable::Tunable;
use seekwell_core::prose::in_prose;
use seekwell_core::{Era, Nanos, OpenList, Rule, suggest};
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

/// How long a scheduler may let a request of the best-effort class wait while others keep the device
/// busy. Nobody knows a kernel's scheduler by these figures: they follow from its rules and the
/// defaults of its tunables, and properties over the registry hold every version to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Until it is preferred, whoever else has requests (a deadline, a plug), ms.
    pub fixed_ms: u32,
    /// Others' requests that go before it all the same: the rest of a batch, of a cycle.
    pub requests: u32,
    /// For each other task that has requests: its slices, the idling for it, ms.
    pub per_task_ms: u32,
    /// For each other task: its requests beyond that, as that with which it overruns a slice.
    pub per_task_requests: u32,
    /// Writes that go to a device before a read that has just come, at most; of a phone's card that
    /// fetches ahead three always do.
    pub writes_before_read: u32,
    /// Versions in which somebody may wait for longer than the figures above say, while the others
    /// keep coming; properties have to see it before it may stand here.
    pub except: &'static [&'static str],
}

impl Waiting {
    /// The longest wait from submission to completion beside so many other tasks, each with one
    /// request at a time, on a device that takes at most `service` for a request.
    pub fn bound(&self, others: u32, service: Nanos) -> Nanos {
        let clock_ms = u64::from(self.fixed_ms) + u64::from(self.per_task_ms) * u64::from(others);
        // Those that are there before it, it, and what goes before it.
        let per_task = u64::from(self.per_task_requests) + 1;
        let requests = u64::from(self.requests) + per_task * u64::from(others) + 1;
        Nanos::from_ms(clock_ms) + Nanos(service.0 * requests)
    }
}

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
    /// How long it may let a request wait, as its tunables have it by default.
    pub waiting: Waiting,
    /// Its rules, as reasons name them ([`seekwell_core::rules!`]).
    pub rules: &'static [&'static Rule],
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
    crate::turns::INFO,
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

/// A scheduler that was named.
#[derive(Clone, Copy)]
pub struct Named {
    /// Its line in the registry.
    pub info: &'static SchedulerInfo,
    /// One of its versions.
    pub version: &'static str,
    /// The block layer around it.
    pub era: Era,
    /// The kernel release that was named in place of a version.
    pub release: Option<Release>,
}

impl Named {
    /// What a specification says of its version: the version, or the release where that means
    /// another block layer than the version's own.
    pub fn stated(&self) -> String {
        match (self.release, self.info.version(self.version)) {
            (Some(r), Some((_, own))) if own != self.era => r.to_string(),
            _ => self.version.to_owned(),
        }
    }
}

/// Finds `NAME` or `NAME-VERSION` ("cfq-3.4", "mq-deadline", "zen-v1"), an alias of one, or the
/// version that stands for it in a kernel release ("mq-deadline-5.4", see [`kernels`]).
pub fn named(name: &str) -> Option<Named> {
    let name = ALIASES.iter().find(|a| a.0 == name).map_or(name, |a| a.1);
    let rest = |s: &SchedulerInfo| name.strip_prefix(s.name);
    for info in registry() {
        let version = match rest(info) {
            Some("") => "",
            Some(rest) => rest
                .strip_prefix('-')
                .filter(|v| !v.is_empty())
                .unwrap_or("?"),
            None => "?",
        };
        if let Some((version, era)) = info.version(version) {
            return Some(Named {
                info,
                version,
                era,
                release: None,
            });
        }
    }
    let (info, release) = of_release(name)?;
    let m = kernels::modelled(info, release).ok()?;
    Some(Named {
        info,
        version: m.version,
        era: m.era,
        release: Some(release),
    })
}

/// The scheduler and the release of `NAME-RELEASE`.
fn of_release(name: &str) -> Option<(&'static SchedulerInfo, Release)> {
    registry().iter().find_map(|info| {
        let text = name.strip_prefix(info.name)?.strip_prefix('-')?;
        Some((info, Release::parse(text)?))
    })
}

/// The same in fewer words: its line, version and block layer.
pub fn find(name: &str) -> Option<(&'static SchedulerInfo, &'static str, Era)> {
    named(name).map(|n| (n.info, n.version, n.era))
}

/// One algorithm under several names, in order of time.
const FAMILIES: &[&[&str]] = &[&["bfq-sq", "bfq"]];

/// From this year on kernels have blk-mq only (5.0, March 2019).
const ONLY_MQ_FROM: u16 = 2019;

/// How to ask for the version of a scheduler that kernels of a year had: of the block layer of that
/// year the newest that is not younger, else the oldest there is. `None` if NAME alone means it
/// already.
pub fn of_its_time(info: &SchedulerInfo, year: u16) -> Option<(String, Era)> {
    let family = FAMILIES.iter().find(|f| f.contains(&info.name));
    let own = [info.name];
    let names = family.map_or(&own[..], |f| f);
    let mut all = Vec::new();
    for name in names {
        let of = registry().iter().find(|s| s.name == *name)?;
        all.extend(of.versions.iter().map(|v| (of.name, v.0, v.1)));
    }
    // A scheduler that lives in one layer only is taken from that, whatever the year.
    let of_layer = |v: &(_, _, Era)| v.2.is_mq() == (year >= ONLY_MQ_FROM);
    if all.iter().any(of_layer) {
        all.retain(of_layer);
    }
    // Of equal kernels the one that its scheduler lists first; none that is newer than what the name
    // alone means.
    let today = info.versions.first()?.1;
    let then = all.iter().rev();
    let then =
        then.filter(|v| v.2.year() <= year && (v.2 <= today || v.2.is_mq() != today.is_mq()));
    let oldest = || all.iter().min_by_key(|v| v.2.year());
    let &(name, version, era) = then.max_by_key(|v| v.2.year()).or_else(oldest)?;
    if (name, version) == (info.name, info.versions.first()?.0) {
        return None;
    }
    let long = format!("{name}-{version}");
    let short = ALIASES.iter().find(|a| a.1 == long);
    Some((short.map_or(long.clone(), |a| a.0.to_owned()), era))
}

/// Other names people know schedulers by: of other kernels and trees, of `elevator=`, of textbooks.
const ALSO: &[(&str, &str)] = &[
    ("as", "anticipatory"),
    ("nop", "noop"),
    ("fifo", "noop"),
    ("fcfs", "noop"),
    ("multiqueue", "none"),
    ("nosched", "none"),
    ("deadline-mq", "mq-deadline"),
    ("mq", "mq-deadline"),
    ("completely-fair-queueing", "cfq"),
    ("complete-fair-queuing", "cfq"),
    ("budget-fair-queueing", "bfq"),
    ("bfq-mq", "bfq"),
    ("bfq-legacy", "bfq-sq"),
    ("v(r)", "vr"),
    ("simple", "sio"),
];

/// What to say behind "no scheduler is called NAME; ": the names that may be meant, or all.
pub fn unknown_scheduler(name: &str) -> String {
    let name = name.strip_prefix("elevator=").unwrap_or(name);
    let name = name.strip_suffix("-iosched").unwrap_or(name);
    // A known name with an unknown version gets the versions.
    let family = registry().iter().filter(|s| name.starts_with(s.name));
    if let Some(s) = family.max_by_key(|s| s.name.len())
        && let Some(version) = name[s.name.len()..].strip_prefix('-')
    {
        // Three numbers behind a scheduler from outside the kernel's tree are its own version.
        if let Some((info, release)) = of_release(name)
            && (kernels::in_tree(info.name)
                || version.starts_with("2.6.")
                || version.matches('.').count() == 1)
            && let Err(why) = kernels::modelled(info, release)
        {
            return why;
        }
        let known: Vec<_> = s.versions.iter().map(|v| v.0).collect();
        let mut said = format!(
            "{} has no version `{version}`; it has {}",
            in_prose(s.name),
            known.join(", ")
        );
        let meant = suggest::nearest(name, [], ALSO);
        if let Some(also) = meant.first() {
            said += &format!("; did you mean `{also}`?");
        } else if let Some(near) = suggest::did_you_mean(version, known, &[]) {
            said += &format!("; {near}");
        }
        return said;
    }
    let known: Vec<_> = registry().iter().map(|s| s.name).collect();
    suggest::remedy(name, &known, ALSO, "`seekwell schedulers`")
}

/// What to say behind "SCHEDULER has no tunable NAME; ".
pub fn unknown_tunable(name: &str, all: &[Tunable]) -> String {
    let known: Vec<_> = all.iter().map(|t| t.name).collect();
    if known.is_empty() {
        return "it has no tunables".to_owned();
    }
    let has = format!("it has {}", known.join(", "));
    match suggest::did_you_mean(name, known, &[]) {
        Some(question) => format!("{question} {has}"),
        None => has,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_places_find_theirs() {
        for (typed, meant) in [
            ("as", "`anticipatory`"),
            ("mqdeadline", "`mq-deadline`"),
            ("dedline", "`deadline`"),
            ("cfg", "`cfq`"),
            ("elevator=as", "`anticipatory`"),
            ("elevator=dedline", "`deadline`"),
            ("cfq-iosched", "`cfq`"),
            ("multiqueue", "`none`"),
            ("bfq-mq", "`bfq`"),
        ] {
            let said = unknown_scheduler(typed);
            assert!(
                said.contains(&format!("did you mean {meant}")),
                "{typed}: {said}"
            );
        }
        assert!(unknown_scheduler("elevator").starts_with("there are noop, deadline"));
        assert_eq!(
            unknown_scheduler("cfq-9"),
            "cfq has no version `9`; it has 4.0, 4.4, 3.4, 2.6.25, 2.6.24, 2.6.18"
        );
        // An alias that a name has already is none.
        assert!(
            ALSO.iter()
                .all(|a| find(a.0).is_none() && find(a.1).is_some())
        );
    }

    #[test]
    fn versions_of_a_year() {
        let then = |name: &str, year| {
            let found = of_its_time(find(name).expect(name).0, year);
            found.map(|f| f.0).unwrap_or_default()
        };
        assert_eq!(then("bfq", 2013), "bfq-v7r8");
        assert_eq!(then("bfq", 2005), "bfq-v7r8", "the oldest there is");
        assert_eq!(then("bfq", 2018), "bfq-v7r8", "the last year of two layers");
        assert_eq!(
            then("bfq", 2019),
            "bfq-6.1",
            "the oldest there is in blk-mq"
        );
        assert_eq!(then("bfq", 2021), "bfq-6.1");
        assert_eq!(then("bfq", 2025), "", "bfq is that of today");
        assert_eq!(then("cfq", 2013), "cfq-3.4");
        assert_eq!(then("cfq", 2007), "cfq-2.6.18");
        assert_eq!(then("cfq", 2016), "");
        assert_eq!(then("row", 2013), "");
        assert_eq!(then("noop", 2009), "noop-2.6.24");
    }

    #[test]
    fn tunables_are_suggested_too() {
        let (info, version, _) = find("deadline").expect("it is there");
        let said = unknown_tunable("fifobatch", (info.tunables)(version));
        assert!(
            said.starts_with("did you mean `fifo_batch`? it has read_expire"),
            "{said}"
        );
        assert_eq!(unknown_tunable("x", &[]), "it has no tunables");
    }
}
