//! A loop device that the run created for a file, with the queue settings of a disk.
//!
//! The device accepts as many requests at a time as its driver has tags. With the scheduler `none`,
//! writing `nr_requests` changes the number of tags. When another scheduler is set, the number of
//! tags stays the same. This allows a device of depth 31 whose other requests wait in the kernel's
//! scheduler.
//!
//! The number of tags stays the same when the file is detached, so it must be restored. After a
//! return to `none`, `nr_requests` reads 128 although the number of tags is still small, and
//! writing 128 has no effect. Therefore another number is written first, and then 128.

use super::{WatchError, call, get, put};
use std::path::{Path, PathBuf};

/// Default number of tags of a loop device.
const TAGS: u32 = 128;

/// The requested settings of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Name of the scheduler in the kernel. `None` keeps the current scheduler.
    pub scheduler: Option<String>,
    /// Queue depth, 4..=128. `None` keeps the current depth.
    pub depth: Option<u32>,
    /// Whether the device reports a rotational medium.
    pub rotational: bool,
    /// Read-ahead, KiB.
    pub read_ahead_kb: u32,
    /// Latency target of writeback throttling, us. With 0 it is off.
    pub wbt_lat_usec: u32,
}

impl Default for Queue {
    /// Returns settings with the read-ahead of a disk and no writeback throttling. All other
    /// settings are kept.
    fn default() -> Self {
        Queue {
            scheduler: None,
            depth: None,
            rotational: true,
            read_ahead_kb: 128,
            wbt_lat_usec: 0,
        }
    }
}

/// Unmounts the file systems on loop devices of a file, and then detaches these devices. A server
/// calls it when its client has ended.
pub fn abandon(file: &Path) {
    let Ok(entries) = std::fs::read_dir("/sys/block") else {
        return;
    };
    for e in entries.filter_map(Result::ok) {
        let backing = get(&e.path().join("loop/backing_file"));
        if backing.is_ok_and(|b| Path::new(&b) == file) {
            let name = e.file_name().to_string_lossy().into_owned();
            let path = PathBuf::from("/dev").join(&name);
            let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
            for line in mounts.lines() {
                if line.split(' ').next() == path.to_str() {
                    let _ = call("umount", &["--lazy", &path.display().to_string()], "");
                }
            }
            // The client may have changed the depth, so the depth is restored.
            drop(LoopDevice {
                path,
                name,
                dev: 0,
                tags_changed: true,
            });
        }
    }
}

/// An attached loop device. Dropping it detaches the device.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    name: String,
    dev: u32,
    tags_changed: bool,
}

impl LoopDevice {
    /// Attaches a free loop device with direct I/O to a file.
    pub fn attach(file: &Path) -> Result<Self, WatchError> {
        let file = file.display().to_string();
        let args = ["--find", "--show", "--direct-io=on", &file];
        let out = call(
            "losetup",
            &args,
            "root and the package util-linux are needed",
        )?;
        let path = PathBuf::from(out.trim());
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let mut device = LoopDevice {
            path,
            name,
            dev: 0,
            tags_changed: false,
        };
        let numbers = get(&device.sys("dev"))?;
        let pair = numbers.split_once(':');
        let pair = pair.and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?)));
        if let Some((major, minor)) = pair {
            device.dev = seekwell_trace::device_number(major, minor);
        }
        Ok(device)
    }

    fn sys(&self, rest: &str) -> PathBuf {
        Path::new("/sys/block").join(&self.name).join(rest)
    }
    /// Returns the path of the device node.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Returns the device number `major << 20 | minor`, as in traces.
    pub fn number(&self) -> u32 {
        self.dev
    }
    /// Reads a file of the queue.
    pub fn queue(&self, name: &str) -> Result<String, WatchError> {
        get(&self.sys("queue").join(name))
    }
    /// Returns the active scheduler.
    pub fn scheduler(&self) -> Result<String, WatchError> {
        let text = self.queue("scheduler")?;
        let open = text.find('[').map_or(0, |i| i + 1);
        let end = text.find(']').unwrap_or(text.len());
        Ok(text[open..end].to_owned())
    }

    fn set(&self, name: &str, value: &str) -> Result<(), WatchError> {
        put(&self.sys("queue").join(name), value)
    }
    fn set_checked(&self, name: &str, value: &str) -> Result<(), WatchError> {
        self.set(name, value)?;
        let reads = match name {
            "scheduler" => self.scheduler()?,
            _ => self.queue(name)?,
        };
        if reads != value {
            return Err(WatchError::Setting {
                path: self.sys("queue").join(name),
                wrote: value.to_owned(),
                reads,
            });
        }
        Ok(())
    }

    /// Applies the settings to the queue.
    pub fn settle(&mut self, queue: &Queue) -> Result<(), WatchError> {
        let scheduler = match &queue.scheduler {
            Some(s) => s.clone(),
            None => self.scheduler()?,
        };
        if let Some(depth) = queue.depth {
            self.set_checked("scheduler", "none")?;
            self.tags_changed = true;
            self.set_checked("nr_requests", &depth.clamp(4, TAGS).to_string())?;
        }
        let offered = self.queue("scheduler")?.replace(['[', ']'], "");
        if !offered.split(' ').any(|s| s == scheduler) {
            return Err(WatchError::Scheduler {
                device: self.name.clone(),
                name: scheduler,
                offered: offered.replace(' ', ", "),
            });
        }
        if self.scheduler()? != scheduler {
            self.set_checked("scheduler", &scheduler)?;
        }
        self.set_checked("rotational", if queue.rotational { "1" } else { "0" })?;
        self.set_checked("read_ahead_kb", &queue.read_ahead_kb.to_string())?;
        // The file is missing in a kernel without throttling, and it cannot be written under bfq.
        let _ = self.set("wbt_lat_usec", &queue.wbt_lat_usec.to_string());
        Ok(())
    }

    fn release(&mut self) {
        if self.tags_changed {
            self.tags_changed = false;
            let back = self
                .set("scheduler", "none")
                .and_then(|()| self.set("nr_requests", &(TAGS - 1).to_string()))
                .and_then(|()| self.set("nr_requests", &TAGS.to_string()));
            if let Err(e) = back {
                eprintln!("{}: its depth could not be restored: {e}", self.name);
            }
        }
        // The option -D must not be used, because it detaches all loop devices.
        let path = self.path.display().to_string();
        let _ = call("losetup", &["--detach", &path], "");
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        self.release();
    }
}
