//! The page map of the detailed variant. It stores the place of each user page, the content of each
//! physical page, and the number of valid pages of each block.
//!
//! The map takes four bytes per user page and four bytes per physical page. A user page has no
//! place, is in a buffer slot, or is on a physical page. A physical page is valid if the map entry
//! of its user page contains this physical page.

use super::super::params::{SsdParams, Victim};
use crate::divide::Divisor;
use rand::RngCore;
use seekwell_core::rng::Pcg64Mcg;

/// The value for no page.
pub(super) const NONE: u32 = u32::MAX;
/// Flag that marks a place as a buffer slot.
const SLOT: u32 = 1 << 31;
/// Score of a block that must not be cleaned because it is free, open or being cleaned.
const KEEP: u16 = u16::MAX;

/// The place of a user page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The page was never written, or was trimmed.
    Nowhere,
    /// The page is in this slot of the buffer.
    Slot(u32),
    /// The page is on this physical page.
    Flash(u32),
}

/// The map; see the module.
#[derive(Debug, Clone)]
pub(super) struct Map {
    to: Vec<u32>,
    back: Vec<u32>,
    valid: Vec<u16>,
    /// Number of valid pages of each block that may be cleaned; [`KEEP`] for other blocks.
    score: Vec<u16>,
    closed_at: Vec<u32>,
    erases: Vec<u32>,
    /// Number of valid pages per unit.
    unit_valid: Vec<u32>,
    by_block: Divisor,
    by_unit: Divisor,
    /// Number of pages per block. `blocks` is the number of blocks per unit.
    pub block: u32,
    pub blocks: u32,
    closings: u32,
    most_erases: u32,
}

