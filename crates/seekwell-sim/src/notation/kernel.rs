//! Names of kernels: `6.8`, `5.15.0-91-generic`, or `here` for the running kernel. The table in
//! [`seekwell_sched::kernels`] contains the version that models each release. This module parses
//! the names, and describes to the user how a kernel is modelled.

use super::SpecErrors;
use super::scheduler::Typed;
use seekwell_core::prose::all_in_prose;
use seekwell_sched::kernels::{self, Release};
use seekwell_sched::{Layer, find};

/// Name that stands for the running kernel.
pub const HERE: &str = "here";

/// A requested kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name as requested. For `here`, the release name of the running kernel.
    pub asked: String,
    /// Release of the kernel.
    pub release: Release,
}

/// Returns the running kernel. If it is newer than all known releases, it counts as the newest.
///
/// # Errors
/// Returns an error if the release cannot be parsed, or is older than all modelled releases.
fn running() -> Result<Kernel, SpecErrors> {
    const FILE: &str = "/proc/sys/kernel/osrelease";
    let bad = |what: String| SpecErrors::single("", what);
    let text = std::fs::read_to_string(FILE).unwrap_or_default();
    let text = text.trim();
    let release = Release::parse(text).ok_or_else(|| {
        bad(format!(
            "the running kernel is unknown: {FILE} contains \"{text}\""
        ))
    })?;
    let release = release.min(kernels::newest());
    kernels::known(release).map_err(bad)?;
    Ok(Kernel {
        asked: text.to_owned(),
        release,
    })
}

/// Parses the name of a kernel.
///
/// # Errors
/// Returns an error if the text is not the name of a kernel, or if that kernel cannot be modelled.
pub fn kernel(text: &str) -> Result<Kernel, SpecErrors> {
    let text = text.trim();
    if text == HERE {
        return running();
    }
    let bad = |what: String| SpecErrors::single("", what);
    let release = Release::parse(text).ok_or_else(|| {
        bad(format!(
            "\"{text}\" is not a kernel release: write 6.8, 5.15 or 2.6.32, or {HERE} for the \
             running kernel"
        ))
    })?;
    kernels::known(release).map_err(bad)?;
    Ok(Kernel {
        asked: text.to_owned(),
        release,
    })
}

/// Returns the version that models a scheduler of the running kernel, in the form of a
/// specification.
pub fn version_here(scheduler: &str) -> Option<String> {
    version_of(scheduler, running().ok()?.release)
}

/// Returns the version that models a scheduler of a kernel, in the form of a specification.
/// `kernel` is a release such as `6.12.3-amd64`. A kernel that is newer than all known releases
/// counts as the newest.
pub fn version_for(scheduler: &str, kernel: &str) -> Option<String> {
    let release = Release::parse(kernel.trim())?.min(kernels::newest());
    kernels::known(release).ok()?;
    version_of(scheduler, release)
}

fn version_of(scheduler: &str, release: Release) -> Option<String> {
    let found = seekwell_sched::named(&format!("{scheduler}-{release}"))?;
    Some(found.stated())
}

/// Formats a list as "a", "a and b", or "a, b and c".
fn list(names: &[&str]) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        names => names.concat(),
    }
}

/// Returns a sentence that says how a kernel is modelled, for example "Kernel 6.8: modelled as
/// 6.12.", with the known differences. Returns `None` if the kernel is modelled exactly.
fn sentence(asked: &str, release: Release, schedulers: &[&str]) -> Option<String> {
    let mut eras: Vec<(&str, Vec<&str>)> = Vec::new();
    let (mut others, mut unread, mut why) = (Vec::new(), Vec::new(), Vec::new());
    for name in schedulers {
        let Some((info, ..)) = find(name) else {
            continue;
        };
        let Ok(m) = kernels::modelled(info, release) else {
            continue;
        };
        let era = m.era.name();
        match eras.iter_mut().find(|e| e.0 == era) {
            Some(e) if e.1.contains(name) => continue,
            Some(e) => e.1.push(name),
            None => eras.push((era, vec![name])),
        }
        // The kernel's own version of the scheduler exists, but another version is closer.
        if m.version != era && info.version(era).is_some() {
            others.push(format!("{name} as {}", m.version));
        }
        match m.why {
            "" => {}
            kernels::UNREAD if unread.contains(name) => {}
            kernels::UNREAD => unread.push(*name),
            text if !why.contains(&text) => why.push(text),
            _ => {}
        }
    }
    let exact = asked == eras.first()?.0 && eras.len() == 1;
    if exact && others.is_empty() {
        return None;
    }
    let of = |(era, names): &(&str, Vec<&str>)| match eras.len() {
        1 => (*era).to_owned(),
        _ => format!("{era} ({})", names.join(", ")),
    };
    let told: Vec<String> = eras.iter().map(of).collect();
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    let mut text = format!("Kernel {asked}: modelled as {}", list(&told));
    for part in &others {
        text += &format!(", {part}");
    }
    if !unread.is_empty() {
        let were = if unread.len() == 1 { "was" } else { "were" };
        let unread = all_in_prose(&unread);
        let unread: Vec<&str> = unread.iter().map(String::as_str).collect();
        text += &format!(
            "; {} of {release} {were} not compared with {}",
            list(&unread),
            if eras.len() == 1 { "it" } else { "them" }
        );
    }
    for part in why {
        text += &format!("; {part}");
    }
    Some(text + ".")
}

