//! Parameters of workloads: names, units, ranges, defaults and error messages.

use seekwell_core::{Nanos, suggest};
use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number in a range. The suffixes k, m and g multiply it by 1000, 10^6 and 10^9.
    Count(u64, u64),
    /// A number of bytes in a range. The suffixes k, m, g and t (also KiB, MiB and so on) multiply
    /// it by powers of 1024.
    Bytes(u64, u64),
    /// A time with a unit (ns, us, ms, s, min, h). The range is in nanoseconds.
    Time(u64, u64),
    /// A number with a fraction.
    Ratio(f64, f64),
    /// Yes or no.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// One parameter of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// Name of the parameter.
    pub name: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// The default of the original program, as a user would type it.
    pub default: &'static str,
    /// Effect of the parameter.
    pub summary: &'static str,
}

/// Makes an entry of a parameter table.
pub const fn param(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    summary: &'static str,
) -> Param {
    Param {
        name,
        kind,
        default,
        summary,
    }
}

/// Makes an entry of a profile table.
pub(crate) const fn profile(
    name: &'static str,
    summary: &'static str,
    set: &'static [(&'static str, &'static str)],
) -> Profile {
    Profile { name, summary, set }
}

/// A named set of parameter values, for example those of a published benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Name, which is used as `profile=NAME`.
    pub name: &'static str,
    /// Source and description.
    pub summary: &'static str,
    /// Values that the profile sets. The other parameters keep their defaults.
    pub set: &'static [(&'static str, &'static str)],
}

/// A checked value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Int(u64),
    Float(f64),
    Word(&'static str),
}

/// The reason why parameters were rejected.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ParamError {
    /// No workload has this name.
    #[error("no workload is called \"{name}\"; {remedy}")]
    NoWorkload {
        /// The name that the user typed.
        name: String,
        /// Similar names, or all names.
        remedy: String,
    },
    /// No parameter has this name.
    #[error("workload {workload} has no parameter \"{name}\"; {remedy}")]
    Unknown {
        /// The workload.
        workload: String,
        /// The name that the user typed.
        name: String,
        /// All names; similar names are first.
        remedy: String,
    },
    /// A value is invalid.
    #[error("parameter {name}={value} of {workload}: expected {expected}")]
    Bad {
        /// The workload.
        workload: String,
        /// Name of the parameter.
        name: String,
        /// The value that the user typed.
        value: String,
        /// Description of the valid values, with the range.
        expected: String,
    },
    /// Two values are valid separately but not together.
    #[error("parameters of {workload}: {why}")]
    Clash {
        /// The workload.
        workload: String,
        /// The conflict, its reason and the remedy.
        why: String,
    },
}

/// The checked parameters of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    table: &'static [Param],
    values: Vec<Value>,
    profile: Option<&'static str>,
}

impl Params {
    /// Takes the defaults, applies the profile if `given` contains `profile=NAME`, and then applies
    /// the values in `given`.
    pub fn new(
        workload: &str,
        table: &'static [Param],
        profiles: &'static [Profile],
        given: &[(String, String)],
    ) -> Result<Params, ParamError> {
        let mut values = Vec::with_capacity(table.len());
        for p in table {
            values.push(parse(workload, p, p.default)?);
        }
        let mut params = Params {
            table,
            values,
            profile: None,
        };
        let asked = given.iter().rfind(|g| g.0 == "profile");
        if let Some((_, name)) = asked.filter(|_| !profiles.is_empty()) {
            let names: Vec<&str> = profiles.iter().map(|p| p.name).collect();
            let profile = profiles.iter().find(|p| p.name == name);
            let profile = profile.ok_or_else(|| ParamError::Bad {
                workload: workload.to_owned(),
                name: "profile".into(),
                value: name.clone(),
                expected: format!("one of {}", names.join(", ")),
            })?;
            for (k, v) in profile.set {
                params.set(workload, k, v)?;
            }
            params.profile = Some(profile.name);
        }
        for (k, v) in given {
            if k != "profile" || profiles.is_empty() {
                params.set(workload, k, v)?;
            }
        }
        Ok(params)
    }

