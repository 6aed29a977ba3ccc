//! Reads the rule files of udev: finds the effective files and parses their lines.

use super::files::Files;
use std::path::PathBuf;

/// Directories of rules. If several contain a file of the same name, the first directory counts.
const DIRS: &[&str] = &[
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
];

/// Operator between a key and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `==`
    Is,
    /// `!=`
    IsNot,
    /// `=`
    Set,
    /// `+=`
    Add,
    /// `-=`
    Remove,
    /// `:=`. For an attribute it means the same as `=`. For programs it prevents later additions.
    Final,
}

/// A part of a rule, for example `ATTR{queue/scheduler}="bfq"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Key, in capital letters.
    pub key: String,
    /// Attribute in braces. It is empty without braces.
    pub attribute: String,
    /// Operator.
    pub op: Op,
    /// Value, without quotes.
    pub value: String,
    /// Whether the value has the prefix `i` (as in `i"..."`), so that case is ignored.
    pub any_case: bool,
    /// Number of the line in the file, from 1.
    pub line: usize,
}

impl Token {
    /// Returns whether the token is a condition and not an assignment. A program or an import is a
    /// condition too, because its failure ends the rule.
    pub fn is_match(&self) -> bool {
        matches!(self.op, Op::Is | Op::IsNot) || matches!(&*self.key, "IMPORT" | "PROGRAM")
    }
}

/// A rule: a line with its continuation lines.
pub type Rule = Vec<Token>;

/// A file with rules.
#[derive(Clone, Debug)]
pub struct RuleFile {
    /// Path of the file.
    pub path: PathBuf,
    /// The rules in order. Lines that udev would ignore are left out.
    pub rules: Vec<Rule>,
}

/// Returns all effective files, in udev's order.
pub fn all(files: &Files<'_>) -> Vec<RuleFile> {
    let found = files.overriding(DIRS, ".rules").into_values();
    found
        .map(|path| RuleFile {
            rules: parse(&files.text(&path)),
            path,
        })
        .collect()
}

/// Parses the rules in the text of a file.
pub fn parse(text: &str) -> Vec<Rule> {
    let mut rules = Vec::new();
    // Text of an unfinished rule, and the position at which each of its lines starts.
    let (mut joined, mut starts) = (String::new(), Vec::new());
    for (i, line) in text.lines().enumerate() {
        let body = line.trim_start();
        // A comment line is skipped even inside a rule. It has no continuation line.
        if body.starts_with('#') {
            continue;
        }
        starts.push((joined.len(), i + 1));
        if let Some(more) = body.strip_suffix('\\') {
            joined.push_str(more);
            continue;
        }
        joined.push_str(body);
        rules.extend(rule(&joined, &starts).filter(|r| !r.is_empty()));
        joined.clear();
        starts.clear();
    }
    rules
}

/// Returns the tokens of a rule, or `None` if udev would ignore the line.
fn rule(text: &str, starts: &[(usize, usize)]) -> Option<Rule> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let rest = text[at..].trim_start_matches([' ', '\t', ',']);
        at = text.len() - rest.len();
        if rest.is_empty() {
            return Some(tokens);
        }
        let line = starts.iter().rev().find(|s| s.0 <= at).map_or(1, |s| s.1);
        let (mut token, len) = token(rest)?;
        token.line = line;
        tokens.push(token);
        at += len;
    }
}

/// Returns the first token of a text and its length.
fn token(text: &str) -> Option<(Token, usize)> {
    let key_len = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    let (key, mut rest) = text.split_at(key_len);
    let mut attribute = "";
    if let Some(inner) = rest.strip_prefix('{') {
        (attribute, rest) = inner.split_once('}')?;
    }
    rest = rest.trim_start();
    let ops = [
        ("==", Op::Is),
        ("!=", Op::IsNot),
        ("+=", Op::Add),
        ("-=", Op::Remove),
        (":=", Op::Final),
        ("=", Op::Set),
    ];
    let (sign, op) = ops.into_iter().find(|o| rest.starts_with(o.0))?;
    rest = rest[sign.len()..].trim_start();
    let (prefix, quoted) = rest.split_once('"')?;
    if key.is_empty() || prefix.chars().any(|c| !"ei".contains(c)) {
        return None;
    }
    let (value, len) = value(quoted, prefix.contains('e'))?;
    let token = Token {
        key: key.to_owned(),
        attribute: attribute.to_owned(),
        op,
        value,
        any_case: prefix.contains('i'),
        line: 0,
    };
    Some((token, text.len() - quoted.len() + len))
}

/// Returns a value up to its closing quote, and its length with the quote. A backslash escapes only
/// a quote, except in `e"..."`, which has C escapes.
fn value(text: &str, escaped: bool) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut signs = text.char_indices();
    while let Some((i, c)) = signs.next() {
        match c {
            '"' => return Some((value, i + 1)),
            '\\' if escaped => match signs.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'x' => {
                    let digits = [signs.next()?.1.to_digit(16)?, signs.next()?.1.to_digit(16)?];
                    value.push(char::from_u32(digits[0] * 16 + digits[1])?);
                }
                other => value.push(other),
            },
            '\\' if text[i + 1..].starts_with('"') => {
                signs.next();
                value.push('"');
            }
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn udev_rule_lines_are_parsed_like_udev() {
        let text = "# a comment is not continued \\\n\
                    KERNEL==\"sd[a-z]\", \\\n  ATTR{queue/scheduler}=\"kyber\"\n\
                    \n\
                    KERNEL==\"broken, ATTR{queue/scheduler}=\"x\"\n\
                    ENV{X}=\"1\" ENV{Y}:=\"a\\\"b\\c\" , KERNEL==e\"loop\\x2a\", NAME!=i\"x\",\n";
        let rules = parse(text);
        assert_eq!(rules.len(), 2, "{rules:?}");
        let said = |r: &Rule| {
            let one = |t: &Token| {
                format!(
                    "{}{{{}}}{:?}{}@{}",
                    t.key, t.attribute, t.op, t.value, t.line
                )
            };
            r.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            said(&rules[0]),
            "KERNEL{}Issd[a-z]@2 ATTR{queue/scheduler}Setkyber@3"
        );
        assert_eq!(
            said(&rules[1]),
            "ENV{X}Set1@6 ENV{Y}Finala\"b\\c@6 KERNEL{}Isloop*@6 NAME{}IsNotx@6"
        );
        assert!(rules[1][3].any_case && !rules[1][2].any_case);
        for bad in [
            "KERNEL",
            "KERNEL=",
            "KERNEL==x",
            "{x}==\"y\"",
            "K{==\"y\"",
            "K==q\"y\"",
        ] {
            assert!(parse(bad).is_empty(), "{bad}");
        }
    }
}
