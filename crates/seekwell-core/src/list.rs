//! Doubly linked lists that are intrusive and linked by index. Many lists share one table of links.

const NIL: u32 = u32::MAX;
const OUT: u32 = u32::MAX - 1;

/// A list: first entry, last entry and length. Its links are in a [`Links`] table, which several
/// lists share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl List {
    /// Returns an empty list.
    pub const fn new() -> Self {
        List {
            head: NIL,
            tail: NIL,
            len: 0,
        }
    }
    /// Returns the number of entries.
    pub const fn len(&self) -> usize {
        self.len as usize
    }
    /// Returns true if the list is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Returns the first entry.
    pub const fn first(&self) -> Option<u32> {
        opt(self.head)
    }
    /// Returns the last entry.
    pub const fn last(&self) -> Option<u32> {
        opt(self.tail)
    }
}

const fn opt(i: u32) -> Option<u32> {
    if i >= OUT { None } else { Some(i) }
}

/// The links of the entries 0, 1, 2, ... An entry is on at most one list of a table at a time.
#[derive(Default, Debug, Clone)]
pub struct Links {
    link: Vec<(u32, u32)>, // (prev, next); prev == OUT: on no list
}

impl Links {
    /// Returns an empty table. It grows with the highest index that is used.
    pub const fn new() -> Self {
        Links { link: Vec::new() }
    }
    #[inline]
    fn slot(&mut self, i: u32) -> &mut (u32, u32) {
        let n = i as usize;
        if n >= self.link.len() {
            self.grow(n);
        }
        &mut self.link[n]
    }
    #[cold]
    fn grow(&mut self, n: usize) {
        self.link
            .resize((n + 1).next_power_of_two().max(64), (OUT, NIL));
    }
    /// Returns true if entry `i` is on a list of this table.
    #[inline]
    pub fn linked(&self, i: u32) -> bool {
        self.link.get(i as usize).is_some_and(|l| l.0 != OUT)
    }
    /// Prefetches entry `i`, which will be used soon.
    #[inline]
    pub fn soon(&self, i: u32) {
        if let Some(l) = self.link.get(i as usize) {
            crate::soon(l);
        }
    }
    /// Adds an entry at the end.
    #[inline]
    pub fn push_back(&mut self, l: &mut List, i: u32) {
        debug_assert!(!self.linked(i), "entry {i} is on a list already");
        *self.slot(i) = (l.tail, NIL);
        if l.tail == NIL {
            l.head = i;
        } else {
            self.link[l.tail as usize].1 = i;
        }
        l.tail = i;
        l.len += 1;
    }
    /// Adds an entry at the front.
    #[inline]
    pub fn push_front(&mut self, l: &mut List, i: u32) {
        debug_assert!(!self.linked(i), "entry {i} is on a list already");
        *self.slot(i) = (NIL, l.head);
        if l.head == NIL {
            l.tail = i;
        } else {
            self.link[l.head as usize].0 = i;
        }
        l.head = i;
        l.len += 1;
    }
    /// Inserts entry `i` after entry `at`, which must be on list `l`.
    pub fn insert_after(&mut self, l: &mut List, at: u32, i: u32) {
        let next = self.link[at as usize].1;
        if next == NIL {
            return self.push_back(l, i);
        }
        debug_assert!(!self.linked(i), "entry {i} is on a list already");
        *self.slot(i) = (at, next);
        self.link[at as usize].1 = i;
        self.link[next as usize].0 = i;
        l.len += 1;
    }
    /// Inserts entry `i` before entry `at`, which must be on list `l`.
    pub fn insert_before(&mut self, l: &mut List, at: u32, i: u32) {
        match opt(self.link[at as usize].0) {
            None => self.push_front(l, i),
            Some(p) => self.insert_after(l, p, i),
        }
    }
    /// Removes entry `i` from list `l`, which must contain it.
    #[inline]
    pub fn remove(&mut self, l: &mut List, i: u32) {
        let (p, n) = self.link[i as usize];
        debug_assert!(p != OUT, "entry {i} is on no list");
        if p == NIL {
            l.head = n;
        } else {
            self.link[p as usize].1 = n;
        }
        if n == NIL {
            l.tail = p;
        } else {
            self.link[n as usize].0 = p;
        }
        self.link[i as usize] = (OUT, NIL);
        l.len -= 1;
    }
    /// Removes and returns the first entry.
    #[inline]
    pub fn pop_front(&mut self, l: &mut List) -> Option<u32> {
        let i = l.first()?;
        self.remove(l, i);
        Some(i)
    }
    /// Returns the entry after `i`.
    #[inline]
    pub fn next(&self, i: u32) -> Option<u32> {
        opt(self.link[i as usize].1)
    }
    /// Returns the entry before `i`.
    #[inline]
    pub fn prev(&self, i: u32) -> Option<u32> {
        opt(self.link[i as usize].0)
    }
    /// Moves all entries of `from` to the end of `to`.
    pub fn append(&mut self, to: &mut List, from: &mut List) {
        if from.is_empty() {
            return;
        }
        if to.is_empty() {
            *to = *from;
        } else {
            self.link[to.tail as usize].1 = from.head;
            self.link[from.head as usize].0 = to.tail;
            to.tail = from.tail;
            to.len += from.len;
        }
        *from = List::new();
    }
    /// Returns all entries, from front to back.
    pub fn iter<'a>(&'a self, l: &List) -> impl Iterator<Item = u32> + 'a {
        let mut at = l.first();
        std::iter::from_fn(move || {
            let i = at?;
            at = self.next(i);
            Some(i)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// After any sequence of operations, the list agrees with a VecDeque.
        #[test]
        fn list_agrees_with_a_deque(ops in proptest::collection::vec((0u8..6, 0u32..40), 0..200)) {
            let (mut links, mut list, mut model) = (Links::new(), List::new(), VecDeque::new());
            for (op, i) in ops {
                let on = model.contains(&i);
                match op {
                    0 if !on => { links.push_back(&mut list, i); model.push_back(i); }
                    1 if !on => { links.push_front(&mut list, i); model.push_front(i); }
                    2 if on => { links.remove(&mut list, i); model.retain(|x| *x != i); }
                    3 => prop_assert_eq!(links.pop_front(&mut list), model.pop_front()),
                    4 if !on && !model.is_empty() => {
                        let at = model[i as usize % model.len()];
                        links.insert_after(&mut list, at, i);
                        let p = model.iter().position(|x| *x == at).unwrap();
                        model.insert(p + 1, i);
                    }
                    5 if !on && !model.is_empty() => {
                        let at = model[i as usize % model.len()];
                        links.insert_before(&mut list, at, i);
                        let p = model.iter().position(|x| *x == at).unwrap();
                        model.insert(p, i);
                    }
                    _ => {}
                }
                prop_assert_eq!(links.iter(&list).collect::<Vec<_>>(), Vec::from(model.clone()));
                prop_assert_eq!(list.len(), model.len());
                prop_assert_eq!(list.last(), model.back().copied());
            }
        }
    }
}
