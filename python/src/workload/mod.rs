//! Workloads that are written in Python, in the same list as the built-in ones. A workload is a
//! coroutine that makes the calls of a modelled machine.
//!
//! The list needs plain functions, so each class has a slot. A class that is registered again under
//! the same name uses the same slot. Not supported: real machines (a script in Python runs in
//! simulation only), mapped files, cgroups, and ranges of `sync_file_range`.

mod call;
mod drive;

use crate::fault;
use crate::parameters::{self, Kind as Is, Parameter};
use crate::scheduler::{kept, watch};
use crate::slots;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use seekwell::sdk::sim::world::SimMachine;
use seekwell::sdk::workload::{
    self, Kind, Machine, Needs, Outcome, Param, Params, Script, ScriptFn, Workload,
};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A registered class.
pub struct Class {
    /// Name of the workload in the list.
    pub name: String,
    of: Py<PyAny>,
    parameters: Vec<Parameter>,
    space_bytes: u64,
}

impl slots::Named for Class {
    const WHAT: &'static str = "workload";
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

fn script<'a, const N: usize>(
    m: &'a mut SimMachine,
    p: &'a Params,
    dir: &'a str,
) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let class = taken().get(N).cloned();
        match class {
            Some(class) => run(class, m, p, dir).await,
            None => Ok(()),
        }
    })
}

fn space<const N: usize>(_: &Params) -> u64 {
    taken().get(N).map_or(0, |c| c.space_bytes)
}

type Space = fn(&Params) -> u64;

macro_rules! slots {
    ($($n:literal)*) => {
        const SLOTS: &[(ScriptFn<SimMachine>, Space)] = &[$((script::<$n>, space::<$n>)),*];
    };
}
slots!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);

/// Creates an instance of a class, and makes the calls that its coroutine requests.
async fn run<M: Machine>(class: Arc<Class>, m: &mut M, p: &Params, dir: &str) -> Outcome {
    let made = Python::attach(|py| -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let _call = watch::enter(py);
        let kind = class.of.bind(py);
        let object = kind.call_method1("__new__", (kind,))?;
        for q in &class.parameters {
            let value = match q.kind {
                Is::Flag => f64::from(u8::from(p.flag(q.name))),
                Is::Count => p.int(q.name) as f64,
                Is::Real => p.ratio(q.name),
            };
            parameters::set(&object, q, value)?;
        }
        object.call_method0("__init__")?;
        let facts = m.facts();
        let machine = py.import("seekwell.workload")?.getattr("Machine")?;
        let machine = machine.call1((dir, facts.cpus, facts.cache_bytes))?;
        let run = object.call_method1("run", (&machine,))?;
        if !run.hasattr("send")? {
            let what = "run has to be a coroutine: async def run(self, machine)";
            return Err(PyRuntimeError::new_err(what));
        }
        Ok((machine.unbind(), run.unbind()))
    });
    match made {
        Ok((machine, run)) => drive::drive(m, class, machine, run).await,
        Err(e) => watch::fail("WorkloadError", watch::words(&class.name, "run", &e), e),
    }
}

fn param(p: &Parameter) -> Param {
    let kind = match p.kind {
        Is::Flag => Kind::Flag,
        Is::Count => Kind::Count(p.min as u64, p.max as u64),
        Is::Real => Kind::Ratio(p.min, p.max),
    };
    Param {
        name: p.name,
        kind,
        default: p.default,
        summary: p.help,
    }
}

/// Registers a class, or replaces the class with the same name.
#[pyfunction]
pub fn register_workload(class: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = |field: &str| -> PyResult<String> { class.getattr(field)?.extract() };
    let name = text("name")?;
    let needs = match &*text("needs")? {
        "directory" => Needs::Directory,
        "device" => Needs::Device,
        other => {
            let what = format!(
                "workload \"{name}\": needs: no \"{other}\"; there are \"directory\" and \"device\""
            );
            return Err(fault::input(&what));
        }
    };
    let new = Class {
        name: name.clone(),
        of: class.clone().unbind(),
        parameters: parameters::of_class(&format!("workload \"{name}\""), class)?,
        space_bytes: class.getattr("space_bytes")?.extract()?,
    };
    let params: Vec<Param> = new.parameters.iter().map(param).collect();
    let (summary, metric) = (text("summary")?, text("metric")?);
    let Some(at) = slots::take(&mut taken(), new, SLOTS.len())? else {
        return Ok(name);
    };
    let (script, space) = SLOTS[at];
    let line = Workload {
        name: kept(name.clone()),
        summary: kept(summary),
        metric: kept(metric),
        stresses: "what its script does",
        source: "a class of Python",
        params: Box::leak(params.into_boxed_slice()),
        profiles: &[],
        needs,
        space,
        check: |_| Ok(()),
    };
    let line: &'static Workload = Box::leak(Box::new(line));
    workload::register(Script::new(line).on::<SimMachine>(script))
        .map_err(|e| fault::input(&e.to_string()))
        .inspect_err(|_| taken().truncate(at))?;
    Ok(name)
}
