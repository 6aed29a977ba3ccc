//! Kernel releases from 2.6.18 to 7.0, and the model of each release. All forms in which users
//! write a kernel release are parsed here, for example `--kernel 6.8`, `none-6.8`, `--machine
//! kernel=6.8`.
//!
//! A *version* of a scheduler has the name of the kernel release whose source defines its rules. An
//! [`Era`] is a block layer with its page cache and queue limits. A release selects an era, and for
//! each scheduler of that release the nearest version that is modelled ([`table`]). A scheduler
//! from outside the kernel's tree keeps its own rules, and runs in the era of the release.

mod release;
mod table;

pub use release::Release;

use crate::info::{Layer, SchedulerInfo};
use seekwell_core::Era;
pub use table::UNREAD;
use table::{IN_TREE, LAYERS, NEWEST, OLDEST, STANDS, Stands};

/// The version and block layer that model a scheduler in a kernel release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modelled {
    /// Name of the scheduler's version.
    pub version: &'static str,
    /// The block layer in which the scheduler runs.
    pub era: Era,
    /// The known difference between the version and the scheduler of that release; empty if none.
    pub why: &'static str,
}

/// Checks that the release is modelled.
///
/// # Errors
/// The reason in words, if the release is too old or too new.
pub fn known(release: Release) -> Result<(), String> {
    match release {
        r if r < OLDEST => Err(format!(
            "kernel {r} is older than {OLDEST}, the oldest that is modelled"
        )),
        r if r > NEWEST => Err(format!(
            "kernel {r} is newer than {NEWEST}, the newest known here: write {NEWEST} for the nearest"
        )),
        _ => Ok(()),
    }
}

/// Returns the newest release that is modelled.
pub const fn newest() -> Release {
    NEWEST
}

/// Returns the block layer of a release. Returns `None` if the release has no such layer or is not
/// modelled.
pub fn era(release: Release, layer: Layer) -> Option<Era> {
    let row = LAYERS.iter().rfind(|l| l.from <= release)?;
    match layer {
        Layer::Legacy => row.legacy,
        Layer::Mq => row.mq,
    }
}

/// Returns the page cache and file systems of a release. If the release has two block layers, the
/// result belongs to the single-queue layer, which most disks used at that time.
pub fn machine(release: Release) -> Option<Era> {
    era(release, Layer::Legacy).or_else(|| era(release, Layer::Mq))
}

/// Returns true if the scheduler was part of the kernel at any time.
pub fn in_tree(scheduler: &str) -> bool {
    IN_TREE.iter().any(|t| t.scheduler == scheduler)
}

/// Returns the schedulers that a release contains, in display order.
pub fn shipped(release: Release) -> Vec<&'static str> {
    let has = |t: &&table::InTree| t.since <= release && t.gone.is_none_or(|g| release < g);
    IN_TREE.iter().filter(has).map(|t| t.scheduler).collect()
}

fn row(scheduler: &str, release: Release) -> Option<&'static Stands> {
    let mut own = STANDS.iter().filter(|s| s.scheduler == scheduler);
    own.rfind(|s| s.from <= release)
}

/// Returns the version and block layer that model a scheduler in a release.
///
/// # Errors
/// The reason in words: the release has no such scheduler, or is not modelled.
pub fn modelled(info: &SchedulerInfo, release: Release) -> Result<Modelled, String> {
    known(release)?;
    let name = info.name;
    let has = || {
        let all = shipped(release).join(", ");
        format!("kernel {release} has {all}")
    };
    let in_tree = IN_TREE.iter().find(|t| t.scheduler == name);
    if let Some(t) = in_tree {
        if release < t.since {
            return Err(format!("{name} came with {}: {}", t.since, has()));
        }
        if let Some(gone) = t.gone.filter(|g| release >= *g) {
            return Err(format!("{name} was removed in {gone}: {}", has()));
        }
    }
    let layer = match info.layer {
        Layer::Legacy => "the single-queue layer, which was removed in 5.0",
        Layer::Mq => "blk-mq, which came with 3.13",
    };
    let era = era(release, info.layer).ok_or_else(|| format!("{name} needs {layer}: {}", has()))?;
    let row = row(name, release);
    if let Some(s) = row {
        return Ok(Modelled {
            version: s.version,
            era,
            why: s.why,
        });
    }
    // A scheduler from outside the tree is used unchanged. In the single-queue layer, a version
    // only works with kernels of its own era.
    let own = info.versions.iter().find(|v| v.1 == era);
    let any = info.versions.first().filter(|_| info.layer == Layer::Mq);
    match own.or(any) {
        Some((version, _)) => Ok(Modelled {
            version,
            era,
            why: "",
        }),
        None => {
            let eras: Vec<&str> = info.versions.iter().map(|v| v.1.name()).collect();
            let of = eras.first().copied().unwrap_or_default();
            Err(format!(
                "{name} is a patch for kernels like {of}; {}",
                has()
            ))
        }
    }
}

/// Returns, for each version of a scheduler, the releases that it models and whether their rules
/// are known to be the same. Example: `("6.1", "5.14 to 6.1", true)`.
pub fn stands_for(scheduler: &str) -> Vec<(&'static str, String, bool)> {
    let all: Vec<&Stands> = STANDS.iter().filter(|s| s.scheduler == scheduler).collect();
    let end = IN_TREE.iter().find(|t| t.scheduler == scheduler);
    let end = end.and_then(|t| t.gone);
    let mut out = Vec::new();
    let mut i = 0;
    while i < all.len() {
        let first = all[i];
        let same =
            |s: &&&Stands| s.version == first.version && s.why.is_empty() == first.why.is_empty();
        let n = all[i..].iter().take_while(same).count();
        i += n;
        let next = all.get(i).map(|s| s.from).or(end);
        out.push((first.version, span(first.from, next), first.why.is_empty()));
    }
    out
}

/// Returns a text such as "5.0 to 5.13", "4.1" or "since 6.17". `next` is the first release after
/// the span.
fn span(from: Release, next: Option<Release>) -> String {
    match next.map(Release::before) {
        None => format!("since {from}"),
        Some(last) if last == from => from.to_string(),
        Some(last) => format!("{from} to {last}"),
    }
}

#[cfg(test)]
mod tests;
