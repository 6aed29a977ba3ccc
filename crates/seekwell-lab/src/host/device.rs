//! The directory of an experiment on this machine, and the devices below it.

use seekwell_host::block::{Device, Machine, Scheduler, Tree, Under, clean};
use seekwell_host::switch::settings::Queue;
use std::path::{Path, PathBuf};

/// A directory, and the devices below it whose schedulers affect its I/O.
#[derive(Clone, Debug)]
pub struct DeviceOf {
    tree: Tree,
    path: PathBuf,
    under: Under,
    devices: Vec<Device>,
    root: bool,
    may_set: bool,
}

impl DeviceOf {
    /// Finds the devices below a directory of this machine.
    ///
    /// # Errors
    /// The path does not exist, is not a directory, or is not writable.
    pub fn find(path: &Path) -> Result<DeviceOf, String> {
        seekwell_host::place::usable(path).map_err(|e| e.to_string().replace("--dir", "--host"))?;
        DeviceOf::of(path)
    }
    /// Finds the devices below a path of this machine: a directory, a file, or a device with or
    /// without `/dev/`. Nothing needs to be writable.
    ///
    /// # Errors
    /// The path does not exist.
    pub fn of(path: &Path) -> Result<DeviceOf, String> {
        let node = Path::new("/dev").join(path);
        let path = match !path.exists() && node.exists() {
            true => node.as_path(),
            false => path,
        };
        let tree = Tree::default();
        let machine = Machine::read(&tree);
        let path = std::fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let under = machine.under(&path).map_err(|e| e.to_string())?;
        let names = under.deciding.iter();
        let devices: Vec<Device> = names.filter_map(|n| machine.device(n).cloned()).collect();
        let access = |d: &Device| {
            let file = Queue::new(tree.queue(&d.name)).file("scheduler");
            let choice = matches!(d.scheduler, Scheduler::Choice { .. });
            choice && rustix::fs::access(&file, rustix::fs::Access::WRITE_OK).is_ok()
        };
        Ok(DeviceOf {
            may_set: !devices.is_empty() && devices.iter().all(access),
            root: devices.iter().any(|d| machine.carries_root(&d.name)),
            tree,
            path,
            under,
            devices,
        })
    }
    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Returns the mount point of the directory's file system; empty if unknown.
    pub fn mount_point(&self) -> &Path {
        self.under.mount_point.as_deref().unwrap_or(Path::new(""))
    }
    /// Returns the location of the kernel's sysfs and procfs files.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }
    /// Returns the devices whose schedulers affect the directory's I/O.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }
    /// Returns whether the schedulers of the devices can be set.
    pub fn may_set(&self) -> bool {
        self.may_set
    }
    /// Returns whether the root file system is on one of the devices.
    pub fn carries_root(&self) -> bool {
        self.root
    }
    /// Returns the names of the devices, such as `sda` or `sda,sdb`.
    pub fn names(&self) -> String {
        let all: Vec<&str> = self.devices.iter().map(|d| d.name.as_str()).collect();
        all.join(",")
    }
    /// Returns the label for tables.
    pub fn label(&self) -> String {
        let path = clean(&self.path.to_string_lossy());
        match self.devices.is_empty() {
            true => path,
            false => format!("{path} on {}", self.names()),
        }
    }
    /// Returns a description with details of the devices.
    pub fn describe(&self) -> String {
        let fs = self.under.filesystem.as_deref().unwrap_or("?");
        let path = clean(&self.path.to_string_lossy());
        let all = self.devices.iter().map(|d| {
            let model = d.model.clone().map_or(String::new(), |m| format!(" {m}"));
            format!("{} ({}{model})", d.name, d.description())
        });
        let all: Vec<String> = all.collect();
        match all.is_empty() {
            true => format!("{fs} at {path}, which has no scheduler"),
            false => format!("{fs} at {path} on {}", all.join(", ")),
        }
    }
    /// Returns the active scheduler of the first device.
    pub fn in_force(&self) -> String {
        let first = self.devices.first();
        let queue = first.map(|d| Queue::new(self.tree.queue(&d.name)));
        let now = queue.and_then(|q| q.scheduler().ok());
        now.unwrap_or_else(|| "no scheduler".to_owned())
    }
    /// Returns the schedulers that all devices offer.
    pub fn offered(&self) -> Vec<String> {
        let Some((first, rest)) = self.devices.split_first() else {
            return Vec::new();
        };
        let all = first.scheduler.offered().iter();
        let everywhere = |s: &&String| rest.iter().all(|d| d.scheduler.offered().contains(s));
        all.filter(everywhere).cloned().collect()
    }
    /// Returns whether the queue of every device has this attribute.
    pub fn has(&self, attribute: &str) -> bool {
        let of = |d: &Device| {
            Queue::new(self.tree.queue(&d.name))
                .value(attribute)
                .is_ok()
        };
        !self.devices.is_empty() && self.devices.iter().all(of)
    }
    /// Returns warnings for the user.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        if !self.under.again.is_empty() {
            all.push(format!(
                "{} below also has a scheduler, which stays unchanged",
                self.under.again.join(", ")
            ));
        }
        all
    }
    /// Returns why no further runs are possible; `None` if they are possible.
    pub(super) fn gone(&self) -> Option<String> {
        if !self.path.exists() {
            return Some(format!("{}: the directory is gone", self.path.display()));
        }
        self.devices.iter().find_map(|then| {
            let name = &then.name;
            match self.tree.device(name) {
                None => Some(format!("{name}: the device is gone")),
                Some(now) if now.diskseq != then.diskseq => {
                    Some(format!("{name}: another device has taken this name"))
                }
                Some(now) if now.size_bytes.unwrap_or(0) == 0 => {
                    Some(format!("{name}: the device has lost its medium"))
                }
                Some(_) => None,
            }
        })
    }
}
