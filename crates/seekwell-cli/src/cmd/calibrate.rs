//! `seekwell calibrate PATH`: measures a device and writes a preset.

use crate::cli::Calibrate;
use crate::fail::Failure;
use crate::out::{Out, note, width};
use crate::progress::Budget;
use seekwell_calibrate::{
    Fit, Options, Probe, SimProbe, Stop, calibrate, kind_of, preset, refusal,
};
use seekwell_core::Device;
use seekwell_device::open;
use seekwell_host::probe::RealProbe;
use seekwell_host::stop::{self, Signals};
use seekwell_report::calibrate as report;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Mean delay between the completion in a modelled device and the program's notice of it, in ns.
const HOST_NOISE_NS: f64 = 3_000.0;

/// Returns the name of the preset: the user's name, or the last part of the path, in letters that
/// need no quoting.
fn name_of(a: &Calibrate) -> String {
    let last = || {
        let stem = a.path.file_stem().map(|s| s.to_string_lossy().into_owned());
        stem.unwrap_or_default()
    };
    let name = a.name.clone().unwrap_or_else(last);
    let name: String = name
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect();
    if name.is_empty() {
        "device".into()
    } else {
        name
    }
}

/// Returns the name of a file that does not exist yet in the current directory.
fn fresh(kind: &str, name: &str) -> PathBuf {
    let first = PathBuf::from(format!("{kind}-{name}.toml"));
    let numbered = (2..).map(|i| PathBuf::from(format!("{kind}-{name}-{i}.toml")));
    std::iter::once(first)
        .chain(numbered)
        // A dangling link counts as existing.
        .find(|p| p.symlink_metadata().is_err())
        .unwrap_or_default()
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let mut out = Out::open(Some(path))?;
    out.text(text)?;
    out.done()
}

/// Opens a modelled device, if the path names one. The device runs in virtual time and has the
/// noise of a host.
fn modelled(a: &Calibrate) -> Option<Result<SimProbe<Box<dyn Device + Send>>, Failure>> {
    let name = a
        .path
        .to_str()
        .filter(|n| n.contains(':') && !a.path.exists())?;
    let device = open(name, a.seed).map_err(|e| Failure::input(e.to_string()));
    Some(device.map(|d| {
        let depth = d.facts().depth;
        let probe = SimProbe::new(d, a.seed, HOST_NOISE_NS).with_facts(|f| {
            name.clone_into(&mut f.name);
            f.depth = Some(depth);
        });
        if a.allow_write {
            probe.allow_write()
        } else {
            probe
        }
    }))
}

/// Probes the device and writes the result.
pub fn run(a: &Calibrate, quiet: bool) -> Result<(), Failure> {
    let (output, plot) = (a.output.as_deref(), a.plot.as_deref());
    for file in [output, plot] {
        Out::check(file)?;
        Out::apart(file, [&*a.path])?;
    }
    Out::apart(output, plot)?;
    if output.is_none() {
        let here = seekwell_files::check_directory(Path::new("."));
        here.map_err(|source| Failure::Output {
            what: "no preset can be written here; name a file with --output".to_owned(),
            source,
        })?;
    }
    let model = modelled(a).transpose()?;
    let stop = Arc::new(stop::Stop::new(None, true));
    let signals =
        Signals::catch().map_err(|e| Failure::input(format!("signals cannot be caught: {e}")))?;
    let real = || RealProbe::open(&a.path, a.allow_write, stop);
    let mut probe: Box<dyn Probe> = match model {
        Some(m) => Box::new(m),
        None => Box::new(real().map_err(|e| Failure::input(e.to_string()))?),
    };
    let (fit, busy) = fitted(&mut *probe, a.budget, a.seed, quiet);
    drop(signals);
    finish(a, quiet, &fit, busy)
}

/// Calibrates the device. The second value is true if something disturbed the measurement.
fn fitted(probe: &mut dyn Probe, budget_s: f64, seed: u64, quiet: bool) -> (Fit, bool) {
    let options = Options { budget_s, seed };
    let bar = Budget::new(quiet, budget_s);
    let mut fit = calibrate(probe, options, &mut |p| bar.at(p.stage, p.used_s));
    drop(bar);
    let disturbed = probe.disturbed();
    let busy = disturbed.is_some();
    fit.notes.extend(disturbed);
    (fit, busy)
}

