//! A SQLite table with an integer key. The model only determines which pages a transaction changes.
//!
//! The library's page layout with full auto-vacuum is: page 1 header, page 2 pointer map, page 3
//! root of the table (which is its only leaf while the table is small), page 4 sqlite_sequence if
//! it exists, then leaves. Rows are added at the end and removed at the start. A leaf contains as
//! many rows as fit. When deletions make a leaf two thirds empty, it is balanced with its next two
//! neighbours. When a page becomes free, the last page of the file moves there, and the file
//! becomes shorter.

/// The changes of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// Numbers of the written pages in ascending order; the first page is 1.
    pub pages: Vec<u64>,
    /// Number of written pages that were in the file before. Their old contents go to the journal.
    pub journaled: usize,
    /// New length of the file in pages, if it becomes shorter.
    pub cut: Option<u64>,
    /// True if only the counter changes in page 1. With a write-ahead log, page 1 is then not
    /// written.
    pub counter_only: bool,
    /// Length of the file in pages after the transaction.
    pub size: u64,
}

/// Space for cells in a page, in bytes, without the header of a leaf.
const ROOM: u64 = 4096 - 8;
/// Bytes per row in addition to its text: cell pointer, lengths, key and column types.
const OVERHEAD: u64 = 10;

const HEADER: u64 = 1;
const POINTERS: u64 = 2;
const ROOT: u64 = 3;
const SEQUENCE: u64 = 4;

pub(super) struct Table {
    /// Number of rows that fit into a leaf.
    fit: u64,
    sequence: bool,
    /// (page, number of rows) in order of the key. A single leaf is the root.
    leaves: Vec<(u64, u64)>,
    /// Number of pages in the file.
    size: u64,
}

impl Table {
    pub(super) fn new(row: u64, sequence: bool) -> Self {
        Table {
            fit: ROOM / (row + OVERHEAD),
            sequence,
            leaves: vec![(ROOT, 0)],
            size: if sequence { SEQUENCE } else { ROOT },
        }
    }
    /// Returns the number of pages in the file.
    pub(super) fn pages(&self) -> u64 {
        self.size
    }

    fn change(&self, mut pages: Vec<u64>, before: u64, counter_only: bool) -> Change {
        pages.sort_unstable();
        pages.dedup();
        // Pages beyond the new end of the file are not written.
        pages.retain(|p| *p <= self.size);
        Change {
            journaled: pages.iter().filter(|p| **p <= before).count(),
            cut: (self.size < before).then_some(self.size),
            counter_only,
            size: self.size,
            pages,
        }
    }

    /// Inserts a row at the end.
    pub(super) fn insert(&mut self) -> Change {
        let before = self.size;
        let mut pages = vec![HEADER];
        if self.sequence {
            pages.push(SEQUENCE);
        }
        let last = self.leaves.len() - 1;
        let split = self.leaves[last].1 == self.fit;
        if !split {
            self.leaves[last].1 += 1;
            pages.push(self.leaves[last].0);
        } else {
            pages.extend([POINTERS, ROOT]);
            if self.leaves[last].0 == ROOT {
                // The rows of the root move to a new leaf.
                self.size += 1;
                self.leaves[last].0 = self.size;
                pages.push(self.size);
            }
            self.size += 1;
            self.leaves.push((self.size, 1));
            pages.push(self.size);
        }
        self.change(pages, before, !split)
    }

    /// Updates the `i`-th row in place.
    pub(super) fn update(&mut self, i: u64) -> Change {
        let mut left = i;
        let leaf = self.leaves.iter().find(|l| {
            let here = left < l.1;
            left = left.saturating_sub(l.1);
            here
        });
        let page = leaf.map_or(ROOT, |l| l.0);
        self.change(vec![HEADER, page], self.size, true)
    }

