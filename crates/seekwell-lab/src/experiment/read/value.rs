//! Reads values of an experiment file as texts, numbers and times.

use super::Reader;
use crate::experiment::fault::Place;
use seekwell_workload::params::parse_time;
use toml::Spanned;
use toml::de::DeValue;

/// The text of a value, with its position.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub text: String,
    pub at: Place,
}

/// How a boolean is written as text.
#[derive(Clone, Copy)]
pub(super) enum Switch {
    /// As `yes` or `no`.
    Word,
    /// As `1` or `0`.
    Digit,
}

impl Reader<'_> {
    /// Returns the text of a string, number or boolean as it would be typed; `None` for other
    /// types.
    pub(super) fn scalar(&self, v: &DeValue<'_>, switch: Switch) -> Option<String> {
        Some(match v {
            DeValue::String(s) => s.clone().into_owned(),
            DeValue::Integer(i) => match i128::from_str_radix(i.as_str(), i.radix()) {
                Ok(n) => n.to_string(),
                Err(_) => i.as_str().to_owned(),
            },
            DeValue::Float(f) => f.as_str().to_owned(),
            DeValue::Boolean(b) => match (switch, b) {
                (Switch::Word, true) => "yes".to_owned(),
                (Switch::Word, false) => "no".to_owned(),
                (Switch::Digit, b) => u8::from(*b).to_string(),
            },
            _ => return None,
        })
    }

    /// Reads one value, or each value of a list (the grid of a parameter).
    pub(super) fn texts(
        &mut self,
        field: &str,
        v: &Spanned<DeValue<'_>>,
        switch: Switch,
    ) -> Vec<Text> {
        let list: Vec<&Spanned<DeValue<'_>>> = match v.get_ref() {
            DeValue::Array(list) if list.is_empty() => {
                self.bad(
                    self.at(v),
                    field,
                    "is an empty list: name at least one value",
                );
                return Vec::new();
            }
            DeValue::Array(list) => list.iter().collect(),
            _ => vec![v],
        };
        let mut out = Vec::new();
        for v in list {
            let at = self.at(v);
            match self.scalar(v.get_ref(), switch) {
                Some(text) => out.push(Text { text, at }),
                None => {
                    let what = format!(
                        "is {}, not a value or a list of values (a grid)",
                        kind(v.get_ref())
                    );
                    self.bad(at, field, &what);
                }
            }
        }
        out
    }

    /// Reads a single value as a text. A list is a fault.
    pub(super) fn text(&mut self, field: &str, v: &Spanned<DeValue<'_>>) -> Option<String> {
        let text = match v.get_ref() {
            DeValue::String(s) => Some(s.clone().into_owned()),
            _ => None,
        };
        if text.is_none() {
            let what = format!("is {}, not a text in quotes", kind(v.get_ref()));
            self.bad(self.at(v), field, &what);
        }
        text
    }

    /// Reads a text, or each text of a list.
    pub(super) fn list(&mut self, field: &str, v: &Spanned<DeValue<'_>>) -> Vec<Text> {
        match v.get_ref() {
            DeValue::Array(list) => {
                let each = list.iter();
                each.filter_map(|v| {
                    let text = self.text(field, v)?;
                    Some(Text {
                        text,
                        at: self.at(v),
                    })
                })
                .collect()
            }
            _ => {
                let at = self.at(v);
                let text = self.text(field, v);
                text.map(|text| Text { text, at }).into_iter().collect()
            }
        }
    }

    /// Reads a table of texts by name.
    pub(super) fn map(
        &mut self,
        field: &str,
        v: &Spanned<DeValue<'_>>,
    ) -> std::collections::BTreeMap<String, String> {
        let mut all = std::collections::BTreeMap::new();
        match v.get_ref() {
            DeValue::Table(t) => {
                for e in self.entries(t) {
                    let field = format!("{field}.{}", e.key);
                    if let Some(text) = self.text(&field, e.value) {
                        all.insert(e.key.to_owned(), text);
                    }
                }
            }
            other => {
                let what = format!("is {}, not a table of texts", kind(other));
                self.bad(self.at(v), field, &what);
            }
        }
        all
    }

    pub(super) fn switch(&mut self, field: &str, v: &Spanned<DeValue<'_>>) -> Option<bool> {
        match v.get_ref() {
            DeValue::Boolean(b) => Some(*b),
            other => {
                let what = format!("is {}, not true or false", kind(other));
                self.bad(self.at(v), field, &what);
                None
            }
        }
    }

    /// Reads an integer in a range.
    pub(super) fn whole(
        &mut self,
        field: &str,
        v: &Spanned<DeValue<'_>>,
        (min, max): (u64, u64),
    ) -> Option<u64> {
        let n = match v.get_ref() {
            DeValue::Integer(i) => i128::from_str_radix(i.as_str(), i.radix()).ok(),
            other => {
                let what = format!("is {}, not a whole number", kind(other));
                self.bad(self.at(v), field, &what);
                return None;
            }
        };
        let fits = n.and_then(|n| u64::try_from(n).ok());
        let fits = fits.filter(|n| (min..=max).contains(n));
        if fits.is_none() {
            let said = self.scalar(v.get_ref(), Switch::Word).unwrap_or_default();
            self.bad(
                self.at(v),
                field,
                &format!("{said} is outside {min} to {max}"),
            );
        }
        fits
    }

    /// Reads a fraction: 0.02 or "2 %".
    pub(super) fn share(&mut self, field: &str, v: &Spanned<DeValue<'_>>) -> Option<f64> {
        let text = self.scalar(v.get_ref(), Switch::Word).unwrap_or_default();
        let percent = text.strip_suffix('%').map(str::trim_end);
        let of = percent.unwrap_or(&text).replace('_', "");
        let share = of.parse::<f64>().ok().map(|x| match percent {
            // 2 % must become 0.02, not 0.020000000000000004.
            Some(_) => format!("{of}e-2").parse().unwrap_or(x / 100.0),
            None => x,
        });
        let share = share.filter(|x| x.is_finite());
        if share.is_none() {
            let what = format!(
                "is {}, not a fraction: write 0.02, or \"2 %\"",
                show_value(v)
            );
            self.bad(self.at(v), field, &what);
        }
        share
    }

    /// Reads a time with its unit, and returns it in ns.
    pub(super) fn time(&mut self, field: &str, v: &Spanned<DeValue<'_>>) -> Option<u64> {
        let text = self.scalar(v.get_ref(), Switch::Word).unwrap_or_default();
        let ns = parse_time(text.trim());
        if ns.is_none() {
            let what = format!(
                "is {}, not a time with its unit: write \"90s\", \"10min\", \"2h\"",
                show_value(v)
            );
            self.bad(self.at(v), field, &what);
        }
        ns
    }

    /// Reads a time of at least one second, and returns it in whole seconds.
    pub(super) fn seconds(&mut self, field: &str, v: &Spanned<DeValue<'_>>) -> Option<u64> {
        let ns = self.time(field, v)?;
        if ns == 0 || ns % 1_000_000_000 != 0 {
            let what =
                "is not a time of one or more whole seconds: write \"90s\", \"10min\", \"2h\"";
            self.bad(self.at(v), field, what);
            return None;
        }
        Some(ns / 1_000_000_000)
    }

    /// Reads one of several words.
    pub(super) fn word<T: Copy>(
        &mut self,
        field: &str,
        v: &Spanned<DeValue<'_>>,
        words: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(field, v)?;
        let found = words.iter().find(|w| w.0 == text).map(|w| w.1);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|w| w.0).collect();
            let what = format!("\"{text}\" is not a valid value");
            self.faults.unknown(self.at(v), field, &what, &text, &known);
        }
        found
    }
}

/// Returns the type of a value, for messages.
pub(super) fn kind(v: &DeValue<'_>) -> &'static str {
    match v {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Returns a value as written if it is short, otherwise its type. Used in messages.
fn show_value(v: &Spanned<DeValue<'_>>) -> String {
    match v.get_ref() {
        DeValue::String(s) if s.chars().count() <= 40 => format!("\"{s}\""),
        DeValue::Integer(i) => i.as_str().to_owned(),
        DeValue::Float(f) => f.as_str().to_owned(),
        other => kind(other).to_owned(),
    }
}
