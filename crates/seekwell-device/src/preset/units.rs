//! The dimensions of parameters, and the units of each dimension.

use seekwell_core::Nanos;
use std::fmt;

/// The dimension of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Dim {
    /// Time; stored in ms.
    Time,
    /// Amount of data; stored in bytes.
    Bytes,
    /// Rate; stored in MB/s (10^6 bytes per second).
    Rate,
    /// A count; the string names the counted objects.
    Count(&'static str),
    /// A real number; the string is its unit (for example `ratio`, `ppm`, `rpm`).
    Real(&'static str),
    /// Yes or no.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of pairs of numbers; the string describes a pair.
    Pairs(&'static str),
    /// A text with its own syntax, for example a device or a scheduler. The string names the
    /// syntax.
    Text(&'static str),
}

const TIME: &[(&str, f64)] = &[("ms", 1.0), ("us", 1e-3), ("s", 1e3), ("ns", 1e-6)];
const BYTES: &[(&str, f64)] = &[
    ("bytes", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("sectors", 512.0),
    ("GiB", 1_073_741_824.0),
    ("MB", 1e6),
    ("GB", 1e9),
];
const RATE: &[(&str, f64)] = &[("MB/s", 1.0)];

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number, in the first unit of its dimension.
    Num(f64),
    /// Yes or no.
    Flag(bool),
    /// A word.
    Word(String),
    /// Pairs of numbers.
    Pairs(Vec<(f64, f64)>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Num(x) => {
                // Remove rounding errors of the unit conversion, so that 13 us give exactly 0.013
                // ms.
                let clean = libm::round(x * 1e9) / 1e9;
                let dusty = x.abs() < 1e6 && clean != 0.0;
                write!(f, "{}", if dusty { clean } else { *x })
            }
            Value::Flag(b) => f.write_str(if *b { "yes" } else { "no" }),
            Value::Word(w) => f.write_str(w),
            Value::Pairs(p) => {
                for (i, (a, b)) in p.iter().enumerate() {
                    write!(f, "{}{a} {b}", if i > 0 { ", " } else { "" })?;
                }
                Ok(())
            }
        }
    }
}

/// Converts milliseconds to nanoseconds.
pub(crate) fn nanos(ms: f64) -> Nanos {
    Nanos(libm::round(ms * 1e6) as u64)
}

impl Dim {
    /// Returns the unit in which values are stored; an empty string for flags and words.
    pub fn unit(self) -> &'static str {
        match self {
            Dim::Time => "ms",
            Dim::Bytes => "bytes",
            Dim::Rate => "MB/s",
            Dim::Count(u) | Dim::Real(u) | Dim::Pairs(u) => u,
            Dim::Flag | Dim::Word(_) | Dim::Text(_) => "",
        }
    }
    /// Returns true if a preset file must give a unit.
    pub fn needs_unit(self) -> bool {
        !matches!(self, Dim::Flag | Dim::Word(_) | Dim::Text(_))
    }
    /// Returns the factor that converts `unit` to the stored unit, or `None` for an unknown unit.
    pub(super) fn factor(self, unit: &str) -> Option<f64> {
        let find = |t: &[(&str, f64)]| t.iter().find(|u| u.0 == unit).map(|u| u.1);
        match self {
            Dim::Time => find(TIME),
            Dim::Bytes => find(BYTES),
            Dim::Rate => find(RATE),
            d => (d.unit() == unit).then_some(1.0),
        }
    }
    /// Returns the accepted units, for an error message.
    pub(super) fn units(self) -> String {
        let list = |t: &[(&str, f64)]| t.iter().map(|u| u.0).collect::<Vec<_>>().join(", ");
        match self {
            Dim::Time => list(TIME),
            Dim::Bytes => list(BYTES),
            Dim::Rate => list(RATE),
            d => d.unit().to_owned(),
        }
    }
    /// Checks that a number is valid for the dimension, and converts it to the stored unit.
    pub(super) fn number(self, x: f64, factor: f64) -> Result<Value, String> {
        if !x.is_finite() {
            return Err(format!("{x} is not a finite number"));
        }
        match self {
            Dim::Count(u) if x != libm::trunc(x) || x < 0.0 => Err(format!(
                "a count of {u} must be whole and not negative, not {x}"
            )),
            Dim::Flag => match x {
                0.0 => Ok(Value::Flag(false)),
                1.0 => Ok(Value::Flag(true)),
                _ => Err(format!("expected yes or no, not {x}")),
            },
            Dim::Word(w) => Err(format!("expected one of {}, not {x}", w.join(", "))),
            Dim::Pairs(u) => Err(format!("expected a list of pairs [{u}], not {x}")),
            Dim::Text(what) => Err(format!("expected a text ({what}), not {x}")),
            _ => Ok(Value::Num(x * factor)),
        }
    }
    /// Parses a value that the user typed: a number with an optional unit, yes or no, or a word.
    pub(super) fn read(self, text: &str) -> Result<Value, String> {
        match self {
            Dim::Flag => match text {
                "yes" | "on" | "true" | "1" => Ok(Value::Flag(true)),
                "no" | "off" | "false" | "0" => Ok(Value::Flag(false)),
                _ => Err(format!("expected yes or no, not \"{text}\"")),
            },
            Dim::Word(w) if w.contains(&text) => Ok(Value::Word(text.to_owned())),
            Dim::Word(w) => Err(format!("expected one of {}, not \"{text}\"", w.join(", "))),
            Dim::Text(_) => Ok(Value::Word(crate::spec::bare(text).to_owned())),
            Dim::Pairs(_) => Err("a list of pairs can only be given in a preset file".to_owned()),
            _ => {
                let split = text
                    .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e')))
                    .unwrap_or(text.len());
                let (number, unit) = text.split_at(split);
                let x = number
                    .parse::<f64>()
                    .map_err(|_| format!("expected a number in {}, not \"{text}\"", self.unit()))?;
                let unit = if unit.is_empty() { self.unit() } else { unit };
                let factor = self
                    .factor(unit)
                    .ok_or_else(|| format!("unit \"{unit}\" is not one of: {}", self.units()))?;
                self.number(x, factor)
            }
        }
    }
}
