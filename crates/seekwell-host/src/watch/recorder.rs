//! Either of the two ways to the kernel's block tracepoints.

use super::{BlockTrace, BpfTrace, Recorded, WatchError};

/// A way to the tracepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Programs of ours and a ring buffer: times to the nanosecond.
    Bpf,
    /// The kernel's own text, to the microsecond.
    Tracefs,
}

impl By {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            By::Bpf => "bpf",
            By::Tracefs => "tracefs",
        }
    }
}

/// A recorder of one device.
#[derive(Debug)]
pub enum Recorder {
    /// Through BPF.
    Bpf(BpfTrace),
    /// Through tracefs.
    Tracefs(BlockTrace),
}

impl Recorder {
    /// By the way that is asked for; else through BPF, and where that is not to be had through
    /// tracefs, with the reason. `device` is `major << 20 | minor`.
    ///
    /// # Errors
    /// What the kernel refuses of the way that was asked for, or of both.
    pub fn open(device: u32, by: Option<By>) -> Result<(Self, Option<WatchError>), WatchError> {
        let bpf = || BpfTrace::open(device).map(Recorder::Bpf);
        let tracefs = || BlockTrace::open(device).map(Recorder::Tracefs);
        match by {
            Some(By::Bpf) => Ok((bpf()?, None)),
            Some(By::Tracefs) => Ok((tracefs()?, None)),
            None => match bpf() {
                Ok(r) => Ok((r, None)),
                Err(why) => Ok((tracefs()?, Some(why))),
            },
        }
    }
    /// Which way it is.
    pub fn by(&self) -> By {
        match self {
            Recorder::Bpf(_) => By::Bpf,
            Recorder::Tracefs(_) => By::Tracefs,
        }
    }
    /// Records from now on, afresh.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn start(&mut self) -> Result<(), WatchError> {
        match self {
            Recorder::Bpf(t) => t.start(),
            Recorder::Tracefs(t) => t.start(),
        }
    }
    /// Stops and gives what was recorded; nothing, if it was not started.
    ///
    /// # Errors
    /// What the kernel refuses, or a trace that cannot be understood.
    pub fn stop(&mut self) -> Result<Recorded, WatchError> {
        match self {
            Recorder::Bpf(t) => t.stop(),
            Recorder::Tracefs(t) => t.stop(),
        }
    }
}
