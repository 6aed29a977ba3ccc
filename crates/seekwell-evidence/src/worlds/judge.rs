//! Compares the real run with the simulated run row by row, and scores a null model.

use super::sides::Side;
use super::tally::Count;
use serde::Serialize;

/// Accepted difference in requests for small counts, because a commit timer can expire just before
/// or just after the end of the run. The help in `cli.rs` states this value.
const SLACK: u64 = 2;
/// Accepted difference in KiB for small counts.
const SLACK_KIB: u64 = 16;
/// Accepted relative difference for sync data, journal and flushes.
const SYNC: f64 = 0.05;
/// Accepted relative difference for written-back data, and for metadata written in place.
const META: f64 = 0.20;
/// Age in s at which the flusher writes dirty pages (vm.dirty_expire_centisecs).
const OLD_S: f64 = 30.0;
/// Accepted relative difference for throughput.
const RATE: f64 = 0.25;

/// One compared quantity.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the quantity.
    pub name: String,
    /// Unit of the values.
    pub unit: String,
    /// Value of the real run.
    pub real: f64,
    /// Value of the simulated run.
    pub sim: f64,
    /// Value of the null model.
    pub null: f64,
    /// Accepted relative difference; `None` if the row is only reported.
    pub limit: Option<f64>,
    /// Accepted absolute difference in `unit`. The larger of the two accepted differences applies.
    pub slack: f64,
    /// False if the row has a limit, but the run cannot be judged because the machine was busy.
    pub judged: bool,
}

impl Row {
    /// Returns the relative difference between the simulated and the real value.
    pub fn difference(&self) -> f64 {
        differ(self.sim, self.real)
    }
    fn within(&self, x: f64) -> Option<bool> {
        let limit = self.limit.filter(|_| self.judged)?;
        Some((x - self.real).abs() <= (self.real.abs() * limit).max(self.slack))
    }
    /// Returns whether the simulated value is within the limit; `None` if the row is not judged.
    pub fn agrees(&self) -> Option<bool> {
        self.within(self.sim)
    }
    /// Returns the limit in words, such as `5 % or 2`.
    pub fn allowed(&self) -> String {
        let share = self.limit.map(|l| format!("{:.0} %", l * 100.0));
        match share {
            Some(s) if self.slack > 0.0 => format!("{s} or {:.0}", self.slack),
            s => s.unwrap_or_default(),
        }
    }
    /// Returns whether the null model is within the limit; `None` if the row is not judged.
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

/// Comparison of one workload.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Name of the workload, with its parameters.
    pub workload: String,
    /// All compared quantities.
    pub rows: Vec<Row>,
    /// Notes for the reader.
    pub warnings: Vec<String>,
}

/// The null model: every fsync causes one write and one flush, and there is no other I/O. It has no
/// page cache, no journal and no disk mechanics, and every command takes the same time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null {
    /// Number of fsync and fdatasync calls.
    pub fsyncs: u64,
    /// The workload's metric on a disk with constant latency.
    pub rate: f64,
}

/// The rows by which a run can be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// All rows.
    All,
    /// Only rows that do not depend on time, because the machine was busy or the modelled disk was
    /// late. Both change the rate of a program.
    Counts,
    /// No rows, because the disk's behaviour is not known.
    Nothing,
}

/// Returns the limit for a kind of request, and whether `grounds` permit to judge the row. `s` is
/// the duration of the longer run in s.
fn limit_of(name: &str, workload: &str, grounds: Grounds, s: f64) -> Option<(f64, bool)> {
    let all = grounds == Grounds::All;
    let limit = match name {
        "sync data" | "journal" | "flush" => (SYNC, true),
        // Dirty data is written when it reaches this age, so the amount depends on the duration.
        "async data" | "metadata" => (META, all || s < OLD_S),
        // A faster reader with a fixed duration reads more.
        "read" if workload.starts_with("random-read") => (RATE, all),
        _ => return None,
    };
    Some(limit).filter(|_| grounds != Grounds::Nothing)
}

