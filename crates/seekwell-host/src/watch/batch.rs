//! A batch of requests on a raw block device that the run created. A thread with its own I/O class
//! submits the batch in one call. The order in which the kernel dispatches the requests is compared
//! with the model of the scheduler.

use crate::files::{OpenFile, open_raw};
use crate::ring::Ring;
use crate::sys::set_ioprio;
use seekwell_core::{Errno, IoPrio};
use seekwell_workload::{AioDone, AioOp, AioRequest, Fd, OpenFlags};
use std::path::Path;
use std::sync::Arc;

/// One request of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Whether the request is a write. All direct writes are synchronous.
    pub write: bool,
    /// First sector.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u32,
}

/// Outstanding requests. Dropping the value waits for them.
pub struct Batch {
    ring: Ring,
    left: usize,
}

/// Opens a device for batches, without the page cache.
///
/// # Errors
/// Returns the kernel's error. It is EBUSY if the device is in use.
pub fn open(device: &Path) -> Result<Arc<OpenFile>, Errno> {
    open_raw(device, OpenFlags::DIRECT).map(Arc::new)
}

/// Binds the calling thread to one of its allowed CPUs. The index of this CPU is `nth` modulo their
/// number. If the kernel rejects this, the thread may still use all of them.
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
        // If the kernel rejects this, it chooses the CPU of the thread.
        let _ = sched_setaffinity(None, &one);
    }
}

impl Batch {
    /// Submits the requests in one call from the calling thread. The I/O priority of this thread is
    /// set to `prio`.
    ///
    /// # Errors
    /// Returns the kernel's error.
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

    /// Waits until all requests have completed.
    ///
    /// # Errors
    /// Returns the error of a failed request.
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
