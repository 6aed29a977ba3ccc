//! Converts the names and options of the command line to specifications of runs.

use crate::fault;
use crate::json;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use seekwell::sdk::sim::spec::workload::reading;
use seekwell::{QueueSpec, RunSpec, WorkloadSpec, checked, words};
use seekwell_trace::Intake;
use serde_json::Value;
use std::path::Path;

/// The options that `run` and `replay` share. The names are those of the command line.
pub struct Bench {
    device: String,
    scheduler: String,
    seed: u64,
    hz: u32,
    nr_requests: Option<u32>,
    depth: Option<u32>,
    max_sectors_kb: Option<u32>,
    nomerges: u8,
    machine: String,
    beside: Vec<String>,
}

impl Bench {
    /// Reads the options from a dict.
    pub fn of(options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let get = |name: &str| -> PyResult<Bound<'_, PyAny>> {
            let found = options.get_item(name)?;
            Ok(found.unwrap_or_else(|| options.py().None().into_bound(options.py())))
        };
        Ok(Bench {
            device: get("device")?.extract()?,
            scheduler: get("scheduler")?.extract()?,
            seed: get("seed")?.extract()?,
            hz: get("hz")?.extract()?,
            nr_requests: get("nr_requests")?.extract()?,
            depth: get("depth")?.extract()?,
            max_sectors_kb: get("max_sectors_kb")?.extract()?,
            nomerges: get("nomerges")?.extract()?,
            machine: get("machine")?.extract()?,
            beside: get("beside")?.extract()?,
        })
    }

    /// Returns the specification of a run with a workload and these options.
    pub fn spec(&self, workload: WorkloadSpec) -> PyResult<RunSpec> {
        let device = words::device(&self.device).map_err(|e| fault::words("", &e))?;
        let scheduler = words::scheduler(&self.scheduler).map_err(|e| fault::words("", &e))?;
        let machine = words::machine(&self.machine);
        let machine = machine.map_err(|e| fault::words("machine: ", &e))?;
        let mut spec = RunSpec::new(device, scheduler.spec, workload);
        spec.queue = QueueSpec {
            hz: self.hz,
            nr_requests: self.nr_requests,
            depth: self.depth,
            max_sectors_kb: self.max_sectors_kb,
            max_segments: None,
            nomerges: self.nomerges,
            virtio: false,
        };
        spec.machine = spec.machine.map(|_| machine.spec.clone());
        for text in &self.beside {
            let prefix = format!("beside {text}: ");
            spec.beside
                .push(words::beside(text).map_err(|e| fault::words(&prefix, &e))?);
        }
        spec.limit_s = machine.limit_s;
        spec.seed = self.seed;
        spec.label = Some(scheduler.text);
        checked(&spec).map_err(|e| fault::words("", &e))
    }
}

/// Parses a workload with its parameters.
pub fn workload(name: &str, params: &[String]) -> PyResult<WorkloadSpec> {
    let spec = words::workload(name, params).map_err(|e| fault::words("", &e))?;
    match seekwell::plan(&spec).map_err(|e| fault::words("", &e))? {
        Some(_) => Ok(spec),
        None => Err(fault::input(&format!("\"{name}\" is not a workload"))),
    }
}

/// Returns a trace with its options for reading and replay. The names are those of the
/// specification.
pub fn trace(file: &Path, said: &Bound<'_, PyDict>) -> PyResult<WorkloadSpec> {
    let spec = words::trace(file).map_err(|e| fault::words("", &e))?;
    let mut value = serde_json::to_value(&spec).map_err(|e| fault::run(&e.to_string()))?;
    let said = json::of_python(said.as_any(), "replay")?;
    if let (Value::Object(of), Value::Object(said)) = (&mut value, said) {
        of.extend(said.into_iter().filter(|(_, v)| !v.is_null()));
    }
    serde_json::from_value(value).map_err(|e| fault::input(&format!("replay: {e}")))
}

/// Rejects a trace with several volumes if none was selected, as `replay` of the binary does.
pub fn one_volume(py: Python<'_>, file: &Path, spec: &WorkloadSpec) -> PyResult<()> {
    let Some(how) = reading(spec).map_err(|e| fault::words("replay: ", &e))? else {
        return Ok(());
    };
    let looked = py.detach(|| {
        let trace = Intake::new(file, &how.options)?;
        trace.one_volume(how.format, &how.options, "volume=\"NAME\"")
    });
    looked.map_err(|e| fault::of_file(e.file(), &e.to_string()))
}
