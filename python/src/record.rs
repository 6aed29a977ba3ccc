//! The record of a run: numbers, tables and histograms.

use crate::scheduler::view::op_name;
use crate::table::{Table, floats, ints, some_ints, some_texts, texts};
use crate::{fault, json};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use seekwell::event::{Event, More};
use seekwell_core::result::{Latency, Operation, Record as Of};
use seekwell_lab::results::QUANTILES;

/// All results of a run. Times are in nanoseconds, and addresses in sectors of 512 bytes.
#[pyclass(frozen, module = "seekwell")]
pub struct Record {
    of: Of,
    events: Option<(Vec<Event>, bool)>,
}

/// The layer that counted an operation, the kind of the operation, and the counts.
struct Row<'a> {
    layer: &'static str,
    kind: &'a str,
    latency: &'a Latency,
    bytes: u64,
    errors: Option<u64>,
}

impl Record {
    /// Creates a record. `events` contains the events, and whether some were left out.
    pub fn new(of: Of, events: Option<(Vec<Event>, bool)>) -> Self {
        Record { of, events }
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = Vec::new();
        for o in &self.of.operations {
            rows.push(Row {
                layer: "workload",
                kind: &o.kind,
                latency: &o.latency,
                bytes: o.bytes,
                errors: None,
            });
        }
        for (kind, d) in [("read", &self.of.read), ("write", &self.of.write)] {
            if d.ios > 0 {
                rows.push(Row {
                    layer: "block",
                    kind,
                    latency: &d.latency,
                    bytes: d.bytes,
                    errors: Some(d.errors),
                });
            }
        }
        rows
    }

    fn latency(&self, kind: &str, layer: &str) -> PyResult<&Latency> {
        let rows = self.rows();
        let found = rows.iter().find(|r| r.kind == kind && r.layer == layer);
        found.map(|r| r.latency).ok_or_else(|| {
            let known: Vec<String> = rows
                .iter()
                .map(|r| format!("{} ({})", r.kind, r.layer))
                .collect();
            let what = format!(
                "no \"{kind}\" of the {layer}; there are {}",
                known.join(", ")
            );
            PyKeyError::new_err(what)
        })
    }
}

#[pymethods]
impl Record {
    /// The record as JSON, with the same bytes as `--json` of the binary.
    pub fn to_json(&self) -> PyResult<String> {
        json::text(&self.of)
    }

