//! The page cache: pages by (inode, index), the marks for dirty pages and for writeback, and the
//! order of eviction.
//!
//! The pages of a file are in a shallow tree, with nodes of 64 leaves and leaves of 16 pages. Bit
//! masks in the tree find the next dirty page without a look at clean pages. Only clean idle pages
//! are on the LRU list. A hit sets a mark on the page, and eviction skips a marked page once
//! (second chance). The mark corresponds to the reference bit of the kernel. After writeback, a
//! page moves to the young end of the list. It then counts as up to half a minute younger than in
//! the kernel.

use super::page::{NONE, Page, flag};
use seekwell_core::{Links, List, soon};

const LEAF: u32 = 16;
const NODE: u32 = 64;

/// The state of 16 pages of a file that a read from the page cache needs. It is kept together, so
/// that the read touches only one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Marks {
    /// One bit per page: the page was found uptodate and without a read-ahead mark. The bit stays
    /// valid until the page is removed.
    ready: u16,
    /// One bit per page: the page was used since eviction last examined it.
    used: u16,
}

/// Sixteen pages of a file.
#[derive(Clone, Debug)]
#[repr(C, align(16))]
struct Leaf {
    /// The marks of this leaf. For a file's first leaf, the marks in the file's [`Tree`] are used.
    marks: Marks,
    present: u16,
    dirty: u16,
    wb: u16,
    page: [u32; LEAF as usize],
}

const NO_PAGES: Leaf = Leaf {
    marks: Marks { ready: 0, used: 0 },
    present: 0,
    dirty: 0,
    wb: 0,
    page: [NONE; LEAF as usize],
};

#[derive(Clone, Debug)]
struct Node {
    leaf: [u32; NODE as usize],
    present: u64,
    dirty: u64,
    wb: u64,
}

/// The pages of one file.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Tree {
    /// The leaf of pages 0 to 15. A small file has no other leaf.
    first: u32,
    /// The marks of the first leaf. They are here so that a cached read of a small file does not
    /// touch the leaf.
    marks: Marks,
    nodes: Vec<u32>,
    pub(crate) pages: u32,
    pub(crate) dirty: u32,
    pub(crate) wb: u32,
}

impl Default for Tree {
    fn default() -> Self {
        Tree {
            first: NONE,
            marks: Marks::default(),
            nodes: Vec::new(),
            pages: 0,
            dirty: 0,
            wb: 0,
        }
    }
}

/// An owner of pages.
pub(crate) trait Owner {
    /// Returns the tree of the owner's pages.
    fn tree(&mut self) -> &mut Tree;
}

/// Returns the marks for page `idx` and its neighbours. They are those of the leaf, or of the tree
/// for the first leaf.
#[inline]
fn marks<'a>(tree: &'a mut Tree, leaf: &'a mut Marks, idx: u32) -> &'a mut Marks {
    if idx < LEAF { &mut tree.marks } else { leaf }
}

/// Returns a mask with the bits `low..=high` of a leaf.
#[inline]
fn bits(low: u32, high: u32) -> u16 {
    (u16::MAX << low) & (u16::MAX >> (LEAF - 1 - high))
}

/// The state of the page to search for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Find {
    Present,
    Dirty,
    Writeback,
}

pub(crate) struct Cache {
    pub(crate) pages: Vec<Page>,
    free: Vec<u32>,
    leaves: Vec<Leaf>,
    free_leaves: Vec<u32>,
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    pub(crate) lru: List,
    links: Links,
    /// Number of pages in memory from which on clean pages are evicted.
    pub(crate) limit: u64,
    pub(crate) count: u64,
    pub(crate) nr_dirty: u64,
    pub(crate) nr_wb: u64,
}

