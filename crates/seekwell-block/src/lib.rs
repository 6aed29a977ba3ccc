//! Block layers: the path of a bio from its submitter to the device.
//!
//! This crate is above schedulers and devices, which do not know each other. A queue is a
//! [`seekwell_core::BioSink`], and so are the composites over sinks.

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
