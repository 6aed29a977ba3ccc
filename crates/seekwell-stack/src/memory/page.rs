//! A page of the page cache and its state.

/// No index.
pub(crate) const NONE: u32 = u32::MAX;

pub(crate) mod flag {
    pub const UPTODATE: u8 = 1;
    pub const DIRTY: u8 = 2;
    pub const WRITEBACK: u8 = 4;
    /// A read of the page is under way.
    pub const READING: u8 = 8;
    /// A read of this page starts the next read-ahead window.
    pub const MARK: u8 = 32;
    /// The page has a reservation but no block.
    pub const DELAYED: u8 = 64;
    /// The page is in the page table of a mapping.
    pub const MAPPED: u8 = 128;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) ino: u32,
    pub(crate) idx: u32,
    /// The bio that reads or writes the page.
    pub(crate) bio: u32,
    /// The metadata block that the page contains, if any.
    pub(crate) meta: u32,
    /// The leaf that contains the page.
    pub(crate) leaf: u32,
    pub(crate) flags: u8,
    /// Order of the page's folio: the folio has `1 << order` pages.
    pub(crate) order: u8,
}

impl Page {
    pub(crate) fn is(&self, f: u8) -> bool {
        self.flags & f != 0
    }
    /// Returns whether a folio begins at this page. `before` is the order of the folio that
    /// contains the page before.
    #[inline]
    pub(crate) fn begins_folio(&self, before: u8) -> bool {
        self.order != before || self.idx.trailing_zeros() >= u32::from(self.order)
    }
}
