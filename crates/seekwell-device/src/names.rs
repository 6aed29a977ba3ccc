//! Search for presets by name: `KIND:NAME`, or only `NAME` if exactly one preset has this name.
//! Also makes suggestions for unknown names.

use crate::preset::Preset;
use seekwell_core::suggest;

/// Maximum number of presets in one message.
const LISTED: usize = 12;

/// Returns the full name of a preset (`KIND:NAME`).
pub(crate) fn full(p: &Preset) -> String {
    format!("{}:{}", p.kind, p.name)
}

fn is_called(p: &Preset, name: &str) -> bool {
    p.name == name || p.aliases.iter().any(|a| a == name)
}

/// Returns the preset with this name or alias, if only one kind has it.
pub(crate) fn unique<'a>(all: &'a [Preset], name: &str) -> Option<&'a Preset> {
    let mut called = all.iter().filter(|p| is_called(p, name));
    let first = called.next()?;
    called.next().is_none().then_some(first)
}

/// Returns the presets that contain the word in their name, alias or summary.
fn with_word<'a>(all: &'a [Preset], word: &str) -> Vec<&'a Preset> {
    let word = word.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&word);
    let named = |p: &&Preset| has(&full(p)) || p.aliases.iter().any(|a| has(a)) || has(&p.summary);
    // Words of one or two letters occur in every description, so they are not searched.
    let tells = word.chars().count() >= 3;
    all.iter().filter(|p| tells && named(p)).collect()
}

fn listed(these: &[&Preset]) -> String {
    let names: Vec<String> = these.iter().take(LISTED).map(|p| full(p)).collect();
    let more = if these.len() > LISTED { ", ..." } else { "" };
    names.join(", ") + more
}

/// Returns the full names of presets whose names have a similar spelling.
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

/// Returns the remedy for a `name` without a kind that is neither a kind nor a preset. `kinds` is
/// the list of kinds for the text.
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

/// Returns the remedy for `kind:name` if the kind or the preset does not exist. Returns `None` if
/// there is no similar name and the kind has no presets.
pub(crate) fn instead_of_kind(all: &[Preset], kind: &str, name: &str) -> Option<String> {
    let own: Vec<Preset> = all.iter().filter(|p| p.kind == kind).cloned().collect();
    let lister = "`seekwell devices` lists all";
    if name.is_empty() {
        let these: Vec<&Preset> = own.iter().collect();
        return Some(format!("name one of {}", listed(&these)));
    }
    // Try the exact name under another kind first, then a typing error, then a word.
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
