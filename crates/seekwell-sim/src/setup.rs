//! The setup of a run: device, scheduler, tunables, kernel tick and seed. It is checked before the
//! run.

mod switch;
pub(crate) mod tree;

use crate::limits::{largest_request, list_entries, max_sectors_kb, segments};
use crate::notation::{queue, scheduler};
use seekwell_block::host::MqDriver;
use seekwell_block::mq::MqQueue;
use seekwell_block::{HostDriver, LegacyOptions, LegacyQueue, QueueStats};
use seekwell_core::result::{BUILD, DeviceInfo, QueueUsed, Record, SCHEMA, SchedulerUsed};
use seekwell_core::spec::{QueueSpec, SchedulerSpec, SpecErrors};
use seekwell_core::{
    Bio, BioDone, BioSink, Control, Device, DeviceFacts, DeviceStats, Era, Instant, MemberKind,
    Nanos, SchedulerWork, Sector, Sectors, Snapshot, Tap, TickClock,
};
use seekwell_device::DeviceError;
use seekwell_sched::{
    Cx, Layer, QueueFacts, Scheduler, SchedulerInfo, StoreError, WBT_LAT_USEC, costs,
};
use thiserror::Error;
use tree::Top;

/// The setup of one device with one scheduler.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The device: a name as in `seekwell devices`, or the path of a preset.
    pub device: String,
    /// The scheduler: a name as in `seekwell schedulers`, with a version if it is not the default
    /// one.
    pub scheduler: String,
    /// Tunables and their values. They are written in this order before the start.
    pub tunables: Vec<(String, String)>,
    /// Clock ticks of the kernel per second (CONFIG_HZ).
    pub hz: u32,
    /// Seed of every random stream.
    pub seed: u64,
    /// queue/nr_requests. `None`: the default of the layer.
    pub nr_requests: Option<u32>,
    /// device/queue_depth. `None`: the depth that the device accepts.
    pub depth: Option<u32>,
    /// queue/max_sectors_kb. `None`: the kernel's default.
    pub max_sectors_kb: Option<u32>,
    /// queue/max_segments, the length of the driver's scatter list. `None`: the driver's default.
    pub max_segments: Option<u32>,
    /// queue/nomerges.
    pub nomerges: u8,
    /// Whether virtio attaches a device with one queue ([`QueueSpec::virtio`]).
    pub virtio: bool,
    /// Number of CPUs that submit. blk-mq has one software context per CPU. It has one hardware
    /// context per CPU, but at most as many as the device has queues.
    pub cpus: u16,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            device: "hdd:hitachi-7k200".to_owned(),
            scheduler: "mq-deadline".to_owned(),
            tunables: Vec::new(),
            hz: 250,
            seed: 1,
            nr_requests: None,
            depth: None,
            max_sectors_kb: None,
            max_segments: None,
            nomerges: 0,
            virtio: false,
            cpus: CPUS,
        }
    }
}

/// Default number of CPUs. The modelled machines have the same number of cores.
pub const CPUS: u16 = 4;

