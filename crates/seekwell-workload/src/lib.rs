//! Workload scripts: programs written once, as async functions over [`Machine`], and run unchanged
//! in two worlds, the simulated one on a virtual clock and the real one on files of the host.
//!
//! A script sees lengths, never bytes, and knows neither the clock nor the substrate: time, random
//! numbers, tasks, locks and files come from its machine. What a run measured is collected from the
//! [`Note`]s that scripts leave.

pub mod fail;
pub mod machine;
pub mod measures;
pub mod note;

pub use fail::{Context, Fail, Outcome};
pub use machine::{
    Aio, AioDone, AioOp, AioRequest, Barrier, Channel, Entry, Facts, Fd, How, IoContextOf, Join,
    Lock, Machine, Map,
};
pub use measures::{Measures, Moved};
pub use note::{Mark, Note, Running};
pub use seekwell_core::{Access, Advice, Errno, OpenFlags, Stat, SyncRange};
