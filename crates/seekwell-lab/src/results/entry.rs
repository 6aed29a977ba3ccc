//! The form in which a run is stored: its values, its specification, and its record split into
//! table rows. A complete record would be about a hundred times as large.

use super::hlog;
use super::{Ended, Interned, Run, Value};
use seekwell_core::result::{
    DeviceInfo, Direction, Early, Host, Latency, MarkAt, Metric, Operation, ProcessShare,
    QueueUsed, Record, SchedulerUsed, Starved, TaskPart,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The layer in which operations are counted: the workload or the block layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Operations of the workload, with the names that its script gives them.
    #[default]
    Workload,
    /// Bios of the block layer.
    Block,
}

impl Layer {
    /// Returns the name used in the files.
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Workload => "workload",
            Layer::Block => "block",
        }
    }
}

/// The operations of one kind in a run: a table row of `operations.parquet`. Times are in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationRow {
    /// The layer in which the operations are counted.
    pub layer: Layer,
    /// The kind of operation: a name from the script of the workload, or `read` or `write` for
    /// bios.
    pub kind: String,
    /// Number of operations.
    pub count: u64,
    /// Number of bytes transferred by the operations.
    pub bytes: u64,
    /// Number of failed operations; `None` for workloads, which do not count failures.
    pub errors: Option<u64>,
    /// Mean latency.
    #[serde(with = "bits")]
    pub mean_ns: f64,
    /// Smallest latency.
    pub min_ns: u64,
    /// Quantiles of latency, in the order of [`QUANTILES`].
    pub quantiles_ns: [u64; QUANTILES.len()],
    /// Largest latency.
    pub max_ns: u64,
    /// The part of the summed latencies before the block layer received the bios.
    pub held_ns: Option<u64>,
    /// Start of the first operation, since the start of the run.
    pub began_ns: Option<u64>,
    /// End of the last operation, since the start of the run.
    pub ended_ns: Option<u64>,
}

/// The percentiles that are stored for each kind of operation, with their column names.
pub const QUANTILES: [(f64, &str); 7] = [
    (50.0, "p50_ns"),
    (75.0, "p75_ns"),
    (90.0, "p90_ns"),
    (95.0, "p95_ns"),
    (99.0, "p99_ns"),
    (99.9, "p999_ns"),
    (99.99, "p9999_ns"),
];

/// One second of one kind of operation: a table row of `series.parquet`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesRow(
    /// The second, counted from the start of the run, from 0.
    pub u64,
    /// Number of operations that ended in this second.
    pub u64,
    /// Number of bytes transferred by these operations.
    pub u64,
    /// Sum of the latencies of these operations, in ns.
    pub u64,
    /// Largest latency, in ns.
    pub u64,
    /// For the workload, the sum of the squared latencies in square microseconds. For the block
    /// layer, the number of writes among the operations.
    pub u64,
);

/// All seconds of one kind of operation in which an operation ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// The layer in which the operations are counted.
    pub layer: Layer,
    /// The kind of operation: a name from the script of the workload, or `all` for bios.
    pub kind: String,
    /// The seconds, in ascending order.
    pub seconds: Vec<SeriesRow>,
}

/// Stores floating-point numbers as their bits. JSON cannot represent NaN or infinity, and JSON
/// parsers can have an error in the last digit.
mod bits {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(value.to_bits())
    }
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }
}

/// A metric with its value: name, unit, direction, bits of the step, bits of the value, and number
/// of operations.
#[derive(Serialize, Deserialize)]
pub(super) struct Bits(String, String, bool, Option<u64>, u64, u64);

impl Bits {
    fn from_value(v: &Value) -> Self {
        let m = &v.metric;
        let (name, unit) = (m.name.clone(), m.unit.clone());
        let step = m.step.map(f64::to_bits);
        Bits(name, unit, m.higher_is_better, step, v.value.to_bits(), v.n)
    }
    fn value(&self, metrics: &mut Interned) -> Value {
        let Bits(name, unit, higher_is_better, step, ..) = self;
        Value {
            metric: metrics.metric(name, unit, *higher_is_better, step.map(f64::from_bits)),
            value: f64::from_bits(self.4),
            n: self.5,
        }
    }
}

/// The entry of the journal for a run.
#[derive(Serialize, Deserialize)]
pub(super) struct Entry {
    /// The run without its values. They are in `values`.
    pub run: Run,
    values: Vec<Bits>,
    /// Canonical text of the specification; empty for imports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub spec: String,
    /// JSON of the parts of the record that no other file contains; empty if there is no record.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub record: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    /// The lines of the run in the histogram log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub histograms: String,
}

/// The part of an [`Entry`] that is read when the journal is opened.
#[derive(Deserialize)]
pub(super) struct Slim {
    run: Run,
    values: Vec<Bits>,
}

impl Slim {
    /// Returns the run with its values.
    pub fn run(self, metrics: &mut Interned) -> Run {
        whole(self.run, &self.values, metrics)
    }
}

