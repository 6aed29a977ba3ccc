//! The specification of a run: all inputs that determine its result, as plain data.
//!
//! Files (TOML, JSON) and every [`crate::result::Record`] contain a [`RunSpec`]. The hash of its
//! canonical bytes is the key of the run in result stores. A specification contains names of
//! schedulers, devices and workloads. Crates above this one check that these names exist.
//!
//! The content of user files (device presets, job files) is included, so that a run can be repeated
//! on any machine. A trace may be large, so only the hash of its content is included.
//!
//! No field is a floating-point number, so that equal values have equal bytes.

mod background;
mod canonical;
mod carried;
mod error;
mod machine;
mod read;

pub use background::{BackgroundSpec, MAX_BACKGROUND};
pub use canonical::content_hash;
pub use carried::Carried;
pub use error::{SpecError, SpecErrors};
pub use machine::{
    CPU_PERMILLE, MAX_AGED_RUN_BLOCKS, MAX_CENTISECS, MAX_COMMIT_S, MAX_MEMORY_BYTES,
    MIN_CACHE_BYTES, MIN_DIRTY_BYTES, MIN_MEMORY_BYTES, MachineSpec,
};

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Longest time limit of a run, in seconds: 31 years.
pub const MAX_LIMIT_S: u64 = 1_000_000_000;

/// Version of the layout. It is incremented when a field changes its meaning.
pub const SPEC_VERSION: u32 = 1;

/// The substrate: where a run takes place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Substrate {
    /// Simulated, in virtual time.
    #[default]
    Sim,
    /// Real programs on a modelled disk, in real time.
    Serve,
    /// The kernel and files of the host.
    Host,
    /// A real kernel on virtual time, over a modelled disk.
    Kernel,
}

impl Substrate {
    /// Returns the name of the substrate in records.
    pub const fn name(self) -> &'static str {
        match self {
            Substrate::Sim => "sim",
            Substrate::Serve => "serve",
            Substrate::Host => "host",
            Substrate::Kernel => "kernel",
        }
    }
}

/// The specification of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Version of the layout, [`SPEC_VERSION`].
    #[serde(default = "spec_version")]
    pub version: u32,
    /// The substrate.
    #[serde(default)]
    pub substrate: Substrate,
    /// The device.
    pub device: DeviceSpec,
    /// The scheduler.
    pub scheduler: SchedulerSpec,
    /// Settings of the queue between scheduler and device.
    #[serde(default)]
    pub queue: QueueSpec,
    /// The machine above the queue. `None` for a trace, which was recorded below a machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineSpec>,
    /// The measured workload.
    pub workload: WorkloadSpec,
    /// Programs that run next to the workload on the same machine, at most [`MAX_BACKGROUND`]. They
    /// start and end together with the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BackgroundSpec>,
    /// Seed of all random streams.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Number of the repetition, from 0. Its seed is [`RunSpec::run_seed`].
    #[serde(default)]
    pub repeat: u32,
    /// The run stops after this many seconds of its own clock, at most [`MAX_LIMIT_S`]. Absent: no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<u64>,
    /// Name of the run in tables. It does not influence the run and is not hashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

fn spec_version() -> u32 {
    SPEC_VERSION
}
fn first_seed() -> u64 {
    1
}

/// A device, in the form that `seekwell devices` explains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// For example `hdd:hitachi-7k200,write_cache=no`, `raid5:members=4,of=...`, or the path of a
    /// preset file.
    pub spec: String,
    /// Texts of the preset files, by their path in `spec`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// A scheduler with its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerSpec {
    /// The kernel's name of the scheduler.
    pub name: String,
    /// Version of the scheduler. Absent: the default version, which a checked specification states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Tunables that are written before the run starts, sorted by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tunables: BTreeMap<String, String>,
}