impl Verdict {
    /// Compares the real with the simulated side.
    pub fn compare(
        workload: String,
        real: &Side,
        sim: &Side,
        null: Null,
        grounds: Grounds,
    ) -> Self {
        let mut rows = Vec::new();
        for ((name, r), (_, s)) in real.tally.rows().into_iter().zip(sim.tally.rows()) {
            if r == Count::default() && s == Count::default() {
                continue;
            }
            let limit = limit_of(name, &workload, grounds, real.seconds.max(sim.seconds));
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
                limit: limit.map(|l| l.0),
                slack: slack as f64,
                judged: limit.is_some_and(|l| l.1),
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
            limit: (grounds != Grounds::Nothing).then_some(RATE),
            slack: 0.0,
            judged: grounds == Grounds::All,
        });
        let mut warnings = real.warnings.clone();
        warnings.extend(sim.warnings.iter().cloned());
        Verdict {
            workload,
            rows,
            warnings,
        }
    }
    /// Returns true if every row is within its limit, and false if any row is not. Returns `None`
    /// if no row has a limit, or if all judged rows agree but some rows could not be judged.
    pub fn agrees(&self) -> Option<bool> {
        let limited = || self.rows.iter().filter(|r| r.limit.is_some());
        if limited().any(|r| r.agrees() == Some(false)) {
            return Some(false);
        }
        (limited().count() > 0 && limited().all(|r| r.judged)).then_some(true)
    }
    /// Counts the judged rows, and those within their limits.
    pub fn score(&self) -> Score {
        let count = |f: &dyn Fn(&Row) -> bool| self.rows.iter().filter(|r| f(r)).count();
        Score {
            within: count(&|r| r.agrees() == Some(true)),
            null_within: count(&|r| r.null_agrees() == Some(true)),
            judged: count(&|r| r.agrees().is_some()),
            left: count(&|r| r.limit.is_some() && !r.judged),
        }
    }
}

/// Numbers of rows in one or more verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// Rows in which the simulation is within the limit.
    pub within: usize,
    /// Rows in which the null model is within the limit.
    pub null_within: usize,
    /// Judged rows.
    pub judged: usize,
    /// Rows with a limit that were not judged.
    pub left: usize,
}

impl Score {
    /// Returns the sum of two scores.
    pub fn plus(self, o: Score) -> Score {
        Score {
            within: self.within + o.within,
            null_within: self.null_within + o.null_within,
            judged: self.judged + o.judged,
            left: self.left + o.left,
        }
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
            let (real, sim) = (side(real, 100.0), side(sim, rate));
            let v = Verdict::compare("x".into(), &real, &sim, Null::default(), Grounds::All);
            v.agrees().expect("all is judged")
        };
        assert!(judge(100, 105, 100.0) && judge(100, 95, 124.0));
        assert!(!judge(100, 106, 100.0) && !judge(100, 94, 100.0));
        assert!(!judge(100, 100, 126.0) && !judge(100, 100, 74.0));
        // A difference of two requests is accepted.
        assert!(judge(4, 6, 100.0) && !judge(4, 7, 100.0));
    }

    #[test]
    fn the_allowance_for_small_counts_is_shown() {
        let (real, sim) = (side(2, 100.0), side(0, 100.0));
        let v = Verdict::compare("x".into(), &real, &sim, Null::default(), Grounds::All);
        let limits: Vec<String> = v.rows.iter().map(Row::allowed).collect();
        assert_eq!(limits, ["5 % or 2", "5 % or 16", "25 %"]);
        assert_eq!(v.rows[0].agrees(), Some(true), "2 against 0");
    }

    #[test]
    fn what_is_not_judged_is_no_pass() {
        let of = |real, sim, grounds| {
            let (real, sim) = (side(real, 100.0), side(sim, 10.0));
            Verdict::compare("x".into(), &real, &sim, Null::default(), grounds)
        };
        let all = of(100, 100, Grounds::All);
        assert_eq!(all.agrees(), Some(false), "the rate");
        let busy = of(100, 100, Grounds::Counts);
        assert_eq!(busy.agrees(), None);
        assert_eq!((busy.score().judged, busy.score().left), (2, 1));
        assert_eq!(of(100, 200, Grounds::Counts).agrees(), Some(false));
        let raw = of(100, 200, Grounds::Nothing);
        assert_eq!((raw.agrees(), raw.score()), (None, Score::default()));
        assert!(raw.rows.iter().all(|r| r.allowed().is_empty()));
    }

    #[test]
    fn the_null_is_scored_by_the_same_rows() {
        let null = Null {
            fsyncs: 0,
            rate: 10.0,
        };
        let (real, sim) = (side(100, 100.0), side(100, 100.0));
        let score = Verdict::compare("x".into(), &real, &sim, null, Grounds::All).score();
        assert_eq!((score.within, score.null_within, score.judged), (3, 0, 3));
    }
}
