//! Reads fio's JSON report. Returns the metrics of the job file's sections, summed over all jobs.
//! The metrics have the same names as if Seekwell had run the job file itself.

use seekwell_core::result::{Latency, Metric};
use seekwell_workload::fio::{Dir, Figure, JobFile, Kind};
use serde_json::Value;

fn metric(name: &str, unit: &str, value: f64, higher: bool) -> Metric {
    Metric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value,
        higher_is_better: higher,
        ..Metric::default()
    }
}

fn side(dir: Dir) -> &'static str {
    match dir {
        Dir::Read => "read",
        Dir::Write => "write",
        Dir::Trim => "trim",
    }
}

/// Sums a number over the clones of a section.
fn sum(jobs: &[&Value], side: &str, name: &str) -> f64 {
    let values = jobs.iter().filter_map(|j| j[side][name].as_f64());
    values.sum()
}

/// Merges the latencies of all clones, from the bins of a `json+` report.
fn latencies<'a>(all: impl Iterator<Item = &'a Value>) -> Latency {
    let mut latency = Latency::default();
    for bins in all.filter_map(|of| of["bins"].as_object()) {
        for (ns, n) in bins {
            if let (Ok(ns), Some(n)) = (ns.parse::<u64>(), n.as_u64()) {
                latency.record_many(ns, n);
            }
        }
    }
    latency
}

/// Returns the value of a metric; `None` if fio did no operations of this kind.
fn value(kind: Kind, jobs: &[&Value]) -> Option<f64> {
    let of_side = |dir: Dir, name: &str| {
        let n = sum(jobs, side(dir), "total_ios");
        (n > 0.0).then(|| sum(jobs, side(dir), name))
    };
    let p99 =
        |latency: Latency| (latency.count() > 0).then(|| latency.percentile_ns(99.0) as f64 / 1e6);
    match kind {
        Kind::Iops(dir) => of_side(dir, "iops"),
        Kind::Bandwidth(dir) => Some(of_side(dir, "bw_bytes")? / f64::from(1 << 20)),
        Kind::Mean(dir) => {
            let n = of_side(dir, "total_ios")?;
            let weighted = jobs.iter().filter_map(|j| {
                let j = &j[side(dir)];
                Some(j["clat_ns"]["mean"].as_f64()? * j["total_ios"].as_f64()?)
            });
            Some(weighted.sum::<f64>() / n / 1e6)
        }
        Kind::P99(dir) => p99(latencies(jobs.iter().map(|j| &j[side(dir)]["clat_ns"]))),
        // fio reports fsync and fdatasync latencies together.
        Kind::FsyncP99 | Kind::FdatasyncP99 => {
            p99(latencies(jobs.iter().map(|j| &j["sync"]["lat_ns"])))
        }
    }
}

/// Returns the metrics of a job file's sections, then the total operations per second. The metrics
/// that decide come first.
///
/// # Errors
/// The text is not a fio report, or a job failed.
pub fn fio(printed: &str, file: &JobFile) -> Result<Vec<Metric>, String> {
    let from = printed.find('{').ok_or("fio printed no JSON")?;
    let doc: Value =
        serde_json::from_str(&printed[from..]).map_err(|e| format!("fio's JSON: {e}"))?;
    let jobs = doc["jobs"].as_array().ok_or("fio's JSON has no jobs")?;
    for job in jobs {
        if let Some(e) = job["error"].as_i64().filter(|e| *e != 0) {
            let name = job["jobname"].as_str().unwrap_or("?");
            return Err(format!("its job {name} ended with error {e}"));
        }
    }
    let mut all = Vec::new();
    for figure in file.all_figures() {
        if let Some(value) = value(figure.kind, &clones(jobs, file, &figure)) {
            let kind = figure.kind;
            all.push(metric(
                &figure.name,
                kind.unit(),
                value,
                kind.higher_is_better(),
            ));
        }
    }
    let every: Vec<&Value> = jobs.iter().collect();
    let total = |name: &str| {
        let sides = [Dir::Read, Dir::Write, Dir::Trim].map(side);
        sides.iter().map(|s| sum(&every, s, name)).sum::<f64>()
    };
    all.push(metric("IOPS", "I/Os/s", total("iops"), true));
    let mib = total("bw_bytes") / f64::from(1 << 20);
    all.push(metric("bandwidth", "MiB/s", mib, true));
    Ok(all)
}

