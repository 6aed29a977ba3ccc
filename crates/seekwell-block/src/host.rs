//! Host drivers: when the driver looks at the next request, and when it hands one to the device.
//!
//! The single-queue drivers differ in how far they look ahead. A SCSI or libata driver takes the
//! next request from the elevator even when the device is full, and leaves it, started, at the
//! head: the scheduler has decided one request early and sees one more in the driver than the
//! device holds. The driver of eMMC and SD cards does so too, with two slots, and packs writes;
//! its rules are in `legacy/mmc.rs`.

use seekwell_core::MmcHost;

/// A host driver of the single-queue layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostDriver {
    /// Looks only when the device has room.
    Simple {
        /// Commands at once.
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
    /// Commands at once; a packed group counts as one.
    pub const fn depth(self) -> u32 {
        match self {
            HostDriver::Simple { depth } | HostDriver::Scsi { depth } => depth,
            HostDriver::Mmc(_) => 1,
        }
    }
    /// May it look at the next request (start it) with this many in flight?
    #[inline]
    pub const fn may_look(self, in_flight: u32) -> bool {
        match self {
            HostDriver::Simple { depth } => in_flight < depth,
            HostDriver::Scsi { .. } | HostDriver::Mmc(_) => true,
        }
    }
    /// May it hand a request over with this many in flight?
    #[inline]
    pub const fn may_issue(self, in_flight: u32) -> bool {
        in_flight < self.depth()
    }
}

/// A host driver of the multi-queue layer: what limits the requests with the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MqDriver {
    /// NVMe, virtio-blk, null_blk, mmc: driver tags, so many for each hardware queue. A request
    /// leaves the scheduler before it has a tag, so one more waits outside.
    Tag {
        /// Tags of each hardware queue.
        depth: u32,
    },
    /// SCSI, so SATA and USB too: a budget for the device is taken before the scheduler is asked.
    Scsi {
        /// queue_depth of the device.
        depth: u32,
    },
}

impl MqDriver {
    /// Requests with the device at once, of each hardware queue.
    pub const fn depth(self) -> u32 {
        match self {
            MqDriver::Tag { depth } | MqDriver::Scsi { depth } => depth,
        }
    }
    /// Is a budget taken before the scheduler is asked?
    pub const fn has_budget(self) -> bool {
        matches!(self, MqDriver::Scsi { .. })
    }
}
