//! Host drivers: when the driver looks at the next request, and when it gives a request to the
//! device.
//!
//! The single-queue drivers differ in how far they look ahead. A SCSI or libata driver takes the
//! next request from the elevator even if the device is full, and leaves it, started, at the head.
//! So the scheduler decides one request early and sees one more request in the driver than the
//! device holds. The driver of eMMC and SD cards does the same with two slots, and packs writes;
//! its rules are in `legacy/mmc.rs`.

use seekwell_core::MmcHost;

/// A host driver of the single-queue layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostDriver {
    /// Looks for a request only when the device has room.
    Simple {
        /// Number of commands at once.
        depth: u32,
    },
    /// SCSI, libata: looks one request ahead of the device.
    Scsi {
        /// queue_depth of the device.
        depth: u32,
    },
    /// eMMC and SD: one command or packed group on the bus, the next one prepared.
    Mmc(MmcHost),
}

impl HostDriver {
    /// Number of commands at once; a packed group counts as one.
    pub const fn depth(self) -> u32 {
        match self {
            HostDriver::Simple { depth } | HostDriver::Scsi { depth } => depth,
            HostDriver::Mmc(_) => 1,
        }
    }
    /// Whether it may look at the next request (start it) with this many in flight.
    #[inline]
    pub const fn may_look(self, in_flight: u32) -> bool {
        match self {
            HostDriver::Simple { depth } => in_flight < depth,
            HostDriver::Scsi { .. } | HostDriver::Mmc(_) => true,
        }
    }
    /// Whether it may give the device a request with this many in flight.
    #[inline]
    pub const fn may_issue(self, in_flight: u32) -> bool {
        in_flight < self.depth()
    }
}

/// A host driver of the multi-queue layer: the limit on requests in the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MqDriver {
    /// NVMe, virtio-blk, null_blk, mmc: driver tags for each hardware queue. A request leaves the
    /// scheduler before it has a tag, so one more request waits outside the scheduler.
    Tag {
        /// Tags per hardware queue.
        depth: u32,
    },
    /// SCSI, so SATA and USB too: the driver takes a budget for the device before it asks the
    /// scheduler.
    Scsi {
        /// queue_depth of the device.
        depth: u32,
    },
}

impl MqDriver {
    /// Number of requests in the device at once, per hardware queue.
    pub const fn depth(self) -> u32 {
        match self {
            MqDriver::Tag { depth } | MqDriver::Scsi { depth } => depth,
        }
    }
    /// Whether the driver takes a budget before it asks the scheduler.
    pub const fn has_budget(self) -> bool {
        matches!(self, MqDriver::Scsi { .. })
    }
}
