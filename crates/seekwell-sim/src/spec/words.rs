//! Devices as typed, and whole runs of three words.

use super::{DeviceSpec, RunSpec, SpecErrors, scheduler, workload};
use seekwell_device::{DeviceError, files_of};

/// Reads a device: `KIND:NAME,parameter=value,...` or the path of a preset file, whose text (and
/// those of files that it names) is taken in.
///
/// # Errors
/// What is wrong with it, with the place in the file.
pub fn device(text: &str) -> Result<DeviceSpec, SpecErrors> {
    let text = text.trim();
    let files = files_of(text).map_err(|e| fault(&e))?;
    Ok(DeviceSpec {
        spec: text.to_owned(),
        files,
    })
}

pub(super) fn fault(e: &DeviceError) -> SpecErrors {
    SpecErrors::one("", e.to_string())
}

/// A run as the command line names it: `fs-mark:files=20`, `ssd:x25m-g2-160`, `cfq:slice_idle=0`.
/// Everything else as usual; change its fields for more.
///
/// # Errors
/// All that is wrong with the three.
pub fn run(
    workload_text: &str,
    device_text: &str,
    scheduler_text: &str,
) -> Result<RunSpec, SpecErrors> {
    let mut errors = SpecErrors::default();
    let workload = errors.take("workload", workload::typed(workload_text, &[]));
    let device = errors.take("device", device(device_text));
    let scheduler = errors.take("scheduler", scheduler::typed(scheduler_text));
    match (device, scheduler, workload) {
        (Some(d), Some(s), Some(w)) => {
            let mut spec = RunSpec::new(d, s.spec, w);
            spec.label = Some(s.text);
            Ok(spec)
        }
        _ => Err(errors),
    }
}
