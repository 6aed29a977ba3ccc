//! Published figures, the model's values, and the relation between them.
//!
//! Each row states how its figure relates to the model, because agreement has different meanings.
//! *Fitted*: a parameter was set to match the figure. *Circular*: the figure follows from a
//! parameter by the same formula that its publisher used. *Held out*: the figure was never used for
//! fitting. *Prediction*: nothing is published; the reference is another implementation of the same
//! description. *Indicative*: the published conditions are not known well enough for a bound.
//! Held-out rows that miss their bound stay as they are, because fixing them by a parameter would
//! make them fitted.
//!
//! Each figure is also measured on a null model: a device with constant latency, which has one
//! parameter, the mean of the device's random 4 KiB reads.

use seekwell_core::{Device, MmcHost, Nanos, Op, Packing, rng};
use seekwell_device::probe::{Client, below, command};
use seekwell_device::{Constant, DeviceError, open};

/// One seed for all: the figures are means over so many requests that the seed does not matter.
pub const SEED: u64 = 13;

/// A measured value, or the reason why there is none.
pub type Measured<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A device opened by [`open`].
pub type Opened = Box<dyn Device + Send>;

/// The largest accepted relative error, and the origin of this bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// One bound for all figures of a kind, whatever their errors: [`Group::rule`].
    Rule(f64),
    /// The published range; no error beyond its ends is accepted.
    Range,
    /// Chosen after the measurement. For a held-out figure it is the error of the first computation
    /// plus 3 points; for others it is a value set with the result known. Meeting it only shows
    /// that the error has not grown.
    After(f64),
    /// No bound: the published conditions are not known well enough.
    Any,
}

impl Bound {
    /// The accepted relative error; infinite without a bound.
    pub fn share(self) -> f64 {
        match self {
            Bound::Rule(share) | Bound::After(share) => share,
            Bound::Range => 0.0,
            Bound::Any => f64::INFINITY,
        }
    }
    /// The origin of the bound in words; empty without a bound.
    pub fn origin(self) -> &'static str {
        match self {
            Bound::Rule(_) => "rule",
            Bound::Range => "published range",
            Bound::After(_) => "chosen after the measurement",
            Bound::Any => "",
        }
    }
}

/// How a figure relates to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// A parameter was set to match it.
    Fitted,
    /// Never used for fitting.
    HeldOut,
    /// It follows from a parameter by the same formula.
    Circular,
    /// Nothing is published; it is compared with another implementation.
    Prediction,
    /// The published conditions are too vague for a bound.
    Indicative,
}

impl Relation {
    /// The relation in words.
    pub fn text(self) -> &'static str {
        match self {
            Relation::Fitted => "fitted",
            Relation::HeldOut => "held out",
            Relation::Circular => "circular",
            Relation::Prediction => "prediction",
            Relation::Indicative => "indicative",
        }
    }
}

/// The figures of one family of devices.
#[derive(Debug)]
pub struct Group {
    /// Its heading.
    pub title: &'static str,
    /// Notes for readers of the table.
    pub note: &'static str,
    /// The bounds for all figures of a kind ([`Bound::Rule`]); empty if there are none.
    pub rule: &'static str,
    /// Its rows.
    pub figures: &'static [Figure],
}

/// A published figure, and how the model's value is measured.
#[derive(Debug)]
pub struct Figure {
    /// Device in the syntax of [`open`] (`hdd:hitachi-7k500`).
    pub device: &'static str,
    /// The measured quantity.
    pub figure: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The published range; a single value appears twice.
    pub published: (f64, f64),
    /// Source of the figure.
    pub source: &'static str,
    /// How the figure relates to the model.
    pub relation: Relation,
    /// Largest accepted error.
    pub bound: Bound,
    /// Runs the measurement.
    pub measure: fn(&Bench) -> Measured<f64>,
}

/// Builds a row of a table; see [`Figure`].
#[allow(clippy::too_many_arguments)]
pub const fn row(
    device: &'static str,
    figure: &'static str,
    unit: &'static str,
    published: (f64, f64),
    source: &'static str,
    relation: Relation,
    bound: Bound,
    measure: fn(&Bench) -> Measured<f64>,
) -> Figure {
    Figure {
        device,
        figure,
        unit,
        published,
        source,
        relation,
        bound,
        measure,
    }
}

/// The device of a measurement: the device's model, or the null model in its place.
#[derive(Debug, Clone)]
pub struct Bench {
    /// The device.
    pub spec: String,
    /// Whether to use the null model.
    pub null: bool,
}

impl Bench {
    /// Uses the device's own model.
    pub fn model(spec: &str) -> Self {
        Bench {
            spec: spec.to_owned(),
            null: false,
        }
    }
    /// Opens the device with further options (`",wc_idle=1000"`, or empty).
    pub fn open(&self, options: &str) -> Result<Opened, DeviceError> {
        self.open_as(&format!("{}{options}", self.spec))
    }
    /// Opens any device, for example an array's members.
    pub fn open_as(&self, spec: &str) -> Result<Opened, DeviceError> {
        let device = open(spec, SEED)?;
        if self.null { null(device) } else { Ok(device) }
    }
}

/// The null model of a device: its facts, and a single latency. A disk, or a device that serves one
/// command at a time, has one server; otherwise all commands are served in parallel.
fn null(device: Opened) -> Result<Opened, DeviceError> {
    let mut facts = device.facts().clone();
    // The null model does not support packed groups either.
    facts.mmc = facts.mmc.map(|m| MmcHost {
        packing: Packing::Off,
        ..m
    });
    let mut rng = rng::stream(SEED, "null");
    let blocks = facts.capacity.0 / 8;
    let next = |_| command(Op::Read, below(&mut rng, blocks) * 8, 8);
    let mean = Client::new(device).run(400, 1, Nanos::ZERO, next).mean_ms();
    let latency = Nanos((mean * 1e6) as u64);
    let one = facts.rotational || facts.depth <= 2;
    let made = match one {
        true => Constant::serial(facts.depth, latency),
        false => Constant::parallel(facts.depth, latency),
    };
    Ok(Box::new(made.with_facts(facts)))
}

/// A published figure with the values of the model and the null model.
#[derive(Debug, Clone)]
pub struct Row {
    /// The published figure.
    pub figure: &'static Figure,
    /// The model's value.
    pub model: f64,
    /// The null model's value.
    pub null: f64,
}

impl Row {
    /// Relative distance of a value from the nearer end of the published range; 0 inside the range.
    fn error_of(&self, value: f64) -> f64 {
        let (lo, hi) = self.figure.published;
        if value < lo {
            value / lo - 1.0
        } else if value > hi {
            value / hi - 1.0
        } else {
            0.0
        }
    }
    /// The model's relative error.
    pub fn error(&self) -> f64 {
        self.error_of(self.model)
    }
    /// The null model's relative error.
    pub fn null_error(&self) -> f64 {
        self.error_of(self.null)
    }
    /// Whether the model is within the bound.
    pub fn holds(&self) -> bool {
        self.error().abs() <= self.figure.bound.share()
    }
}

impl Figure {
    /// Measures the model and the null model.
    pub fn run(&'static self) -> Measured<Row> {
        let value = |null| {
            let bench = Bench {
                null,
                ..Bench::model(self.device)
            };
            (self.measure)(&bench)
        };
        Ok(Row {
            figure: self,
            model: value(false)?,
            null: value(true)?,
        })
    }
}

impl Group {
    /// Runs every measurement of the table.
    pub fn run(&'static self) -> Measured<Vec<Row>> {
        self.figures.iter().map(Figure::run).collect()
    }
}
