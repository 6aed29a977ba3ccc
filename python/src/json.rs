//! Conversion of values to and from Python, through JSON. The JSON is what the binary prints with
//! `--json`.

use crate::fault;
use pyo3::prelude::*;
use serde_json::Value;

/// Converts JSON text to Python dicts, lists and numbers.
pub fn to_python<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}

/// Converts Python dicts, lists and numbers to a JSON value.
///
/// # Errors
/// Returns an error if a value has no form in JSON, for example NaN.
pub fn of_python(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Value> {
    let kwargs = pyo3::types::PyDict::new(value.py());
    kwargs.set_item("allow_nan", false)?;
    let json = value.py().import("json")?;
    let text = json.call_method("dumps", (value,), Some(&kwargs));
    let text: String = text
        .map_err(|e| fault::input(&format!("{what}: {e}")))?
        .extract()?;
    serde_json::from_str(&text).map_err(|e| fault::input(&format!("{what}: {e}")))
}

/// Converts any serialisable value to JSON text.
pub fn text<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| fault::run(&e.to_string()))
}
