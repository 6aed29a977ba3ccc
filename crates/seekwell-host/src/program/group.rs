//! A control group (cgroup) that sets a weight or limits for the I/O of a program.
//!
//! Version 1 is used if `blkio` is mounted. In version 1 a single thread can join a group.
//! Otherwise version 2 with `io` is used. In version 2 only whole processes can join. This works
//! for programs, but not for scripts, because their tasks are threads of this process.
//!
//! Weights have an effect with bfq. In version 2 they also have an effect with io.cost, if io.cost
//! is configured. The block layer applies limits with every scheduler.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const ROOT: &str = "/sys/fs/cgroup";
/// Name of the file to which the number of a thread is written.
const TASKS: &str = "tasks";
/// Name of the file to which the number of a process is written.
const PROCS: &str = "cgroup.procs";

/// Names of the limits, and the files of version 1. In version 2 all limits are in `io.max`.
pub const LIMITS: &[(&str, &str)] = &[
    ("rbps", "blkio.throttle.read_bps_device"),
    ("wbps", "blkio.throttle.write_bps_device"),
    ("riops", "blkio.throttle.read_iops_device"),
    ("wiops", "blkio.throttle.write_iops_device"),
];

/// The settings of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Weight, from 1 to 1000.
    pub weight: Option<u32>,
    /// Limits by the names in [`LIMITS`], in bytes or requests per second.
    pub limits: Vec<(&'static str, u64)>,
}

impl Share {
    /// Returns whether no setting is requested.
    pub fn is_empty(&self) -> bool {
        self.weight.is_none() && self.limits.is_empty()
    }
}

/// A control group. Dropping it removes the group. Its tasks must have ended before.
#[derive(Debug)]
pub struct Group {
    dir: PathBuf,
    /// Name of the file to which a thread or process is written.
    entry: &'static str,
    /// The file in which the controller was enabled for child groups. It is disabled again at the
    /// end.
    enabled: Option<PathBuf>,
}

/// Returns the version 2 directory that has the controller `io`.
fn unified(root: &Path) -> Option<PathBuf> {
    let all = [root.to_owned(), root.join("unified")];
    all.into_iter().find(|d| {
        let text = fs::read_to_string(d.join("cgroup.controllers")).unwrap_or_default();
        text.split_whitespace().any(|c| c == "io")
    })
}

impl Group {
    /// Creates a group. Limits apply to the devices with these numbers.
    ///
    /// # Errors
    /// There is no such controller, no permission to use it, or no scheduler that applies the
    /// weight.
    pub fn make(share: &Share, devices: &[(u32, u32)]) -> Result<Group, String> {
        Group::below(Path::new(ROOT), share, devices)
    }

    fn below(root: &Path, share: &Share, devices: &[(u32, u32)]) -> Result<Group, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (old, new) = (root.join("blkio"), unified(root));
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{}-{n}", crate::left::PREFIX, std::process::id());
        let failed =
            |dir: &Path, e: std::io::Error| format!("control group {}: {e}", dir.display());
        let mut group = match new {
            _ if old.join(TASKS).exists() => Group {
                dir: old.join(&name),
                entry: TASKS,
                enabled: None,
            },
            Some(new) => Group {
                dir: new.join(&name),
                entry: PROCS,
                enabled: None,
            },
            None => {
                return Err(format!(
                    "needs control groups with blkio (version 1) or io (version 2) at {}",
                    root.display()
                ));
            }
        };
        if group.entry == PROCS {
            group.enable().map_err(|e| failed(&group.dir, e))?;
        }
        fs::create_dir(&group.dir).map_err(|e| failed(&group.dir, e))?;
        match group.entry {
            TASKS => group.fill_old(share, devices)?,
            _ => group.fill_new(share, devices)?,
        }
        Ok(group)
    }

    /// Enables the controller for the children of the parent group.
    fn enable(&mut self) -> std::io::Result<()> {
        let Some(parent) = self.dir.parent() else {
            return Ok(());
        };
        let file = parent.join("cgroup.subtree_control");
        let on = fs::read_to_string(&file)?;
        if !on.split_whitespace().any(|c| c == "io") {
            fs::write(&file, "+io")?;
            self.enabled = Some(file);
        }
        Ok(())
    }

    fn put(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.dir.join(file);
        fs::write(&path, text).map_err(|e| format!("{}: {text}: {e}", path.display()))
    }

    fn fill_old(&self, share: &Share, devices: &[(u32, u32)]) -> Result<(), String> {
        if let Some(weight) = share.weight {
            self.put("blkio.bfq.weight", &weight.to_string())?;
        }
        for (name, most) in &share.limits {
            let file = LIMITS.iter().find(|l| l.0 == *name).map_or("", |l| l.1);
            for (major, minor) in devices {
                self.put(file, &format!("{major}:{minor} {most}"))?;
            }
        }
        Ok(())
    }

    fn fill_new(&self, share: &Share, devices: &[(u32, u32)]) -> Result<(), String> {
        if let Some(weight) = share.weight {
            let has = |file: &str| self.dir.join(file).exists();
            let (bfq, cost) = (has("io.bfq.weight"), has("io.weight"));
            if bfq {
                self.put("io.bfq.weight", &weight.to_string())?;
            }
            if cost {
                // The default weight is 100 in both files.
                self.put("io.weight", &format!("default {weight}"))?;
            }
            if !bfq && !cost {
                return Err("weight: this kernel has neither bfq's nor io.cost's".to_owned());
            }
        }
        let all: Vec<String> = share
            .limits
            .iter()
            .map(|l| format!("{}={}", l.0, l.1))
            .collect();
        if !all.is_empty() {
            for (major, minor) in devices {
                self.put("io.max", &format!("{major}:{minor} {}", all.join(" ")))?;
            }
        }
        Ok(())
    }

    /// Returns the file that a thread's number (version 1) or a process's number (version 2,
    /// `cgroup.procs`) is written to.
    pub fn file(&self) -> PathBuf {
        self.dir.join(self.entry)
    }
    /// Returns whether the group accepts only whole processes.
    pub fn whole_processes(&self) -> bool {
        self.entry == PROCS
    }
}

