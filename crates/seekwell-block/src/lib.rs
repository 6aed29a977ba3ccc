//! Block layers: what happens to a bio between its submitter and the device.
//!
//! Floor 1b: above schedulers and devices, which do not know each other. A queue is a
//! [`seekwell_core::BioSink`]; so are the composites over sinks.

pub mod host;
pub mod legacy;
pub mod linear;
pub mod merge;
pub mod mq;
pub mod stats;
pub mod stripe;
pub mod tasks;

pub use host::{HostDriver, MqDriver};
pub use legacy::{LegacyOptions, LegacyQueue};
pub use linear::Linear;
pub use mq::MqQueue;
pub use stats::QueueStats;
pub use stripe::Stripe;
