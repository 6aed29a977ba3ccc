//! Slots for scheduler classes: the functions that the registry needs. Each function knows its
//! class.

use super::{Bridge, Class};
use crate::fault;
use pyo3::PyResult;
use seekwell_core::Era;
use seekwell_sched::{Cx, Layer, Make, Scheduler, Tunable, Waiting};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A function that returns the tunables of a version.
type Tunables = fn(&str) -> &'static [Tunable];

/// The properties of a scheduler that cannot change after its name is in the registry.
pub struct Line<'a> {
    /// Name of the scheduler.
    pub name: &'a str,
    /// The block layer of the scheduler.
    pub layer: Layer,
    /// The kernel era of the scheduler.
    pub era: Era,
    /// Bound for the waiting time of requests.
    pub waiting: Waiting,
}

struct Taken {
    class: Arc<Class>,
    era: Era,
    waiting: Waiting,
}

static TAKEN: Mutex<Vec<Taken>> = Mutex::new(Vec::new());

fn taken() -> MutexGuard<'static, Vec<Taken>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn class(slot: usize) -> Option<Arc<Class>> {
    taken().get(slot).map(|t| t.class.clone())
}

fn make<const N: usize>(cx: &Cx, _: &str) -> Box<dyn Scheduler> {
    match class(N) {
        Some(class) => Box::new(Bridge::new(class, cx)),
        None => panic!("the registry has a class that was never registered"),
    }
}

fn tunables<const N: usize>(_: &str) -> &'static [Tunable] {
    class(N).map_or(&[], |c| c.tunables)
}

macro_rules! slots {
    ($($n:literal)*) => {
        /// The functions of each slot.
        const SLOTS: &[(Make, Tunables)] = &[$((make::<$n>, tunables::<$n>)),*];
    };
}
slots!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
);

/// Puts a class into the slot for its name. For a new name, uses a new slot, and adds the scheduler
/// to the registry.
///
/// # Errors
/// Returns an error if the name was registered with another layer, kernel or waiting bound, or if
/// all slots are in use. Also returns errors of the registry.
pub fn take(
    new: Class,
    line: &Line<'_>,
    register: impl FnOnce(&(Make, Tunables)) -> PyResult<()>,
) -> PyResult<()> {
    let name = line.name;
    let mut all = taken();
    let known = all.iter_mut().find(|t| t.class.name == name);
    if let Some(t) = known {
        let same = (t.class.layer, t.era, t.waiting) == (line.layer, line.era, line.waiting);
        if !same {
            let what = format!(
                "scheduler \"{name}\" is registered with another layer, kernel or `waiting`: \
                 choose another name, or start a new process"
            );
            return Err(fault::input(&what));
        }
        t.class = Arc::new(new);
        return Ok(());
    }
    let at = all.len();
    let Some(functions) = SLOTS.get(at) else {
        let what = format!(
            "scheduler \"{name}\": a process has at most {} schedulers in Python; use a name that \
             is already registered, or start a new process",
            SLOTS.len()
        );
        return Err(fault::input(&what));
    };
    all.push(Taken {
        class: Arc::new(new),
        era: line.era,
        waiting: line.waiting,
    });
    // The registry asks for the tunables, so the lock of the slots must be released first.
    drop(all);
    register(functions).inspect_err(|_| {
        taken().truncate(at);
    })
}
