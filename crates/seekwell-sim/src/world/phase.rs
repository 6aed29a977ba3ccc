//! When a program and each of its tasks begin: with the machine's clocks, or as the seed draws it.
//!
//! On a real machine a program begins at any moment between two looks of the flusher and between two
//! ticks of the clock, and a new task when the core that it gets has woken up. Nobody chooses
//! either, so runs of one setting differ by them; drawn, runs of the model do.
//!
//! Left out: programs beside the measured one, which begin with its clock.

use super::exec::{Script, Shared};
use super::sync::Task;
use rand::RngCore;
use seekwell_core::Nanos;
use seekwell_core::rng::stream;
use seekwell_stack::Call;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// A core takes up to so long to wake up: the exit latency of the deepest idle state of laptops of
/// 2009 to 2012 (C6 of Nehalem 200 us; Sandy Bridge about half).
pub(super) const WAKE_UP: Nanos = Nanos(200_000);

/// The script, behind a sleep of less than `most`, if the seed draws when tasks begin.
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
