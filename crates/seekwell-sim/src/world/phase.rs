//! The start times of a program and of its tasks. They are in phase with the machine's clocks, or
//! the seed determines them.
//!
//! On a real machine, a program starts at a random time between two runs of the flusher and between
//! two clock ticks. A new task starts when its core has woken up. These times are not controlled,
//! so real runs differ. With random phases, runs of the model differ in the same way.
//!
//! Background programs are not affected, because they start with the measured program's clock.

use super::exec::{Script, Shared};
use super::sync::Task;
use rand::RngCore;
use seekwell_core::Nanos;
use seekwell_core::rng::stream;
use seekwell_stack::Call;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Longest wake-up time of a core: the exit latency of the deepest idle state of laptops from 2009
/// to 2012. C6 of Nehalem takes 200 us, and Sandy Bridge about half.
pub(super) const WAKE_UP: Nanos = Nanos(200_000);

/// Delays a script by a random sleep of less than `most`, if the seed determines the start times.
pub(super) fn behind(world: &Shared, task: Task, most: Nanos, script: Script) -> Script {
    let late = {
        let w = world.borrow();
        if !w.phase_drawn {
            return script;
        }
        let mut rng = stream(w.seed, &format!("{} begins", w.path(task)));
        Nanos(rng.next_u64() % most.0.max(1))
    };
    let world = Rc::clone(world);
    Box::pin(async move {
        world.borrow_mut().call(task, Call::Sleep(late));
        poll_fn(|_| match world.borrow_mut().ret(task) {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        })
        .await;
        script.await
    })
}
