//! The columns of the Parquet files in a results folder: name, type, unit and meaning. The writers,
//! the readers and the page docs/results.md are checked against this list.

use arrow_schema::DataType;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8 text.
    Text,
    /// Signed 64-bit integers.
    Int,
    /// Unsigned 64-bit integers.
    Unsigned,
    /// 64-bit floating-point numbers (IEEE 754).
    Float,
    /// Booleans.
    Bool,
}

impl Kind {
    /// Returns the Arrow type.
    pub fn arrow(self) -> DataType {
        match self {
            Kind::Text => DataType::Utf8,
            Kind::Int => DataType::Int64,
            Kind::Unsigned => DataType::UInt64,
            Kind::Float => DataType::Float64,
            Kind::Bool => DataType::Boolean,
        }
    }
    /// Returns the name used in docs/results.md.
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

/// A column of a Parquet file.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name of the column.
    pub name: &'static str,
    /// Type of its values.
    pub kind: Kind,
    /// Unit of the values; empty if they have none.
    pub unit: &'static str,
    /// True if values can be missing.
    pub nullable: bool,
    /// True if files of older versions do not have this column.
    pub added: bool,
    /// What the column means.
    pub help: &'static str,
}

/// A Parquet file of a results folder.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name of the file.
    pub file: &'static str,
    /// What one table row means.
    pub help: &'static str,
    /// The columns after those of [`RUN`], in order.
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

/// The first columns of every file. They identify the run.
#[rustfmt::skip]
pub const RUN: &[Column] = &[
    column("run", Int, "", "number of the run, from 0, the same in all files of the folder"),
    column("cell", Text, "", "the cell: device x workload x machine x values of the axes"),
    column("device", Text, "", "the device"),
    column("workload", Text, "", "the workload"),
    column("machine", Text, "", "the machine; empty for the default machine"),
    column("label", Text, "", "the scheduler with its settings, as printed in tables"),
    column("scheduler", Text, "",
        "the scheduler's kernel name; empty for an import that names something else"),
    column("block", Int, "", "block, from 0; the runs of one cell and block form pairs"),
];

/// The file `runs.parquet`.
#[rustfmt::skip]
pub const RUNS: Table = Table {
    file: "runs.parquet",
    help: "one row per run and metric; a run without a result has one row without a metric",
    columns: &[
        column("experiment", Text, "", "name of the experiment"),
        column("substrate", Text, "", "substrate of the run: sim, serve, host, kernel or import"),
        column("axes", Text, "",
            "values of the axes that the experiment varies: a JSON object of texts; each axis also \
             has a column `axis.NAME`"),
        column("version", Text, "", "version of the scheduler"),
        column("tunables", Text, "", "tunables that were set: a JSON object of texts"),
        column("cell_place", Int, "", "index of the cell in `cells` of results.json, from 0"),
        column("treatment_place", Int, "",
            "index of the scheduler in `treatments` of results.json, from 0"),
        column("reference", Bool, "", "true for the cell's reference scheduler"),
        column("place", Int, "", "random position of the run in its block, from 0"),
        column("seed", Unsigned, "", "seed of the run"),
        column("spec_hash", Text, "",
            "SHA-256 of the specification without names; empty for imports"),
        column("outcome", Text, "",
            "done, early (the run ended early, but its values count), censored (the run reached \
             its limit, so its work takes longer than its `duration`) or failed"),
        maybe("why", Text, "", "why the run ended early or failed"),
        Column {
            added: true,
            ..maybe(
                "starved",
                Text,
                "",
                "kinds of tasks with at least one starved task: a JSON array",
            )
        },
        maybe("began_unix_ns", Int, "ns", "start of the run, since 1970; missing in a simulation"),
        column("duration_ns", Int, "ns",
            "duration of the whole run, including laying out and removing files"),
        maybe("metric", Text, "", "name of the metric"),
        maybe("unit", Text, "", "unit of `value`"),
        maybe("higher_is_better", Bool, "", "larger values are better"),
        maybe("step", Float, "as `unit`", "step size of the metric; missing if it has no steps"),
        maybe("primary", Bool, "", "true for the cell's deciding metric"),
        maybe("value", Float, "as `unit`", "the value"),
        maybe("n", Int, "operations",
            "number of operations that the value is based on; 0 if not known"),
    ],
};

