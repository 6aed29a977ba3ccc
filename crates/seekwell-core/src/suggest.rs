//! "Did you mean": the known names nearest to an unknown one, for every registry of names.
//!
//! Case, `-`, `_`, `.` and blanks are ignored. In order of preference: the same letters; a name
//! known by an alias; a name that begins with the typed text; a name a few typing errors away (a
//! letter wrong, missing, extra, or two swapped); a name that contains the text. Not modelled:
//! sounds, keyboards.

use crate::prose::all_in_prose;
use strsim::osa_distance;

/// The largest number of suggested names.
const MOST: usize = 3;
/// Rank of a name that contains the typed text: after all names with allowed typing errors.
const CONTAINS: usize = 100;

/// Letters and digits only, in lower case.
fn fold(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '-' | '_' | '.' | ' '));
    letters.flat_map(char::to_lowercase).collect()
}

/// Number of typing errors allowed in a name of this many letters.
fn slips(letters: usize) -> usize {
    match letters {
        0..=2 => 0,
        3..=5 => 1,
        6..=8 => 2,
        n => n / 3,
    }
}

/// Distance of a name from the typed text (both folded); `None` if it is too far.
fn rank(asked: &str, name: &str) -> Option<usize> {
    if asked == name {
        return Some(0);
    }
    let (short, long) = (asked.chars().count(), name.chars().count());
    if short >= 2 && name.starts_with(asked) {
        return Some(1);
    }
    let d = osa_distance(asked, name);
    if d <= slips(short.max(long)) {
        return Some(1 + d);
    }
    (short >= 3 && name.contains(asked)).then_some(CONTAINS)
}

/// The names of `known` that a user who typed `asked` may have meant, best first, at most three. An
/// alias counts as the name beside it.
pub fn nearest<'a>(
    asked: &str,
    known: impl IntoIterator<Item = &'a str>,
    aliases: &[(&str, &'a str)],
) -> Vec<&'a str> {
    let asked = fold(asked);
    if asked.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<(usize, &str)> = aliases
        .iter()
        .filter(|a| fold(a.0) == asked)
        .map(|a| (0, a.1))
        .collect();
    let names = known.into_iter();
    found.extend(names.filter_map(|k| Some((rank(&asked, &fold(k))?, k))));
    // Stable sort: among equals, the one listed first in its registry.
    found.sort_by_key(|f| f.0);
    let best = found.first().map_or(0, |f| f.0);
    let mut out: Vec<&str> = Vec::new();
    for (rank, name) in found {
        if rank <= best + 1 && !out.contains(&name) && out.len() < MOST {
            out.push(name);
        }
    }
    out
}

/// "did you mean `cfq`?", or "did you mean `a` or `b`?"; `None` if nothing is near.
pub fn did_you_mean<'a>(
    asked: &str,
    known: impl IntoIterator<Item = &'a str>,
    aliases: &[(&str, &'a str)],
) -> Option<String> {
    question(&nearest(asked, known, aliases))
}

/// The question for names chosen in another way; `None` if there are no names.
pub fn question(names: &[&str]) -> Option<String> {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    let (last, before) = quoted.split_last()?;
    Some(if before.is_empty() {
        format!("did you mean {last}?")
    } else {
        format!("did you mean {} or {last}?", before.join(", "))
    })
}

/// The text after "there is no such ...; ": the suggestion and the command that lists all names, or
/// all names if nothing is near.
pub fn remedy<'a>(
    asked: &str,
    known: &[&'a str],
    aliases: &[(&str, &'a str)],
    lister: &str,
) -> String {
    match did_you_mean(asked, known.iter().copied(), aliases) {
        Some(question) => format!("{question} {lister} lists all"),
        None if known.is_empty() => "there are none".to_owned(),
        None => format!("there are {}", all_in_prose(known).join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: [&str; 7] = [
        "noop",
        "deadline",
        "cfq",
        "mq-deadline",
        "bfq",
        "anticipatory",
        "androbench-io",
    ];
    const ALIASES: [(&str, &str); 1] = [("as", "anticipatory")];

    fn one(asked: &str) -> Vec<&'static str> {
        nearest(asked, SOME, &ALIASES)
    }

    #[test]
    fn what_people_type_finds_what_they_mean() {
        assert_eq!(one("mqdeadline"), ["mq-deadline"]);
        assert_eq!(one("MQ_Deadline"), ["mq-deadline"]);
        assert_eq!(one("as"), ["anticipatory"]);
        assert_eq!(one("androbench"), ["androbench-io"]);
        assert_eq!(one("dedline"), ["deadline"]);
        assert_eq!(one("daedline"), ["deadline"], "two letters swapped");
        assert_eq!(one("cfg"), ["cfq"]);
        assert_eq!(one("nop"), ["noop"]);
        assert_eq!(one("bench"), ["androbench-io"], "contained");
    }

    #[test]
    fn what_is_far_suggests_nothing() {
        for far in ["", "-", "x", "elevator", "hdd", "qqqqqqqqqqqqqqqqqqqq"] {
            assert_eq!(one(far), [""; 0], "{far}");
        }
        assert_eq!(
            remedy("elevator", &SOME[..2], &[], "x"),
            "there are noop, deadline"
        );
        assert_eq!(remedy("a", &[], &[], "x"), "there are none");
    }

    #[test]
    fn one_sentence_for_all() {
        assert_eq!(
            remedy("cfg", &SOME, &ALIASES, "`seekwell schedulers`"),
            "did you mean `cfq`? `seekwell schedulers` lists all"
        );
        assert_eq!(
            question(&["a", "b", "c"]).as_deref(),
            Some("did you mean `a`, `b` or `c`?")
        );
        assert_eq!(question(&[]), None);
    }
}
