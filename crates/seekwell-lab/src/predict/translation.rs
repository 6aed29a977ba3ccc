//! The translation from a real queue and machine to a simulated one. `--with-sim`, `check-worlds`
//! and `predict` use it. A setting that the simulation does not have is listed.

use super::mount;
use seekwell::{DeviceSpec, QueueSpec, RunSpec, SpecErrors, Substrate, WorkloadSpec, words};
use seekwell_core::DeviceFacts;
use seekwell_core::spec::{
    MAX_CENTISECS, MAX_MEMORY_BYTES, MIN_DIRTY_BYTES, MIN_MEMORY_BYTES, MachineSpec,
};
use seekwell_device::{Source, describe, with_files};
use seekwell_host::MachineFacts;
use seekwell_sched::{WBT_LAT_USEC, wbt};
use seekwell_sim::Setup;
use serde::Serialize;

/// Largest default of `nr_requests` without a scheduler (`BLKDEV_DEFAULT_RQ`). A scheduler gets
/// twice the tags, but at most twice this number.
const DEFAULT_REQUESTS: u32 = 128;

/// Facts that no file tells, so that every translation leaves them out.
const UNKNOWN: &[&str] = &[
    "speed of a core: the usual speed is assumed",
    "age and filling of the file system: a new one is assumed",
    "other programs on the machine",
];

/// A setting of both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Name of the setting, as the kernel calls it.
    pub name: String,
    /// Value on the real machine; `?` if it is unknown.
    pub real: String,
    /// Value in the simulation.
    pub simulated: String,
    /// How the two values are related.
    pub state: State,
}

/// How the values of a setting are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Both sides have the same value, or the nearest one that is modelled.
    Carried,
    /// The kernel sets the value when this scheduler is set; it was not read.
    Derived,
    /// The real value is unknown.
    Assumed,
    /// The simulation has another value.
    Differs,
}

impl State {
    /// Returns the word for tables; empty for a carried setting.
    pub fn word(self) -> &'static str {
        match self {
            State::Carried => "",
            State::Derived => "derived",
            State::Assumed => "assumed",
            State::Differs => "DIFFERS",
        }
    }
}

/// The translation for one machine and one modelled device.
#[derive(Clone, Debug)]
pub struct Translation {
    facts: MachineFacts,
    device: DeviceSpec,
    queue: QueueSpec,
    machine: MachineSpec,
    rows: Vec<Setting>,
    left: Vec<String>,
}

/// Returns a number within the range of a specification, or `None` if it is outside.
fn within<T: PartialOrd + Copy>(n: Option<T>, least: T, most: T) -> Option<T> {
    n.filter(|n| (least..=most).contains(n))
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "?".to_owned(), |v| v.to_string())
}

impl Translation {
    /// Translates the facts for a modelled device, which is a preset or the path of a preset file.
    ///
    /// # Errors
    /// The device is invalid.
    pub fn new(facts: &MachineFacts, device: &str) -> Result<Self, SpecErrors> {
        let mut t = Translation::of_queue(facts, device)?;
        t.machine();
        t.left.extend(UNKNOWN.iter().map(|l| (*l).to_owned()));
        t.kernel();
        Ok(t)
    }

    /// Translates only the facts about the queue, for a recording: its requests come from below the
    /// page cache and the file system.
    ///
    /// # Errors
    /// The device is invalid.
    pub fn of_recording(facts: &MachineFacts, device: &str) -> Result<Self, SpecErrors> {
        let mut t = Translation::of_queue(facts, device)?;
        t.left.extend(UNKNOWN.last().map(|l| (*l).to_owned()));
        t.kernel();
        Ok(t)
    }

