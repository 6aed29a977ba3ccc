//! The cgroups of a controller. The data of a cgroup are found by its number. Each cgroup has a
//! parent.

use seekwell_core::CgroupId;
use std::collections::BTreeMap;

/// Index of the root.
pub(super) const ROOT: usize = 0;

/// All known cgroups. A removed cgroup keeps its index.
#[derive(Clone, Debug)]
pub(super) struct Groups<T> {
    all: Vec<(Option<usize>, T)>,
    by_id: BTreeMap<CgroupId, usize>,
}

impl<T: Default> Groups<T> {
    /// Creates the set with only the root.
    pub fn new() -> Self {
        Groups {
            all: vec![(None, T::default())],
            by_id: BTreeMap::from([(CgroupId::ROOT, ROOT)]),
        }
    }
    /// Returns the index of a cgroup. Adds an unknown cgroup below the root.
    pub fn place(&mut self, id: CgroupId) -> usize {
        let new = self.all.len();
        let at = *self.by_id.entry(id).or_insert(new);
        if at == new {
            self.all.push((Some(ROOT), T::default()));
        }
        at
    }
    /// Returns the index of a known cgroup.
    pub fn find(&self, id: CgroupId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }
    /// Adds a cgroup below a parent. A cgroup must not become its own ancestor, and the root must
    /// have no parent.
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
    /// Returns the index of the parent, or `None` for the root.
    pub fn parent(&self, at: usize) -> Option<usize> {
        self.all[at].0
    }
    /// Returns the number of indices.
    pub fn len(&self) -> usize {
        self.all.len()
    }
    /// Iterates over all cgroups in index order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|g| &g.1)
    }
    /// Iterates over all cgroups in index order.
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
