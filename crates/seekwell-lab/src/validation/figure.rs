//! A published figure beside what a model makes of it, and how the two are related.
//!
//! A row says how its figure relates to the model, because agreement means different things:
//! *fitted*, a parameter was set to meet it; *circular*, it follows from a parameter by the formula
//! the maker used too; *held out*, never used for fitting; *prediction*, nothing is published, the
//! reference is another implementation of the same description; *indicative*, the published
//! conditions are not known well enough for a bound. Held-out rows that miss stay as
//! they are: to mend them by a parameter would make them fitted.
//!
//! Beside each figure stands what a null model scores in the same measurement: a device of
//! constant latency that knows one number, the mean of the device's random 4 KiB reads.

use seekwell_core::{Device, MmcHost, Nanos, Op, Packing, rng};
use seekwell_device::probe::{Client, below, command};
use seekwell_device::{Constant, DeviceError, open};

/// One seed for all: the figures are means over enough requests for it not to matter.
pub const SEED: u64 = 13;

/// A measured value, or why there is none.
pub type Measured<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A device as [`open`] makes it.
pub type Opened = Box<dyn Device + Send>;

/// The largest error accepted, as a share, and where that number comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// One for all figures of a kind, whatever the error of each: [`Group::rule`].
    Rule(f64),
    /// The published range: no error beyond its ends is accepted.
    Range,
    /// Chosen after the measurement: for a held-out figure the error that it had when it was first
    /// computed, plus 3 points; for others a value set with the result at hand. That the model is
    /// within it says only that the error has not grown.
    After(f64),
    /// None: the published conditions are not known well enough.
    Any,
}

impl Bound {
    /// The error accepted; infinite where there is no bound.
    pub fn share(self) -> f64 {
        match self {
            Bound::Rule(share) | Bound::After(share) => share,
            Bound::Range => 0.0,
            Bound::Any => f64::INFINITY,
        }
    }
    /// Where it comes from, in words; empty where there is none.
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
    /// A parameter was set to meet it.
    Fitted,
    /// Never used for fitting.
    HeldOut,
    /// Follows from a parameter by the same formula.
    Circular,
    /// Nothing published; compared with another implementation.
    Prediction,
    /// Published under conditions too vague for a bound.
    Indicative,
}

impl Relation {
    /// In words.
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
    /// What a reader of the table has to know.
    pub note: &'static str,
    /// The bounds that hold for all figures of a kind ([`Bound::Rule`]); empty: there are none.
    pub rule: &'static str,
    /// Its rows.
    pub figures: &'static [Figure],
}

/// A published figure and how the model's is measured.
#[derive(Debug)]
pub struct Figure {
    /// As [`open`] takes it (`hdd:hitachi-7k500`).
    pub device: &'static str,
    /// What is measured.
    pub figure: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Published value twice, or range.
    pub published: (f64, f64),
    /// By whom.
    pub source: &'static str,
    /// How the figure relates to the model.
    pub relation: Relation,
    /// Largest error accepted.
    pub bound: Bound,
    /// Runs the measurement.
    pub measure: fn(&Bench) -> Measured<f64>,
}

/// A row of a table; see [`Figure`].
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

/// What a measurement runs on: the device as its model makes it, or the null model in its place.
#[derive(Debug, Clone)]
pub struct Bench {
    /// The device.
    pub spec: String,
    /// Is the null model asked?
    pub null: bool,
}

impl Bench {
    /// The device's own model.
    pub fn model(spec: &str) -> Self {
        Bench {
            spec: spec.to_owned(),
            null: false,
        }
    }
    /// The device, with further options (`",wc_idle=1000"`, or nothing).
    pub fn open(&self, options: &str) -> Result<Opened, DeviceError> {
        self.open_as(&format!("{}{options}", self.spec))
    }
    /// Any device: members of an array, for example.
    pub fn open_as(&self, spec: &str) -> Result<Opened, DeviceError> {
        let device = open(spec, SEED)?;
        if self.null { null(device) } else { Ok(device) }
    }
}

/// The null model of a device: its facts, and one latency for everything. A disk, or what serves
/// one command at a time, has one server; else every command has its own.
fn null(device: Opened) -> Result<Opened, DeviceError> {
    let mut facts = device.facts().clone();
    // It knows nothing of packed groups either.
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

/// A published figure beside the model's and the null model's.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was asked.
    pub figure: &'static Figure,
    /// The model's value.
    pub model: f64,
    /// The null model's.
    pub null: f64,
}

impl Row {
    /// How far a value is from the nearer end of the published range, as a share; 0 inside.
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
    /// The model's error, as a share.
    pub fn error(&self) -> f64 {
        self.error_of(self.model)
    }
    /// The null model's.
    pub fn null_error(&self) -> f64 {
        self.error_of(self.null)
    }
    /// Within its bound?
    pub fn holds(&self) -> bool {
        self.error().abs() <= self.figure.bound.share()
    }
}

impl Figure {
    /// Runs the measurement, on the model and on the null model.
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
