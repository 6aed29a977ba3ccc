//! The figures by which a trial compares schedulers.

use crate::data::MetricInfo;
use seekwell::result::Metric;
use seekwell_core::suggest;
use seekwell_host::observe::{Interval, MetricError, Side, UserMetric};

/// A figure of an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Mean latency of reads, ms.
    ReadMean,
    /// 99th percentile of the latency of reads, ms. It needs BPF.
    ReadP99,
    /// Mean latency of writes, ms.
    WriteMean,
    /// 99th percentile of the latency of writes, ms. It needs BPF.
    WriteP99,
    /// Completed reads and writes per second.
    Iops,
    /// MiB per second of reads and writes.
    Throughput,
    /// A metric that the user named, and its place among these.
    User(usize, UserMetric),
}

/// Figures that every trial measures.
pub const MEASURED: [Figure; 6] = [
    Figure::ReadMean,
    Figure::ReadP99,
    Figure::WriteMean,
    Figure::WriteP99,
    Figure::Iops,
    Figure::Throughput,
];

/// Smallest number of requests for a percentile: one of a hundred is beyond it.
const P99_LEAST: u64 = 100;

/// Parses the metrics of a command line: names of measured figures, or metrics of the user.
///
/// # Errors
/// A text is neither.
pub fn parse(given: &[String]) -> Result<Vec<Figure>, MetricError> {
    let mut all = Vec::new();
    let mut users = 0;
    for text in given {
        let known = MEASURED
            .iter()
            .find(|f| f.name().eq_ignore_ascii_case(text.trim()));
        let figure = match known {
            Some(f) => f.clone(),
            None if !text.contains(':') => {
                let names: Vec<String> = MEASURED.iter().map(Figure::name).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let what = format!("--metric {text}: unknown metric");
                return Err(MetricError(format!(
                    "{what}; {}",
                    suggest::remedy(text, &names, &[], "`seekwell trial --help`")
                )));
            }
            None => {
                let u = UserMetric::parse(text)
                    .map_err(|e| MetricError(format!("--metric {}", e.0)))?;
                users += 1;
                Figure::User(users - 1, u)
            }
        };
        if all.iter().any(|f: &Figure| f.name() == figure.name()) {
            return Err(MetricError(format!(
                "--metric {text}: two metrics have the name \"{}\"; name= sets another name",
                figure.name()
            )));
        }
        all.push(figure);
    }
    Ok(all)
}

fn mean_ms(s: &Side) -> Option<f64> {
    (s.ios > 0).then(|| s.wait_ns as f64 / s.ios as f64 / 1e6)
}

fn p99_ms(s: &Side) -> Option<f64> {
    let enough = s.latency.count() >= P99_LEAST;
    enough.then(|| s.latency.percentile_ns(99.0) as f64 / 1e6)
}

