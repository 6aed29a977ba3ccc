//! Red-black trees that are intrusive and linked by index. All crates use them for sorted sets.
//!
//! Many trees share one table of nodes. Entries are indices (of requests, queues or entities). The
//! key is stored in the node. An entry goes to the right of entries with an equal key. Insertion
//! and removal follow the textbook algorithm (Cormen et al., *Introduction to Algorithms*), which
//! gives trees of the same *shape* as the kernel's. A few decisions of CFQ and BFQ depend on this
//! shape. A node can store an augmentation of its subtree (in BFQ the smallest start time). The
//! augmentation `()` has no cost.

use std::cmp::Ordering;

const NIL: u32 = u32::MAX;

/// A value that a node stores about its subtree.
pub trait Augment<K>: Copy + Default {
    /// If false, the compiler removes all code that updates the value.
    const ON: bool;
    /// Returns the value of a subtree, from the key of its root and the values of its children.
    fn combine(key: K, left: Option<Self>, right: Option<Self>) -> Self;
}

impl<K> Augment<K> for () {
    const ON: bool = false;
    fn combine(_: K, _: Option<()>, _: Option<()>) {}
}

#[derive(Clone, Copy, Debug)]
struct Node<K, A> {
    parent: u32,
    left: u32,
    right: u32,
    red: bool,
    linked: bool,
    key: K,
    aug: A,
}

/// One tree: the root, the leftmost entry and the number of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    root: u32,
    first: u32,
    len: u32,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// Returns an empty tree.
    pub const fn new() -> Self {
        Tree {
            root: NIL,
            first: NIL,
            len: 0,
        }
    }
    /// Returns the number of entries.
    pub const fn len(&self) -> usize {
        self.len as usize
    }
    /// Returns true if the tree is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Returns the entry with the smallest key. Among equal keys, the one inserted first.
    #[inline]
    pub const fn first(&self) -> Option<u32> {
        opt(self.first)
    }
    /// Returns the root, for searches that depend on the shape.
    pub const fn root(&self) -> Option<u32> {
        opt(self.root)
    }
}

#[inline]
const fn opt(i: u32) -> Option<u32> {
    if i == NIL { None } else { Some(i) }
}

/// The place where a search from the root ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descent {
    /// The tree is empty.
    Nothing,
    /// The search found this entry, which is equal.
    Hit(u32),
    /// The search ended at this entry, which has no child on the searched side.
    Last(u32),
}

/// The nodes of the entries 0, 1, 2, ... An entry is in at most one tree of a table at a time.
#[derive(Clone, Debug)]
pub struct Nodes<K, A = ()> {
    n: Vec<Node<K, A>>,
}

impl<K: Copy + PartialOrd + Default, A: Augment<K>> Default for Nodes<K, A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy + PartialOrd + Default, A: Augment<K>> Nodes<K, A> {
    /// Returns an empty table. It grows with the highest index that is used.
    pub const fn new() -> Self {
        Nodes { n: Vec::new() }
    }
    #[cold]
    fn grow(&mut self, i: usize) {
        let empty = Node {
            parent: NIL,
            left: NIL,
            right: NIL,
            red: false,
            linked: false,
            key: K::default(),
            aug: A::default(),
        };
        self.n.resize((i + 1).next_power_of_two().max(64), empty);
    }
    #[inline]
    fn at(&self, i: u32) -> &Node<K, A> {
        &self.n[i as usize]
    }
    #[inline]
    fn at_mut(&mut self, i: u32) -> &mut Node<K, A> {
        &mut self.n[i as usize]
    }
    /// Returns true if entry `i` is in a tree of this table.
    #[inline]
    pub fn linked(&self, i: u32) -> bool {
        self.n.get(i as usize).is_some_and(|x| x.linked)
    }
    /// Returns the key of entry `i`.
    #[inline]
    pub fn key(&self, i: u32) -> K {
        self.at(i).key
    }
    /// Returns the augmentation of the subtree with root `i`.
    pub fn aug(&self, i: u32) -> A {
        self.at(i).aug
    }
    /// Returns the left child, for searches that depend on the shape.
    pub fn left(&self, i: u32) -> Option<u32> {
        opt(self.at(i).left)
    }
    /// Returns the right child.
    pub fn right(&self, i: u32) -> Option<u32> {
        opt(self.at(i).right)
    }

