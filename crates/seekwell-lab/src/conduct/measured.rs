//! Reduces the record of a run to the values that the statistics use.
//!
//! The primary value is the first. If the workload has a metric, the primary value is that metric.
//! Otherwise, if the amount of work is fixed (a replay by depth, or a closed replay), it is the
//! duration. Otherwise it is the mean latency of the main kind of operation. The latency of bios is
//! used only if there is no program.

use crate::data::{DURATION, MetricInfo, Run, Value};
use seekwell_core::result::{Latency, Metric, Operation, Record};
use std::sync::Arc;

/// Smallest number of operations for a p99. Ten of a thousand operations are beyond it.
const P99_LEAST: u64 = 1_000;

fn value(name: impl Into<String>, unit: &str, higher: bool, value: f64, n: u64) -> Value {
    Value {
        metric: Arc::new(MetricInfo {
            name: name.into(),
            unit: unit.to_owned(),
            higher_is_better: higher,
            step: None,
        }),
        value,
        n,
    }
}

fn own(m: &Metric) -> Value {
    Value {
        metric: Arc::new(m.into()),
        value: m.value,
        n: m.n,
    }
}

/// Returns whether the amount of work is fixed, so that runs are compared by their duration.
pub fn work_is_given(r: &Record) -> bool {
    let mode = r.params.get("mode").map_or("", String::as_str);
    mode.starts_with("depth") || mode == "closed"
}

/// Returns the main kind of operation of a run: the kind that the metric counts, or else the most
/// frequent kind.
pub fn kind_of(r: &Record) -> Option<&str> {
    let named = r
        .metric
        .as_ref()
        .and_then(|m| m.operation.split(", ").next());
    let named = named.filter(|k| !k.is_empty());
    let most = r.operations.iter().max_by_key(|o| o.latency.count());
    named.or(most.map(|o| o.kind.as_str()))
}

/// Adds the mean latency in ms, for example "fsync mean". Adds the p99 too if there are enough
/// operations.
fn latencies(what: &str, l: &Latency, out: &mut Vec<Value>) {
    let n = l.count();
    if n == 0 {
        return;
    }
    out.push(value(
        format!("{what} mean"),
        "ms",
        false,
        l.mean_ns() / 1e6,
        n,
    ));
    if n >= P99_LEAST {
        let p99 = l.percentile_ns(99.0) as f64 / 1e6;
        out.push(value(format!("{what} p99"), "ms", false, p99, n));
    }
}

/// Returns all values of a run, the primary value first, under the names that experiments use. If a
/// value of the workload has the same name as a computed value, the value of the workload is used.
pub fn values(r: &Record) -> Vec<Value> {
    let mut all: Vec<Value> = r.metric.iter().chain(&r.more_metrics).map(own).collect();
    let ios = r.read.ios + r.write.ios;
    let mut more = Vec::new();
    let duration = value(DURATION, "s", false, r.span_ns() as f64 / 1e9, ios);
    if work_is_given(r) {
        more.push(duration.clone());
    }
    let first = kind_of(r).map(str::to_owned);
    let mut operations: Vec<&Operation> = r.operations.iter().collect();
    operations.sort_by_key(|o| Some(&o.kind) != first.as_ref());
    for o in operations.into_iter().filter(|o| o.latency.count() > 0) {
        let (kind, n) = (&o.kind, o.latency.count());
        latencies(kind, &o.latency, &mut more);
        more.push(value(
            format!("{kind} rate"),
            &format!("{kind}/s"),
            true,
            r.rate(n as f64),
            n,
        ));
    }
    latencies("block read", &r.read.latency, &mut more);
    latencies("block write", &r.write.latency, &mut more);
    more.push(value("block io rate", "I/Os/s", true, r.iops(), ios));
    let mib = r.bytes_per_sec() / f64::from(1 << 20);
    more.push(value("block throughput", "MiB/s", true, mib, ios));
    more.push(duration);
    for v in more {
        if all.iter().all(|o| o.metric.name != v.metric.name) {
            all.push(v);
        }
    }
    all
}

/// Returns a hash that is equal for runs with bit-identical measurements.
pub fn fingerprint(run: &Run) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |x: u64| h = (h ^ x).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    eat(run.duration_ns);
    for v in &run.values {
        v.metric.name.bytes().for_each(|b| eat(u64::from(b)));
        eat(v.value.to_bits());
        eat(v.n);
    }
    h
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(r: &Record) -> Vec<String> {
        values(r).iter().map(|v| v.metric.name.clone()).collect()
    }

    #[test]
    fn program_metrics_precede_block_metrics_with_its_own_metric_first() {
        let mut r = Record {
            duration_ns: 2_000_000_000,
            ..Record::default()
        };
        r.read.ios = 4;
        r.read.latency.record(1_000);
        assert_eq!(names(&r)[0], "block read mean");
        let mut fsync = Operation {
            kind: "fsync".into(),
            ended_ns: 1_000_000_000,
            ..Operation::default()
        };
        fsync.latency.record(5_000_000);
        r.operations.push(fsync);
        assert_eq!(names(&r)[0], "fsync mean");
        r.params.insert("mode".into(), "closed".into());
        assert_eq!(names(&r)[0], DURATION);
        r.metric = Some(Metric {
            name: "files".into(),
            unit: "files/s".into(),
            value: 12.5,
            higher_is_better: true,
            ..Metric::default()
        });
        let all = values(&r);
        assert_eq!((&*all[0].metric.name, all[0].value), ("files", 12.5));
        assert!(
            all.iter()
                .any(|v| v.metric.name == "block io rate" && v.value == 2.0)
        );
        assert!(
            all.iter().all(|v| !v.metric.name.ends_with("p99")),
            "too few for one"
        );
    }

    #[test]
    fn fingerprint_changes_with_the_last_bit() {
        let run = |x: f64| Run {
            values: vec![value("a", "s", true, x, 3)],
            ..Run::default()
        };
        assert_eq!(fingerprint(&run(1.0)), fingerprint(&run(1.0)));
        assert_ne!(
            fingerprint(&run(1.0)),
            fingerprint(&run(1.0 + f64::EPSILON))
        );
    }
}
