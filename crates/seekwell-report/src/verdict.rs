//! A verdict in words, that claims no more than the runs can carry.
//!
//! Each run is deterministic, so there is no spread to test against: what another seed, another
//! disk of the same model or a slightly different program would change is not known from it.
//! Differences below [`SAME_PERCENT`] are therefore called none.

use crate::units::{three, time_ns};
use seekwell_core::result::{Direction, Record};

/// Runs closer than this are not told apart, per cent. Another seed moves a random reader on the
/// modelled disks by about one per cent.
pub const SAME_PERCENT: f64 = 2.0;

/// What runs are compared by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    /// The workload's own metric.
    Metric,
    /// Time for the same work.
    Duration,
    /// Mean latency of reads.
    ReadLatency,
    /// Mean latency of writes.
    WriteLatency,
}

/// Who is ahead, and by how much.
#[derive(Clone, Debug)]
pub struct Verdict {
    by: By,
    higher_is_better: bool,
    /// Value and index, best first.
    order: Vec<(f64, usize)>,
}

/// The verdict over runs of the same work; `None` for fewer than two.
pub fn of(records: &[Record]) -> Option<Verdict> {
    let first = records.first().filter(|_| records.len() > 1)?;
    let mode = first
        .params
        .get("mode")
        .map(String::as_str)
        .unwrap_or_default();
    let reads = records.iter().all(|r| r.read.ios > 0);
    let by = if first.metric.is_some() {
        By::Metric
    } else if mode.starts_with("depth") || mode == "closed" {
        // The work is given and the time is what it takes.
        By::Duration
    } else if reads {
        By::ReadLatency
    } else {
        By::WriteLatency
    };
    let higher_is_better = first.metric.as_ref().is_some_and(|m| m.higher_is_better);
    let value = |r: &Record| match by {
        By::Metric => r.metric.as_ref().map_or(0.0, |m| m.value),
        By::Duration => r.duration_ns as f64,
        By::ReadLatency => r.read.latency.mean_ns(),
        By::WriteLatency => r.write.latency.mean_ns(),
    };
    let mut order: Vec<_> = records
        .iter()
        .enumerate()
        .map(|(i, r)| (value(r), i))
        .collect();
    // Equal values keep the order in which they were asked for.
    order.sort_by(|a, b| {
        if higher_is_better {
            b.0.total_cmp(&a.0)
        } else {
            a.0.total_cmp(&b.0)
        }
    });
    Some(Verdict {
        by,
        higher_is_better,
        order,
    })
}

impl Verdict {
    /// How much worse than the best, per cent of the best.
    fn behind(&self, value: f64) -> f64 {
        let best = self.order.first().map_or(0.0, |o| o.0);
        let (high, low) = if best > value {
            (best, value)
        } else {
            (value, best)
        };
        if low <= 0.0 {
            // Both nothing, or one of them nothing at all.
            if high <= 0.0 { 0.0 } else { f64::INFINITY }
        } else {
            (high / low - 1.0) * 100.0
        }
    }
    /// The index of the run that is ahead of all others, if there is one.
    pub fn winner(&self) -> Option<usize> {
        let second = self.order.get(1)?;
        (self.behind(second.0) > SAME_PERCENT).then(|| self.order[0].1)
    }
    fn value(&self, v: f64, r: &Record) -> String {
        match (self.by, &r.metric) {
            (By::Metric, Some(m)) => format!("{} {}", three(v), m.unit),
            _ => time_ns(v),
        }
    }
    fn measure(&self, r: &Record) -> String {
        match (self.by, &r.metric) {
            (By::Metric, Some(m)) => m.name.clone(),
            (By::Metric, None) => String::new(),
            (By::Duration, _) => "time for the same work".to_owned(),
            (By::ReadLatency, _) => "mean read latency".to_owned(),
            (By::WriteLatency, _) => "mean write latency".to_owned(),
        }
    }

    /// In words.
    pub fn words(&self, records: &[Record]) -> String {
        let name = |i: usize| records[i].scheduler.spec.as_str();
        let (best, worst) = (self.order[0], self.order[self.order.len() - 1]);
        let first = &records[best.1];
        let what = self.measure(first);
        let seed = first.seed;
        let rests = format!("One deterministic run each, seed {seed}.");
        if worst.0 == best.0 {
            return format!(
                "no difference: {what} is {} under all. {rests}",
                self.value(best.0, first)
            );
        }
        if self.behind(worst.0) <= SAME_PERCENT {
            return format!(
                "no difference. By {what} all lie within {:.1} % of each other ({} to {}), less \
                 than the {SAME_PERCENT:.0} % that another seed may change. {rests}",
                self.behind(worst.0),
                self.value(best.0, first),
                self.value(worst.0, &records[worst.1])
            );
        }
        let same = self
            .order
            .iter()
            .filter(|o| self.behind(o.0) <= SAME_PERCENT);
        let leaders: Vec<_> = same.map(|o| name(o.1)).collect();
        let verb = if leaders.len() > 1 {
            format!("are level (within {SAME_PERCENT:.0} %) and ahead")
        } else {
            "is ahead".to_owned()
        };
        let mut text = format!(
            "by {what}, {} {verb} with {}",
            list(&leaders),
            self.value(best.0, first)
        );
        if let Some(next) = self.order.get(leaders.len())
            && next.1 != worst.1
        {
            let value = self.value(next.0, &records[next.1]);
            text += &format!(
                "; next is {} with {value} ({})",
                name(next.1),
                self.distance(next.0)
            );
        }
        let worst_value = self.value(worst.0, &records[worst.1]);
        text += &format!(
            "; last is {} with {worst_value} ({}). ",
            name(worst.1),
            self.distance(worst.0)
        );
        text += &self.tail(records, best.1);
        text + &rests
    }

