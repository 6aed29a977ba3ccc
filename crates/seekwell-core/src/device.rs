//! The device contract: a state machine that takes commands and reports their completions.
//!
//! A model does not know which scheduler feeds it, has no clock and no thread, and draws random
//! numbers from its own named stream, in event order. A decision at time t depends only on commands
//! accepted at or before t. So the same object can serve the simulator and, in real time, a block
//! server.

use crate::bio::Op;
use crate::event::{Snapshot, Tap};
use crate::time::{Instant, Nanos};
use crate::units::{Sector, Sectors};

/// One command to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Chosen by the host; the completion carries it. Unique among outstanding commands.
    pub id: u32,
    /// The operation. [`Op::Flush`] has no sectors.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Write through to the medium, if the device supports that ([`DeviceFacts::fua`]).
    pub fua: bool,
}

/// When the driver of an eMMC packs writes, if the card supports packed groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Never.
    Off,
    /// Whenever writes follow one another (Linux 3.9 and later).
    Always,
    /// After more than this many writes in a row; a read ends it (Code Aurora kernels).
    After(u32),
}

/// An eMMC or SD card with its host. It takes one command (or one packed group) at a time; a driver
/// with two slots prepares the next one meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmcHost {
    /// Number of writes that the card takes as one packed group (at most 63); below 2: none.
    pub max_packed: u32,
    /// When the driver makes packed groups.
    pub packing: Packing,
    /// An arrival wakes the driver while it waits for the card (Linux 3.8 and later, Code Aurora).
    /// Otherwise the driver looks again only when the card has finished.
    pub wakes: bool,
    /// Time to prepare a request for the bus: hidden by a transfer, visible on an idle queue.
    pub prepare: Nanos,
}

/// The answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// The device took it; a completion will follow.
    Accepted,
    /// The device cannot take it at present: ask again after a completion.
    Busy,
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The command's id.
    pub id: u32,
    /// Time of the completion.
    pub at: Instant,
    /// The command failed (a modelled media error).
    pub error: bool,
}

/// What a host can learn about a device without using it (its sysfs files).
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFacts {
    /// Model name, for reports.
    pub name: String,
    /// Size in sectors.
    pub capacity: Sector,
    /// Rotating medium; CFQ, BFQ and ADIOS behave differently on it.
    pub rotational: bool,
    /// Commands that it takes at a time through each of its hardware queues (31 or 32 with NCQ, 1
    /// without).
    pub depth: u32,
    /// Number of hardware queues (1 for SATA; many for NVMe).
    pub hw_queues: u16,
    /// It has a volatile write cache, so that flushes have an effect.
    pub write_cache: bool,
    /// It supports FUA itself.
    pub fua: bool,
    /// It takes a flush together with other commands (false for SATA).
    pub flush_queueable: bool,
    /// The largest command.
    pub max_sectors: Sectors,
    /// Size of a physical block, bytes (4096 on 512e).
    pub physical_block_bytes: u32,
    /// A running write can be stopped and its rest returned (eMMC HPI).
    pub can_stop: bool,
    /// Best request alignment, bytes (stripe width of an array; 0 if unknown).
    pub io_opt_bytes: u32,
    /// Set for an eMMC or SD card, with the behaviour of its driver.
    pub mmc: Option<MmcHost>,
}

impl DeviceFacts {
    /// A plain flash-like device; other devices are changes to this one.
    pub fn plain(name: &str, capacity: Sector, depth: u32) -> Self {
        DeviceFacts {
            name: name.to_owned(),
            capacity,
            rotational: false,
            depth,
            hw_queues: 1,
            write_cache: false,
            fua: false,
            flush_queueable: true,
            max_sectors: Sectors(65535),
            physical_block_bytes: 512,
            can_stop: false,
            io_opt_bytes: 0,
            mmc: None,
        }
    }
    /// Commands that it takes at a time through all its queues.
    pub fn commands(&self) -> usize {
        self.depth as usize * usize::from(self.hw_queues.max(1))
    }
}

/// Counters of a device model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Time with at least one command inside or internal work.
    pub busy: Nanos,
    /// Commands served from a cache.
    pub cache_hits: u64,
    /// Mechanical operations (media accesses), including background operations.
    pub media_ops: u64,
    /// Distance that the head travelled between commands, sectors; 0 without a head.
    pub seek_sectors: u64,
    /// Number of moves in `seek_sectors`.
    pub seeks: u64,
    /// Time spent seeking.
    pub seek_time: Nanos,
    /// Time spent waiting for the platter.
    pub rotation_time: Nanos,
    /// Bytes moved internally in addition to the host's requests (garbage collection,
    /// read-modify-write).
    pub internal_bytes: u64,
}

/// A device model.
pub trait Device {
    /// Takes a command at `now`, which never decreases from one call to the next.
    fn accept(&mut self, now: Instant, command: Command) -> Accept;
    /// Takes a packed group of plain writes: one transfer, and all complete together. The caller
    /// asks only devices whose facts allow groups ([`MmcHost::max_packed`]), and for at most that
    /// many writes. Other devices answer `Busy`.
    fn accept_packed(&mut self, now: Instant, group: &[Command]) -> Accept {
        let _ = (now, group);
        Accept::Busy
    }
    /// The earliest time at which the model changes by itself; `None` when it is idle. Changes that
    /// stay invisible until a later event may be left out, unless there is a listener; completions
    /// may not. When a model receives a command, it first catches up on its own changes up to that
    /// time.
    fn next_event(&self) -> Option<Instant>;
    /// Runs up to `to`, inclusive, and appends the completions in time order.
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>);
    /// Facts; they do not change.
    fn facts(&self) -> &DeviceFacts;
    /// Counters so far.
    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
    /// Stops a running write (eMMC HPI). Returns the sectors already on the medium, or `None` if it
    /// cannot stop. A stopped command has no completion. Stopping one command of a packed group
    /// stops all of them; the caller must ask each one for its sectors, at the same instant.
    fn stop(&mut self, now: Instant, id: u32) -> Option<Sectors> {
        let _ = (now, id);
        None
    }
    /// Describes the state in a short text, for `explain` and debugging.
    fn state(&self, out: &mut String) {
        let _ = out;
    }
    /// Sends internal events (heads, caches, dies, members) to a stream, in models that support it;
    /// `None` ends this. Listening does not change the results of a run.
    fn listen(&mut self, tap: Option<&Tap>) {
        let _ = tap;
    }
    /// Appends snapshots of the contents, for devices that are queues or have members.
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        let _ = (now, out);
    }
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        (**self).accept(now, command)
    }
    fn accept_packed(&mut self, now: Instant, group: &[Command]) -> Accept {
        (**self).accept_packed(now, group)
    }
    fn next_event(&self) -> Option<Instant> {
        (**self).next_event()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        (**self).advance(to, out)
    }
    fn facts(&self) -> &DeviceFacts {
        (**self).facts()
    }
    fn stats(&self) -> DeviceStats {
        (**self).stats()
    }
    fn stop(&mut self, now: Instant, id: u32) -> Option<Sectors> {
        (**self).stop(now, id)
    }
    fn state(&self, out: &mut String) {
        (**self).state(out)
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        (**self).listen(tap)
    }
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        (**self).snapshot(now, out)
    }
}
