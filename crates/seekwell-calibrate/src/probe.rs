//! The estimators' view of a device: they send reads, writes and flushes and get times back.
//!
//! There are two implementations: [`crate::SimProbe`] runs a device model on virtual time and hides
//! the model's state; the other one uses a file or block device. An estimator cannot distinguish
//! them.

/// What a single I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Read.
    Read,
    /// Write the data already there (only with permission, see [`Facts::may_write`]).
    Write,
    /// Flush the device's write cache; carries no sectors.
    Flush,
}

/// One I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// Operation.
    pub what: What,
    /// First sector (512 bytes).
    pub lba: u64,
    /// Sectors.
    pub sectors: u32,
}

impl Io {
    /// A read.
    pub const fn read(lba: u64, sectors: u32) -> Io {
        Io {
            what: What::Read,
            lba,
            sectors,
        }
    }
    /// A write.
    pub const fn write(lba: u64, sectors: u32) -> Io {
        Io {
            what: What::Write,
            lba,
            sectors,
        }
    }
    /// A flush.
    pub const fn flush() -> Io {
        Io {
            what: What::Flush,
            lba: 0,
            sectors: 0,
        }
    }
}

/// When an I/O was sent and when it completed, ns on the probe's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timed {
    /// Send time.
    pub sent: u64,
    /// Completion time.
    pub done: u64,
}

impl Timed {
    /// Latency, ms.
    pub fn ms(self) -> f64 {
        self.done.saturating_sub(self.sent) as f64 / 1e6
    }
}

/// What a host can know about a device without timing it. `None` means unknown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Name for the report (`/dev/sdb`, a model name).
    pub name: String,
    /// Size in sectors of 512 bytes.
    pub capacity: u64,
    /// Smallest I/O and its alignment, sectors.
    pub block: u32,
    /// Physical block, bytes.
    pub physical_block_bytes: Option<u32>,
    /// Commands the host sends at a time (`queue_depth`).
    pub depth: Option<u32>,
    /// Whether the system reports a rotational medium. Only a hint: the probes decide.
    pub rotational: Option<bool>,
    /// Has a volatile write cache.
    pub write_cache: Option<bool>,
    /// Supports FUA.
    pub fua: Option<bool>,
    /// Whether writes may be sent.
    pub may_write: bool,
    /// Lines that identify host, kernel and device, for the provenance.
    pub identity: Vec<String>,
}

/// Why probing stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The user asked for it.
    #[error("interrupted")]
    Interrupted,
    /// The time budget is used up.
    #[error("the time budget is used up")]
    Budget,
    /// The device failed or went away.
    #[error("{0}")]
    Device(String),
}

/// A device under test.
pub trait Probe {
    /// Facts about the device; they do not change.
    fn facts(&self) -> &Facts;
    /// Now, ns on the clock of [`Timed`].
    fn now(&self) -> u64;
    /// Activity of others on the device during the measurement, in a few words. `None` if it is
    /// negligible or unknown.
    fn disturbed(&self) -> Option<String> {
        None
    }
    /// Lets time pass.
    fn sleep(&mut self, ns: u64) -> Result<(), Stop>;
    /// Sends `ios` in order with up to `depth` outstanding, until all complete. `out` is cleared
    /// and then holds their times in the order of `ios`.
    fn run(&mut self, ios: &[Io], depth: usize, out: &mut Vec<Timed>) -> Result<(), Stop>;
}
