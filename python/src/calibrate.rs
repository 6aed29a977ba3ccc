//! Fits a device model to a modelled disk by probing the disk, in virtual time.

use crate::table::{Table, floats, ints, some_floats, texts};
use crate::{fault, work};
use pyo3::prelude::*;
use seekwell::Cancel;
use seekwell::sdk::core::Device;
use seekwell::sdk::device::open;
use seekwell_calibrate::{
    Facts, Fit, Io, Known, Options, Probe, SimProbe, Stop, Timed, Val, preset,
};

/// Mean delay between a completion and the program that waits for it, ns. The binary uses the same
/// value.
const HOST_NOISE_NS: f64 = 3_000.0;

/// The results of probing a device.
#[pyclass(frozen, module = "seekwell")]
pub struct Calibration {
    fit: Fit,
    preset: Option<String>,
}

#[pymethods]
impl Calibration {
    /// The preset as the text of a TOML file. The path of such a file can be used as a device.
    /// None: the results were not sufficient for a preset.
    #[getter]
    fn preset(&self) -> Option<&str> {
        self.preset.as_deref()
    }
    /// The kind of the device ("hdd", "ssd"), and the reason for this conclusion.
    #[getter]
    fn kind(&self) -> (String, &str) {
        (self.fit.kind.to_string(), &self.fit.because)
    }
    /// Time that the probing took on the device's clock, s.
    #[getter]
    fn seconds(&self) -> f64 {
        self.fit.seconds
    }
    /// Number of I/Os that were sent.
    #[getter]
    fn ios(&self) -> u64 {
        self.fit.ios
    }
    /// The fitted parameters, one row per parameter: value, unit, method, 95 % interval, number of
    /// samples, and whether the value was measured, reported by the device, or is unknown.
    fn parameters(&self) -> PyResult<Table> {
        // The last estimate of a parameter is used.
        let every = &self.fit.estimates;
        let last = |i: usize, key: &str| !every[i + 1..].iter().any(|e| e.key == key);
        let all = every.iter().enumerate();
        let all: Vec<_> = all.filter(|(i, e)| last(*i, e.key)).map(|e| e.1).collect();
        let value = |v: &Val| match v {
            Val::Num(x) => x.to_string(),
            Val::Flag(b) => b.to_string(),
            Val::Word(w) => w.to_string(),
            Val::Pairs(p) => format!("{p:?}"),
        };
        let known = |k: &Known| match k {
            Known::Measured => "measured",
            Known::Stated => "stated",
            Known::Unknown => "not measured",
        };
        Table::of(vec![
            ("name", texts(all.iter().map(|e| e.key.to_string()))),
            ("value", texts(all.iter().map(|e| value(&e.value)))),
            ("unit", texts(all.iter().map(|e| e.unit.to_string()))),
            ("method", texts(all.iter().map(|e| e.method.to_string()))),
            (
                "low_95",
                some_floats(all.iter().map(|e| e.interval.map(|i| i.0))),
            ),
            (
                "high_95",
                some_floats(all.iter().map(|e| e.interval.map(|i| i.1))),
            ),
            ("samples", ints(all.iter().map(|e| e.samples as u64))),
            ("known", texts(all.iter().map(|e| known(&e.known)))),
        ])
    }
    /// The measured curves, one row per point. `x_name` and `y_name` contain the units.
    fn curves(&self) -> PyResult<Table> {
        let points = || {
            let each = |c: &'_ seekwell_calibrate::Curve| c.points.clone();
            self.fit.curves.iter().flat_map(move |c| {
                let names = (c.title.to_string(), c.x.to_string(), c.y.to_string());
                each(c).into_iter().map(move |p| (names.clone(), p))
            })
        };
        Table::of(vec![
            ("title", texts(points().map(|p| p.0.0))),
            ("x_name", texts(points().map(|p| p.0.1))),
            ("y_name", texts(points().map(|p| p.0.2))),
            ("x", floats(points().map(|p| p.1.0))),
            ("measured", floats(points().map(|p| p.1.1))),
            ("fitted", floats(points().map(|p| p.1.2))),
        ])
    }
    /// Notes about the results.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.fit.notes.iter().map(ToString::to_string).collect()
    }
    fn __repr__(&self) -> String {
        let (kind, name) = (&self.fit.kind, &self.fit.facts.name);
        format!(
            "<seekwell.Calibration: {name} is {kind}, {} I/Os>",
            self.fit.ios
        )
    }
}

/// Calibrates a device of the registry, as `seekwell calibrate NAME` does.
#[pyfunction]
#[pyo3(signature = (device, name, seed, budget_s, allow_write))]
pub fn calibrate(
    py: Python<'_>,
    device: &str,
    name: &str,
    seed: u64,
    budget_s: f64,
    allow_write: bool,
) -> PyResult<Calibration> {
    if !budget_s.is_finite() || budget_s <= 0.0 {
        let what = format!("budget_s: {budget_s} is not a valid time; give seconds, such as 180");
        return Err(fault::input(&what));
    }
    let opened = open(device, seed).map_err(|e| fault::input(&e.to_string()))?;
    let depth = opened.facts().depth;
    let probe = SimProbe::new(opened, seed, HOST_NOISE_NS).with_facts(|f| {
        device.clone_into(&mut f.name);
        f.depth = Some(depth);
    });
    let probe = match allow_write {
        true => probe.allow_write(),
        false => probe,
    };
    let cancel = Cancel::new();
    let mut probe = Stoppable {
        of: probe,
        cancel: cancel.clone(),
    };
    let options = Options { budget_s, seed };
    let fit = work::interruptible(py, &cancel, move || {
        seekwell_calibrate::calibrate(&mut probe, options, &mut |_| {})
    })?;
    let preset = preset(&fit, name);
    Ok(Calibration { fit, preset })
}

/// A probe that can be stopped by a token.
struct Stoppable<P> {
    of: P,
    cancel: Cancel,
}

impl<P: Probe> Probe for Stoppable<P> {
    fn facts(&self) -> &Facts {
        self.of.facts()
    }
    fn now(&self) -> u64 {
        self.of.now()
    }
    fn disturbed(&self) -> Option<String> {
        self.of.disturbed()
    }
    fn sleep(&mut self, ns: u64) -> Result<(), Stop> {
        self.of.sleep(ns)
    }
    fn run(&mut self, ios: &[Io], depth: usize, out: &mut Vec<Timed>) -> Result<(), Stop> {
        if self.cancel.is_set() {
            return Err(Stop::Interrupted);
        }
        self.of.run(ios, depth, out)
    }
}