/// Returns notes on the kernel of each scheduler (`none-6.8`), or on the one kernel of all
/// schedulers.
pub fn kernel_notes(all: &[Typed], kernel: Option<&Kernel>) -> Vec<String> {
    if let Some(k) = kernel {
        let names: Vec<&str> = all.iter().map(|t| t.spec.name.as_str()).collect();
        return sentence(&k.asked, k.release, &names).into_iter().collect();
    }
    let mut releases: Vec<(Release, Vec<&str>)> = Vec::new();
    for t in all {
        let Some(r) = t.release else { continue };
        match releases.iter_mut().find(|e| e.0 == r) {
            Some(e) => e.1.push(&t.spec.name),
            None => releases.push((r, vec![&t.spec.name])),
        }
    }
    let one = |(r, names): &(Release, Vec<&str>)| sentence(&r.to_string(), *r, names);
    releases.iter().filter_map(one).collect()
}

/// Returns the schedulers that a kernel contains. Its default for most disks comes first.
pub fn shipped(release: Release) -> String {
    let legacy = kernels::era(release, Layer::Legacy).is_some();
    let first = if legacy { "cfq" } else { "mq-deadline" };
    let mut all = kernels::shipped(release);
    all.sort_by_key(|name| *name != first);
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::super::scheduler::list_in;
    use super::*;

    fn notes_for(schedulers: &str, of: Option<&str>) -> Vec<String> {
        let k = of.map(|k| kernel(k).expect(k));
        let all = list_in(schedulers, k.as_ref()).expect(schedulers);
        kernel_notes(&all, k.as_ref())
    }

    #[test]
    fn substituted_kernel_versions_are_reported() {
        let all = "none,mq-deadline,kyber,bfq";
        for (of, says) in [
            (
                "6.8",
                "Kernel 6.8: modelled as 6.12; `none` and kyber of 6.8 were not compared with it; the changes of bfq",
            ),
            ("6.17", "Kernel 6.17: modelled as 6.18."),
            (
                "6.3",
                "Kernel 6.3: modelled as 6.1; `none`, mq-deadline and kyber of 6.3 were not",
            ),
            ("5.4", "Kernel 5.4: modelled as 6.1, mq-deadline as 5.10; "),
            ("5.15", "bfq changed in most releases until 6.1"),
        ] {
            let told = notes_for(all, Some(of));
            assert!(told.len() == 1 && told[0].contains(says), "{of}: {told:?}");
        }
        for exact in ["6.12", "6.16", "6.18", "6.1"] {
            assert_eq!(notes_for(all, Some(exact)), [""; 0]);
        }
        assert_eq!(notes_for(all, None), [""; 0]);
        assert_eq!(
            notes_for("cfq,none", Some("4.19"))[0].split(';').next(),
            Some("Kernel 4.19: modelled as 4.0 (cfq) and 6.1 (none), cfq as 4.4")
        );
        // Here a kernel is named with each scheduler.
        let told = notes_for("none-6.8,none-6.1,bfq-6.8,cfq-3.4", None);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("Kernel 6.8: modelled as 6.12"),
            "{told:?}"
        );
    }

    #[test]
    fn invalid_kernel_is_rejected_with_the_valid_form() {
        for (text, says) in [
            ("6", "\"6\" is not a kernel release: write 6.8"),
            ("new", "or here for the running kernel"),
            ("2.4.20", "older than 2.6.18"),
            ("61.8", "newer than 7.0"),
            ("", "\"\" is not a kernel release"),
        ] {
            let e = kernel(text).expect_err(text).to_string();
            assert!(e.contains(says), "{text}: {e}");
        }
        assert_eq!(version_for("bfq", "6.12.9-amd64").as_deref(), Some("6.12"));
        assert_eq!(version_for("bfq", "99.1"), version_for("bfq", "7.0"));
        assert_eq!(version_for("bfq", "old"), None);
        let here = kernel(HERE).expect("Linux");
        assert!(here.release <= kernels::newest() && !here.asked.is_empty());
        assert_eq!(shipped(Release::new(6, 8, 0)), "mq-deadline,none,kyber,bfq");
        assert_eq!(
            shipped(Release::new(2, 6, 24)),
            "cfq,noop,deadline,anticipatory"
        );
    }

    #[test]
    fn kernel_selects_each_schedulers_version_and_contradictions_are_rejected() {
        let k = kernel("6.8").expect("known");
        let versions = |text: &str| {
            let all = list_in(text, Some(&k)).expect(text);
            let version = |t: Typed| t.spec.versioned();
            all.into_iter().map(version).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(versions("none,bfq"), "none-6.12 bfq-6.12");
        assert_eq!(versions("bfq-6.8,none-6.12"), "bfq-6.12 none-6.12");
        assert_eq!(
            versions("blk-mq"),
            "none-6.12 mq-deadline-6.12 kyber-6.12 adios-3.1.9 bfq-6.12 turns-1"
        );
        for (text, says) in [
            (
                "cfq",
                "cfq was removed in 5.0: kernel 6.8 has none, mq-deadline, kyber, bfq",
            ),
            (
                "none-6.1",
                "none-6.1 belongs to kernel 6.1, but the requested kernel is 6.8",
            ),
            ("bfq-v7r8", "bfq-sq needs the single-queue layer"),
            (
                "single-queue",
                "kernel 6.8 contains none of these schedulers",
            ),
        ] {
            let e = list_in(text, Some(&k)).expect_err(text).to_string();
            assert!(e.contains(says), "{text}: {e}");
        }
        let k = kernel("6.18").expect("known");
        let e = list_in("adios-3.0.1", Some(&k)).expect_err("another layer");
        assert!(
            e.to_string().contains("adios-3.0.1 belongs to kernel 6.12"),
            "{e}"
        );
        let all = list_in("turns,none", Some(&k)).expect("good");
        assert_eq!(all[0].spec.versioned(), "turns-6.18");
    }
}
