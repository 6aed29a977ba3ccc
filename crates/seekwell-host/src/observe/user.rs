//! Metrics that the user names: a command that prints a number, a series of a Prometheus endpoint,
//! or a number in the lines of a log file.

use super::source::Source;
use seekwell_core::result::Metric;
use std::time::Instant;
use thiserror::Error;

/// Why a metric is not usable.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct MetricError(pub String);

pub(super) fn wrong(what: impl Into<String>) -> MetricError {
    MetricError(what.into())
}

/// How readings become a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The source counts up; the value is the increase per second.
    Rate,
    /// The value is the mean of the readings.
    Value,
}

/// A metric that the user names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMetric {
    /// Name in tables.
    pub name: String,
    /// True if larger values are better.
    pub higher_is_better: bool,
    /// The text that the user typed.
    pub text: String,
    kind: Kind,
    source: Source,
}

const FORM: &str = "write rate:SOURCE for a counter, or value,lower:SOURCE (value,higher:SOURCE) for \
                    a number that is averaged. SOURCE is a shell command, http://HOST:PORT/PATH SERIES, \
                    or log:FILE REGEX";

impl UserMetric {
    /// Parses `rate:SOURCE`, `value,lower:SOURCE` and `value,higher:SOURCE`. `rate,lower:` is a
    /// counter whose increase is bad. `,name=NAME` before the colon sets the name.
    ///
    /// # Errors
    /// The text has another form. The error says which form is expected.
    pub fn parse(text: &str) -> Result<UserMetric, MetricError> {
        let bad = |why: &str| wrong(format!("{text}: {why}; {FORM}"));
        let (words, source) = text.split_once(':').ok_or_else(|| bad("it has no colon"))?;
        let mut words = words.split(',').map(str::trim);
        let kind = match words.next() {
            Some("rate") => Kind::Rate,
            Some("value") => Kind::Value,
            other => {
                let other = other.unwrap_or_default();
                return Err(bad(&format!("\"{other}\" is not a kind of metric")));
            }
        };
        let (mut higher, mut name) = (None, None);
        for w in words {
            match w.split_once('=') {
                Some(("name", n)) if !n.is_empty() => name = Some(n.to_owned()),
                _ if w == "higher" => higher = Some(true),
                _ if w == "lower" => higher = Some(false),
                _ => return Err(bad(&format!("\"{w}\" is not known"))),
            }
        }
        let source = Source::parse(source.trim()).map_err(|e| bad(&e.0))?;
        if kind == Kind::Rate && source.averages() {
            return Err(bad("a log has no counter"));
        }
        let higher_is_better = match (higher, kind) {
            (Some(h), _) => h,
            (None, Kind::Rate) => true,
            (None, Kind::Value) => return Err(bad("it does not say which values are better")),
        };
        Ok(UserMetric {
            name: name.unwrap_or_else(|| source.short_name()),
            higher_is_better,
            text: text.to_owned(),
            kind,
            source,
        })
    }

    /// Returns the metric with a value, in the form of the record.
    pub fn metric(&self, value: f64) -> Metric {
        Metric {
            name: self.name.clone(),
            unit: match self.kind {
                Kind::Rate => "/s".to_owned(),
                Kind::Value => String::new(),
            },
            value,
            higher_is_better: self.higher_is_better,
            ..Metric::default()
        }
    }
}

/// A metric that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    metric: UserMetric,
    last: Option<(f64, Instant)>,
    /// Position in a log file, bytes.
    offset: u64,
}

impl Reading {
    pub fn new(metric: &UserMetric) -> Self {
        Reading {
            metric: metric.clone(),
            last: None,
            offset: 0,
        }
    }

    fn said(&self, e: MetricError) -> MetricError {
        wrong(format!("--metric {}: {}", self.metric.text, e.0))
    }

    /// Reads the source once, so that a wrong metric is found before the measurement.
    pub fn begin(&mut self) -> Result<(), MetricError> {
        match self.metric.source.log_length() {
            Some(length) => self.offset = length.map_err(|e| self.said(e))?,
            None => {
                let value = self.metric.source.read().map_err(|e| self.said(e))?;
                self.last = Some((value, Instant::now()));
            }
        }
        Ok(())
    }

    /// Returns the sum and the weight of the readings since the previous call. `None` if there is
    /// no reading. A counter that decreased was restarted, so that interval has no value.
    pub fn read(&mut self) -> Result<Option<(f64, f64)>, MetricError> {
        if self.metric.source.averages() {
            let found = self.metric.source.new_lines(&mut self.offset);
            return found.map_err(|e| self.said(e));
        }
        let value = self.metric.source.read().map_err(|e| self.said(e))?;
        let now = Instant::now();
        let last = self.last.replace((value, now));
        Ok(match (self.metric.kind, last) {
            (Kind::Value, _) => Some((value, 1.0)),
            (Kind::Rate, Some((before, then))) if value >= before => {
                Some((value - before, (now - then).as_secs_f64()))
            }
            (Kind::Rate, _) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_states_its_kind_direction_and_source() {
        let m = UserMetric::parse("rate,name=tps: psql -Atc 'select 1'").expect("a metric");
        assert_eq!((m.name.as_str(), m.higher_is_better), ("tps", true));
        assert_eq!(m.metric(2.0).unit, "/s");
        let m = UserMetric::parse("value,lower:log:/var/log/a took=([0-9]+)").expect("a metric");
        assert!(!m.higher_is_better);
        for (text, why) in [
            ("psql", "no colon"),
            ("sum:x", "not a kind"),
            ("value:cat x", "which values are better"),
            ("rate,big:x", "not known"),
            ("rate:", "is empty"),
            ("rate:log:/x ([0-9])", "no counter"),
            ("value,lower:log:/x [0-9]", "parentheses"),
            ("rate:http://h:1/m", "SERIES"),
        ] {
            let e = UserMetric::parse(text).expect_err(text).0;
            assert!(e.contains(why) && e.contains("rate:SOURCE"), "{text}: {e}");
        }
    }

    #[test]
    fn counter_becomes_a_rate_and_a_restart_has_no_value() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("n");
        std::fs::write(&file, "10").expect("written");
        let m = UserMetric::parse(&format!("rate:cat {}", file.display())).expect("a metric");
        let mut r = Reading::new(&m);
        r.begin().expect("readable");
        std::fs::write(&file, "25").expect("written");
        let (sum, seconds) = r.read().expect("readable").expect("a value");
        assert!(sum == 15.0 && seconds > 0.0);
        std::fs::write(&file, "3").expect("written");
        assert_eq!(r.read(), Ok(None), "a restarted counter");
        std::fs::remove_file(&file).expect("removed");
        let e = r.read().expect_err("no file").0;
        assert!(e.contains("--metric") && e.contains("No such file"), "{e}");
    }
}
