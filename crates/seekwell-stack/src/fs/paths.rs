//! A table of recently used directories by path, because programs open many files in the same
//! directory.
//!
//! The table has a fixed size and one entry per hash value. A newer path replaces an older path
//! with the same hash value. If a directory is renamed or removed, all entries become invalid.

use super::names::hash;

/// Number of entries, a power of two.
const PLACES: usize = 1024;

#[derive(Clone, Debug, Default)]
struct Place {
    path: String,
    dir: u32,
    steps: u32,
    age: u64,
}

/// The table of directories.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    places: Vec<Place>,
    /// For each actor, the entry of its last directory.
    last: Vec<u16>,
    /// Present age of the table. Entries with another age are invalid.
    age: u64,
}

impl Paths {
    pub(crate) fn new() -> Self {
        Paths {
            places: Vec::new(),
            last: Vec::new(),
            age: 1,
        }
    }
    #[inline]
    fn place(path: &str) -> usize {
        hash(path.as_bytes()) as usize & (PLACES - 1)
    }
    /// Returns the directory of exactly this path, and the number of names that were looked up to
    /// find it. `who` is the actor.
    #[inline]
    pub(crate) fn get(&mut self, who: u32, path: &str) -> Option<(u32, u32)> {
        let at = Self::place(path);
        let p = self.places.get(at)?;
        let found = (p.age == self.age && p.path == path).then_some((p.dir, p.steps))?;
        if self.last.len() <= who as usize {
            self.last.resize(who as usize + 1, 0);
        }
        self.last[who as usize] = at as u16;
        Some(found)
    }
    /// Returns the last directory of actor `who`, if this path leads into that directory. Also
    /// returns the number of names looked up to find it, and the rest of the path.
    #[inline]
    pub(crate) fn again<'a>(&self, who: u32, path: &'a str) -> Option<(u32, u32, &'a str)> {
        let at = self.last.get(who as usize)?;
        let p = self.places.get(usize::from(*at))?;
        let left = path.strip_prefix(&*p.path)?.strip_prefix('/')?;
        (p.age == self.age).then_some((p.dir, p.steps, left))
    }
    /// Records the directory of a path.
    pub(crate) fn learn(&mut self, path: &str, dir: u32, steps: u32) {
        if self.places.is_empty() {
            self.places.resize_with(PLACES, Place::default);
        }
        let p = &mut self.places[Self::place(path)];
        p.path.clear();
        p.path.push_str(path);
        (p.dir, p.steps, p.age) = (dir, steps, self.age);
    }
    /// Invalidates all entries, because a directory was renamed or removed.
    pub(crate) fn forget(&mut self) {
        self.age += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_or_overwritten_paths_are_not_found() {
        let mut p = Paths::new();
        assert_eq!(p.get(0, "/a"), None);
        p.learn("/a", 5, 1);
        p.learn("", 1, 0);
        assert_eq!((p.get(0, "/a"), p.get(0, "")), (Some((5, 1)), Some((1, 0))));
        assert_eq!(p.get(0, "/a/"), None);
        for n in 0..10 * PLACES as u32 {
            p.learn(&format!("/dir-{n}"), n, 1);
        }
        let found =
            (0..10 * PLACES as u32).filter_map(|n| Some((n, p.get(0, &format!("/dir-{n}"))?)));
        let found: Vec<_> = found.collect();
        assert!(found.len() <= PLACES && found.iter().all(|(n, f)| *f == (*n, 1)));
        p.forget();
        assert_eq!(p.get(0, "/dir-10239"), None);
    }

    #[test]
    fn next_lookup_in_the_same_directory_needs_no_search() {
        let mut p = Paths::new();
        p.learn("/a/b", 5, 2);
        p.learn("", 1, 0);
        assert_eq!(p.again(3, "/a/b/c"), None, "it was never there");
        assert_eq!(p.get(3, "/a/b"), Some((5, 2)));
        assert_eq!(p.again(3, "/a/b/c"), Some((5, 2, "c")));
        assert_eq!(
            p.again(3, "/a/b/c/d"),
            Some((5, 2, "c/d")),
            "all that is left"
        );
        for elsewhere in ["/a/bc", "/a/b", "/a/bc/d", "/a", "a/b/c", ""] {
            assert_eq!(p.again(3, elsewhere), None, "{elsewhere}");
        }
        assert_eq!(p.again(2, "/a/b/c"), None, "another was not");
        assert_eq!(p.get(3, ""), Some((1, 0)));
        assert_eq!(p.again(3, "/c"), Some((1, 0, "c")));
        p.forget();
        assert_eq!(p.again(3, "/c"), None);
    }
}
