//! Workload scripts. A script is an async function that uses the interface [`Machine`]. The same
//! script runs on a simulated machine with a virtual clock, and on a host with real files.
//!
//! A script passes lengths to its machine, never contents. It obtains time, random numbers, tasks,
//! locks and files only from its machine, so it cannot depend on the kind of machine. Scripts send
//! [`Note`]s, and [`Measures`] collects them as the results of the run. [`workloads`] lists the
//! scripts. A [`Plan`] is a script with checked parameters, ready to run on any machine.

pub mod declared;
pub mod fail;
pub mod fio;
pub mod machine;
pub mod measures;
pub mod note;
pub mod params;
pub mod plan;
pub mod registry;
pub mod row;
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
    RegisterError, Script, ScriptFn, register, unknown_workload, workload, workloads,
};
pub use row::{Needs, Workload};
pub use seekwell_core::{Access, Advice, Errno, OpenFlags, Stat, SyncRange};
