//! The result of a calibration: parameters with their quality, curves to plot, and notes.

use std::fmt;

/// How reliable the value of a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// A probe measured the value.
    Measured,
    /// The host (sysfs) reports the value. It was not measured.
    Stated,
    /// The probes cannot determine the value. It is a default or an estimate, and the preset says
    /// so.
    Unknown,
}

/// The value of a parameter, in the unit of the preset.
#[derive(Debug, Clone, PartialEq)]
pub enum Val {
    /// A number.
    Num(f64),
    /// A value of yes or no.
    Flag(bool),
    /// A keyword.
    Word(&'static str),
    /// A list of pairs of numbers.
    Pairs(Vec<(f64, f64)>),
}

/// The estimate of one parameter of a preset, with its quality.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Key of the preset parameter.
    pub key: &'static str,
    /// Value of the parameter.
    pub value: Val,
    /// Unit, as in the preset. It is empty for flags and words.
    pub unit: &'static str,
    /// Short description of the probe that found the value.
    pub method: String,
    /// 95 % confidence interval, or `None` if it cannot be computed.
    pub interval: Option<(f64, f64)>,
    /// Number of samples.
    pub samples: usize,
    /// How reliable the value is.
    pub known: Known,
}

impl Estimate {
    /// Returns an estimate of a measured number.
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
    /// Returns an estimate of any other type.
    pub fn new_value(key: &'static str, value: Val, unit: &'static str, method: &str) -> Estimate {
        Estimate {
            value,
            ..Estimate::num(key, 0.0, unit, method)
        }
    }
    /// Sets the number of samples.
    pub fn n(mut self, samples: usize) -> Estimate {
        self.samples = samples;
        self
    }
    /// Sets the 95 % confidence interval.
    pub fn between(mut self, lo: f64, hi: f64) -> Estimate {
        self.interval = Some((lo.min(hi), lo.max(hi)));
        self
    }
    /// Sets a symmetric 95 % confidence interval with the half-width `half`.
    pub fn pm(self, half: f64) -> Estimate {
        let Val::Num(x) = self.value else { return self };
        if half.is_finite() {
            self.between(x - half, x + half)
        } else {
            self
        }
    }
    /// Marks the value as not determined by the probes.
    pub fn unknown(mut self) -> Estimate {
        self.known = Known::Unknown;
        self
    }
    /// Marks the value as reported by the host.
    pub fn stated(mut self) -> Estimate {
        self.known = Known::Stated;
        self
    }
    /// Returns the value if it is a number.
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

/// Formats a number with about six digits and without trailing zeros.
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

/// Kind of device, as found by the probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A hard disk: completion times have a common period, the revolution of the spindle.
    Hdd,
    /// Flash or memory: reads are fast, with the same latency at all addresses.
    Flash,
    /// Neither of the two.
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

/// A measured quantity and the prediction of the fitted preset.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Name of the quantity.
    pub title: String,
    /// Label of the horizontal axis.
    pub x: String,
    /// Label of the vertical axis.
    pub y: String,
    /// Points: (x, measured value, value of the fitted preset).
    pub points: Vec<(f64, f64, f64)>,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
}

/// Differences between latency distributions: the demerit figure of Ruemmler and Wilkes (1994).
/// Each is a fraction of the measured mean latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demerit {
    /// Difference between the device and the fitted model.
    pub fitted: f64,
    /// Difference between the device and the null model, a generic disk of the same capacity.
    pub generic: f64,
    /// Mean difference between two runs of the fitted model. It shows how much difference chance
    /// alone causes with this number of reads.
    pub chance: f64,
}

/// Result of a calibration.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Kind of device.
    pub kind: Kind,
    /// Why the device is of this kind.
    pub because: String,
    /// Name and provenance of the device.
    pub facts: crate::probe::Facts,
    /// Estimates in the order in which they were found. If a key occurs twice, the last estimate is
    /// valid.
    pub estimates: Vec<Estimate>,
    /// Measured quantities with the predictions of the fitted preset.
    pub curves: Vec<Curve>,
    /// Notes for the reader of the preset.
    pub notes: Vec<String>,
    /// Differences between the latencies of the device and of the fitted model.
    pub demerit: Option<Demerit>,
    /// Number of I/Os that were sent.
    pub ios: u64,
    /// Duration of the calibration on the probe's clock, s.
    pub seconds: f64,
    /// Reason why the calibration ended early, if it did.
    pub cut: Option<crate::probe::Stop>,
}

impl Fit {
    /// Returns the valid estimate of a parameter.
    pub fn get(&self, key: &str) -> Option<&Estimate> {
        self.estimates.iter().rev().find(|e| e.key == key)
    }
    /// Returns the value of a parameter if it is a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.number()
    }
}
