//! The published results, and the statistics that follow from them alone.

use seekwell_lab::analysis::{Analysis, ColumnOrder, analyse, column_order};
use seekwell_lab::import::{Input, Options, import};
use serde::{Deserialize, Serialize};

const TESTS: &str = include_str!("../../published/tests.csv");

/// What a test measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The disk is the bottleneck.
    Io,
    /// The processor is the bottleneck; the disk is idle.
    Cpu,
}

/// One row of the file of published results.
#[derive(Clone, Debug, Deserialize)]
struct Figure {
    system: String,
    workload: String,
    metric: String,
    unit: String,
    direction: String,
    scheduler: String,
    /// The digits as published, because they show the precision.
    value: String,
    error: String,
    kind_of_error: String,
    n: Option<u32>,
}

/// One row of `tests.csv`.
#[derive(Clone, Debug, Deserialize)]
struct Test {
    publication: String,
    system: String,
    workload: String,
    metric: String,
    run: String,
    figure: String,
    kind: Kind,
    fitted: String,
    group: String,
    quick_factor: f64,
    quick: String,
}

/// One published result: a test on one system under one scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct PublishedSide {
    /// Name of the scheduler.
    pub scheduler: String,
    /// The published value, in [`Published::unit`].
    pub value: f64,
    /// Digits of the value, as published.
    pub digits: String,
    /// The published error, in the unit of the value; `None` if none was published.
    pub error: Option<f64>,
    /// Kind of error: `SE` (standard error) or `SD` (standard deviation). Empty if none was
    /// published.
    pub kind_of_error: String,
    /// Number of runs; `None` if not published.
    pub n: Option<u32>,
}

/// Two published results of one test.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pair {
    /// Index of the first result in [`Published::sides`].
    pub one: usize,
    /// Index of the second result in [`Published::sides`].
    pub other: usize,
    /// First value divided by second value.
    pub ratio: f64,
    /// p value of Welch's test. `None` if no error was published, or if the result is computed from
    /// other published results.
    pub p: Option<f64>,
    /// `p` after Holm's correction for all pairs of the test.
    pub p_cell: Option<f64>,
    /// `p` after Holm's correction for all pairs of the publication.
    pub p_all: Option<f64>,
}

impl Pair {
    /// Smallest relative difference that is scored; smaller differences are only listed.
    pub const SCORED: f64 = 0.05;

    /// Returns whether p < 0.05 before correction.
    pub fn differs(&self) -> bool {
        self.p.is_some_and(|p| p < 0.05)
    }
    /// Returns whether p < 0.05 after Holm's correction within the test.
    pub fn holds(&self) -> bool {
        self.p_cell.is_some_and(|p| p < 0.05)
    }
    /// Returns whether the pair is scored: it is significant within its test and large enough.
    pub fn scored(&self) -> bool {
        self.holds() && (self.ratio - 1.0).abs() >= Self::SCORED
    }
}

/// A published test on one system, and the workload and results of our experiment that match it.
#[derive(Clone, Debug, Serialize)]
pub struct Published {
    /// Name of the system; the machine in our experiment has the same name.
    pub system: String,
    /// Name of the test, as published.
    pub workload: String,
    /// The measured quantity.
    pub metric: String,
    /// Unit, as published.
    pub unit: String,
    /// True if larger is better.
    pub higher_is_better: bool,
    /// Name of the workload in our experiment.
    pub run: String,
    /// Names of the results of one of our runs; the value of the run is their mean.
    pub figures: Vec<String>,
    /// Factor by which this mean is multiplied.
    pub times: f64,
    /// What the test measures.
    pub kind: Kind,
    /// True if a constant of the models was fitted to this test, or to a test of the same kind on
    /// the same drive.
    pub fitted: bool,
    /// Letter of the [`super::Effect`] that the differences of this test belong to; empty if none.
    pub group: String,
    /// Factor that converts results of the quick form to those of the full form.
    pub quick_factor: f64,
    /// What the quick form reduces; empty if it reduces nothing.
    pub quick: String,
    /// The published results, one per scheduler.
    pub sides: Vec<PublishedSide>,
    /// All pairs of published results.
    pub pairs: Vec<Pair>,
}

impl Published {
    /// Returns the test with its metric, such as `fs-mark 3.3: 1000 Files, 1MB Size (file creation
    /// rate)`. Omits the metric if it adds nothing.
    pub fn title(&self, again: bool) -> String {
        match again {
            true => format!("{} ({})", self.workload, self.metric),
            false => self.workload.clone(),
        }
    }
    /// Returns +1 if larger is better, and -1 if smaller is better.
    pub fn sign(&self) -> f64 {
        if self.higher_is_better { 1.0 } else { -1.0 }
    }
    /// Returns whether the result is computed from other published results, so that it is no
    /// separate test.
    pub fn derived(&self) -> bool {
        self.figures.len() > 1 || self.times != 1.0
    }
}

fn records<T: for<'a> Deserialize<'a>>(text: &str) -> Vec<T> {
    // A test checks that all rows of these built-in files parse.
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().filter_map(Result::ok).collect()
}

