//! Real bytes behind the stripe cache.

use super::{Memory, SIZE};
use seekwell_block::Parity;
use seekwell_block::raid::parity::Step;
use seekwell_block::raid::parity::plan::How;
use seekwell_core::{Bio, Op};
use seekwell_device::raid::Layout;
use std::collections::BTreeMap;

/// An array of real bytes (one byte per sector), and the pages that the cache knows.
pub struct Model {
    n: usize,
    layout: Layout,
    failed: Vec<usize>,
    disk: Vec<Vec<u8>>,
    cache: BTreeMap<(u64, usize), [u8; 8]>,
    /// The expected content of each array sector, and the last submitted value.
    data: Vec<u8>,
    stamp: u8,
}

fn times2(x: u8) -> u8 {
    x << 1 ^ if x & 0x80 != 0 { 0x1d } else { 0 }
}
fn power(i: usize) -> u8 {
    (0..i).fold(1, |x, _| times2(x))
}
fn product(mut a: u8, mut b: u8) -> u8 {
    let mut r = 0;
    while b > 0 {
        if b & 1 == 1 {
            r ^= a;
        }
        a = times2(a);
        b >>= 1;
    }
    r
}

impl Model {
    pub fn new(a: &Parity<Memory>, failed: &[usize]) -> Model {
        let layout = *a.level().layout();
        let n = layout.members();
        Model {
            n,
            layout,
            failed: failed.to_vec(),
            // All zeroes: their parity is zero.
            disk: vec![vec![0; SIZE as usize]; n],
            cache: BTreeMap::new(),
            data: vec![0; layout.capacity().0 as usize],
            stamp: 0,
        }
    }
    pub fn forward_bio(&mut self, a: &mut Parity<Memory>, b: Option<Bio>) {
        for s in a.level_mut().steps() {
            self.step(s);
        }
        if let Some(b) = b.filter(|b| b.op == Op::Write) {
            self.stamp = self.stamp.wrapping_mul(5).wrapping_add(3);
            for s in b.sector.0..b.end().0 {
                self.data[s as usize] = self.stamp ^ s as u8;
            }
        }
    }
    /// The data members of a row of pages in order, and P and Q.
    fn members(&self, row: u64) -> (Vec<usize>, usize, Option<usize>) {
        let r = self.layout.row(row * 8);
        let (p, q) = self.layout.parity(r);
        let data = (0..self.layout.width() as usize).map(|i| self.layout.data_member(r, i));
        (data.collect(), p, q)
    }
    fn at(&self, row: u64, member: usize, what: &str) -> [u8; 8] {
        let page = self.cache.get(&(row, member));
        *page.unwrap_or_else(|| panic!("{what}: page {row} of member {member} is not in the cache"))
    }
    fn step(&mut self, s: Step) {
        match s {
            Step::Read { row, member } => {
                assert!(!self.failed.contains(&member));
                let from = row as usize * 8;
                let page = self.disk[member][from..from + 8].try_into().unwrap();
                self.cache.insert((row, member), page);
            }
            Step::Recover { row } => {
                // The recovered content is the expected content. But the pages that were read must
                // be sufficient to compute it.
                let (data, p, q) = self.members(row);
                let lost: Vec<_> = data.iter().filter(|m| self.failed.contains(m)).collect();
                for m in data.iter().filter(|m| !self.failed.contains(m)) {
                    self.at(row, *m, "recovery");
                }
                let parities = [Some(p), q].into_iter().flatten();
                let known = parities
                    .filter(|p| self.cache.contains_key(&(row, *p)))
                    .count();
                assert!(known >= lost.len(), "recovery from too little");
                for m in lost {
                    let page = self.lost_page(row, *m);
                    self.cache.insert((row, *m), page);
                }
            }
            Step::Drain {
                row,
                member,
                sectors,
            } => {
                let old = self.cache.get(&(row, member)).copied();
                assert!(old.is_some() || sectors == 0xff, "part of an unknown page");
                let mut page = old.unwrap_or_default();
                for (i, byte) in page.iter_mut().enumerate() {
                    if sectors & 1 << i != 0 {
                        let at = self.layout.logical(member, row * 8 + i as u64).unwrap();
                        *byte = self.data[at as usize];
                    }
                }
                self.pending(row, member, old, page);
            }
            Step::Compute { row, how } => self.compute(row, how),
            Step::Write { row, member } => {
                assert!(!self.failed.contains(&member));
                let page = self.at(row, member, "write");
                self.disk[member][row as usize * 8..][..8].copy_from_slice(&page);
            }
        }
    }
    /// The content of a lost page, stored separately because it cannot be read.
    fn lost_page(&self, row: u64, member: usize) -> [u8; 8] {
        self.disk[member][row as usize * 8..][..8]
            .try_into()
            .unwrap()
    }
    fn pending(&mut self, row: u64, member: usize, old: Option<[u8; 8]>, new: [u8; 8]) {
        // Read-modify-write needs the difference between old and new data, which is stored as (row,
        // member + n).
        if let Some(old) = old {
            let mut d = new;
            for (x, o) in d.iter_mut().zip(old) {
                *x ^= o;
            }
            self.cache.insert((row, member + self.n), d);
        }
        self.cache.insert((row, member + 2 * self.n), new);
        self.cache.insert((row, member), new);
        if self.failed.contains(&member) {
            self.disk[member][row as usize * 8..][..8].copy_from_slice(&new);
        }
    }
    fn compute(&mut self, row: u64, how: How) {
        let (data, p, q) = self.members(row);
        let n = self.n;
        for (parity, weighted) in [(Some(p), false), (q, true)] {
            let Some(parity) = parity.filter(|m| !self.failed.contains(m)) else {
                continue;
            };
            let mut page = match how {
                How::ReadModifyWrite => self.at(row, parity, "old parity"),
                _ => [0; 8],
            };
            for (i, m) in data.iter().enumerate() {
                let w = if weighted { power(i) } else { 1 };
                let term = match how {
                    How::ReadModifyWrite => {
                        if !self.cache.contains_key(&(row, m + 2 * n)) {
                            continue;
                        }
                        self.at(row, m + n, "old data")
                    }
                    _ => self.at(row, *m, "reconstruction"),
                };
                for (x, t) in page.iter_mut().zip(term) {
                    *x ^= product(t, w);
                }
            }
            self.cache.insert((row, parity), page);
        }
        for m in data {
            self.cache.remove(&(row, m + n));
            self.cache.remove(&(row, m + 2 * n));
        }
    }
    pub fn check(&self, six: bool) {
        for row in 0..SIZE / 8 {
            let (data, p, q) = self.members(row);
            for s in row as usize * 8..row as usize * 8 + 8 {
                let (mut x, mut y) = (0, 0);
                for (i, m) in data.iter().enumerate() {
                    x ^= self.disk[*m][s];
                    y ^= product(self.disk[*m][s], power(i));
                    let at = self.layout.logical(*m, s as u64).unwrap() as usize;
                    assert_eq!(self.disk[*m][s], self.data[at], "data of sector {at}");
                }
                if !self.failed.contains(&p) {
                    assert_eq!(self.disk[p][s], x, "P of sector {s}");
                }
                if let Some(q) = q.filter(|q| six && !self.failed.contains(q)) {
                    assert_eq!(self.disk[q][s], y, "Q of sector {s}");
                }
            }
        }
    }
}
