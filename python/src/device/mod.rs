//! Device models that are written in Python, in the same list as the built-in kinds of devices.
//!
//! A device is created with a plain function, so each class has a slot. A class that is registered
//! again under the same name uses the same slot. Not supported: packed groups and stopped writes of
//! eMMC, devices with members, and events from inside the device (`listen`).

pub mod bridge;

use crate::fault;
use crate::parameters::{self, Kind as Is, Parameter};
use crate::scheduler::{kept, watch};
use crate::slots;
use bridge::Bridge;
use pyo3::prelude::*;
use seekwell::sdk::device::preset::{Def, Dim};
use seekwell::sdk::device::{Kind, ParamError, Preset};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A registered class.
pub struct Class {
    name: String,
    of: Py<PyAny>,
    parameters: Vec<Parameter>,
    /// Whether the class only returns the completion time of a command (`serve`).
    simple: bool,
    /// Whether the class has a `state` method.
    tells: bool,
}

impl slots::Named for Class {
    const WHAT: &'static str = "device";
    fn name(&self) -> &str {
        &self.name
    }
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }
}

static TAKEN: Mutex<Vec<Arc<Class>>> = Mutex::new(Vec::new());

fn taken() -> MutexGuard<'static, Vec<Arc<Class>>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

type Built = Result<Box<dyn seekwell_core::Device + Send>, ParamError>;

fn build<const N: usize>(p: &Preset, seed: u64) -> Built {
    let class = taken().get(N).cloned();
    let class = class.ok_or_else(|| ParamError::new("class", "no class is registered", ""))?;
    let name = class.name.clone();
    match Bridge::new(class, p, seed) {
        Ok(made) => Ok(Box::new(made)),
        Err(e) => {
            let what = watch::words(&name, "__init__", &e);
            Err(ParamError::new(
                "class",
                what,
                "correct the class and register it again",
            ))
        }
    }
}

type Make = fn(&Preset, u64) -> Built;

macro_rules! slots {
    ($($n:literal)*) => {
        const SLOTS: &[Make] = &[$(build::<$n>),*];
    };
}
slots!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);

/// Returns the definition of a parameter for presets and overrides.
fn def(p: &Parameter) -> Def {
    let dim = match p.kind {
        Is::Flag => Dim::Flag,
        Is::Count => Dim::Count(p.unit),
        Is::Real => Dim::Real(p.unit),
    };
    Def::new(p.name, dim, Some(p.default), (p.min, p.max), p.help)
}

/// Registers a class, or replaces the class with the same name.
#[pyfunction]
pub fn register_device(class: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = |field: &str| -> PyResult<String> { class.getattr(field)?.extract() };
    let name = text("name")?;
    let parameters = parameters::of_class(&format!("device \"{name}\""), class)?;
    let base = class.py().import("seekwell.device")?.getattr("Device")?;
    let own =
        |method: &str| -> PyResult<bool> { Ok(!class.getattr(method)?.is(&base.getattr(method)?)) };
    let (serve, accept) = (own("serve")?, own("accept")?);
    if serve == accept {
        let what = format!(
            "device \"{name}\": write either serve(self, now_ns, command), which says when a \
             command is done, or accept, next_event and advance"
        );
        return Err(fault::input(&what));
    }
    let new = Class {
        name: name.clone(),
        of: class.clone().unbind(),
        parameters,
        simple: serve,
        tells: own("state")?,
    };
    let defs: Vec<Def> = new.parameters.iter().map(def).collect();
    let preset = preset(&name, &text("summary")?, &new.parameters)?;
    let Some(at) = slots::take(&mut taken(), new, SLOTS.len())? else {
        return Ok(name);
    };
    let kind = Kind {
        name: kept(name.clone()),
        defs: Box::leak(defs.into_boxed_slice()),
        build: SLOTS[at],
        plain: Some(kept(name.clone())),
    };
    seekwell::register_device_kind(kind)
        .map_err(|e| fault::input(&e.to_string()))
        .inspect_err(|_| taken().truncate(at))?;
    let file = format!("{name} (a class of Python)");
    seekwell::register_device(&file, &preset).map_err(|e| fault::input(&e.to_string()))?;
    Ok(name)
}

/// Returns the text of the kind's only preset, with all parameters at their defaults.
fn preset(name: &str, summary: &str, parameters: &[Parameter]) -> PyResult<String> {
    let mut top = toml::Table::new();
    for (key, value) in [("kind", name), ("name", name), ("summary", summary)] {
        top.insert(key.to_owned(), value.into());
    }
    let mut params = toml::Table::new();
    for p in parameters {
        let mut of = toml::Table::new();
        let bad = |_| fault::input(&format!("device \"{name}\": parameter \"{}\"", p.name));
        let value: toml::Value = match p.kind {
            Is::Flag => (p.default == "yes").into(),
            Is::Count => p.default.parse::<i64>().map_err(bad)?.into(),
            Is::Real => p.default.parse::<f64>().unwrap_or(0.0).into(),
        };
        of.insert("value".to_owned(), value);
        if p.kind != Is::Flag {
            of.insert("unit".to_owned(), p.unit.into());
        }
        of.insert("source".to_owned(), "estimate: a class of Python".into());
        params.insert(p.name.to_owned(), of.into());
    }
    top.insert("params".to_owned(), params.into());
    toml::to_string(&top).map_err(|e| fault::input(&format!("device \"{name}\": {e}")))
}
