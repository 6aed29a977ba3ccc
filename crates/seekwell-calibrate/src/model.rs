//! Runs the fitted preset, to compare its predictions with the device.

use crate::probe::{Io, Probe};
use crate::sim::SimProbe;
use rand::RngCore;
use seekwell_core::{Device, rng};
use seekwell_device::hdd::{self, ClosedForms, SeekCurve, SeekForm};
use seekwell_device::{Hdd, HddParams, ParamError, Preset};

fn hdd_params(text: &str) -> Result<HddParams, String> {
    let preset =
        Preset::parse("hdd", hdd::DEFS, "fitted preset", text).map_err(|e| e.to_string())?;
    HddParams::from_preset(&preset).map_err(|e| preset.locate(e, "fitted preset").to_string())
}

/// Number of runs of the same reads on a model.
const ROUNDS: u64 = 8;

/// Simulates the reads on a device one at a time and returns their latencies, ms. Before each read
/// it waits for a random time between 0 and `turn_ns`.
fn latencies<D: Device>(device: D, ios: &[Io], turn_ns: u64, seed: u64) -> Vec<f64> {
    let mut rng = rng::stream(seed, "angles");
    let mut probe = SimProbe::new(device, seed, 0.0);
    let (mut times, mut all) = (vec![], Vec::with_capacity(ios.len()));
    for io in ios {
        let wait = rng.next_u64() % turn_ns.max(1);
        let ran = probe
            .sleep(wait)
            .and_then(|()| probe.run(&[*io], 1, &mut times));
        match ran {
            Ok(()) => all.extend(times.iter().map(|t| t.ms())),
            Err(_) => break,
        }
    }
    all
}

/// Returns the latencies of the reads on the fitted disk, ms, for several rounds.
pub(crate) fn hdd_latencies(text: &str, ios: &[Io], seed: u64) -> Result<Vec<Vec<f64>>, String> {
    rounds(&hdd_params(text)?, ios, seed).map_err(|e| e.what)
}

/// Simulates the reads several times. The addresses are those of the reads on the device, so that
/// seek distances do not differ by chance. The angle of the platter at the start of each read is
/// random. With back-to-back reads, a model with the true parameters would reproduce the device to
/// the microsecond. All other models would be compared with a single random outcome.
fn rounds(p: &HddParams, ios: &[Io], seed: u64) -> Result<Vec<Vec<f64>>, ParamError> {
    let turn_ns = (60e9 / p.rpm) as u64;
    let round = |i: u64| {
        let seed = seed.wrapping_add(i << 32);
        Ok(latencies(Hdd::new(p, seed)?, ios, turn_ns, seed))
    };
    (1..=ROUNDS).map(round).collect()
}

/// Returns the latencies of the reads on the null model, ms: a disk of this capacity with typical
/// parameters.
pub(crate) fn generic_hdd_latencies(capacity: u64, ios: &[Io], seed: u64) -> Vec<f64> {
    let all = generic_hdd(capacity).and_then(|p| rounds(&p, ios, seed).ok());
    all.unwrap_or_default().concat()
}

/// Typical parameters of desktop disks from 2005 to 2020, in round numbers. They are not from a
/// preset, so that no preset is compared with itself. All other parameters have the defaults of the
/// model.
const USUAL: &str = r#"
kind = "hdd"
name = "usual"
summary = "round figures of desktop disks"

[params]
rpm = { value = 7200, unit = "rpm", source = "estimate: most desktop disks" }
surfaces = { value = 4, unit = "surfaces", source = "estimate: two platters" }
outer_track = { value = 1500, unit = "sectors", source = "estimate: about 90 MB/s" }
inner_ratio = { value = 0.5, unit = "ratio", source = "estimate" }
seek_track = { value = 1, unit = "ms", source = "estimate" }
seek_settle = { value = 1.5, unit = "ms", source = "estimate" }
seek_average = { value = 9, unit = "ms", source = "estimate: data sheets say 8 to 10" }
seek_full = { value = 18, unit = "ms", source = "estimate: twice the average" }
head_switch = { value = 1, unit = "ms", source = "estimate" }
overhead = { value = 0.2, unit = "ms", source = "estimate" }
"#;

/// Returns the parameters of a typical disk with this capacity, in sectors.
pub fn generic_hdd(capacity: u64) -> Option<HddParams> {
    let size = format!(
        "capacity = {{ value = {capacity}, unit = \"sectors\", source = \"estimate: of the device at hand\" }}\n"
    );
    let text = format!("{USUAL}{size}");
    hdd_params(&text).ok()
}

/// Returns the sustained rates of the fitted disk at the given addresses, MB/s.
pub(crate) fn hdd_rates(text: &str, at: &[(u64, f64)]) -> Result<Vec<f64>, String> {
    let forms = ClosedForms::new(&hdd_params(text)?).map_err(|e| e.what)?;
    Ok(at.iter().map(|r| forms.sustained_mb(r.0)).collect())
}

/// Returns (distance in cylinders, measured seek time in ms, seek time of the standard curve in
/// ms). The standard curve is given by the track, settle, average and full-stroke times of the
/// preset.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_disk_differs_from_every_preset() {
        let p = generic_hdd(976_773_168).expect("it reads");
        let all = seekwell_device::catalogue();
        for entry in all.iter().filter(|e| e.name.starts_with("hdd:")) {
            let preset = seekwell_device::read_preset(&entry.name).expect("a preset");
            let other = HddParams::from_preset(&preset).expect("a disk");
            assert_ne!(p.seek, other.seek, "{}", entry.name);
        }
    }
}