impl Map {
    /// Makes an empty map for units of `blocks` blocks each.
    pub fn new(p: &SsdParams, blocks: u32) -> Self {
        let all = (p.units * blocks) as usize;
        Map {
            to: vec![NONE; p.pages as usize],
            back: vec![NONE; all * p.block as usize],
            valid: vec![0; all],
            score: vec![KEEP; all],
            closed_at: vec![0; all],
            erases: vec![0; all],
            unit_valid: vec![0; p.units as usize],
            by_block: Divisor::new(u64::from(p.block)),
            by_unit: Divisor::new(u64::from(blocks)),
            block: p.block,
            blocks,
            closings: 0,
            most_erases: 0,
        }
    }
    /// Returns the place of a user page.
    #[inline]
    pub fn place(&self, lpn: u32) -> Place {
        match self.to[lpn as usize] {
            NONE => Place::Nowhere,
            x if x & SLOT != 0 => Place::Slot(x & !SLOT),
            x => Place::Flash(x),
        }
    }
    /// Returns the block of a physical page, and the index of the page in this block.
    #[inline]
    pub fn block_of(&self, ppn: u32) -> (u32, u32) {
        let (b, at) = self.by_block.split(u64::from(ppn));
        (b as u32, at as u32)
    }
    /// Returns the unit of a block.
    #[inline]
    pub fn unit_of(&self, block: u32) -> u32 {
        self.by_unit.split(u64::from(block)).0 as u32
    }
    /// Returns the number of valid pages of a unit.
    #[inline]
    pub fn held(&self, unit: usize) -> u32 {
        self.unit_valid[unit]
    }
    /// Returns the number of valid pages of a block.
    #[inline]
    pub fn valid(&self, block: u32) -> u32 {
        u32::from(self.valid[block as usize])
    }
    #[inline]
    fn count(&mut self, ppn: u32, by: i32) {
        let b = self.block_of(ppn).0;
        let v = &mut self.valid[b as usize];
        *v = (i32::from(*v) + by) as u16;
        let s = &mut self.score[b as usize];
        if *s != KEEP {
            *s = (i32::from(*s) + by) as u16;
        }
        let u = self.unit_of(b) as usize;
        self.unit_valid[u] = (self.unit_valid[u] as i32 + by) as u32;
    }
    #[inline]
    fn leave(&mut self, lpn: u32) {
        let old = self.to[lpn as usize];
        if old & SLOT == 0 {
            self.count(old, -1);
        }
    }
    /// Records that the newest copy of a user page is in this slot.
    #[inline]
    pub fn hold_in(&mut self, lpn: u32, slot: u32) {
        self.leave(lpn);
        self.to[lpn as usize] = slot | SLOT;
    }
    /// Records that a user page holds no data.
    pub fn forget(&mut self, lpn: u32) {
        self.leave(lpn);
        self.to[lpn as usize] = NONE;
    }
    /// Records that a physical page is being written for a user page. [`NONE`] means for no user
    /// page.
    #[inline]
    pub fn assign(&mut self, ppn: u32, lpn: u32) {
        self.back[ppn as usize] = lpn;
    }
    /// Records that physical pages of one block, from `base` on, have been written from the slots,
    /// one page per slot. A page is valid if its slot still holds the newest copy. Returns the
    /// number of valid pages.
    #[inline]
    pub fn written(&mut self, base: u32, slots: &[u32]) -> u32 {
        let mut valid = 0;
        for (i, slot) in slots.iter().enumerate() {
            let lpn = self.back[base as usize + i];
            if lpn != NONE && self.to[lpn as usize] == slot | SLOT {
                self.to[lpn as usize] = base + i as u32;
                valid += 1;
            }
        }
        self.count(base, valid as i32);
        valid
    }
    /// Moves valid pages of a block into the slots that `next` returns. Examines up to `look`
    /// physical pages, from page `at` on, until the slots or the pages run out. Calls `each` with
    /// (index in the block, user page, slot) for each moved page. Returns the first page that was
    /// not examined.
    #[inline]
    pub fn take_out(
        &mut self,
        block: u32,
        at: u32,
        look: u32,
        mut next: impl FnMut() -> Option<u32>,
        mut each: impl FnMut(u32, u32, u32),
    ) -> u32 {
        let base = block * self.block;
        let end = (at + look).min(self.block);
        // Look up all pages together first. The map is large, and the memory can serve several
        // cache misses in parallel.
        let valid = (at..end)
            .filter(|i| self.holder(base + i).is_some())
            .count();
        if valid == 0 {
            return end;
        }
        let (mut i, mut taken) = (at, 0);
        while i < end {
            if let Some(lpn) = self.holder(base + i) {
                let Some(slot) = next() else { break };
                self.to[lpn as usize] = slot | SLOT;
                each(i, lpn, slot);
                taken += 1;
            }
            i += 1;
        }
        self.count(base, -taken);
        i
    }
    /// Returns the user page that is on a physical page, if the physical page is valid.
    #[inline]
    pub fn holder(&self, ppn: u32) -> Option<u32> {
        let lpn = self.back[ppn as usize];
        (lpn != NONE && self.to[lpn as usize] == ppn).then_some(lpn)
    }
    /// Sets the physical page of a user page; used to generate a state.
    pub fn place_at(&mut self, lpn: u32, ppn: u32) {
        self.back[ppn as usize] = lpn;
        self.to[lpn as usize] = ppn;
        self.count(ppn, 1);
    }
    /// Marks a full block as available for cleaning.
    pub fn close(&mut self, block: u32) {
        self.closings = self.closings.wrapping_add(1);
        self.closed_at[block as usize] = self.closings;
        self.score[block as usize] = self.valid[block as usize];
    }
    /// Marks a block as selected for cleaning, so that it is not selected again.
    pub fn take(&mut self, block: u32) {
        self.score[block as usize] = KEEP;
    }
    /// Records the erase of a block.
    pub fn erased(&mut self, block: u32) {
        let e = &mut self.erases[block as usize];
        *e += 1;
        self.most_erases = self.most_erases.max(*e);
    }
    /// Returns the number of erases of a block.
    pub fn erases(&self, block: u32) -> u32 {
        self.erases[block as usize]
    }

    /// Returns the block of a unit that should be cleaned, or `None` if cleaning frees no space. If
    /// `spread` is above 0, wear levelling is on. Then the least erased block is selected if its
    /// erase count is at least `spread` below the highest count.
    pub fn victim(
        &self,
        unit: usize,
        rule: Victim,
        spread: u32,
        rng: &mut Pcg64Mcg,
    ) -> Option<u32> {
        let from = unit * self.blocks as usize;
        let scores = &self.score[from..from + self.blocks as usize];
        let closed = || (0..scores.len()).filter(|i| scores[*i] != KEEP);
        if spread > 0 {
            let coldest = closed().min_by_key(|i| self.erases[from + i])?;
            if self.most_erases - self.erases[from + coldest] >= spread {
                return Some((from + coldest) as u32);
            }
        }
        let best = match rule {
            Victim::Greedy => {
                let least = scores.iter().copied().fold(KEEP, u16::min);
                scores.iter().position(|s| *s == least)
            }
            Victim::Choices(d) => {
                let d = match d {
                    0 => self.blocks.ilog2().max(1),
                    d => d,
                };
                // If the selected block must not be cleaned, select another one at random, a
                // limited number of times.
                let mut best: Option<usize> = None;
                let (mut drawn, mut tries) = (0, 0);
                while drawn < d && tries < 64 * d {
                    tries += 1;
                    let i = (((rng.next_u64() >> 32) * u64::from(self.blocks)) >> 32) as usize;
                    if scores[i] != KEEP {
                        drawn += 1;
                        if best.is_none_or(|b| scores[i] < scores[b]) {
                            best = Some(i);
                        }
                    }
                }
                best.or_else(|| closed().min_by_key(|i| scores[*i]))
            }
            Victim::CostBenefit => {
                // The value is (1 - u) / 2u * age. It is compared as a fraction of integers.
                let value = |i: usize| {
                    let v = u128::from(scores[i]);
                    let age = self.closings.wrapping_sub(self.closed_at[from + i]);
                    ((u128::from(self.block) - v) * u128::from(age + 1), 2 * v)
                };
                closed().max_by(|a, b| {
                    let ((an, ad), (bn, bd)) = (value(*a), value(*b));
                    (an * bd).cmp(&(bn * ad)).then(bd.cmp(&ad)).then(b.cmp(a))
                })
            }
            Victim::Fifo => closed().max_by_key(|i| {
                (
                    self.closings.wrapping_sub(self.closed_at[from + i]),
                    usize::MAX - i,
                )
            }),
        }?;
        (scores[best] < self.block as u16).then_some((from + best) as u32)
    }

