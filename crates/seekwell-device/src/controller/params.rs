//! The parameters of a RAID controller.

use super::sectors;
use crate::error::ParamError;
use crate::preset::{Def, Dim, Preset, nanos};
use crate::raid::{self, Level};
use seekwell_core::{Nanos, Sectors};

const RATIO: (f64, f64) = (0.0, 1.0);

/// Every parameter of the kind `controller`.
#[rustfmt::skip]
pub static DEFS: &[Def] = &[
    Def::new("level", Dim::Word(&["raid0", "raid1", "raid10", "raid5", "raid6"]), Some("raid0"),
        (0.0, 0.0), "RAID level of the disks"),
    Def::new("members", Dim::Count("devices"), None, (1.0, 64.0),
        "number of disks; absent: as many as `of` names, or 4"),
    Def::new("of", Dim::Text("device, or several joined by +"), Some("hdd:hitachi-7k500"),
        (0.0, 0.0), "the disks; no device below a controller has a scheduler"),
    Def::new("failed", Dim::Text("numbers from 0, joined by +"), Some(""), (0.0, 0.0),
        "failed disks"),
    Def::new("strip", Dim::Bytes, Some("64KiB"), (4096.0, 16e6),
        "chunk size"),
    Def::new("depth", Dim::Count("commands"), Some("256"), (1.0, 4096.0),
        "maximum number of commands that the virtual drive accepts at a time"),
    Def::new("firmware", Dim::Time, Some("40us"), (0.0, 1000.0),
        "firmware time per command of the host"),
    Def::new("engines", Dim::Count("engines"), Some("1"), (1.0, 16.0),
        "number of commands that the firmware processes in parallel"),
    Def::new("link", Dim::Rate, Some("1500"), (1.0, 1e6),
        "data rate between host and controller"),
    Def::new("write_policy", Dim::Word(&["write-through", "write-back", "always-write-back"]),
        Some("write-back"), (0.0, 0.0), "when writes complete; write-back needs a working battery"),
    Def::new("battery", Dim::Flag, Some("yes"), (0.0, 0.0),
        "the cache survives a loss of power, so flushes complete immediately"),
    Def::new("read_policy", Dim::Word(&["none", "ahead", "adaptive"]), Some("none"), (0.0, 0.0),
        "when to read ahead: never, always, or only after sequential reads"),
    Def::new("read_ahead", Dim::Count("strips"), Some("2"), (1.0, 64.0),
        "length of the read-ahead"),
    Def::new("cache", Dim::Bytes, Some("512MiB"), (0.0, 1e12),
        "size of the cache memory"),
    Def::new("read_share", Dim::Real("ratio"), Some("0.25"), RATIO,
        "fraction of the cache that is used for reads"),
    Def::new("hi", Dim::Real("ratio"), Some("0.8"), RATIO,
        "dirty fraction of the write cache at which writes wait"),
    Def::new("lo", Dim::Real("ratio"), Some("0.7"), RATIO,
        "dirty fraction of the write cache at which forced write-back ends"),
    Def::new("timer", Dim::Time, Some("4s"), (1.0, 1e6),
        "age of dirty data at which write-back starts"),
    Def::new("destage", Dim::Word(&["clook", "fifo"]), Some("clook"), (0.0, 0.0),
        "order of write-back: in one direction, or the oldest first"),
    Def::new("arbitration", Dim::Word(&["reads-first", "turns"]), Some("reads-first"), (0.0, 0.0),
        "reads take precedence over write-back until the cache is full, or always alternate with it"),
    Def::new("disk_depth", Dim::Count("commands"), Some("16"), (1.0, 256.0),
        "maximum number of commands in flight at each disk"),
    Def::new("disk_cache", Dim::Flag, Some("no"), (0.0, 0.0),
        "turns on the write caches of the disks"),
    Def::new("max_transfer", Dim::Bytes, Some("1MiB"), (4096.0, 64e6),
        "largest command that the controller sends to a disk"),
    Def::new("reports", Dim::Word(&["members", "rotating", "flash"]), Some("members"), (0.0, 0.0),
        "whether the virtual drive reports a rotating medium"),
    Def::new("rpm_spread", Dim::Real("ppm"), Some("300"), (0.0, 10_000.0),
        "largest deviation of a disk's spindle speed, if its preset sets none"),
];

/// Read-ahead policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ahead {
    /// Never reads ahead.
    None,
    /// Reads ahead after every read.
    Always,
    /// Reads ahead after sequential reads only.
    Adaptive,
}

/// The parameters of a RAID controller, converted to typed values.
#[derive(Debug, Clone)]
pub struct ControllerParams {
    /// Preset name.
    pub name: String,
    /// RAID level.
    pub level: Level,
    /// Specification of each disk.
    pub members: Vec<String>,
    /// Indices of the failed disks.
    pub failed: Vec<usize>,
    /// Chunk size (strip size) per disk.
    pub strip: Sectors,
    /// Maximum number of commands that the controller accepts at a time.
    pub depth: u32,
    /// Firmware time per command.
    pub firmware: Nanos,
    /// Number of commands that the firmware processes in parallel.
    pub engines: u32,
    /// Transfer time of a sector on the link to the host, in picoseconds.
    pub sector_ps: u64,
    /// True if the write policy is write-back, with or without the condition of a working battery.
    pub wants_write_back: bool,
    /// True if write-back stays on without a working battery.
    pub always: bool,
    /// True if the battery works.
    pub battery: bool,
    /// Read-ahead policy.
    pub ahead: Ahead,
    /// Length of the read-ahead, in strips.
    pub ahead_strips: u32,
    /// Size of the cache memory, in sectors.
    pub cache: u64,
    /// Fraction of the cache that is used for reads, 0 to 1.
    pub read_share: f64,
    /// Dirty fractions of the write cache: (high, low). Writes wait, and write-back is forced, from
    /// the high fraction on. Forced write-back ends at the low fraction.
    pub marks: (f64, f64),
    /// Age of dirty data at which write-back starts.
    pub timer: Nanos,
    /// True: write-back proceeds in one direction over the array. False: it writes the oldest data
    /// first.
    pub in_order: bool,
    /// True if reads take precedence over write-back.
    pub reads_first: bool,
    /// Maximum number of commands in flight at each disk.
    pub disk_depth: u32,
    /// True if the write caches of the disks are on.
    pub disk_cache: bool,
    /// Maximum size of a command to a disk.
    pub max_transfer: Sectors,
    /// Whether the controller reports a rotating medium. `None`: it reports what the disks report.
    pub rotational: Option<bool>,
}

impl ControllerParams {
    /// Converts a preset of kind `controller`. Returns an error for an impossible value.
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
    /// Returns true if the controller caches writes.
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
