//! The metrics and kinds of operations of the built-in workloads. They are known before a run, so
//! an experiment that contains a wrong name is rejected immediately and not after an hour.
//!
//! A test runs every workload and compares its results with this list. The results of fio job files
//! and of workloads from other crates are not known before a run.

/// A metric of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Given {
    /// Name of the metric.
    pub name: &'static str,
    /// Unit of the metric.
    pub unit: &'static str,
    /// True if a larger value is better.
    pub higher_is_better: bool,
    /// The value is a multiple of this number, because the original program prints it rounded so.
    pub step: Option<f64>,
}

/// The results that a workload reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Declared {
    /// Name of the workload.
    pub workload: &'static str,
    /// Metrics in order. The parameters can determine which of them a run reports.
    pub metrics: &'static [Given],
    /// Parameter whose value is the name of the first metric of a run. If there is no such
    /// parameter, or if its value is `all`, the first metric is the first of the list.
    pub named_by: Option<&'static str>,
    /// Kinds of operations. The parameters can determine which of them a run has.
    pub operations: &'static [&'static str],
    /// How the run is timed. `None` if the workload does a fixed amount of work. Also `None` if it
    /// reproduces a program whose result includes the start of the run (hdparm, seeker, Blogbench).
    pub timed: Option<Timed>,
}

/// The timing of a workload with a fixed duration. The start of such a run can be excluded from the
/// results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// The parameter that sets the duration.
    pub time: &'static str,
    /// Metrics that are rates or mean latencies, each with the kinds of operations that it counts.
    /// A run reports some of them.
    pub metrics: &'static [(&'static str, &'static [&'static str])],
}

const fn more(name: &'static str, unit: &'static str) -> Given {
    Given {
        name,
        unit,
        higher_is_better: true,
        step: None,
    }
}

const fn less(name: &'static str, unit: &'static str) -> Given {
    Given {
        name,
        unit,
        higher_is_better: false,
        step: None,
    }
}

const fn whole(name: &'static str, unit: &'static str, step: f64) -> Given {
    Given {
        name,
        unit,
        higher_is_better: true,
        step: Some(step),
    }
}

const fn declare(
    workload: &'static str,
    metrics: &'static [Given],
    operations: &'static [&'static str],
) -> Declared {
    Declared {
        workload,
        metrics,
        named_by: None,
        operations,
        timed: None,
    }
}

/// Declares that the parameter `seconds` sets the duration of the workload.
const fn timed(
    mut d: Declared,
    metrics: &'static [(&'static str, &'static [&'static str])],
) -> Declared {
    d.timed = Some(Timed {
        time: "seconds",
        metrics,
    });
    d
}

/// Declares that the value of parameter `param` is the name of the first metric.
const fn by(mut d: Declared, param: &'static str) -> Declared {
    d.named_by = Some(param);
    d
}

