//! The parameters of a RAID controller.

use super::sectors;
use crate::error::ParamError;
use crate::preset::{Def, Dim, Preset};
use crate::raid::{self, Level};
use seekwell_core::{Nanos, Sectors};

const RATIO: (f64, f64) = (0.0, 1.0);

/// Every parameter of the kind `controller`.
#[rustfmt::skip]
pub static DEFS: &[Def] = &[
    Def::new("level", Dim::Word(&["raid0", "raid1", "raid10", "raid5", "raid6"]), Some("raid0"),
        (0.0, 0.0), "RAID level of the disks"),
    Def::new("members", Dim::Count("devices"), None, (1.0, 64.0),
        "disks; absent: as many as `of` names, or 4"),
    Def::new("of", Dim::Text("device, or several joined by +"), Some("hdd:hitachi-7k500"),
        (0.0, 0.0), "the disks; no device below a controller has a scheduler"),
    Def::new("failed", Dim::Text("numbers from 0, joined by +"), Some(""), (0.0, 0.0),
        "failed disks"),
    Def::new("strip", Dim::Bytes, Some("64KiB"), (4096.0, 16e6),
        "chunk size"),
    Def::new("depth", Dim::Count("commands"), Some("256"), (1.0, 4096.0),
        "commands that the virtual drive accepts"),
    Def::new("firmware", Dim::Time, Some("40us"), (0.0, 1000.0),
        "firmware time per command of the host"),
    Def::new("engines", Dim::Count("engines"), Some("1"), (1.0, 16.0),
        "commands that the firmware processes at a time"),
    Def::new("link", Dim::Rate, Some("1500"), (1.0, 1e6),
        "data rate between host and controller"),
    Def::new("write_policy", Dim::Word(&["write-through", "write-back", "always-write-back"]),
        Some("write-back"), (0.0, 0.0), "write-back needs a good battery, always-write-back does not"),
    Def::new("battery", Dim::Flag, Some("yes"), (0.0, 0.0),
        "the cache survives a loss of power: flushes are answered at once"),
    Def::new("read_policy", Dim::Word(&["none", "ahead", "adaptive"]), Some("none"), (0.0, 0.0),
        "read-ahead: never, always, after sequential reads"),
    Def::new("read_ahead", Dim::Count("strips"), Some("2"), (1.0, 64.0),
        "strips read ahead"),
    Def::new("cache", Dim::Bytes, Some("512MiB"), (0.0, 1e12),
        "memory"),
    Def::new("read_share", Dim::Real("ratio"), Some("0.25"), RATIO,
        "share of the cache for reads"),
    Def::new("hi", Dim::Real("ratio"), Some("0.8"), RATIO,
        "dirty share at which writes wait"),
    Def::new("lo", Dim::Real("ratio"), Some("0.7"), RATIO,
        "dirty share at which forced write-back ends"),
    Def::new("timer", Dim::Time, Some("4s"), (1.0, 1e6),
        "age of dirty data at which write-back starts"),
    Def::new("destage", Dim::Word(&["clook", "fifo"]), Some("clook"), (0.0, 0.0),
        "order of write-back: in one direction, or the oldest first"),
    Def::new("arbitration", Dim::Word(&["reads-first", "turns"]), Some("reads-first"), (0.0, 0.0),
        "reads precede write-back until the cache is full, or always alternate with it"),
    Def::new("disk_depth", Dim::Count("commands"), Some("16"), (1.0, 256.0),
        "commands outstanding at each disk"),
    Def::new("disk_cache", Dim::Flag, Some("no"), (0.0, 0.0),
        "the disks' own write caches are on"),
    Def::new("max_transfer", Dim::Bytes, Some("1MiB"), (4096.0, 64e6),
        "largest command"),
    Def::new("reports", Dim::Word(&["members", "rotating", "flash"]), Some("members"), (0.0, 0.0),
        "rotation reported by the virtual drive"),
    Def::new("rpm_spread", Dim::Real("ppm"), Some("300"), (0.0, 10_000.0),
        "largest deviation of a spindle speed, if the disk's preset sets none"),
];

/// When to read ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ahead {
    /// Never.
    None,
    /// Always.
    Always,
    /// After sequential reads only.
    Adaptive,
}

