//! Cgroups as a controller keeps them: something for each, found by number, under a parent.

use seekwell_core::CgroupId;
use std::collections::BTreeMap;

/// The root's place.
pub(super) const ROOT: usize = 0;

/// All that were named so far; those that are gone keep their place.
#[derive(Clone, Debug)]
pub(super) struct Groups<T> {
    all: Vec<(Option<usize>, T)>,
    by_id: BTreeMap<CgroupId, usize>,
}

impl<T: Default> Groups<T> {
    /// The root alone.
    pub fn new() -> Self {
        Groups {
            all: vec![(None, T::default())],
            by_id: BTreeMap::from([(CgroupId::ROOT, ROOT)]),
        }
    }
    /// Place of a cgroup; one that was never named lies under the root from now on.
    pub fn place(&mut self, id: CgroupId) -> usize {
        let new = self.all.len();
        let at = *self.by_id.entry(id).or_insert(new);
        if at == new {
            self.all.push((Some(ROOT), T::default()));
        }
        at
    }
    /// Place of a cgroup that was named.
    pub fn find(&self, id: CgroupId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }
    /// A cgroup is made under a parent. Nothing comes to lie under itself, and the root under
    /// nothing.
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
    /// Place of the parent; the root has none.
    pub fn parent(&self, at: usize) -> Option<usize> {
        self.all[at].0
    }
    /// How many places there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }
    /// All, by place.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|g| &g.1)
    }
    /// All, by place.
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
