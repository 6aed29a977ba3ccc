//! The part of the substrate `kernel` that runs inside the guest: it makes one run as on a host.

use crate::fail::Failure;
use crate::guests::{INSIDE_SPEC, INSIDE_STARTED};
use seekwell::{Cancel, RunSpec};
use seekwell_guest::{DISK, mark};
use seekwell_lab::conduct::{Job, NoRun, Runner};
use seekwell_lab::host::{Bench, DeviceOf};
use seekwell_lab::results::RunKey;
use std::io::Write;
use std::path::Path;

/// Makes the run of the specification and prints its record.
pub fn run() -> Result<(), Failure> {
    let text = std::env::var(INSIDE_SPEC).map_err(|_| {
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
    let _ = mark(INSIDE_STARTED);
}