/// Returns the failure for a fit that does not agree with the device.
fn refused(what: &str, why: &str, busy: bool) -> Failure {
    let text = format!("{what}: no preset, because {why}; nothing was written");
    match busy {
        true => Failure::NotJudged(format!(
            "{text}. The machine or the device was busy: run the command again when it is idle"
        )),
        false => Failure::Input(text),
    }
}

/// Calibrates a device by reading it, and writes the preset to the current directory. Returns the
/// path of the preset, in the form in which commands accept it.
pub fn preset_of(path: &Path, quiet: bool) -> Result<String, Failure> {
    const BUDGET_S: f64 = 180.0;
    let stop = Arc::new(stop::Stop::new(None, true));
    let signals =
        Signals::catch().map_err(|e| Failure::input(format!("signals cannot be caught: {e}")))?;
    let probe = RealProbe::open(path, false, stop);
    let mut probe = probe.map_err(|e| Failure::input(e.to_string()))?;
    let (fit, busy) = fitted(&mut probe, BUDGET_S, 1, quiet);
    drop(signals);
    if fit.cut == Some(Stop::Interrupted) {
        return Err(Failure::Interrupted {
            signal: stop::signal().unwrap_or(2),
            what: "stopped in the calibration: nothing was written".to_owned(),
        });
    }
    let what = path.display().to_string();
    if let Some(why) = refusal(&fit) {
        return Err(refused(&what, &why, busy));
    }
    let name = path.file_stem().map(|s| s.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let (Some(text), Some(kind)) = (preset(&fit, &name), kind_of(&fit)) else {
        return Err(refused(&what, &fit.because, busy));
    };
    let to = fresh(kind, &name);
    write(&to, &text)?;
    Ok(format!("./{}", to.display()))
}

fn finish(a: &Calibrate, quiet: bool, fit: &Fit, busy: bool) -> Result<(), Failure> {
    let name = name_of(a);
    let misfit = refusal(fit);
    let text = preset(fit, &name).filter(|_| misfit.is_none());
    let mut out = Out::open(None)?;
    if a.json {
        let mut doc = report::json(fit, text.as_deref());
        doc["refused"] = misfit.clone().into();
        out.json(&doc)?;
    } else {
        out.text(&report::text(fit, width()))?;
    }
    let mut kept = String::from("there are too few measurements for a preset");
    if let (Some(text), Some(kind)) = (&text, kind_of(fit)) {
        let path = a.output.clone().unwrap_or_else(|| fresh(kind, &name));
        write(&path, text)?;
        let shown = path.display().to_string();
        // Without a slash, the name would mean an embedded preset.
        let shown = if shown.contains('/') {
            shown
        } else {
            format!("./{shown}")
        };
        kept = format!("the measurements so far are in {shown}");
        // This is not printed for standard output or a pipe.
        if !a.json && path.is_file() {
            out.line(&format!(
                "\nWrote {shown}. Look at it: seekwell devices {shown}; use it: seekwell compare \
                 --device {shown}"
            ))?;
        }
    }
    if let Some(plot) = &a.plot {
        write(plot, &report::svg(fit))?;
    }
    out.done()?;
    match &fit.cut {
        Some(Stop::Interrupted) => Err(Failure::Interrupted {
            signal: stop::signal().unwrap_or(2),
            what: format!("interrupted; {kept}"),
        }),
        _ if misfit.is_some() => Err(refused(
            &a.path.display().to_string(),
            &misfit.unwrap_or_default(),
            busy,
        )),
        Some(Stop::Device(why)) => Err(Failure::input(format!("{why}; {kept}"))),
        Some(Stop::Budget) if text.is_none() => Err(Failure::input(format!(
            "{}: no preset, because the time budget ended too early; increase --budget",
            a.path.display()
        ))),
        Some(Stop::Budget) => {
            let n = "the time budget ended before all measurements; the preset marks the missing \
                     ones. Increase --budget";
            note(quiet, n);
            Ok(())
        }
        None if text.is_none() => Err(Failure::input(format!(
            "{}: no preset, because no device model fits: {}",
            a.path.display(),
            fit.because
        ))),
        None => Ok(()),
    }
}
