//! The guardian: a process of its own that puts back what this one cannot, once it is killed.
//!
//! It reads a pipe that nobody writes. The pipe ends when the process that holds its other end
//! does, in whatever way; then what that process wrote down is put back. After an orderly end
//! there is nothing. Signals that are held here are held there, too; the session is its own, so that
//! the terminal's keys and its end are not for it.

use crate::fail::Failure;
use seekwell_host::block::Tree;
use seekwell_host::switch::journal::Records;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longest that a process takes to end once it has begun to.
const PATIENCE: Duration = Duration::from_secs(30);

/// A guardian that waits for the end of this process.
pub struct Guard(Child);

impl Guard {
    /// Starts it. Must come after signals are held, and before the first change.
    pub fn start() -> io::Result<Guard> {
        let mut c = Command::new(std::env::current_exe()?);
        c.args(["switch", "--guard", &std::process::id().to_string()])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        c.spawn().map(Guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Waits, and puts back.
pub fn stand(tree: &Tree, records: &Records, pid: u32) -> Result<(), Failure> {
    // Not a leader of a group, as it was just started by another.
    let _ = rustix::process::setsid();
    let mut input = Vec::new();
    let _ = io::stdin().read_to_end(&mut input);
    let mut left = Vec::new();
    // Programs of a killed run first: they hold files, and do their I/O under what is put back.
    seekwell_host::program::end_of(&pid.to_string());
    for done in records.restore_of(tree, pid, PATIENCE) {
        match done {
            Ok(f) => crate::out::note(false, &super::show::found(&f)),
            Err(e) => left.push(e.to_string()),
        }
    }
    match left.is_empty() {
        true => Ok(()),
        false => Err(Failure::Early(left.join("; "))),
    }
}
