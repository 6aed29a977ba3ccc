//! The list of all schedulers. The command line, the documentation and the tests read it.
//!
//! To add a scheduler, add a file, and an entry in this list. A scheduler from outside this crate
//! is added at run time ([`register`]). It is then found, listed, compared and tested like the
//! others.

pub use crate::info::{Layer, Make, SchedulerInfo, Waiting, hash_always};
use crate::kernels::{self, Release};
use crate::tunable::Tunable;
use seekwell_core::prose::in_prose;
use seekwell_core::{Era, OpenList, suggest};
use thiserror::Error;

/// The schedulers of this crate.
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

/// Returns all schedulers in display order, those of this crate first.
pub fn registry() -> &'static [SchedulerInfo] {
    ALL.all()
}

/// The reason why a scheduler was not registered.
#[derive(Error, Debug, Clone, PartialEq, Eq)]
pub enum RegisterError {
    /// The command line cannot parse this name.
    #[error(
        "scheduler \"{0}\": a name consists of lower-case letters, digits, `-` and `_`, begins \
         with a letter, and must not be all, single-queue or blk-mq"
    )]
    Name(String),
    /// The name is registered already, or one of the versions would read like another scheduler.
    #[error("scheduler \"{0}\" is registered already: choose another name")]
    Taken(String),
    /// There is no version, a version occurs twice, or a version contains a character that is not
    /// allowed.
    #[error(
        "scheduler \"{name}\": version \"{version}\": name at least one version, and name each \
         version once. A version consists of letters, digits, `.`, `-` and `_`"
    )]
    Version {
        /// The scheduler.
        name: String,
        /// The version.
        version: String,
    },
    /// The kernel generation of a version belongs to the other block layer.
    #[error(
        "scheduler \"{name}\": version \"{version}\" belongs to a kernel with the other block \
         layer"
    )]
    Layer {
        /// The scheduler.
        name: String,
        /// The version.
        version: String,
    },
}

/// Words that mean several schedulers.
const GROUPS: &[&str] = &["all", "single-queue", "blk-mq"];

/// Adds a scheduler from outside this crate, until the process ends.
///
/// # Errors
/// A name or version that is registered already, or that the command line cannot parse.
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

/// Common names of versions that do not begin with the scheduler's own name.
const ALIASES: &[(&str, &str)] = &[("bfq-v7r8", "bfq-sq-v7r8"), ("bfq-v7r5", "bfq-sq-v7r5")];

/// The result of a search for a scheduler by name.
#[derive(Clone, Copy)]
pub struct Named {
    /// The scheduler's entry in the registry.
    pub info: &'static SchedulerInfo,
    /// One of its versions.
    pub version: &'static str,
    /// The block layer in which the scheduler runs.
    pub era: Era,
    /// The kernel release, if a release was given instead of a version.
    pub release: Option<Release>,
}

impl Named {
    /// Returns the version as a specification writes it. This is the release if the release selects
    /// another block layer than the version's own.
    pub fn stated(&self) -> String {
        match (self.release, self.info.version(self.version)) {
            (Some(r), Some((_, own))) if own != self.era => r.to_string(),
            _ => self.version.to_owned(),
        }
    }
}

/// Finds a scheduler by name. `name` is one of:
/// - the name of a scheduler ("mq-deadline");
/// - the name and a version ("cfq-3.4", "zen-v1"), or an alias of these two ("bfq-v7r8");
/// - the name and a kernel release ("mq-deadline-5.4"). The result then has the version that models
///   the scheduler in that release (see [`kernels`]).
///
/// Returns `None` if no scheduler is found.
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

/// Splits `NAME-RELEASE` into the scheduler and the release.
fn of_release(name: &str) -> Option<(&'static SchedulerInfo, Release)> {
    registry().iter().find_map(|info| {
        let text = name.strip_prefix(info.name)?.strip_prefix('-')?;
        Some((info, Release::parse(text)?))
    })
}

/// Like [`named`], but returns only the entry, the version and the block layer.
pub fn find(name: &str) -> Option<(&'static SchedulerInfo, &'static str, Era)> {
    named(name).map(|n| (n.info, n.version, n.era))
}

/// Algorithms that have several names, in order of time.
const FAMILIES: &[&[&str]] = &[&["bfq-sq", "bfq"]];

/// Kernels since this year have blk-mq only (5.0, March 2019).
const ONLY_MQ_FROM: u16 = 2019;

/// Returns the name of the version that kernels of a year had. This is the newest version that
/// belongs to that year's block layer and is not newer than the year, or else the oldest version.
/// Returns `None` if it is the default version of `info`.
pub fn of_its_time(info: &SchedulerInfo, year: u16) -> Option<(String, Era)> {
    let family = FAMILIES.iter().find(|f| f.contains(&info.name));
    let own = [info.name];
    let names = family.map_or(&own[..], |f| f);
    let mut all = Vec::new();
    for name in names {
        let of = registry().iter().find(|s| s.name == *name)?;
        all.extend(of.versions.iter().map(|v| (of.name, v.0, v.1)));
    }
    // If a scheduler exists in only one layer, that layer is used for every year.
    let of_layer = |v: &(_, _, Era)| v.2.is_mq() == (year >= ONLY_MQ_FROM);
    if all.iter().any(of_layer) {
        all.retain(of_layer);
    }
    // Of several versions of the same year, the version that its scheduler lists first is chosen. A
    // version newer than the default version is never chosen.
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

/// Other names of schedulers: from other kernels, from `elevator=`, and from textbooks.
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

/// Returns the text that follows "no scheduler is called NAME; ": similar names, or all names.
pub fn unknown_scheduler(name: &str) -> String {
    let name = name.strip_prefix("elevator=").unwrap_or(name);
    let name = name.strip_suffix("-iosched").unwrap_or(name);
    // For a known name with an unknown version, list the versions.
    let family = registry().iter().filter(|s| name.starts_with(s.name));
    if let Some(s) = family.max_by_key(|s| s.name.len())
        && let Some(version) = name[s.name.len()..].strip_prefix('-')
    {
        // For a scheduler from outside the kernel's tree, three numbers are the scheduler's own
        // version.
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
            "{} has no version \"{version}\"; it has {}",
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

/// Returns the text that follows "SCHEDULER has no tunable NAME; ".
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
    fn alternative_scheduler_names_get_a_suggestion() {
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
            "cfq has no version \"9\"; it has 4.0, 4.4, 3.4, 2.6.25, 2.6.24, 2.6.18"
        );
        // An alias must not be the name of a scheduler.
        assert!(
            ALSO.iter()
                .all(|a| find(a.0).is_none() && find(a.1).is_some())
        );
    }

    #[test]
    fn scheduler_version_is_selected_by_year() {
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
    fn misspelt_tunables_get_a_suggestion() {
        let (info, version, _) = find("deadline").expect("it is there");
        let said = unknown_tunable("fifobatch", (info.tunables)(version));
        assert!(
            said.starts_with("did you mean `fifo_batch`? it has read_expire"),
            "{said}"
        );
        assert_eq!(unknown_tunable("x", &[]), "it has no tunables");
    }
}