impl Cache {
    pub(crate) fn new(limit: u64) -> Self {
        Cache {
            pages: Vec::new(),
            free: Vec::new(),
            leaves: Vec::new(),
            free_leaves: Vec::new(),
            nodes: Vec::new(),
            free_nodes: Vec::new(),
            lru: List::new(),
            links: Links::new(),
            limit,
            count: 0,
            nr_dirty: 0,
            nr_wb: 0,
        }
    }
    #[inline]
    fn leaf_of(&self, t: &Tree, idx: u32) -> u32 {
        let n = idx / LEAF;
        if n == 0 {
            return t.first;
        }
        match t.nodes.get((n / NODE) as usize) {
            Some(&node) if node != NONE => self.nodes[node as usize].leaf[(n % NODE) as usize],
            _ => NONE,
        }
    }
    #[inline]
    pub(crate) fn lookup(&self, t: &Tree, idx: u32) -> Option<u32> {
        let leaf = self.leaf_of(t, idx);
        if leaf == NONE {
            return None;
        }
        let p = self.leaves[leaf as usize].page[(idx % LEAF) as usize];
        (p != NONE).then_some(p)
    }
    /// Returns whether pages `first..=last` can be read immediately. All of them must be present,
    /// uptodate and without a read-ahead mark. Marks the pages before the first exception as used.
    /// Looks up each leaf once.
    #[inline]
    pub(crate) fn read_run(&mut self, t: &mut Tree, first: u32, last: u32) -> bool {
        if last < LEAF {
            let wanted = bits(first, last);
            if t.marks.ready & wanted == wanted {
                t.marks.used |= wanted;
                return true;
            }
        }
        self.read_leaves(t, first, last)
    }
    fn read_leaves(&mut self, t: &mut Tree, first: u32, last: u32) -> bool {
        let mut idx = first;
        loop {
            let leaf = self.leaf_of(t, idx);
            if leaf == NONE {
                return false;
            }
            let end = last.min(idx | (LEAF - 1));
            let (low, high) = (idx % LEAF, end % LEAF);
            let wanted = bits(low, high);
            let l = &mut self.leaves[leaf as usize];
            let marks = marks(t, &mut l.marks, idx);
            if marks.ready & wanted == wanted {
                marks.used |= wanted;
            } else {
                for k in low..=high {
                    let Some(page) = self.pages.get(l.page[k as usize] as usize) else {
                        return false;
                    };
                    if page.flags & (flag::UPTODATE | flag::MARK) != flag::UPTODATE {
                        return false;
                    }
                    marks.ready |= 1 << k;
                    marks.used |= 1 << k;
                }
            }
            if end == last {
                return true;
            }
            idx = end + 1;
        }
    }
    /// Returns the marks of a page's leaf, and the bit of the page in these marks.
    #[inline]
    fn marks_of<'a>(&'a mut self, t: &'a mut Tree, p: u32) -> (&'a mut Marks, u16) {
        let page = &self.pages[p as usize];
        let leaf = &mut self.leaves[page.leaf as usize].marks;
        (marks(t, leaf, page.idx), 1 << (page.idx % LEAF))
    }
    fn leaf_make(&mut self, t: &mut Tree, idx: u32) -> u32 {
        let leaf = self.leaf_of(t, idx);
        if leaf != NONE {
            return leaf;
        }
        let leaf = put(&mut self.leaves, &mut self.free_leaves, NO_PAGES);
        let n = idx / LEAF;
        if n == 0 {
            t.first = leaf;
            return leaf;
        }
        let at = (n / NODE) as usize;
        if t.nodes.len() <= at {
            t.nodes.resize(at + 1, NONE);
        }
        if t.nodes[at] == NONE {
            let empty = Node {
                leaf: [NONE; NODE as usize],
                present: 0,
                dirty: 0,
                wb: 0,
            };
            t.nodes[at] = put(&mut self.nodes, &mut self.free_nodes, empty);
        }
        let node = &mut self.nodes[t.nodes[at] as usize];
        node.leaf[(n % NODE) as usize] = leaf;
        node.present |= 1 << (n % NODE);
        leaf
    }
    /// Adds a page of a folio of `order` to a file. The page has no state and is on no list.
    pub(crate) fn insert(&mut self, t: &mut Tree, ino: u32, idx: u32, order: u8) -> u32 {
        let leaf = self.leaf_make(t, idx);
        let page = Page {
            ino,
            idx,
            bio: NONE,
            meta: NONE,
            leaf,
            flags: 0,
            order,
        };
        let p = put(&mut self.pages, &mut self.free, page);
        let l = &mut self.leaves[leaf as usize];
        debug_assert_eq!(l.page[(idx % LEAF) as usize], NONE, "one page an index");
        l.page[(idx % LEAF) as usize] = p;
        l.present |= 1 << (idx % LEAF);
        t.pages += 1;
        self.count += 1;
        p
    }
    /// Removes a page. The page must not be dirty, under I/O or on the LRU list.
    pub(crate) fn remove(&mut self, t: &mut Tree, p: u32) {
        let page = self.pages[p as usize];
        let busy = flag::DIRTY | flag::WRITEBACK | flag::READING;
        debug_assert!(!page.is(busy), "an idle page");
        if self.links.linked(p) {
            self.links.remove(&mut self.lru, p);
        }
        let leaf = page.leaf;
        let l = &mut self.leaves[leaf as usize];
        l.page[(page.idx % LEAF) as usize] = NONE;
        let others = !(1 << (page.idx % LEAF));
        l.present &= others;
        let marks = marks(t, &mut l.marks, page.idx);
        marks.ready &= others;
        marks.used &= others;
        if l.present == 0 {
            self.free_leaves.push(leaf);
            self.unlink_leaf(t, page.idx / LEAF);
        }
        t.pages -= 1;
        self.count -= 1;
        self.free.push(p);
    }
    fn unlink_leaf(&mut self, t: &mut Tree, n: u32) {
        if n == 0 {
            t.first = NONE;
            return;
        }
        let at = (n / NODE) as usize;
        let id = t.nodes[at];
        let node = &mut self.nodes[id as usize];
        node.leaf[(n % NODE) as usize] = NONE;
        node.present &= !(1 << (n % NODE));
        if node.present == 0 {
            self.free_nodes.push(id);
            t.nodes[at] = NONE;
            while t.nodes.last() == Some(&NONE) {
                t.nodes.pop();
            }
        }
    }
    /// Puts a clean idle page on the LRU list, as the youngest.
    pub(crate) fn settle(&mut self, p: u32) {
        let page = self.pages[p as usize];
        let busy = flag::DIRTY | flag::WRITEBACK | flag::READING;
        if !page.is(busy) && page.meta == NONE && !self.links.linked(p) {
            self.links.push_back(&mut self.lru, p);
        }
    }
    /// Removes a page from the LRU list, if it is on the list.
    pub(crate) fn pin(&mut self, p: u32) {
        if self.links.linked(p) {
            self.links.remove(&mut self.lru, p);
        }
    }
    /// Returns whether a page is known to be uptodate and without a read-ahead mark.
    #[cfg(test)]
    pub(crate) fn is_ready(&self, t: &Tree, p: u32) -> bool {
        let page = &self.pages[p as usize];
        let marks = if page.idx < LEAF {
            t.marks
        } else {
            self.leaves[page.leaf as usize].marks
        };
        marks.ready & 1 << (page.idx % LEAF) != 0
    }
    /// Marks a page as used: eviction skips it once.
    #[inline]
    pub(crate) fn used(&mut self, t: &mut Tree, p: u32) {
        let (marks, bit) = self.marks_of(t, p);
        marks.used |= bit;
    }
    /// Returns the next page to evict: the oldest page that was not used since eviction last
    /// examined it.
    pub(crate) fn victim(&mut self, owners: &mut [impl Owner]) -> Option<u32> {
        for _ in 0..=self.lru.len() {
            let p = self.lru.first()?;
            self.next_victims(p, owners);
            let ino = self.pages[p as usize].ino;
            let (marks, bit) = self.marks_of(owners[ino as usize].tree(), p);
            if marks.used & bit == 0 {
                return Some(p);
            }
            marks.used &= !bit;
            self.links.remove(&mut self.lru, p);
            self.links.push_back(&mut self.lru, p);
        }
        self.lru.first()
    }

    /// Prepares the next evictions: prefetches the second page after `p` on the LRU list, and the
    /// path to the fourth page. Most pages are skipped in less time than one access to memory
    /// takes.
    #[inline]
    fn next_victims(&self, p: u32, owners: &[impl Owner]) {
        let behind = |p| self.links.next(p);
        let Some(second) = behind(p).and_then(behind) else {
            return;
        };
        let page = &self.pages[second as usize];
        soon(&self.leaves[page.leaf as usize]);
        if page.idx < LEAF {
            soon(&owners[page.ino as usize]);
        }
        if let Some(fourth) = behind(second).and_then(behind) {
            soon(&self.pages[fourth as usize]);
            self.links.soon(fourth);
        }
    }

    fn marks(&mut self, t: &Tree, idx: u32, find: Find, on: bool) {
        let leaf = self.leaf_of(t, idx);
        let l = &mut self.leaves[leaf as usize];
        let bits = match find {
            Find::Dirty => &mut l.dirty,
            Find::Writeback => &mut l.wb,
            Find::Present => &mut l.present,
        };
        let bit = 1 << (idx % LEAF);
        *bits = if on { *bits | bit } else { *bits & !bit };
        let any = *bits != 0;
        let n = idx / LEAF;
        if n > 0 {
            let node = &mut self.nodes[t.nodes[(n / NODE) as usize] as usize];
            let bits = match find {
                Find::Dirty => &mut node.dirty,
                Find::Writeback => &mut node.wb,
                Find::Present => &mut node.present,
            };
            let bit = 1 << (n % NODE);
            *bits = if any { *bits | bit } else { *bits & !bit };
        }
    }
    /// Marks a page dirty. Returns true if the page was clean.
    pub(crate) fn set_dirty(&mut self, t: &mut Tree, p: u32) -> bool {
        let page = &mut self.pages[p as usize];
        if page.is(flag::DIRTY) {
            return false;
        }
        page.flags |= flag::DIRTY | flag::UPTODATE;
        let idx = page.idx;
        t.dirty += 1;
        self.nr_dirty += 1;
        self.marks(t, idx, Find::Dirty, true);
        self.pin(p);
        true
    }
    pub(crate) fn clear_dirty(&mut self, t: &mut Tree, p: u32) {
        let page = &mut self.pages[p as usize];
        debug_assert!(page.is(flag::DIRTY));
        page.flags &= !flag::DIRTY;
        let idx = page.idx;
        t.dirty -= 1;
        self.nr_dirty -= 1;
        self.marks(t, idx, Find::Dirty, false);
    }
    pub(crate) fn set_wb(&mut self, t: &mut Tree, p: u32, bio: u32) {
        let page = &mut self.pages[p as usize];
        debug_assert!(!page.is(flag::WRITEBACK));
        page.flags |= flag::WRITEBACK;
        page.bio = bio;
        let idx = page.idx;
        t.wb += 1;
        self.nr_wb += 1;
        self.marks(t, idx, Find::Writeback, true);
        self.pin(p);
    }
    pub(crate) fn clear_wb(&mut self, t: &mut Tree, p: u32) {
        let page = &mut self.pages[p as usize];
        debug_assert!(page.is(flag::WRITEBACK));
        page.flags &= !flag::WRITEBACK;
        page.bio = NONE;
        let idx = page.idx;
        t.wb -= 1;
        self.nr_wb -= 1;
        self.marks(t, idx, Find::Writeback, false);
        self.settle(p);
    }
    /// Returns the first page from `from` on that is in the state `find`.
    pub(crate) fn next(&self, t: &Tree, from: u32, find: Find) -> Option<(u32, u32)> {
        let none = match find {
            Find::Present => t.pages == 0,
            Find::Dirty => t.dirty == 0,
            Find::Writeback => t.wb == 0,
        };
        if none {
            return None;
        }
        let mut n = from / LEAF;
        let mut low = from % LEAF;
        if n == 0 {
            if t.first != NONE
                && let Some(hit) = self.in_leaf(t.first, low, find)
            {
                return Some((hit.0, hit.1));
            }
            (n, low) = (1, 0);
        }
        let mut at = (n / NODE) as usize;
        while let Some(&id) = t.nodes.get(at) {
            if id != NONE {
                let node = &self.nodes[id as usize];
                let bits = match find {
                    Find::Present => node.present,
                    Find::Dirty => node.dirty,
                    Find::Writeback => node.wb,
                };
                let mut bits = bits & (u64::MAX << (n % NODE));
                while bits != 0 {
                    let k = bits.trailing_zeros();
                    let leaf = at as u32 * NODE + k;
                    let from = if leaf == n { low } else { 0 };
                    let hit = self.in_leaf(node.leaf[k as usize], from, find);
                    bits &= bits - 1;
                    if let Some(hit) = hit {
                        self.next_leaves(node, bits, find);
                        return Some((leaf * LEAF + hit.0, hit.1));
                    }
                }
            }
            at += 1;
            (n, low) = (at as u32 * NODE, 0);
        }
        None
    }
    /// Prepares the next visits of a caller that visits all leaves with such pages (`bits`).
    /// Prefetches the first page of the next such leaf, and the path to the leaf after it.
    fn next_leaves(&self, node: &Node, bits: u64, find: Find) {
        if bits == 0 {
            return;
        }
        let leaf = node.leaf[bits.trailing_zeros() as usize];
        if let Some((_, page)) = self.in_leaf(leaf, 0, find) {
            soon(&self.pages[page as usize]);
        }
        let behind = bits & (bits - 1);
        if behind != 0 {
            let leaf = &self.leaves[node.leaf[behind.trailing_zeros() as usize] as usize];
            soon(leaf);
            soon(&leaf.page[LEAF as usize - 1]);
        }
    }
    fn in_leaf(&self, leaf: u32, from: u32, find: Find) -> Option<(u32, u32)> {
        let l = &self.leaves[leaf as usize];
        let bits = match find {
            Find::Present => l.present,
            Find::Dirty => l.dirty,
            Find::Writeback => l.wb,
        } & (u16::MAX << from);
        let k = bits.trailing_zeros();
        (bits != 0).then(|| (k, l.page[k as usize]))
    }
    /// Returns the first index from `from` on and below `end` at which there is no page.
    pub(crate) fn next_hole(&self, t: &Tree, from: u32, end: u32) -> Option<u32> {
        (from..end).find(|i| self.lookup(t, *i).is_none())
    }
    /// Returns the number of present pages directly before `idx`, at most `max`.
    pub(crate) fn run_before(&self, t: &Tree, idx: u32, max: u32) -> u32 {
        (1..=max.min(idx))
            .take_while(|d| self.lookup(t, idx - d).is_some())
            .count() as u32
    }
}

fn put<T>(all: &mut Vec<T>, free: &mut Vec<u32>, v: T) -> u32 {
    match free.pop() {
        Some(i) => {
            all[i as usize] = v;
            i
        }
        None => {
            all.push(v);
            (all.len() - 1) as u32
        }
    }
}

#[cfg(test)]
mod tests;