impl SchedulerSpec {
    /// Returns `NAME[-VERSION]`, as the registry accepts it.
    pub fn versioned(&self) -> String {
        match &self.version {
            Some(v) => format!("{}-{v}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Settings in `/sys/block/DEV/queue`, and the kernel's tick.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Value of CONFIG_HZ, 24 to 10,000.
    #[serde(default = "hz")]
    pub hz: u32,
    /// Value of queue/nr_requests, 4 to 10,240. Absent: the layer's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<u32>,
    /// Value of device/queue_depth, 1 to 65,536. Absent: the depth of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Value of queue/max_sectors_kb, 4 to 32,767. Absent: the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sectors_kb: Option<u32>,
    /// Value of queue/max_segments (entries of the driver's scatter list), 1 to 65,535. Absent: the
    /// value of the usual driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_segments: Option<u32>,
    /// Value of queue/nomerges, 0 to 2.
    #[serde(default)]
    pub nomerges: u8,
    /// True if virtio attaches a device with one queue, as in a virtual machine. The driver then
    /// limits commands by tags, and writeback throttling uses the number of requests as its depth.
    /// Otherwise the driver of the device is that of a real machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub virtio: bool,
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
            virtio: false,
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
        /// Its parameters. A checked specification states all of them.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        params: BTreeMap<String, String>,
    },
    /// A fio job file.
    Fio {
        /// The name of the file. It is not hashed.
        file: String,
        /// The text of the file.
        text: String,
        /// Texts of included files, by the name in the include line.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        includes: BTreeMap<String, String>,
        /// Values of the variables that the file uses.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        variables: BTreeMap<String, String>,
    },
    /// A recorded trace.
    Trace {
        /// The path of the file. It is not hashed.
        file: String,
        /// SHA-256 of the bytes of the file, 64 hexadecimal digits.
        sha256: String,
        /// Name of the format in `seekwell formats`. Absent: detected from the first bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
        /// The fields of a delimited text, as `NAME=NUMBER,...`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        columns: Option<String>,
        /// Mode of the replay: `timed`, `scaled:FACTOR`, `depth:N` or `closed`.
        #[serde(default = "timed")]
        mode: String,
        /// The treatment of records beyond the end of the device.
        #[serde(default)]
        fit: Fit,
        /// The replay stops after this many records. Absent: no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
        /// The event of a block trace that is replayed.
        #[serde(default)]
        stream: Stream,
        /// Only records of this device (`8,16`) or volume are replayed. The name is that in the
        /// trace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        volume: Option<String>,
        /// Records earlier than this time after the first record are skipped, ns. The times of the
        /// replay then count from that point.
        #[serde(default)]
        from_ns: u64,
        /// Records at or after this time after the first record are skipped, ns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ns: Option<u64>,
        /// Only records of these processes are replayed. Empty: of all processes.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        pids: BTreeSet<u32>,
        /// Unit of response times, if the format does not define it: ns, us or ms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response_unit: Option<String>,
        /// If true, a truncated trace gives a warning instead of an error.
        #[serde(default)]
        allow_truncated: bool,
    },
}

fn timed() -> String {
    "timed".to_owned()
}

/// The treatment of records beyond the end of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// The run ends with an error.
    #[default]
    Strict,
    /// The sector is taken modulo the size of the device.
    Wrap,
}

/// The event of a block trace that is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Bios as they were submitted, before merges.
    #[default]
    Queue,
    /// Requests as the scheduler of the recording dispatched them.
    Issue,
}

impl WorkloadSpec {
    /// Returns the name of the workload in records.
    pub fn name(&self) -> &str {
        match self {
            WorkloadSpec::Script { name, .. } => name,
            WorkloadSpec::Fio { .. } => "fio",
            WorkloadSpec::Trace { .. } => "replay",
        }
    }
}

impl RunSpec {
    /// Returns the specification of a run with defaults for all other fields.
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
    /// Returns the seed of this repetition. The first repetition has the seed itself, each further
    /// repetition the next number.
    pub fn run_seed(&self) -> u64 {
        self.seed.wrapping_add(u64::from(self.repeat))
    }
    /// Returns the name of the scheduler in tables: the label, or the scheduler's name with its
    /// settings.
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