/// Returns whether the file accepts only whole processes.
pub(super) fn takes_processes(file: &Path) -> bool {
    file.ends_with(PROCS)
}

impl Drop for Group {
    fn drop(&mut self) {
        // Killed processes stay in the group for a short time.
        for _ in 0..100 {
            match fs::remove_dir(&self.dir) {
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                _ => break,
            }
        }
        if let Some(file) = &self.enabled {
            // The kernel rejects the write if another group uses the controller. Then the
            // controller must stay enabled.
            let _ = fs::write(file, "-io");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Scratch;

    fn share() -> Share {
        Share {
            weight: Some(500),
            limits: vec![("riops", 100), ("wbps", 1 << 20)],
        }
    }

    /// The test uses a normal directory instead of the kernel's cgroup directory. The kernel
    /// creates no files in it. So the file of the weight is missing, and the files of the limits
    /// keep the written text.
    #[test]
    fn cgroup_v2_controller_is_enabled_used_and_disabled() {
        let t = Scratch::new(&std::env::temp_dir(), "cgroup").expect("made");
        let root = t.path().join("fs");
        fs::create_dir(&root).expect("made");
        let e = Group::below(&root, &share(), &[]).expect_err("nothing there");
        assert!(e.contains("needs control groups"), "{e}");
        fs::write(root.join("cgroup.controllers"), "cpuset cpu io memory\n").expect("written");
        let control = root.join("cgroup.subtree_control");
        fs::write(&control, "cpu memory\n").expect("written");
        let e = Group::below(&root, &share(), &[(8, 0)]).expect_err("no file of a weight");
        assert!(e.contains("neither bfq's nor io.cost's"), "{e}");
        let limits = Share {
            weight: None,
            ..share()
        };
        let g = Group::below(&root, &limits, &[(8, 0)]).expect("made");
        assert!(g.whole_processes() && takes_processes(&g.file()));
        let max = fs::read_to_string(g.dir.join("io.max")).expect("written");
        assert_eq!(max, "8:0 riops=100 wbps=1048576");
        assert_eq!(fs::read_to_string(&control).expect("there"), "+io");
        fs::remove_file(g.dir.join("io.max")).expect("no kernel does it");
        let dir = g.dir.clone();
        drop(g);
        assert!(!dir.exists());
        assert_eq!(fs::read_to_string(&control).expect("there"), "-io");
        // A controller that was enabled before stays enabled.
        fs::write(&control, "io cpu\n").expect("written");
        drop(Group::below(&root, &Share::default(), &[]).expect("made"));
        assert_eq!(fs::read_to_string(&control).expect("there"), "io cpu\n");
    }

    #[test]
    fn cgroup_v1_is_preferred_and_accepts_threads() {
        let t = Scratch::new(&std::env::temp_dir(), "cgroup").expect("made");
        let old = t.path().join("blkio");
        fs::create_dir(&old).expect("made");
        fs::write(old.join(TASKS), "").expect("written");
        fs::write(t.path().join("cgroup.controllers"), "io\n").expect("written");
        let g = Group::below(t.path(), &share(), &[(7, 3)]).expect("made");
        assert!(!g.whole_processes() && g.file().ends_with(TASKS));
        let text = |file: &str| fs::read_to_string(g.dir.join(file)).expect("written");
        assert_eq!(text("blkio.bfq.weight"), "500");
        assert_eq!(text("blkio.throttle.read_iops_device"), "7:3 100");
        assert_eq!(text("blkio.throttle.write_bps_device"), "7:3 1048576");
    }
}