/// The file `operations.parquet`.
#[rustfmt::skip]
pub const OPERATIONS: Table = Table {
    file: "operations.parquet",
    help: "one row per run and kind of operation, over the time of the workload's clock",
    columns: &[
        column("layer", Text, "",
            "the counting layer: workload (operations as the script names them) or block (bios)"),
        column("kind", Text, "", "kind of operation; read or write for the block layer"),
        column("count", Int, "operations", "number of operations"),
        column("bytes", Int, "bytes", "bytes that the operations moved"),
        maybe("errors", Int, "operations",
            "failed operations; missing for workloads, which do not count them"),
        column("mean_ns", Float, "ns", "mean latency, exact"),
        column("min_ns", Int, "ns", "smallest latency, exact"),
        column("p50_ns", Int, "ns",
            "median latency; all percentiles have three significant digits"),
        column("p75_ns", Int, "ns", "75th percentile"),
        column("p90_ns", Int, "ns", "90th percentile"),
        column("p95_ns", Int, "ns", "95th percentile"),
        column("p99_ns", Int, "ns", "99th percentile; meaningful from 1,000 operations on"),
        column("p999_ns", Int, "ns", "99.9th percentile; meaningful from 10,000 operations on"),
        column("p9999_ns", Int, "ns", "99.99th percentile; meaningful from 100,000 operations on"),
        column("max_ns", Int, "ns", "largest latency, exact"),
        maybe("held_ns", Int, "ns",
            "the part of the summed latencies before the block layer received the bio; missing for \
             workloads"),
        maybe("began_ns", Int, "ns",
            "start of the first operation, since the start of the run; missing for the block layer"),
        maybe("ended_ns", Int, "ns",
            "end of the last operation, since the start of the run; missing for the block layer"),
    ],
};

/// The file `series.parquet`.
#[rustfmt::skip]
pub const SERIES: Table = Table {
    file: "series.parquet",
    help: "one row per run, kind and second in which an operation ended",
    columns: &[
        column("layer", Text, "", "the counting layer: workload or block"),
        column("kind", Text, "", "kind of operation; all for the block layer"),
        column("second", Int, "s",
            "whole seconds since the start of the run, including laying out files"),
        column("ops", Int, "operations", "operations that ended in this second"),
        maybe("writes", Int, "operations", "writes among the operations; missing for workloads"),
        column("bytes", Int, "bytes", "bytes that the operations moved"),
        column("latency_sum_ns", Int, "ns",
            "sum of the latencies of the operations; the mean is this sum divided by `ops`"),
        column("latency_max_ns", Int, "ns", "largest latency of the operations"),
        maybe("latency_square_us2", Int, "us^2",
            "sum of the squared latencies; missing for the block layer"),
    ],
};

/// The file `records.parquet`.
#[rustfmt::skip]
pub const RECORDS: Table = Table {
    file: "records.parquet",
    help: "one row per run: its specification and the rest of its record",
    columns: &[
        column("spec_hash", Text, "",
            "SHA-256 of the specification without names; empty for imports"),
        maybe("spec", Text, "",
            "the whole specification as JSON; crate `seekwell` can repeat the run from it; missing \
             for imports"),
        maybe("record", Text, "",
            "the record of the run as JSON, without the parts that are in other files; it contains \
             read-back tunables, processes, marks, tasks, counters of the queue and warnings \
             (docs/json.md, Record); missing for imports and failed runs"),
    ],
};

/// All Parquet files of a results folder.
pub const TABLES: [&Table; 4] = [&RUNS, &SERIES, &OPERATIONS, &RECORDS];
