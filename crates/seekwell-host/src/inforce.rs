//! Finds the I/O schedulers for the files of a directory, by reading only. The result contains the
//! layers of [`crate::block`] that are block devices. It is used in the record of a run and in a
//! line of text.

use crate::block::{Acts, Machine, Role, Tree};
use std::fmt;
use std::path::Path;

/// A block device under a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Kernel name, for example `sda`, `dm-0` or `loop3`.
    pub name: String,
    /// The active scheduler. `None` if the queue has no scheduler file, as for bio-based layers.
    pub scheduler: Option<String>,
    /// Whether the kernel treats the device as a rotational disk.
    pub rotational: bool,
}

/// The layers that the requests of a directory pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    /// Type of the file system.
    pub filesystem: String,
    /// Block devices from top to bottom. The list is empty for file systems without a block device.
    pub layers: Vec<Layer>,
}

impl InForce {
    /// Returns the lowest layer, which is next to the disk. Its scheduler determines the order of
    /// requests.
    pub fn lowest(&self) -> Option<&Layer> {
        self.layers.last()
    }
}

impl fmt::Display for InForce {
    /// Writes the layers, for example `ext4 on loop3 [none] over vda [mq-deadline]` or `raw device
    /// loop3 [none]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.filesystem)?;
        if self.layers.is_empty() {
            return f.write_str(", which has no block device of its own");
        }
        for (i, l) in self.layers.iter().enumerate() {
            let word = match i {
                0 if self.filesystem == RAW => "",
                0 => " on",
                _ => " over",
            };
            let sched = l.scheduler.as_deref().unwrap_or("no scheduler");
            write!(f, "{word} {} [{sched}]", l.name)?;
        }
        Ok(())
    }
}

/// Used instead of the type of the file system if the user named a device.
const RAW: &str = "raw device";

/// Finds the layers of a directory, a file or a block device. It changes nothing. Values that
/// cannot be read are left out.
pub fn in_force(dir: &Path) -> InForce {
    find_in_force(&Machine::read(&Tree::default()), dir)
}

/// Finds the layers as [`in_force`] does, in a machine that has been read already.
pub fn find_in_force(machine: &Machine, dir: &Path) -> InForce {
    // Without a slash, a directory with the name of a device would be mistaken for the device.
    let dir = match dir.is_absolute() {
        true => dir.to_owned(),
        false => Path::new(".").join(dir),
    };
    let Ok(under) = machine.under(&dir) else {
        return InForce {
            filesystem: "unknown file system".to_owned(),
            layers: Vec::new(),
        };
    };
    let devices = under.steps.iter().filter(|s| s.role == Role::Device);
    let devices = devices.filter(|s| !matches!(s.acts, Acts::AsAbove | Acts::Unseen));
    let layer = |name: &str| {
        let device = machine.device(name)?;
        Some(Layer {
            name: name.to_owned(),
            scheduler: device.scheduler.active().map(str::to_owned),
            rotational: device.rotational.unwrap_or_default(),
        })
    };
    InForce {
        filesystem: match (under.filesystem, under.device) {
            (Some(fs), _) => fs,
            (None, Some(_)) => RAW.to_owned(),
            (None, None) => "unknown file system".to_owned(),
        },
        layers: devices.filter_map(|s| layer(&s.name)).collect(),
    }
}

/// Returns the type and the options of the file system of a path.
pub fn mounted(path: &Path) -> Option<(String, String)> {
    let machine = Machine::read(&Tree::default());
    let m = machine.mount_of(&std::fs::canonicalize(path).ok()?)?;
    Some((m.filesystem.clone(), m.options.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::made_up::MadeUp;

    #[test]
    fn schedulers_below_partitions_arrays_loops_and_tmpfs_are_found() {
        let t = MadeUp::new("inforce");
        for (disk, sched, rot) in [
            ("sda", "noop deadline [cfq]", "1"),
            ("sdb", "[none] mq-deadline", "0"),
            ("sdc", "none [kyber]", "0"),
            ("loop1", "none [bfq]", "0"),
        ] {
            t.disk(disk, "", sched).queue(disk, "rotational", rot);
        }
        t.part("sda", "sda2", "8:2");
        t.bio("dm-0", "253:0", &["sdb", "sdc"]);
        t.put("sys/block/loop1/dev", "7:1\n");
        t.put("sys/block/loop1/loop/backing_file", "/data/disk.img\n");
        t.put("data/disk.img", "");
        for d in ["srv", "img/deep er", "tmp"] {
            t.dir(d);
        }
        t.put(
            "proc/self/mountinfo",
            "1 1 0:9 / / rw - overlay overlay rw\n\
             2 1 8:2 / /data rw,relatime shared:1 - ext4 /dev/sda2 rw\n\
             3 1 253:0 / /srv rw - xfs /dev/mapper/x rw\n\
             4 1 7:1 / /img/deep\\040er rw - ext3 /dev/loop1 rw\n\
             5 1 0:30 / /tmp rw - tmpfs tmpfs rw\n",
        );
        let machine = t.machine();
        let show = |d: &str| find_in_force(&machine, Path::new(d)).to_string();
        assert_eq!(show("/data"), "ext4 on sda [cfq]");
        assert_eq!(
            show("/srv"),
            "xfs on dm-0 [no scheduler] over sdb [none] over sdc [kyber]"
        );
        assert_eq!(show("/img/deep er"), "ext3 on loop1 [bfq] over sda [cfq]");
        assert_eq!(show("/tmp"), "tmpfs, which has no block device of its own");
        let data = find_in_force(&machine, Path::new("/data"));
        assert!(data.lowest().is_some_and(|l| l.rotational));
    }

    #[test]
    fn root_file_system_of_this_machine_is_described() {
        assert!(!in_force(Path::new("/")).filesystem.is_empty());
        assert!(mounted(Path::new("/")).is_some());
    }
}
