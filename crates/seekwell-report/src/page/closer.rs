//! The details of a cell as a part of the page: percentiles, course over time, shares, disk
//! activity. The data are reduced to what is visible. Maxima and minima are always kept.

use super::columns::Columns;
use seekwell_lab::detail::{Detail, Second, Side};
use serde_json::{Map, Value, json};

/// Maximum number of points of a curve. More points would be finer than a pixel.
const POINTS: usize = 250;
/// Minimum number of seconds for a plot over time.
const LEAST_SECONDS: usize = 3;

/// Returns latencies in ns, and cumulative shares in units of 10^-7. A point is kept if it is
/// visibly apart from the previous one on the linear or on the logarithmic axis. The last point is
/// always kept.
fn thinned(buckets: &[(u64, u64)]) -> (Vec<u64>, Vec<u64>) {
    let all: u64 = buckets.iter().map(|b| b.1).sum();
    let (mut latency, mut share) = (Vec::new(), Vec::new());
    let (mut done, mut shown_plain, mut shown_tail) = (0u64, -1.0, -1.0);
    for (i, (ns, n)) in buckets.iter().enumerate() {
        done += n;
        let part = done as f64 / all.max(1) as f64;
        // Of n operations, the share beyond the last one is less than 1/n, so the axis ends there.
        let beyond = (1.0 - part).max(0.5 / all.max(1) as f64);
        let tail = -libm::log10(beyond);
        let step = 2.0 / POINTS as f64;
        let moved = part - shown_plain > step || tail - shown_tail > 4.0 * step;
        if moved || i + 1 == buckets.len() {
            latency.push(*ns);
            share.push(libm::round((1.0 - beyond) * 1e7) as u64);
            (shown_plain, shown_tail) = (part, tail);
        }
    }
    (latency, share)
}

/// Merges seconds into longer steps. Maxima and minima are kept.
pub(super) fn coarse(seconds: &[Second], step: usize) -> Vec<Second> {
    let together = |chunk: &[Second]| chunk.iter().copied().reduce(|a, b| a.with(&b));
    seconds.chunks(step.max(1)).filter_map(together).collect()
}

fn course(columns: &mut Columns, of: &Side, step: usize) {
    if of.seconds.len() < LEAST_SECONDS {
        return;
    }
    let t = of.treatment;
    let seconds = coarse(&of.seconds, step);
    let whole = |f: fn(&Second) -> u64| seconds.iter().map(move |s| f(s) as i64);
    columns.int(&format!("{t}.mean"), whole(Second::mean_milli));
    columns.int(&format!("{t}.low"), whole(|s| s.low));
    columns.int(&format!("{t}.high"), whole(|s| s.high));
    let latency = |f: fn(&Second) -> u64| seconds.iter().map(f);
    columns.log(&format!("{t}.lat"), latency(Second::latency_ns));
    columns.log(&format!("{t}.max"), latency(|s| s.latency_max_ns));
    if seconds.iter().any(|s| s.square_us2 > 0) {
        columns.log(&format!("{t}.sd"), latency(Second::deviation_ns));
    }
}

fn side(of: &Side) -> Value {
    let marks: Vec<_> = of
        .marks
        .iter()
        .map(|m| json!([m.what.name(), m.from_ms, m.to_ms]))
        .collect();
    let facts = of.facts.map(|f| {
        json!({
            "rate": f.bytes_per_s, "requests": f.requests, "merges": f.merges,
            "seek": f.seek_bytes, "busy": f.busy, "depth": f.depth,
            "outstanding": f.outstanding, "percentiles": f.percentiles_ns,
        })
    });
    let traded = of.traded.map(|t| {
        json!({
            "rate": t.bytes_per_s, "rates": t.bytes_95, "p99": t.p99_ns, "p99s": t.p99_95,
        })
    });
    let n: u64 = of.latency.iter().map(|b| b.1).sum();
    json!({
        "s": of.treatment, "runs": of.runs, "n": n, "marks": marks, "shares": of.shares,
        "facts": facts, "traded": traded,
    })
}

/// Returns a part of the page in which `step` seconds are one step, or `None` if the cell has no
/// details.
pub(super) fn pack(detail: &Detail, step: usize) -> Option<String> {
    let kept =
        |s: &&Side| !s.latency.is_empty() || s.seconds.len() >= LEAST_SECONDS || s.facts.is_some();
    let sides: Vec<&Side> = detail.sides.iter().filter(kept).collect();
    if sides.is_empty() {
        return None;
    }
    let mut columns = Columns::default();
    for s in &sides {
        if !s.latency.is_empty() {
            let (latency, share) = thinned(&s.latency);
            columns.log(&format!("{}.latency", s.treatment), latency.iter().copied());
            let share = share.iter().map(|v| *v as i64);
            columns.int(&format!("{}.share", s.treatment), share);
        }
        course(&mut columns, s, step);
    }
    let mut head = Map::new();
    head.insert("operation".to_owned(), detail.operation.as_str().into());
    head.insert("step".to_owned(), step.into());
    let all: Vec<Value> = sides.iter().map(|s| side(s)).collect();
    head.insert("sides".to_owned(), all.into());
    Some(columns.part(head))
}

#[cfg(test)]
mod tests {
    use super::super::columns::read;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn thinning_keeps_every_spike(
            buckets in proptest::collection::btree_map(1u64..1 << 40, 1u64..1000, 1..600),
            quiet in 1u64..5000, spike in 5_001u64..1 << 30, n in 3usize..4000, at in 0usize..4000,
            step in 1usize..20,
        ) {
            let second = |i: usize| {
                let ops = if i == at % n { spike } else { quiet };
                Second { runs: 1, ops, low: ops, high: ops, latency_max_ns: ops * 1_000, ..Second::default() }
            };
            let buckets: Vec<(u64, u64)> = buckets.into_iter().collect();
            let detail = Detail {
                operation: "read".to_owned(),
                sides: vec![Side {
                    treatment: 2, runs: 1, latency: buckets.clone(),
                    seconds: (0..n).map(second).collect(), ..Side::default()
                }],
            };
            let part = read::part(&pack(&detail, step).expect("a part"));
            let high = part.column("2.high");
            prop_assert_eq!(high.len(), n.div_ceil(step));
            prop_assert_eq!(high[at % n / step], spike as f64);
            let most = part.column("2.max")[at % n / step];
            prop_assert!((most / (spike as f64 * 1e3) - 1.0).abs() < 0.005);
            let latency = part.column("2.latency");
            let share = part.column("2.share");
            prop_assert!(latency.len() == share.len() && latency.len() <= 2 * POINTS);
            // The largest latency has an error of at most half a per cent.
            let last = buckets[buckets.len() - 1].0 as f64;
            prop_assert!((latency[latency.len() - 1] / last - 1.0).abs() < 0.005);
            prop_assert!(share.windows(2).all(|w| w[0] <= w[1]));
        }
    }
}
