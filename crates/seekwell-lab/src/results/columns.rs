//! The columns of a folder's Parquet files: name, type, unit and meaning. Writers, readers and the
//! page docs/results.md are checked against this list.

use arrow_schema::DataType;

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Signed 64-bit integers.
    Int,
    /// Unsigned 64-bit integers.
    Unsigned,
    /// IEEE double.
    Float,
    /// Booleans.
    Bool,
}

impl Kind {
    /// The Arrow type.
    pub fn arrow(self) -> DataType {
        match self {
            Kind::Text => DataType::Utf8,
            Kind::Int => DataType::Int64,
            Kind::Unsigned => DataType::UInt64,
            Kind::Float => DataType::Float64,
            Kind::Bool => DataType::Boolean,
        }
    }
    /// The name in docs/results.md.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Int => "int64",
            Kind::Unsigned => "uint64",
            Kind::Float => "double",
            Kind::Bool => "bool",
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Type of its values.
    pub kind: Kind,
    /// Unit; empty if there is none.
    pub unit: &'static str,
    /// Values may be missing.
    pub nullable: bool,
    /// Older results lack this column.
    pub added: bool,
    /// Description.
    pub help: &'static str,
}

/// A Parquet file.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name of the file.
    pub file: &'static str,
    /// Description of a row.
    pub help: &'static str,
    /// Columns that follow [`RUN`], in order.
    pub columns: &'static [Column],
}

const fn column(name: &'static str, kind: Kind, unit: &'static str, help: &'static str) -> Column {
    Column {
        name,
        kind,
        unit,
        nullable: false,
        added: false,
        help,
    }
}

const fn maybe(name: &'static str, kind: Kind, unit: &'static str, help: &'static str) -> Column {
    Column {
        name,
        kind,
        unit,
        nullable: true,
        added: false,
        help,
    }
}

use Kind::{Bool, Float, Int, Text, Unsigned};

/// The first columns of every file, which identify the run.
pub const RUN: &[Column] = &[
    column(
        "run",
        Int,
        "",
        "number of the run, from 0, the same in all files of the folder",
    ),
    column(
        "cell",
        Text,
        "",
        "the cell: device x workload x machine x values of the axes",
    ),
    column("device", Text, "", "the device"),
    column("workload", Text, "", "the workload"),
    column("machine", Text, "", "the machine; empty: the default one"),
    column(
        "label",
        Text,
        "",
        "the scheduler with its settings, as tables print it",
    ),
    column(
        "scheduler",
        Text,
        "",
        "the scheduler's kernel name; empty for an import that names something else",
    ),
    column(
        "block",
        Int,
        "",
        "block, from 0: runs of one cell and block are pairs",
    ),
];

/// `runs.parquet`.
pub const RUNS: Table = Table {
    file: "runs.parquet",
    help: "one row per run and metric; a run without a result has one row without a metric",
    columns: &[
        column("experiment", Text, "", "name of the experiment"),
        column(
            "substrate",
            Text,
            "",
            "where it ran: sim, serve, host or import",
        ),
        column(
            "axes",
            Text,
            "",
            "values of the axes that the experiment varies: a JSON object of texts; each axis also has a column `axis.NAME`",
        ),
        column("version", Text, "", "version of the scheduler"),
        column(
            "tunables",
            Text,
            "",
            "tunables that were set: a JSON object of texts",
        ),
        column(
            "cell_place",
            Int,
            "",
            "place of the cell in results.json, from 0",
        ),
        column(
            "treatment_place",
            Int,
            "",
            "place of the scheduler in `treatments` of results.json, from 0",
        ),
        column(
            "reference",
            Bool,
            "",
            "true for the cell's reference scheduler",
        ),
        column("place", Int, "", "place in the block, from 0, as drawn"),
        column("seed", Unsigned, "", "seed of the run"),
        column(
            "spec_hash",
            Text,
            "",
            "SHA-256 of the specification without names; empty for imports",
        ),
        column(
            "outcome",
            Text,
            "",
            "done, early (its values count), censored (it reached its limit: its work takes longer than its `duration`) or failed",
        ),
        maybe("why", Text, "", "why it ended early or failed"),
        Column {
            added: true,
            ..maybe(
                "starved",
                Text,
                "",
                "kinds of tasks with starved members: a JSON array",
            )
        },
        maybe(
            "began_unix_ns",
            Int,
            "ns",
            "when it began, since 1970; missing in simulation",
        ),
        column(
            "duration_ns",
            Int,
            "ns",
            "its own duration, laying out and removing included",
        ),
        maybe("metric", Text, "", "name of the metric"),
        maybe("unit", Text, "", "unit of `value`"),
        maybe("higher_is_better", Bool, "", "larger values are better"),
        maybe(
            "step",
            Float,
            "as `unit`",
            "step size of the metric; missing: no steps",
        ),
        maybe("primary", Bool, "", "true for the cell's deciding metric"),
        maybe("value", Float, "as `unit`", "the value"),
        maybe(
            "n",
            Int,
            "operations",
            "operations that the value is based on; 0: not known",
        ),
    ],
};

