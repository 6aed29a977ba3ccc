//! The two methods to read the kernel's block tracepoints.

use super::{BlockTrace, BpfTrace, Recorded, WatchError};

/// Method of reading the tracepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// BPF programs and a ring buffer. Times have a resolution of a nanosecond.
    Bpf,
    /// The text of tracefs. Times have a resolution of a microsecond.
    Tracefs,
}

impl By {
    /// Returns the name of the method.
    pub fn name(self) -> &'static str {
        match self {
            By::Bpf => "bpf",
            By::Tracefs => "tracefs",
        }
    }
}

/// A recorder for one device.
#[derive(Debug)]
pub enum Recorder {
    /// Records by BPF.
    Bpf(BpfTrace),
    /// Records by tracefs.
    Tracefs(BlockTrace),
}

impl Recorder {
    /// Opens a recorder with the requested method. If no method is requested, BPF is used, or
    /// tracefs if BPF is not available. In the second case the reason is returned too. `device` is
    /// `major << 20 | minor`.
    ///
    /// # Errors
    /// The kernel rejects the requested method, or both methods.
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
    /// Returns the method of this recorder.
    pub fn by(&self) -> By {
        match self {
            Recorder::Bpf(_) => By::Bpf,
            Recorder::Tracefs(_) => By::Tracefs,
        }
    }
    /// Starts a new recording.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn start(&mut self) -> Result<(), WatchError> {
        match self {
            Recorder::Bpf(t) => t.start(),
            Recorder::Tracefs(t) => t.start(),
        }
    }
    /// Stops the recording and returns it. It is empty if the recorder was not started.
    ///
    /// # Errors
    /// Returns the kernel's error, or an error if the trace cannot be parsed.
    pub fn stop(&mut self) -> Result<Recorded, WatchError> {
        match self {
            Recorder::Bpf(t) => t.stop(),
            Recorder::Tracefs(t) => t.stop(),
        }
    }
}
