//! A run as one value: everything that decides its result, as plain data.
//!
//! A [`RunSpec`] goes into files (TOML, JSON), into every [`crate::result::Record`], and, as a hash
//! of its canonical bytes, into result stores as the key of the run. It names schedulers, devices
//! and workloads and knows none of them: whether those exist is for the floors that hold them.
//!
//! What stands for a file of the user's (device presets, job files) is embedded, so that a record
//! can be run again anywhere; a trace, which may be large, is named by the hash of its content.
//!
//! There are no floating-point numbers here: equal values have equal bytes.

mod beside;
mod canonical;
mod error;
mod machine;
mod read;

pub use beside::{BesideSpec, MAX_BESIDE};
pub use canonical::content_hash;
pub use error::{SpecError, SpecErrors};
pub use machine::{
    CPU_PERMILLE, MAX_AGED_RUN_BLOCKS, MAX_CENTISECS, MAX_COMMIT_S, MAX_MEMORY_BYTES,
    MIN_CACHE_BYTES, MIN_DIRTY_BYTES, MIN_MEMORY_BYTES, MachineSpec,
};

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Longest limit of a run, seconds: 31 years.
pub const MAX_LIMIT_S: u64 = 1_000_000_000;

/// Version of this layout; raised when a field changes its meaning.
pub const SPEC_VERSION: u32 = 1;

/// Where a run takes place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Substrate {
    /// Simulated, on virtual time.
    #[default]
    Sim,
    /// Real programs over a modelled disk, on the wall clock.
    Serve,
    /// The host's own kernel and files.
    Host,
}

impl Substrate {
    /// As records name it.
    pub const fn name(self) -> &'static str {
        match self {
            Substrate::Sim => "sim",
            Substrate::Serve => "serve",
            Substrate::Host => "host",
        }
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// [`SPEC_VERSION`].
    #[serde(default = "spec_version")]
    pub version: u32,
    /// Where.
    #[serde(default)]
    pub substrate: Substrate,
    /// On what.
    pub device: DeviceSpec,
    /// Under what.
    pub scheduler: SchedulerSpec,
    /// Settings of the queue between them.
    #[serde(default)]
    pub queue: QueueSpec,
    /// The machine over the queue; none for a trace, which was recorded below one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineSpec>,
    /// What runs, and is measured.
    pub workload: WorkloadSpec,
    /// What runs beside it on the same machine, at most [`MAX_BESIDE`]: begun with it, ended with
    /// it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BesideSpec>,
    /// Seed of every random stream.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Which repetition, from 0; it runs with [`RunSpec::run_seed`].
    #[serde(default)]
    pub repeat: u32,
    /// Stop after so much time of the run's own clock, seconds, at most [`MAX_LIMIT_S`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<u64>,
    /// What tables call it; decides nothing and is not hashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

fn spec_version() -> u32 {
    SPEC_VERSION
}
fn first_seed() -> u64 {
    1
}

/// A device, by the text that `seekwell devices` understands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// `hdd:hitachi-7k200,write_cache=no`, `raid5:members=4,of=...`, or the path of a preset file.
    pub spec: String,
    /// Texts of the preset files that it names, by the path it names them with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// A scheduler with what was set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerSpec {
    /// The kernel's name.
    pub name: String,
    /// Version of it; absent: the default one, which a checked specification states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Tunables that are written before the start, in the order of their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tunables: BTreeMap<String, String>,
}

