//! Folios: pages of a file that are contiguous in memory. The folios of a request determine the
//! length of its scatter list. Large requests are split by this length.
//!
//! write() requests the largest folio that its data fill and that the alignment of the index
//! permits. Read-ahead starts a stream with single pages. With each window that a mark starts, its
//! folios become four times larger. A page keeps the size of its folio until it is evicted. Not
//! modelled: single pages that are contiguous by chance (most are on a freshly booted machine),
//! memory too fragmented for large folios, and a store through a mapping that dirties a whole
//! folio.

use super::page::Page;
use crate::constants::Constants;
use seekwell_core::{PAGE_SECTORS, SEGMENT_SECTORS};

/// The folios of one write or of one read-ahead window, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    /// End of the write or of the window, bytes.
    end: u64,
    /// Size of the largest folio, pages.
    largest: u64,
    order: u8,
    /// Index of the page after the most recent folio.
    next: u32,
}

impl Fill {
    /// Returns the folios of a write of `len` bytes from `off`. The write is extended to the start
    /// of its first page.
    pub(crate) fn of_write(c: &Constants, off: u64, len: u64) -> Self {
        Fill::new(off / 4096 * 4096 + len, c.folio_pages)
    }
    /// Returns the folios of a read-ahead window that ends before page `end`. `round` is the number
    /// of the window in its stream.
    pub(crate) fn of_window(c: &Constants, round: u8, end: u32) -> Self {
        let order = (u64::from(round) * c.folio_growth_order).min(31);
        Fill::new(u64::from(end) * 4096, c.folio_pages.min(1 << order))
    }
    fn new(end: u64, largest: u64) -> Self {
        let (order, next) = (0, 0);
        Fill {
            end,
            largest,
            order,
            next,
        }
    }
    /// Returns the order of the folio of page `idx`. Callers must give the pages in ascending
    /// order.
    #[inline]
    pub(crate) fn order(&mut self, idx: u32) -> u8 {
        if idx >= self.next && self.largest > 1 {
            self.begin(idx);
        }
        self.order
    }
    fn begin(&mut self, idx: u32) {
        let pages = (self.end.saturating_sub(u64::from(idx) * 4096) / 4096).max(1);
        let pages = pages.min(self.largest);
        self.order = pages.ilog2().min(idx.trailing_zeros()) as u8;
        self.next = idx.saturating_add(1 << self.order);
    }
}

/// The scatter list of a bio, which is built page by page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scatter {
    /// Number of folios.
    pub(crate) vecs: u32,
    entries: u32,
    pages: u32,
    order: u8,
}

impl Scatter {
    #[inline]
    pub(crate) fn add(&mut self, page: &Page) {
        let segment = u32::from(SEGMENT_SECTORS / PAGE_SECTORS);
        let begins = self.pages == 0 || page.begins_folio(self.order);
        self.vecs += u32::from(begins);
        self.entries += u32::from(begins || page.idx.is_multiple_of(segment));
        self.pages += 1;
        self.order = page.order;
    }
    /// Returns whether this page would start another folio.
    #[inline]
    pub(crate) fn begins(&self, page: &Page) -> bool {
        page.begins_folio(self.order)
    }
    /// Returns the mean size of a list entry in sectors.
    pub(crate) fn segment(&self) -> u16 {
        let sectors = self.pages * u32::from(PAGE_SECTORS);
        let mean = sectors.div_ceil(self.entries.max(1));
        mean.clamp(u32::from(PAGE_SECTORS), u32::from(SEGMENT_SECTORS)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::NONE;
    use seekwell_core::Era;

    fn orders(off: u64, len: u64) -> Vec<u8> {
        let mut f = Fill::of_write(&Constants::for_era(Era::Mq6_18), off, len);
        let pages = off / 4096..(off + len).div_ceil(4096);
        pages.map(|i| f.order(i as u32)).collect()
    }

    #[test]
    fn folio_order_follows_length_and_alignment_of_the_write() {
        assert_eq!(orders(0, 4096), [0]);
        assert_eq!(orders(16_384, 16_384), [2; 4]);
        // 100 KiB take folios of 64, 32 and 4 KiB. The index then aligns the next folios to 4, 8,
        // 16 KiB and so on.
        let of = |off, len| {
            let mut o = orders(off, len);
            o.dedup();
            o
        };
        assert_eq!(of(0, 100 << 10), [4, 3, 0]);
        assert_eq!(of(100 << 10, 28 << 10), [0, 1, 2]);
        // The largest folio has 2 MiB.
        assert_eq!(of(0, 16 << 20), [9]);
        // Kernels before 6.16 have no large folios.
        let mut f = Fill::of_write(&Constants::for_era(Era::Mq6_1), 0, 1 << 20);
        assert_eq!(f.order(0), 0);
    }

    #[test]
    fn read_ahead_folios_start_with_single_pages_and_grow_fourfold() {
        let orders = |round, from: u32, end| {
            let mut f = Fill::of_window(&Constants::for_era(Era::Mq6_18), round, end);
            let mut o: Vec<u8> = (from..end).map(|i| f.order(i)).collect();
            o.dedup();
            o
        };
        assert_eq!(orders(0, 0, 256), [0]);
        assert_eq!(orders(1, 256, 512), [2]);
        assert_eq!(orders(2, 512, 768), [4]);
        // The folio is as large as the window, if the start and the end of the window permit it.
        assert_eq!(orders(9, 32, 64), [5]);
        assert_eq!(orders(9, 33, 64), [0, 1, 2, 3, 4]);
        assert_eq!(orders(9, 64, 67), [1, 0]);
    }

    #[test]
    fn scatter_entries_hold_64_kib_and_never_two_folios() {
        let bio = |orders: &[u8]| {
            let mut s = Scatter::default();
            for (idx, order) in (0u32..).zip(orders) {
                let (ino, bio, meta) = (1, NONE, NONE);
                let order = *order;
                s.add(&Page {
                    ino,
                    idx,
                    bio,
                    meta,
                    leaf: NONE,
                    flags: 0,
                    order,
                });
            }
            (s.vecs, s.entries, s.segment())
        };
        assert_eq!(bio(&[0; 32]), (32, 32, 8), "single pages");
        assert_eq!(bio(&[2; 32]), (8, 8, 32), "16 KiB");
        assert_eq!(bio(&[4; 32]), (2, 2, 128), "64 KiB");
        assert_eq!(bio(&[9; 512]), (1, 32, 128), "2 MiB are 32 entries");
        assert_eq!(bio(&[2, 2, 2, 2, 0, 0]), (3, 3, 16), "mixed");
    }
}
