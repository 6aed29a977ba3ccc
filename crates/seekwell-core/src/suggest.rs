//! "Did you mean": finds the known names that are nearest to an unknown name, for all registries of
//! names.
//!
//! Case, `-`, `_`, `.` and blanks are ignored. The names are preferred in this order:
//! - a name with the same letters;
//! - a name with a known alias;
//! - a name that begins with the typed text;
//! - a name with a few typing errors (a letter that is wrong, missing, additional or swapped with
//!   the next one);
//! - a name that contains the text.
//!
//! Names that sound alike and neighbouring keys are not considered.

use crate::prose::all_in_prose;
use strsim::osa_distance;

/// Largest number of names in a suggestion.
const MOST: usize = 3;
/// Rank of a name that contains the typed text. It is greater than the rank of any allowed number
/// of typing errors.
const CONTAINS: usize = 100;

/// Returns the letters and digits of a name, in lower case.
fn fold(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '-' | '_' | '.' | ' '));
    letters.flat_map(char::to_lowercase).collect()
}

/// Returns the number of typing errors that are allowed in a name of this many letters.
fn slips(letters: usize) -> usize {
    match letters {
        0..=2 => 0,
        3..=5 => 1,
        6..=8 => 2,
        n => n / 3,
    }
}

/// Returns the rank of a name for the typed text (both folded). `None` if the name is not similar.
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

/// Returns the names in `known` that a user who typed `asked` may have meant. The best comes first;
/// there are at most three. An alias stands for the name next to it.
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
    // The sort is stable: among names of equal rank, the order of the registry is kept.
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

/// Returns "did you mean `cfq`?" or "did you mean `a` or `b`?". `None` if no name is similar.
pub fn did_you_mean<'a>(
    asked: &str,
    known: impl IntoIterator<Item = &'a str>,
    aliases: &[(&str, &'a str)],
) -> Option<String> {
    question(&nearest(asked, known, aliases))
}

/// Returns the question for names that were chosen in another way. `None` if there are no names.
pub fn question(names: &[&str]) -> Option<String> {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    let (last, before) = quoted.split_last()?;
    Some(if before.is_empty() {
        format!("did you mean {last}?")
    } else {
        format!("did you mean {} or {last}?", before.join(", "))
    })
}

/// Returns the text that follows "there is no such ...; ". If a name is similar, the text is a
/// suggestion and the command that lists all names. Otherwise it is the list of all names.
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

    fn suggestions_for(asked: &str) -> Vec<&'static str> {
        nearest(asked, SOME, &ALIASES)
    }

    #[test]
    fn suggestions_find_the_intended_name() {
        assert_eq!(suggestions_for("mqdeadline"), ["mq-deadline"]);
        assert_eq!(suggestions_for("MQ_Deadline"), ["mq-deadline"]);
        assert_eq!(suggestions_for("as"), ["anticipatory"]);
        assert_eq!(suggestions_for("androbench"), ["androbench-io"]);
        assert_eq!(suggestions_for("dedline"), ["deadline"]);
        assert_eq!(
            suggestions_for("daedline"),
            ["deadline"],
            "two letters swapped"
        );
        assert_eq!(suggestions_for("cfg"), ["cfq"]);
        assert_eq!(suggestions_for("nop"), ["noop"]);
        assert_eq!(suggestions_for("bench"), ["androbench-io"], "contained");
    }

    #[test]
    fn distant_words_get_no_suggestion() {
        for far in ["", "-", "x", "elevator", "hdd", "qqqqqqqqqqqqqqqqqqqq"] {
            assert_eq!(suggestions_for(far), [""; 0], "{far}");
        }
        assert_eq!(
            remedy("elevator", &SOME[..2], &[], "x"),
            "there are noop, deadline"
        );
        assert_eq!(remedy("a", &[], &[], "x"), "there are none");
    }

    #[test]
    fn remedies_share_one_sentence_form() {
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
