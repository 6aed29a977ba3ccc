//! A control group of our own for the weight of a program's I/O.
//!
//! Control groups of version 1 with bfq's weight: there a single thread can stand in a group. Of
//! version 2, where whole processes do, it is said that weights are not to be had.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

const ROOT: &str = "/sys/fs/cgroup/blkio";

/// Removed when it is dropped; what runs in it must have ended.
#[derive(Debug)]
pub struct Group(PathBuf);

impl Group {
    /// Makes one with a weight of 1 to 1000.
    ///
    /// # Errors
    /// There is no such controller here, or it is not ours to use.
    pub fn make(weight: u32) -> Result<Group, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let root = PathBuf::from(ROOT);
        if !root.join("blkio.bfq.weight").exists() && !root.join("tasks").exists() {
            return Err(format!(
                "weight={weight}: needs control groups of version 1 with blkio at {ROOT}"
            ));
        }
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = root.join(format!("seekwell-{}-{n}", std::process::id()));
        let failed = |e: std::io::Error| format!("weight={weight}: {}: {e}", dir.display());
        fs::create_dir(&dir).map_err(failed)?;
        let group = Group(dir.clone());
        fs::write(dir.join("blkio.bfq.weight"), weight.to_string()).map_err(failed)?;
        Ok(group)
    }
    /// What a thread's number is written to.
    pub fn file(&self) -> PathBuf {
        self.0.join("tasks")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that were killed stand in it for a moment.
        for _ in 0..100 {
            match fs::remove_dir(&self.0) {
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                _ => return,
            }
        }
    }
}
