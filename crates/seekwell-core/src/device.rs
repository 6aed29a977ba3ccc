//! The contract (trait) of a device: a state machine that takes commands and returns completions.
//!
//! A model does not depend on the scheduler above it and has no clock and no thread. It draws
//! random numbers from its own named stream, in the order of events. A decision at time t depends
//! only on commands accepted at or before t. So the same object can be used by the simulator and,
//! in real time, by a block server.

use crate::bio::Op;
use crate::event::{Action, Event, Snapshot, Tap};
use crate::request::RqId;
use crate::time::{Instant, Nanos};
use crate::units::{Sector, Sectors};

/// One command to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Number that the host chooses and that the completion contains. It is unique among the
    /// commands that have not completed.
    pub id: u32,
    /// The operation. [`Op::Flush`] has no sectors.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: Sectors,
    /// True if the data must reach the medium before the completion, if the device supports that
    /// ([`DeviceFacts::fua`]).
    pub fua: bool,
}

// This function is in this module, because the module of events does not depend on devices.
impl Event {
    /// Returns an event about a command to a device.
    pub fn of_command(at: Instant, action: Action, c: &Command) -> Self {
        Event {
            rq: Some(RqId(c.id)),
            op: c.op,
            sector: c.sector,
            sectors: c.sectors,
            ..Event::new(at, action)
        }
    }
}

/// The rule by which the driver of an eMMC packs writes, if the card supports packed groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// The driver never packs writes.
    Off,
    /// The driver packs all writes that follow one another (Linux 3.9 and later).
    Always,
    /// The driver packs after more than this many writes without a read between them (Code Aurora
    /// kernels).
    After(u32),
}

/// An eMMC or SD card with its host controller. It takes one command (or one packed group) at a
/// time. A driver with two slots prepares the next command during that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmcHost {
    /// Number of writes that the card takes as one packed group, at most 63. Below 2: the card
    /// takes no groups.
    pub max_packed: u32,
    /// The rule by which the driver makes packed groups.
    pub packing: Packing,
    /// True if an arriving request wakes the driver while it waits for the card (Linux 3.8 and
    /// later, Code Aurora). Otherwise the driver checks for requests only when the card has
    /// finished.
    pub wakes: bool,
    /// Time to prepare a request for the bus. A transfer in progress hides this time; on an idle
    /// queue it delays the request.
    pub prepare: Nanos,
}

/// Result of submitting a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// The device took the command. A completion will follow.
    Accepted,
    /// The device cannot take the command at present. The caller can try again after a completion.
    Busy,
}

/// The completion of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Id of the command.
    pub id: u32,
    /// Time of the completion.
    pub at: Instant,
    /// True if the command failed (a modelled media error).
    pub error: bool,
}

/// The facts that a host can read about a device without using it (its sysfs files).
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFacts {
    /// Name of the model, for reports.
    pub name: String,
    /// Size of the device in sectors.
    pub capacity: Sector,
    /// True if the medium rotates. CFQ, BFQ and ADIOS depend on this.
    pub rotational: bool,
    /// Number of commands that the device takes at once through each hardware queue (31 or 32 with
    /// NCQ, 1 without).
    pub depth: u32,
    /// Number of hardware queues (1 for SATA; many for NVMe).
    pub hw_queues: u16,
    /// True if the device has a volatile write cache, so that flushes have an effect.
    pub write_cache: bool,
    /// True if the device supports FUA.
    pub fua: bool,
    /// True if the device takes a flush while it has other commands (false for SATA).
    pub flush_queueable: bool,
    /// Size of the largest command.
    pub max_sectors: Sectors,
    /// Size of a physical block in bytes (4096 on 512e).
    pub physical_block_bytes: u32,
    /// True if a running write can be stopped so that its rest is returned (eMMC HPI).
    pub can_stop: bool,
    /// Best alignment of requests in bytes (the stripe width of an array); 0 if unknown.
    pub io_opt_bytes: u32,
    /// The behaviour of the card's driver, for an eMMC or SD card.
    pub mmc: Option<MmcHost>,
}

impl DeviceFacts {
    /// Returns the facts of a plain device of flash type. Other devices change some of them.
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
    /// Returns the number of commands that the device takes at once through all its queues.
    pub fn commands(&self) -> usize {
        self.depth as usize * usize::from(self.hw_queues.max(1))
    }
}

/// Counters of a device model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Time in which the device had at least one command or did internal work.
    pub busy: Nanos,
    /// Number of commands served from a cache.
    pub cache_hits: u64,
    /// Number of mechanical operations (accesses to the medium). Background operations are
    /// included.
    pub media_ops: u64,
    /// Distance that the head moved between commands, in sectors; 0 without a head.
    pub seek_sectors: u64,
    /// Number of moves that `seek_sectors` contains.
    pub seeks: u64,
    /// Time spent seeking.
    pub seek_time: Nanos,
    /// Time spent waiting for the platter.
    pub rotation_time: Nanos,
    /// Number of bytes that the device moved in addition to the host's requests (garbage
    /// collection, read-modify-write).
    pub internal_bytes: u64,
}

/// A device model.
pub trait Device {
    /// Submits a command at `now`. Times never decrease from one call to the next.
    fn accept(&mut self, now: Instant, command: Command) -> Accept;
    /// Submits a packed group of plain writes. The group is one transfer, and all its writes
    /// complete together. The caller does this only for a device whose facts allow groups
    /// ([`MmcHost::max_packed`]), and with at most that many writes. Other devices return `Busy`.
    fn accept_packed(&mut self, now: Instant, group: &[Command]) -> Accept {
        let _ = (now, group);
        Accept::Busy
    }
    /// Returns the earliest time at which the model changes without a call; `None` if it is idle.
    /// Completions must be included. Other changes that are not visible until a later event may be
    /// left out, unless there is a listener. When a model receives a command, it first makes its
    /// own changes up to that time.
    fn next_event(&self) -> Option<Instant>;
    /// Runs up to time `to`, inclusive, and appends the completions in the order of time.
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>);
    /// Returns the facts about the device. They do not change.
    fn facts(&self) -> &DeviceFacts;
    /// Returns the counters.
    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
    /// Stops a running write (eMMC HPI). Returns the number of sectors that are already on the
    /// medium, or `None` if the write cannot be stopped. A stopped command has no completion. If
    /// one command of a packed group is stopped, all commands of the group are stopped. The caller
    /// must then call this function for each of them at the same instant.
    fn stop(&mut self, now: Instant, id: u32) -> Option<Sectors> {
        let _ = (now, id);
        None
    }
    /// Appends a short description of the state to `out`, for `explain` and debugging.
    fn state(&self, out: &mut String) {
        let _ = out;
    }
    /// Sends internal events (heads, caches, dies, members) to a stream, if the model supports it.
    /// `None` ends this. Events do not change the results of a run.
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
