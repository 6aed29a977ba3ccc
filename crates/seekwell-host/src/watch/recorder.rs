//! The two ways to read the kernel's block tracepoints.

use super::{BlockTrace, BpfTrace, Recorded, WatchError};

/// A way to the tracepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// BPF programs and a ring buffer: times to the nanosecond.
    Bpf,
    /// The kernel's text: times to the microsecond.
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
    /// Opens a recorder by the requested way. By default it uses BPF, and tracefs if BPF is not
    /// available; then the reason is returned too. `device` is `major << 20 | minor`.
    ///
    /// # Errors
    /// The kernel refuses the requested way, or both.
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
    /// Which way it uses.
    pub fn by(&self) -> By {
        match self {
            Recorder::Bpf(_) => By::Bpf,
            Recorder::Tracefs(_) => By::Tracefs,
        }
    }
    /// Starts a new recording.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn start(&mut self) -> Result<(), WatchError> {
        match self {
            Recorder::Bpf(t) => t.start(),
            Recorder::Tracefs(t) => t.start(),
        }
    }
    /// Stops and returns the recording; empty if it was not started.
    ///
    /// # Errors
    /// The kernel's error, or a trace that cannot be parsed.
    pub fn stop(&mut self) -> Result<Recorded, WatchError> {
        match self {
            Recorder::Bpf(t) => t.stop(),
            Recorder::Tracefs(t) => t.stop(),
        }
    }
}
