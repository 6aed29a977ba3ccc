//! Data from the readers: runs and published figures, under the names in the files.

use super::{Format, ImportError, NameFrom, Place};
use crate::results::{MetricInfo, Outcome, Value};

/// Largest number of runs and figures.
const FIGURES_MAX: usize = 1_000_000;
/// Length limit for names, in characters.
const NAME_CHARS_MAX: usize = 200;
/// Largest accepted magnitude of a measurement; its reciprocal is the smallest.
const MAGNITUDE_MAX: f64 = 1e18;

/// Origin of a figure, as the file names it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Of {
    /// Column, system or configuration.
    pub system: String,
    /// Scheduler, if the format has a field for it.
    pub scheduler: String,
    /// Scheduler in the system's record; used if the name contains none.
    pub recorded: String,
    /// Device.
    pub device: String,
    /// Machine.
    pub machine: String,
    /// Test with its parameters.
    pub test: String,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HarvestRun {
    /// Its origin.
    pub of: Of,
    /// Block, if the file gives it.
    pub block: Option<u32>,
    /// How it ended.
    pub outcome: Outcome,
    /// Its values, the primary metric first.
    pub values: Vec<Value>,
    /// Start time in ns since 1970.
    pub began_unix_ns: Option<u64>,
    /// Duration in ns.
    pub duration_ns: u64,
}

/// A published figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HarvestFigure {
    /// Its origin.
    pub of: Of,
    /// The metric.
    pub metric: MetricInfo,
    /// Mean, with the unit of its last digit.
    pub mean: Number,
    /// Standard error.
    pub se: Option<Number>,
    /// Standard deviation of the runs.
    pub sd: Option<Number>,
    /// Number of runs.
    pub n: Option<u32>,
}

/// A run or a figure.
#[derive(Clone, Debug)]
pub enum Item {
    /// A run.
    Run(HarvestRun),
    /// A figure.
    Figure(HarvestFigure),
}

/// A number and the unit of its last written digit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Number {
    /// Its value: finite and of a plausible magnitude.
    pub value: f64,
    /// Unit of its last digit; `None` in exponent notation.
    pub step: Option<f64>,
}

/// A source file.
#[derive(Clone, Debug)]
pub struct From {
    /// Name of its format.
    pub format: &'static str,
    /// Name of the file.
    pub file: String,
    /// Where its scheduler is named unless the options say otherwise.
    pub scheduler_from: NameFrom,
}

/// The contents of all files.
#[derive(Debug, Default)]
pub struct Harvest {
    /// Files, in reading order.
    pub files: Vec<From>,
    /// Runs and figures, each with the index of its file.
    pub items: Vec<(usize, Item)>,
    /// Title of the results.
    pub title: String,
    /// Description in one sentence.
    pub description: String,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// Column names that the user supplied for a table that lost them.
    pub columns: Vec<String>,
}

impl Harvest {
    /// Starts a file; the following items belong to it.
    pub fn begin(&mut self, format: &Format, file: &str) {
        self.files.push(From {
            format: format.name,
            file: file.to_owned(),
            scheduler_from: format.scheduler_from,
        });
    }

    fn add(&mut self, item: Item) -> Result<(), ImportError> {
        if self.items.len() >= FIGURES_MAX {
            let file = self.files.last().map_or("", |f| f.file.as_str());
            return Err(ImportError {
                file: file.to_owned(),
                place: Place::File,
                what: format!("more than {FIGURES_MAX} figures; import it in parts"),
            });
        }
        self.items.push((self.files.len().saturating_sub(1), item));
        Ok(())
    }

    /// Adds a run; a run without values is a failed run.
    pub fn run(&mut self, run: HarvestRun) -> Result<(), ImportError> {
        self.add(Item::Run(run))
    }

    /// Adds a figure.
    pub fn figure(&mut self, figure: HarvestFigure) -> Result<(), ImportError> {
        self.add(Item::Figure(figure))
    }

    /// Adds a note, unless it is already present.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) && self.notes.len() < 100 {
            self.notes.push(text);
        }
    }

    /// Adds single runs of one metric as a tool lists them; a value that is no number is a failed
    /// run.
    pub fn runs_of(
        &mut self,
        of: &Of,
        metric: &MetricInfo,
        texts: &[&str],
    ) -> Result<(), ImportError> {
        for text in texts {
            let (values, outcome) = match number(text) {
                Ok(n) => (vec![value(metric.clone(), n.value, 0)], Outcome::Done),
                Err(why) => {
                    self.note(format!(
                        "{}, {}: {why}; counted as a run that failed",
                        short(&of.test),
                        short(&of.system)
                    ));
                    (vec![empty(metric.clone())], Outcome::Failed(why))
                }
            };
            self.run(HarvestRun {
                of: of.clone(),
                outcome,
                values,
                ..HarvestRun::default()
            })?;
        }
        Ok(())
    }
}