    /// Returns an empty set of parameters, for a workload without parameters.
    pub fn none() -> Params {
        Params {
            table: &[],
            values: Vec::new(),
            profile: None,
        }
    }

    fn set(&mut self, workload: &str, name: &str, text: &str) -> Result<(), ParamError> {
        let i = self.table.iter().position(|p| p.name == name);
        let i = i.ok_or_else(|| {
            let known: Vec<&str> = self.table.iter().map(|p| p.name).collect();
            ParamError::Unknown {
                workload: workload.to_owned(),
                name: name.to_owned(),
                remedy: match (
                    known.is_empty(),
                    suggest::did_you_mean(name, known.clone(), &[]),
                ) {
                    (true, _) => "it has no parameters".to_owned(),
                    (_, Some(question)) => {
                        format!("{question} Its parameters are: {}", known.join(", "))
                    }
                    (_, None) => format!("its parameters are: {}", known.join(", ")),
                },
            }
        })?;
        self.values[i] = parse(workload, &self.table[i], text)?;
        Ok(())
    }

    fn get(&self, name: &str) -> Value {
        let i = self.table.iter().position(|p| p.name == name);
        // A script reads only its own parameters. A test runs every script, so a wrong name is
        // found.
        self.values
            [i.unwrap_or_else(|| panic!("a script asks for '{name}', which it does not declare"))]
    }
    /// Returns the value of a count or of a number of bytes.
    pub fn int(&self, name: &str) -> u64 {
        match self.get(name) {
            Value::Int(n) => n,
            Value::Float(f) => f as u64,
            Value::Word(_) => 0,
        }
    }
    /// Returns the value of a count whose range fits into 32 bits.
    pub fn small(&self, name: &str) -> u32 {
        u32::try_from(self.int(name)).unwrap_or(u32::MAX)
    }
    /// Returns the value of a time.
    pub fn time(&self, name: &str) -> Nanos {
        Nanos(self.int(name))
    }
    /// Returns the value of a ratio.
    pub fn ratio(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Int(n) => n as f64,
            Value::Float(f) => f,
            Value::Word(_) => 0.0,
        }
    }
    /// Returns the value of a flag.
    pub fn flag(&self, name: &str) -> bool {
        self.int(name) != 0
    }
    /// Returns the value of a choice.
    pub fn word(&self, name: &str) -> &'static str {
        match self.get(name) {
            Value::Word(w) => w,
            _ => "",
        }
    }
    /// Returns all parameters as text, by name, for the record of the run.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (p, v) in self.table.iter().zip(&self.values) {
            let text = match (*v, p.kind) {
                (Value::Int(n), Kind::Bytes(..)) => bytes_text(n),
                (Value::Int(n), Kind::Time(..)) => time_text(n),
                (Value::Int(n), Kind::Flag) => if n != 0 { "yes" } else { "no" }.to_owned(),
                (Value::Int(n), _) => n.to_string(),
                (Value::Float(f), _) => f.to_string(),
                (Value::Word(w), _) => w.to_owned(),
            };
            all.insert(p.name.to_owned(), text);
        }
        if let Some(name) = self.profile {
            all.insert("profile".to_owned(), name.to_owned());
        }
        all
    }
}

fn parse(workload: &str, p: &Param, text: &str) -> Result<Value, ParamError> {
    let t = text.trim();
    let got = match p.kind {
        Kind::Count(lo, hi) => scaled(t, COUNTS).filter(|n| (lo..=hi).contains(n)),
        Kind::Bytes(lo, hi) => parse_bytes(t).filter(|n| (lo..=hi).contains(n)),
        Kind::Time(lo, hi) => parse_time(t).filter(|n| (lo..=hi).contains(n)),
        Kind::Flag => match t {
            "yes" | "true" | "on" | "1" => Some(1),
            "no" | "false" | "off" | "0" => Some(0),
            _ => None,
        },
        Kind::Ratio(lo, hi) => {
            let f = t.parse::<f64>().ok().filter(|f| (lo..=hi).contains(f));
            return f.map(Value::Float).ok_or_else(|| bad(workload, p, text));
        }
        Kind::Choice(words) => {
            let w = words.iter().find(|w| **w == t);
            return w
                .map(|w| Value::Word(w))
                .ok_or_else(|| bad(workload, p, text));
        }
    };
    got.map(Value::Int).ok_or_else(|| bad(workload, p, text))
}