    /// Deletes the first row.
    pub(super) fn delete(&mut self) -> Change {
        let before = self.size;
        let first = self.leaves.iter().position(|l| l.1 > 0).unwrap_or(0);
        let leaf = &mut self.leaves[first];
        leaf.1 = leaf.1.saturating_sub(1);
        let mut pages = vec![HEADER, leaf.0];
        // Balance when two thirds of the page are empty.
        if self.leaves.len() == 1 || self.leaves[first].1 * 3 > self.fit {
            return self.change(pages, before, true);
        }
        pages.push(ROOT);
        let n = self.leaves.len().min(3);
        let freed = self.balance(n);
        pages.extend(self.leaves[..n - freed.len()].iter().map(|l| l.0));
        for page in &freed {
            pages.push(POINTERS);
            // The last page of the file replaces the free page.
            let last = self.size;
            self.size -= 1;
            if *page != last {
                pages.push(*page);
                if let Some(l) = self.leaves.iter_mut().find(|l| l.0 == last) {
                    l.0 = *page;
                }
            }
        }
        if self.leaves.len() == 1 {
            // The only remaining leaf moves back into the root.
            let page = std::mem::replace(&mut self.leaves[0].0, ROOT);
            pages.push(POINTERS);
            pages.retain(|p| *p != page);
            self.size -= 1;
        }
        self.change(pages, before, false)
    }

    /// Redistributes the rows of the first `n` leaves. Fills the leaves from the left, then
    /// equalises each pair of neighbours from the right. Removes the leaves that are not needed,
    /// and returns their pages.
    fn balance(&mut self, n: usize) -> Vec<u64> {
        let total: u64 = self.leaves[..n].iter().map(|l| l.1).sum();
        let need = (total.div_ceil(self.fit).max(1)) as usize;
        let mut rows: Vec<u64> = (0..need as u64)
            .map(|i| (total - i * self.fit).min(self.fit))
            .collect();
        for i in (1..need).rev() {
            let both = rows[i - 1] + rows[i];
            rows[i] = both / 2;
            rows[i - 1] = both - both / 2;
        }
        let freed = self.leaves.drain(need.min(n)..n).map(|l| l.0).collect();
        for (leaf, rows) in self.leaves.iter_mut().zip(rows) {
            leaf.1 = rows;
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The library's observed writes for 300 rows of 100 bytes with AUTOINCREMENT.
    #[test]
    fn inserts_change_the_same_pages_as_the_library() {
        let mut t = Table::new(100, true);
        let all: Vec<Change> = (0..300).map(|_| t.insert()).collect();
        assert_eq!(all[0].pages, [1, 3, 4]);
        assert_eq!(all[36].pages, [1, 3, 4]);
        assert_eq!(all[37].pages, [1, 2, 3, 4, 5, 6], "the root gets children");
        assert_eq!(all[37].journaled, 4);
        assert_eq!(all[38].pages, [1, 4, 6]);
        assert_eq!(all[74].pages, [1, 2, 3, 4, 7]);
        let splits = all.iter().filter(|c| c.pages.len() > 3).count();
        assert_eq!(splits, 8);
        assert_eq!(all[299].size, 13);
    }

    #[test]
    fn deletions_balance_leaves_like_the_library() {
        let mut t = Table::new(100, true);
        for _ in 0..300 {
            t.insert();
        }
        let all: Vec<Change> = (0..300).map(|_| t.delete()).collect();
        assert_eq!(all[0].pages, [1, 5]);
        // The library balances leaves in these deletions, as observed.
        let at: Vec<usize> = (0..300).filter(|i| all[*i].pages.len() > 2).collect();
        assert_eq!(at.len(), 14, "{at:?}");
        let seen = [
            24, 43, 65, 83, 104, 122, 142, 159, 178, 196, 215, 233, 252, 264,
        ];
        for (a, b) in at.iter().zip(seen) {
            assert!(a.abs_diff(b) <= 3, "{at:?}");
        }
        assert_eq!(all[24].pages, [1, 3, 5, 6, 7]);
        assert_eq!(all[43].pages.len(), 6);
        assert_eq!(all.iter().filter(|c| c.cut.is_some()).count(), 8);
        assert_eq!(t.pages(), 4, "as small as at the start");
    }

    #[test]
    fn updates_change_a_leaf_and_the_counter() {
        let mut t = Table::new(100, false);
        for _ in 0..100 {
            t.insert();
        }
        assert_eq!(t.update(0).pages, [1, 4]);
        assert_eq!(t.update(99).pages, [1, 6]);
        assert_eq!(t.update(5000).pages, [1, 3], "a row that is not there");
    }
}