/// A metric's value.
pub fn value(metric: MetricInfo, value: f64, n: u64) -> Value {
    Value {
        metric: metric.into(),
        value,
        n,
    }
}

/// A placeholder that names the metric of a failed run.
fn empty(metric: MetricInfo) -> Value {
    value(metric, 0.0, 0)
}

/// Builds a metric.
pub fn metric(name: &str, unit: &str, higher_is_better: bool) -> MetricInfo {
    MetricInfo {
        name: short(name),
        unit: short(unit),
        higher_is_better,
        step: None,
    }
}

/// Checks that a number is a plausible measurement; otherwise returns the reason.
pub fn measured(x: f64) -> Result<f64, String> {
    if x.is_nan() {
        Err("not a number (nan)".to_owned())
    } else if x.is_infinite() {
        Err("infinite".to_owned())
    } else if x.abs() > MAGNITUDE_MAX {
        Err(format!("{x:e} is too large for a measurement"))
    } else if x != 0.0 && x.abs() < 1.0 / MAGNITUDE_MAX {
        Err(format!("{x:e} is too small for a measurement"))
    } else {
        Ok(x)
    }
}

/// Parses a number as people write it.
pub fn number(text: &str) -> Result<Number, String> {
    let t = text.trim();
    let value: f64 = t.parse().map_err(|_| {
        let said = short(t);
        match t {
            "" => "empty where a number should be".to_owned(),
            _ if t.replace(',', "").parse::<f64>().is_ok() => format!(
                "`{said}` has a comma; write {} or {}",
                said.replace(',', "."),
                said.replace(',', "")
            ),
            _ => format!("`{said}` is not a number"),
        }
    })?;
    let value = measured(value)?;
    let plain = !t.contains(['e', 'E']);
    let decimals = t.split_once('.').map_or(0, |p| p.1.len()).min(30) as i32;
    Ok(Number {
        value,
        step: plain.then(|| libm::pow(10.0, f64::from(-decimals))),
    })
}

/// Makes a name printable: removes control characters and limits its length.
pub fn short(name: &str) -> String {
    let printable = |c: char| {
        if seekwell_core::foreign::acts(c) {
            ' '
        } else {
            c
        }
    };
    let name: String = name.chars().map(printable).collect();
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((at, _)) => format!("{}...", &name[..at]),
        None => name,
    }
}

/// Whether higher is better, from a unit or a metric's name: times, latencies and sizes are better
/// low. `None` if the name does not show it.
pub fn better_by_words(unit: &str) -> Option<bool> {
    let unit = unit.trim().to_lowercase();
    let times = [
        "s",
        "sec",
        "secs",
        "second",
        "seconds",
        "ms",
        "msec",
        "milliseconds",
        "us",
        "usec",
        "microseconds",
        "ns",
        "nanoseconds",
        "minutes",
        "hours",
        "latency",
    ];
    let rate = unit.contains("/s") || unit.contains("per second") || unit.ends_with("ps");
    if rate {
        Some(true)
    } else if times.contains(&unit.as_str()) || unit.contains("latency") {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_unit_of_their_last_digit() {
        for (text, value, step) in [("36.00", 36.0, Some(0.01)), ("1388", 1388.0, Some(1.0))] {
            let n = number(text).expect("a number");
            assert_eq!((n.value, n.step), (value, step));
        }
        assert_eq!(number("1e3").map(|n| n.step), Ok(None));
    }

    #[test]
    fn what_is_no_measurement_is_said_in_words() {
        for (text, said) in [
            ("nan", "not a number"),
            ("-inf", "infinite"),
            ("1e300", "too large"),
            ("1e-300", "too small"),
            ("40,79", "write 40.79"),
            ("", "empty"),
            ("fast", "`fast` is not a number"),
        ] {
            let why = number(text).expect_err(text);
            assert!(why.contains(said), "{text}: {why}");
        }
        assert_eq!(short("a\u{1b}[31m b\n\tc"), "a [31m b c");
    }
}
