//! The fitted preset, run: predictions to hold against what the device did.

use crate::probe::{Io, Probe};
use crate::sim::SimProbe;
use seekwell_core::Device;
use seekwell_device::hdd::{self, ClosedForms, SeekCurve, SeekForm};
use seekwell_device::{Hdd, HddParams, ParamError, Preset, read_preset};

fn hdd_params(text: &str) -> Result<HddParams, String> {
    let preset =
        Preset::parse("hdd", hdd::DEFS, "fitted preset", text).map_err(|e| e.to_string())?;
    HddParams::from_preset(&preset).map_err(|e| preset.locate(e, "fitted preset").to_string())
}

/// Latencies of these reads on a device, one at a time, ms.
pub(crate) fn latencies<D: Device>(device: D, ios: &[Io], seed: u64) -> Vec<f64> {
    let mut times = vec![];
    match SimProbe::new(device, seed, 0.0).run(ios, 1, &mut times) {
        Ok(()) => times.iter().map(|t| t.ms()).collect(),
        Err(_) => vec![],
    }
}

pub(crate) fn hdd_latencies(text: &str, ios: &[Io], seed: u64) -> Result<Vec<f64>, String> {
    over_phases(&hdd_params(text)?, ios, seed).map_err(|e| e.what)
}

/// Where the platter stands when a read comes is chance: several drives of one kind have less of
/// it than one.
fn over_phases(p: &HddParams, ios: &[Io], seed: u64) -> Result<Vec<f64>, ParamError> {
    let mut all = vec![];
    for i in 1..=8 {
        let seed = seed.wrapping_add(i << 32);
        all.extend(latencies(Hdd::new(p, seed)?, ios, seed));
    }
    Ok(all)
}

/// The same of a disk that knows nothing of this one: usual parameters, this capacity.
pub(crate) fn generic_hdd_latencies(capacity: u64, ios: &[Io], seed: u64) -> Vec<f64> {
    let generic = generic_hdd(capacity);
    generic.map_or(vec![], |p| over_phases(&p, ios, seed).unwrap_or_default())
}

/// Usual parameters of a disk, and this capacity.
pub fn generic_hdd(capacity: u64) -> Option<HddParams> {
    let preset = read_preset(&format!("hdd:hitachi-7k500,capacity={capacity}")).ok()?;
    HddParams::from_preset(&preset).ok()
}

/// Sustained rates at places, MB/s.
pub(crate) fn hdd_rates(text: &str, at: &[(u64, f64)]) -> Result<Vec<f64>, String> {
    let forms = ClosedForms::new(&hdd_params(text)?).map_err(|e| e.what)?;
    Ok(at.iter().map(|r| forms.sustained_mb(r.0)).collect())
}

/// The measured seek table beside the usual form through its track, settle, average and full-
/// stroke times.
pub(crate) fn hdd_seek(text: &str) -> Result<Vec<(f64, f64, f64)>, String> {
    let p = hdd_params(text)?;
    let preset =
        Preset::parse("hdd", hdd::DEFS, "fitted preset", text).map_err(|e| e.to_string())?;
    let num = |key| preset.num(key).map_err(|e| e.what);
    let forms = ClosedForms::new(&p).map_err(|e| e.what)?;
    let form = SeekForm::Fit3 {
        track: num("seek_track")?,
        settle: num("seek_settle")?,
        average: num("seek_average")?,
        full: num("seek_full")?,
    };
    let curve = SeekCurve::new(&form, forms.geometry().cylinders()).map_err(|e| e.what)?;
    let SeekForm::Table(rows) = &p.seek else {
        return Err("no table".into());
    };
    Ok(rows
        .iter()
        .map(|r| (r.0, r.1, curve.ms(r.0 as u32)))
        .collect())
}
