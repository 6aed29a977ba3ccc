//! The modelled machine: all state of a kernel, the effects of completed bios, and the ways in
//! which actors wait for changes. The modules above this one contain the actions of the actors.

mod call;
mod dirty;
mod files;
mod io;
mod landed;
mod log;
mod pages;
mod threads;
mod wait;
mod world;

pub use call::{AioId, Call, Fd, MapId, Outcome, Ret, TaskConfig};
pub(crate) use dirty::Work;
pub(crate) use files::{Aio, DEVICE_FD, File, Map, Notify};
pub(crate) use io::{NIL, Target, Want, after_submit};
pub(crate) use landed::Written;
pub(crate) use log::{Checkpoint, Meta, Txn};
pub(crate) use threads::{CONVERTER, FLUSHER, JOURNAL, PDFLUSH, PDFLUSH_PERIODIC};
pub use threads::{FIRST_USER_TASK, kernel_thread_name};
pub(crate) use wait::{Q, lock, wait, wait_group};
pub(crate) use world::{Task, World};

/// The machine, as shared by its actors.
pub(crate) type K = crate::executor::Shared<World>;
