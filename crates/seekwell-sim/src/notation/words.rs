//! Parses devices, and complete runs that are given as three texts.

use super::{DeviceSpec, RunSpec, SpecErrors, scheduler, workload};
use seekwell_device::{DeviceError, files_of};

/// Parses a device: `KIND:NAME,parameter=value,...`, or the path of a preset file. The text of the
/// preset file becomes part of the specification, and so does the text of files that it names.
///
/// # Errors
/// Returns the fault with its position in the file.
pub fn device(text: &str) -> Result<DeviceSpec, SpecErrors> {
    let text = text.trim();
    let files = files_of(text).map_err(|e| fault(&e))?;
    Ok(DeviceSpec {
        spec: text.to_owned(),
        files,
    })
}

pub(crate) fn fault(e: &DeviceError) -> SpecErrors {
    SpecErrors::single("", e.to_string())
}

/// Parses a run that is given as on the command line, for example `fs-mark:files=20`,
/// `ssd:x25m-g2-160` and `cfq:slice_idle=0`. All other settings have defaults. To set them, change
/// the fields of the result.
///
/// # Errors
/// Returns all faults of the three texts.
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
