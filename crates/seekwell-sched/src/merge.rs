//! Finds a request that a bio can be merged into. All elevators share the two indices: a one-hit
//! cache, and a hash by end sector.

use seekwell_core::{RqId, Sector};

const NIL: u32 = u32::MAX;
const OUT: u32 = u32::MAX - 1;
const BUCKETS_MIN: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    next: u32,
    prev: u32, // OUT: not hashed; NIL: first of its bucket
}

/// The index of the queued requests that can be merged.
#[derive(Debug)]
pub struct MergeIndex {
    /// The request that was last inserted or merged into (`last_merge`).
    pub last: Option<RqId>,
    buckets: Vec<u32>,
    entries: Vec<Entry>,
    len: usize,
}

impl Default for MergeIndex {
    fn default() -> Self {
        Self::new()
    }
}

impl MergeIndex {
    /// Returns an empty index.
    pub fn new() -> Self {
        MergeIndex {
            last: None,
            buckets: vec![NIL; BUCKETS_MIN],
            entries: Vec::new(),
            len: 0,
        }
    }
    #[inline]
    fn bucket(&self, key: u64) -> usize {
        // Multiplicative hashing is used because end sectors are usually multiples of 8.
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.buckets.len() - 1)
    }
    /// Returns true if the request is in the hash.
    #[inline]
    pub fn hashed(&self, rq: RqId) -> bool {
        self.entries.get(rq.idx()).is_some_and(|e| e.prev != OUT)
    }
    /// Adds a request to the hash by its end sector, before older requests with the same end.
    #[inline]
    pub fn add(&mut self, rq: RqId, end: Sector) {
        if rq.idx() >= self.entries.len() {
            let n = (rq.idx() + 1).next_power_of_two().max(64);
            self.entries.resize(
                n,
                Entry {
                    key: 0,
                    next: NIL,
                    prev: OUT,
                },
            );
        }
        debug_assert!(self.entries[rq.idx()].prev == OUT, "hashed twice");
        if self.len >= self.buckets.len() {
            self.rehash();
        }
        let b = self.bucket(end.0);
        let first = self.buckets[b];
        self.entries[rq.idx()] = Entry {
            key: end.0,
            next: first,
            prev: NIL,
        };
        if first != NIL {
            self.entries[first as usize].prev = rq.0;
        }
        self.buckets[b] = rq.0;
        self.len += 1;
    }
    #[cold]
    fn rehash(&mut self) {
        let old = std::mem::take(&mut self.buckets);
        self.buckets = vec![NIL; old.len() * 4];
        for head in old {
            // Reinsert from back to front, so that the newest request with a key stays first.
            let mut chain = Vec::new();
            let mut at = head;
            while at != NIL {
                chain.push(at);
                at = self.entries[at as usize].next;
            }
            for i in chain.into_iter().rev() {
                let b = self.bucket(self.entries[i as usize].key);
                let first = self.buckets[b];
                let e = &mut self.entries[i as usize];
                (e.next, e.prev) = (first, NIL);
                if first != NIL {
                    self.entries[first as usize].prev = i;
                }
                self.buckets[b] = i;
            }
        }
    }
    /// Removes a request from the hash, if it is there.
    #[inline]
    pub fn del(&mut self, rq: RqId) {
        if !self.hashed(rq) {
            return;
        }
        let e = self.entries[rq.idx()];
        if e.prev == NIL {
            let b = self.bucket(e.key);
            self.buckets[b] = e.next;
        } else {
            self.entries[e.prev as usize].next = e.next;
        }
        if e.next != NIL {
            self.entries[e.next as usize].prev = e.prev;
        }
        self.entries[rq.idx()].prev = OUT;
        self.len -= 1;
    }
    /// Returns the newest request that ends at this sector and for which `ok` returns true.
    #[inline]
    pub fn find(&self, end: Sector, mut ok: impl FnMut(RqId) -> bool) -> Option<RqId> {
        let mut at = self.buckets[self.bucket(end.0)];
        while at != NIL {
            let e = self.entries[at as usize];
            if e.key == end.0 && ok(RqId(at)) {
                return Some(RqId(at));
            }
            at = e.next;
        }
        None
    }
    /// Removes a request from the hash and from the cache.
    #[inline]
    pub fn forget(&mut self, rq: RqId) {
        if self.last == Some(rq) {
            self.last = None;
        }
        self.del(rq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_equal_ends_is_found_first_also_after_growth() {
        let mut m = MergeIndex::new();
        for i in 0..1000 {
            m.add(RqId(i), Sector(u64::from(i % 10) * 8));
        }
        assert_eq!(m.find(Sector(8), |_| true), Some(RqId(991)));
        m.del(RqId(991));
        assert_eq!(m.find(Sector(8), |_| true), Some(RqId(981)));
        assert_eq!(m.find(Sector(8), |r| r.0 < 20), Some(RqId(11)));
        assert_eq!(m.find(Sector(9), |_| true), None);
    }
}
