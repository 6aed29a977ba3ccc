//! Presets: named sets of parameters, each with its unit and its source.
//!
//! Each kind of device declares its parameters once, in a table of [`Def`]s. The parser, the
//! overrides on the command line, the listing and the model all use this table. A parameter that a
//! preset does not set has the default of the table. The listing marks such a value as a default.

mod parse;
mod units;

use crate::error::{DeviceError, ParamError};
use seekwell_core::suggest;
pub(crate) use units::nanos;
pub use units::{Dim, Value};

/// The declaration of one parameter of a kind of device.
#[derive(Debug, Clone, Copy)]
pub struct Def {
    /// Name in preset files and overrides.
    pub key: &'static str,
    /// Dimension, which determines the accepted units. Values are stored in the first unit of the
    /// dimension.
    pub dim: Dim,
    /// Default value as the user would type it. `None`: there is no default, so the parameter is
    /// either optional or required by the kind.
    pub default: Option<&'static str>,
    /// Minimum value, in the first unit of the dimension.
    pub lo: f64,
    /// Maximum value, in the first unit of the dimension.
    pub hi: f64,
    /// Description for the user, in one line.
    pub doc: &'static str,
}

impl Def {
    /// Makes a declaration. The arguments are the fields in order.
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
    /// The data sheet or specification of the manufacturer.
    DataSheet,
    /// The data sheet of the manufacturer, quoted from memory and not checked again.
    Recalled,
    /// Measured by a third party and published.
    Measured,
    /// Adjusted until the model reproduced a published value. The reference names this value.
    Fitted,
    /// An estimate.
    Estimate,
    /// The default value of the kind of device.
    Default,
    /// The value that the user typed to replace the preset's value.
    Override,
}

impl Source {
    /// The words for sources in a preset file.
    pub const WORDS: [(&'static str, Source); 5] = [
        ("data sheet (recalled)", Source::Recalled),
        ("data sheet", Source::DataSheet),
        ("published measurement", Source::Measured),
        ("fitted", Source::Fitted),
        ("estimate", Source::Estimate),
    ];
    /// Returns the description of the source for a user.
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
    /// Declaration of the parameter.
    pub def: &'static Def,
    /// Value in the first unit of the dimension.
    pub value: Value,
    /// Source of the value.
    pub source: Source,
    /// The data sheet, measurement or reasoning from which the value follows; can be empty.
    pub reference: String,
    /// Line in the preset file; 0 if the value is not from a file.
    pub line: usize,
}

impl Param {
    /// Returns the unit in which the value is stored.
    pub fn unit(&self) -> &'static str {
        self.def.dim.unit()
    }
}

/// A named set of parameters of one kind of device.
#[derive(Debug, Clone)]
pub struct Preset {
    /// Kind of device, for example `hdd`.
    pub kind: &'static str,
    /// Name without the kind, for example `hitachi-7k200`.
    pub name: String,
    /// Other accepted names.
    pub aliases: Vec<String>,
    /// One-line description.
    pub summary: String,
    /// Year in which the device was first sold; `None` if not known.
    pub year: Option<u16>,
    /// Name of the file from which the preset was read, for error messages.
    pub file: String,
    /// Parameters in the order of the kind's declarations, without absent optional parameters.
    pub params: Vec<Param>,
}

impl Preset {
    /// Returns the parameter `key`, if it has a value.
    pub fn get(&self, key: &str) -> Option<&Param> {
        self.params.iter().find(|p| p.def.key == key)
    }
    /// Returns the number of the parameter `key`, or an error if the parameter has no number.
    pub fn num(&self, key: &'static str) -> Result<f64, ParamError> {
        self.num_opt(key).ok_or_else(|| {
            ParamError::new(
                key,
                format!("parameter `{key}` is missing"),
                format!("add `{key} = {{ value = ..., unit = ..., source = ... }}`"),
            )
        })
    }
    /// Returns the number of the parameter `key`, if it has a number.
    pub fn num_opt(&self, key: &str) -> Option<f64> {
        match self.get(key)?.value {
            Value::Num(x) => Some(x),
            _ => None,
        }
    }
    /// Returns whether the host sees several hardware queues. Kinds without queues of their own
    /// have one.
    pub fn has_several_queues(&self) -> bool {
        // A guest's disk calls its own queues `queues`: its inner device has hardware queues, too.
        ["hw_queues", "queues"]
            .iter()
            .any(|key| self.num_opt(key).is_some_and(|n| n > 1.0))
    }
    /// Returns the value of a yes/no parameter; false if it is absent.
    pub fn flag(&self, key: &str) -> bool {
        matches!(self.get(key).map(|p| &p.value), Some(Value::Flag(true)))
    }
    /// Returns the value of a word parameter; an empty string if it is absent.
    pub fn word(&self, key: &str) -> &str {
        match self.get(key).map(|p| &p.value) {
            Some(Value::Word(w)) => w,
            _ => "",
        }
    }
    /// Returns the value of a list of pairs, if the parameter has one.
    pub fn pairs(&self, key: &str) -> Option<&[(f64, f64)]> {
        match &self.get(key)?.value {
            Value::Pairs(p) => Some(p),
            _ => None,
        }
    }

    /// Replaces a value by the value that the user typed. In `rpm=5400` or `t_o=0.3ms`, `key` is
    /// the part before the equals sign and `text` is the part after it. Returns the error text if
    /// the value is not valid.
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

    /// Adds the location to an error. The location is the line of the parameter, or the line of the
    /// first parameter if the faulty parameter is missing. If the user typed the value, the
    /// location is `spec`, the user's text.
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

/// Returns the message "unknown parameter" with the most similar known name.
pub(crate) fn unknown<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> String {
    match suggest::did_you_mean(key, known, &[]) {
        Some(question) => format!("unknown parameter \"{key}\" ({question})"),
        None => format!("unknown parameter \"{key}\""),
    }
}
