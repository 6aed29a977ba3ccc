//! Files that make a scheduler permanent, and the other files that set schedulers at boot.

use super::wanted;
use crate::cli::{Apply, Way};
use crate::fail::Failure;
use seekwell_host::block::{Machine, clean};
use seekwell_host::keep::at_boot::{By, Setter, at_boot};
use seekwell_host::keep::{Kept, files, tuned, udev};
use seekwell_host::switch::Wish;
use std::path::Path;

/// Returns the files to write, and one line for each setter that would change the scheduler after
/// these files have set it.
pub fn kept(a: &Apply, m: &Machine, wish: &Wish<'_>) -> Result<(Vec<Kept>, Vec<String>), Failure> {
    let tree = m.tree();
    let wanted = wanted(tree, wish);
    let mut kept = match a.persist {
        Some(Way::Udev) => vec![udev::rule(&wanted, "")?],
        Some(Way::Tuned) => {
            let text = std::fs::read_to_string(tree.at("/etc/tuned/active_profile"));
            let text = text.unwrap_or_default();
            // An active profile written by Seekwell is replaced, not included.
            let base = Some(text.trim()).filter(|b| !b.is_empty() && !b.starts_with("seekwell-"));
            vec![tuned::profile(&wanted, base)?]
        }
        _ => Vec::new(),
    };
    let old = files::noted(tree, wish.device)?;
    let mut rivals = after(m, wish, &kept, old.as_ref());
    let mut lines = Vec::new();
    let last = rivals
        .iter()
        .filter(|s| s.by == By::Rule)
        .filter_map(|s| s.path.file_name())
        .max();
    if let Some((Way::Udev, last)) = a.persist.zip(last.and_then(|n| n.to_str())) {
        let first = name(&kept);
        let later = vec![udev::rule(&wanted, last)?];
        let overriding = rivals
            .iter()
            .filter(|s| s.by == By::Rule)
            .map(ToString::to_string);
        lines.push(format!(
            "{}, which runs after a rule named {first}. This rule is therefore named {}, which \
             runs later.",
            overriding.collect::<Vec<_>>().join("; "),
            name(&later),
        ));
        kept = later;
        rivals = after(m, wish, &kept, old.as_ref());
    }
    lines.extend(describe_rivals(a, &rivals));
    Ok((kept, lines))
}

fn name(kept: &[Kept]) -> String {
    let name = kept.first().and_then(|k| k.path.file_name());
    clean(&name.unwrap_or_default().to_string_lossy())
}

/// Returns the setters that run after these files and set another scheduler. Without files, returns
/// all setters.
fn after(m: &Machine, wish: &Wish<'_>, kept: &[Kept], old: Option<&files::Note>) -> Vec<Setter> {
    // A file that Seekwell wrote earlier for this disk is replaced.
    let gone = |path: &Path| Kept {
        path: path.to_owned(),
        text: String::new(),
        activate: Vec::new(),
        after_undo: Vec::new(),
    };
    let mut planned = kept.to_vec();
    let gone: Vec<Kept> = old
        .into_iter()
        .flat_map(files::Note::paths)
        .map(gone)
        .collect();
    if let Some(k) = kept.first() {
        let replaced = |g: &Kept| g.path.parent() == k.path.parent() && g.path != k.path;
        planned.extend(gone.into_iter().filter(replaced));
    }
    let mut all = at_boot(m, wish.device, &planned);
    let own = |s: &Setter| kept.iter().any(|k| k.path == s.path);
    if let Some(i) = all.iter().position(own) {
        all.drain(..=i);
    }
    all.retain(|s| kept.is_empty() || s.sets.as_deref() != Some(wish.scheduler));
    all
}

/// Describes the setters, with advice on how to override them. Returns `None` if there are none.
fn describe_rivals(a: &Apply, rivals: &[Setter]) -> Option<String> {
    let all: Vec<String> = rivals.iter().map(ToString::to_string).collect();
    if all.is_empty() {
        return None;
    }
    let all = all.join("; then ");
    let tuned = rivals.iter().any(|s| matches!(s.by, By::Tuned(_)));
    let advice = match a.persist {
        None => "The choice lasts until then; --persist keeps it.",
        Some(Way::Udev) if tuned => {
            "This is after all udev rules, so no rule can override it: use --persist=tuned instead."
        }
        Some(Way::Udev) if rivals.iter().any(Setter::is_after_rules) => {
            "No rule can run after that line: remove the line, or change it."
        }
        _ => "Remove the line, or change it.",
    };
    Some(format!("At boot {all}. {advice}"))
}
