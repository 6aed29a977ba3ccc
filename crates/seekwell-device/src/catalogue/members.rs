//! Devices that are members of an array.

use super::{build, defs, read_preset};
use crate::error::DeviceError;
use crate::preset::{Preset, Source};
use crate::raid::LeafOptions;
use rand::RngCore;
use seekwell_core::{Device, rng};

/// Opens a member of an array as a device.
pub fn open_member(
    text: &str,
    seed: u64,
    options: LeafOptions,
) -> Result<Box<dyn Device + Send>, DeviceError> {
    let mut preset = read_preset(text)?;
    let defs = defs(preset.kind);
    let silent = |p: &Preset, key: &str| {
        p.get(key)
            .is_none_or(|p| !matches!(p.source, Source::Override))
    };
    if matches!(preset.kind, "hdd" | "smr") {
        if options.rpm_spread > 0.0 && silent(&preset, "rpm_error") {
            let draw = rng::stream(seed, "spindle").next_u64() % 20_001;
            let ppm = (draw as f64 / 10_000.0 - 1.0) * options.rpm_spread;
            // A value within the permitted range is always accepted.
            let _ = preset.set(defs, "rpm_error", &format!("{ppm}"));
        }
        if let Some(on) = options
            .write_cache
            .filter(|_| silent(&preset, "write_cache"))
        {
            let _ = preset.set(defs, "write_cache", if on { "yes" } else { "no" });
        }
    }
    build(&preset, text, seed)
}
