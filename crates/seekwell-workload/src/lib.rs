//! Workload scripts: programs written once as async functions over [`Machine`], and run unchanged
//! in two worlds. The simulated world has a virtual clock, and the real one uses files of the host.
//!
//! A script sees lengths, never bytes, and knows neither clock nor world: time, random numbers,
//! tasks, locks and files come from its machine. The measures of a run are collected from the
//! [`Note`]s of its scripts, in [`Measures`]. [`workloads`] lists the scripts. A [`Plan`] is a
//! script with checked parameters, ready to run on any machine.

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
