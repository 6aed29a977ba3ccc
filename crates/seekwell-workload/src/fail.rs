//! Errors of scripts.

use seekwell_core::Errno;
use std::fmt;

/// A call failed and the script cannot continue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fail {
    /// The failed action, with the file and, if known, the offset: "write 16384 bytes at 1048576 of
    /// w0/f17".
    pub what: String,
    /// The error from the machine.
    pub errno: Errno,
}

impl Fail {
    /// Whether the run was stopped from outside (signal, time limit, failure of another task), so
    /// that this task is not the cause.
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

/// Adds the action to the error of a failed call.
pub trait Context<T> {
    /// Adds the text of `what`, which is called only on failure.
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
