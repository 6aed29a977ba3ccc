//! Tags, which are counted.
//!
//! The kernel keeps tags in bitmaps. It limits a class of requests to the lower part of each word.
//! A limit therefore depends on positions: a request without limit may hold a low bit that a
//! limited request needs. In the model, tags are only counted. A request with limit s gets a tag if
//! fewer than s requests with the same or a smaller limit hold tags, and if a tag is free.
//!
//! The kernel wakes sleeping tasks in batches, nearly in order. In the model, the tasks of a class
//! are served first come, first served. Tasks of different classes are served in the order of
//! arrival, as far as the limits allow.

/// A pool of tags that are counted, with limits.
#[derive(Clone, Debug, Default)]
pub struct TagPool {
    total: u32,
    used: u32,
    /// For each limit, the number of tags that requests with this limit hold.
    limited: Vec<(u32, u32)>,
}

impl TagPool {
    /// Creates a pool of `total` tags.
    pub fn new(total: u32) -> Self {
        TagPool {
            total,
            used: 0,
            limited: Vec::new(),
        }
    }
    /// Returns the number of tags in use.
    pub fn used(&self) -> u32 {
        self.used
    }
    /// Returns the total number of tags.
    pub fn total(&self) -> u32 {
        self.total
    }
    /// Changes the number of tags. Tags in use beyond the new number stay valid.
    pub fn resize(&mut self, total: u32) {
        self.total = total;
    }
    /// Returns whether a tag is available for a request with this limit.
    pub fn available(&self, limit: Option<u32>) -> bool {
        if self.used >= self.total {
            return false;
        }
        // A limit of 0 could never be served. The smallest limit in the kernel is one bit.
        let Some(limit) = limit.map(|l| l.max(1)) else {
            return true;
        };
        let same_or_smaller = self.limited.iter().filter(|l| l.0 <= limit);
        same_or_smaller.map(|l| l.1).sum::<u32>() < limit
    }
    /// Takes a tag. A tag must be available.
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
    /// Returns a tag to the pool. It was taken under this limit.
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
    fn tag_limits_nest_and_unlimited_requests_take_the_rest() {
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
    fn kyber_async_limit_leaves_tags_for_sync_requests() {
        let mut p = TagPool::new(64);
        for _ in 0..48 {
            p.take(Some(48));
        }
        assert!(!p.available(Some(48)), "a further async request waits");
        assert!(p.available(None), "a sync write or read gets a tag");
    }
}
