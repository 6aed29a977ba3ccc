//! Presets: named sets of parameters, each with its unit and its source.
//!
//! A device kind declares its parameters once, as a table of [`Def`]s. The parser, the overrides on
//! a command line, the listing and the model all read that table. If a preset does not set a
//! parameter, the parameter takes the default of the table, and the listing marks it as a default.

mod parse;
mod units;

use crate::error::{DeviceError, ParamError};
use seekwell_core::suggest;
pub use units::{Dim, Value};

/// Declaration of one parameter of a device kind.
#[derive(Debug)]
pub struct Def {
    /// Its name in preset files and overrides.
    pub key: &'static str,
    /// Its dimension, which determines its units. Values are kept in the first unit of the list.
    pub dim: Dim,
    /// Default, written as a user would type it. `None`: the parameter is optional and then absent,
    /// or the kind requires it.
    pub default: Option<&'static str>,
    /// Least value, in the first unit.
    pub lo: f64,
    /// Greatest value, in the first unit.
    pub hi: f64,
    /// One line for the user.
    pub doc: &'static str,
}

impl Def {
    /// A declaration; see the fields.
    pub const fn new(
        key: &'static str,
        dim: Dim,
        default: Option<&'static str>,
        range: (f64, f64),
        doc: &'static str,
    ) -> Self {
        Def {
            key,
            dim,
            default,
            lo: range.0,
            hi: range.1,
            doc,
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The maker's data sheet or specification.
    DataSheet,
    /// Known from the maker's data sheet, but the page was not checked again.
    Recalled,
    /// Measured by a third party and published.
    Measured,
    /// Adjusted until the model reproduced a published figure (named in the reference).
    Fitted,
    /// Estimate.
    Estimate,
    /// The default of the device kind.
    Default,
    /// Typed by the user in place of the preset's value.
    Override,
}

impl Source {
    /// The words a preset file uses.
    pub const WORDS: [(&'static str, Source); 5] = [
        ("data sheet (recalled)", Source::Recalled),
        ("data sheet", Source::DataSheet),
        ("published measurement", Source::Measured),
        ("fitted", Source::Fitted),
        ("estimate", Source::Estimate),
    ];
    /// The description that a user reads.
    pub fn text(self) -> &'static str {
        match self {
            Source::Default => "default",
            Source::Override => "given on the command line",
            s => Self::WORDS.iter().find(|w| w.1 == s).map_or("", |w| w.0),
        }
    }
}

/// A parameter with its value.
#[derive(Debug, Clone)]
pub struct Param {
    /// Its declaration.
    pub def: &'static Def,
    /// Its value in the first unit of the declaration.
    pub value: Value,
    /// Where the value comes from.
    pub source: Source,
    /// The data sheet, figure or reasoning behind the value; may be empty.
    pub reference: String,
    /// Line in the preset file; 0 if the value is not from a file.
    pub line: usize,
}

impl Param {
    /// Unit in which the value is kept.
    pub fn unit(&self) -> &'static str {
        self.def.dim.unit()
    }
}

/// A named set of parameters of one kind of device.
#[derive(Debug, Clone)]
pub struct Preset {
    /// Kind (`hdd`).
    pub kind: &'static str,
    /// Name (`hitachi-7k200`).
    pub name: String,
    /// Aliases.
    pub aliases: Vec<String>,
    /// One-line description.
    pub summary: String,
    /// Year in which the device was first sold, if known.
    pub year: Option<u16>,
    /// File it was read from, for errors.
    pub file: String,
    /// In the order of the kind's declarations; absent optional parameters are left out.
    pub params: Vec<Param>,
}

impl Preset {
    /// The parameter, if it has a value.
    pub fn get(&self, key: &str) -> Option<&Param> {
        self.params.iter().find(|p| p.def.key == key)
    }
    /// The number of a parameter; an error if it has none.
    pub fn num(&self, key: &'static str) -> Result<f64, ParamError> {
        self.num_opt(key).ok_or_else(|| {
            ParamError::new(
                key,
                format!("parameter `{key}` is missing"),
                format!("add `{key} = {{ value = ..., unit = ..., source = ... }}`"),
            )
        })
    }
    /// The number of a parameter, if it has one.
    pub fn num_opt(&self, key: &str) -> Option<f64> {
        match self.get(key)?.value {
            Value::Num(x) => Some(x),
            _ => None,
        }
    }
    /// A yes or no parameter; no if it is absent.
    pub fn flag(&self, key: &str) -> bool {
        matches!(self.get(key).map(|p| &p.value), Some(Value::Flag(true)))
    }
    /// A word parameter; empty if it is absent.
    pub fn word(&self, key: &str) -> &str {
        match self.get(key).map(|p| &p.value) {
            Some(Value::Word(w)) => w,
            _ => "",
        }
    }
    /// A list of pairs, if the parameter has one.
    pub fn pairs(&self, key: &str) -> Option<&[(f64, f64)]> {
        match &self.get(key)?.value {
            Value::Pairs(p) => Some(p),
            _ => None,
        }
    }

    /// Replaces a value of the preset by one that the user typed (`key` and `text` as in `rpm=5400`
    /// or `t_o=0.3ms`).
    pub fn set(&mut self, defs: &'static [Def], key: &str, text: &str) -> Result<(), String> {
        let at = defs
            .iter()
            .position(|d| d.key == key)
            .ok_or_else(|| unknown(key, defs.iter().map(|d| d.key)))?;
        let def = &defs[at];
        let value = def.dim.read(text).and_then(|v| def.check(v))?;
        let param = Param {
            def,
            value,
            source: Source::Override,
            reference: String::new(),
            line: 0,
        };
        match self.params.iter_mut().find(|p| p.def.key == key) {
            Some(p) => *p = param,
            None => {
                let order = |k: &str| defs.iter().position(|d| d.key == k);
                let place = self.params.partition_point(|p| order(p.def.key) < Some(at));
                self.params.insert(place, param);
            }
        }
        Ok(())
    }

    /// Adds the place to an error: the line of the parameter, or of the first parameter if the
    /// faulty one is missing. `spec` is the user's text, if the value was typed.
    pub fn locate(&self, e: ParamError, spec: &str) -> DeviceError {
        let param = self.get(e.key);
        if param.is_some_and(|p| p.source == Source::Override) {
            return DeviceError::Spec {
                spec: spec.to_owned(),
                what: e.what,
                remedy: e.remedy,
            };
        }
        let line = param.map_or(0, |p| p.line);
        let first = self.params.iter().map(|p| p.line).filter(|l| *l > 0).min();
        DeviceError::Preset {
            file: self.file.clone(),
            line: if line > 0 { line } else { first.unwrap_or(1) },
            what: e.what,
            remedy: e.remedy,
        }
    }
}

impl Def {
    fn check(&self, v: Value) -> Result<Value, String> {
        let bad = |x: f64| !(x >= self.lo && x <= self.hi);
        if let Value::Num(x) = v
            && bad(x)
        {
            let unit = self.dim.unit();
            return Err(format!(
                "`{}` must be between {} and {} {unit}, not {x}",
                self.key, self.lo, self.hi
            ));
        }
        Ok(v)
    }
}

/// The message "unknown parameter", with the nearest known name.
pub(crate) fn unknown<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> String {
    match suggest::did_you_mean(key, known, &[]) {
        Some(question) => format!("unknown parameter `{key}` ({question})"),
        None => format!("unknown parameter `{key}`"),
    }
}
