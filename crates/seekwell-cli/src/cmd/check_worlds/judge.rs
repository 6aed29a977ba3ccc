//! Do the worlds agree? Row by row, with what a prediction that knows nothing would have scored.

use super::sides::Side;
use super::tally::Count;
use serde::Serialize;

/// Rows of small counts may differ by so many requests.
const SLACK: u64 = 2;
/// ... and so many KiB: a small commit that its timer put on this or the other side of the end.
const SLACK_KIB: u64 = 16;
/// Share by which sync data, journal and flushes may differ.
const SYNC: f64 = 0.05;
/// Share for metadata at home.
const META: f64 = 0.20;
/// Share for throughput.
const RATE: f64 = 0.25;

/// One figure in both worlds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What.
    pub name: String,
    /// In which unit.
    pub unit: String,
    /// Real.
    pub real: f64,
    /// Simulated.
    pub sim: f64,
    /// A prediction that knows nothing.
    pub null: f64,
    /// Share by which they may differ; `None`: reported only.
    pub limit: Option<f64>,
    /// Slack in the row's unit beside the share.
    pub slack: f64,
}

impl Row {
    /// Simulated against real, as a share.
    pub fn difference(&self) -> f64 {
        differ(self.sim, self.real)
    }
    fn within(&self, x: f64) -> Option<bool> {
        let limit = self.limit?;
        Some((x - self.real).abs() <= (self.real.abs() * limit).max(self.slack))
    }
    /// Within the limit?
    pub fn agrees(&self) -> Option<bool> {
        self.within(self.sim)
    }
    /// Would the null have been?
    pub fn null_agrees(&self) -> Option<bool> {
        self.within(self.null)
    }
}

fn differ(a: f64, b: f64) -> f64 {
    match b == 0.0 {
        true if a == 0.0 => 0.0,
        true => f64::INFINITY,
        false => a / b - 1.0,
    }
}

/// A workload in both worlds.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// With its parameters.
    pub workload: String,
    /// All figures.
    pub rows: Vec<Row>,
    /// What to keep in mind.
    pub warnings: Vec<String>,
}

/// What knows nothing of page cache, journal and disk: every fsync is one write and one flush,
/// and nothing else is asked; the disk takes the same time for every command.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null {
    /// fsync and its like.
    pub fsyncs: u64,
    /// Metric on the disk of constant time.
    pub rate: f64,
}

impl Verdict {
    /// Compares. `busy`: the machine had no time for the program, so its rate says nothing.
    pub fn of(workload: String, real: &Side, sim: &Side, null: Null, busy: bool) -> Self {
        let mut rows = Vec::new();
        for ((name, r), (_, s)) in real.tally.rows().into_iter().zip(sim.tally.rows()) {
            if r == Count::default() && s == Count::default() {
                continue;
            }
            let limit = match name {
                "sync data" | "journal" | "flush" => Some(SYNC),
                // A reader that runs for a fixed time reads as often as it is fast.
                "read" if workload.starts_with("random-read") && !busy => Some(RATE),
                "metadata" => Some(META),
                _ => None,
            };
            let guess = match name {
                "sync data" | "flush" => null.fsyncs,
                _ => 0,
            };
            let row = |unit: &str, real: u64, sim: u64, null: u64, slack: u64| Row {
                name: name.to_owned(),
                unit: unit.to_owned(),
                real: real as f64,
                sim: sim as f64,
                null: null as f64,
                limit,
                slack: slack as f64,
            };
            rows.push(row("requests", r.requests, s.requests, guess, SLACK));
            if r.bytes + s.bytes > 0 {
                let kib = |b: u64| b / 1024;
                let guess = guess * 4;
                rows.push(row("KiB", kib(r.bytes), kib(s.bytes), guess, SLACK_KIB));
            }
        }
        rows.push(Row {
            name: "throughput".to_owned(),
            unit: real.unit.clone(),
            real: real.metric,
            sim: sim.metric,
            null: null.rate,
            limit: (!busy).then_some(RATE),
            slack: 0.0,
        });
        let mut warnings = real.warnings.clone();
        warnings.extend(sim.warnings.iter().cloned());
        Verdict {
            workload,
            rows,
            warnings,
        }
    }
    /// Every row that has a limit keeps it.
    pub fn agrees(&self) -> bool {
        self.rows.iter().all(|r| r.agrees() != Some(false))
    }
    /// (rows within their limit, rows of the null within, rows with a limit).
    pub fn score(&self) -> (usize, usize, usize) {
        let with = self.rows.iter().filter(|r| r.limit.is_some());
        let count =
            |f: fn(&Row) -> Option<bool>| self.rows.iter().filter(|r| f(r) == Some(true)).count();
        (count(Row::agrees), count(Row::null_agrees), with.count())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::Tally;
    use super::*;

    fn side(requests: u64, metric: f64) -> Side {
        Side {
            tally: Tally {
                journal: Count {
                    requests,
                    bytes: requests * 4096,
                },
                ..Tally::default()
            },
            metric,
            ..Side::default()
        }
    }

    #[test]
    fn shares_and_slack() {
        let judge = |real: u64, sim: u64, rate: f64| {
            Verdict::of(
                "x".into(),
                &side(real, 100.0),
                &side(sim, rate),
                Null::default(),
                false,
            )
            .agrees()
        };
        assert!(judge(100, 105, 100.0) && judge(100, 95, 124.0));
        assert!(!judge(100, 106, 100.0) && !judge(100, 94, 100.0));
        assert!(!judge(100, 100, 126.0) && !judge(100, 100, 74.0));
        // Two requests more or less decide nothing.
        assert!(judge(4, 6, 100.0) && !judge(4, 7, 100.0));
    }

    #[test]
    fn the_null_is_scored_by_the_same_rows() {
        let null = Null {
            fsyncs: 0,
            rate: 10.0,
        };
        let v = Verdict::of(
            "x".into(),
            &side(100, 100.0),
            &side(100, 100.0),
            null,
            false,
        );
        assert_eq!(v.score(), (3, 0, 3));
    }
}
