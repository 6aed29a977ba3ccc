//! Which I/O scheduler a directory's files go through, found by reading only.
//!
//! From the directory to its mount, to the block device, through partitions, device mapper and md
//! members, and through loop devices to the file system that holds their file. Every layer with a
//! queue of its own is named, from the top down. Network and memory file systems have none.

use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// One block device on the way down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Kernel name: `sda`, `dm-0`, `loop3`.
    pub name: String,
    /// The scheduler chosen there; `None` where the queue has no such file (bio-based layers).
    pub scheduler: Option<String>,
    /// Does the kernel take it for a disk that spins?
    pub rotational: bool,
}

/// What a directory's requests go through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    /// File-system type of the mount.
    pub filesystem: String,
    /// Block devices, top first; empty for file systems without one.
    pub layers: Vec<Layer>,
}

impl InForce {
    /// The schedulers that decide: of the lowest layers, which talk to a disk.
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

/// Where to look; tests look at a tree of their own.
#[derive(Clone, Debug)]
pub struct Roots {
    /// `/sys`.
    pub sys: PathBuf,
    /// `/proc/self/mountinfo`.
    pub mountinfo: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots {
            sys: PathBuf::from("/sys"),
            mountinfo: PathBuf::from("/proc/self/mountinfo"),
        }
    }
}

/// In place of a file system, where a device was named itself.
const RAW: &str = "raw device";

/// Layers below layers, at most: a loop over a file on a loop ends somewhere.
const DEEPEST: usize = 16;

/// Looks it up for a directory, a file or a block device; changes nothing. What cannot be read is
/// left out.
pub fn in_force(dir: &Path) -> InForce {
    Roots::default().in_force(dir)
}

impl Roots {
    /// As [`in_force`], looking elsewhere.
    pub fn in_force(&self, dir: &Path) -> InForce {
        let mut found = InForce::default();
        match fs::metadata(dir) {
            Ok(m) if m.file_type().is_block_device() => {
                RAW.clone_into(&mut found.filesystem);
                let (major, minor) = numbers(m.rdev());
                let node = self.sys.join(format!("dev/block/{major}:{minor}"));
                if let Ok(node) = fs::canonicalize(node) {
                    self.device(&node, &mut found, 0);
                }
            }
            _ => self.below(dir, &mut found, 0),
        }
        if found.filesystem.is_empty() {
            found.filesystem = "unknown file system".to_owned();
        }
        found
    }

    fn below(&self, path: &Path, found: &mut InForce, depth: usize) {
        let Ok(path) = fs::canonicalize(path) else {
            return;
        };
        let mount = self.mount_of(&path);
        if let Some(m) = &mount
            && found.filesystem.is_empty()
        {
            found.filesystem.clone_from(&m.filesystem);
        }
        let numbers = mount.into_iter().flat_map(|m| {
            // File systems over several devices (btrfs) show a number of their own; the source
            // names one of the devices.
            let source = fs::metadata(&m.source).ok().map(|s| numbers(s.rdev()));
            [Some(m.device), source]
        });
        for (major, minor) in numbers.flatten() {
            let node = self.sys.join(format!("dev/block/{major}:{minor}"));
            if let Ok(node) = fs::canonicalize(node) {
                return self.device(&node, found, depth);
            }
        }
    }

    fn device(&self, node: &Path, found: &mut InForce, depth: usize) {
        if depth >= DEEPEST {
            return;
        }
        if node.join("partition").exists() {
            if let Some(disk) = node.parent() {
                self.device(disk, found, depth + 1);
            }
            return;
        }
        let name = node.file_name().map(|n| n.to_string_lossy().into_owned());
        let layer = Layer {
            name: name.unwrap_or_default(),
            scheduler: fs::read_to_string(node.join("queue/scheduler"))
                .ok()
                .and_then(|t| chosen(&t)),
            rotational: fs::read_to_string(node.join("queue/rotational"))
                .is_ok_and(|t| t.trim() == "1"),
        };
        if found.layers.contains(&layer) {
            return;
        }
        found.layers.push(layer);
        if let Ok(file) = fs::read_to_string(node.join("loop/backing_file")) {
            self.below(Path::new(file.trim_end()), found, depth + 1);
        }
        let mut members: Vec<PathBuf> = match fs::read_dir(node.join("slaves")) {
            Ok(dir) => dir.filter_map(|e| Some(e.ok()?.path())).collect(),
            Err(_) => return,
        };
        members.sort();
        for m in members {
            if let Ok(m) = fs::canonicalize(m) {
                self.device(&m, found, depth + 1);
            }
        }
    }

    /// Type and options of the file system that a path lies on.
    pub fn mounted(&self, path: &Path) -> Option<(String, String)> {
        let m = self.mount_of(&fs::canonicalize(path).ok()?)?;
        Some((m.filesystem, m.options))
    }

    /// The mount a path lies on: the longest mount point it starts with; of two on one point, the
    /// later one, which hides the earlier.
    fn mount_of(&self, path: &Path) -> Option<Mount> {
        let text = fs::read_to_string(&self.mountinfo).ok()?;
        let mounts = text.lines().filter_map(Mount::parse);
        mounts
            .filter(|m| path.starts_with(&m.point))
            .max_by_key(|m| m.point.as_os_str().len())
    }
}

struct Mount {
    device: (u64, u64),
    point: PathBuf,
    filesystem: String,
    source: PathBuf,
    /// Of the mount, then of the file system.
    options: String,
}