    /// Means can hide what users feel: says so if another run has a far better worst case.
    fn tail(&self, records: &[Record], best: usize) -> String {
        let p99 = |d: &Direction| (d.ios >= 1000).then(|| d.latency.percentile_ns(99.0));
        let Some(own) = p99(&records[best].read) else {
            return String::new();
        };
        let others = records.iter().enumerate().filter(|r| r.0 != best);
        let calm = others.filter_map(|(i, r)| Some((p99(&r.read)?, i))).min();
        match calm {
            Some((ns, i)) if ns * 10 < own * 9 => format!(
                "But its slowest hundredth of reads takes {} or more, against {} under {}. ",
                time_ns(own as f64),
                time_ns(ns as f64),
                records[i].scheduler.spec
            ),
            _ => String::new(),
        }
    }

    fn distance(&self, value: f64) -> String {
        let behind = self.behind(value);
        let lower = self.higher_is_better;
        let word = match (self.by, lower) {
            (By::Metric, true) => "lower",
            (By::Metric, false) => "higher",
            _ => "longer",
        };
        if !behind.is_finite() {
            "beyond comparison".to_owned()
        } else if behind >= 100.0 {
            format!("{:.1} times {word}", behind / 100.0 + 1.0)
        } else if lower {
            // Per cent of the best.
            format!("{:.0} % {word}", behind / (100.0 + behind) * 100.0)
        } else {
            format!("{behind:.0} % {word}")
        }
    }
}

fn list(names: &[&str]) -> String {
    match names {
        [one] => (*one).to_owned(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_core::result::Metric;

    fn run(name: &str, value: f64) -> Record {
        let mut r = Record::default();
        r.scheduler.spec = name.to_owned();
        r.seed = 7;
        r.metric = Some(Metric {
            name: "seeks".to_owned(),
            unit: "seeks/s".to_owned(),
            value,
            higher_is_better: true,
        });
        r
    }

    fn words(runs: &[Record]) -> String {
        of(runs).expect("two runs").words(runs)
    }

    #[test]
    fn close_runs_are_not_told_apart() {
        let runs = [run("noop", 75.0), run("cfq", 76.4)];
        let text = words(&runs);
        assert!(text.starts_with("no difference"), "{text}");
        assert!(text.contains("1.9 %") && text.contains("seed 7"), "{text}");
        assert_eq!(of(&runs).unwrap().winner(), None);
    }

    #[test]
    fn the_best_is_named_with_its_distance() {
        let runs = [
            run("noop", 50.0),
            run("cfq", 100.0),
            run("bfq", 99.0),
            run("sio", 80.0),
        ];
        let text = words(&runs);
        assert!(
            text.contains("cfq and bfq are level (within 2 %) and ahead"),
            "{text}"
        );
        assert!(
            text.contains("next is sio with 80.0 seeks/s (20 % lower)"),
            "{text}"
        );
        assert!(
            text.contains("last is noop with 50.0 seeks/s (2.0 times lower)"),
            "{text}"
        );
        assert_eq!(of(&runs).unwrap().winner(), None, "two are level");
        assert_eq!(of(&runs[..2]).unwrap().winner(), Some(1));
    }

    #[test]
    fn a_timed_replay_is_judged_by_latency_and_its_tail_is_not_hidden() {
        let timed = |name: &str, ns: &[u64]| {
            let mut r = Record::default();
            r.scheduler.spec = name.to_owned();
            r.params.insert("mode".to_owned(), "timed".to_owned());
            for n in ns {
                r.read.ios += 1;
                r.read.latency.record(*n);
            }
            r
        };
        let mut fast = vec![1_000_000; 1900];
        fast.extend([50_000_000; 100]);
        let slow = vec![4_000_000; 2000];
        let runs = [timed("noop", &slow), timed("cfq", &fast)];
        let text = words(&runs);
        assert!(
            text.starts_with("by mean read latency, cfq is ahead with 3.45 ms"),
            "{text}"
        );
        assert!(
            text.contains("slowest hundredth of reads takes 50.0 ms"),
            "{text}"
        );
        assert!(text.contains("4.00 ms under noop"), "{text}");
    }

    #[test]
    fn one_run_or_nothing_gives_no_verdict() {
        assert!(of(&[]).is_none());
        assert!(of(&[run("noop", 1.0)]).is_none());
        let text = words(&[run("noop", 0.0), run("cfq", 0.0)]);
        assert!(text.starts_with("no difference"), "{text}");
        let text = words(&[run("noop", 0.0), run("cfq", 5.0)]);
        assert!(text.contains("beyond comparison"), "{text}");
    }
}