    /// Checks all counts against the map, for tests. Reads the whole map. `in_slot` counts the
    /// pages in slots.
    pub fn check(&self) -> Result<Counts, String> {
        let mut valid = vec![0u16; self.valid.len()];
        let mut counts = Counts::default();
        for (lpn, to) in self.to.iter().enumerate() {
            match self.place(lpn as u32) {
                Place::Nowhere => {}
                Place::Slot(_) => counts.in_slots += 1,
                Place::Flash(ppn) => {
                    counts.on_flash += 1;
                    if self.back[ppn as usize] != lpn as u32 {
                        return Err(format!("page {lpn} is on {to}, which does not know it"));
                    }
                    valid[self.block_of(ppn).0 as usize] += 1;
                }
            }
        }
        for (b, v) in valid.iter().enumerate() {
            if *v != self.valid[b] {
                return Err(format!("block {b} counts {} valid, has {v}", self.valid[b]));
            }
            if self.score[b] != KEEP && self.score[b] != *v {
                return Err(format!("block {b} is scored {}, has {v}", self.score[b]));
            }
        }
        for (u, held) in self.unit_valid.iter().enumerate() {
            let from = u * self.blocks as usize;
            let sum: u32 = valid[from..from + self.blocks as usize]
                .iter()
                .map(|v| u32::from(*v))
                .sum();
            if sum != *held {
                return Err(format!("unit {u} counts {held} valid, has {sum}"));
            }
        }
        Ok(counts)
    }
}

