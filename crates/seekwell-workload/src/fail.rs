//! How a script says that it cannot go on.

use seekwell_core::Errno;
use std::fmt;

/// A call failed that the script cannot do without.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fail {
    /// What was being done, with the file and, where it has one, the place in it: "write 16384
    /// bytes at 1048576 of w0/f17".
    pub what: String,
    /// What the machine answered.
    pub errno: Errno,
}

impl Fail {
    /// The run was stopped from outside (signal, time limit, another task's failure): not this
    /// task's fault.
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

/// What a task ends with.
pub type Outcome<T = ()> = Result<T, Fail>;

/// Says what was being done when a call failed.
pub trait Context<T> {
    /// Adds the words; they are made only on failure.
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