fn bad(workload: &str, p: &Param, text: &str) -> ParamError {
    ParamError::Bad {
        workload: workload.to_owned(),
        name: p.name.to_owned(),
        value: text.to_owned(),
        expected: format!("{}{}", p.kind, example(p)),
    }
}

/// Returns a valid value for messages; usually the default.
fn example(p: &Param) -> String {
    let typical = match p.kind {
        Kind::Flag | Kind::Choice(_) => return String::new(),
        // 0 needs no unit, so it would not be a helpful example.
        Kind::Time(lo, hi) if p.default == "0" => time_text(30_000_000_000.clamp(lo, hi)),
        _ => p.default.to_owned(),
    };
    format!(" (such as {typical})")
}

impl fmt::Display for Kind {
    /// Writes for example "a number of 1..1000" or "bytes of 4KiB..1GiB".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Kind::Count(lo, hi) => write!(f, "a number of {lo}..{hi}"),
            Kind::Bytes(lo, hi) => write!(f, "bytes of {}..{}", bytes_text(lo), bytes_text(hi)),
            Kind::Time(lo, hi) => write!(
                f,
                "a time of {}..{}, with its unit",
                time_text(lo),
                time_text(hi)
            ),
            Kind::Ratio(lo, hi) => write!(f, "a number of {lo}..{hi}"),
            Kind::Flag => f.write_str("yes or no"),
            Kind::Choice(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}

const COUNTS: &[(&str, u64)] = &[("", 1), ("k", 1000), ("m", 1_000_000), ("g", 1_000_000_000)];
const BYTES: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tb", 1 << 40),
    ("tib", 1 << 40),
];
const TIMES: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Parses a number with an optional fraction and one of the suffixes in any case. Returns `None`
/// for any other text.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let factor = units.iter().find(|u| u.0 == unit)?.1;
    match number.split_once('.') {
        None => number.parse::<u64>().ok()?.checked_mul(factor),
        Some((whole, part)) => {
            let whole: u64 = whole.parse().ok()?;
            // Nine digits of the fraction are enough for every unit.
            let part = part.get(..part.len().min(9))?;
            let digits: u64 = part.parse().ok()?;
            let scale = 10u64.checked_pow(u32::try_from(part.len()).ok()?)?;
            let fraction = u128::from(digits) * u128::from(factor) / u128::from(scale);
            whole
                .checked_mul(factor)?
                .checked_add(u64::try_from(fraction).ok()?)
        }
    }
}

/// Parses a number of bytes, for example "64k", "1.5MiB" or "4096". Suffixes are powers of 1024.
pub fn parse_bytes(text: &str) -> Option<u64> {
    scaled(text, BYTES)
}

/// Parses a time, for example "30s", "1.5ms" or "2min", and returns nanoseconds. Every number
/// except 0 needs a unit.
pub fn parse_time(text: &str) -> Option<u64> {
    if text == "0" {
        Some(0)
    } else {
        scaled(text, TIMES)
    }
}

