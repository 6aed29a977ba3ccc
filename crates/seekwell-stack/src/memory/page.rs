//! A page of the cache and its state.

/// No index.
pub(crate) const NONE: u32 = u32::MAX;

pub(crate) mod flag {
    pub const UPTODATE: u8 = 1;
    pub const DIRTY: u8 = 2;
    pub const WRITEBACK: u8 = 4;
    /// A read is under way.
    pub const READING: u8 = 8;
    /// A read of it starts the next window.
    pub const MARK: u8 = 32;
    /// It has reserved space but no block yet.
    pub const DELAYED: u8 = 64;
    /// It is in the page table of a mapping.
    pub const MAPPED: u8 = 128;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) ino: u32,
    pub(crate) idx: u32,
    /// The bio that reads or writes it.
    pub(crate) bio: u32,
    /// The metadata block that it contains, if any.
    pub(crate) meta: u32,
    /// The leaf that it is in.
    pub(crate) leaf: u32,
    pub(crate) flags: u8,
    /// Pages of its folio, as a power of two.
    pub(crate) order: u8,
}

impl Page {
    pub(crate) fn is(&self, f: u8) -> bool {
        self.flags & f != 0
    }
    /// Whether a folio begins at this page, if the page before belongs to a folio of order
    /// `before`.
    #[inline]
    pub(crate) fn begins_folio(&self, before: u8) -> bool {
        self.order != before || self.idx.trailing_zeros() >= u32::from(self.order)
    }
}