/// The part of an [`Entry`] that is written to `series.parquet`.
#[derive(Deserialize)]
pub(super) struct SeriesOf {
    #[serde(default)]
    pub series: Vec<Series>,
}

/// The part of an [`Entry`] that is written to `operations.parquet`.
#[derive(Deserialize)]
pub(super) struct OperationsOf {
    #[serde(default)]
    pub operations: Vec<OperationRow>,
}

/// The part of an [`Entry`] that is written to `records.parquet`.
#[derive(Default, Deserialize)]
pub(super) struct TextsOf {
    #[serde(default)]
    pub spec: String,
    #[serde(default)]
    pub record: String,
}

/// The part of an [`Entry`] that is written to the histogram log.
#[derive(Deserialize)]
pub(super) struct HistogramsOf {
    #[serde(default)]
    pub histograms: String,
}

fn whole(mut run: Run, values: &[Bits], metrics: &mut Interned) -> Run {
    run.values = values.iter().map(|v| v.value(metrics)).collect();
    run
}

impl Entry {
    /// Builds the entry of a run that has only values.
    pub fn bare(run: &Run) -> Self {
        Entry {
            values: run.values.iter().map(Bits::from_value).collect(),
            run: Run {
                values: Vec::new(),
                ..run.clone()
            },
            spec: String::new(),
            record: String::new(),
            operations: Vec::new(),
            series: Vec::new(),
            histograms: String::new(),
        }
    }
    /// Builds the entry of a finished run. `tag` is the run part of the tags of its histograms.
    pub fn from_ended(ended: &Ended<'_>, tag: &str, scratch: &mut hlog::Scratch) -> Self {
        let mut entry = Entry::bare(ended.run);
        entry.spec = ended.spec.canonical();
        if let Some(record) = ended.record {
            // `Rest` contains only names, numbers and texts, which JSON can always represent.
            entry.record = serde_json::to_string(&Rest::from_record(record)).unwrap_or_default();
            entry.take_apart(record, tag, scratch);
        }
        entry
    }
    fn take_apart(&mut self, r: &Record, tag: &str, scratch: &mut hlog::Scratch) {
        let span = r.window_ns();
        for (kind, d) in [("read", &r.read), ("write", &r.write)] {
            if d.ios > 0 {
                let buckets = d.latency.buckets();
                self.operations.push(of_direction(kind, d, &buckets));
                let tag = hlog::tag(tag, Layer::Block, kind);
                self.histograms += &scratch.line(&tag, span, &buckets);
            }
        }
        for o in &r.operations {
            let buckets = o.latency.buckets();
            self.operations.push(of_operation(o, &buckets));
            let tag = hlog::tag(tag, Layer::Workload, &o.kind);
            self.histograms += &scratch.line(&tag, (o.began_ns, o.ended_ns), &buckets);
            self.series.push(Series {
                layer: Layer::Workload,
                kind: o.kind.clone(),
                seconds: seconds_of(o),
            });
        }
        let second = |s: &seekwell_core::result::Second| {
            let ops = s.reads + s.writes;
            SeriesRow(
                s.at_s,
                ops,
                s.bytes,
                s.latency_sum_ns,
                s.latency_max_ns,
                s.writes,
            )
        };
        self.series.push(Series {
            layer: Layer::Block,
            kind: "all".to_owned(),
            seconds: r.seconds.iter().map(second).collect(),
        });
        self.series.retain(|s| !s.seconds.is_empty());
    }
}

fn seconds_of(o: &Operation) -> Vec<SeriesRow> {
    let busy = o.seconds.iter().enumerate().filter(|(_, s)| s.ops > 0);
    let row = |(at, s): (usize, &seekwell_core::result::OpSecond)| {
        SeriesRow(
            at as u64,
            s.ops,
            s.bytes,
            s.latency_sum_ns,
            s.latency_max_ns,
            s.latency_square_us2,
        )
    };
    busy.map(row).collect()
}

/// Computes all quantiles in one pass over the buckets, because a histogram has thirty thousand
/// buckets.
fn quantiles(latency: &Latency, buckets: &[(u64, u64)]) -> [u64; QUANTILES.len()] {
    let mut out = [0; QUANTILES.len()];
    let (mut below, mut bucket) = (0, buckets.iter());
    let mut value = 0;
    for (out, (percent, _)) in out.iter_mut().zip(QUANTILES) {
        let rank = ((percent / 100.0 * latency.count() as f64).ceil() as u64).max(1);
        while below < rank {
            let Some((at, n)) = bucket.next() else { break };
            below += n;
            value = *at;
        }
        *out = value.min(latency.max_ns());
    }
    out
}

fn latency_row(latency: &Latency, buckets: &[(u64, u64)]) -> OperationRow {
    OperationRow {
        count: latency.count(),
        mean_ns: latency.mean_ns(),
        min_ns: latency.min_ns(),
        quantiles_ns: quantiles(latency, buckets),
        max_ns: latency.max_ns(),
        ..OperationRow::default()
    }
}

