//! Finds the layers under a path, and at which layers a scheduler can act.
//!
//! A path leads to its mount. A mount leads to devices: btrfs to several devices, overlay to other
//! paths. A partition leads to its disk. Mapped devices and arrays lead to their members. A loop
//! device leads to the file system of its file. Bio-based layers create new requests and have no
//! scheduler.

use super::device::{Device, Scheduler};
use super::kind::Kind;
use super::mounts::{self, Mount, split};
use super::{Machine, read};
use seekwell_core::prose::{all_in_prose, in_prose};
use seekwell_core::suggest;
use serde::Serialize;
use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Maximum number of layers. A deeper stack is a loop.
const DEEPEST: u32 = 64;

/// Role of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A mount.
    FileSystem,
    /// A partition of the following device.
    Partition,
    /// A block device.
    Device,
}

/// How a layer affects the order of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "acts")]
pub enum Acts {
    /// The layer has no request queue and passes bios on.
    Passes,
    /// The layer has a queue without schedulers.
    Fixed,
    /// The layer has a queue whose scheduler can be changed.
    Chooses {
        /// The active scheduler.
        active: String,
    },
    /// The queue of the layer has a scheduler, but requests from the layer above bypass it.
    Bypassed,
    /// The layer was already reported further up.
    AsAbove,
    /// The layer is not visible from this machine or container.
    Unseen,
}

/// One layer under a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Number of layers above this layer.
    pub depth: u32,
    /// Kernel name of a device or partition, or type of a file system.
    pub name: String,
    /// Role of the layer.
    pub role: Role,
    /// How the layer affects the order of requests.
    #[serde(flatten)]
    pub acts: Acts,
    /// Description for users.
    pub says: String,
}

/// All layers under a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Under {
    /// The path as the user gave it.
    pub asked: String,
    /// The path with symbolic links resolved. For a device, the path of its node.
    pub path: PathBuf,
    /// Name of the device or partition, if the user named one.
    pub device: Option<String>,
    /// Type of the file system, if the user named a path.
    pub filesystem: Option<String>,
    /// Mount point of the file system.
    pub mount_point: Option<PathBuf>,
    /// Layers from top to bottom. Each member of a layer is followed by the layers below this
    /// member.
    pub steps: Vec<Step>,
    /// Devices whose scheduler gets the requests first.
    pub deciding: Vec<String>,
    /// Devices further down that schedule the requests a second time, for example the disk under
    /// the file of a loop device.
    pub again: Vec<String>,
    /// Summary in one or two sentences.
    pub verdict: String,
}

/// Reasons why the layers of a path cannot be found.
#[derive(Error, Debug, Clone, PartialEq, Eq)]
pub enum UnderError {
    /// The path does not exist.
    #[error("{asked}: no such device, file or directory{hint}")]
    Missing {
        /// The path as the user gave it.
        asked: String,
        /// A suggestion of what the user may have meant.
        hint: String,
    },
    /// The path exists, but it has no block requests.
    #[error("{asked}: {what}")]
    Unfit {
        /// The path as the user gave it.
        asked: String,
        /// The reason, and what the user can name instead.
        what: String,
    },
}

/// State of the search.
#[derive(Default)]
struct Walk {
    steps: Vec<Step>,
    seen: BTreeSet<String>,
    deciding: Vec<String>,
    again: Vec<String>,
    devices: bool,
    why_none: Option<String>,
}

/// Position of the search.
#[derive(Clone, Copy)]
struct At {
    depth: u32,
    /// Whether the search has already met a scheduler.
    decided: bool,
    /// Whether requests bypass the scheduler of the next device.
    bypassed: bool,
}

impl At {
    fn deeper(self) -> At {
        At {
            depth: self.depth + 1,
            ..self
        }
    }
}

const TOP: At = At {
    depth: 0,
    decided: false,
    bypassed: false,
};

impl Walk {
    fn step(&mut self, at: At, role: Role, name: &str, acts: Acts, says: String) {
        self.steps.push(Step {
            depth: at.depth,
            name: read::clean(name),
            role,
            acts,
            says,
        });
    }
}

