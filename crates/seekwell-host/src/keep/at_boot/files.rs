//! The files of a machine, together with files that are about to be written.

use crate::block::{Tree, lossy, names};
use crate::keep::Kept;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A tree together with planned files.
pub struct Files<'a> {
    tree: &'a Tree,
    planned: &'a [Kept],
}

impl<'a> Files<'a> {
    /// Returns the files of this tree with these planned files.
    pub fn new(tree: &'a Tree, planned: &'a [Kept]) -> Self {
        Files { tree, planned }
    }
    /// Returns the planned files.
    pub fn planned(&self) -> &[Kept] {
        self.planned
    }
    /// Returns the real path of a file. The links of a copied tree are resolved within the tree.
    fn at(&self, path: &Path) -> PathBuf {
        let at = self.tree.at(path);
        match fs::read_link(&at) {
            Ok(to) if to.is_absolute() => self.tree.at(to),
            _ => at,
        }
    }
    /// Returns the text of a file. The text is empty if the file does not exist.
    pub fn text(&self, path: &Path) -> String {
        match self.planned.iter().find(|k| k.path == path) {
            Some(k) => k.text.clone(),
            None => lossy(&self.at(path)),
        }
    }
    /// Returns whether the file exists or is planned.
    pub fn is_there(&self, path: &Path) -> bool {
        self.planned.iter().any(|k| k.path == path) || self.at(path).is_file()
    }
    /// Returns the length of a regular file, bytes.
    pub fn len(&self, path: &Path) -> Option<u64> {
        let meta = fs::metadata(self.at(path)).ok()?;
        meta.is_file().then_some(meta.len())
    }
    /// Returns the names in a directory.
    pub fn names(&self, dir: &str) -> Vec<String> {
        names(&self.tree.at(dir))
    }
    /// Returns files by name. If several directories contain a file of the same name, the file in
    /// the first directory hides the others. A link to `/dev/null` hides the others too, and is
    /// left out.
    pub fn overriding(&self, dirs: &[&str], suffix: &str) -> BTreeMap<String, PathBuf> {
        let mut all = BTreeMap::new();
        for dir in dirs {
            let planned = self
                .planned
                .iter()
                .filter(|k| k.path.parent() == Some(Path::new(dir)));
            let planned = planned.filter_map(|k| Some(k.path.file_name()?.to_str()?.to_owned()));
            for name in planned
                .chain(self.names(dir))
                .filter(|n| n.ends_with(suffix))
            {
                let path = Path::new(dir).join(&name);
                all.entry(name).or_insert(path);
            }
        }
        all.retain(|_, path| {
            !fs::read_link(self.tree.at(&*path)).is_ok_and(|to| to == Path::new("/dev/null"))
        });
        all
    }
}