fn of_direction(kind: &str, d: &Direction, buckets: &[(u64, u64)]) -> OperationRow {
    OperationRow {
        layer: Layer::Block,
        kind: kind.to_owned(),
        bytes: d.bytes,
        errors: Some(d.errors),
        held_ns: Some(d.held_ns),
        ..latency_row(&d.latency, buckets)
    }
}

fn of_operation(o: &Operation, buckets: &[(u64, u64)]) -> OperationRow {
    OperationRow {
        layer: Layer::Workload,
        kind: o.kind.clone(),
        bytes: o.bytes,
        began_ns: Some(o.began_ns),
        ended_ns: Some(o.ended_ns),
        ..latency_row(&o.latency, buckets)
    }
}

fn no_starved(all: &&[Starved]) -> bool {
    all.is_empty()
}

/// The parts of a record that no other file of the folder contains.
#[derive(Serialize)]
struct Rest<'a> {
    schema: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    early: &'a Option<Early>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: &'a Option<Host>,
    substrate: &'a str,
    workload: &'a str,
    params: &'a BTreeMap<String, String>,
    device: &'a DeviceInfo,
    scheduler: &'a SchedulerUsed,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: &'a Option<QueueUsed>,
    hz: u32,
    clock_start_ns: Option<u64>,
    clock_stop_ns: Option<u64>,
    metric: &'a Option<Metric>,
    requests: u64,
    back_merges: u64,
    front_merges: u64,
    joins: u64,
    waits: u64,
    mean_seek_sectors: f64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    scheduler_charged: bool,
    device_busy_ns: u64,
    depth_mean: f64,
    outstanding_mean: f64,
    outstanding_max: u64,
    processes: &'a [ProcessShare],
    marks: &'a [MarkAt],
    more_metrics: &'a [Metric],
    tasks: &'a [TaskPart],
    #[serde(skip_serializing_if = "no_starved")]
    starved: &'a [Starved],
    warnings: &'a [String],
}

impl<'a> Rest<'a> {
    fn from_record(r: &'a Record) -> Self {
        Rest {
            schema: r.schema,
            early: &r.early,
            host: &r.host,
            substrate: &r.substrate,
            workload: &r.workload,
            params: &r.params,
            device: &r.device,
            scheduler: &r.scheduler,
            queue: &r.queue,
            hz: r.hz,
            clock_start_ns: r.clock_start_ns,
            clock_stop_ns: r.clock_stop_ns,
            metric: &r.metric,
            requests: r.requests,
            back_merges: r.back_merges,
            front_merges: r.front_merges,
            joins: r.joins,
            waits: r.waits,
            mean_seek_sectors: r.mean_seek_sectors,
            scheduler_charged: r.scheduler_charged,
            device_busy_ns: r.device_busy_ns,
            depth_mean: r.depth_mean,
            outstanding_mean: r.outstanding_mean,
            outstanding_max: r.outstanding_max,
            processes: &r.processes,
            marks: &r.marks,
            more_metrics: &r.more_metrics,
            tasks: &r.tasks,
            starved: &r.starved,
            warnings: &r.warnings,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn keys(v: &serde_json::Value) -> BTreeSet<String> {
        v.as_object().expect("an object").keys().cloned().collect()
    }

    /// Checks that every field of a record is stored, either here or in another file.
    #[test]
    fn every_field_of_a_record_is_stored() {
        let r = Record {
            spec: Some(seekwell::spec("hdparm", "hdd:hitachi-7k200", "noop").expect("a run")),
            spec_hash: "x".to_owned(),
            early: Some(Early::default()),
            host: Some(Host::default()),
            queue: Some(QueueUsed::default()),
            scheduler_charged: true,
            starved: vec![Starved::default()],
            ..Record::default()
        };
        let whole = keys(&serde_json::to_value(&r).expect("JSON"));
        let kept = keys(&serde_json::to_value(Rest::from_record(&r)).expect("JSON"));
        let elsewhere = [
            "seekwell",
            "build",
            "spec",
            "spec_hash",
            "seed",
            "duration_ns",
            "read",
            "write",
            "seconds",
            "operations",
        ];
        let all: BTreeSet<String> = elsewhere
            .iter()
            .map(|n| n.to_string())
            .chain(kept)
            .collect();
        assert_eq!(all, whole);
    }

    proptest! {
        #[test]
        fn stored_quantiles_equal_those_of_the_histogram(
            values in proptest::collection::vec(1u64..5_000_000_000_000, 0..300),
        ) {
            let mut l = Latency::default();
            values.iter().for_each(|v| l.record(*v));
            let told = quantiles(&l, &l.buckets());
            for (told, (percent, name)) in told.iter().zip(QUANTILES) {
                prop_assert_eq!(*told, l.percentile_ns(percent), "{}", name);
            }
        }
    }
}