/// Parses a formula: `insert+update` is the mean of two results, `rate*3` is one result times 3.
fn figure(text: &str) -> (Vec<String>, f64) {
    let (names, times) = text.split_once('*').unwrap_or((text, "1"));
    let names = names.split('+').map(str::to_owned).collect();
    (names, times.parse().unwrap_or(1.0))
}

/// Reads the results of a publication, grouped by test, in published order.
pub(super) fn read(publication: &str, text: &str) -> Vec<Published> {
    let tests: Vec<Test> = records(TESTS);
    let mut all: Vec<Published> = Vec::new();
    for f in records::<Figure>(text) {
        let same = |p: &Published| {
            (&p.system, &p.workload, &p.metric) == (&f.system, &f.workload, &f.metric)
        };
        let at = all.iter().position(same).or_else(|| {
            let test = tests.iter().find(|t| {
                t.publication == publication
                    && (&t.system, &t.workload, &t.metric) == (&f.system, &f.workload, &f.metric)
            })?;
            all.push(published(&f, test));
            Some(all.len() - 1)
        });
        let (Some(at), Ok(value)) = (at, f.value.parse()) else {
            continue;
        };
        all[at].sides.push(PublishedSide {
            scheduler: f.scheduler,
            value,
            digits: f.value,
            error: f.error.parse().ok(),
            kind_of_error: f.kind_of_error.replace("none", ""),
            n: f.n,
        });
    }
    for p in &mut all {
        let values: Vec<f64> = p.sides.iter().map(|s| s.value).collect();
        for one in 0..values.len() {
            for other in one + 1..values.len() {
                p.pairs.push(Pair {
                    one,
                    other,
                    ratio: values[one] / values[other],
                    p: None,
                    p_cell: None,
                    p_all: None,
                });
            }
        }
    }
    let analysis = analysed(&all);
    for (i, p) in all.iter_mut().enumerate() {
        take_p(p, &analysis, &label(i));
    }
    all
}

fn published(f: &Figure, test: &Test) -> Published {
    let (figures, times) = figure(&test.figure);
    Published {
        system: f.system.clone(),
        workload: f.workload.clone(),
        metric: f.metric.clone(),
        unit: f.unit.clone(),
        higher_is_better: f.direction == "higher",
        run: test.run.clone(),
        figures,
        times,
        kind: test.kind,
        fitted: test.fitted == "yes",
        group: test.group.clone(),
        quick_factor: test.quick_factor,
        quick: test.quick.clone(),
        sides: Vec::new(),
        pairs: Vec::new(),
    }
}

fn label(at: usize) -> String {
    format!("test {at}")
}

/// Imports and analyses the published results that have errors, as for any other imported table.
fn analysed(all: &[Published]) -> Option<Analysis> {
    let mut text =
        "system,workload,metric,unit,direction,scheduler,value,error,kind_of_error,n\n".to_owned();
    let lines = text.len();
    for (i, p) in all.iter().enumerate().filter(|p| !p.1.derived()) {
        let better = if p.higher_is_better {
            "higher"
        } else {
            "lower"
        };
        for s in &p.sides {
            if let (Some(error), Some(n)) = (s.error, s.n) {
                let (name, digits, kind) = (label(i), &s.digits, &s.kind_of_error);
                text += &format!(
                    "{},{name},{},{},{better},{},{digits},{error},{kind},{n}\n",
                    p.system, p.metric, p.unit, s.scheduler
                );
            }
        }
    }
    if text.len() == lines {
        return None;
    }
    let input = Input::of_bytes("published.csv", text.into_bytes()).ok()?;
    let options = Options {
        format: Some("csv".to_owned()),
        ..Options::default()
    };
    import(&[input], &options).ok().map(|r| analyse(&r))
}

fn take_p(p: &mut Published, analysis: &Option<Analysis>, label: &str) {
    let Some(a) = analysis else { return };
    let named = |w: &str| w == label || w.strip_prefix(label).is_some_and(|r| r.starts_with(':'));
    let Some(cell) = a.cells.iter().find(|c| named(&c.workload)) else {
        return;
    };
    let place = |t: usize| {
        let name = a.treatments.get(t)?;
        p.sides.iter().position(|s| s.scheduler == *name)
    };
    let found: Vec<_> = cell
        .pairs
        .iter()
        .filter_map(|c| Some((place(c.one)?, place(c.other)?, c)))
        .collect();
    for pair in &mut p.pairs {
        let same = |(one, other, _): &&(usize, usize, _)| {
            (*one, *other) == (pair.one, pair.other) || (*other, *one) == (pair.one, pair.other)
        };
        if let Some((_, _, c)) = found.iter().find(same) {
            (pair.p, pair.p_cell, pair.p_all) = (c.p, c.p_cell, c.p_adjusted);
        }
    }
}

/// Counts how often the schedulers of each system rank in the order of the table's columns.
pub(super) fn column_orders(all: &[Published]) -> Vec<ColumnOrder> {
    analysed(all).map_or(Vec::new(), |a| column_order(&a))
}
