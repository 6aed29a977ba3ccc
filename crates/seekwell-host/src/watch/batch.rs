//! A batch of requests on a raw block device of our own, submitted in one call by a thread with a
//! class of its own: what a scheduler is held against.

use crate::files::{OpenFile, open_raw};
use crate::ring::Ring;
use crate::sys::set_ioprio;
use seekwell_core::{Errno, IoPrio};
use seekwell_workload::{AioDone, AioOp, AioRequest, Fd, OpenFlags};
use std::path::Path;
use std::sync::Arc;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// A write, synchronous as all direct ones are; else a read.
    pub write: bool,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub sectors: u32,
}

/// Requests that are under way; waits for them when it is dropped.
pub struct Batch {
    ring: Ring,
    left: usize,
}

/// Opens a device for batches, past the page cache.
///
/// # Errors
/// What the kernel said; EBUSY if somebody uses it.
pub fn open(device: &Path) -> Result<Arc<OpenFile>, Errno> {
    open_raw(device, OpenFlags::DIRECT).map(Arc::new)
}

/// Keeps the calling thread on one of the CPUs that it may use, counted round and round; on all of
/// them if the kernel will not.
pub fn stay_on(nth: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else {
        return;
    };
    let all: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|c| allowed.is_set(*c))
        .collect();
    let mut one = CpuSet::new();
    if let Some(cpu) = all.get(nth % all.len().max(1)) {
        one.set(*cpu);
        // Where it is refused the batch is the scheduler's of the CPUs to place.
        let _ = sched_setaffinity(None, &one);
    }
}

impl Batch {
    /// Submits them in one call, from the calling thread, with its class from now on.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn submit(file: &Arc<OpenFile>, prio: IoPrio, all: &[Asked]) -> Result<Batch, Errno> {
        set_ioprio(prio)?;
        let ring = Ring::new(all.len().next_power_of_two() as u32)?;
        let requests: Vec<_> = all
            .iter()
            .enumerate()
            .map(|(i, a)| {
                let op = match a.write {
                    true => AioOp::Write,
                    false => AioOp::Read,
                };
                let request = AioRequest {
                    fd: Fd(0),
                    op,
                    off: a.sector * 512,
                    len: a.sectors * 512,
                    tag: i as u64,
                };
                (request, Arc::clone(file))
            })
            .collect();
        ring.submit(&requests)?;
        Ok(Batch {
            ring,
            left: all.len(),
        })
    }

    /// Waits for the end of all.
    ///
    /// # Errors
    /// That of a request that failed.
    pub fn wait(mut self) -> Result<(), Errno> {
        let mut done: Vec<AioDone> = Vec::new();
        while self.left > 0 {
            done.clear();
            self.ring.reap(1, &mut done)?;
            self.left = self.left.saturating_sub(done.len());
            for d in &done {
                d.result?;
            }
        }
        Ok(())
    }
}