/// Formats a number of bytes in the largest unit that divides it.
pub fn bytes_text(n: u64) -> String {
    for (unit, f) in [
        ("TiB", 1u64 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
    ] {
        if n >= f && n.is_multiple_of(f) {
            return format!("{}{unit}", n / f);
        }
    }
    n.to_string()
}

/// Formats a time in the largest unit that divides it.
pub fn time_text(ns: u64) -> String {
    for (unit, f) in [
        ("h", 3_600_000_000_000u64),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
    ] {
        if ns >= f && ns.is_multiple_of(f) {
            return format!("{}{unit}", ns / f);
        }
    }
    for (unit, f) in [("ms", 1_000_000), ("us", 1000)] {
        if ns >= f && ns.is_multiple_of(f) {
            return format!("{}{unit}", ns / f);
        }
    }
    if ns == 0 {
        "0".into()
    } else {
        format!("{ns}ns")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Param] = &[
        Param {
            name: "files",
            kind: Kind::Count(1, 1000),
            default: "100",
            summary: "",
        },
        Param {
            name: "size",
            kind: Kind::Bytes(4096, 1 << 30),
            default: "1MiB",
            summary: "",
        },
        Param {
            name: "pause",
            kind: Kind::Time(0, 3_600_000_000_000),
            default: "5ms",
            summary: "",
        },
        Param {
            name: "mode",
            kind: Kind::Choice(&["delete", "wal"]),
            default: "delete",
            summary: "",
        },
    ];
    const PROFILES: &[Profile] = &[Profile {
        name: "large",
        summary: "",
        set: &[("size", "16m")],
    }];

    fn with(given: &[(&str, &str)]) -> Result<Params, ParamError> {
        let given: Vec<(String, String)> = given
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Params::new("w", TABLE, PROFILES, &given)
    }

    #[test]
    fn given_values_override_the_profile_and_the_profile_the_defaults() {
        let p = with(&[]).expect("defaults");
        assert_eq!((p.int("files"), p.int("size")), (100, 1 << 20));
        assert_eq!(p.time("pause"), Nanos::from_ms(5));
        let p = with(&[("profile", "large"), ("mode", "wal")]).expect("fits");
        assert_eq!((p.int("size"), p.word("mode")), (16 << 20, "wal"));
        assert_eq!(p.texts()["size"], "16MiB");
        assert_eq!(p.texts()["profile"], "large");
        let p = with(&[("size", "1.5m"), ("profile", "large")]).expect("given wins");
        assert_eq!(p.int("size"), 3 << 19);
    }

    #[test]
    fn messages_name_parameter_value_and_range() {
        let say = |g: &[(&str, &str)]| with(g).expect_err("refused").to_string();
        assert_eq!(
            say(&[("files", "0")]),
            "parameter files=0 of w: expected a number of 1..1000 (such as 100)"
        );
        assert_eq!(
            say(&[("size", "9x")]),
            "parameter size=9x of w: expected bytes of 4KiB..1GiB (such as 1MiB)"
        );
        assert_eq!(
            say(&[("pause", "5")]),
            "parameter pause=5 of w: expected a time of 0..1h, with its unit (such as 5ms)"
        );
        assert_eq!(
            say(&[("mode", "off")]),
            "parameter mode=off of w: expected one of delete, wal"
        );
        assert_eq!(
            say(&[("profile", "huge")]),
            "parameter profile=huge of w: expected one of large"
        );
        assert_eq!(
            say(&[("colour", "red")]),
            "workload w has no parameter \"colour\"; its parameters are: files, size, pause, mode"
        );
        assert_eq!(
            say(&[("file", "9")]),
            "workload w has no parameter \"file\"; did you mean `files`? \
             Its parameters are: files, size, pause, mode"
        );
    }

    #[test]
    fn numbers_out_of_range_are_rejected_and_not_wrapped() {
        assert_eq!(parse_bytes("99999999999t"), None);
        assert_eq!(parse_bytes(""), None);
        assert_eq!(parse_bytes("."), None);
        assert_eq!(parse_bytes("1."), None);
        assert_eq!(parse_bytes("-1"), None);
        assert_eq!(parse_bytes("1.25g"), Some(5 << 28));
        assert_eq!(parse_time("1.5s"), Some(1_500_000_000));
        assert_eq!(parse_time("0"), Some(0));
        assert_eq!(time_text(1_500_000_000), "1500ms");
        assert_eq!(time_text(7), "7ns");
    }
}
