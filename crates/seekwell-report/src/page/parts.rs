//! What is long, packed: a length, a JSON head, columns of differences as zigzag varints, all of it
//! deflated and in base64. The script opens a part when somebody looks at it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};
use std::io::Write as _;

/// Points of a curve at most: more are finer than a pixel.
const POINTS: usize = 250;

/// What is shown of a cell when somebody looks closer.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// Kind of the operations, as the script of the workload names it.
    pub operation: String,
    /// By treatment.
    pub curves: Vec<Curve>,
    /// By treatment.
    pub seconds: Vec<(usize, Vec<Spread>)>,
}

/// Latencies of all runs of a treatment.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Which, by place.
    pub treatment: usize,
    /// Upper end of each bucket, ns, and the operations in it, ascending.
    pub buckets: Vec<(u64, u64)>,
}

/// A second of a series over the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Which, from the start of the runs.
    pub second: u32,
    /// Mean of the runs, thousandths.
    pub mean_milli: u64,
    /// Lowest.
    pub low: u64,
    /// Highest.
    pub high: u64,
}

/// Columns on their way into a part.
#[derive(Default)]
struct Columns {
    heads: Vec<Value>,
    body: Vec<u8>,
}

impl Columns {
    /// Whole numbers: differences from one to the next.
    fn int(&mut self, name: String, values: impl ExactSizeIterator<Item = i64>) {
        let (n, at) = (values.len(), self.body.len());
        let mut before = 0i64;
        for v in values {
            self.varint(v.wrapping_sub(before));
            before = v;
        }
        self.heads
            .push(json!({"name": name, "kind": "int", "n": n, "at": at}));
    }
    /// Positive numbers to half a per cent; 0 stays 0.
    fn log(&mut self, name: String, values: &[u64]) {
        const STEP: f64 = 0.005;
        let least = values.iter().copied().filter(|v| *v > 0).min().unwrap_or(1);
        let low = libm::log(least as f64);
        let at = self.body.len();
        let mut before = 0i64;
        for v in values {
            let code = match v {
                0 => 0,
                v => 1 + libm::round((libm::log(*v as f64) - low) / STEP) as i64,
            };
            self.varint(code - before);
            before = code;
        }
        let n = values.len();
        self.heads
            .push(json!({"name": name, "kind": "log", "n": n, "at": at, "lo": low, "step": STEP}));
    }
    fn varint(&mut self, v: i64) {
        let mut z = ((v << 1) ^ (v >> 63)) as u64;
        while z > 127 {
            self.body.push((z & 127) as u8 | 128);
            z >>= 7;
        }
        self.body.push(z as u8);
    }
}

