//! Published results, the model's values, and the relation between them.
//!
//! Agreement has a different meaning for each kind of published result, so each row states its
//! kind:
//!
//! * *Fitted*: a parameter was chosen so that the model gives this result.
//! * *Circular*: the result follows from a parameter by the formula that its publisher used.
//! * *Held out*: the result was never used for fitting.
//! * *Prediction*: nothing is published; the model is compared with another implementation of the
//!   same description.
//! * *Indicative*: the published conditions are not known well enough for a bound.
//!
//! If a held-out row exceeds its bound, the model is not changed, because the row would then be
//! fitted.
//!
//! The null model is a device with constant latency, namely the mean latency of the device's random
//! 4 KiB reads. Each measurement also runs on the null model.

use seekwell_core::{Device, MmcHost, Nanos, Op, Packing, rng};
use seekwell_device::probe::{Client, below, command};
use seekwell_device::{Constant, DeviceError, open};

/// Seed of all measurements. Each measurement averages so many requests that the seed has no
/// effect.
pub const SEED: u64 = 13;

/// A measured value, or the reason why the measurement failed.
pub type Measured<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A device that [`open`] returned.
pub type Opened = Box<dyn Device + Send>;

/// The largest accepted relative error, and its origin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// The bound for all results of a kind, set without knowledge of their errors: [`Group::rule`].
    Rule(f64),
    /// The model's value must be inside the published range.
    Range,
    /// A bound chosen after the measurement, which shows only whether the error has grown. For a
    /// held-out result it is the error of the first computation plus 3 percentage points.
    After(f64),
    /// No bound: the published conditions are not known well enough.
    Any,
}

impl Bound {
    /// Returns the largest accepted relative error; infinite without a bound.
    pub fn share(self) -> f64 {
        match self {
            Bound::Rule(share) | Bound::After(share) => share,
            Bound::Range => 0.0,
            Bound::Any => f64::INFINITY,
        }
    }
    /// Returns the origin of the bound in words; empty without a bound.
    pub fn origin(self) -> &'static str {
        match self {
            Bound::Rule(_) => "rule",
            Bound::Range => "published range",
            Bound::After(_) => "chosen after the measurement",
            Bound::Any => "",
        }
    }
}

/// The relation between a published result and the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// A parameter was chosen so that the model gives this result.
    Fitted,
    /// The result was never used for fitting.
    HeldOut,
    /// The result follows from a parameter by the formula that its publisher used.
    Circular,
    /// Nothing is published; the model is compared with another implementation.
    Prediction,
    /// The published conditions are not known well enough for a bound.
    Indicative,
}

impl Relation {
    /// Returns the relation in words.
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

/// The published results for one family of devices.
#[derive(Debug)]
pub struct Group {
    /// Heading of the table.
    pub title: &'static str,
    /// Notes printed above the table.
    pub note: &'static str,
    /// Describes the bounds that apply to all results of a kind ([`Bound::Rule`]); empty if none.
    pub rule: &'static str,
    /// The published results.
    pub figures: &'static [Figure],
}

/// A published result, and the measurement that gives the model's value.
#[derive(Debug)]
pub struct Figure {
    /// Device in the syntax of [`open`], such as `hdd:hitachi-7k500`.
    pub device: &'static str,
    /// The measured quantity.
    pub figure: &'static str,
    /// Unit of the quantity.
    pub unit: &'static str,
    /// The published range; both ends are equal if one value was published.
    pub published: (f64, f64),
    /// Source of the published result.
    pub source: &'static str,
    /// Relation between the published result and the model.
    pub relation: Relation,
    /// Largest accepted relative error.
    pub bound: Bound,
    /// Runs the measurement.
    pub measure: fn(&Bench) -> Measured<f64>,
}

/// Builds a [`Figure`].
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

/// Selects the device that is measured: the model, or the null model in its place.
#[derive(Debug, Clone)]
pub struct Bench {
    /// Specification of the device, in the syntax of [`open`].
    pub spec: String,
    /// True for the null model.
    pub null: bool,
}

impl Bench {
    /// Selects the model of a device.
    pub fn model(spec: &str) -> Self {
        Bench {
            spec: spec.to_owned(),
            null: false,
        }
    }
    /// Opens the device with additional options, such as `",wc_idle=1000"`; may be empty.
    pub fn open(&self, options: &str) -> Result<Opened, DeviceError> {
        self.open_as(&format!("{}{options}", self.spec))
    }
    /// Opens the device `spec`, for example a member of an array.
    pub fn open_as(&self, spec: &str) -> Result<Opened, DeviceError> {
        let device = open(spec, SEED)?;
        if self.null { null(device) } else { Ok(device) }
    }
}

/// Returns the null model of a device: the same facts, but one constant latency. A hard disk, or a
/// device with depth 1 or 2, serves one command at a time. Other devices serve all commands in
/// parallel.
fn null(device: Opened) -> Result<Opened, DeviceError> {
    let mut facts = device.facts().clone();
    // The null model does not support packed commands.
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

/// A published result, with the values of the model and of the null model.
#[derive(Debug, Clone)]
pub struct Row {
    /// The published result.
    pub figure: &'static Figure,
    /// Value of the model.
    pub model: f64,
    /// Value of the null model.
    pub null: f64,
}

impl Row {
    /// Returns the relative distance from the nearer end of the published range; 0 inside the
    /// range.
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
    /// Returns the relative error of the model.
    pub fn error(&self) -> f64 {
        self.error_of(self.model)
    }
    /// Returns the relative error of the null model.
    pub fn null_error(&self) -> f64 {
        self.error_of(self.null)
    }
    /// Returns whether the error of the model is within the bound.
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
    /// Runs all measurements of the table.
    pub fn run(&'static self) -> Measured<Vec<Row>> {
        self.figures.iter().map(Figure::run).collect()
    }
}
