//! Values as Python has them, by way of JSON: what the binary prints with `--json`.

use crate::fault;
use pyo3::prelude::*;
use serde_json::Value;

/// A value as Python's own dicts, lists and numbers.
pub fn to_python<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}

/// Python's dicts, lists and numbers as a value.
///
/// # Errors
/// Something in it that JSON has not, as NaN.
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

/// Any value of ours as text.
pub fn text<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| fault::run(&e.to_string()))
}