impl SchedulerSpec {
    /// `NAME[-VERSION]`, as the registry finds it.
    pub fn versioned(&self) -> String {
        match &self.version {
            Some(v) => format!("{}-{v}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Settings of `/sys/block/DEV/queue` and of the kernel's tick.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// CONFIG_HZ, 24 to 10,000.
    #[serde(default = "hz")]
    pub hz: u32,
    /// queue/nr_requests, 4 to 10,240; absent: the layer's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<u32>,
    /// device/queue_depth, 1 to 65,536; absent: what the device takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// queue/max_sectors_kb, 4 to 32,767; absent: the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sectors_kb: Option<u32>,
    /// queue/max_segments, entries of the driver's scatter list, 1 to 65,535; absent: the usual
    /// driver's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_segments: Option<u32>,
    /// queue/nomerges, 0 to 2.
    #[serde(default)]
    pub nomerges: u8,
}

fn hz() -> u32 {
    250
}

impl Default for QueueSpec {
    fn default() -> Self {
        QueueSpec {
            hz: hz(),
            nr_requests: None,
            depth: None,
            max_sectors_kb: None,
            max_segments: None,
            nomerges: 0,
        }
    }
}

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum WorkloadSpec {
    /// A script of the registry.
    Script {
        /// As `seekwell workloads` names it.
        name: String,
        /// Parameters; a checked specification states all of them.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        params: BTreeMap<String, String>,
    },
    /// A fio job file.
    Fio {
        /// What it was called; not hashed.
        file: String,
        /// Its text.
        text: String,
        /// Texts of included files, by the name they are included with.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        includes: BTreeMap<String, String>,
        /// Values of the variables it asks for.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        variables: BTreeMap<String, String>,
    },
    /// A recorded trace.
    Trace {
        /// Where it is; not hashed.
        file: String,
        /// SHA-256 of the file's bytes, 64 hexadecimal digits.
        sha256: String,
        /// As `seekwell formats` names it; absent: what the first bytes show.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
        /// `timed`, `scaled:FACTOR`, `depth:N` or `closed`.
        #[serde(default = "timed")]
        mode: String,
        /// Records behind the end of the device.
        #[serde(default)]
        fit: Fit,
        /// Stop after so many records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
        /// Which event of a block trace is replayed.
        #[serde(default)]
        stream: Stream,
        /// Only records of this device (`8,16`) or volume, as the trace names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        volume: Option<String>,
        /// Only records from so long after the first one on, ns; times then count from here.
        #[serde(default)]
        from_ns: u64,
        /// Only records before so long after the first one, ns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ns: Option<u64>,
        /// Only records of these processes; empty: of all.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        pids: BTreeSet<u32>,
        /// Unit of response times that the format does not tell: ns, us or ms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response_unit: Option<String>,
        /// A trace that was cut off ends with a warning, not an error.
        #[serde(default)]
        allow_truncated: bool,
    },
}

fn timed() -> String {
    "timed".to_owned()
}

/// What to do with records behind the end of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// Stop and say so.
    #[default]
    Strict,
    /// Fold them: sector modulo the device's size.
    Wrap,
}

/// Which event of a block trace is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Bios as they were submitted, before merging.
    #[default]
    Queue,
    /// Requests as the recorded scheduler sent them.
    Issue,
}

impl WorkloadSpec {
    /// As records name it.
    pub fn name(&self) -> &str {
        match self {
            WorkloadSpec::Script { name, .. } => name,
            WorkloadSpec::Fio { .. } => "fio",
            WorkloadSpec::Trace { .. } => "replay",
        }
    }
}

impl RunSpec {
    /// On that device, under that scheduler, everything else as usual.
    pub fn new(device: DeviceSpec, scheduler: SchedulerSpec, workload: WorkloadSpec) -> Self {
        let machine = match workload {
            WorkloadSpec::Trace { .. } => None,
            _ => Some(MachineSpec::default()),
        };
        RunSpec {
            version: SPEC_VERSION,
            substrate: Substrate::Sim,
            device,
            scheduler,
            queue: QueueSpec::default(),
            machine,
            workload,
            beside: Vec::new(),
            seed: 1,
            repeat: 0,
            limit_s: None,
            label: None,
        }
    }
    /// Seed of this repetition: the first has the seed itself, each further one the next number.
    pub fn run_seed(&self) -> u64 {
        self.seed.wrapping_add(u64::from(self.repeat))
    }
    /// What tables call the scheduler of this run: the label, or its name with what was set.
    pub fn scheduler_label(&self) -> String {
        if let Some(label) = &self.label {
            return label.clone();
        }
        let mut text = self.scheduler.versioned();
        for (name, value) in &self.scheduler.tunables {
            text += &format!(":{name}={value}");
        }
        text
    }
}

#[cfg(test)]
mod tests;
