//! Host drivers. They determine when the next request is taken from the scheduler, and when a
//! request is sent to the device.
//!
//! The drivers of the single-queue layer differ in how far they look ahead. A SCSI or libata driver
//! takes the next request from the elevator even if the device is full. This request stays started
//! at the head of the dispatch list. The scheduler therefore decides one request earlier, and
//! counts one more request in the driver than the device holds. The driver of eMMC and SD cards
//! does the same with two slots. It also packs writes into groups; its rules are in
//! `legacy/mmc.rs`.

use seekwell_core::MmcHost;

/// A host driver of the single-queue layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostDriver {
    /// Takes a request only when the device accepts another one.
    Simple {
        /// Largest number of commands in the device.
        depth: u32,
    },
    /// SCSI and libata: the driver takes one request more than the device accepts.
    Scsi {
        /// queue_depth of the device.
        depth: u32,
    },
    /// eMMC and SD: one command or packed group is on the bus, and the next one is prepared.
    Mmc(MmcHost),
}

impl HostDriver {
    /// Returns the largest number of commands in the device. A packed group counts as one command.
    pub const fn depth(self) -> u32 {
        match self {
            HostDriver::Simple { depth } | HostDriver::Scsi { depth } => depth,
            HostDriver::Mmc(_) => 1,
        }
    }
    /// Returns whether the driver may take and start the next request, with `in_flight` requests in
    /// the device.
    #[inline]
    pub const fn may_look(self, in_flight: u32) -> bool {
        match self {
            HostDriver::Simple { depth } => in_flight < depth,
            HostDriver::Scsi { .. } | HostDriver::Mmc(_) => true,
        }
    }
    /// Returns whether the driver may send a request to the device, with `in_flight` requests in
    /// it.
    #[inline]
    pub const fn may_issue(self, in_flight: u32) -> bool {
        in_flight < self.depth()
    }
}

/// A host driver of the multi-queue layer. It limits the number of requests in the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MqDriver {
    /// NVMe, virtio-blk, null_blk and mmc: each hardware queue has driver tags. A request leaves
    /// the scheduler before it has a tag. One more request can therefore wait outside the
    /// scheduler.
    Tag {
        /// Number of tags per hardware queue.
        depth: u32,
    },
    /// SCSI, and thus also SATA and USB: the driver takes a budget of the device before it asks the
    /// scheduler for a request.
    Scsi {
        /// queue_depth of the device.
        depth: u32,
    },
}

impl MqDriver {
    /// Returns the largest number of requests in the device, per hardware queue.
    pub const fn depth(self) -> u32 {
        match self {
            MqDriver::Tag { depth } | MqDriver::Scsi { depth } => depth,
        }
    }
    /// Returns whether the driver takes a budget before it asks the scheduler.
    pub const fn has_budget(self) -> bool {
        matches!(self, MqDriver::Scsi { .. })
    }
}
