//! A batch of requests on a raw block device owned by the run. A thread with its own I/O class
//! submits it in one call. Its order of dispatch is compared with the scheduler model.

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
    /// Whether it is a write (synchronous, as all direct writes are); else a read.
    pub write: bool,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub sectors: u32,
}

/// Outstanding requests; dropping it waits for them.
pub struct Batch {
    ring: Ring,
    left: usize,
}

/// Opens a device for batches, without the page cache.
///
/// # Errors
/// The kernel's error; EBUSY if the device is in use.
pub fn open(device: &Path) -> Result<Arc<OpenFile>, Errno> {
    open_raw(device, OpenFlags::DIRECT).map(Arc::new)
}

/// Binds the calling thread to one of its allowed CPUs, `nth` modulo their number. If the kernel
/// refuses, the thread may use all of them.
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
        // On a refusal the kernel places the batch.
        let _ = sched_setaffinity(None, &one);
    }
}

impl Batch {
    /// Submits the requests in one call from the calling thread, whose I/O class becomes `prio`.
    ///
    /// # Errors
    /// The kernel's error.
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

    /// Waits until all requests complete.
    ///
    /// # Errors
    /// The error of a failed request.
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
