//! Presets by name: `KIND:NAME`, a name alone where only one preset has it, and what to suggest
//! for a name that nothing has.

use crate::preset::Preset;
use seekwell_core::suggest;

/// Presets listed in a message, at most.
const LISTED: usize = 12;

/// As a device is named in full.
pub(crate) fn full(p: &Preset) -> String {
    format!("{}:{}", p.kind, p.name)
}

fn is_called(p: &Preset, name: &str) -> bool {
    p.name == name || p.aliases.iter().any(|a| a == name)
}

/// The preset of that name, of whatever kind, if only one has it.
pub(crate) fn unique<'a>(all: &'a [Preset], name: &str) -> Option<&'a Preset> {
    let mut called = all.iter().filter(|p| is_called(p, name));
    let first = called.next()?;
    called.next().is_none().then_some(first)
}

/// Those with the word in name, alias or summary.
fn with_word<'a>(all: &'a [Preset], word: &str) -> Vec<&'a Preset> {
    let word = word.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&word);
    let named = |p: &&Preset| has(&full(p)) || p.aliases.iter().any(|a| has(a)) || has(&p.summary);
    // One letter or two are in every description.
    let tells = word.chars().count() >= 3;
    all.iter().filter(|p| tells && named(p)).collect()
}

fn listed(these: &[&Preset]) -> String {
    let names: Vec<String> = these.iter().take(LISTED).map(|p| full(p)).collect();
    let more = if these.len() > LISTED { ", ..." } else { "" };
    names.join(", ") + more
}

/// Full names of presets that are spelt nearly so.
fn near(all: &[Preset], name: &str) -> Option<String> {
    let mut known: Vec<(String, String)> = Vec::new();
    for p in all {
        known.push((p.name.clone(), full(p)));
        known.extend(p.aliases.iter().map(|a| (a.clone(), full(p))));
    }
    let names = suggest::nearest(name, known.iter().map(|k| k.0.as_str()), &[]);
    let mut meant: Vec<&str> = Vec::new();
    for n in names {
        let these = known.iter().filter(|k| k.0 == n).map(|k| k.1.as_str());
        meant.extend(these);
    }
    meant.dedup();
    suggest::question(&meant)
}

/// A device was named by `name` alone, and no kind and no preset is called that: the remedy.
/// `kinds` are the kinds there are.
pub(crate) fn instead(all: &[Preset], name: &str, kinds: &str) -> String {
    let words = with_word(all, name);
    if !words.is_empty() {
        return format!("there are {}; `seekwell devices` lists all", listed(&words));
    }
    match near(all, name) {
        Some(question) => format!("{question} `seekwell devices` lists all"),
        None => format!("write KIND:NAME with one of: {kinds}; or the path of a preset file"),
    }
}

/// `kind:name` was asked for, and the kind has no such preset (or there is no such kind): the
/// remedy; `None` if the name says nothing, and the kind has none.
pub(crate) fn instead_of_kind(all: &[Preset], kind: &str, name: &str) -> Option<String> {
    let own: Vec<Preset> = all.iter().filter(|p| p.kind == kind).cloned().collect();
    let lister = "`seekwell devices` lists all";
    if name.is_empty() {
        let these: Vec<&Preset> = own.iter().collect();
        return Some(format!("name one of {}", listed(&these)));
    }
    // The right name under another kind, then a slip within the kind, then a word.
    if let Some(p) = unique(all, name) {
        return Some(format!("did you mean `{}`? {lister}", full(p)));
    }
    if let Some(question) = near(&own, name).or_else(|| near(all, name)) {
        return Some(format!("{question} {lister}"));
    }
    let words = with_word(&own, name);
    let words = if words.is_empty() {
        with_word(all, name)
    } else {
        words
    };
    if !words.is_empty() {
        return Some(format!("there are {}; {lister}", listed(&words)));
    }
    let these: Vec<&Preset> = own.iter().collect();
    (!these.is_empty()).then(|| format!("there are {}", listed(&these)))
}
