//! Random start times of a program and of its tasks, for machines with the setting `phase=drawn`.
//! With the default `phase=boot`, there is no random delay.
//!
//! On a real machine, a program starts at a random time between two runs of the flusher and between
//! two clock ticks. A new task starts when its core has woken up. These times are not controlled,
//! so real runs differ. With `phase=drawn`, simulated runs with different seeds differ in the same
//! way.
//!
//! Background programs are not delayed, because they start with the measured program's clock.

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

/// Puts a random sleep of less than `most` before a script, if the machine has the setting
/// `phase=drawn`. The seed and the task's path determine the length of the sleep. With any other
/// setting, the script is returned unchanged.
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
