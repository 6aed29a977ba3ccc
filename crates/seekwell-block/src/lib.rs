//! Block layers: what happens to a bio between its submitter and the device.
//!
//! Floor 1b: above schedulers and devices, which do not know each other. A queue is a
//! [`seekwell_core::BioSink`]; so are the composites over sinks.

pub mod host;
pub mod legacy;
pub mod linear;
pub mod merge;
pub mod stats;
pub mod stripe;

pub use host::HostDriver;
pub use legacy::{LegacyOptions, LegacyQueue};
pub use linear::Linear;
pub use stats::QueueStats;
pub use stripe::Stripe;
