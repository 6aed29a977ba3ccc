//! The parameters of a software array (kind `raid`): md levels, concatenation (`linear`), and a
//! device with displaced chunks. The members of such an array are block queues. The block layer
//! crate builds the array.

use super::{Level, Order};
use crate::error::ParamError;
use crate::preset::{Def, Dim, Preset, nanos};
use seekwell_core::{Nanos, Sectors};

/// Values of `level`. Each value is also a kind of device on the command line (`raid5:...`).
pub const LEVELS: &[&str] = &[
    "raid0", "raid1", "raid10", "raid5", "raid6", "linear", "remap",
];

/// Declarations of all parameters of the kind `raid`.
#[rustfmt::skip]
pub static DEFS: &[Def] = &[
    Def::new("level", Dim::Word(LEVELS), Some("raid0"), (0.0, 0.0),
        "raid0 to raid10 as md makes them; linear: concatenated; remap: one member with displaced \
         chunks"),
    Def::new("members", Dim::Count("devices"), None, (1.0, 64.0),
        "number of members; absent: as many as `of` names, or 4 (remap: 1)"),
    Def::new("of", Dim::Text("device, or several joined by +"), Some("hdd:hitachi-7k500"),
        (0.0, 0.0), "the members; put a nested array in parentheses"),
    Def::new("scheduler", Dim::Text("scheduler, with :tunable=value"), Some(""), (0.0, 0.0),
        "scheduler of every member's queue; empty: the scheduler under test"),
    Def::new("failed", Dim::Text("numbers from 0, joined by +"), Some(""), (0.0, 0.0),
        "failed members"),
    Def::new("chunk", Dim::Bytes, Some("64KiB"), (512.0, 1e9),
        "chunk"),
    Def::new("copies", Dim::Count("copies"), Some("2"), (2.0, 8.0),
        "raid10: copies of each chunk"),
    Def::new("layout", Dim::Word(&["near", "far", "offset"]), Some("near"), (0.0, 0.0),
        "raid10: layout of the copies"),
    Def::new("read_policy", Dim::Word(&["md", "round-robin", "fewest-pending", "region", "first"]),
        Some("md"), (0.0, 0.0), "raid1, raid10: which copy serves a read"),
    Def::new("stripe_cache", Dim::Count("heads"), Some("256"), (17.0, 32_768.0),
        "raid5, raid6: stripe_cache_size, rows of 4 KiB pages"),
    Def::new("preread_bypass", Dim::Count("rows"), Some("1"), (0.0, 32_768.0),
        "raid5, raid6: preread_bypass_threshold"),
    Def::new("on_tie", Dim::Word(&["modify", "reconstruct"]), Some("modify"), (0.0, 0.0),
        "raid5, raid6: method of a partial write if both methods need the same number of reads"),
    Def::new("handling", Dim::Time, Some("1us"), (0.0, 100.0),
        "raid5, raid6: CPU time of the array's thread per row"),
    Def::new("compute", Dim::Time, Some("1.5us"), (0.0, 100.0),
        "raid5, raid6: CPU time to compute a page of parity"),
    Def::new("bitmap", Dim::Flag, Some("no"), (0.0, 0.0),
        "internal write-intent bitmap"),
    Def::new("bitmap_chunk", Dim::Bytes, Some("64MiB"), (4096.0, 1e12),
        "data per bit of the bitmap"),
    Def::new("bitmap_delay", Dim::Time, Some("5s"), (1.0, 1e6),
        "idle time after which bits are cleared"),
    Def::new("aged", Dim::Real("ratio"), Some("0"), (0.0, 1.0),
        "remap: probability that a chunk is displaced"),
    Def::new("table", Dim::Count("chunks"), Some("0"), (0.0, 1e6),
        "remap: chunks per mapping table; 0: the whole mapping is in memory"),
    Def::new("table_cache", Dim::Count("tables"), Some("16"), (1.0, 65_536.0),
        "remap: number of mapping tables in memory"),
    Def::new("rpm_spread", Dim::Real("ppm"), Some("300"), (0.0, 10_000.0),
        "largest deviation of a disk's spindle speed, if its preset sets none"),
];

