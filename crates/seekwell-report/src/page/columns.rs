//! Packs long data. A part has a length, a JSON head, and columns of differences as zigzag varints.
//! It is deflated and encoded in base64. The script unpacks a part when the user opens it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Map, Value, json};
use std::io::Write as _;

/// The columns of a part.
#[derive(Default)]
pub(super) struct Columns {
    heads: Vec<Value>,
    body: Vec<u8>,
}

impl Columns {
    /// Adds a column of integers, stored as differences between neighbours.
    pub fn int(&mut self, name: &str, values: impl ExactSizeIterator<Item = i64>) {
        let (n, at) = (values.len(), self.body.len());
        let mut before = 0i64;
        for v in values {
            self.varint(v.wrapping_sub(before));
            before = v;
        }
        self.heads
            .push(json!({"name": name, "kind": "int", "n": n, "at": at}));
    }
    /// Adds a column of positive numbers with a precision of half a per cent, which is finer than a
    /// pixel. Zero is exact.
    pub fn log(&mut self, name: &str, values: impl ExactSizeIterator<Item = u64> + Clone) {
        const STEP: f64 = 0.005;
        let n = values.len();
        let least = values.clone().filter(|v| *v > 0).min().unwrap_or(1);
        let low = libm::log(least as f64);
        let at = self.body.len();
        let mut before = 0i64;
        for v in values {
            let code = match v {
                0 => 0,
                v => 1 + libm::round((libm::log(v as f64) - low) / STEP) as i64,
            };
            self.varint(code - before);
            before = code;
        }
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
    /// Returns the packed part; `head` contains its other fields.
    pub fn part(self, mut head: Map<String, Value>) -> String {
        head.insert("columns".to_owned(), self.heads.into());
        let head = Value::from(head).to_string();
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
        let mut write = |bytes: &[u8]| {
            // A write to memory cannot fail.
            let _ = deflate.write_all(bytes);
        };
        write(&(head.len() as u32).to_le_bytes());
        write(head.as_bytes());
        write(&self.body);
        STANDARD.encode(deflate.finish().unwrap_or_default())
    }
}

/// Reads a part as the script does.
#[cfg(test)]
pub(super) mod read {
    use super::*;
    use flate2::read::DeflateDecoder;
    use std::io::Read as _;

    pub struct Part {
        pub head: Value,
        body: Vec<u8>,
    }

    pub fn part(text: &str) -> Part {
        let packed = STANDARD.decode(text).expect("base64");
        let mut raw = Vec::new();
        DeflateDecoder::new(&packed[..])
            .read_to_end(&mut raw)
            .expect("deflate");
        let n = u32::from_le_bytes(raw[..4].try_into().expect("four")) as usize;
        Part {
            head: serde_json::from_slice(&raw[4..4 + n]).expect("a head"),
            body: raw[4 + n..].to_vec(),
        }
    }

    impl Part {
        pub fn column(&self, name: &str) -> Vec<f64> {
            let all = self.head["columns"].as_array().expect("columns");
            let c = all.iter().find(|c| c["name"] == name).expect("it is there");
            let (mut at, mut before) = (c["at"].as_u64().expect("at") as usize, 0i64);
            let n = c["n"].as_u64().expect("n");
            let mut out = Vec::new();
            for _ in 0..n {
                let (mut z, mut shift) = (0u64, 0);
                loop {
                    let b = self.body[at];
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
                        let lo = c["lo"].as_f64().expect("lo");
                        let step = c["step"].as_f64().expect("step");
                        libm::exp(lo + (before - 1) as f64 * step)
                    }
                    _ => before as f64,
                });
            }
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_columns_survive_a_round_trip(
            whole in proptest::collection::vec(-(1i64 << 50)..1 << 50, 0..200),
            positive in proptest::collection::vec(0u64..1 << 45, 0..200),
        ) {
            let mut c = Columns::default();
            c.int("whole", whole.iter().copied());
            c.log("positive", positive.iter().copied());
            let part = read::part(&c.part(Map::new()));
            let back: Vec<f64> = whole.iter().map(|v| *v as f64).collect();
            prop_assert_eq!(part.column("whole"), back);
            for (is, was) in part.column("positive").iter().zip(&positive) {
                prop_assert!((is - *was as f64).abs() <= 0.0026 * *was as f64, "{} {}", is, was);
            }
        }
    }
}