/// Latency and share done within, in units of a ten-millionth, thinned to what one can see: a
/// point stays where the plain or the stretched axis moves, and the last always does.
fn thinned(buckets: &[(u64, u64)]) -> (Vec<u64>, Vec<u64>) {
    let all: u64 = buckets.iter().map(|b| b.1).sum();
    let (mut latency, mut share) = (Vec::new(), Vec::new());
    let (mut done, mut shown_plain, mut shown_tail) = (0u64, -1.0, -1.0);
    for (i, (ns, n)) in buckets.iter().enumerate() {
        done += n;
        let part = done as f64 / all.max(1) as f64;
        // The share beyond the last of n is less than 1/n: the axis ends there.
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

/// A part of the page.
pub(super) fn pack(detail: &Detail) -> String {
    let mut columns = Columns::default();
    for c in detail.curves.iter().filter(|c| !c.buckets.is_empty()) {
        let (latency, share) = thinned(&c.buckets);
        columns.log(format!("{}.latency", c.treatment), &latency);
        columns.int(
            format!("{}.share", c.treatment),
            share.iter().map(|v| *v as i64),
        );
    }
    for (t, seconds) in detail.seconds.iter().filter(|s| s.1.len() >= 3) {
        columns.int(
            format!("{t}.second"),
            seconds.iter().map(|s| i64::from(s.second)),
        );
        columns.int(
            format!("{t}.mean"),
            seconds.iter().map(|s| s.mean_milli as i64),
        );
        columns.int(format!("{t}.low"), seconds.iter().map(|s| s.low as i64));
        columns.int(format!("{t}.high"), seconds.iter().map(|s| s.high as i64));
    }
    let head = json!({"operation": detail.operation, "columns": columns.heads}).to_string();
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
    let mut write = |bytes: &[u8]| {
        // Writing to memory cannot fail.
        let _ = deflate.write_all(bytes);
    };
    write(&(head.len() as u32).to_le_bytes());
    write(head.as_bytes());
    write(&columns.body);
    STANDARD.encode(deflate.finish().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::DeflateDecoder;
    use proptest::prelude::*;
    use std::io::Read as _;

    /// As the script reads it.
    fn unpack(part: &str) -> (Value, Vec<u8>) {
        let packed = STANDARD.decode(part).expect("base64");
        let mut raw = Vec::new();
        DeflateDecoder::new(&packed[..])
            .read_to_end(&mut raw)
            .expect("deflate");
        let n = u32::from_le_bytes(raw[..4].try_into().expect("four")) as usize;
        (
            serde_json::from_slice(&raw[4..4 + n]).expect("a head"),
            raw[4 + n..].to_vec(),
        )
    }
    fn column(head: &Value, body: &[u8], name: &str) -> Vec<f64> {
        let all = head["columns"].as_array().expect("columns");
        let c = all.iter().find(|c| c["name"] == name).expect("it is there");
        let (mut at, mut before) = (c["at"].as_u64().expect("at") as usize, 0i64);
        let n = c["n"].as_u64().expect("n");
        let mut out = Vec::new();
        for _ in 0..n {
            let (mut z, mut shift) = (0u64, 0);
            loop {
                let b = body[at];
                at += 1;
                z |= u64::from(b & 127) << shift;
                shift += 7;
                if b & 128 == 0 {
                    break;
                }
            }
            before += (z >> 1) as i64 ^ -((z & 1) as i64);
            out.push(match c["kind"].as_str() {
                Some("log") if before == 0 => 0.0,
                Some("log") => {
                    let (lo, step) = (
                        c["lo"].as_f64().expect("lo"),
                        c["step"].as_f64().expect("step"),
                    );
                    libm::exp(lo + (before - 1) as f64 * step)
                }
                _ => before as f64,
            });
        }
        out
    }

    proptest! {
        #[test]
        fn a_part_gives_back_what_was_packed(
            buckets in proptest::collection::btree_map(1u64..1 << 40, 1u64..1000, 1..600),
            seconds in proptest::collection::vec((0u64..1 << 30, 0u64..5000), 3..500),
        ) {
            let spread = |(i, (low, more)): (usize, &(u64, u64))| Spread {
                second: i as u32, mean_milli: low * 1000 + more * 500, low: *low, high: low + more,
            };
            let seconds: Vec<Spread> = seconds.iter().enumerate().map(spread).collect();
            let buckets: Vec<(u64, u64)> = buckets.into_iter().collect();
            let detail = Detail {
                operation: "read".to_owned(),
                curves: vec![Curve { treatment: 2, buckets: buckets.clone() }],
                seconds: vec![(2, seconds.clone())],
            };
            let (head, body) = unpack(&pack(&detail));
            // No second is thinned away: each spike is there.
            let high = column(&head, &body, "2.high");
            prop_assert_eq!(high, seconds.iter().map(|s| s.high as f64).collect::<Vec<_>>());
            let latency = column(&head, &body, "2.latency");
            let share = column(&head, &body, "2.share");
            prop_assert_eq!(latency.len(), share.len());
            // The largest latency is shown, to half a per cent.
            let last = buckets[buckets.len() - 1].0 as f64;
            prop_assert!((latency[latency.len() - 1] / last - 1.0).abs() < 0.005);
            prop_assert!(share.windows(2).all(|w| w[0] <= w[1]));
        }
    }
}
