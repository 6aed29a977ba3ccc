//! The error type of workload scripts.

use seekwell_core::Errno;
use std::fmt;

/// The error of a call after which the script cannot continue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fail {
    /// The action that failed, with the file and, if known, the offset: "write 16384 bytes at
    /// 1048576 of w0/f17".
    pub what: String,
    /// The error number of the call.
    pub errno: Errno,
}

impl Fail {
    /// Returns true if the run was stopped by a signal, by a time limit or by the failure of
    /// another task. Then this task is not the cause.
    pub fn stopped(&self) -> bool {
        self.errno == Errno::ECANCELED
    }
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.errno)
    }
}

impl std::error::Error for Fail {}

/// The result of a task.
pub type Outcome<T = ()> = Result<T, Fail>;

/// Adds a description of the action to the error of a failed call.
pub trait Context<T> {
    /// Adds the text that `what` returns. `what` is called only if the call failed.
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Outcome<T>;
}

impl<T> Context<T> for Result<T, Errno> {
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Outcome<T> {
        self.map_err(|errno| Fail {
            what: what().into(),
            errno,
        })
    }
}