impl Machine {
    /// Finds the layers of a device name (`sda2`), a device node, a file or a directory.
    pub fn under(&self, asked: &Path) -> Result<Under, UnderError> {
        let shown = read::clean(&asked.to_string_lossy());
        let mut under = Under {
            asked: shown.clone(),
            ..Under::default()
        };
        let mut walk = Walk::default();
        if let Some(name) = self.asked_device(asked, &shown)? {
            under.path = Path::new("/dev").join(name.replace('!', "/"));
            self.walk(&mut walk, &name, TOP);
            under.device = Some(name);
        } else {
            under.path = self
                .tree()
                .real(asked)
                .map_err(|e| self.missing(asked, &shown, &e))?;
            match self.mount_of(&under.path) {
                Some(mount) => {
                    under.filesystem = Some(mount.filesystem.clone());
                    under.mount_point = Some(mount.point.clone());
                    self.mount(&mut walk, mount, TOP, "");
                }
                None => walk.why_none = Some("the mount table does not contain it".to_owned()),
            }
        }
        under.verdict = self.verdict(&walk);
        (under.steps, under.deciding, under.again) = (walk.steps, walk.deciding, walk.again);
        Ok(under)
    }

    /// Returns the layers under a mount.
    pub(super) fn steps_of(&self, mount: &Mount) -> Vec<Step> {
        let mut walk = Walk::default();
        self.mount(&mut walk, mount, TOP, "");
        walk.steps
    }

    /// Returns the device that the user named, by its kernel name or its node.
    fn asked_device(&self, asked: &Path, shown: &str) -> Result<Option<String>, UnderError> {
        let bare = asked.to_str().filter(|t| !t.contains('/'));
        if let Some(name) = bare.filter(|n| self.named(n).is_some()) {
            return Ok(Some(name.to_owned()));
        }
        if !self.tree().is_live() {
            return Ok(asked.is_absolute().then(|| self.node(asked)).flatten());
        }
        let Ok(meta) = std::fs::metadata(asked) else {
            return Ok(None);
        };
        let unfit = |what: String| UnderError::Unfit {
            asked: shown.to_owned(),
            what,
        };
        let kind = meta.file_type();
        if kind.is_char_device() && asked.starts_with("/dev") {
            return Err(unfit(format!(
                "a character device; a scheduler works on block devices: {}",
                self.some_names()
            )));
        }
        if !kind.is_block_device() {
            return Ok(None);
        }
        let (major, minor) = (
            rustix::fs::major(meta.rdev()),
            rustix::fs::minor(meta.rdev()),
        );
        match self.numbered((major, minor)) {
            Some(name) => Ok(Some(name.to_owned())),
            None => Err(unfit(format!(
                "a block device ({major}:{minor}) that /sys/block does not have: nothing is \
                 attached, or it belongs to another machine"
            ))),
        }
    }

    fn some_names(&self) -> String {
        let used = self.devices.iter().filter(|d| !d.idle() && !d.hidden);
        let names: Vec<&str> = used.map(|d| &*d.name).take(12).collect();
        match names.is_empty() {
            true => "there is none here".to_owned(),
            false => format!("there are {}", names.join(", ")),
        }
    }

    fn missing(&self, asked: &Path, shown: &str, e: &std::io::Error) -> UnderError {
        if e.raw_os_error() != Some(libc::ENOENT) {
            return UnderError::Unfit {
                asked: shown.to_owned(),
                what: e.to_string(),
            };
        }
        let name = match asked.strip_prefix("/dev") {
            Ok(rest) => rest.to_string_lossy().into_owned(),
            Err(_) => shown.to_owned(),
        };
        let parts = self
            .devices
            .iter()
            .flat_map(|d| d.partitions.iter().map(|p| &*p.name));
        let names = self.devices.iter().map(|d| &*d.name).chain(parts);
        let hint = match name.contains('/') {
            // If a path does not exist, its nearest existing parent directory has the same layers.
            true => {
                let mut up = asked.ancestors().skip(1);
                let up = up.find(|a| !a.as_os_str().is_empty() && self.tree().real(a).is_ok());
                up.map(|a| format!("; {} is there", a.display()))
            }
            false => suggest::did_you_mean(&name, names, &[])
                .map(|q| format!(": {q}"))
                .or_else(|| Some(format!(": {}", self.some_names()))),
        };
        UnderError::Missing {
            asked: shown.to_owned(),
            hint: hint.unwrap_or_default(),
        }
    }

