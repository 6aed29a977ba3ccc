//! A tournament tree, which finds the earliest of a few hundred clocks.

/// Keys of `n` players. The player with the smallest key wins; on a tie, the lowest player number
/// wins.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    /// The leaves start at index `size`. Each inner node holds the smaller key of its two children.
    key: Vec<u64>,
    size: usize,
}

impl Tree {
    /// Makes a tree with the keys of all `n` players at `u64::MAX`.
    pub fn new(n: usize) -> Self {
        let size = n.max(2).next_power_of_two();
        Tree {
            key: vec![u64::MAX; 2 * size],
            size,
        }
    }
    /// Returns the key of a player.
    #[inline]
    pub fn get(&self, player: usize) -> u64 {
        self.key[self.size + player]
    }
    /// Sets the key of a player.
    #[inline]
    pub fn set(&mut self, player: usize, key: u64) {
        let mut at = self.size + player;
        let mut least = key;
        self.key[at] = key;
        while at > 1 {
            least = least.min(self.key[at ^ 1]);
            at >>= 1;
            if self.key[at] == least {
                // Nodes above this node do not change.
                break;
            }
            self.key[at] = least;
        }
    }
    /// Returns the smallest key.
    #[inline]
    pub fn least(&self) -> u64 {
        self.key[1]
    }
    /// Returns the player with the smallest key.
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
        /// The winner equals that of a linear search.
        #[test]
        fn tournament_tree_agrees_with_a_linear_search(
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