/// How the members are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combined {
    /// A RAID level.
    Raid(Level),
    /// Concatenation of the members.
    Linear,
    /// One member; some of its chunks are at other positions.
    Remap,
}

/// The parameters of a software array, converted to typed values.
#[derive(Debug, Clone)]
pub struct ArrayParams {
    /// Preset name.
    pub name: String,
    /// How the members are combined.
    pub combined: Combined,
    /// Specification of each member.
    pub members: Vec<String>,
    /// Scheduler of the members; `None`: the scheduler under test.
    pub scheduler: Option<String>,
    /// Indices of the failed members.
    pub failed: Vec<usize>,
    /// Chunk size.
    pub chunk: Sectors,
    /// Read policy, as the user typed it.
    pub read_policy: String,
    /// Size of the stripe cache, in stripes.
    pub stripe_cache: u32,
    /// Number of rows without reads that may overtake a row with reads (preread_bypass_threshold).
    pub preread_bypass: u32,
    /// True: use read-modify-write if both methods need the same number of reads.
    pub modify_on_tie: bool,
    /// CPU time of the array's thread, per row and per page of parity.
    pub thread: (Nanos, Nanos),
    /// Size of a region of the write-intent bitmap in sectors, and the delay of the bitmap write;
    /// `None` without a bitmap.
    pub bitmap: Option<(u64, Nanos)>,
    /// Fraction of displaced chunks, chunks per mapping table, number of cached tables.
    pub remap: (f64, u64, usize),
    /// Maximum deviation of the members' spindle speeds, in ppm.
    pub rpm_spread: f64,
}

/// Returns a text parameter; `None` if it is empty.
pub(crate) fn text(p: &Preset, key: &str) -> Option<String> {
    Some(p.word(key).to_owned()).filter(|s| !s.is_empty())
}

impl ArrayParams {
    /// Converts a preset of kind `raid`. Returns an error for an impossible value.
    pub fn from_preset(p: &Preset) -> Result<Self, ParamError> {
        let order = match p.word("layout") {
            "far" => Order::Far,
            "offset" => Order::Offset,
            _ => Order::Near,
        };
        let combined = match p.word("level") {
            "linear" => Combined::Linear,
            "remap" => Combined::Remap,
            w => {
                let level = super::level_of(w, p.num("copies")? as u32, order);
                Combined::Raid(level.unwrap_or(Level::Raid0))
            }
        };
        let mut members = super::member_specs(p)?;
        if combined == Combined::Remap {
            if p.num_opt("members").is_none() {
                members.truncate(1);
            }
            if members.len() != 1 {
                return Err(ParamError::new(
                    "members",
                    format!("remap has one member, not {}", members.len()),
                    "to remap an array, put it in parentheses after `of=`",
                ));
            }
        }
        let chunk = p.num("chunk")?;
        if chunk % 512.0 != 0.0 {
            return Err(ParamError::new(
                "chunk",
                format!("a chunk of {chunk} bytes is not a multiple of the sector size"),
                "use, for example, chunk=64KiB",
            ));
        }
        Ok(ArrayParams {
            name: p.name.clone(),
            combined,
            members,
            scheduler: text(p, "scheduler"),
            failed: super::numbers(p, "failed")?,
            chunk: Sectors((chunk / 512.0) as u32),
            read_policy: p.word("read_policy").to_owned(),
            stripe_cache: p.num("stripe_cache")? as u32,
            preread_bypass: p.num("preread_bypass")? as u32,
            modify_on_tie: p.word("on_tie") == "modify",
            thread: (nanos(p.num("handling")?), nanos(p.num("compute")?)),
            bitmap: if p.flag("bitmap") {
                let region = (p.num("bitmap_chunk")? / 512.0) as u64;
                Some((region, nanos(p.num("bitmap_delay")?)))
            } else {
                None
            },
            remap: (
                p.num("aged")?,
                p.num("table")? as u64,
                p.num("table_cache")? as usize,
            ),
            rpm_spread: p.num("rpm_spread")?,
        })
    }
}
