//! A task is a thread that drives its own future.

use super::HostMachine;
use crate::shared::Shared;
use crate::sys::{set_ioprio, set_nice};
use seekwell_core::{Class, Errno};
use seekwell_workload::{Fail, How, IoContextOf, Join, Outcome};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

/// Runs a future that waits only in system calls.
pub fn block_on<T>(future: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let mut future = pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(r) => r,
        Poll::Pending => Err(Fail {
            what: "a script waits for something other than its machine".to_owned(),
            errno: Errno::EINVAL,
        }),
    }
}

/// Runs a script as the task of the calling thread. An error or a panic stops the run.
pub fn run<F, Fut>(machine: HostMachine, script: F) -> Outcome
where
    F: FnOnce(HostMachine) -> Fut,
    Fut: Future<Output = Outcome>,
{
    let shared = Arc::clone(&machine.shared);
    let path = machine.path.clone();
    let ended = catch_unwind(AssertUnwindSafe(|| block_on(script(machine))));
    let outcome = ended.unwrap_or_else(|p| {
        let words = p.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| p.downcast_ref::<&str>().copied());
        Err(Fail {
            what: format!("the script failed: {}", words.unwrap_or("panic")),
            errno: Errno::ECANCELED,
        })
    });
    if let Err(f) = &outcome
        && (!f.stopped() || !shared.stop.is_raised())
    {
        shared.stop.raise(format!("{path}: {f}"));
    }
    outcome
}

/// Starts a thread for a task.
pub fn start<F, Fut>(parent: &HostMachine, how: How, script: F) -> Result<Join, Errno>
where
    F: FnOnce(HostMachine) -> Fut + Send + 'static,
    Fut: Future<Output = Outcome> + 'static,
{
    let shared = Arc::clone(&parent.shared);
    let path = format!("{}/{}", parent.path, how.name);
    if how.io_context == IoContextOf::Share {
        shared.warn("tasks that share an io context have separate ones on a host".to_owned());
    }
    // The kernel stores at most 15 bytes of a thread's name.
    let name: String = how.name.chars().take(15).collect();
    let thread = std::thread::Builder::new().name(name).spawn(move || {
        be(&shared, &path, &how);
        let machine = HostMachine::new(shared, path);
        if how.ioprio.class != Class::None {
            machine.set_priority(how.ioprio);
        }
        run(machine, script)
    });
    let thread = thread.map_err(crate::errno)?;
    let mut all = parent.shared.tasks.lock();
    let all = all.as_mut().unwrap_or_else(|e| e.get_mut());
    all.push(Some(thread));
    Ok(Join((all.len() - 1) as u32))
}

/// Sets the requested priorities. If the host rejects them, there is only a warning, because the
/// run is still useful.
fn be(shared: &Shared, path: &str, how: &How) {
    if how.ioprio.class != Class::None
        && let Err(e) = set_ioprio(how.ioprio)
    {
        shared.warn(format!("{path}: I/O priority {} refused: {e}", how.ioprio));
    }
    if how.nice != 0
        && let Err(e) = set_nice(how.nice)
    {
        shared.warn(format!("{path}: nice value {} refused: {e}", how.nice));
    }
}

/// Waits for the end of a task's thread. Returns EINVAL if it was joined before.
pub fn join(shared: &Shared, task: u32) -> Outcome {
    let thread = {
        let mut all = shared.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_mut(task as usize).and_then(Option::take)
    };
    let Some(thread) = thread else {
        return Err(Fail {
            what: format!("join task {task}"),
            errno: Errno::EINVAL,
        });
    };
    // `run` catches the panics of a script.
    thread.join().unwrap_or_else(|_| {
        Err(Fail {
            what: format!("task {task} failed"),
            errno: Errno::ECANCELED,
        })
    })
}

/// Joins all threads that were not joined by the script.
pub fn join_all(shared: &Shared) {
    for task in 0.. {
        let known = shared
            .tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len();
        if task >= known {
            return;
        }
        // A failure has already stopped the run and was recorded then.
        let _ = join(shared, task as u32);
    }
}
