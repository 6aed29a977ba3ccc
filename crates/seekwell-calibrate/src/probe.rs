//! What the estimators see of a device: reads, writes and flushes go in, times come out.
//!
//! Two implementors: [`crate::SimProbe`] over a device model on virtual time, with the model's state
//! hidden, and the real one over a file or block device. An estimator cannot tell which it has.

/// What a single I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Read.
    Read,
    /// Write back what is there (only with permission, see [`Facts::may_write`]).
    Write,
    /// Flush the device's write cache; carries no sectors.
    Flush,
}

/// One I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// What.
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

/// When an I/O was sent and when it came back, ns on the probe's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timed {
    /// Sent.
    pub sent: u64,
    /// Back.
    pub done: u64,
}

impl Timed {
    /// Latency, ms.
    pub fn ms(self) -> f64 {
        self.done.saturating_sub(self.sent) as f64 / 1e6
    }
}

/// What a host can know of a device without timing it. Absent is unknown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// What it is called, for the report (`/dev/sdb`, a model name).
    pub name: String,
    /// Size in sectors of 512 bytes.
    pub capacity: u64,
    /// Smallest I/O and its alignment, sectors.
    pub block: u32,
    /// Physical block, bytes.
    pub physical_block_bytes: Option<u32>,
    /// Commands the host sends at a time (`queue_depth`).
    pub depth: Option<u32>,
    /// The system's word on a spinning medium. A hint: probing decides.
    pub rotational: Option<bool>,
    /// Has a volatile write cache.
    pub write_cache: Option<bool>,
    /// Takes FUA.
    pub fua: Option<bool>,
    /// Writes may be sent.
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
    /// Facts; they do not change.
    fn facts(&self) -> &Facts;
    /// Now, ns on the clock of [`Timed`].
    fn now(&self) -> u64;
    /// What others did to the device meanwhile, in a few words; `None` if nothing that counts, or it
    /// is not known.
    fn disturbed(&self) -> Option<String> {
        None
    }
    /// Lets time pass.
    fn sleep(&mut self, ns: u64) -> Result<(), Stop>;
    /// Sends `ios` in order, keeping up to `depth` of them outstanding, until all are back; `out` is
    /// emptied and then holds their times, in the order of `ios`.
    fn run(&mut self, ios: &[Io], depth: usize, out: &mut Vec<Timed>) -> Result<(), Stop>;
}
