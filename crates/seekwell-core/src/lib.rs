//! Basic types: time, sectors, bios, requests, io contexts, events.
//!
//! This is the lowest crate. It contains no scheduler, no device model and no block layer, and does
//! not depend on any. It also contains no user data: Seekwell only processes addresses and lengths,
//! not the bytes that a program reads and writes.

pub mod bio;
pub mod cgroup;
pub mod device;
pub mod direct;
pub mod event;
pub mod foreign;
pub mod ioc;
#[cfg(target_os = "linux")]
pub mod large;
pub mod list;
pub mod numbers;
pub mod once;
pub mod open_list;
pub mod prose;
pub mod rbtree;
pub mod request;
pub mod result;
pub mod rng;
pub mod rule;
mod seconds;
pub mod sink;
mod soon;
pub mod spec;
pub mod suggest;
pub mod sys;
pub mod time;
pub mod units;

pub use bio::{Bio, BioId, Flags, Op, PAGE_SECTORS, SEGMENT_SECTORS};
pub use cgroup::{IoCostModel, IoCostQos, IoMaxLimits};
pub use device::{Accept, Command, Device, DeviceFacts, DeviceStats, Done, MmcHost, Packing};
pub use direct::Direct;
pub use event::{
    About, Action, Event, EventLog, MemberId, MemberKind, More, Reason, Snapshot, Tap,
};
pub use ioc::{CgroupId, Class, Contexts, Era, IoContext, IoPrio, IocId, Policy, TaskId};
pub use list::{Links, List};
pub use open_list::OpenList;
pub use rbtree::{Descent, Nodes, Tree};
pub use request::{Request, Requests, RqId, Side, State};
pub use rule::Rule;
pub use sink::{BioDone, BioSink, Control, SchedulerWork};
pub use soon::soon;
pub use spec::RunSpec;
pub use sys::{Access, Advice, Errno, OpenFlags, Stat, SyncRange};
pub use time::{Instant, NSEC_PER_MSEC, NSEC_PER_SEC, NSEC_PER_USEC, Nanos, TickClock};
pub use units::{Sector, Sectors};