/// Numbers of user pages on flash and in buffer slots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of user pages on a valid physical page.
    pub on_flash: u64,
    /// Number of user pages in the buffer, newer than their copy on flash.
    pub in_slots: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use seekwell_core::rng::stream;
    use std::collections::BTreeMap;

    fn small() -> SsdParams {
        let preset = crate::read_preset("ssd:x25m-g2-160,units=2,channels=2,block=8").unwrap();
        SsdParams {
            pages: 64,
            ..SsdParams::from_preset(&preset).unwrap()
        }
    }

    #[derive(Debug, Clone)]
    enum Do {
        Put(u32, u32),
        Write(u32, u32),
        Forget(u32),
    }

    fn step() -> impl Strategy<Value = Do> {
        prop_oneof![
            4 => (0u32..64, 0u32..16).prop_map(|(l, s)| Do::Put(l, s)),
            4 => (0u32..16, 0u32..96).prop_map(|(s, p)| Do::Write(s, p)),
            1 => (0u32..64).prop_map(Do::Forget),
        ]
    }

    proptest! {
        /// The places agree with two ordered maps, and the counts are right.
        #[test]
        fn page_map_agrees_with_plain_maps(steps in proptest::collection::vec(step(), 1..200)) {
            let mut map = Map::new(&small(), 6);
            let mut place: BTreeMap<u32, Place> = BTreeMap::new();
            let mut slot: BTreeMap<u32, u32> = BTreeMap::new();
            let mut used = std::collections::BTreeSet::new();
            for s in steps {
                match s {
                    Do::Put(lpn, s) => {
                        // A slot holds at most one page.
                        if slot.values().any(|l| *l == lpn) || slot.contains_key(&s) {
                            continue;
                        }
                        map.hold_in(lpn, s);
                        slot.insert(s, lpn);
                        place.insert(lpn, Place::Slot(s));
                    }
                    Do::Write(s, ppn) => {
                        let Some(lpn) = slot.get(&s).copied() else { continue };
                        if !used.insert(ppn) {
                            continue;
                        }
                        slot.remove(&s);
                        map.assign(ppn, lpn);
                        let newest = place.get(&lpn) == Some(&Place::Slot(s));
                        prop_assert_eq!(map.written(ppn, &[s]), u32::from(newest));
                        if newest {
                            place.insert(lpn, Place::Flash(ppn));
                        }
                    }
                    Do::Forget(lpn) => {
                        map.forget(lpn);
                        place.remove(&lpn);
                    }
                }
                for lpn in 0..64 {
                    let plain = place.get(&lpn).copied().unwrap_or(Place::Nowhere);
                    prop_assert_eq!(map.place(lpn), plain);
                    if let Place::Flash(ppn) = plain {
                        prop_assert_eq!(map.holder(ppn), Some(lpn));
                    }
                }
                let counts = map.check().map_err(TestCaseError::fail)?;
                let flash = place.values().filter(|p| matches!(p, Place::Flash(_))).count();
                prop_assert_eq!(counts.on_flash, flash as u64);
                prop_assert_eq!(counts.in_slots, (place.len() - flash) as u64);
            }
        }
    }

    /// Makes a map where block i of unit 0 has i + 1 valid pages. The blocks are closed in the
    /// order 2, 0, 1, 3, 4.
    fn five_closed_blocks() -> Map {
        let mut map = Map::new(&small(), 6);
        let mut lpn = 0;
        for b in [2u32, 0, 1, 3, 4] {
            for i in 0..=b {
                map.place_at(lpn, b * 8 + i);
                lpn += 1;
            }
            map.close(b);
        }
        map
    }

    #[test]
    fn each_cleaning_rule_selects_its_block() {
        let map = five_closed_blocks();
        let mut rng = stream(1, "t");
        let mut pick = |rule| map.victim(0, rule, 0, &mut rng);
        assert_eq!(pick(Victim::Greedy), Some(0));
        assert_eq!(pick(Victim::Fifo), Some(2));
        // The value of block 0 is (8-1)/2 * 4. It is greater than (8-3)/6 * 5 and the values of the
        // other blocks.
        assert_eq!(pick(Victim::CostBenefit), Some(0));
        assert_eq!(pick(Victim::Choices(64)), Some(0));
        let one: Vec<_> = (0..50).filter_map(|_| pick(Victim::Choices(1))).collect();
        assert_eq!(one.len(), 50);
        assert!((0..5).all(|b| one.contains(&b)));
        assert_eq!(map.victim(1, Victim::Greedy, 0, &mut rng), None);
    }

    #[test]
    fn valid_pages_are_moved_once() {
        let mut map = five_closed_blocks();
        map.forget(map.holder(4 * 8 + 1).unwrap());
        let (mut slots, mut taken) = (vec![9, 8, 7], vec![]);
        let end = map.take_out(
            4,
            0,
            8,
            || slots.pop(),
            |i, lpn, slot| taken.push((i, lpn, slot)),
        );
        // There are three slots, and the valid pages are 0, 2, 3 and 4.
        let places: Vec<_> = taken.iter().map(|t| (t.0, t.2)).collect();
        assert_eq!((end, places), (4, vec![(0, 7), (2, 8), (3, 9)]));
        assert!(taken.iter().all(|t| map.place(t.1) == Place::Slot(t.2)));
        assert_eq!((map.valid(4), map.check().unwrap().in_slots), (1, 3));
        assert_eq!(
            map.take_out(4, 5, 8, || Some(1), |_, _, _| panic!("nothing there")),
            8
        );
    }

    #[test]
    fn taken_or_fully_valid_block_is_never_a_victim() {
        let mut map = five_closed_blocks();
        let mut rng = stream(1, "t");
        map.take(0);
        assert_eq!(map.victim(0, Victim::Greedy, 0, &mut rng), Some(1));
        let mut full = Map::new(&small(), 6);
        for i in 0..8 {
            full.place_at(i, i);
        }
        full.close(0);
        assert_eq!(full.victim(0, Victim::Greedy, 0, &mut rng), None);
    }

    #[test]
    fn wear_levelling_selects_the_least_erased_block() {
        let mut map = five_closed_blocks();
        let mut rng = stream(1, "t");
        for b in 0..4 {
            for _ in 0..3 {
                map.erased(b);
            }
        }
        assert_eq!(map.victim(0, Victim::Greedy, 4, &mut rng), Some(0));
        assert_eq!(map.victim(0, Victim::Greedy, 3, &mut rng), Some(4));
    }
}
