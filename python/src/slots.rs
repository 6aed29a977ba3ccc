//! Slots for Python classes. The registries need plain functions, so each slot has functions that
//! know its number. A class that is registered again under the same name uses the same slot.

use crate::fault;
use crate::parameters::Parameter;
use pyo3::PyResult;
use std::sync::Arc;

/// A Python class with a name and parameters.
pub trait Named {
    /// The kind of the class in messages, for example "device".
    const WHAT: &'static str;
    /// Returns the name of the class in the registry.
    fn name(&self) -> &str;
    /// Returns the parameters of the class. They cannot change after the registration.
    fn parameters(&self) -> &[Parameter];
}

/// Puts a class into the slot for its name and returns `None`. For a new name, puts it into a new
/// slot and returns the slot's number. There are at most `most` slots.
///
/// # Errors
/// Returns an error if the name was registered with other parameters, or if all slots are in use.
pub fn take<C: Named>(all: &mut Vec<Arc<C>>, new: C, most: usize) -> PyResult<Option<usize>> {
    let (what, name) = (C::WHAT, new.name());
    if let Some(known) = all.iter_mut().find(|c| c.name() == name) {
        if known.parameters() != new.parameters() {
            return Err(fault::input(&format!(
                "{what} \"{name}\" is registered with other parameters: choose another name, or \
                 start a new process"
            )));
        }
        *known = Arc::new(new);
        return Ok(None);
    }
    if all.len() >= most {
        return Err(fault::input(&format!(
            "{what} \"{name}\": a process has at most {most} {what}s in Python; use a name that \
             is already registered, or start a new process"
        )));
    }
    all.push(Arc::new(new));
    Ok(Some(all.len() - 1))
}
