//! A page of the cache: what it holds and in what state it is.

/// No index.
pub(crate) const NONE: u32 = u32::MAX;

pub(crate) mod flag {
    pub const UPTODATE: u8 = 1;
    pub const DIRTY: u8 = 2;
    pub const WRITEBACK: u8 = 4;
    /// A read is under way.
    pub const READING: u8 = 8;
    /// Reading it starts the next window.
    pub const MARK: u8 = 32;
    /// Has space reserved but no block yet.
    pub const DELAYED: u8 = 64;
    /// In some mapping's page table.
    pub const MAPPED: u8 = 128;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) ino: u32,
    pub(crate) idx: u32,
    /// The bio that reads or writes it.
    pub(crate) bio: u32,
    /// The metadata block it holds, if it does.
    pub(crate) meta: u32,
    /// Where it hangs.
    pub(crate) leaf: u32,
    pub(crate) flags: u8,
    /// Pages of its folio, as a power of two.
    pub(crate) order: u8,
}

impl Page {
    pub(crate) fn is(&self, f: u8) -> bool {
        self.flags & f != 0
    }
    /// Does a folio begin here, if the page before is one of a folio of this order?
    #[inline]
    pub(crate) fn begins_folio(&self, before: u8) -> bool {
        self.order != before || self.idx.trailing_zeros() >= u32::from(self.order)
    }
}