    /// Returns the mount of a path. On a live machine the kernel is asked.
    pub fn mount_of(&self, path: &Path) -> Option<&Mount> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
        if self.tree().is_live()
            && let Ok(x) = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)
            && x.stx_mask & StatxFlags::MNT_ID.bits() != 0
            && let Some(m) = self.mounts.iter().find(|m| m.id == x.stx_mnt_id)
        {
            return Some(m);
        }
        mounts::mount_of(&self.mounts, path)
    }

    /// Adds the layers of a mount. `why` describes which part of the mount is used, if only a part
    /// is used.
    fn mount(&self, walk: &mut Walk, mount: &Mount, at: At, why: &str) {
        let point = mount.point.display();
        if at.depth >= DEEPEST {
            return;
        }
        let mut says = format!("{why}mounted at {point}");
        let sources = self.sources(mount);
        if mount.filesystem == "overlay" {
            self.step_of_mount(walk, mount, at, says);
            return self.overlay(walk, mount, at);
        }
        if sources.is_empty() {
            let reason = no_device(mount);
            says += &format!(": {reason}");
            walk.why_none.get_or_insert(reason);
        } else if sources.len() > 1 {
            says += &format!(", over {} devices", sources.len());
        }
        self.step_of_mount(walk, mount, at, says);
        for name in sources {
            self.walk(walk, &name, at.deeper());
        }
    }

    fn step_of_mount(&self, walk: &mut Walk, mount: &Mount, at: At, says: String) {
        walk.step(
            at,
            Role::FileSystem,
            &mount.filesystem,
            Acts::Passes,
            read::clean(&says),
        );
    }

    /// Adds the layers of an overlay. Changed files are in the upper directory, all other files in
    /// the lower directories.
    fn overlay(&self, walk: &mut Walk, mount: &Mount, at: At) {
        let upper = mount.option("upperdir");
        let lower = mount.option("lowerdir").unwrap_or_default();
        // The option is `lowerdir=a:b::data`, or `lowerdir+=a` for each directory.
        let lowers = split(&lower, ':');
        let all = upper
            .into_iter()
            .map(|u| (u, "written files, "))
            .chain(lowers.into_iter().map(|l| (l, "files of the image, ")));
        let mut told = BTreeSet::new();
        for (dir, why) in all {
            let dir = dir.replace("\\:", ":").replace("\\,", ",");
            let real = self.tree().real(Path::new(&dir));
            let below = real.ok().and_then(|real| self.mount_of(&real));
            match below.filter(|m| m.id != mount.id) {
                Some(m) => {
                    if told.insert(m.id) {
                        self.mount(walk, m, at.deeper(), why);
                    }
                }
                None => {
                    let says = format!(
                        "{why}in {dir}, which cannot be seen from here: run the command on the \
                         host, outside the container"
                    );
                    walk.step(
                        at.deeper(),
                        Role::FileSystem,
                        "?",
                        Acts::Unseen,
                        read::clean(&says),
                    );
                }
            }
        }
    }

    /// Adds a device or partition by its name, and the layers below it.
    fn walk(&self, walk: &mut Walk, name: &str, at: At) {
        if at.depth >= DEEPEST {
            return;
        }
        let Some((device, part)) = self.named(name) else {
            let says = "/sys/block does not have it: it cannot be seen from here".to_owned();
            return walk.step(at, Role::Device, name, Acts::Unseen, says);
        };
        walk.devices = true;
        if part.is_some() {
            let says = format!("a part of {}: the whole disk has one queue", device.name);
            walk.step(at, Role::Partition, name, Acts::Passes, says);
            return self.walk(walk, &device.name, at.deeper());
        }
        if !walk.seen.insert(device.name.clone()) {
            let says = "as above".to_owned();
            return walk.step(at, Role::Device, name, Acts::AsAbove, says);
        }
        let acts = match &device.scheduler {
            Scheduler::Absent => Acts::Passes,
            Scheduler::Fixed { .. } if device.kind.stacked() => Acts::Passes,
            Scheduler::Fixed { .. } => Acts::Fixed,
            Scheduler::Choice { .. } if at.bypassed => Acts::Bypassed,
            Scheduler::Choice { active, .. } => Acts::Chooses {
                active: active.clone(),
            },
        };
        let chooses = matches!(acts, Acts::Chooses { .. });
        if chooses && at.decided {
            walk.again.push(device.name.clone());
        } else if chooses {
            walk.deciding.push(device.name.clone());
        }
        walk.step(at, Role::Device, name, acts, words(device, at.bypassed));
        let next = At {
            depth: at.depth + 1,
            decided: at.decided || chooses,
            // Request-based multipath passes complete requests to its paths.
            bypassed: chooses && device.kind == Kind::Multipath,
        };
        for below in &device.below {
            self.walk(walk, below, next);
        }
        if let Some(file) = &device.backing_file {
            self.backing(walk, file, next);
        }
    }

    /// Adds the layers of the file of a loop device.
    fn backing(&self, walk: &mut Walk, file: &str, at: At) {
        let file = file.strip_suffix(" (deleted)").unwrap_or(file);
        // A deleted file has no directory entry, but its directory may still exist.
        let path = Path::new(file);
        let dir = path.parent().unwrap_or(path);
        let real = self.tree().real(path).or_else(|_| self.tree().real(dir));
        match real.ok().and_then(|real| self.mount_of(&real)) {
            Some(m) => self.mount(walk, m, at, "the file's file system, "),
            None => {
                let says = format!("its file {file} cannot be seen from here");
                walk.step(at, Role::FileSystem, "?", Acts::Unseen, read::clean(&says));
            }
        }
    }

    fn verdict(&self, walk: &Walk) -> String {
        let with = |name: &String| {
            let active = self.device(name).and_then(|d| d.scheduler.active());
            format!(
                "{name} ({})",
                active.map_or("no scheduler".to_owned(), in_prose)
            )
        };
        let list = |names: &[String]| names.iter().map(with).collect::<Vec<_>>().join(", ");
        let mut text = match walk.deciding.as_slice() {
            [] if !walk.devices => format!(
                "No scheduler of this kernel acts here: {}.",
                walk.why_none
                    .as_deref()
                    .unwrap_or("there is no block device below")
            ),
            [] => "No scheduler can act here: these devices have none.".to_owned(),
            [one] => match self.device(one).and_then(|d| d.scheduler.active()) {
                Some("none") => format!(
                    "A scheduler can act on {one}; `none` is active: requests go to the device in \
                     order of arrival."
                ),
                active => format!("{one} schedules, with {}.", active.unwrap_or("none")),
            },
            many => {
                let active = |n: &String| self.device(n).and_then(|d| d.scheduler.active());
                let same = many.windows(2).all(|w| active(&w[0]) == active(&w[1]));
                format!(
                    "{} devices schedule, {}: {}.",
                    many.len(),
                    if same { "all alike" } else { "not alike" },
                    list(many)
                )
            }
        };
        if !walk.again.is_empty() {
            text += &format!(
                " Devices below schedule the same requests again: {}.",
                list(&walk.again)
            );
        }
        text
    }
}

