//! The block devices of a machine, and how they are stacked. Everything is found by reading files.
//!
//! The files are under `/sys`, `/proc` and `/run/udev`, and every user may read them. Their root
//! directory can be changed, for tests and for copies of the trees of other machines. A missing
//! value is `None`, and a malformed value is reported. This module never panics, blocks or writes.
//! Facts that need an ioctl or a command to the device are not covered (SMART, the seek curve).

mod device;
mod kind;
mod mounts;
mod read;
mod under;

#[cfg(test)]
pub(crate) mod made_up;
#[cfg(test)]
mod tests;

pub use device::{Device, Partition, Scheduler, numbers};
pub use kind::Kind;
pub use mounts::Mount;
pub use read::{clean, lossy, names};
pub use under::{Acts, Role, Step, Under, UnderError};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The root directory of the files that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    root: PathBuf,
}

impl Default for Tree {
    fn default() -> Self {
        Tree::below("/")
    }
}

impl Tree {
    /// Returns the tree with this root directory: its `/sys` is `ROOT/sys`.
    pub fn below(root: impl Into<PathBuf>) -> Tree {
        let root = root.into();
        // Links are resolved, so that paths below the root can be recognised.
        Tree {
            root: std::fs::canonicalize(&root).unwrap_or(root),
        }
    }
    /// Returns whether the tree is that of this machine and not a copy.
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }
    /// Returns the path in this tree for an absolute path of the machine.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
    /// Returns the identifier of the machine's current boot; empty if it cannot be read.
    pub(crate) fn boot_id(&self) -> String {
        let id = std::fs::read_to_string(self.at("/proc/sys/kernel/random/boot_id"));
        id.unwrap_or_default().trim().to_owned()
    }
    /// Returns the absolute path on the machine, with symbolic links resolved.
    pub fn real(&self, path: &Path) -> std::io::Result<PathBuf> {
        let path = match self.is_live() {
            true => path.to_owned(),
            false => self.at(path),
        };
        let real = std::fs::canonicalize(path)?;
        match real.strip_prefix(&self.root) {
            Ok(below) => Ok(Path::new("/").join(below)),
            Err(_) => Err(std::io::Error::other("a link leads out of the tree")),
        }
    }
    /// Reads a single device. Returns `None` if it does not exist.
    pub fn device(&self, name: &str) -> Option<Device> {
        let dir = self.at("/sys/block").join(name);
        dir.is_dir()
            .then(|| Device::read(name, &dir, &self.at("/run/udev/data")))
    }
    /// Returns the release of the kernel, for example `6.18.44-generic`. It is empty if unknown.
    pub fn release(&self) -> String {
        read::lossy(&self.at("/proc/sys/kernel/osrelease"))
            .trim()
            .to_owned()
    }
    /// Returns whether the kernel preserves the order of writes to a zone with every scheduler.
    /// Linux 6.10 introduced zone write plugging. Before, only mq-deadline preserved the order.
    /// Returns false if the release is unknown.
    pub fn plugs_zone_writes(&self) -> bool {
        release(&self.release()).is_some_and(|r| r >= (6, 10))
    }
    /// Returns the directory of a device's queue.
    pub fn queue(&self, device: &str) -> PathBuf {
        self.at("/sys/block").join(device).join("queue")
    }
}

/// Returns the major and minor number of a release such as `6.18.44-generic`.
pub fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// All block devices and mounts of a machine.
#[derive(Clone, Debug)]
pub struct Machine {
    tree: Tree,
    /// All devices in natural order, including unused loop devices.
    pub devices: Vec<Device>,
    /// All mounts.
    pub mounts: Vec<Mount>,
    /// For each file system on several devices (btrfs), the names of its devices or partitions.
    pools: Vec<BTreeSet<String>>,
    /// Value of `elevator=` on the kernel's command line. Kernels since 5.0 ignore it.
    pub elevator: Option<String>,
}

impl Machine {
    /// Reads all devices and mounts of a tree.
    pub fn read(tree: &Tree) -> Machine {
        let sys = tree.at("/sys/block");
        let class = tree.at("/sys/class/block");
        // A path of NVMe multipath may exist only in `/sys/class/block`.
        let mut dirs: BTreeMap<String, PathBuf> = BTreeMap::new();
        for base in [&class, &sys] {
            for name in read::names(base) {
                let dir = base.join(&name);
                if dir.is_dir() && !dir.join("partition").exists() {
                    dirs.insert(name, dir);
                }
            }
        }
        let udev = tree.at("/run/udev/data");
        let mut devices: Vec<Device> = dirs
            .iter()
            .map(|(name, dir)| Device::read(name, dir, &udev))
            .collect();
        devices.sort_by(|a, b| read::by_number(&a.name, &b.name));
        let fs = tree.at("/sys/fs/btrfs");
        let pools = read::names(&fs);
        let pools = pools
            .iter()
            .map(|uuid| read::names(&fs.join(uuid).join("devices")));
        let mut m = Machine {
            mounts: Mount::table(&read::lossy(&tree.at("/proc/self/mountinfo"))),
            pools: pools.map(|p| p.into_iter().collect()).collect(),
            elevator: elevator(&read::lossy(&tree.at("/proc/cmdline"))),
            tree: tree.clone(),
            devices,
        };
        m.heads();
        m.uses();
        m
    }

