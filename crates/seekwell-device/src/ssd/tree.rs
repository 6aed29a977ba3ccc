//! A tournament tree, which finds the earliest of a few hundred clocks.

/// Keys of `n` players. The least key wins; on a tie, the lowest player number.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    /// The leaves start at `size`; each inner node holds the lesser of its children.
    key: Vec<u64>,
    size: usize,
}

impl Tree {
    /// A tree with all `n` players at `u64::MAX`.
    pub fn new(n: usize) -> Self {
        let size = n.max(2).next_power_of_two();
        Tree {
            key: vec![u64::MAX; 2 * size],
            size,
        }
    }
    /// Key of a player.
    #[inline]
    pub fn get(&self, player: usize) -> u64 {
        self.key[self.size + player]
    }
    /// Gives a player a key.
    #[inline]
    pub fn set(&mut self, player: usize, key: u64) {
        let mut at = self.size + player;
        let mut least = key;
        self.key[at] = key;
        while at > 1 {
            least = least.min(self.key[at ^ 1]);
            at >>= 1;
            if self.key[at] == least {
                // Nothing changes further up.
                break;
            }
            self.key[at] = least;
        }
    }
    /// The least key.
    #[inline]
    pub fn least(&self) -> u64 {
        self.key[1]
    }
    /// The player with the least key.
    #[inline]
    pub fn winner(&self) -> usize {
        let least = self.key[1];
        let mut at = 1;
        while at < self.size {
            at = 2 * at + usize::from(self.key[2 * at] != least);
        }
        at - self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The same winner as a search through all of them.
        #[test]
        fn agrees_with_a_linear_search(
            n in 1usize..70,
            sets in proptest::collection::vec((any::<u16>(), 0u64..50), 1..200),
        ) {
            let mut tree = Tree::new(n);
            let mut plain = vec![u64::MAX; n];
            for (who, key) in sets {
                let who = usize::from(who) % n;
                tree.set(who, key);
                plain[who] = key;
                let best = (0..n).min_by_key(|i| plain[*i]).unwrap();
                prop_assert_eq!(tree.winner(), best);
                prop_assert_eq!(tree.least(), plain[best]);
                prop_assert_eq!(tree.get(who), key);
            }
        }
    }
}
