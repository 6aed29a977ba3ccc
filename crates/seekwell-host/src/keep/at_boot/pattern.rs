//! Patterns of fnmatch(3), as udev, systemd and tuned use them, and conditions with three values.

/// Result of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
    /// The condition does not hold.
    No,
    /// The files do not determine whether the condition holds.
    Maybe,
    /// The condition holds.
    Yes,
}

impl Truth {
    /// Returns the negation.
    pub fn not(self) -> Truth {
        match self {
            Truth::No => Truth::Yes,
            Truth::Maybe => Truth::Maybe,
            Truth::Yes => Truth::No,
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Truth {
        match holds {
            true => Truth::Yes,
            false => Truth::No,
        }
    }
}

/// Returns the position of the end of a set `[...]`, counted after its first character. Returns
/// `None` if the set has no end. A `]` at the first position is a member of the set.
fn set_end(p: &[char]) -> Option<usize> {
    let negated = matches!(p.first(), Some('!' | '^'));
    let from = usize::from(negated) + 1;
    (from..p.len()).find(|i| p[*i] == ']')
}

/// Returns whether a character is a member of the set. `inside` is the text between the brackets.
fn member(inside: &[char], c: char) -> bool {
    let (negated, members) = match inside.split_first() {
        Some(('!' | '^', rest)) => (true, rest),
        _ => (false, inside),
    };
    let mut found = false;
    let mut i = 0;
    while i < members.len() {
        match members[i..] {
            [from, '-', to, ..] => {
                found |= (from..=to).contains(&c);
                i += 3;
            }
            _ => {
                found |= members[i] == c;
                i += 1;
            }
        }
    }
    found != negated
}

/// Returns the length of the part of the pattern that matches the character `c`, or `None` if it
/// does not match.
fn match_one(p: &[char], c: char) -> Option<usize> {
    match p {
        ['?', ..] => Some(1),
        ['\\', literal, ..] => (*literal == c).then_some(2),
        ['[', rest @ ..] => match set_end(rest) {
            Some(end) => member(&rest[..end], c).then_some(end + 2),
            None => (c == '[').then_some(1),
        },
        [literal, ..] => (*literal == c).then_some(1),
        [] => None,
    }
}

/// Returns whether a pattern matches the whole text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut i, mut j) = (0, 0);
    // Position of the last `*`, and the length of the text that it has matched.
    let mut star: Option<(usize, usize)> = None;
    while j < t.len() {
        if p.get(i) == Some(&'*') {
            star = Some((i, j));
            i += 1;
        } else if let Some(n) = match_one(&p[i..], t[j]) {
            (i, j) = (i + n, j + 1);
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            (i, j) = (at + 1, taken + 1);
        } else {
            return false;
        }
    }
    p[i..].iter().all(|c| *c == '*')
}

/// Returns whether one of several patterns, separated by `|`, matches.
pub fn any(patterns: &str, text: &str) -> bool {
    patterns.split('|').any(|p| matches(p, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_like_fnmatch() {
        for (pattern, text, is) in [
            ("sd[a-z]", "sda", true),
            ("sd[a-z]", "sdaa", false),
            ("sd[!a]", "sda", false),
            ("sd[^a]*", "sdbc", true),
            ("nvme[0-9]*n[0-9]*", "nvme10n1", true),
            ("*", "", true),
            ("?*", "", false),
            ("", "", true),
            ("a*b*c", "aXbXbYc", true),
            ("a*b*c", "aXbXbY", false),
            ("loop\\*", "loop*", true),
            ("loop\\*", "loop1", false),
            ("[]x]", "]", true),
            ("[", "[", true),
            ("*[kyber]*", "none", true),
            ("dm-*", "dm-0", true),
        ] {
            assert_eq!(matches(pattern, text), is, "{pattern} {text}");
        }
        assert!(any("sd[a-z]|mmcblk[0-9]*", "mmcblk0") && !any("sd[a-z]|vd?", "vda1"));
        assert!(any(
            "6.1[0-9]*|6.[2-9][0-9]*|[7-9].*|[1-9][0-9].*",
            "6.18.44"
        ));
        for old in ["6.1.55", "6.9.3", "5.15.0-91-generic", "4.19.0"] {
            assert!(
                !any("6.1[0-9]*|6.[2-9][0-9]*|[7-9].*|[1-9][0-9].*", old),
                "{old}"
            );
        }
        // The matching time stays short.
        assert!(!matches(&"a*".repeat(200), &"a".repeat(199)));
    }
}
