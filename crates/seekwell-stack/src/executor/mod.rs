//! The executor inside the kernel model: actors as futures, timers, cores. It knows nothing of what
//! its actors do; whatever they share brings an [`Rt`] along.

mod cores;
mod rt;
mod turns;

pub(crate) use rt::{Actor, Rt, Runs, Shared, Sleep, Timer, idle, parked, pay, sleep_until};
