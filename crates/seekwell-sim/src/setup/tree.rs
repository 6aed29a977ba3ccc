//! Devices that consist of queues: md arrays and disks of guests, nested as specified.
//!
//! Every drive of an array has a scheduler of its own, and every disk of a guest has a scheduler
//! inside the guest. This is the scheduler that the specification of the device names. If it names
//! none, it is the scheduler of the setup. The scheduler under test therefore runs on the members
//! of an array, or in the guest's own queue.

use super::{Queue, Setup, SetupError};
use crate::notation::read_ahead::optimal_bytes;
use crate::notation::scheduler;
use seekwell_block::raid::{BitmapOptions, ParityOptions, ReadPolicy, RemapOptions};
use seekwell_block::{Linear, Mirror, Parity, QueueStats, Remapped, Stripe, VirtualDisk};
use seekwell_core::spec::SpecErrors;
use seekwell_core::{
    Bio, BioDone, BioSink, Control, Device, DeviceFacts, DeviceStats, Instant, SchedulerWork,
    Sector, Snapshot, Tap, TaskId,
};
use seekwell_device::guest::Format;
use seekwell_device::raid::{self, ArrayParams, Combined, LeafOptions, Level};
use seekwell_device::{GuestParams, ParamError, Preset, open_member, read_preset};

type AnyDevice = Box<dyn Device + Send>;

/// Threads of arrays count their task numbers down from here.
const THREADS: u32 = u32::MAX;
/// Number of chunks per mapping table of qcow2: 64 KiB of 8-byte entries.
const QCOW2_TABLE: u64 = 8192;

/// A queue, or an array of nodes.
pub(crate) enum Node {
    /// A queue over a device.
    Queue(Box<Queue>),
    /// RAID 0.
    Stripe(Stripe<Node>),
    /// Members that follow each other in the address space.
    Linear(Linear<Node>),
    /// RAID 1 or 10.
    Mirror(Mirror<Node>),
    /// RAID 5 or 6.
    Parity(Box<Parity<Node>>),
    /// A device whose chunks are remapped.
    Remap(Box<Remapped<Node>>),
}

macro_rules! each {
    ($node:expr, $n:ident => $call:expr) => {
        match $node {
            Node::Queue($n) => $call,
            Node::Stripe($n) => $call,
            Node::Linear($n) => $call,
            Node::Mirror($n) => $call,
            Node::Parity($n) => $call,
            Node::Remap($n) => $call,
        }
    };
}

impl BioSink for Node {
    fn submit(&mut self, now: Instant, bio: Bio) {
        each!(self, n => n.submit(now, bio))
    }
    fn next_event(&self) -> Option<Instant> {
        each!(self, n => n.next_event())
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        each!(self, n => n.advance(to, out))
    }
    fn control(&mut self, now: Instant, what: Control) {
        each!(self, n => n.control(now, what))
    }
    fn capacity(&self) -> Sector {
        each!(self, n => n.capacity())
    }
    fn congested(&self, write: bool) -> bool {
        each!(self, n => n.congested(write))
    }
    fn waits(&self, task: TaskId) -> bool {
        each!(self, n => n.waits(task))
    }
    fn count_work(&mut self, counts: bool) {
        each!(self, n => n.count_work(counts));
    }
    fn take_work(&mut self) -> Option<SchedulerWork> {
        each!(self, n => n.take_work())
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        each!(self, n => n.listen(tap))
    }
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        each!(self, n => n.snapshot(now, out))
    }
}

