//! Compares the page cache with simple models.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

proptest! {
    /// Checks that any sequence of operations agrees with a map from index to (dirty, writeback).
    #[test]
    fn page_cache_agrees_with_a_map(ops in proptest::collection::vec((0u8..6, 0u32..3000), 0..300)) {
        let (mut c, mut t) = (Cache::new(1 << 20), Tree::default());
        let mut model: BTreeMap<u32, (bool, bool)> = BTreeMap::new();
        for (op, raw) in ops {
            // Some indices are near the start of the file, and some are far from it.
            let idx = if raw % 3 == 0 { raw % 40 } else { raw * 7 };
            let page = c.lookup(&t, idx);
            prop_assert_eq!(page.is_some(), model.contains_key(&idx));
            match (op, page, model.get(&idx).copied()) {
                (0, None, _) => { let p = c.insert(&mut t, 1, idx, 0); c.settle(p); model.insert(idx, (false, false)); }
                (1, Some(p), Some(m)) => { c.set_dirty(&mut t, p); model.insert(idx, (true, m.1)); }
                (2, Some(p), Some((true, false))) => {
                    c.clear_dirty(&mut t, p);
                    c.set_wb(&mut t, p, 0);
                    model.insert(idx, (false, true));
                }
                (3, Some(p), Some((d, true))) => { c.clear_wb(&mut t, p); model.insert(idx, (d, false)); }
                (4, Some(p), Some((false, false))) => { c.remove(&mut t, p); model.remove(&idx); }
                _ => {}
            }
            let want = |f: fn(&(bool, bool)) -> bool| model.range(idx..).find(|e| f(e.1)).map(|e| *e.0);
            prop_assert_eq!(c.next(&t, idx, Find::Present).map(|e| e.0), want(|_| true));
            prop_assert_eq!(c.next(&t, idx, Find::Dirty).map(|e| e.0), want(|e| e.0));
            prop_assert_eq!(c.next(&t, idx, Find::Writeback).map(|e| e.0), want(|e| e.1));
            prop_assert_eq!(c.nr_dirty as usize, model.values().filter(|e| e.0).count());
            prop_assert_eq!(c.nr_wb as usize, model.values().filter(|e| e.1).count());
            prop_assert_eq!(c.lru.len(), model.values().filter(|e| !e.0 && !e.1).count());
        }
    }
}

struct One(Tree);

impl Owner for One {
    fn tree(&mut self) -> &mut Tree {
        &mut self.0
    }
}

proptest! {
    /// Checks readable runs and evicted pages against a model that keeps every mark with its page.
    #[test]
    fn page_marks_agree_with_a_plain_model(ops in proptest::collection::vec((0u8..6, 0u32..40, 0u32..20), 0..300)) {
        let mut c = Cache::new(1 << 20);
        let mut one = [One(Tree::default())];
        // The state of each page by index (uptodate, read-ahead mark, used), and the order of the
        // LRU list.
        let mut model: BTreeMap<u32, (bool, bool, bool)> = BTreeMap::new();
        let mut list: Vec<u32> = Vec::new();
        for (op, idx, n) in ops {
            let t = &mut one[0].0;
            let page = c.lookup(t, idx);
            match (op, page) {
                (0 | 1, None) => {
                    let (p, mark) = (c.insert(t, 0, idx, 0), n == 0);
                    c.pages[p as usize].flags |= flag::UPTODATE;
                    if mark {
                        c.pages[p as usize].flags |= flag::MARK;
                    }
                    c.settle(p);
                    model.insert(idx, (true, mark, false));
                    list.push(idx);
                }
                (0, Some(p)) => {
                    c.pages[p as usize].flags &= !flag::MARK;
                    model.entry(idx).and_modify(|m| m.1 = false);
                }
                (1, Some(p)) => {
                    c.used(t, p);
                    model.entry(idx).and_modify(|m| m.2 = true);
                }
                (2, Some(p)) => {
                    c.remove(t, p);
                    model.remove(&idx);
                    list.retain(|i| *i != idx);
                }
                (3 | 4, _) => {
                    let mut all = true;
                    for i in idx..=idx + n {
                        match model.get_mut(&i) {
                            Some(m) if m.0 && !m.1 => m.2 = true,
                            _ => {
                                all = false;
                                break;
                            }
                        }
                    }
                    prop_assert_eq!(c.read_run(t, idx, idx + n), all);
                }
                (5, _) => {
                    let mut want = None;
                    for _ in 0..=list.len() {
                        let Some(&i) = list.first() else { break };
                        let m = model.get_mut(&i).expect("on the list");
                        if !m.2 {
                            want = Some(i);
                            break;
                        }
                        m.2 = false;
                        list.rotate_left(1);
                    }
                    let want = want.or(list.first().copied());
                    let got = c.victim(&mut one).map(|p| c.pages[p as usize].idx);
                    prop_assert_eq!(got, want);
                }
                _ => {}
            }
        }
    }
}
