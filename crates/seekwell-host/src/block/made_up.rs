//! Simulated machines for tests: trees of files like those of the kernel.

use super::{Machine, Tree};
use crate::place::Scratch;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// The file tree of a simulated machine, in a temporary directory. The directory is removed when
/// the value is dropped.
pub struct MadeUp(Scratch);

impl MadeUp {
    /// Creates an empty tree.
    pub fn new(name: &str) -> Self {
        MadeUp(Scratch::new(&std::env::temp_dir(), name).expect("a directory"))
    }
    /// Returns the real path of a file in the tree.
    pub fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }
    /// Creates a directory.
    pub fn dir(&self, path: &str) -> &Self {
        fs::create_dir_all(self.at(path)).expect("made");
        self
    }
    /// Writes a file.
    pub fn put(&self, path: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("not the root")).expect("made");
        fs::write(path, bytes).expect("written");
        self
    }
    /// Creates a symbolic link from `from` to another path of the tree.
    pub fn link(&self, from: &str, to: &str) -> &Self {
        let from = self.at(from);
        fs::create_dir_all(from.parent().expect("not the root")).expect("made");
        symlink(self.at(to), from).expect("linked");
        self
    }
    /// Adds a disk at `sys/devices/PLACE/NAME`. `scheduler` is the text of `queue/scheduler`.
    pub fn disk(&self, name: &str, place: &str, scheduler: &str) -> &Self {
        let dir = format!("sys/devices/{place}/block/{name}");
        self.put(&format!("{dir}/queue/scheduler"), format!("{scheduler}\n"));
        self.put(&format!("{dir}/size"), "2097152\n");
        self.link(&format!("sys/block/{name}"), &dir)
    }
    /// Sets an attribute of a device's queue.
    pub fn queue(&self, device: &str, name: &str, value: &str) -> &Self {
        let path = format!("sys/block/{device}/queue/{name}");
        self.put(&path, format!("{value}\n"))
    }
    /// Adds a partition.
    pub fn part(&self, disk: &str, name: &str, numbers: &str) -> &Self {
        let dir = format!("sys/block/{disk}/{name}");
        self.put(&format!("{dir}/partition"), "1\n");
        self.put(&format!("{dir}/size"), "1048576\n");
        self.put(&format!("{dir}/dev"), format!("{numbers}\n"))
    }
    /// Adds a bio-based device that is stacked on other devices.
    pub fn bio(&self, name: &str, numbers: &str, members: &[&str]) -> &Self {
        let dir = format!("sys/devices/virtual/block/{name}");
        self.put(&format!("{dir}/dev"), format!("{numbers}\n"));
        self.put(&format!("{dir}/size"), "4194304\n");
        for m in members {
            self.put(&format!("{dir}/slaves/{m}/x"), "");
        }
        self.link(&format!("sys/block/{name}"), &dir)
    }
    /// Returns the tree.
    pub fn tree(&self) -> Tree {
        Tree::below(self.0.path())
    }
    /// Reads the tree and returns the machine.
    pub fn machine(&self) -> Machine {
        Machine::read(&self.tree())
    }
}
