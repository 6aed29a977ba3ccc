//! The guard: a separate process that restores the settings if this process is killed.
//!
//! The guard reads a pipe that nobody writes to. The pipe ends when this process ends, for any
//! reason. The guard then restores the settings that this process recorded and has not restored
//! itself. Signals that are held in this process are held in the guard too. The guard has its own
//! session, so that keys of the terminal, and the end of the terminal, do not affect it.

use crate::fail::Failure;
use seekwell_host::block::Tree;
use seekwell_host::switch::journal::Records;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Maximum time to wait for the end of the killed process.
const PATIENCE: Duration = Duration::from_secs(30);

/// The guard of this process.
pub struct Guard(Child);

impl Guard {
    /// Starts the guard. Call this after signals are held, and before the first change.
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

/// Waits for the end of the pipe, and restores the settings of process `pid`.
pub fn stand(tree: &Tree, records: &Records, pid: u32) -> Result<(), Failure> {
    // This cannot fail, because a new child process is not a group leader.
    let _ = rustix::process::setsid();
    let mut input = Vec::new();
    let _ = io::stdin().read_to_end(&mut input);
    let mut left = Vec::new();
    // Programs of a killed run are ended first. They hold files, and their I/O should not run under
    // the restored settings.
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
