//! The part of the substrate `kernel` that runs inside the guest: it makes one run as on a host.

use crate::fail::Failure;
use seekwell::{Cancel, RunSpec};
use seekwell_guest::{DISK, PROGRAM, mark};
use seekwell_lab::conduct::{Job, NoRun, Runner};
use seekwell_lab::host::{Bench, DeviceOf};
use seekwell_lab::results::RunKey;
use std::io::Write;
use std::path::Path;

/// The command of the guest.
pub const COMMAND: [&str; 3] = [PROGRAM, "guest", "inside"];
/// The environment variable with the specification in JSON.
pub const SPEC: &str = "SEEKWELL_GUEST_SPEC";
/// The mark that is written when the clock of the record starts.
pub const STARTED: u64 = 1;

/// Makes the run of the specification and prints its record.
pub fn run() -> Result<(), Failure> {
    let text = std::env::var(SPEC).map_err(|_| {
        Failure::input(
            "this command runs inside a guest: use `seekwell compare --substrate kernel`",
        )
    })?;
    let spec: RunSpec = serde_json::from_str(&text)
        .map_err(|e| Failure::input(format!("the specification cannot be read: {e}")))?;
    let on = DeviceOf::find(Path::new(DISK)).map_err(Failure::input)?;
    let bench = Bench::new(on, None, 0.0, "guest").on_start(started);
    let job = Job {
        key: RunKey::default(),
        treatment: 0,
        place: 0,
        spec,
    };
    let ran = bench.run(&job, &Cancel::new(), &mut |_| {});
    let measured = ran.map_err(|e| match e {
        NoRun::Failed(why) | NoRun::Cut(why, _) => Failure::input(why),
    })?;
    let record = measured
        .record
        .ok_or_else(|| Failure::input("the run has no record"))?;
    let text = serde_json::to_vec(&record).map_err(|e| Failure::input(e.to_string()))?;
    let written = std::io::stdout().write_all(&text);
    written.map_err(|source| Failure::Output {
        what: "the record cannot be written".to_owned(),
        source,
    })
}

fn started() {
    // Without the mark, the record has no figures of the disk.
    let _ = mark(STARTED);
}
