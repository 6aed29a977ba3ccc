//! Slots of classes: the lists of the tree want plain functions, so the nth class has functions that
//! know its number, and one that is registered again under its name takes its slot over.

use crate::fault;
use crate::parameters::Parameter;
use pyo3::PyResult;
use std::sync::Arc;

/// A class with a name and parameters.
pub trait Named {
    /// What it is, in messages: "device".
    const WHAT: &'static str;
    /// Its name in the list.
    fn name(&self) -> &str;
    /// Its parameters; they cannot change once the list has them.
    fn parameters(&self) -> &[Parameter];
}

/// Puts a class into the slot of its name: `None`; or into a new one, of at most so many: which.
///
/// # Errors
/// The name is taken with other parameters; there are no more slots.
pub fn take<C: Named>(all: &mut Vec<Arc<C>>, new: C, most: usize) -> PyResult<Option<usize>> {
    let (what, name) = (C::WHAT, new.name());
    if let Some(known) = all.iter_mut().find(|c| c.name() == name) {
        if known.parameters() != new.parameters() {
            return Err(fault::input(&format!(
                "{what} `{name}` is registered with other parameters: choose another name, or begin \
                 a new process"
            )));
        }
        *known = Arc::new(new);
        return Ok(None);
    }
    if all.len() >= most {
        return Err(fault::input(&format!(
            "{what} `{name}`: a process has at most {most} {what}s in Python; register under a name \
             that is taken already, or begin a new process"
        )));
    }
    all.push(Arc::new(new));
    Ok(Some(all.len() - 1))
}