/// The parameters of a controller, in typed form.
#[derive(Debug, Clone)]
pub struct ControllerParams {
    /// Preset name.
    pub name: String,
    /// RAID level.
    pub level: Level,
    /// Specifications of the disks.
    pub members: Vec<String>,
    /// Indices of the failed disks.
    pub failed: Vec<usize>,
    /// Chunk size.
    pub strip: Sectors,
    /// Number of commands that the controller accepts.
    pub depth: u32,
    /// Firmware time per command.
    pub firmware: Nanos,
    /// Commands that the firmware processes at the same time.
    pub engines: u32,
    /// Time of a sector on the link, in picoseconds.
    pub sector_ps: u64,
    /// The write policy is write-back, with or without a condition.
    pub wants_write_back: bool,
    /// Write-back even without a battery.
    pub always: bool,
    /// The battery works.
    pub battery: bool,
    /// Read-ahead policy.
    pub ahead: Ahead,
    /// Read-ahead length in strips.
    pub ahead_strips: u32,
    /// Cache memory in sectors.
    pub cache: u64,
    /// Share of the cache for reads.
    pub read_share: f64,
    /// Dirty shares at which write-back starts and stops (high, low).
    pub marks: (f64, f64),
    /// Time of the write-back timer.
    pub timer: Nanos,
    /// Write-back in one direction; if false, the oldest first.
    pub in_order: bool,
    /// Reads precede write-back.
    pub reads_first: bool,
    /// Commands outstanding at each disk.
    pub disk_depth: u32,
    /// The disks' own write caches are on.
    pub disk_cache: bool,
    /// Largest command for a disk.
    pub max_transfer: Sectors,
    /// Reported rotation; `None`: as the disks report.
    pub rotational: Option<bool>,
}

/// Time from a parameter in ms.
pub(crate) fn nanos(ms: f64) -> Nanos {
    Nanos(libm::round(ms * 1e6) as u64)
}

impl ControllerParams {
    /// Converts a preset of kind `controller`.
    pub fn from_preset(p: &Preset) -> Result<Self, ParamError> {
        let (hi, lo) = (p.num("hi")?, p.num("lo")?);
        if lo > hi || hi <= 0.0 {
            return Err(ParamError::new(
                "lo",
                format!(
                    "write-back would end at {lo}, above the share at which writes wait ({hi})"
                ),
                "make lo at most hi",
            ));
        }
        let policy = p.word("write_policy");
        let level = raid::level_of(p.word("level"), 2, raid::Order::Near);
        Ok(ControllerParams {
            name: p.name.clone(),
            level: level.unwrap_or(Level::Raid0),
            members: raid::member_specs(p)?,
            failed: raid::numbers(p, "failed")?,
            strip: sectors(p.num("strip")?),
            depth: p.num("depth")? as u32,
            firmware: nanos(p.num("firmware")?),
            engines: p.num("engines")? as u32,
            sector_ps: (512e6 / p.num("link")?) as u64,
            wants_write_back: policy != "write-through",
            always: policy == "always-write-back",
            battery: p.flag("battery"),
            ahead: match p.word("read_policy") {
                "ahead" => Ahead::Always,
                "adaptive" => Ahead::Adaptive,
                _ => Ahead::None,
            },
            ahead_strips: p.num("read_ahead")? as u32,
            cache: (p.num("cache")? / 512.0) as u64,
            read_share: p.num("read_share")?,
            marks: (hi, lo),
            timer: nanos(p.num("timer")?),
            in_order: p.word("destage") == "clook",
            reads_first: p.word("arbitration") == "reads-first",
            disk_depth: p.num("disk_depth")? as u32,
            disk_cache: p.flag("disk_cache"),
            max_transfer: sectors(p.num("max_transfer")?),
            rotational: match p.word("reports") {
                "rotating" => Some(true),
                "flash" => Some(false),
                _ => None,
            },
        })
    }
    /// Whether writes are cached.
    pub fn write_back(&self) -> bool {
        self.wants_write_back && (self.battery || self.always) && self.hi_sectors() > 0
    }
    fn write_sectors(&self) -> f64 {
        self.cache as f64 * (1.0 - self.read_share)
    }
    pub(super) fn hi_sectors(&self) -> u64 {
        (self.write_sectors() * self.marks.0) as u64
    }
    pub(super) fn lo_sectors(&self) -> u64 {
        (self.write_sectors() * self.marks.1) as u64
    }
    pub(super) fn read_strips(&self) -> usize {
        (self.cache as f64 * self.read_share) as usize / self.strip.0.max(1) as usize
    }
    pub(super) fn failed_members(&self, members: usize) -> Result<Vec<bool>, ParamError> {
        raid::failures(&self.failed, members)
    }
}