impl Mount {
    /// A line of proc_pid_mountinfo(5): `36 35 98:0 /root /point options [tags] - type source ..`.
    fn parse(line: &str) -> Option<Mount> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(2);
        let (major, minor) = left.next()?.split_once(':')?;
        let point = unescape(left.nth(1)?);
        let own = left.next()?;
        let mut right = right.split(' ');
        Some(Mount {
            device: (major.parse().ok()?, minor.parse().ok()?),
            point: PathBuf::from(point),
            filesystem: right.next()?.to_owned(),
            source: PathBuf::from(unescape(right.next()?)),
            options: match right.next() {
                Some(more) => format!("{own},{more}"),
                None => own.to_owned(),
            },
        })
    }
}

/// Blanks and backslashes stand as `\040` and the like.
fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&b, tail)) = rest.split_first() {
        let code = match (b, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'))
            }
            _ => None,
        };
        out.push(code.unwrap_or(b));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The name in brackets of `none [mq-deadline] kyber`; a file with one bare word is that word.
fn chosen(text: &str) -> Option<String> {
    let words = || text.split_whitespace();
    words()
        .find_map(|w| w.strip_prefix('[')?.strip_suffix(']'))
        .or_else(|| words().next())
        .map(str::to_owned)
}

fn numbers(dev: u64) -> (u64, u64) {
    (
        u64::from(rustix::fs::major(dev)),
        u64::from(rustix::fs::minor(dev)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A made-up machine: /data is ext4 on the second partition of sda; /srv is on dm-0 over
    /// both sdb and sdc; /img is on loop1, whose file lies on /data.
    fn tree(name: &str) -> (crate::place::Scratch, Roots) {
        let t = crate::place::Scratch::new(&std::env::temp_dir(), name).expect("a directory");
        let at = |p: &str| t.path().join(p);
        let put = |p: &str, text: &str| {
            let p = at(p);
            fs::create_dir_all(p.parent().expect("not the root")).expect("made");
            fs::write(p, text).expect("written");
        };
        let link = |to: &str, from: &str| {
            fs::create_dir_all(at(from).parent().expect("not the root")).expect("made");
            symlink(at(to), at(from)).expect("linked");
        };
        for (disk, sched, rot) in [
            ("sda", "noop deadline [cfq]", "1"),
            ("sdb", "[none] mq-deadline", "0"),
            ("sdc", "none [kyber]", "0"),
            ("loop1", "none [bfq]", "0"),
        ] {
            put(&format!("sys/devices/{disk}/queue/scheduler"), sched);
            put(&format!("sys/devices/{disk}/queue/rotational"), rot);
        }
        put("sys/devices/sda/sda2/partition", "2\n");
        link("sys/devices/sda/sda2", "sys/dev/block/8:2");
        put("sys/devices/dm-0/queue/rotational", "0");
        link("sys/devices/sdb", "sys/devices/dm-0/slaves/sdb");
        link("sys/devices/sdc", "sys/devices/dm-0/slaves/sdc");
        link("sys/devices/dm-0", "sys/dev/block/253:0");
        let data = at("data").display().to_string();
        put(
            "sys/devices/loop1/loop/backing_file",
            &format!("{data}/disk.img\n"),
        );
        link("sys/devices/loop1", "sys/dev/block/7:1");
        put("data/disk.img", "");
        for d in ["srv", "img/deep er", "tmp"] {
            fs::create_dir_all(at(d)).expect("made");
        }
        let r = t.path().display().to_string();
        let info = format!(
            "1 0 0:9 / / rw - overlay overlay rw\n\
             2 1 8:2 / {r}/data rw,relatime shared:1 - ext4 /dev/sda2 rw\n\
             3 1 253:0 / {r}/srv rw - xfs /dev/mapper/x rw\n\
             4 1 7:1 / {r}/img/deep\\040er rw - ext3 /dev/loop1 rw\n\
             5 1 0:30 / {r}/tmp rw - tmpfs tmpfs rw\n"
        );
        put("mountinfo", &info);
        let roots = Roots {
            sys: at("sys"),
            mountinfo: at("mountinfo"),
        };
        (t, roots)
    }

    #[test]
    fn partitions_members_loops_and_memory_are_followed() {
        let (t, roots) = tree("inforce");
        let show = |d: &str| roots.in_force(&t.path().join(d)).to_string();
        assert_eq!(show("data"), "ext4 on sda [cfq]");
        assert_eq!(
            show("srv"),
            "xfs on dm-0 [no scheduler] over sdb [none] over sdc [kyber]"
        );
        assert_eq!(show("img/deep er"), "ext3 on loop1 [bfq] over sda [cfq]");
        assert_eq!(show("tmp"), "tmpfs, which has no block device of its own");
        let data = roots.in_force(&t.path().join("data"));
        assert!(data.lowest().is_some_and(|l| l.rotational));
    }

    #[test]
    fn escapes_and_brackets_are_read() {
        assert_eq!(unescape("a\\040b\\134c\\9"), "a b\\c\\9");
        assert_eq!(chosen("none [kyber] bfq\n").as_deref(), Some("kyber"));
        assert_eq!(chosen("none\n").as_deref(), Some("none"));
        assert_eq!(chosen("\n"), None);
    }

    #[test]
    fn this_machine_answers_something_for_its_root() {
        assert!(!in_force(Path::new("/")).filesystem.is_empty());
    }
}