/// `operations.parquet`.
pub const OPERATIONS: Table = Table {
    file: "operations.parquet",
    help: "one row per run and kind of operation, over the time of the workload's clock",
    columns: &[
        column(
            "layer",
            Text,
            "",
            "the counting layer: workload (operations as the script names them) or block (bios)",
        ),
        column(
            "kind",
            Text,
            "",
            "kind of operation; of the block layer read or write",
        ),
        column("count", Int, "operations", "how many"),
        column("bytes", Int, "bytes", "moved by all of them"),
        maybe(
            "errors",
            Int,
            "operations",
            "failed operations; missing for workloads, which do not count them",
        ),
        column("mean_ns", Float, "ns", "mean latency, exact"),
        column("min_ns", Int, "ns", "smallest latency, exact"),
        column(
            "p50_ns",
            Int,
            "ns",
            "median latency, to three digits as all percentiles",
        ),
        column("p75_ns", Int, "ns", "75th percentile"),
        column("p90_ns", Int, "ns", "90th percentile"),
        column("p95_ns", Int, "ns", "95th percentile"),
        column(
            "p99_ns",
            Int,
            "ns",
            "99th percentile: meaningful from 1,000 operations",
        ),
        column(
            "p999_ns",
            Int,
            "ns",
            "99.9th percentile: meaningful from 10,000 operations",
        ),
        column(
            "p9999_ns",
            Int,
            "ns",
            "99.99th percentile: meaningful from 100,000 operations",
        ),
        column("max_ns", Int, "ns", "largest latency, exact"),
        maybe(
            "held_ns",
            Int,
            "ns",
            "the part of the summed latencies before the block layer received the bio; missing for workloads",
        ),
        maybe(
            "began_ns",
            Int,
            "ns",
            "start of the first operation, since the start of the run; missing for the block layer",
        ),
        maybe(
            "ended_ns",
            Int,
            "ns",
            "end of the last operation, since the start of the run; missing for the block layer",
        ),
    ],
};

/// `series.parquet`.
pub const SERIES: Table = Table {
    file: "series.parquet",
    help: "one row per run, kind and second in which an operation ended",
    columns: &[
        column("layer", Text, "", "the counting layer: workload or block"),
        column(
            "kind",
            Text,
            "",
            "kind of operation; of the block layer all",
        ),
        column(
            "second",
            Int,
            "s",
            "whole seconds since the run began, laying out included",
        ),
        column(
            "ops",
            Int,
            "operations",
            "operations that ended in this second",
        ),
        maybe(
            "writes",
            Int,
            "operations",
            "writes among them; missing for workloads",
        ),
        column("bytes", Int, "bytes", "bytes that the operations moved"),
        column(
            "latency_sum_ns",
            Int,
            "ns",
            "sum of their latencies; divided by `ops` it is the mean",
        ),
        column("latency_max_ns", Int, "ns", "largest of them"),
        maybe(
            "latency_square_us2",
            Int,
            "us^2",
            "sum of their squares; missing for the block layer",
        ),
    ],
};

/// `records.parquet`.
pub const RECORDS: Table = Table {
    file: "records.parquet",
    help: "one row per run: its specification and the rest of its record",
    columns: &[
        column(
            "spec_hash",
            Text,
            "",
            "SHA-256 of the specification without names; empty for imports",
        ),
        maybe(
            "spec",
            Text,
            "",
            "the whole specification as JSON, from which crate `seekwell` makes the run again; missing for imports",
        ),
        maybe(
            "record",
            Text,
            "",
            "JSON of the run's record without what is in other files: read-back tunables, processes, marks, tasks, counters of the queue, warnings (docs/json.md, Record); missing for imports and failed runs",
        ),
    ],
};

/// Every Parquet file of a folder.
pub const TABLES: [&Table; 4] = [&RUNS, &SERIES, &OPERATIONS, &RECORDS];
