//! The record of a stream: decisions in order, with a running digest.

use std::fmt;

/// One decision. The meaning of the numbers depends on the kind.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    /// Time since the start, ns.
    pub at: u64,
    /// A word with a capital, or the name of the rule that decided.
    pub kind: &'static str,
    pub numbers: [u64; 3],
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c] = self.numbers;
        let ms = self.at as f64 / 1e6;
        write!(f, "{ms:.6} ms {} {a} {b} {c}", self.kind)
    }
}

/// All decisions of a stream.
#[derive(Default)]
pub struct Record {
    pub decisions: Vec<Decision>,
    hash: u64,
    /// The running hash after each decision.
    hashes: Vec<u64>,
}

impl Record {
    pub fn add(&mut self, at: u64, kind: &'static str, numbers: [u64; 3]) {
        let name = kind.bytes().fold(0, |h, b| mix(h, u64::from(b)));
        for n in [at, name, numbers[0], numbers[1], numbers[2]] {
            self.hash = mix(self.hash, n);
        }
        self.decisions.push(Decision { at, kind, numbers });
        self.hashes.push(self.hash);
    }
    /// Four hexadecimal digits for each block of `size` decisions. They also depend on all earlier
    /// blocks.
    pub fn digests(&self, size: usize) -> Vec<String> {
        let last_of = |c: &[u64]| format!("{:04x}", c[c.len() - 1] >> 48);
        self.hashes.chunks(size).map(last_of).collect()
    }
}

/// Adds a number to a hash.
pub fn mix(hash: u64, n: u64) -> u64 {
    let x = (hash.rotate_left(5) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 29)
}

/// The hash of the numbers in a text. A change of the words does not change this hash.
pub fn numbers_in(text: &str) -> u64 {
    let mut hash = 0;
    let mut number = None;
    for c in text.bytes().chain([b' ']) {
        if c.is_ascii_digit() {
            let n: u64 = number.unwrap_or(0);
            number = Some(n.wrapping_mul(10).wrapping_add(u64::from(c - b'0')));
        } else if let Some(n) = number.take() {
            hash = mix(hash, n);
        }
    }
    hash
}