impl Node {
    fn members(&self) -> &[Node] {
        match self {
            Node::Queue(_) => &[],
            Node::Stripe(n) => n.members(),
            Node::Linear(n) => n.members(),
            Node::Mirror(n) => n.members(),
            Node::Parity(n) => n.members(),
            Node::Remap(n) => n.members(),
        }
    }
    /// Returns the first queue below this node.
    pub(crate) fn first(&mut self) -> Option<&mut Queue> {
        let members = match self {
            Node::Queue(q) => return Some(q),
            Node::Stripe(n) => n.members_mut(),
            Node::Linear(n) => n.members_mut(),
            Node::Mirror(n) => n.members_mut(),
            Node::Parity(n) => n.members_mut(),
            Node::Remap(n) => n.members_mut(),
        };
        members.first_mut()?.first()
    }
    /// Returns the facts that Linux would show. An array is rotational if any member is. Its
    /// largest request is the smallest of the largest requests of its members. The numbers of
    /// commands are added.
    fn facts(&self) -> DeviceFacts {
        if let Node::Queue(q) = self {
            return q.device_facts().clone();
        }
        let all: Vec<DeviceFacts> = self.members().iter().map(Node::facts).collect();
        let most = |f: fn(&DeviceFacts) -> u32| all.iter().map(f).max().unwrap_or(0);
        DeviceFacts {
            rotational: all.iter().any(|f| f.rotational),
            write_cache: all.iter().any(|f| f.write_cache),
            fua: all.iter().all(|f| f.fua),
            flush_queueable: all.iter().all(|f| f.flush_queueable),
            max_sectors: all.iter().map(|f| f.max_sectors).min().unwrap_or_default(),
            physical_block_bytes: most(|f| f.physical_block_bytes),
            io_opt_bytes: most(|f| f.io_opt_bytes),
            ..DeviceFacts::plain("", self.capacity(), all.iter().map(|f| f.depth).sum())
        }
    }
    /// Returns the sums of the counters of all devices below this node.
    pub(crate) fn device_stats(&self) -> DeviceStats {
        if let Node::Queue(q) = self {
            return q.device_stats();
        }
        let mut sum = DeviceStats::default();
        for m in self.members() {
            let s = m.device_stats();
            sum.busy = sum.busy.max(s.busy);
            sum.cache_hits += s.cache_hits;
            sum.media_ops += s.media_ops;
            sum.seek_sectors += s.seek_sectors;
            sum.seeks += s.seeks;
            sum.seek_time += s.seek_time;
            sum.rotation_time += s.rotation_time;
            sum.internal_bytes += s.internal_bytes;
        }
        sum
    }
    /// Returns the sums of the counters of all queues below this node.
    pub(crate) fn stats(&self) -> QueueStats {
        if let Node::Queue(q) = self {
            return q.stats();
        }
        let mut sum = QueueStats::default();
        self.members().iter().for_each(|m| sum.add(&m.stats()));
        sum
    }
    /// Returns the sums of the counters, with time integrals up to `now`.
    pub(crate) fn stats_at(&self, now: Instant) -> QueueStats {
        if let Node::Queue(q) = self {
            return q.stats_at(now);
        }
        let mut sum = QueueStats::default();
        let all = self.members().iter();
        all.for_each(|m| sum.add(&m.stats_at(now)));
        sum
    }
}

/// An array at the place of a queue. The array has no scheduler, but its members have.
pub(crate) struct Top {
    pub(crate) node: Node,
    pub(crate) facts: DeviceFacts,
    /// The scheduler of the members, if the specification of the array names one.
    pub(crate) named: Option<String>,
}

/// Returns whether the device is an array of queues.
pub(crate) fn is_array(spec: &str) -> Result<bool, SetupError> {
    Ok(read_preset(spec)?.kind == "raid")
}

/// Checks the schedulers and members of a device without opening it.
pub(crate) fn check(setup: &Setup) -> Result<(), SetupError> {
    let text = &setup.device;
    let preset = read_preset(text)?;
    let at = |e: ParamError| SetupError::Device(preset.locate(e, text));
    let below = |device: &String, scheduler: &Option<String>| {
        let inner = under(setup, device, scheduler.as_deref(), setup.seed)?;
        inner.validate()
    };
    match preset.kind {
        "raid" => {
            let p = ArrayParams::from_preset(&preset).map_err(at)?;
            let mut seen: Vec<&String> = Vec::new();
            for m in &p.members {
                if !seen.contains(&m) {
                    below(m, &p.scheduler)?;
                    seen.push(m);
                }
            }
            Ok(())
        }
        "virtual" => {
            let p = GuestParams::from_preset(&preset).map_err(at)?;
            below(&p.over, &p.host_scheduler)
        }
        _ => Ok(()),
    }
}

/// Returns the setup of a queue below `setup`. It has its own device, and its own scheduler if
/// `scheduler` is given.
fn under(
    setup: &Setup,
    device: &str,
    scheduler: Option<&str>,
    seed: u64,
) -> Result<Setup, SetupError> {
    let mut inner = Setup {
        device: device.to_owned(),
        seed,
        ..setup.clone()
    };
    let Some(text) = scheduler else {
        return Ok(inner);
    };
    let typed = scheduler::typed(text).map_err(|e| {
        let mut all = SpecErrors::default();
        all.under(&format!("scheduler \"{text}\" of {}", setup.device), e);
        all
    })?;
    inner.scheduler = typed.spec.versioned();
    inner.tunables = typed.spec.tunables.into_iter().collect();
    Ok(inner)
}

/// Opens the device of a setup: a drive, or the disk of a guest.
pub(crate) fn device(setup: &Setup, spread: f64) -> Result<AnyDevice, SetupError> {
    let preset = read_preset(&setup.device)?;
    if preset.kind != "virtual" {
        let options = LeafOptions {
            rpm_spread: spread,
            write_cache: None,
        };
        return Ok(open_member(&setup.device, setup.seed, options)?);
    }
    let at = |e: ParamError| SetupError::Device(preset.locate(e, &setup.device));
    let p = GuestParams::from_preset(&preset).map_err(at)?;
    let mut host = under(setup, &p.over, p.host_scheduler.as_deref(), setup.seed)?;
    // These settings belong to the guest and not to its host.
    (host.nr_requests, host.depth) = (None, None);
    (host.max_sectors_kb, host.max_segments) = (None, None);
    host.nomerges = 0;
    // One I/O thread of the hypervisor submits all requests of the guest.
    host.cpus = 1;
    let mut node = node(&host, 0.0, &mut 0)?;
    if p.format != Format::Raw {
        let covers = match p.format {
            Format::Qcow2 => QCOW2_TABLE,
            _ => 0,
        };
        let options = RemapOptions {
            chunk: p.chunk,
            aged: p.aged,
            covers,
            tables: p.tables,
            seed: setup.seed,
        };
        node = Node::Remap(Box::new(Remapped::new(node, options).map_err(at)?));
    }
    Ok(Box::new(VirtualDisk::new(p, node, setup.seed)))
}