#[rustfmt::skip]
const ALL: &[Declared] = &[
    declare("fs-mark",
        &[whole("files", "files/s", 0.1)],
        &["file", "create", "fsync", "close", "write"]),
    declare("blogbench",
        &[whole("final score for writes", "blogs", 1.0),
            whole("final score for reads", "blogs", 1.0)],
        &["create", "write blog", "read blog", "read", "write"]),
    declare("compilebench",
        &[more("initial create", "MB/s"), more("compile", "MB/s"),
            more("read compiled tree", "MB/s"), less("delete compiled tree", "s")],
        &["create", "read file", "unlink", "read", "write"]),
    by(
        declare("iozone",
            &[more("write", "MB/s"), more("rewrite", "MB/s"), more("read", "MB/s"),
                more("reread", "MB/s")],
            &["write", "read", "fsync"]),
        "test"),
    declare("tiobench",
        &[more("random write", "MB/s"), more("write", "MB/s")],
        &["random write", "write", "fsync"]),
    declare("postmark",
        &[whole("transactions", "transactions/s", 1.0),
            more("transactions, unrounded", "transactions/s")],
        &["transaction", "create", "delete", "read", "append", "sync", "write"]),
    declare("pgbench",
        &[more("transactions", "transactions/s"), less("mean latency", "ms")],
        &["transaction", "commit", "log write", "page read", "page write", "checkpoint",
            "checkpoint fsync", "fdatasync"]),
    timed(
        declare("innodb",
            &[more("transactions", "transactions/s"), less("commit", "ms"),
                less("commit 99th percentile", "ms"), more("buffer pool hit ratio", "%")],
            &["transaction", "commit", "log write", "log sync", "log wait", "page read",
                "page write", "doublewrite", "checkpoint"]),
        &[("transactions", &["transaction"]), ("commit", &["commit"])]),
    by(
        declare("sqlite",
            &[more("insert", "transactions/s"), more("update", "transactions/s"),
                more("delete", "transactions/s")],
            &["insert", "update", "delete", "sync journal", "sync log", "sync database",
                "sync directory", "service fsync"]),
        "kinds"),
    declare("androbench-io",
        &[more("sequential read", "MB/s"), more("sequential write", "MB/s"),
            more("random read", "IOPS"), more("random write", "IOPS")],
        &["sequential read", "sequential write", "random read", "random write", "service fsync"]),
    declare("mysql-scan",
        &[more("scan", "MiB/s"), less("runtime", "s")],
        &["extent read", "page read", "intruder read", "read"]),
    declare("hdparm", &[whole("buffered read", "MB/s", 0.01)], &["read"]),
    declare("seeker", &[whole("seeks", "seeks/s", 1.0), less("seek time", "ms")], &["seek"]),
    timed(
        declare("random-read", &[more("random reads", "reads/s")], &["read"]),
        &[("random reads", &["read"])]),
    declare("web", &[whole("requests", "requests/s", 0.01)], &["request"]),
    declare("compile", &[less("build", "s")], &["compile", "read", "write"]),
    declare("app-start",
        &[less("start-up", "s")],
        &["start", "step", "read", "bulk read", "bulk write"]),
    timed(
        declare("interactive",
            &[less("read", "ms"), less("99th percentile", "ms"), more("bulk write", "MB/s")],
            &["read", "bulk write"]),
        &[("read", &["read"]), ("bulk write", &["bulk write"])]),
    timed(
        declare("streams",
            &[more("streams", "MB/s"), more("fairness", "Jain's index")],
            &["read", "write"]),
        &[("streams", &["read", "write"])]),
    timed(
        declare("fsync-latency",
            &[less("fsync", "ms"), less("99th percentile", "ms"), more("bulk write", "MB/s")],
            &["fsync", "bulk write"]),
        &[("fsync", &["fsync"]), ("bulk write", &["bulk write"])]),
];

/// Metrics that decide a comparison in addition to the first metric, by workload. They are tail
/// latencies, and other operations for which users wait. The names are those of the `metric` key of
/// an experiment. For all other workloads, only the first metric decides.
const ALSO_DECIDE: &[(&str, &[&str])] = &[
    ("blogbench", &["final score for reads"]),
    (
        "compilebench",
        &["compile", "read compiled tree", "delete compiled tree"],
    ),
    ("iozone", &["rewrite", "read", "reread"]),
    ("tiobench", &["write"]),
    ("pgbench", &["transaction p99"]),
    ("innodb", &["commit 99th percentile"]),
    ("sqlite", &["update", "delete"]),
    (
        "androbench-io",
        &["sequential write", "random read", "random write"],
    ),
    ("random-read", &["read p99"]),
    ("web", &["request p99"]),
    ("interactive", &["99th percentile", "bulk write"]),
    ("fsync-latency", &["99th percentile", "bulk write"]),
];

/// Returns the metrics that decide a comparison in addition to the first metric of a workload.
pub fn also_decide(workload: &str) -> &'static [&'static str] {
    let found = ALSO_DECIDE.iter().find(|d| d.0 == workload);
    found.map_or(&[], |d| d.1)
}

/// Returns the results of a workload by its name, or `None` if they are not known before a run.
pub fn declared(workload: &str) -> Option<&'static Declared> {
    ALL.iter().find(|d| d.workload == workload)
}
