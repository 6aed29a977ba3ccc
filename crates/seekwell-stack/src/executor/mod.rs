//! The executor inside the kernel model: actors as futures, timers and cores. The executor does not
//! depend on the work of the actors. The state that the actors share contains an [`Rt`].

mod cores;
mod rt;
mod turns;

pub(crate) use rt::{Actor, Rt, Runs, Shared, Sleep, Timer, idle, parked, pay, sleep_until};
