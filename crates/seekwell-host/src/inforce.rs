//! The I/O schedulers that a directory's files go through, found by reading only. They are the
//! layers of [`crate::block`] that are devices, for a record and a line of text.

use crate::block::{Acts, Machine, Role, Tree};
use std::fmt;
use std::path::Path;

/// A block device between a directory and its disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Kernel name: `sda`, `dm-0`, `loop3`.
    pub name: String,
    /// The selected scheduler; `None` if the queue has no such file (bio-based layers).
    pub scheduler: Option<String>,
    /// Whether the kernel treats it as a rotational disk.
    pub rotational: bool,
}

/// The layers that a directory's requests go through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    /// File-system type of the mount.
    pub filesystem: String,
    /// Block devices, top first; empty for file systems without one.
    pub layers: Vec<Layer>,
}

impl InForce {
    /// The lowest layer, next to the disk; its scheduler decides.
    pub fn lowest(&self) -> Option<&Layer> {
        self.layers.last()
    }
}

impl fmt::Display for InForce {
    /// `ext4 on loop3 [none] over vda [mq-deadline]`, `raw device loop3 [none]`.
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

/// Stands for the file system if a device itself was named.
const RAW: &str = "raw device";

/// Looks up the layers of a directory, a file or a block device; changes nothing. Leaves out what
/// cannot be read.
pub fn in_force(dir: &Path) -> InForce {
    of(&Machine::read(&Tree::default()), dir)
}

/// The same for a machine already read.
pub fn of(machine: &Machine, dir: &Path) -> InForce {
    // Without a slash, a directory named like a device would be taken for the device.
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

/// Type and options of the file system of a path.
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
    fn partitions_members_loops_and_memory_are_followed() {
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
        let show = |d: &str| of(&machine, Path::new(d)).to_string();
        assert_eq!(show("/data"), "ext4 on sda [cfq]");
        assert_eq!(
            show("/srv"),
            "xfs on dm-0 [no scheduler] over sdb [none] over sdc [kyber]"
        );
        assert_eq!(show("/img/deep er"), "ext3 on loop1 [bfq] over sda [cfq]");
        assert_eq!(show("/tmp"), "tmpfs, which has no block device of its own");
        let data = of(&machine, Path::new("/data"));
        assert!(data.lowest().is_some_and(|l| l.rotational));
    }

    #[test]
    fn this_machine_answers_something_for_its_root() {
        assert!(!in_force(Path::new("/")).filesystem.is_empty());
        assert!(mounted(Path::new("/")).is_some());
    }
}
