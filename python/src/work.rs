//! Runs long work without the interpreter's lock, on a separate thread. Ctrl-C can end the work,
//! and other Python threads continue.

use crate::scheduler::watch;
use pyo3::prelude::*;
use seekwell::Cancel;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Interval at which signals and overdue Python callbacks are checked.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the work. If a signal handler raises (Ctrl-C), sets the token, waits for the work to end,
/// and raises the same exception. The work ends soon after the token is set, with its results so
/// far.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    cancel: &Cancel,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    py.detach(|| {
        std::thread::scope(|scope| {
            let (give, take) = mpsc::sync_channel(1);
            let worker = scope.spawn(move || {
                // Sending cannot fail, because the receiver lives as long as this scope.
                let _ = give.send(work());
            });
            let mut raised: Option<PyErr> = None;
            loop {
                match take.recv_timeout(LOOK) {
                    Ok(done) => return raised.map_or(Ok(done), Err),
                    Err(RecvTimeoutError::Disconnected) => {
                        let e = worker.join().err();
                        std::panic::resume_unwind(e.unwrap_or_else(|| Box::new("gone")));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
                Python::attach(|py| {
                    watch::overdue(py, raised.is_some());
                    if raised.is_none()
                        && let Err(e) = py.check_signals()
                    {
                        cancel.set();
                        raised = Some(e);
                    }
                });
            }
        })
    })
}
