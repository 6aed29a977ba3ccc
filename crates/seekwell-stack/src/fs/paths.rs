//! Directories that paths led to lately: programs open one file after the other in the same place.
//!
//! A table of a fixed size, a place for each hash of a path; whoever comes later takes it. What it
//! knows holds until a directory is renamed or removed: then all is forgotten.

use super::names::hash;

/// Places, a power of two.
const PLACES: usize = 1024;

#[derive(Clone, Debug, Default)]
struct Place {
    path: String,
    dir: u32,
    steps: u32,
    age: u64,
}

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    places: Vec<Place>,
    /// Places of another age hold nothing.
    age: u64,
}

impl Paths {
    pub(crate) fn new() -> Self {
        Paths {
            places: Vec::new(),
            age: 1,
        }
    }
    #[inline]
    fn place(path: &str) -> usize {
        hash(path.as_bytes()) as usize & (PLACES - 1)
    }
    /// The directory of exactly this path, and how many names were looked up on the way.
    #[inline]
    pub(crate) fn get(&self, path: &str) -> Option<(u32, u32)> {
        let p = self.places.get(Self::place(path))?;
        (p.age == self.age && p.path == path).then_some((p.dir, p.steps))
    }
    /// A path leads to this directory.
    pub(crate) fn learn(&mut self, path: &str, dir: u32, steps: u32) {
        if self.places.is_empty() {
            self.places.resize_with(PLACES, Place::default);
        }
        let p = &mut self.places[Self::place(path)];
        p.path.clear();
        p.path.push_str(path);
        (p.dir, p.steps, p.age) = (dir, steps, self.age);
    }
    /// A directory has lost its name: paths may lead elsewhere.
    pub(crate) fn forget(&mut self) {
        self.age += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_or_overwritten_is_not_found() {
        let mut p = Paths::new();
        assert_eq!(p.get("/a"), None);
        p.learn("/a", 5, 1);
        p.learn("", 1, 0);
        assert_eq!((p.get("/a"), p.get("")), (Some((5, 1)), Some((1, 0))));
        assert_eq!(p.get("/a/"), None);
        for n in 0..10 * PLACES as u32 {
            p.learn(&format!("/dir-{n}"), n, 1);
        }
        let found = (0..10 * PLACES as u32).filter_map(|n| Some((n, p.get(&format!("/dir-{n}"))?)));
        let found: Vec<_> = found.collect();
        assert!(found.len() <= PLACES && found.iter().all(|(n, f)| *f == (*n, 1)));
        p.forget();
        assert_eq!(p.get("/dir-10239"), None);
    }
}
