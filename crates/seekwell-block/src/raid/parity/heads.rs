//! The stripe cache: a fixed number of stripe heads. A head is a row of 4 KiB pages, one page per
//! member. Heads are found by row. The least recently used head is reused first.

use crate::raid::JoinId;
use seekwell_core::{Flags, Links, List};

/// The page of one member in a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    /// Whether the content of the page is in the cache.
    pub fresh: bool,
    /// The sectors of the page to be written, one bit per sector.
    pub dirty: u8,
    /// Bios whose data are in `dirty`.
    pub writers: Vec<JoinId>,
    /// Bios whose data are being written to the members.
    pub flying: Vec<JoinId>,
    /// Bios that read the page, because its member failed.
    pub readers: Vec<JoinId>,
}

/// The state of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// The head is unused and may be reused.
    Rest,
    /// The head is ready to be handled.
    Ready,
    /// The head is ready, but pages must be read first.
    Hold,
    /// The head waits for the plug of its submitter.
    Plugged,
    /// Reads or writes of the head are in progress.
    Busy,
}

/// The data of a head, except its pages.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// Number of the row, in units of 4 KiB on a member.
    pub row: u64,
    pub at: At,
    pub reads: u32,
    pub writes: u32,
    pub error: bool,
    /// SYNC and FUA flags of the collected data.
    pub flags: Flags,
    next: u32,
}

const NONE: u32 = u32::MAX;

/// The stripe cache.
#[derive(Debug)]
pub(super) struct Heads {
    width: usize,
    heads: Vec<Head>,
    pages: Vec<Page>,
    buckets: Vec<u32>,
    links: Links,
    rest: List,
    ready: List,
    hold: List,
    plugged: List,
}

impl Heads {
    pub fn new(count: usize, width: usize) -> Self {
        let mut h = Heads {
            width,
            heads: Vec::with_capacity(count),
            pages: vec![Page::default(); count * width],
            buckets: vec![NONE; (count * 2).next_power_of_two()],
            links: Links::new(),
            rest: List::default(),
            ready: List::default(),
            hold: List::default(),
            plugged: List::default(),
        };
        for i in 0..count {
            h.heads.push(Head {
                row: u64::MAX,
                at: At::Rest,
                reads: 0,
                writes: 0,
                error: false,
                flags: Flags::empty(),
                next: NONE,
            });
            h.links.push_back(&mut h.rest, i as u32);
        }
        h
    }
    pub fn count(&self) -> usize {
        self.heads.len()
    }
    pub fn resting(&self) -> usize {
        self.rest.len()
    }
    pub fn head(&mut self, h: u32) -> &mut Head {
        &mut self.heads[h as usize]
    }
    pub fn at(&self, h: u32) -> At {
        self.heads[h as usize].at
    }
    pub fn row(&self, h: u32) -> u64 {
        self.heads[h as usize].row
    }
    pub fn page(&mut self, h: u32, member: usize) -> &mut Page {
        &mut self.pages[h as usize * self.width + member]
    }
    pub fn pages(&self, h: u32) -> &[Page] {
        &self.pages[h as usize * self.width..][..self.width]
    }
    fn bucket(&self, row: u64) -> usize {
        row.wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 16 & (self.buckets.len() - 1)
    }
    fn find(&self, row: u64) -> Option<u32> {
        let mut i = self.buckets[self.bucket(row)];
        while i != NONE {
            if self.heads[i as usize].row == row {
                return Some(i);
            }
            i = self.heads[i as usize].next;
        }
        None
    }
    fn unhash(&mut self, h: u32) {
        let row = self.heads[h as usize].row;
        if row == u64::MAX {
            return;
        }
        let next = self.heads[h as usize].next;
        let bucket = self.bucket(row);
        let mut i = self.buckets[bucket];
        if i == h {
            self.buckets[bucket] = next;
            return;
        }
        while i != NONE {
            let after = self.heads[i as usize].next;
            if after == h {
                self.heads[i as usize].next = next;
                return;
            }
            i = after;
        }
    }
    /// Returns the head of a row. If there is none, empties the head that has been unused for the
    /// longest time and returns it. Returns `None` if all heads are in use.
    pub fn of_row(&mut self, row: u64) -> Option<u32> {
        if let Some(h) = self.find(row) {
            return Some(h);
        }
        let h = self.links.iter(&self.rest).next()?;
        self.unhash(h);
        for p in &mut self.pages[h as usize * self.width..][..self.width] {
            p.fresh = false;
        }
        let b = self.bucket(row);
        let head = &mut self.heads[h as usize];
        (head.row, head.next) = (row, self.buckets[b]);
        self.buckets[b] = h;
        Some(h)
    }
    /// Changes the state of a head.
    pub fn move_to(&mut self, h: u32, at: At) {
        let from = std::mem::replace(&mut self.heads[h as usize].at, at);
        if let Some(list) = Self::list(
            from,
            &mut self.rest,
            &mut self.ready,
            &mut self.hold,
            &mut self.plugged,
        ) {
            self.links.remove(list, h);
        }
        if let Some(list) = Self::list(
            at,
            &mut self.rest,
            &mut self.ready,
            &mut self.hold,
            &mut self.plugged,
        ) {
            self.links.push_back(list, h);
        }
    }
    fn list<'a>(
        at: At,
        rest: &'a mut List,
        ready: &'a mut List,
        hold: &'a mut List,
        plugged: &'a mut List,
    ) -> Option<&'a mut List> {
        match at {
            At::Rest => Some(rest),
            At::Ready => Some(ready),
            At::Hold => Some(hold),
            At::Plugged => Some(plugged),
            At::Busy => None,
        }
    }
    pub fn first(&self, at: At) -> Option<u32> {
        let list = match at {
            At::Rest => &self.rest,
            At::Ready => &self.ready,
            At::Hold => &self.hold,
            At::Plugged => &self.plugged,
            At::Busy => return None,
        };
        self.links.iter(list).next()
    }
}
