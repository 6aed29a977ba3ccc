//! The interface between the estimators and a device. Estimators send reads, writes and flushes,
//! and get completion times.
//!
//! There are two implementations. [`crate::SimProbe`] runs a device model on virtual time and hides
//! the state of the model. The other implementation uses a file or a block device. An estimator
//! cannot distinguish them.

/// The operation of an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Reads sectors.
    Read,
    /// Writes the data that the sectors already contain. This needs permission, see
    /// [`Facts::may_write`].
    Write,
    /// Flushes the write cache of the device. It has no sectors.
    Flush,
}

/// One I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// Operation.
    pub what: What,
    /// First sector (512 bytes).
    pub lba: u64,
    /// Number of sectors.
    pub sectors: u32,
}

impl Io {
    /// Returns a read.
    pub const fn read(lba: u64, sectors: u32) -> Io {
        Io {
            what: What::Read,
            lba,
            sectors,
        }
    }
    /// Returns a write.
    pub const fn write(lba: u64, sectors: u32) -> Io {
        Io {
            what: What::Write,
            lba,
            sectors,
        }
    }
    /// Returns a flush.
    pub const fn flush() -> Io {
        Io {
            what: What::Flush,
            lba: 0,
            sectors: 0,
        }
    }
}

/// Send time and completion time of an I/O, in ns on the probe's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timed {
    /// Send time.
    pub sent: u64,
    /// Completion time.
    pub done: u64,
}

impl Timed {
    /// Returns the latency, ms.
    pub fn ms(self) -> f64 {
        self.done.saturating_sub(self.sent) as f64 / 1e6
    }
}

/// Facts that a host reports about a device without measuring it. `None` means unknown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Name of the device for the report, for example `/dev/sdb` or the name of a model.
    pub name: String,
    /// Size in sectors of 512 bytes.
    pub capacity: u64,
    /// Size and alignment of the smallest I/O, sectors.
    pub block: u32,
    /// Size of a physical block, bytes.
    pub physical_block_bytes: Option<u32>,
    /// Maximum number of commands that the host sends at a time (`queue_depth`).
    pub depth: Option<u32>,
    /// Whether the system reports a rotational medium. This is only a hint. The result of the
    /// probes counts.
    pub rotational: Option<bool>,
    /// Whether the device has a volatile write cache.
    pub write_cache: Option<bool>,
    /// Whether the device supports FUA.
    pub fua: Option<bool>,
    /// Whether the probes may send writes.
    pub may_write: bool,
    /// Lines that identify the host, the kernel and the device. They become the provenance of the
    /// preset.
    pub identity: Vec<String>,
}

/// Reason why the calibration stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The user interrupted the calibration.
    #[error("interrupted")]
    Interrupted,
    /// The time budget is used up.
    #[error("the time budget is used up")]
    Budget,
    /// The device failed or was removed.
    #[error("{0}")]
    Device(String),
}

/// A device under test.
pub trait Probe {
    /// Returns facts about the device. They do not change.
    fn facts(&self) -> &Facts;
    /// Returns the current time, in ns on the clock of [`Timed`].
    fn now(&self) -> u64;
    /// Returns a short description of other activity on the device during the measurement. Returns
    /// `None` if it is negligible or unknown.
    fn disturbed(&self) -> Option<String> {
        None
    }
    /// Waits for `ns` nanoseconds.
    fn sleep(&mut self, ns: u64) -> Result<(), Stop>;
    /// Sends `ios` in order, with at most `depth` outstanding, and waits until all have completed.
    /// Replaces the contents of `out` by their times, in the order of `ios`.
    fn run(&mut self, ios: &[Io], depth: usize, out: &mut Vec<Timed>) -> Result<(), Stop>;
}
