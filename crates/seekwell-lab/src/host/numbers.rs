//! What fio says of itself, in its JSON: sums over its jobs.

use seekwell_core::result::Metric;
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

/// Metrics, the one it is about first: all operations a second.
///
/// # Errors
/// What is not as fio writes it, or the error that a job had.
pub fn fio(printed: &str) -> Result<Vec<Metric>, String> {
    let from = printed.find('{').ok_or("fio printed no JSON")?;
    let doc: Value =
        serde_json::from_str(&printed[from..]).map_err(|e| format!("fio's JSON: {e}"))?;
    let jobs = doc["jobs"].as_array().ok_or("fio's JSON has no jobs")?;
    let mut all = Vec::new();
    let (mut rate, mut more) = (0.0, Vec::new());
    for job in jobs {
        if let Some(e) = job["error"].as_i64().filter(|e| *e != 0) {
            let name = job["jobname"].as_str().unwrap_or("?");
            return Err(format!("its job {name} ended with error {e}"));
        }
    }
    for side in ["read", "write"] {
        let of = |name: &str| -> f64 {
            let values = jobs.iter().filter_map(|j| j[side][name].as_f64());
            values.sum()
        };
        let (iops, n) = (of("iops"), of("total_ios"));
        if n == 0.0 {
            continue;
        }
        rate += iops;
        more.push(metric(&format!("{side} IOPS"), "IOPS", iops, true));
        let mib = of("bw_bytes") / f64::from(1 << 20);
        more.push(metric(&format!("{side} bandwidth"), "MiB/s", mib, true));
        let sum: f64 = jobs
            .iter()
            .filter_map(|j| {
                Some(j[side]["clat_ns"]["mean"].as_f64()? * j[side]["total_ios"].as_f64()?)
            })
            .sum();
        more.push(metric(
            &format!("{side} latency mean"),
            "ms",
            sum / n / 1e6,
            false,
        ));
        // A quantile of several jobs together is not known from theirs.
        if let [job] = jobs.as_slice()
            && let Some(p99) = job[side]["clat_ns"]["percentile"]["99.000000"].as_f64()
        {
            more.push(metric(
                &format!("{side} latency p99"),
                "ms",
                p99 / 1e6,
                false,
            ));
        }
    }
    all.push(metric("IOPS", "IOPS", rate, true));
    all.extend(more);
    Ok(all)
}

#[cfg(test)]
mod tests {
    #[test]
    fn jobs_add_up_and_errors_are_told() {
        let job = |iops: f64, error: i64| {
            format!(
                "{{\"jobname\":\"a\",\"error\":{error},\"read\":{{\"iops\":{iops},\"total_ios\":10,\
                 \"bw_bytes\":1048576,\"clat_ns\":{{\"mean\":2e6}}}},\"write\":{{\"total_ios\":0}}}}"
            )
        };
        let text = format!("fio: note\n{{\"jobs\":[{},{}]}}", job(5.0, 0), job(7.0, 0));
        let all = super::fio(&text).expect("numbers");
        assert_eq!((&*all[0].name, all[0].value), ("IOPS", 12.0));
        let of = |name: &str| all.iter().find(|m| m.name == name).expect("there").value;
        assert_eq!((of("read bandwidth"), of("read latency mean")), (2.0, 2.0));
        let text = format!("{{\"jobs\":[{}]}}", job(5.0, 28));
        assert!(super::fio(&text).expect_err("failed").contains("error 28"));
    }
}
