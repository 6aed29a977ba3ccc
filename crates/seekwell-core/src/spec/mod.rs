//! A run as one value: all inputs that determine its result, as plain data.
//!
//! A [`RunSpec`] goes into files (TOML, JSON) and into every [`crate::result::Record`]. A hash of
//! its canonical bytes is the key of the run in result stores. It contains the names of schedulers,
//! devices and workloads; higher crates check that these exist.
//!
//! The content of user files (device presets, job files) is embedded, so that a record can be
//! repeated anywhere. A trace may be large, so the hash of its content stands for it.
//!
//! There are no floating-point numbers, so that equal values have equal bytes.

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
    /// Real programs on a modelled disk, in real time.
    Serve,
    /// The host's own kernel and files.
    Host,
}

impl Substrate {
    /// The name in records.
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
    /// Where the run takes place.
    #[serde(default)]
    pub substrate: Substrate,
    /// The device.
    pub device: DeviceSpec,
    /// The scheduler.
    pub scheduler: SchedulerSpec,
    /// Settings of the queue between them.
    #[serde(default)]
    pub queue: QueueSpec,
    /// The machine above the queue; `None` for a trace, which was recorded below one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineSpec>,
    /// The measured workload.
    pub workload: WorkloadSpec,
    /// Programs next to it on the same machine, at most [`MAX_BESIDE`]; they start and end with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BesideSpec>,
    /// Seed of every random stream.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Number of the repetition, from 0; it runs with [`RunSpec::run_seed`].
    #[serde(default)]
    pub repeat: u32,
    /// Stop after this much time of the run's own clock, seconds, at most [`MAX_LIMIT_S`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<u64>,
    /// The name in tables; without influence, and not hashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

fn spec_version() -> u32 {
    SPEC_VERSION
}
fn first_seed() -> u64 {
    1
}

/// A device, as a text for `seekwell devices`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// `hdd:hitachi-7k200,write_cache=no`, `raid5:members=4,of=...`, or the path of a preset file.
    pub spec: String,
    /// Texts of the preset files, by the path in `spec`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// A scheduler with its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerSpec {
    /// The kernel's name.
    pub name: String,
    /// Its version; absent: the default version, which a checked specification states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Tunables written before the start, in the order of their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tunables: BTreeMap<String, String>,
}

impl SchedulerSpec {
    /// `NAME[-VERSION]`, as the registry accepts it.
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
    /// device/queue_depth, 1 to 65,536; absent: the device's own depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// queue/max_sectors_kb, 4 to 32,767; absent: the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sectors_kb: Option<u32>,
    /// queue/max_segments, entries of the driver's scatter list, 1 to 65,535; absent: the usual
    /// driver's value.
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

/// The workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum WorkloadSpec {
    /// A script from the registry.
    Script {
        /// The name in `seekwell workloads`.
        name: String,
        /// Parameters; a checked specification states all of them.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        params: BTreeMap<String, String>,
    },
    /// A fio job file.
    Fio {
        /// The file's name; not hashed.
        file: String,
        /// The file's text.
        text: String,
        /// Texts of included files, by the name in the include line.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        includes: BTreeMap<String, String>,
        /// Values of the variables it uses.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        variables: BTreeMap<String, String>,
    },
    /// A recorded trace.
    Trace {
        /// The file's path; not hashed.
        file: String,
        /// SHA-256 of the file's bytes, 64 hexadecimal digits.
        sha256: String,
        /// The format's name in `seekwell formats`; absent: detected from the first bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
        /// `timed`, `scaled:FACTOR`, `depth:N` or `closed`.
        #[serde(default = "timed")]
        mode: String,
        /// What to do with records beyond the end of the device.
        #[serde(default)]
        fit: Fit,
        /// Stop after this many records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
        /// Which event of a block trace is replayed.
        #[serde(default)]
        stream: Stream,
        /// Only records of this device (`8,16`) or volume, as the trace names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        volume: Option<String>,
        /// Only records from this time after the first one on, ns; times then start here.
        #[serde(default)]
        from_ns: u64,
        /// Only records before this time after the first one, ns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ns: Option<u64>,
        /// Only records of these processes; empty: all processes.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        pids: BTreeSet<u32>,
        /// Unit of response times if the format does not define it: ns, us or ms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response_unit: Option<String>,
        /// A truncated trace ends with a warning, not an error.
        #[serde(default)]
        allow_truncated: bool,
    },
}

fn timed() -> String {
    "timed".to_owned()
}

/// What to do with records beyond the end of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// Stop with a message.
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
    /// Requests as the recorded scheduler dispatched them.
    Issue,
}

impl WorkloadSpec {
    /// The name in records.
    pub fn name(&self) -> &str {
        match self {
            WorkloadSpec::Script { name, .. } => name,
            WorkloadSpec::Fio { .. } => "fio",
            WorkloadSpec::Trace { .. } => "replay",
        }
    }
}

impl RunSpec {
    /// A run on that device under that scheduler, with defaults for all other fields.
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
    /// Seed of this repetition: the first one has the seed itself, each further one the next
    /// number.
    pub fn run_seed(&self) -> u64 {
        self.seed.wrapping_add(u64::from(self.repeat))
    }
    /// The name of this run's scheduler in tables: the label, or the name with its settings.
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