    fn of_queue(facts: &MachineFacts, device: &str) -> Result<Self, SpecErrors> {
        let mut t = Translation {
            facts: facts.clone(),
            device: words::device(&with_queues(device, facts.hw_queues))?,
            queue: QueueSpec::default(),
            machine: MachineSpec::default(),
            rows: Vec::new(),
            left: facts.layers.clone(),
        };
        let setup = Setup {
            device: t.device.spec.clone(),
            ..Setup::default()
        };
        // An array is not a single device and has no facts of its own.
        let model = with_files(&t.device.files, || setup.open_device()).ok();
        t.queue(model.as_ref().map(|d| d.facts()));
        Ok(t)
    }

    /// Adds a row for a setting. A value that is known and differs is also listed as left out.
    fn row<T: ToString, U: ToString>(&mut self, name: &str, real: Option<T>, simulated: Option<U>) {
        let simulated = simulated.map_or_else(|| "default".to_owned(), |v| v.to_string());
        let real = text(real);
        let state = match real.as_str() {
            "?" => State::Assumed,
            r if r == simulated => State::Carried,
            _ => State::Differs,
        };
        if state == State::Assumed {
            self.left
                .push(format!("{name}: unknown, {simulated} is assumed"));
        } else if state == State::Differs {
            self.left
                .push(format!("{name} {real}: {simulated} in the simulation"));
        }
        self.rows.push(Setting {
            name: name.to_owned(),
            real,
            simulated,
            state,
        });
    }

    fn queue(&mut self, model: Option<&DeviceFacts>) {
        let f = self.facts.clone();
        let most = model.map(|m| m.max_sectors.0 / 2);
        let q = &mut self.queue;
        q.max_sectors_kb = within(f.max_sectors_kb, 4, 32_767);
        q.max_segments = within(f.max_segments, 1, 65_535);
        q.nomerges = within(f.nomerges, 0, 2).unwrap_or(0) as u8;
        q.hz = within(f.hz, 24, 10_000).unwrap_or(q.hz);
        // A model cannot take more commands at once than it has places.
        let depth = within(f.depth, 1, 65_536);
        q.depth = depth.filter(|d| model.is_none_or(|m| *d < m.depth));
        let q = self.queue.clone();
        let largest = q.max_sectors_kb.map(|kb| most.map_or(kb, |m| kb.min(m)));
        self.row("max_sectors_kb", f.max_sectors_kb, largest);
        self.row("max_segments", f.max_segments, q.max_segments);
        self.row("nomerges", f.nomerges, Some(q.nomerges));
        self.row("queue depth", f.depth, q.depth.or(model.map(|m| m.depth)));
        self.row("hardware queues", f.hw_queues, model.map(|m| m.hw_queues));
        let flag = |on: bool| u8::from(on);
        let (real, simulated) = (f.rotational.map(flag), model.map(|m| flag(m.rotational)));
        self.row("rotational", real, simulated);
        let cache = |on: bool| if on { "write back" } else { "write through" };
        let (real, simulated) = (f.write_back.map(cache), model.map(|m| cache(m.write_cache)));
        self.row("write_cache", real, simulated);
        self.row("CONFIG_HZ", f.hz, Some(q.hz));
    }