    fn refresh(&mut self, i: u32) {
        if !A::ON || i == NIL {
            return;
        }
        let x = *self.at(i);
        let l = opt(x.left).map(|c| self.at(c).aug);
        let r = opt(x.right).map(|c| self.at(c).aug);
        self.at_mut(i).aug = A::combine(x.key, l, r);
    }
    fn refresh_up(&mut self, mut i: u32) {
        while A::ON && i != NIL {
            self.refresh(i);
            i = self.at(i).parent;
        }
    }
    /// Changes the key of an entry in place. The caller must ensure that the order stays the same.
    pub fn set_key(&mut self, i: u32, key: K) {
        self.at_mut(i).key = key;
        self.refresh_up(i);
    }

    fn replace_child(&mut self, t: &mut Tree, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            t.root = new;
        } else if self.at(parent).left == old {
            self.at_mut(parent).left = new;
        } else {
            self.at_mut(parent).right = new;
        }
    }
    fn rotate(&mut self, t: &mut Tree, x: u32, to_left: bool) {
        let y = if to_left {
            self.at(x).right
        } else {
            self.at(x).left
        };
        let p = self.at(x).parent;
        let mid = if to_left {
            self.at(y).left
        } else {
            self.at(y).right
        };
        if to_left {
            self.at_mut(x).right = mid;
            self.at_mut(y).left = x;
        } else {
            self.at_mut(x).left = mid;
            self.at_mut(y).right = x;
        }
        if mid != NIL {
            self.at_mut(mid).parent = x;
        }
        self.at_mut(y).parent = p;
        self.at_mut(x).parent = y;
        self.replace_child(t, p, x, y);
        self.refresh(x);
        self.refresh(y);
    }

    /// Inserts entry `i` to the right of entries with an equal key.
    pub fn insert(&mut self, t: &mut Tree, i: u32, key: K) {
        if i as usize >= self.n.len() {
            self.grow(i as usize);
        }
        debug_assert!(!self.at(i).linked, "entry {i} is in a tree already");
        let (mut parent, mut at, mut leftmost, mut went_left) = (NIL, t.root, true, false);
        while at != NIL {
            parent = at;
            let x = self.at(at);
            went_left = key < x.key;
            at = if went_left {
                x.left
            } else {
                leftmost = false;
                x.right
            };
        }
        *self.at_mut(i) = Node {
            parent,
            left: NIL,
            right: NIL,
            red: true,
            linked: true,
            key,
            aug: A::default(),
        };
        if parent == NIL {
            t.root = i;
        } else if went_left {
            self.at_mut(parent).left = i;
        } else {
            self.at_mut(parent).right = i;
        }
        if leftmost {
            t.first = i;
        }
        t.len += 1;
        self.refresh_up(i);
        self.fix_insert(t, i);
    }

    fn fix_insert(&mut self, t: &mut Tree, mut x: u32) {
        loop {
            let p = self.at(x).parent;
            if p == NIL {
                self.at_mut(x).red = false;
                return;
            }
            if !self.at(p).red {
                return;
            }
            let g = self.at(p).parent; // a red node has a parent
            let p_is_left = self.at(g).left == p;
            let uncle = if p_is_left {
                self.at(g).right
            } else {
                self.at(g).left
            };
            if uncle != NIL && self.at(uncle).red {
                self.at_mut(p).red = false;
                self.at_mut(uncle).red = false;
                self.at_mut(g).red = true;
                x = g;
                continue;
            }
            let inner = if p_is_left {
                self.at(p).right
            } else {
                self.at(p).left
            };
            let top = if inner == x {
                self.rotate(t, p, p_is_left);
                x
            } else {
                p
            };
            self.at_mut(top).red = false;
            self.at_mut(g).red = true;
            self.rotate(t, g, !p_is_left);
            return;
        }
    }

    /// Removes entry `i` from tree `t`, which must contain it.
    pub fn remove(&mut self, t: &mut Tree, i: u32) {
        debug_assert!(self.at(i).linked, "entry {i} is in no tree");
        if t.first == i {
            t.first = self.next(i).unwrap_or(NIL);
        }
        let x = *self.at(i);
        let (child, mut parent, was_red);
        if x.left == NIL || x.right == NIL {
            child = if x.left == NIL { x.right } else { x.left };
            parent = x.parent;
            was_red = x.red;
            if child != NIL {
                self.at_mut(child).parent = parent;
            }
            self.replace_child(t, parent, i, child);
        } else {
            let mut s = x.right; // successor
            while self.at(s).left != NIL {
                s = self.at(s).left;
            }
            child = self.at(s).right;
            was_red = self.at(s).red;
            parent = self.at(s).parent;
            if parent == i {
                parent = s;
            } else {
                if child != NIL {
                    self.at_mut(child).parent = parent;
                }
                self.at_mut(parent).left = child;
                self.at_mut(s).right = x.right;
                self.at_mut(x.right).parent = s;
            }
            let sn = self.at_mut(s);
            sn.left = x.left;
            sn.parent = x.parent;
            sn.red = x.red;
            self.at_mut(x.left).parent = s;
            self.replace_child(t, x.parent, i, s);
        }
        self.at_mut(i).linked = false;
        t.len -= 1;
        self.refresh_up(parent);
        if !was_red {
            self.fix_remove(t, child, parent);
        }
    }

    fn fix_remove(&mut self, t: &mut Tree, mut x: u32, mut p: u32) {
        while p != NIL && (x == NIL || !self.at(x).red) {
            let left = self.at(p).left == x;
            let sib = |s: &Self| if left { s.at(p).right } else { s.at(p).left };
            let mut w = sib(self);
            if self.at(w).red {
                self.at_mut(w).red = false;
                self.at_mut(p).red = true;
                self.rotate(t, p, left);
                w = sib(self);
            }
            let red = |s: &Self, c: u32| c != NIL && s.at(c).red;
            let (near, far) = if left {
                (self.at(w).left, self.at(w).right)
            } else {
                (self.at(w).right, self.at(w).left)
            };
            if !red(self, near) && !red(self, far) {
                self.at_mut(w).red = true;
                x = p;
                p = self.at(x).parent;
                continue;
            }
            if !red(self, far) {
                self.at_mut(near).red = false;
                self.at_mut(w).red = true;
                self.rotate(t, w, !left);
                w = sib(self);
            }
            let far = if left {
                self.at(w).right
            } else {
                self.at(w).left
            };
            self.at_mut(w).red = self.at(p).red;
            self.at_mut(p).red = false;
            self.at_mut(far).red = false;
            self.rotate(t, p, left);
            return;
        }
        if x != NIL {
            self.at_mut(x).red = false;
        }
    }

    /// Returns the next entry in order.
    #[inline]
    pub fn next(&self, i: u32) -> Option<u32> {
        let mut at = self.at(i).right;
        if at != NIL {
            while self.at(at).left != NIL {
                at = self.at(at).left;
            }
            return Some(at);
        }
        let (mut at, mut p) = (i, self.at(i).parent);
        while p != NIL && self.at(p).right == at {
            at = p;
            p = self.at(p).parent;
        }
        opt(p)
    }
    /// Returns the entry before `i` in order.
    #[inline]
    pub fn prev(&self, i: u32) -> Option<u32> {
        let mut at = self.at(i).left;
        if at != NIL {
            while self.at(at).right != NIL {
                at = self.at(at).right;
            }
            return Some(at);
        }
        let (mut at, mut p) = (i, self.at(i).parent);
        while p != NIL && self.at(p).left == at {
            at = p;
            p = self.at(p).parent;
        }
        opt(p)
    }
    /// Returns the entry with the largest key. Among equal keys, the one inserted last.
    pub fn last(&self, t: &Tree) -> Option<u32> {
        let mut at = opt(t.root)?;
        while let Some(r) = self.right(at) {
            at = r;
        }
        Some(at)
    }
    /// Returns the first entry whose key is at least `key`.
    pub fn lower_bound(&self, t: &Tree, key: K) -> Option<u32> {
        let (mut at, mut best) = (t.root, NIL);
        while at != NIL {
            let x = self.at(at);
            at = if x.key < key {
                x.right
            } else {
                best = at;
                x.left
            };
        }
        opt(best)
    }
    /// Searches from the root down. `side` returns the position of the target relative to an entry
    /// (`Less`: to the left of it).
    pub fn descend(&self, t: &Tree, mut side: impl FnMut(u32, K) -> Ordering) -> Descent {
        let (mut at, mut last) = (t.root, NIL);
        while at != NIL {
            last = at;
            let x = self.at(at);
            at = match side(at, x.key) {
                Ordering::Less => x.left,
                Ordering::Greater => x.right,
                Ordering::Equal => return Descent::Hit(at),
            };
        }
        opt(last).map_or(Descent::Nothing, Descent::Last)
    }
    /// Returns the first entry with this key that a search from the root visits. Among several
    /// equal entries, the shape of the tree decides, as in the kernel.
    pub fn find(&self, t: &Tree, key: K) -> Option<u32> {
        match self.descend(t, |_, k| key.partial_cmp(&k).unwrap_or(Ordering::Equal)) {
            Descent::Hit(i) => Some(i),
            _ => None,
        }
    }
    /// Returns all entries in ascending order.
    pub fn iter<'a>(&'a self, t: &Tree) -> impl Iterator<Item = u32> + 'a {
        let mut at = t.first();
        std::iter::from_fn(move || {
            let i = at?;
            at = self.next(i);
            Some(i)
        })
    }

    /// Checks colours, links and augmentation, and returns the black height; for tests.
    #[doc(hidden)]
    pub fn verify(&self, t: &Tree) -> usize
    where
        A: PartialEq + std::fmt::Debug,
    {
        assert_eq!(self.iter(t).count(), t.len());
        if let Some(r) = t.root() {
            assert!(!self.at(r).red && self.at(r).parent == NIL);
        }
        self.verify_at(t.root)
    }
    fn verify_at(&self, i: u32) -> usize
    where
        A: PartialEq + std::fmt::Debug,
    {
        if i == NIL {
            return 1;
        }
        let x = self.at(i);
        for c in [x.left, x.right] {
            if c != NIL {
                assert_eq!(self.at(c).parent, i);
                assert!(!(x.red && self.at(c).red));
            }
        }
        let (l, r) = (self.verify_at(x.left), self.verify_at(x.right));
        assert_eq!(l, r, "black height");
        if A::ON {
            let (la, ra) = (
                opt(x.left).map(|c| self.aug(c)),
                opt(x.right).map(|c| self.aug(c)),
            );
            assert_eq!(x.aug, A::combine(x.key, la, ra));
        }
        l + !x.red as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Default, PartialEq, Debug)]
    struct Min(u32);
    impl Augment<u32> for Min {
        const ON: bool = true;
        fn combine(k: u32, l: Option<Min>, r: Option<Min>) -> Min {
            let own = k ^ 0x55;
            Min(own
                .min(l.map_or(u32::MAX, |m| m.0))
                .min(r.map_or(u32::MAX, |m| m.0)))
        }
    }

    proptest! {
        /// After any insertions and removals, the tree agrees with a sorted vector, is balanced,
        /// and has correct augmentations.
        #[test]
        fn tree_agrees_with_a_sorted_vec(
            ops in proptest::collection::vec((0u32..60, 0u32..30), 0..300)
        ) {
            let mut nodes: Nodes<u32, Min> = Nodes::new();
            let (mut tree, mut model) = (Tree::new(), Vec::<(u32, u32)>::new());
            for (i, key) in ops {
                if let Some(p) = model.iter().position(|e| e.1 == i) {
                    model.remove(p);
                    nodes.remove(&mut tree, i);
                } else {
                    let p = model.partition_point(|e| e.0 <= key);
                    model.insert(p, (key, i));
                    nodes.insert(&mut tree, i, key);
                }
                nodes.verify(&tree);
                let got: Vec<_> = nodes.iter(&tree).map(|i| (nodes.key(i), i)).collect();
                prop_assert_eq!(&got, &model);
                prop_assert_eq!(nodes.last(&tree), model.last().map(|e| e.1));
                let want = model.get(model.partition_point(|e| e.0 < key)).map(|e| e.1);
                prop_assert_eq!(nodes.lower_bound(&tree, key), want);
                prop_assert_eq!(nodes.find(&tree, key).map(|i| nodes.key(i)),
                    model.iter().find(|e| e.0 == key).map(|e| e.0));
                let down = std::iter::successors(nodes.last(&tree), |i| nodes.prev(*i));
                let back: Vec<_> = down.collect();
                prop_assert!(back.iter().rev().eq(model.iter().map(|e| &e.1)));
            }
        }
    }
}
