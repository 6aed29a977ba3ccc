//! Workload scripts: programs written once, as async functions over [`Machine`], and run unchanged
//! in two worlds, the simulated one on a virtual clock and the real one on files of the host.
//!
//! A script sees lengths, never bytes, and knows neither the clock nor the substrate: time, random
//! numbers, tasks, locks and files come from its machine. What a run measured is collected from the
//! [`Note`]s that scripts leave, in [`Measures`]. [`workloads`] lists the scripts; a [`Plan`] is
//! one of them with checked parameters, ready to run on any machine.

pub mod declared;
pub mod fail;
pub mod fio;
pub mod machine;
pub mod measures;
pub mod note;
pub mod params;
pub mod plan;
pub mod registry;
pub mod scripts;
pub mod testing;

pub use fail::{Context, Fail, Outcome};
pub use machine::{
    Aio, AioDone, AioOp, AioRequest, Barrier, Channel, Entry, Facts, Fd, How, IoContextOf, Join,
    Lock, Machine, Map,
};
pub use measures::{Clock, Measures, Moved, Tally};
pub use note::{Mark, Note, Running};
pub use params::{Kind, Param, ParamError, Params, Profile};
pub use plan::Plan;
pub use registry::{
    Needs, RegisterError, Script, ScriptFn, Workload, register, unknown_workload, workload,
    workloads,
};
pub use seekwell_core::{Access, Advice, Errno, OpenFlags, Stat, SyncRange};
