//! The most recently used few of many: open segments, loaded parts of the map.

/// Up to `limit` numbers, the most recent last. Few enough to be searched one by one.
#[derive(Debug, Clone)]
pub struct Lru {
    limit: usize,
    held: Vec<u64>,
}

impl Lru {
    /// Empty.
    pub fn new(limit: usize) -> Self {
        Lru {
            limit,
            held: Vec::with_capacity(limit),
        }
    }
    /// Makes `x` the most recent. False if it was not held.
    pub fn touch(&mut self, x: u64) -> bool {
        // What is used again was mostly used just before.
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
    fn the_least_recent_goes() {
        let mut l = Lru::new(2);
        assert!(!l.touch(1) && !l.touch(2) && l.touch(1));
        assert!(!l.touch(3), "takes the place of 2");
        assert!(l.touch(1) && !l.touch(2));
        assert!(!Lru::new(0).touch(1));
    }
}