    /// The record as Python dicts and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.to_json()?)
    }

    /// The value of the workload's own metric, in `unit`. None: the workload has no metric.
    #[getter]
    fn value(&self) -> Option<f64> {
        self.of.metric.as_ref().map(|m| m.value)
    }
    /// Unit of `value`. Empty: the workload has no metric.
    #[getter]
    fn unit(&self) -> &str {
        self.of.metric.as_ref().map_or("", |m| &m.unit)
    }
    /// Name of the workload's metric.
    #[getter]
    fn metric(&self) -> &str {
        self.of.metric.as_ref().map_or("", |m| &m.name)
    }
    /// Whether a larger `value` is better.
    #[getter]
    fn higher_is_better(&self) -> bool {
        self.of.metric.as_ref().is_some_and(|m| m.higher_is_better)
    }
    /// Bytes per second, over the time that the workload measured.
    #[getter]
    fn bytes_per_s(&self) -> f64 {
        self.of.bytes_per_sec()
    }
    /// I/Os per second, over the time that the workload measured.
    #[getter]
    fn ios_per_s(&self) -> f64 {
        self.of.iops()
    }
    /// Duration of the run in virtual time, ns.
    #[getter]
    fn duration_ns(&self) -> u64 {
        self.of.duration_ns
    }
    /// Seed of the run.
    #[getter]
    fn seed(&self) -> u64 {
        self.of.seed
    }
    /// Hash of the specification. Runs with equal hashes give the same bytes.
    #[getter]
    fn spec_hash(&self) -> &str {
        &self.of.spec_hash
    }
    /// The scheduler, as it was requested.
    #[getter]
    fn scheduler(&self) -> &str {
        &self.of.scheduler.spec
    }
    /// The device, as it was requested.
    #[getter]
    fn device(&self) -> &str {
        &self.of.device.spec
    }
    /// Name of the workload.
    #[getter]
    fn workload(&self) -> &str {
        &self.of.workload
    }
    /// The reason why the run ended early. None: it did not end early.
    #[getter]
    fn early(&self) -> Option<&str> {
        self.of.early.as_ref().map(|e| e.why.as_str())
    }
    /// Warnings about the run.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.of.warnings.clone()
    }

    fn __repr__(&self) -> String {
        let of = &self.of;
        let value = match &of.metric {
            Some(m) => format!("{:.1} {}", m.value, m.unit),
            None => format!("{:.1} I/Os a second", of.iops()),
        };
        let (workload, scheduler, device) = (&of.workload, &of.scheduler.spec, &of.device.spec);
        format!("<seekwell.Record: {workload} under {scheduler} on {device}: {value}>")
    }

    /// Operations by layer and kind, one row each: count, bytes, and latencies in ns.
    fn operations(&self) -> PyResult<Table> {
        let rows = self.rows();
        let latency = |f: fn(&Latency) -> u64| ints(rows.iter().map(move |r| f(r.latency)));
        let mut columns = vec![
            ("layer", texts(rows.iter().map(|r| r.layer))),
            ("kind", texts(rows.iter().map(|r| r.kind))),
            ("count", latency(Latency::count)),
            ("bytes", ints(rows.iter().map(|r| r.bytes))),
            ("errors", some_ints(rows.iter().map(|r| r.errors))),
            ("mean_ns", floats(rows.iter().map(|r| r.latency.mean_ns()))),
            ("min_ns", latency(Latency::min_ns)),
        ];
        for (percent, name) in QUANTILES {
            columns.push((
                name,
                ints(rows.iter().map(|r| r.latency.percentile_ns(percent))),
            ));
        }
        columns.push(("max_ns", latency(Latency::max_ns)));
        Table::of(columns)
    }

    /// Latency histogram of a kind of operation. `value_ns` is the upper end of each bucket that is
    /// not empty, in ascending order. `count` is the number of operations in it. `layer` is
    /// "workload" or "block".
    ///
    /// Raises:
    ///     KeyError: No operation of this kind was counted.
    #[pyo3(signature = (kind, layer="workload"))]
    fn histogram(&self, kind: &str, layer: &str) -> PyResult<Table> {
        let buckets = self.latency(kind, layer)?.buckets();
        Table::of(vec![
            ("value_ns", ints(buckets.iter().map(|b| b.0))),
            ("count", ints(buckets.iter().map(|b| b.1))),
        ])
    }

    /// Operations of the workload by kind and second of the run: the number of completed
    /// operations, bytes, and the sum and the maximum of their latencies in ns.
    fn series(&self) -> PyResult<Table> {
        let each = || {
            let seconds = |o: &'_ Operation| o.seconds.clone();
            self.of.operations.iter().flat_map(move |o| {
                let kind = o.kind.clone();
                let all = seconds(o).into_iter().enumerate();
                all.map(move |(i, s)| (kind.clone(), i as u64, s))
            })
        };
        Table::of(vec![
            ("kind", texts(each().map(|r| r.0))),
            ("second", ints(each().map(|r| r.1))),
            ("ops", ints(each().map(|r| r.2.ops))),
            ("bytes", ints(each().map(|r| r.2.bytes))),
            ("latency_sum_ns", ints(each().map(|r| r.2.latency_sum_ns))),
            ("latency_max_ns", ints(each().map(|r| r.2.latency_max_ns))),
        ])
    }

    /// The I/O of each process: number of I/Os, bytes, and mean latency in ns.
    fn processes(&self) -> PyResult<Table> {
        let all = &self.of.processes;
        Table::of(vec![
            ("task", ints(all.iter().map(|p| u64::from(p.task)))),
            ("name", texts(all.iter().map(|p| p.name.as_str()))),
            ("ios", ints(all.iter().map(|p| p.ios))),
            ("bytes", ints(all.iter().map(|p| p.bytes))),
            (
                "mean_latency_ns",
                floats(all.iter().map(|p| p.mean_latency_ns)),
            ),
        ])
    }

    /// Every event of the block layer, in order of time. The run must have been made with `events`.
    /// The action letters are those of blktrace (see docs/events.md).
    ///
    /// Raises:
    ///     InputError: The run was made without events.
    fn events(&self) -> PyResult<Table> {
        let Some((all, _)) = &self.events else {
            return Err(fault::input(
                "the run was made without its events: run(..., events=True)",
            ));
        };
        let number = |n: Option<u32>| n.map(u64::from);
        let gone = |e: &Event| match e.more {
            More::Gone(rq) => Some(u64::from(rq.0)),
            _ => None,
        };
        Table::of(vec![
            ("time_ns", ints(all.iter().map(|e| e.at.since_start()))),
            (
                "action",
                texts(all.iter().map(|e| e.action.letter().to_string())),
            ),
            (
                "request",
                some_ints(all.iter().map(|e| number(e.rq.map(|r| r.0)))),
            ),
            ("gone", some_ints(all.iter().map(gone))),
            ("bio", some_ints(all.iter().map(|e| e.bio.map(|b| b.0)))),
            (
                "task",
                some_ints(all.iter().map(|e| number(e.task.map(|t| t.0)))),
            ),
            ("op", texts(all.iter().map(|e| op_name(e.op)))),
            ("sector", ints(all.iter().map(|e| e.sector.0))),
            ("sectors", ints(all.iter().map(|e| u64::from(e.sectors.0)))),
            ("rule", some_texts(all.iter().map(|e| e.rule.map(|r| r.id)))),
            ("detail", texts(all.iter().map(|e| e.detail.as_str()))),
        ])
    }

    /// Whether the run had more events than `most_events`.
    #[getter]
    fn events_cut(&self) -> bool {
        self.events.as_ref().is_some_and(|e| e.1)
    }
}
