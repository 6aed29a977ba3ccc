//! The data that format readers extract: runs and published means, with the names from the files.

use super::{Format, ImportError, NameFrom, Place};
use crate::data::{MetricInfo, Outcome, Value};

/// Largest number of runs and means in one import.
const FIGURES_MAX: usize = 1_000_000;
/// Largest length of a name, in characters.
const NAME_CHARS_MAX: usize = 200;
/// Largest accepted magnitude of a value. The smallest accepted magnitude is its reciprocal.
const MAGNITUDE_MAX: f64 = 1e18;

/// The names that a file gives for a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Of {
    /// Name of the column, system or configuration.
    pub system: String,
    /// Scheduler; empty if the format has no field for it.
    pub scheduler: String,
    /// Scheduler in the system's description; used if the name contains no scheduler.
    pub recorded: String,
    /// Name of the device.
    pub device: String,
    /// Name of the machine.
    pub machine: String,
    /// Name of the test, with its parameters.
    pub test: String,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HarvestRun {
    /// Names of system, device and test.
    pub of: Of,
    /// Number of the block; `None` if the file has none.
    pub block: Option<u32>,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// The values; the primary metric comes first.
    pub values: Vec<Value>,
    /// Start time in ns since 1970; `None` if the file has none.
    pub began_unix_ns: Option<u64>,
    /// Duration in ns.
    pub duration_ns: u64,
}

/// A published mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HarvestFigure {
    /// Names of system, device and test.
    pub of: Of,
    /// The metric of the mean.
    pub metric: MetricInfo,
    /// Mean, with the unit of its last digit.
    pub mean: Number,
    /// Standard error of the mean.
    pub se: Option<Number>,
    /// Standard deviation of the runs.
    pub sd: Option<Number>,
    /// Number of runs; `None` if not published.
    pub n: Option<u32>,
}

/// A run or a published mean.
#[derive(Clone, Debug)]
pub enum Item {
    /// A run.
    Run(HarvestRun),
    /// A published mean.
    Figure(HarvestFigure),
}

/// A number, with the unit of its last printed digit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Number {
    /// The value, which is finite and of a plausible magnitude.
    pub value: f64,
    /// Unit of the last digit; `None` in exponent notation.
    pub step: Option<f64>,
}

/// A source file.
#[derive(Clone, Debug)]
pub struct From {
    /// Name of the file's format.
    pub format: &'static str,
    /// Name of the file.
    pub file: String,
    /// The kind of name that contains the scheduler, unless the options say otherwise.
    pub scheduler_from: NameFrom,
}

/// The data of all files.
#[derive(Debug, Default)]
pub struct Harvest {
    /// Files, in reading order.
    pub files: Vec<From>,
    /// Runs and published means, each with the index of its file.
    pub items: Vec<(usize, Item)>,
    /// Title of the results.
    pub title: String,
    /// Description in one sentence.
    pub description: String,
    /// Notes that are printed with the results.
    pub notes: Vec<String>,
    /// Column names from the user, for a table that has lost its column names.
    pub columns: Vec<String>,
}

impl Harvest {
    /// Starts a file. The items that follow belong to it.
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

    /// Adds a run. A run without values is a failed run.
    pub fn run(&mut self, run: HarvestRun) -> Result<(), ImportError> {
        self.add(Item::Run(run))
    }

    /// Adds a published mean.
    pub fn figure(&mut self, figure: HarvestFigure) -> Result<(), ImportError> {
        self.add(Item::Figure(figure))
    }

    /// Adds a note, unless the same note exists. Only the first 100 notes are kept.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) && self.notes.len() < 100 {
            self.notes.push(text);
        }
    }

    /// Adds the runs of one metric that a tool lists. A value that is not a number is a failed run.
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
                        "{}, {}: {why}; counted as a failed run",
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

/// Builds the value of a metric from `n` observations.
pub fn value(metric: MetricInfo, value: f64, n: u64) -> Value {
    Value {
        metric: metric.into(),
        value,
        n,
    }
}

/// Returns a value without a number that names the metric of a failed run.
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

/// Returns the number if it is a plausible measurement, otherwise the reason why it is not.
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

/// Parses a number in the notation that people use.
pub fn number(text: &str) -> Result<Number, String> {
    let t = text.trim();
    let value: f64 = t.parse().map_err(|_| {
        let said = short(t);
        match t {
            "" => "a number is missing".to_owned(),
            _ if t.replace(',', "").parse::<f64>().is_ok() => format!(
                "\"{said}\" has a comma; write {} or {}",
                said.replace(',', "."),
                said.replace(',', "")
            ),
            _ => format!("\"{said}\" is not a number"),
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

/// Makes a name printable: replaces control characters by spaces, and limits the length.
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

/// Returns whether higher is better, from the text of a unit or the name of a metric: true for
/// rates, false for times and latencies, and `None` for other texts.
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
    fn numbers_keep_the_step_of_their_last_digit() {
        for (text, value, step) in [("36.00", 36.0, Some(0.01)), ("1388", 1388.0, Some(1.0))] {
            let n = number(text).expect("a number");
            assert_eq!((n.value, n.step), (value, step));
        }
        assert_eq!(number("1e3").map(|n| n.step), Ok(None));
    }

    #[test]
    fn invalid_numbers_are_rejected_with_an_explanation() {
        for (text, said) in [
            ("nan", "not a number"),
            ("-inf", "infinite"),
            ("1e300", "too large"),
            ("1e-300", "too small"),
            ("40,79", "write 40.79"),
            ("", "a number is missing"),
            ("fast", "\"fast\" is not a number"),
        ] {
            let why = number(text).expect_err(text);
            assert!(why.contains(said), "{text}: {why}");
        }
        assert_eq!(short("a\u{1b}[31m b\n\tc"), "a [31m b c");
    }
}