/// Describes a device and its effect on requests.
fn words(d: &Device, bypassed: bool) -> String {
    let mut text = d.description();
    if let Some(label) = d.label.as_ref().filter(|_| d.kind != Kind::Md) {
        text += &format!(" {label}");
    }
    if let Some(model) = &d.model {
        text += &format!(" {model}");
    }
    if let Some(file) = &d.backing_file {
        let how = match d.direct_io {
            Some(true) => "without the page cache",
            _ => "through the page cache",
        };
        text += &format!(" over the file {}, {how}", read::clean(file));
    }
    if d.below.len() > 1 {
        text += &format!(" of {} members", d.below.len());
    }
    match &d.scheduler {
        Scheduler::Choice { active, .. } if bypassed => {
            text += &format!(
                ": scheduler {}, but the device above sends complete requests, which bypass it",
                in_prose(active)
            );
        }
        Scheduler::Choice { active, offered } => {
            let others: Vec<&str> = offered
                .iter()
                .filter(|o| *o != active)
                .map(|o| &**o)
                .collect();
            text += &format!(": scheduler {}", in_prose(active));
            match others.is_empty() {
                true => text += ", no other available",
                false => text += &format!(", also available: {}", all_in_prose(&others).join(", ")),
            }
        }
        Scheduler::Fixed { word } if d.kind.stacked() => {
            text += &format!(
                ": no scheduler can be set (sysfs shows only `{word}`), the devices below decide"
            );
        }
        Scheduler::Fixed { word } => {
            text += &format!(": no scheduler can be set (sysfs shows only `{word}`)")
        }
        Scheduler::Absent if d.below.is_empty() => text += ": no scheduler can be set",
        Scheduler::Absent => text += ": no scheduler of its own, the devices below decide",
    }
    text
}

/// Returns why a mount has no block device, and where its requests are scheduled.
fn no_device(mount: &Mount) -> String {
    let fs = mount.filesystem.as_str();
    let text = match fs {
        "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" => {
            "its files are in memory (swapped pages go through the swap device)"
        }
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "afs" | "lustre" | "9p" | "virtiofs" => {
            "its files are on another machine or the host, whose kernel schedules"
        }
        "zfs" => {
            "ZFS orders requests itself and opens the disks of its pool, which `zpool list -v` names: \
             name one of those"
        }
        "proc" | "sysfs" | "cgroup" | "cgroup2" | "debugfs" | "tracefs" | "devpts" | "mqueue"
        | "securityfs" | "bpf" | "efivarfs" | "configfs" | "pstore" | "fusectl" | "autofs" => {
            "the kernel generates these files without reading a disk"
        }
        _ if fs.starts_with("fuse") => {
            "a program serves these files: name the path or device that it reads"
        }
        _ if mount.source.starts_with('/') => {
            return format!(
                "its source is {}, which is not visible from here",
                read::clean(&mount.source)
            );
        }
        _ => "it names no block device of this machine",
    };
    text.to_owned()
}
