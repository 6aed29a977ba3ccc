//! Runs a workload: checks first whether it can start, then runs its script or the real SQLite
//! library.

use crate::place;
use crate::run::{HostError, Options, Ran, run_script};
use crate::sqlite;
use seekwell_workload::{Needs, Plan};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Checks whether a run can start. It writes nothing.
pub fn check(plan: &Plan, o: &Options) -> Result<(), HostError> {
    let name = || plan.name().to_owned();
    match (plan.needs(), &o.device) {
        (Needs::Device, None) => return Err(HostError::NoDevice(name())),
        (Needs::Directory, Some(_)) => {
            let all = seekwell_workload::workloads();
            let raw = all.iter().filter(|w| w.needs == Needs::Device);
            let raw: Vec<&str> = raw.map(|w| w.name).collect();
            return Err(HostError::NotRaw(name(), raw.join(", ")));
        }
        (_, Some(_)) if plan.destroys() => return Err(HostError::Destroys(plan.title())),
        (_, Some(path)) => readable(path)?,
        (_, None) => {}
    }
    place::usable(&o.dir)?;
    enough_space(plan, &o.dir)
}

fn readable(path: &Path) -> Result<(), HostError> {
    let bad = |source| HostError::Raw {
        path: path.to_owned(),
        source,
    };
    // The type is checked before the file is opened, because opening a pipe would wait for its
    // other end.
    let kind = std::fs::metadata(path).map_err(bad)?.file_type();
    if !(kind.is_file() || kind.is_block_device()) {
        return Err(bad(std::io::Error::other(
            "is neither a block device nor a file",
        )));
    }
    std::fs::File::open(path).map(drop).map_err(bad)
}

/// Runs a workload.
pub fn run_real(plan: &Plan, o: &Options) -> Result<Ran, HostError> {
    check(plan, o)?;
    let mut ran = match plan.name() {
        // The SQLite library runs the workload, and not the script that imitates the library.
        sqlite::WORKLOAD => sqlite::run(plan, o)?,
        name => {
            let script = plan.clone();
            run_script(name, o, move |m| script.run(m))?
        }
    };
    ran.record.params = plan.params();
    Ok(ran)
}

/// Checks that there is enough free space, so that the run does not fill the user's disk.
fn enough_space(plan: &Plan, dir: &Path) -> Result<(), HostError> {
    let Ok(s) = rustix::fs::statvfs(dir) else {
        // A missing directory is reported later, when the run creates its own directory.
        return Ok(());
    };
    let (free, need) = (s.f_bavail.saturating_mul(s.f_frsize), plan.space());
    if free < need {
        return Err(HostError::Space {
            dir: dir.to_owned(),
            free: free / 1_000_000,
            need: need.div_ceil(1_000_000),
            name: plan.name().to_owned(),
        });
    }
    Ok(())
}
