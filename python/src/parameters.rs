//! Parameters of devices and workloads in Python. A parameter is a number or a switch, and is typed
//! after the name.

use crate::fault;
use crate::scheduler::kept;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

/// The type of a parameter's values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// Non-negative integers.
    Count,
    /// Numbers with a fraction.
    Real,
    /// Yes or no.
    Flag,
}

/// A parameter of a class.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameter {
    /// Name of the parameter, and of the attribute that has its value.
    pub name: &'static str,
    /// Type of the values.
    pub kind: Kind,
    /// Default, in the form in which users type it.
    pub default: &'static str,
    /// Unit, for display.
    pub unit: &'static str,
    /// Smallest allowed value.
    pub min: f64,
    /// Largest allowed value.
    pub max: f64,
    /// Description in one line.
    pub help: &'static str,
}

/// Largest integer up to which a float can hold every integer.
const MOST: f64 = 9_007_199_254_740_992.0;

/// Returns the parameters of a class.
///
/// # Errors
/// Returns an error if a default is not a number, or is outside the range of the parameter.
pub fn of_class(name: &str, class: &Bound<'_, PyAny>) -> PyResult<Vec<Parameter>> {
    let mut all = Vec::new();
    for p in class.getattr("parameters")?.try_iter()? {
        all.push(one(name, &p?)?);
    }
    Ok(all)
}

fn one(class: &str, p: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    let text = |field: &str| -> PyResult<String> { p.getattr(field)?.extract() };
    let own = text("name")?;
    let default = p.getattr("default")?;
    let kind = match &default {
        d if d.is_instance_of::<PyBool>() => Kind::Flag,
        d if d.is_instance_of::<PyInt>() => Kind::Count,
        _ => Kind::Real,
    };
    let value: f64 = default.extract()?;
    let bound = |field: &str, usual: f64| -> PyResult<f64> {
        let given = p.getattr(field)?;
        match given.is_none() {
            true => Ok(usual),
            false => given.extract(),
        }
    };
    let (min, max) = (bound("min", 0.0)?, bound("max", MOST)?);
    let plain = own
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if own.is_empty() || !plain || !(min..=max).contains(&value) || min < 0.0 || max > MOST {
        let what = format!(
            "{class}: parameter \"{own}\": a name has small letters, digits and `_`, and {value} \
             has to lie within {min}..={max}, those within 0..={MOST}"
        );
        return Err(fault::input(&what));
    }
    let default = match kind {
        Kind::Flag => if value != 0.0 { "yes" } else { "no" }.to_owned(),
        Kind::Count | Kind::Real => value.to_string(),
    };
    Ok(Parameter {
        name: kept(own),
        kind,
        default: kept(default),
        unit: kept(text("unit")?),
        min,
        max,
        help: kept(text("help")?),
    })
}

/// Sets an attribute to a value of the parameter's type.
///
/// # Errors
/// Returns the exception that the class raises.
pub fn set(object: &Bound<'_, PyAny>, p: &Parameter, value: f64) -> PyResult<()> {
    match p.kind {
        Kind::Flag => object.setattr(p.name, value != 0.0),
        Kind::Count => object.setattr(p.name, value as u64),
        Kind::Real => object.setattr(p.name, value),
    }
}
