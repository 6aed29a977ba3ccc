//! Cgroups of a controller: data for each cgroup, found by number, under a parent.

use seekwell_core::CgroupId;
use std::collections::BTreeMap;

/// The root's index.
pub(super) const ROOT: usize = 0;

/// All known cgroups; removed ones keep their index.
#[derive(Clone, Debug)]
pub(super) struct Groups<T> {
    all: Vec<(Option<usize>, T)>,
    by_id: BTreeMap<CgroupId, usize>,
}

impl<T: Default> Groups<T> {
    /// Only the root.
    pub fn new() -> Self {
        Groups {
            all: vec![(None, T::default())],
            by_id: BTreeMap::from([(CgroupId::ROOT, ROOT)]),
        }
    }
    /// Index of a cgroup; an unknown one is added under the root.
    pub fn place(&mut self, id: CgroupId) -> usize {
        let new = self.all.len();
        let at = *self.by_id.entry(id).or_insert(new);
        if at == new {
            self.all.push((Some(ROOT), T::default()));
        }
        at
    }
    /// Index of a known cgroup.
    pub fn find(&self, id: CgroupId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }
    /// Creates a cgroup under a parent. No cgroup becomes its own ancestor, and the root has no
    /// parent.
    pub fn made(&mut self, id: CgroupId, parent: CgroupId) {
        let (at, above) = (self.place(id), self.place(parent));
        let mut up = Some(above);
        while let Some(u) = up.filter(|u| *u != at) {
            up = self.parent(u);
        }
        if at != ROOT && up.is_none() {
            self.all[at].0 = Some(above);
        }
    }
    /// Index of the parent; the root has none.
    pub fn parent(&self, at: usize) -> Option<usize> {
        self.all[at].0
    }
    /// Number of indices.
    pub fn len(&self) -> usize {
        self.all.len()
    }
    /// All, by index.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|g| &g.1)
    }
    /// All, by index.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.iter_mut().map(|g| &mut g.1)
    }
}

impl<T> std::ops::Index<usize> for Groups<T> {
    type Output = T;
    fn index(&self, at: usize) -> &T {
        &self.all[at].1
    }
}
impl<T> std::ops::IndexMut<usize> for Groups<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.all[at].1
    }
}