/// Builds the node for a setup: a queue with its device, or an array of queues.
fn node(setup: &Setup, spread: f64, arrays: &mut u32) -> Result<Node, SetupError> {
    let preset = read_preset(&setup.device)?;
    if preset.kind == "raid" {
        return array(setup, &preset, arrays).map(|t| t.node);
    }
    let queue = setup.build_over(device(setup, spread)?)?;
    Ok(Node::Queue(Box::new(queue)))
}

/// Builds the array of a setup.
pub(crate) fn top(setup: &Setup) -> Result<Top, SetupError> {
    let preset = read_preset(&setup.device)?;
    array(setup, &preset, &mut 0)
}

fn array(setup: &Setup, preset: &Preset, arrays: &mut u32) -> Result<Top, SetupError> {
    let at = |e: ParamError| SetupError::Device(preset.locate(e, &setup.device));
    let p = ArrayParams::from_preset(preset).map_err(at)?;
    *arrays += 1;
    let thread = TaskId(THREADS - *arrays);
    let mut members = Vec::new();
    for (i, m) in p.members.iter().enumerate() {
        let seed = raid::member_seed(setup.seed, i);
        let inner = under(setup, m, p.scheduler.as_deref(), seed)?;
        members.push(node(&inner, p.rpm_spread, arrays)?);
    }
    let rotating = members.iter().all(|m| m.facts().rotational);
    let sizes: Vec<Sector> = members.iter().map(|m| m.capacity()).collect();
    if let Combined::Raid(_) = p.combined {
        raid::equal(&sizes).map_err(at)?;
    }
    let bitmap = p.bitmap.map(|(region, delay)| BitmapOptions {
        region,
        delay,
        thread,
    });
    let reserve = if bitmap.is_some() { 8 } else { 0 };
    let node = match p.combined {
        Combined::Linear => Node::Linear(Linear::new(members).map_err(at)?),
        Combined::Remap => {
            let options = RemapOptions {
                chunk: u64::from(p.chunk.0),
                aged: p.remap.0,
                covers: p.remap.1,
                tables: p.remap.2,
                seed: setup.seed,
            };
            let mut members = members;
            let r = Remapped::new(members.remove(0), options).map_err(at)?;
            Node::Remap(Box::new(r))
        }
        Combined::Raid(Level::Raid0) => {
            if !p.failed.is_empty() {
                return Err(at(ParamError::new(
                    "failed",
                    "RAID 0 cannot lose a member",
                    "leave out `failed`",
                )));
            }
            Node::Stripe(Stripe::new(members, p.chunk).map_err(at)?)
        }
        Combined::Raid(level @ (Level::Raid5 | Level::Raid6)) => {
            let options = ParityOptions {
                stripe_cache: p.stripe_cache,
                preread_bypass: p.preread_bypass,
                modify_on_tie: p.modify_on_tie,
                handling: p.thread.0,
                compute: p.thread.1,
                thread,
            };
            let a = Parity::new(members, level, p.chunk, options, &p.failed, reserve);
            let a = a.map_err(at)?;
            Node::Parity(Box::new(match bitmap {
                Some(b) => a.with_bitmap(b),
                None => a,
            }))
        }
        Combined::Raid(level) => {
            let policy = match p.read_policy.as_str() {
                "round-robin" => ReadPolicy::RoundRobin,
                "fewest-pending" => ReadPolicy::FewestPending,
                "region" => ReadPolicy::Region,
                "first" => ReadPolicy::Fixed(0),
                _ => ReadPolicy::Md,
            };
            let a = Mirror::new(
                members, level, p.chunk, policy, rotating, &p.failed, reserve,
            );
            let a = a.map_err(at)?;
            Node::Mirror(match bitmap {
                Some(b) => a.with_bitmap(b),
                None => a,
            })
        }
    };
    let name = match p.name.as_str() {
        // Arrays without a name have the preset name "plain".
        "plain" => format!("{} of {}", preset.word("level"), p.members.len()),
        name => name.to_owned(),
    };
    let facts = DeviceFacts {
        name,
        io_opt_bytes: optimal_bytes(&setup.device).min(u64::from(u32::MAX)) as u32,
        ..node.facts()
    };
    Ok(Top {
        node,
        facts,
        named: p.scheduler,
    })
}
