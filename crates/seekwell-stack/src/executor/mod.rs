//! The executor inside the kernel model: actors as futures, timers, cores. It does not depend on
//! what the actors do; their shared state contains an [`Rt`].

mod cores;
mod rt;
mod turns;

pub(crate) use rt::{Actor, Rt, Runs, Shared, Sleep, Timer, idle, parked, pay, sleep_until};
