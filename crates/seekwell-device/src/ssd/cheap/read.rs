//! Reads of the cheap variant: from the buffer, from the read-ahead, or from flash.

use super::super::host::{NEVER, pages};
use super::super::map_cache::COVERS;
use super::super::regions::{Kind, REGION};
use super::super::streams::Found;
use super::{CheapSsd, spread};

impl CheapSsd {
    /// Returns the unit that holds a randomly written page.
    #[inline]
    pub(super) fn somewhere(&self, page: u64) -> u32 {
        (((spread(page ^ self.salt) >> 32) * u64::from(self.p.units)) >> 32) as u32
    }

    /// Reads `n` pages from `first` on from flash. All pages must be in the same region. Returns
    /// the time at which the last page is in RAM. For each group of pages that is read together,
    /// calls `each` with the first page, the number of pages and the time at which they are in RAM.
    #[inline]
    fn flash_read(
        &mut self,
        ready: u64,
        first: u64,
        n: u32,
        mut each: impl FnMut(u64, u32, u64),
    ) -> u64 {
        let look = self.map.touch(first, false);
        // The data are read after the map. The model cannot use a gap before a reservation. So it
        // reserves the units of the data from `ready` on, and adds the time of the map afterwards.
        let mut delay = 0;
        if look.miss {
            let unit = self.somewhere(!(first / COVERS));
            delay = self.flash.read(ready, unit, 1, 0) - ready;
            if look.write_back {
                self.write_map_page(ready, ready);
            }
        }
        let mut each = |page, n, at: u64| each(page, n, at + delay);
        let mut last = ready;
        let (mut page, end) = (first, first + u64::from(n));
        match self.regions.get(first / REGION) {
            Kind::Empty => each(first, n, ready),
            Kind::Ordered => {
                while page < end {
                    let (group, within) = self.by_k.split(page);
                    let here = (u64::from(self.p.k) - within).min(end - page) as u32;
                    let unit = self.by_units.rest(group) as u32;
                    let add = self.p.read_add_ns[(self.by_units.split(group).0 % 3) as usize];
                    let done = self.flash.read(ready, unit, here, add);
                    each(page, here, done);
                    last = last.max(done);
                    page += u64::from(here);
                }
            }
            Kind::Random => {
                while page < end {
                    let h = spread(page ^ self.salt);
                    let unit = self.somewhere(page);
                    let add = if self.typed {
                        self.p.read_add_ns[(h as u32 % 3) as usize]
                    } else {
                        0
                    };
                    let done = self.flash.read(ready, unit, 1, add);
                    each(page, 1, done);
                    last = last.max(done);
                    page += 1;
                }
            }
        }
        last + delay
    }

    /// Does the same as [`Self::flash_read`] for pages in several regions.
    fn span(
        &mut self,
        ready: u64,
        first: u64,
        end: u64,
        each: &mut dyn FnMut(u64, u32, u64),
    ) -> u64 {
        let (mut page, mut last) = (first, ready);
        while page < end {
            let n = (REGION - page % REGION).min(end - page) as u32;
            last = last.max(self.flash_read(ready, page, n, &mut *each));
            page += u64::from(n);
        }
        last
    }

    /// Reads the pages `first..end` of stream `i`, and continues the read-ahead of this stream.
    /// Pages that were read ahead are in RAM; the other pages come from flash. Returns two times:
    /// when the first requested page is in RAM, and when the last requested page is in RAM.
    fn stream(&mut self, i: usize, ram: u64, first: u64, end: u64, begins: bool) -> (u64, u64) {
        let ready = ram + self.p.lat_ns;
        let mut ahead = std::mem::take(&mut self.ahead[i]);
        let mask = ahead.ready.len() as u64 - 1;
        if begins || first < ahead.from || first > ahead.to {
            (ahead.from, ahead.to) = (first, first);
        }
        let hit = ahead.to.min(end);
        let (mut soonest, mut last) = (NEVER, ram);
        if first < hit {
            let from = first.max(hit.saturating_sub(mask + 1));
            for page in from..hit {
                let at = ahead.ready[(page & mask) as usize].max(ram);
                soonest = soonest.min(at);
                last = last.max(at);
            }
        }
        if hit < end {
            let mut each = |_: u64, _: u32, at: u64| soonest = soonest.min(at);
            last = last.max(self.span(ready, hit, end, &mut each));
            ahead.to = end;
        } else {
            self.hits += 1;
        }
        // When half of the window is used up, fill it again with whole program units.
        let window = u64::from(self.p.read_ahead);
        let user = self.facts.capacity.0 / 8;
        if ahead.to < end + window / 2 {
            let (group, _) = self.by_k.split(end + window + u64::from(self.p.k) - 1);
            let to = (group * u64::from(self.p.k)).min(end + mask + 1).min(user);
            let from = ahead.to;
            if to > from {
                let ring = &mut ahead.ready;
                self.span(ready, from, to, &mut |page, n, at| {
                    for q in page..page + u64::from(n) {
                        ring[(q & mask) as usize] = at;
                    }
                });
                ahead.to = to;
            }
        }
        ahead.from = end;
        self.ahead[i] = ahead;
        (soonest, last)
    }

    #[inline]
    fn buffered(&self, page: u64, at: u64) -> bool {
        let (held, until) =
            self.buffer.recent[spread(page) as usize & (self.buffer.recent.len() - 1)];
        held == page && until > at
    }

    pub(super) fn read(&mut self, t: u64, sector: u64, sectors: u32) -> u64 {
        let (first, n, _) = pages(sector, sectors);
        let f = self.front.command(t, 0);
        let ready = f + self.p.lat_ns;
        let link = self.front.link(t, 0, self.front.link_ns(sectors));
        let found = if self.p.read_ahead > 0 {
            self.readers.note(sector, sector + u64::from(sectors))
        } else {
            Found::Alone
        };
        let end = first + u64::from(n);
        let writing = self.flash.last_end > t || !self.buffer.pending.is_empty();
        // `soonest` is the time at which the first page is in RAM, and `last` the time at which the
        // last page is.
        let (soonest, last) = match found {
            // Data in RAM need only the command stage. They need no map look-up and no error
            // correction.
            Found::Begins(i) => self.stream(i, f, first, end, true),
            Found::Continues(i) => self.stream(i, f, first, end, false),
            Found::Alone if n == 1 => {
                let at = if writing && self.buffered(first, t) {
                    self.hits += 1;
                    f
                } else {
                    self.flash_read(ready, first, 1, |_, _, _| {})
                };
                (at, at)
            }
            Found::Alone => {
                let (mut soonest, mut last, mut page) = (NEVER, f, first);
                while page < end {
                    let mut to = page;
                    while to < end && !(writing && self.buffered(to, t)) {
                        to += 1;
                    }
                    if to > page {
                        let soon = &mut soonest;
                        let mut each = |_: u64, _: u32, at: u64| *soon = at.min(*soon);
                        last = last.max(self.span(ready, page, to, &mut each));
                    } else {
                        soonest = f;
                        to += 1;
                    }
                    page = to;
                }
                (soonest, last)
            }
        };
        // The link sends pages as they arrive. When flash has read the last page, only this page
        // remains to be sent.
        let rest = self.front.link_ns(sectors.min(8));
        let whole = self.front.link_ns(sectors);
        link.max(last + rest).max(soonest + whole)
    }
}
