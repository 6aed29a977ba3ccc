//! The device contract: a state machine that takes commands and says when they are done.
//!
//! A model never looks at which scheduler feeds it, has no clock and no thread, and draws random
//! numbers from one named stream of its own, in event order. A decision taken at time t depends
//! only on commands accepted at or before t: the same object serves the simulator and, on wall
//! time, a block server.

use crate::bio::Op;
use crate::event::{Snapshot, Tap};
use crate::time::{Instant, Nanos};
use crate::units::{Sector, Sectors};

/// One command to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Named by the host; comes back with the completion. Unique among commands outstanding.
    pub id: u32,
    /// What to do. [`Op::Flush`] carries no sectors.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Write-through to the medium, if the device offers that ([`DeviceFacts::fua`]).
    pub fua: bool,
}

/// When the driver of an eMMC packs writes, where the card takes packed groups at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Never.
    Off,
    /// Whenever writes follow each other (Linux 3.9 and later).
    Always,
    /// Once more than so many writes in a row were seen; a read ends it (Code Aurora kernels).
    After(u32),
}

/// An eMMC or SD card on its host: it takes one command (or one packed group) at a time, and a
/// driver with two slots prepares the next one meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmcHost {
    /// Writes the card takes as one packed group (at most 63); below 2: none.
    pub max_packed: u32,
    /// When the driver makes such groups.
    pub packing: Packing,
    /// An arrival wakes the driver while it waits for the card (Linux 3.8 and later, Code Aurora);
    /// else it looks again only when the card is done.
    pub wakes: bool,
    /// Time to prepare a request for the bus: hidden behind a transfer, visible on an idle queue.
    pub prepare: Nanos,
}

/// Answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// It has it; a completion will come.
    Accepted,
    /// It cannot take it now: ask again after a completion.
    Busy,
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Of the command.
    pub id: u32,
    /// When.
    pub at: Instant,
    /// It failed (a modelled media error).
    pub error: bool,
}

/// What a host can learn about a device without using it (its sysfs files).
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFacts {
    /// Model name, for reports.
    pub name: String,
    /// Size.
    pub capacity: Sector,
    /// Spinning medium: CFQ, BFQ and ADIOS change their ways.
    pub rotational: bool,
    /// Commands it takes at a time through each of its hardware queues (31 or 32 with NCQ, 1
    /// without).
    pub depth: u32,
    /// Hardware queues it offers (1 for SATA; many for NVMe).
    pub hw_queues: u16,
    /// Has a volatile write cache: flushes mean something.
    pub write_cache: bool,
    /// Honours FUA by itself.
    pub fua: bool,
    /// Takes a flush beside other commands (false for SATA).
    pub flush_queueable: bool,
    /// Largest command.
    pub max_sectors: Sectors,
    /// Physical block, bytes (4096 on 512e).
    pub physical_block_bytes: u32,
    /// A running write can be stopped and its rest handed back (eMMC HPI).
    pub can_stop: bool,
    /// Best request alignment, bytes (stripe width of an array; 0 unknown).
    pub io_opt_bytes: u32,
    /// It is an eMMC or SD card, driven like one.
    pub mmc: Option<MmcHost>,
}

impl DeviceFacts {
    /// A plain flash-like device: everything else is a change to this.
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
    /// Commands it takes at a time through all its queues.
    pub fn commands(&self) -> usize {
        self.depth as usize * usize::from(self.hw_queues.max(1))
    }
}

/// What a device model counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Time with at least one command inside or work of its own.
    pub busy: Nanos,
    /// Commands served by a cache.
    pub cache_hits: u64,
    /// Mechanical operations (media accesses), background ones included.
    pub media_ops: u64,
    /// Distance the head travelled between commands, sectors; 0 where there is no head.
    pub seek_sectors: u64,
    /// Moves that `seek_sectors` sums up.
    pub seeks: u64,
    /// Time spent seeking.
    pub seek_time: Nanos,
    /// Time spent waiting for the platter.
    pub rotation_time: Nanos,
    /// Bytes moved internally beyond what the host asked (garbage collection, read-modify-write).
    pub internal_bytes: u64,
}

/// A device model.
pub trait Device {
    /// Takes a command at `now`, which never decreases from call to call.
    fn accept(&mut self, now: Instant, command: Command) -> Accept;
    /// Takes a packed group of plain writes: one transfer, and all complete together. Asked only of
    /// devices whose facts say that they take groups ([`MmcHost::max_packed`]), of that many at
    /// most; any other answers `Busy`.
    fn accept_packed(&mut self, now: Instant, group: &[Command]) -> Accept {
        let _ = (now, group);
        Accept::Busy
    }
    /// The earliest time at which the model changes by itself; `None` when it rests. What nobody can
    /// see before a later event may be left out, unless somebody listens: no completion may. A model
    /// that is given a command does first what it would have done by itself until then.
    fn next_event(&self) -> Option<Instant>;
    /// Runs to `to` inclusive and appends what completed, in time order.
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>);
    /// Facts; they do not change.
    fn facts(&self) -> &DeviceFacts;
    /// Counters so far.
    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
    /// Stops a running write (eMMC HPI): sectors already on the medium, or `None` if it cannot.
    /// A stopped command completes no more. Stopping one command of a packed group stops them all;
    /// each has to be asked for its sectors, at the same instant.
    fn stop(&mut self, now: Instant, id: u32) -> Option<Sectors> {
        let _ = (now, id);
        None
    }
    /// A short text of the state, for `explain` and debugging.
    fn state(&self, out: &mut String) {
        let _ = out;
    }
    /// What happens inside (heads, caches, dies, members) goes into a stream from now on, for the
    /// models that know it; `None`: nobody listens any more. The same runs give the same answers.
    fn listen(&mut self, tap: Option<&Tap>) {
        let _ = tap;
    }
    /// Appends what is inside, for those that are queues themselves or have members.
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