impl Figure {
    /// Returns the name in tables.
    pub fn name(&self) -> String {
        match self {
            Figure::ReadMean => "read mean",
            Figure::ReadP99 => "read p99",
            Figure::WriteMean => "write mean",
            Figure::WriteP99 => "write p99",
            Figure::Iops => "IOPS",
            Figure::Throughput => "throughput",
            Figure::User(_, m) => &m.name,
        }
        .to_owned()
    }
    /// Returns the text with which the user names the figure.
    pub fn text(&self) -> String {
        match self {
            Figure::User(_, m) => m.text.clone(),
            _ => self.name(),
        }
    }
    /// Returns the value in an interval; `None` if the interval has no such request or reading.
    pub fn value(&self, of: &Interval) -> Option<f64> {
        let seconds = of.span_ns as f64 / 1e9;
        let rate = |x: f64| (seconds > 0.0).then(|| x / seconds);
        match self {
            Figure::ReadMean => mean_ms(&of.read),
            Figure::ReadP99 => p99_ms(&of.read),
            Figure::WriteMean => mean_ms(&of.write),
            Figure::WriteP99 => p99_ms(&of.write),
            Figure::Iops => rate((of.read.ios + of.write.ios) as f64),
            Figure::Throughput => {
                rate((of.read.bytes + of.write.bytes) as f64 / f64::from(1 << 20))
            }
            Figure::User(i, _) => of.user_value(*i),
        }
    }
    /// Returns whether larger values are better.
    pub fn higher_is_better(&self) -> bool {
        match self {
            Figure::Iops | Figure::Throughput => true,
            Figure::User(_, m) => m.higher_is_better,
            _ => false,
        }
    }
    /// Returns the figure with a value, in the form of the record.
    pub fn metric(&self, value: f64, n: u64) -> Metric {
        let unit = match self {
            Figure::User(_, m) => {
                return Metric {
                    n,
                    ..m.metric(value)
                };
            }
            Figure::Iops => "I/Os/s",
            Figure::Throughput => "MiB/s",
            _ => "ms",
        };
        Metric {
            name: self.name(),
            unit: unit.to_owned(),
            value,
            higher_is_better: self.higher_is_better(),
            n,
            ..Metric::default()
        }
    }
    /// Returns the description of the figure.
    pub fn info(&self) -> MetricInfo {
        MetricInfo::from(&self.metric(0.0, 0))
    }
    /// Returns how many times worse the value is than the baseline: 2 means twice the latency, or half
    /// the rate.
    pub fn times_worse(&self, value: f64, baseline: f64) -> f64 {
        match self.higher_is_better() {
            true if value <= 0.0 => f64::INFINITY,
            true => baseline / value,
            false if baseline <= 0.0 => 1.0,
            false => value / baseline,
        }
    }
    /// Returns the figures that decide if the user names none: the latency of reads (of
    /// writes, if fewer than 10 % of the requests are reads), its p99 if known, the mean latency of
    /// the other direction if it has a request per second, and the IOPS.
    pub fn usual(of: &Interval) -> Vec<Figure> {
        // A program waits for its reads. Most writes are made in the background, so reads come
        // first unless they are rare. A few reads beside many writes can still be what a user
        // waits for.
        let reads = of.read.ios * 10 >= of.read.ios + of.write.ios;
        let (mean, p99, other, n) = match reads {
            true => (
                Figure::ReadMean,
                Figure::ReadP99,
                Figure::WriteMean,
                of.write.ios,
            ),
            false => (
                Figure::WriteMean,
                Figure::WriteP99,
                Figure::ReadMean,
                of.read.ios,
            ),
        };
        let mut all = vec![mean];
        if p99.value(of).is_some() {
            all.push(p99);
        }
        if n > 0 && n as f64 * 1e9 >= of.span_ns as f64 {
            all.push(other);
        }
        all.push(Figure::Iops);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(reads: u64, writes: u64) -> Interval {
        let side = |ios: u64| Side {
            ios,
            bytes: ios * 4096,
            wait_ns: ios * 2_000_000,
            ..Side::default()
        };
        Interval {
            span_ns: 2_000_000_000,
            read: side(reads),
            write: side(writes),
            ..Interval::default()
        }
    }

    #[test]
    fn figures_have_the_units_of_their_names() {
        let i = interval(256, 256);
        assert_eq!(Figure::ReadMean.value(&i), Some(2.0));
        assert_eq!(Figure::Iops.value(&i), Some(256.0));
        assert_eq!(Figure::Throughput.value(&i), Some(1.0));
        assert_eq!(Figure::ReadP99.value(&i), None, "no histogram");
        assert_eq!(Figure::WriteMean.value(&interval(1, 0)), None);
    }

    #[test]
    fn reads_decide_unless_they_are_rare() {
        assert_eq!(Figure::usual(&interval(10, 90))[0], Figure::ReadMean);
        assert_eq!(Figure::usual(&interval(9, 91))[0], Figure::WriteMean);
        // The interval has 2 s. One read in it is too rare, and two are not.
        let usual = |reads| Figure::usual(&interval(reads, 91));
        assert_eq!(usual(1), [Figure::WriteMean, Figure::Iops]);
        let both = [Figure::WriteMean, Figure::ReadMean, Figure::Iops];
        assert_eq!(usual(2), both);
    }

    #[test]
    fn worse_is_above_one_in_both_directions() {
        assert_eq!(Figure::ReadMean.times_worse(6.0, 2.0), 3.0);
        assert_eq!(Figure::Iops.times_worse(50.0, 100.0), 2.0);
        assert!(Figure::Iops.times_worse(0.0, 100.0).is_infinite());
    }

    #[test]
    fn metrics_are_named_figures_or_metrics_of_the_user() {
        let given = ["READ P99", "rate,name=tps:cat x"].map(str::to_owned);
        let all = parse(&given).expect("metrics");
        assert_eq!(
            (all[0].name(), all[1].name()),
            ("read p99".into(), "tps".into())
        );
        let e = parse(&["read p90".to_owned()]).expect_err("unknown").0;
        assert!(e.contains("read p99"), "{e}");
        let twice = ["IOPS", "iops"].map(str::to_owned);
        assert!(parse(&twice).expect_err("twice").0.contains("name="));
    }
}
