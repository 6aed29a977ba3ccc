//! The result of a calibration: parameters with their quality, curves to plot, and remarks.

use std::fmt;

/// How well the value of a parameter is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Measured by a probe that identifies it.
    Measured,
    /// Read from the host (sysfs), not timed.
    Stated,
    /// The probes cannot determine it. The value is a default or a guess, and the preset says so.
    Unknown,
}

/// The value of a parameter, in the unit of the preset.
#[derive(Debug, Clone, PartialEq)]
pub enum Val {
    /// A number.
    Num(f64),
    /// A yes or no.
    Flag(bool),
    /// A word.
    Word(&'static str),
    /// A list of pairs.
    Pairs(Vec<(f64, f64)>),
}

/// One parameter of a preset with its fit quality.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Key of the preset parameter.
    pub key: &'static str,
    /// Value.
    pub value: Val,
    /// Unit, as in the preset; empty for flags and words.
    pub unit: &'static str,
    /// The probe that found it, in a few words.
    pub method: String,
    /// 95 % interval, where one can be given.
    pub interval: Option<(f64, f64)>,
    /// Number of samples.
    pub samples: usize,
    /// How well the value is known.
    pub known: Known,
}

impl Estimate {
    /// A measured number.
    pub fn num(key: &'static str, value: f64, unit: &'static str, method: &str) -> Estimate {
        Estimate {
            key,
            value: Val::Num(value),
            unit,
            method: method.to_owned(),
            interval: None,
            samples: 0,
            known: Known::Measured,
        }
    }
    /// An estimate of any other shape.
    pub fn of(key: &'static str, value: Val, unit: &'static str, method: &str) -> Estimate {
        Estimate {
            value,
            ..Estimate::num(key, 0.0, unit, method)
        }
    }
    /// With samples.
    pub fn n(mut self, samples: usize) -> Estimate {
        self.samples = samples;
        self
    }
    /// With a 95 % interval.
    pub fn between(mut self, lo: f64, hi: f64) -> Estimate {
        self.interval = Some((lo.min(hi), lo.max(hi)));
        self
    }
    /// With a symmetric 95 % interval.
    pub fn pm(self, half: f64) -> Estimate {
        let Val::Num(x) = self.value else { return self };
        if half.is_finite() {
            self.between(x - half, x + half)
        } else {
            self
        }
    }
    /// Marks the value as unknown.
    pub fn unknown(mut self) -> Estimate {
        self.known = Known::Unknown;
        self
    }
    /// Marks the value as read from the host.
    pub fn stated(mut self) -> Estimate {
        self.known = Known::Stated;
        self
    }
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self.value {
            Val::Num(x) => Some(x),
            _ => None,
        }
    }
}

impl fmt::Display for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Val::Num(x) => f.write_str(&short(*x)),
            Val::Flag(b) => f.write_str(if *b { "yes" } else { "no" }),
            Val::Word(w) => f.write_str(w),
            Val::Pairs(p) => write!(f, "{} rows", p.len()),
        }
    }
}

/// A number with about six digits and no trailing zeros.
pub fn short(x: f64) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    if !x.is_finite() {
        return format!("{x}");
    }
    if x == libm::trunc(x) && x.abs() < 1e15 {
        return format!("{x:.0}");
    }
    let digits = (5.0 - libm::floor(libm::log10(x.abs()))).clamp(0.0, 12.0) as usize;
    let s = format!("{x:.digits$}");
    if s.contains('.') {
        s.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        s
    }
}

/// Kind of device that the probes found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Completions repeat with the period of a spindle.
    Hdd,
    /// Fast, with the same latency everywhere: flash, or memory.
    Flash,
    /// Neither.
    Unknown,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Hdd => "hard disk",
            Kind::Flash => "flash-like",
            Kind::Unknown => "unknown",
        })
    }
}

/// A measured quantity and what the fitted preset predicts for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The quantity.
    pub title: String,
    /// The horizontal axis.
    pub x: String,
    /// The vertical axis.
    pub y: String,
    /// (x, measured, fitted).
    pub points: Vec<(f64, f64, f64)>,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
}

/// Distances from the measured latency distribution to others, as shares of its mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demerit {
    /// To the fitted model.
    pub fitted: f64,
    /// To a generic disk of this capacity, the null model.
    pub generic: f64,
    /// Mean distance between runs of the fitted model: what chance alone causes with this number of
    /// reads.
    pub chance: f64,
}

/// Result of a calibration.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Kind of device.
    pub kind: Kind,
    /// Evidence for this kind.
    pub because: String,
    /// Name and provenance of the device.
    pub facts: crate::probe::Facts,
    /// Parameters in the order they were found; the last estimate of a key counts.
    pub estimates: Vec<Estimate>,
    /// Measured and fitted quantities.
    pub curves: Vec<Curve>,
    /// Things a reader of the preset should know.
    pub notes: Vec<String>,
    /// How far the fitted model's latencies are from the measured ones.
    pub demerit: Option<Demerit>,
    /// Number of I/Os sent.
    pub ios: u64,
    /// Time taken on the probe's clock, s.
    pub seconds: f64,
    /// Why the calibration ended early, if it did.
    pub cut: Option<crate::probe::Stop>,
}

impl Fit {
    /// The estimate of a parameter.
    pub fn get(&self, key: &str) -> Option<&Estimate> {
        self.estimates.iter().rev().find(|e| e.key == key)
    }
    /// The number of a parameter.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.number()
    }
}