/// Returns fio's report entries for a section: one per clone, in the order of the file.
fn clones<'a>(jobs: &'a [Value], file: &JobFile, figure: &Figure) -> Vec<&'a Value> {
    let count = |j: &seekwell_workload::fio::Job| j.numjobs as usize;
    let before: usize = file.jobs[..figure.section].iter().map(count).sum();
    let own = count(&file.jobs[figure.section]);
    jobs.iter().skip(before).take(own).collect()
}

/// Removes `group_reporting` from a job file, so that fio reports each job separately. The option
/// has no effect on the I/O.
pub fn reported_by_job(text: &str) -> String {
    let kept = text.lines().filter(|line| {
        let key = line.split('=').next().unwrap_or(line);
        key.trim() != "group_reporting"
    });
    kept.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_workload::Plan;

    fn job_file(text: &str) -> JobFile {
        struct Nothing;
        impl seekwell_workload::fio::Outside for Nothing {
            fn variable(&self, _: &str) -> Option<String> {
                None
            }
            fn include(&self, file: &str) -> Result<String, String> {
                Err(file.to_owned())
            }
        }
        let plan = Plan::fio("j", text, &Nothing).expect("a job file");
        plan.job_file().expect("it is one").clone()
    }

    const TEXT: &str = "[global]\nsize=16m\ngroup_reporting\ntime_based\nruntime=1\n\
        [bulk]\nrw=write\nbs=64k\nfdatasync=4\nnumjobs=2\n\
        [reader]\nrw=randread\nrate_iops=50\n";

    fn entry(name: &str, side: &str, iops: f64, error: i64) -> String {
        format!(
            "{{\"jobname\":\"{name}\",\"error\":{error},\"{side}\":{{\"iops\":{iops},\
             \"total_ios\":100,\"bw_bytes\":1048576,\"clat_ns\":{{\"mean\":2e6,\
             \"bins\":{{\"1000000\":98,\"9000000\":2}}}}}},\
             \"sync\":{{\"lat_ns\":{{\"bins\":{{\"4000000\":5,\"8000000\":5}}}}}}}}"
        )
    }

    #[test]
    fn fio_section_figures_are_aggregated_over_its_clones() {
        let file = job_file(TEXT);
        let (bulk, reader) = (
            entry("bulk", "write", 5.0, 0),
            entry("reader", "read", 50.0, 0),
        );
        let text = format!("fio: note\n{{\"jobs\":[{bulk},{bulk},{reader}]}}");
        let all = fio(&text, &file).expect("numbers");
        let names: Vec<&str> = all.iter().map(|m| m.name.as_str()).collect();
        let judged = [
            "bulk fdatasync p99",
            "bulk write bandwidth",
            "reader read mean",
        ];
        assert_eq!(names[..3], judged);
        let of = |name: &str| all.iter().find(|m| m.name == name).expect(name).value;
        assert_eq!(
            (of("bulk write IOPS"), of("reader read IOPS")),
            (10.0, 50.0)
        );
        assert_eq!((of("reader read mean"), of("IOPS")), (2.0, 60.0));
        assert!(
            (of("reader read p99") / 9.0 - 1.0).abs() < 0.002,
            "{}",
            of("reader read p99")
        );
        assert!((of("bulk fdatasync p99") / 8.0 - 1.0).abs() < 0.002);
        let text = format!("{{\"jobs\":[{}]}}", entry("bulk", "write", 5.0, 28));
        assert!(fio(&text, &file).expect_err("failed").contains("error 28"));
    }

    #[test]
    fn group_reporting_is_removed_from_a_fio_job() {
        let text = reported_by_job("[global]\ngroup_reporting=1\n group_reporting\nbs=4k\n[a]\n");
        assert_eq!(text, "[global]\nbs=4k\n[a]\n");
    }
}