    /// Returns the tree from which the machine was read.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the whole device with this name.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|d| d.name == name)
    }

    /// Returns the device with this name. For the name of a partition, returns the disk and the
    /// partition.
    pub fn named(&self, name: &str) -> Option<(&Device, Option<&Partition>)> {
        if let Some(d) = self.device(name) {
            return Some((d, None));
        }
        self.devices.iter().find_map(|d| {
            let part = d.partitions.iter().find(|p| p.name == name)?;
            Some((d, Some(part)))
        })
    }

    /// Returns the name of the device or partition with these major and minor numbers.
    pub fn numbered(&self, numbers: (u32, u32)) -> Option<&str> {
        self.devices.iter().find_map(|d| {
            if d.numbers == Some(numbers) {
                return Some(&*d.name);
            }
            let part = d.partitions.iter().find(|p| p.numbers == Some(numbers))?;
            Some(&part.name)
        })
    }

    /// Links the heads of NVMe multipath to their paths. If the kernel does not list the paths,
    /// they are found by name.
    fn heads(&mut self) {
        let all = self.devices.iter();
        let paths: Vec<String> = all
            .filter(|d| d.kind == Kind::NvmePath)
            .map(|d| d.name.clone())
            .collect();
        for d in self.devices.iter_mut().filter(|d| d.kind == Kind::NvmeHead) {
            // For example, `nvme0n1` is the head of `nvme0c0n1` and `nvme0c1n1`.
            let Some((subsystem, namespace)) = d.name.rsplit_once('n') else {
                continue;
            };
            let of = |p: &&String| {
                p.strip_prefix(subsystem)
                    .and_then(|r| r.strip_prefix('c'))
                    .and_then(|r| r.split_once('n'))
                    .is_some_and(|(_, n)| n == namespace)
            };
            for path in paths.iter().filter(of) {
                if !d.below.contains(path) {
                    d.below.push(path.clone());
                }
            }
        }
    }

    /// Returns the names of the devices or partitions that a mount is on.
    pub fn sources(&self, mount: &Mount) -> Vec<String> {
        let mut names = Vec::new();
        if mount.numbers.0 != 0 {
            names.extend(self.numbered(mount.numbers).map(str::to_owned));
        }
        if names.is_empty() {
            // bcachefs reports its devices separated by colons.
            for source in mount.source.split(':').filter(|s| s.starts_with('/')) {
                names.extend(self.node(Path::new(source)));
            }
        }
        let pool = self
            .pools
            .iter()
            .find(|p| names.iter().any(|n| p.contains(n)));
        if let Some(pool) = pool.filter(|_| mount.filesystem == "btrfs") {
            names = pool.iter().cloned().collect();
            names.sort_by(|a, b| read::by_number(a, b));
        }
        names
    }

    /// Returns the name of the device or partition of a node in `/dev`. Symbolic links are
    /// resolved.
    pub fn node(&self, path: &Path) -> Option<String> {
        let real = self.tree.real(path).unwrap_or_else(|_| path.to_owned());
        let name = real.strip_prefix("/dev").ok()?.to_str()?.replace('/', "!");
        if self.named(&name).is_some() {
            return Some(name);
        }
        // A copied tree often lacks `/dev/mapper`, so the device is found by its label.
        let label = path.strip_prefix("/dev/mapper").ok()?.to_str()?;
        let all = self.devices.iter();
        let found = all
            .filter(|d| d.name.starts_with("dm-"))
            .find(|d| d.label.as_deref() == Some(label));
        found.map(|d| d.name.clone())
    }

    /// Records mounts and swap in the devices that they use.
    fn uses(&mut self) {
        let mut mounted: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for m in &self.mounts {
            for name in self.sources(m) {
                let points = mounted.entry(name).or_default();
                if !points.contains(&m.point) {
                    points.push(m.point.clone());
                }
            }
        }
        let swaps = read::lossy(&self.tree.at("/proc/swaps"));
        let first = |l: &str| l.split_whitespace().next().map(mounts::unescape);
        let swaps: Vec<String> = swaps
            .lines()
            .filter_map(first)
            .filter_map(|f| self.node(Path::new(&f)))
            .collect();
        for d in &mut self.devices {
            d.mounts = mounted.remove(&d.name).unwrap_or_default();
            d.swap = swaps.contains(&d.name);
            for p in &mut d.partitions {
                p.mounts = mounted.remove(&p.name).unwrap_or_default();
                p.swap = swaps.contains(&p.name);
            }
        }
    }

    /// Returns whether `/` is on this device, directly or through other layers.
    pub fn carries_root(&self, device: &str) -> bool {
        let root = self.mounts.iter().rfind(|m| m.point == Path::new("/"));
        root.is_some_and(|m| self.steps_of(m).iter().any(|s| s.name == device))
    }
}

fn elevator(cmdline: &str) -> Option<String> {
    let mut words = cmdline.split_whitespace();
    words.find_map(|w| w.strip_prefix("elevator=")).map(clean)
}