    fn machine(&mut self) {
        let f = self.facts.clone();
        let m = &mut self.machine;
        m.cores = within(f.cpus, 1, 1024);
        m.memory_bytes = within(f.memory_bytes, MIN_MEMORY_BYTES, MAX_MEMORY_BYTES);
        m.read_ahead_kb = within(f.read_ahead_kb, 0, 65_536).filter(|kb| kb % 4 == 0);
        let dirty = |name: &str| f.dirty.get(name).copied();
        let count = |name: &str, most: u64| within(dirty(name), 0, most).map(|n| n as u32);
        let bytes = |name: &str| within(dirty(name), MIN_DIRTY_BYTES, MAX_MEMORY_BYTES);
        m.dirty_bytes = bytes("dirty_bytes");
        m.dirty_background_bytes = bytes("dirty_background_bytes");
        // The kernel shows 0 for the one of each pair that is not in force.
        m.dirty_ratio = count("dirty_ratio", 100).filter(|n| *n > 0 && m.dirty_bytes.is_none());
        m.dirty_background_ratio =
            count("dirty_background_ratio", 100).filter(|_| m.dirty_background_bytes.is_none());
        let most = u64::from(MAX_CENTISECS);
        m.dirty_expire_centisecs = count("dirty_expire_centisecs", most);
        m.dirty_writeback_centisecs = count("dirty_writeback_centisecs", most);
        let left = mount::carry(&f.fs, &f.mount_options, m);
        let m = self.machine.clone();
        self.row("cores", f.cpus, m.cores);
        let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
        self.row("memory", f.memory_bytes.map(mib), m.memory_bytes.map(mib));
        self.row("read_ahead_kb", f.read_ahead_kb, m.read_ahead_kb);
        for (name, carried) in [
            ("dirty_ratio", m.dirty_ratio.map(u64::from)),
            (
                "dirty_background_ratio",
                m.dirty_background_ratio.map(u64::from),
            ),
            ("dirty_bytes", m.dirty_bytes),
            ("dirty_background_bytes", m.dirty_background_bytes),
            (
                "dirty_expire_centisecs",
                m.dirty_expire_centisecs.map(u64::from),
            ),
            (
                "dirty_writeback_centisecs",
                m.dirty_writeback_centisecs.map(u64::from),
            ),
        ] {
            let paired = name.ends_with("_ratio") || name.ends_with("_bytes");
            let real = dirty(name).filter(|n| !paired || *n > 0 || carried.is_some());
            if real.is_some() {
                self.row(name, real, carried);
            }
        }
        if f.dirty.is_empty() {
            self.left
                .push("dirty limits: unknown, the kernel's defaults are assumed".to_owned());
        }
        let fs = Some(f.fs.as_str()).filter(|fs| !fs.is_empty());
        let same = fs.is_some() && m.fs.as_deref() == fs;
        self.rows.push(Setting {
            name: "file system".to_owned(),
            real: fs.unwrap_or("none").to_owned(),
            simulated: m.fs.as_deref().unwrap_or("ext4").to_owned(),
            state: if same { State::Carried } else { State::Differs },
        });
        self.left.extend(left);
    }

    fn kernel(&mut self) {
        let f = &self.facts;
        let modelled = version_of("none", &f.kernel);
        self.rows.push(Setting {
            name: "kernel".to_owned(),
            real: f.kernel.clone(),
            state: match modelled {
                Some(_) => State::Carried,
                None => State::Differs,
            },
            simulated: modelled.unwrap_or_else(|| "default".to_owned()),
        });
    }

    /// Returns `nr_requests` under a scheduler. The kernel derives it again from the tags when a
    /// scheduler is set. Under `none` it is the number of tags, which the depth states.
    fn nr_requests(&self, scheduler: &str) -> Option<u32> {
        if scheduler == "none" {
            return None;
        }
        let read = self.facts.under.get(scheduler).and_then(|u| u.nr_requests);
        let derived = self.facts.tags.map(|t| 2 * t.min(DEFAULT_REQUESTS));
        within(read.or(derived), 4, 10_240)
    }

    /// Returns the target of writeback throttling under a scheduler, in us. It is the value that
    /// was read under this scheduler, or the value that the kernel derives from another one: a
    /// value that differs from the default was written by hand and stays.
    fn wbt_lat_usec(&self, scheduler: &str) -> Option<u64> {
        if let Some(own) = self.facts.under.get(scheduler) {
            return own.wbt_lat_usec;
        }
        let rotational = self.facts.rotational.unwrap_or_default();
        let (name, read) = self
            .facts
            .under
            .iter()
            .find_map(|(name, u)| Some((name, u.wbt_lat_usec?)))?;
        Some(match read == wbt::default_usec(name, rotational) {
            true => wbt::default_usec(scheduler, rotational),
            false => read,
        })
    }

