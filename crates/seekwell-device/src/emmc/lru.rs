//! A small least-recently-used list, used for open segments and for loaded parts of the map.

/// A list of up to `limit` numbers; the most recently used number is last. The list is short enough
/// for a linear search.
#[derive(Debug, Clone)]
pub struct Lru {
    limit: usize,
    held: Vec<u64>,
}

impl Lru {
    /// Makes an empty list.
    pub fn new(limit: usize) -> Self {
        Lru {
            limit,
            held: Vec::with_capacity(limit),
        }
    }
    /// Makes `x` the most recently used number. Returns false if the list did not contain `x`.
    pub fn touch(&mut self, x: u64) -> bool {
        // Most numbers are used again after a short time, so the search starts at the end.
        if let Some(i) = self.held.iter().rposition(|h| *h == x) {
            self.held[i..].rotate_left(1);
            return true;
        }
        if self.limit > 0 {
            if self.held.len() == self.limit {
                self.held.remove(0);
            }
            self.held.push(x);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_entry_is_evicted() {
        let mut l = Lru::new(2);
        assert!(!l.touch(1) && !l.touch(2) && l.touch(1));
        assert!(!l.touch(3), "takes the place of 2");
        assert!(l.touch(1) && !l.touch(2));
        assert!(!Lru::new(0).touch(1));
    }
}
