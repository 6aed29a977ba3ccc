//! Block layers: the path of a bio from the submitter to the device.
//!
//! This crate connects schedulers with devices, which do not depend on each other. A queue is a
//! [`seekwell_core::BioSink`]. Devices that consist of several queues, such as arrays, are also
//! sinks.

mod below;
pub mod host;
mod inside;
pub mod legacy;
pub mod merge;
pub mod mq;
pub mod raid;
pub mod stats;
pub mod tasks;
pub mod virtual_disk;

pub use host::{HostDriver, MqDriver};
pub use legacy::{LegacyOptions, LegacyQueue};
pub use mq::MqQueue;
pub use raid::{Linear, Mirror, Parity, Remapped, Stripe};
pub use stats::QueueStats;
pub use virtual_disk::VirtualDisk;
