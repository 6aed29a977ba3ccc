//! I/O schedulers as state machines that all implement one trait.
//!
//! Each scheduler is one file or folder with the kernel's name of the scheduler, and has an entry
//! in [`registry`]. A scheduler has no clock, no thread and no I/O, because all input comes through
//! [`Cx`]. Schedulers do not depend on device models.

pub mod admit;
#[cfg(test)]
mod bench;
pub mod contract;
pub mod costs;
pub mod cx;
pub mod dispatch;
pub mod fifo;
pub mod info;
pub mod kernels;
pub mod merge;
pub mod registry;
pub mod shallow;
pub mod tunable;
pub mod wbt;

pub mod adios;
pub mod anticipatory;
pub mod bfq;
pub mod cfq;
pub mod deadline;
pub mod fiops;
pub mod kyber;
pub mod mq_deadline;
pub mod none;
pub mod noop;
pub mod row;
pub mod sio;
pub mod turns;
pub mod vr;
pub mod zen;

pub use contract::{BioMerge, CgroupEvent, Insert, IocEvent, MayQueue, MergeKind, Scheduler};
pub use cx::{Cx, Emit, QueueFacts, Slot};
pub use info::{Layer, Make, SchedulerInfo, Waiting};
pub use registry::{
    Named, RegisterError, find, named, of_its_time, register, registry, unknown_scheduler,
    unknown_tunable,
};
pub use tunable::{Kind, StoreError, Tunable, WBT_LAT_USEC};