/// The reason why a setup is invalid.
#[derive(Error, Debug)]
pub enum SetupError {
    /// All faults of scheduler, tunables and queue settings.
    #[error(transparent)]
    Spec(#[from] SpecErrors),
    /// The scheduler itself rejected a tunable.
    #[error("{scheduler}: {source}")]
    Tunable {
        /// Name of the scheduler.
        scheduler: String,
        /// The reason for the rejection.
        source: Box<StoreError>,
    },
    /// The device is invalid.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A single-queue or blk-mq queue with a modelled device below it.
pub struct Queue {
    kind: Kind,
    /// The setup whose scheduler takes over when a switch ends.
    next: Option<Box<Setup>>,
}

/// Number of tags of the multi-queue driver for eMMC and SD cards without a command queue.
const MMC_TAGS: u32 = 64;

type AnyDevice = Box<dyn Device + Send>;

enum Kind {
    Legacy(Box<LegacyQueue<dyn Scheduler, AnyDevice>>),
    Mq(Box<MqQueue<dyn Scheduler, AnyDevice>>),
    /// An md array. The array has no scheduler, but each member has one.
    Array(Box<Top>),
}

/// Calls the same method on either layer.
macro_rules! either {
    ($queue:expr, $q:ident => $call:expr, $a:ident => $other:expr) => {
        match $queue {
            Kind::Legacy($q) => $call,
            Kind::Mq($q) => $call,
            Kind::Array($a) => $other,
        }
    };
}

impl Setup {
    fn info(&self) -> Result<(&'static SchedulerInfo, &'static str, Era), SetupError> {
        let found = scheduler::named(&self.scheduler)?;
        Ok((found.info, found.version, found.era))
    }
    /// Checks everything that can be checked without building the queue.
    pub fn validate(&self) -> Result<(), SetupError> {
        let mut errors = SpecErrors::default();
        let queue = QueueSpec {
            hz: self.hz,
            nr_requests: self.nr_requests,
            depth: self.depth,
            max_sectors_kb: self.max_sectors_kb,
            max_segments: self.max_segments,
            nomerges: self.nomerges,
            virtio: self.virtio,
        };
        errors.take("", queue::queue(&queue));
        let asked = SchedulerSpec {
            name: self.scheduler.clone(),
            version: None,
            tunables: self.tunables.iter().cloned().collect(),
        };
        errors.take("", scheduler::checked(&asked));
        if !(1..=1024).contains(&self.cpus) {
            errors.push("cpus", format!("cpus {} is outside 1..=1024", self.cpus));
        }
        errors.or(())?;
        seekwell_device::footprint(&self.device)?;
        tree::check(self)
    }

    /// Returns a note if the device is older than the default version of the scheduler. This
    /// concerns devices from before blk-mq, and phones, whose kernel is fixed. The first text is
    /// the name of the scheduler in the version of the device's time. The second text is the note.
    pub fn time_note(&self) -> Option<(String, String)> {
        let preset = seekwell_device::read_preset(&self.device).ok()?;
        let (info, version, era) = self.info().ok()?;
        let year = preset.year?;
        if self.scheduler != info.name {
            return None;
        }
        let (then, then_era) = seekwell_sched::of_its_time(info, year)?;
        let other_time = preset.kind == "emmc" || era.is_mq();
        if then_era.is_mq() || !other_time {
            return None;
        }
        let today = if era.is_mq() { ", the current one" } else { "" };
        let note = format!(
            "{} dates from {year}, but {} means version {version}{today}; the version of that time \
             is {then} (--schedulers {then})",
            self.device,
            seekwell_core::prose::in_prose(info.name)
        );
        Some((then, note))
    }

    /// Returns the kernel era of the scheduler.
    pub fn era(&self) -> Result<Era, SetupError> {
        self.info().map(|(_, _, era)| era)
    }
    /// Returns whether the scheduler distinguishes processes.
    pub fn per_process(&self) -> bool {
        self.info().is_ok_and(|(i, _, _)| i.per_process)
    }

    fn max_sectors(&self, era: Era, f: &DeviceFacts) -> Sectors {
        match self.max_sectors_kb {
            Some(kb) => Sectors((kb * 2).min(f.max_sectors.0).max(8)),
            None => largest_request(era, f),
        }
    }
    /// Makes the request size limits of a comparison equal. All setups in `group` use the same
    /// device. If their schedulers belong to different kernels, the default limits differ, from 512
    /// KiB to 4 MiB. The comparison would then measure request sizes instead of schedulers. Setups
    /// without an own limit therefore get the smallest of these default limits.
    pub fn align_requests(group: &mut [Setup]) -> Result<(), SetupError> {
        let mut eras = Vec::with_capacity(group.len());
        for s in group.iter() {
            eras.push(s.era()?);
        }
        let Some(first) = group
            .first()
            .filter(|_| eras.windows(2).any(|e| e[0] != e[1]))
        else {
            return Ok(());
        };
        let facts = if tree::is_array(&first.device)? {
            first.build()?.device_facts().clone()
        } else {
            first.open_device()?.facts().clone()
        };
        let least = eras.iter().map(|e| largest_request(*e, &facts).0 / 2).min();
        for s in group {
            s.max_sectors_kb = s.max_sectors_kb.or(least);
        }
        Ok(())
    }

    /// Builds the queue.
    pub fn build(&self) -> Result<Queue, SetupError> {
        self.validate()?;
        if tree::is_array(&self.device)? {
            return Ok(Queue::new(Kind::Array(Box::new(tree::top(self)?))));
        }
        self.build_over(self.open_device()?)
    }
    /// Opens the device: a drive, or the disk of a guest with everything below it. An array is not
    /// a single device and is rejected.
    pub fn open_device(&self) -> Result<AnyDevice, SetupError> {
        tree::device(self, 0.0)
    }
    /// Builds the queue with an existing device below it.
    pub fn build_over(&self, dev: AnyDevice) -> Result<Queue, SetupError> {
        let (info, version, era) = self.info()?;
        let f = dev.facts().clone();
        let depth = self.depth.map_or(f.depth, |d| d.min(f.depth));
        let facts = QueueFacts {
            era,
            rotational: f.rotational,
            depth,
            nr_requests: self.nr_requests.unwrap_or(128),
            hctxs: if era.is_mq() {
                f.hw_queues.clamp(1, self.cpus)
            } else {
                1
            },
            cpus: self.cpus,
            max_sectors: self.max_sectors(era, &f),
            max_segments: self.max_segments.unwrap_or_else(|| list_entries(era, &f)),
            nomerges: self.nomerges,
            can_stop: f.can_stop,
            name: f.name.clone(),
        };
        let clock = TickClock::new(self.hz);
        let hash = (info.hash)(version);
        let make = |cx: &Cx| (info.make)(cx, version);
        let start = Instant::START;
        let tunable = |source| SetupError::Tunable {
            scheduler: self.scheduler.clone(),
            source: Box::new(source),
        };
        let queue = if era.is_mq() {
            // SATA and SCSI limit commands by a budget of the device. Drivers with several queues
            // limit them by the tags of each queue. The driver of eMMC and SD cards has 64 tags,
            // although the card accepts one command. The next command waits in the driver, already
            // prepared.
            let driver = if f.mmc.is_some() {
                MqDriver::Tag { depth: MMC_TAGS }
            } else if f.hw_queues > 1 || self.virtio {
                MqDriver::Tag { depth }
            } else {
                MqDriver::Scsi { depth }
            };
            let mut q = MqQueue::new(facts, clock, driver, hash, dev, make);
            // A virtio disk appears with mq-deadline, which has two requests for each tag.
            let appears = (self.virtio && f.hw_queues == 1).then(|| 2 * depth.min(128));
            q.throttle_writeback(start, appears);
            // A lower queue_depth does not change the tags. Therefore nr_requests keeps the value
            // that follows from the device.
            let tags = (self.depth.is_some() && info.name != "none").then(|| 2 * f.depth.min(128));
            if let Some(n) = self.nr_requests.or(tags) {
                q.set_nr_requests(start, n).map_err(tunable)?;
            }
            Kind::Mq(Box::new(q))
        } else {
            let opts = LegacyOptions {
                hash,
                ..LegacyOptions::default()
            };
            let host = match f.mmc {
                Some(mmc) => HostDriver::Mmc(mmc),
                None => HostDriver::Scsi { depth },
            };
            Kind::Legacy(Box::new(LegacyQueue::new(
                facts, clock, opts, host, dev, make,
            )))
        };
        let mut queue = Queue::new(queue);
        queue.charge(info);
        for (name, text) in &self.tunables {
            queue.store(start, name, text).map_err(tunable)?;
        }
        Ok(queue)
    }

    /// Returns a record that contains the setup but no results.
    pub fn record(&self, workload: &str) -> Record {
        let mut r = Record {
            schema: SCHEMA,
            seekwell: env!("CARGO_PKG_VERSION").to_owned(),
            build: BUILD.to_owned(),
            substrate: "sim".to_owned(),
            workload: workload.to_owned(),
            hz: self.hz,
            seed: self.seed,
            ..Record::default()
        };
        r.device = DeviceInfo {
            spec: self.device.clone(),
            ..DeviceInfo::default()
        };
        if let Ok((info, version, era)) = self.info() {
            r.scheduler = SchedulerUsed {
                spec: self.scheduler.clone(),
                name: info.name.to_owned(),
                version: version.to_owned(),
                layer: match info.layer {
                    Layer::Legacy => "single-queue".to_owned(),
                    Layer::Mq => "blk-mq".to_owned(),
                },
                kernel: era.name().to_owned(),
                tunables: Default::default(),
            };
        }
        r
    }
}

/// Returns the counted CPU costs of a scheduler and of a simple FIFO scheduler. `none` under blk-mq
/// costs nothing, because it has no lock of its own. For hard disks the cost is not used, because a
/// request takes a thousand times as long.
fn work(name: &str, fifo: &str) -> Option<SchedulerWork> {
    Some(SchedulerWork {
        instructions: costs::instructions(name).filter(|_| name != "none")?,
        fifo_instructions: costs::instructions(fifo)?,
        ..SchedulerWork::default()
    })
}

impl Queue {
    fn new(kind: Kind) -> Queue {
        Queue { kind, next: None }
    }
    /// Sets the CPU cost of the scheduler, if the device is fast enough for it to matter.
    fn charge(&mut self, info: &SchedulerInfo) {
        let fifo = match info.layer {
            Layer::Legacy => "noop",
            Layer::Mq => "none",
        };
        let work = work(info.name, fifo).filter(|_| !self.device_facts().rotational);
        either!(&mut self.kind, q => {
            let lock = (!q.scheduler().per_hctx()).then_some(0);
            q.cx.cost = work.map(|w| SchedulerWork { lock, ..w });
        }, _a => {});
    }
    /// Writes a tunable of the scheduler or of the queue.
    fn store(&mut self, now: Instant, name: &str, text: &str) -> Result<(), StoreError> {
        either!(&mut self.kind, q => q.store(now, name, text), _a => Ok(()))
    }
    /// Returns the facts about the device that a host can read.
    pub fn device_facts(&self) -> &DeviceFacts {
        either!(&self.kind, q => q.device().facts(), a => &a.facts)
    }
    /// Returns the device's counters.
    pub fn device_stats(&self) -> DeviceStats {
        either!(&self.kind, q => q.device().stats(), a => a.node.device_stats())
    }
    /// Returns the queue's counters. For an array, returns the sums over its members.
    pub fn stats(&self) -> QueueStats {
        either!(&self.kind, q => q.stats().clone(), a => a.node.stats())
    }
    /// Returns the queue's counters, with time integrals up to `now`.
    pub fn stats_at(&self, now: Instant) -> QueueStats {
        either!(&self.kind, q => q.stats().at(now), a => a.node.stats_at(now))
    }
    /// Returns the scheduler and its context. For an array, returns those of its first member.
    pub fn parts(&mut self) -> (&mut (dyn Scheduler + 'static), &mut Cx) {
        either!(&mut self.kind, q => q.parts(), a => {
            let first = a.node.first();
            first.expect("an array has members, and queues at the bottom").parts()
        })
    }
    /// Returns queue/wbt_lat_usec, or `None` if the layer has no writeback throttling. For an
    /// array, returns the value of its first member.
    pub fn wbt_lat_usec(&mut self) -> Option<u64> {
        match &mut self.kind {
            Kind::Legacy(_) => None,
            Kind::Mq(q) => q.wbt().map(|w| w.lat_usec()),
            Kind::Array(a) => a.node.first()?.wbt_lat_usec(),
        }
    }
    /// Returns the queue's limits. For an array, returns those of its first member.
    fn used(&mut self) -> Option<QueueUsed> {
        let (q, f) = match &mut self.kind {
            Kind::Array(a) => return a.node.first()?.used(),
            Kind::Legacy(q) => (&q.cx.queue, q.device().facts()),
            Kind::Mq(q) => (&q.cx.queue, q.device().facts()),
        };
        let usual = q.max_sectors == largest_request(q.era, f);
        let counted = q.max_segments < u32::MAX;
        Some(QueueUsed {
            max_sectors_kb: match usual {
                true => max_sectors_kb(q.era, f),
                false => q.max_sectors.0 / 2,
            },
            max_segments: match counted {
                true => Some(q.max_segments),
                false => segments(f),
            },
            largest_kb: (!counted).then_some(q.max_sectors.0 / 2),
            nr_requests: q.nr_requests,
            read_ahead_kb: None,
            depth: q.depth,
            hw_queues: q.hctxs.into(),
        })
    }
    /// Returns a warning if a target for writeback throttling was written but has no effect.
    fn ignored(&mut self) -> Option<String> {
        let usec = match &mut self.kind {
            Kind::Legacy(_) => None,
            Kind::Mq(q) => q.wbt()?.ignored_usec(),
            Kind::Array(a) => return a.node.first()?.ignored(),
        }?;
        Some(format!(
            "wbt_lat_usec {usec} has no effect: the scheduler disables throttling, and the kernel \
             ignores a write of the value that it already stores; write {}",
            usec + 1
        ))
    }
    /// Fills the parts of a record that only the queue can fill. Must be called after the run.
    pub fn fill(&mut self, r: &mut Record) {
        let (stats, busy) = (self.stats(), self.device_stats().busy);
        self.fill_counted(r, &stats, busy);
    }
    /// Does the same as [`Self::fill`], for a run of which only a part was counted.
    pub(crate) fn fill_counted(&mut self, r: &mut Record, s: &QueueStats, busy: Nanos) {
        let f = self.device_facts();
        let f_name = f.name.clone();
        r.device.name = f.name.clone();
        r.device.rotational = f.rotational;
        r.device.depth = f.depth;
        r.device.capacity_sectors = f.capacity.0;
        r.requests = s.requests;
        r.back_merges = s.back_merges;
        r.front_merges = s.front_merges;
        r.joins = s.joins;
        r.waits = s.waits;
        if s.requests > 0 {
            r.mean_seek_sectors = s.seek_sectors as f64 / s.requests as f64;
        }
        if r.span_ns() > 0 {
            r.depth_mean = s.depth_ns as f64 / r.span_ns() as f64;
        }
        r.device_busy_ns = busy.0;
        if let Kind::Array(a) = &self.kind
            && let Some(named) = &a.named
        {
            r.warnings.push(format!(
                "the members of {} use {named}, as the device specifies: {} is not used",
                f_name, r.scheduler.spec
            ));
        }
        r.queue = self.used();
        r.warnings.extend(self.ignored());
        let wbt = self.wbt_lat_usec();
        let (sched, cx) = self.parts();
        let show =
            |t: &seekwell_sched::Tunable| sched.show(cx, t.name).map(|v| (t.name.to_owned(), v));
        r.scheduler.tunables = sched.tunables().iter().filter_map(show).collect();
        let wbt = wbt.map(|us| (WBT_LAT_USEC.name.to_owned(), us.to_string()));
        r.scheduler.tunables.extend(wbt);
    }
}

impl BioSink for Queue {
    fn submit(&mut self, now: Instant, bio: Bio) {
        either!(&mut self.kind, q => q.submit(now, bio), a => a.node.submit(now, bio))
    }
    fn next_event(&self) -> Option<Instant> {
        either!(&self.kind, q => q.next_event(), a => a.node.next_event())
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        either!(&mut self.kind, q => q.advance(to, out), a => a.node.advance(to, out));
        if self.next.is_some() {
            self.settle(to);
        }
    }
    fn control(&mut self, now: Instant, what: Control) {
        either!(&mut self.kind, q => q.control(now, what), a => a.node.control(now, what))
    }
    fn capacity(&self) -> Sector {
        self.device_facts().capacity
    }
    fn congested(&self, write: bool) -> bool {
        either!(&self.kind, q => q.congested(write), a => a.node.congested(write))
    }
    fn waits(&self, task: seekwell_core::TaskId) -> bool {
        either!(&self.kind, q => q.waits(task), a => a.node.waits(task))
    }
    fn count_work(&mut self, counts: bool) {
        either!(&mut self.kind, q => q.count_work(counts), a => a.node.count_work(counts));
    }
    fn take_work(&mut self) -> Option<SchedulerWork> {
        either!(&mut self.kind, q => q.take_work(), a => a.node.take_work())
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        either!(&mut self.kind, q => q.listen(tap), a => a.node.listen(tap));
        if let (Some(tap), Kind::Array(a)) = (tap, &self.kind) {
            tap.introduce(MemberKind::Array, &a.facts.name);
        }
    }
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        either!(&self.kind, q => q.snapshot(now, out), a => a.node.snapshot(now, out))
    }
}