    /// Turns the specification of a run on the real machine into the same run in simulation.
    pub fn carry(&self, spec: &mut RunSpec) {
        spec.substrate = Substrate::Sim;
        spec.device.clone_from(&self.device);
        spec.queue.clone_from(&self.queue);
        let recorded = matches!(spec.workload, WorkloadSpec::Trace { .. });
        spec.machine = (!recorded).then(|| self.machine.clone());
        let s = &mut spec.scheduler;
        s.version = version_of(&s.name, &self.facts.kernel).or(s.version.take());
        spec.queue.nr_requests = self.nr_requests(&s.name);
        // Attributes of the queue that an experiment sets for its runs.
        let mut taken = |name: &str| s.tunables.remove(name).and_then(|v| v.parse::<u32>().ok());
        taken("iostats");
        taken("rq_affinity");
        if let Some(n) = taken("nr_requests").filter(|_| s.name != "none") {
            spec.queue.nr_requests = Some(n);
        }
        if let Some(kb) = taken("max_sectors_kb") {
            spec.queue.max_sectors_kb = Some(kb);
        }
        if let Some(n) = taken("nomerges") {
            spec.queue.nomerges = n as u8;
        }
        if let (Some(kb), Some(m)) = (taken("read_ahead_kb"), &mut spec.machine) {
            m.read_ahead_kb = Some(kb);
        }
        let mq = seekwell_sched::find(&s.versioned()).is_some_and(|(.., era)| era.is_mq());
        if let Some(us) = self.wbt_lat_usec(&s.name).filter(|_| mq) {
            let own = s.tunables.entry(WBT_LAT_USEC.name.to_owned());
            own.or_insert_with(|| us.to_string());
        }
    }

    /// Returns the settings of both sides. Settings of schedulers are those of `schedulers`.
    pub fn settings(&self, schedulers: &[&str]) -> Vec<Setting> {
        let mut all = Vec::new();
        for name in schedulers {
            let read = self.facts.under.get(*name).copied().unwrap_or_default();
            let wbt = self.wbt_lat_usec(name);
            for (what, real, simulated) in [
                (
                    "nr_requests",
                    read.nr_requests.map(u64::from),
                    self.nr_requests(name).map(u64::from),
                ),
                ("wbt_lat_usec", read.wbt_lat_usec, wbt),
            ] {
                // Without a scheduler, the depth stands for the number of requests.
                let Some(simulated) = simulated else { continue };
                let state = match real {
                    None => State::Derived,
                    Some(n) if n == simulated => State::Carried,
                    Some(_) => State::Differs,
                };
                all.push(Setting {
                    name: format!("{what}, {}", seekwell_core::prose::in_prose(name)),
                    real: real.unwrap_or(simulated).to_string(),
                    simulated: simulated.to_string(),
                    state,
                });
            }
        }
        all.extend(self.rows.iter().cloned());
        all
    }

    /// Returns what the simulation cannot carry, in words.
    pub fn left(&self) -> &[String] {
        &self.left
    }
    /// Returns the facts about the real machine.
    pub fn facts(&self) -> &MachineFacts {
        &self.facts
    }
    /// Returns the modelled device.
    pub fn device(&self) -> &DeviceSpec {
        &self.device
    }
}

/// Returns the version that models a scheduler of a kernel.
fn version_of(scheduler: &str, kernel: &str) -> Option<String> {
    words::version_for(scheduler, kernel)
}

/// Adds the number of hardware queues to a device that has this parameter and does not state it.
fn with_queues(device: &str, queues: Option<u32>) -> String {
    let open = |p: &seekwell_device::Preset| {
        p.get("hw_queues")
            .is_some_and(|p| p.source != Source::Override)
    };
    match within(queues, 1, 1024) {
        Some(n) if describe(device).is_ok_and(|p| open(&p)) => format!("{device},hw_queues={n}"),
        _ => device.to_owned(),
    }
}

#[cfg(test)]
mod tests;
