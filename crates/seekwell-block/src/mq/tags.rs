//! Tags by counting.
//!
//! The kernel keeps tags in bitmaps and limits a class of requests to the lower part of each word.
//! So a limit is positional: an unlimited request may hold a low bit that a limited request needs.
//! Here tags are only counted. A request with limit s may be allocated while fewer than s requests
//! with the same or a smaller limit are in use and a tag is free. The kernel also wakes sleepers in
//! batches, nearly in order. Here sleepers of a class are served first come, first served; across
//! classes in order of arrival as far as limits allow.

/// A counted pool of tags, with limits.
#[derive(Clone, Debug, Default)]
pub struct TagPool {
    total: u32,
    used: u32,
    /// Number of tags in use under a limit, by limit.
    limited: Vec<(u32, u32)>,
}

impl TagPool {
    /// A pool of `total` tags.
    pub fn new(total: u32) -> Self {
        TagPool {
            total,
            used: 0,
            limited: Vec::new(),
        }
    }
    /// Number of tags in use.
    pub fn used(&self) -> u32 {
        self.used
    }
    /// Number of tags in total.
    pub fn total(&self) -> u32 {
        self.total
    }
    /// Changes the size; tags in use beyond it are not recalled.
    pub fn resize(&mut self, total: u32) {
        self.total = total;
    }
    /// Whether a tag is available under this limit.
    pub fn available(&self, limit: Option<u32>) -> bool {
        if self.used >= self.total {
            return false;
        }
        // A limit of 0 could never be served; the kernel's smallest limit is one bit.
        let Some(limit) = limit.map(|l| l.max(1)) else {
            return true;
        };
        let same_or_smaller = self.limited.iter().filter(|l| l.0 <= limit);
        same_or_smaller.map(|l| l.1).sum::<u32>() < limit
    }
    /// Takes a tag, which must be available.
    pub fn take(&mut self, limit: Option<u32>) {
        debug_assert!(self.available(limit), "takes a tag that is not there");
        self.used += 1;
        if let Some(limit) = limit.map(|l| l.max(1)) {
            match self.limited.iter_mut().find(|l| l.0 == limit) {
                Some(l) => l.1 += 1,
                None => self.limited.push((limit, 1)),
            }
        }
    }
    /// Returns a tag that was taken under this limit.
    pub fn give(&mut self, limit: Option<u32>) {
        debug_assert!(self.used > 0, "gives back more tags than were taken");
        self.used -= 1;
        if let Some(limit) = limit.map(|l| l.max(1))
            && let Some(i) = self.limited.iter().position(|l| l.0 == limit)
        {
            self.limited[i].1 -= 1;
            if self.limited[i].1 == 0 {
                self.limited.swap_remove(i);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_nest_and_the_unlimited_take_the_rest() {
        let mut p = TagPool::new(8);
        for _ in 0..4 {
            p.take(Some(4)); // async
        }
        assert!(!p.available(Some(4)));
        assert!(p.available(Some(6)), "sync writes have two more");
        p.take(Some(6));
        p.take(Some(6));
        assert!(!p.available(Some(6)));
        assert!(p.available(None));
        p.take(None);
        p.take(None);
        assert!(!p.available(None), "all taken");
        p.give(Some(4));
        assert!(p.available(Some(4)) && p.available(None));
    }

    #[test]
    fn k7_async_limit_of_kyber() {
        let mut p = TagPool::new(64);
        for _ in 0..48 {
            p.take(Some(48));
        }
        assert!(!p.available(Some(48)), "a further async request waits");
        assert!(p.available(None), "a sync write or read gets a tag");
    }
}
