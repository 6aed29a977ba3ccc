//! The parameters of a flash drive: their declarations (for preset files, overrides and listings)
//! and their typed values.

use crate::error::ParamError;
use crate::preset::{Def, Dim, Preset, Source};

const MS: (f64, f64) = (0.0, 10_000.0);
const RATE: (f64, f64) = (0.1, 1e6);
const NONE: (f64, f64) = (0.0, 0.0);
const PAGE: f64 = 4096.0;

const LINK_WORDS: &[&str] = &[
    "sata-1.5", "sata-3", "sata-6", "pcie-3x4", "pcie-4x4", "pcie-5x4", "usb-5g", "usb-10g",
    "ufs-g4", "ufs-g5",
];

/// For each link type: payload rate in MB/s, and link time per command in ns.
const LINKS: [(f64, u64); 10] = [
    (135.0, 5_000),
    (270.0, 3_000),
    (550.0, 3_000),
    (3_300.0, 0),
    (7_000.0, 0),
    (14_000.0, 0),
    (430.0, 20_000),
    (980.0, 10_000),
    (2_100.0, 0),
    (4_200.0, 0),
];

/// Declarations of all parameters of the kind `ssd`. A page is 4 KiB, regardless of the page size
/// of the flash. A unit is the smallest part that works independently: a die, or a plane if the
/// planes of a die are independent.
#[rustfmt::skip]
pub static DEFS: &[Def] = &[
    Def::new("variant", Dim::Word(&["cheap", "detailed"]), Some("cheap"), NONE,
        "cheap: computed from clocks and counts, for sweeps; detailed: page map and garbage \
         collection by page"),
    Def::new("state", Dim::Word(&["fresh", "filled", "used", "steady"]), Some("filled"), NONE,
        "state before the run: erased; written once in order; in use (see fill); written at random \
         for a long time"),
    Def::new("fill", Dim::Real("ratio"), Some("0.6"), (0.01, 1.0),
        "state=used: fraction of addresses with data; the rest is trimmed"),
    Def::new("scale", Dim::Count("times"), Some("0"), (0.0, 65_536.0),
        "detailed: model 1/scale of the capacity; 0: the least power of 2 with tables under 128 \
         MiB"),
    Def::new("capacity", Dim::Count("sectors"), None, (8.0, 1e12),
        "user sectors of 512 bytes"),
    Def::new("link", Dim::Word(LINK_WORDS), Some("sata-6"), NONE,
        "host link; on SATA and USB, FLUSH and TRIM run alone and the link is half-duplex"),
    Def::new("link_rate", Dim::Rate, None, RATE,
        "payload rate of the link; absent: 135, 270, 550 (SATA), 3300, 7000, 14000 (PCIe), \
         430, 980 (USB), 2100, 4200 (UFS, two lanes)"),
    Def::new("t_cmd", Dim::Time, None, MS,
        "link time per command; absent: 5, 3, 3 us (SATA), 20, 10 us (USB), 0 (PCIe, UFS)"),
    Def::new("depth", Dim::Count("commands"), Some("31"), (1.0, 65_536.0),
        "maximum number of commands accepted at a time"),
    Def::new("hw_queues", Dim::Count("queues"), Some("1"), (1.0, 1024.0),
        "number of submission queues"),
    Def::new("channels", Dim::Count("channels"), None, (1.0, 256.0),
        "number of flash channels"),
    Def::new("units", Dim::Count("units"), None, (1.0, 256.0),
        "total number of flash units that work independently"),
    Def::new("program_unit", Dim::Count("pages"), None, (1.0, 256.0),
        "number of 4 KiB pages per program operation"),
    Def::new("block", Dim::Count("pages"), None, (1.0, 65_534.0),
        "number of 4 KiB pages per erase block"),
    Def::new("t_read", Dim::Time, None, (1e-6, 10_000.0),
        "time of an array read"),
    Def::new("t_read_mid", Dim::Time, Some("0"), MS,
        "extra read time of the second of three pages (TLC middle pages)"),
    Def::new("t_read_up", Dim::Time, Some("0"), MS,
        "extra read time of the third of three pages (TLC upper pages)"),
    Def::new("t_prog", Dim::Time, None, (1e-6, 10_000.0),
        "time to program a program unit"),
    Def::new("t_prog_rested", Dim::Time, None, (1e-6, 10_000.0),
        "time to program on a unit that was idle for t_prog (it has a fast page free); absent: t_prog"),
    Def::new("t_erase", Dim::Time, None, MS,
        "time to erase a block"),
    Def::new("t_susp", Dim::Time, Some("0"), MS,
        "time to suspend a program or erase for a read; 0: no suspension"),
    Def::new("channel_rate", Dim::Rate, None, RATE,
        "rate of a channel"),
    Def::new("t_fw_read", Dim::Time, None, (1e-6, 10_000.0),
        "firmware time per read (commands are handled one after the other)"),
    Def::new("t_fw_write", Dim::Time, None, (1e-6, 10_000.0),
        "firmware time per write (commands are handled one after the other)"),
    Def::new("t_lat", Dim::Time, Some("0"), MS,
        "additional latency of a read that does not delay other commands (map look-up, error \
         correction)"),
    Def::new("t_ack", Dim::Time, Some("0"), MS,
        "latency of a write once its data are in the buffer"),
    Def::new("buffer", Dim::Bytes, None, (4096.0, 1e12),
        "size of the write buffer"),
    Def::new("rho", Dim::Real("ratio"), None, (0.01, 20.0),
        "spare capacity divided by user capacity, without the few blocks being written or erased"),
    Def::new("plp", Dim::Flag, Some("no"), NONE,
        "power-loss protection: a FLUSH does not wait for programs"),
    Def::new("t_flush", Dim::Time, Some("0"), MS,
        "time of a FLUSH in addition to draining the buffer"),
    Def::new("write_cache", Dim::Flag, Some("yes"), NONE,
        "reports a volatile write cache, so that the host sends FLUSH"),
    Def::new("fua", Dim::Flag, Some("no"), NONE,
        "the drive supports FUA (libata does not use it by default)"),
    Def::new("read_ahead", Dim::Bytes, Some("256KiB"), (0.0, 1e9),
        "size of the read-ahead for a sequential reader; 0: none"),
    Def::new("slc_bytes", Dim::Bytes, Some("0"), (0.0, 1e15),
        "size of the fast region (one bit per cell), which takes writes first; 0: none"),
    Def::new("slc_static", Dim::Bytes, Some("0"), (0.0, 1e15),
        "part of the fast region that remains on a full drive; the rest shrinks with free space"),
    Def::new("slc_prog", Dim::Time, Some("0.3"), (1e-6, 10_000.0),
        "time to program slc_unit pages in the fast region"),
    Def::new("slc_unit", Dim::Count("pages"), Some("4"), (1.0, 256.0),
        "number of 4 KiB pages per program operation in the fast region"),
    Def::new("slc_fold", Dim::Rate, Some("500"), (0.0, 1e6),
        "rate at which the fast region is emptied while the host is idle"),
    Def::new("map_cache", Dim::Count("entries"), Some("0"), (0.0, 1e7),
        "number of translation pages (4 MiB of addresses each) in RAM; 0: the whole map"),
    Def::new("t_trim", Dim::Time, Some("0.05"), MS,
        "time of a TRIM"),
    Def::new("write_factor", Dim::Real("ratio"), Some("1"), (1.0, 4.0),
        "factor of the number of programs, for internal writes (parity, the map's journal)"),
    Def::new("gc", Dim::Word(&["greedy", "choices", "cost-benefit", "fifo"]), Some("greedy"), NONE,
        "detailed: which block is cleaned (fewest valid pages; best of a few; by age; oldest)"),
    Def::new("gc_choices", Dim::Count("blocks"), Some("0"), (0.0, 1e5),
        "number of blocks that gc=choices compares; 0: log2 of the blocks per unit"),
    Def::new("gc_low", Dim::Count("blocks"), Some("4"), (3.0, 1e5),
        "detailed: free blocks of a unit below which cleaning keeps pace with writing"),
    Def::new("gc_high", Dim::Count("blocks"), Some("5"), (3.0, 1e5),
        "detailed: free blocks of a unit at which cleaning in idle time ends"),
    Def::new("copyback", Dim::Flag, Some("no"), NONE,
        "cleaning copies inside a unit, not over the channel"),
    Def::new("alloc", Dim::Word(&["dynamic", "static"]), Some("dynamic"), NONE,
        "detailed: the next program goes to an idle unit, or to the units in rotation"),
    Def::new("wear_spread", Dim::Count("erases"), Some("0"), (0.0, 1e9),
        "detailed: difference of erase counts at which cold blocks are moved; 0: never"),
];

/// The state of the drive before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Erased; no address holds data.
    Fresh,
    /// Written once, in order.
    Filled,
    /// In use: a fraction of the addresses holds data that was written at random for a long time.
    /// The other addresses are trimmed.
    Used,
    /// Written at random over the whole capacity, for several times the capacity.
    Steady,
}

/// The policy that selects the block to clean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// The block with the fewest valid pages.
    Greedy,
    /// The block with the fewest valid pages among this number of randomly selected blocks.
    Choices(u32),
    /// The block with the highest ratio of freed space to copied pages, weighted by age.
    CostBenefit,
    /// The block that was closed first.
    Fifo,
}

/// The parameters of a flash drive, as typed values. Times are in ns, and sizes in pages of 4 KiB
/// unless stated otherwise.
#[derive(Debug, Clone)]
pub struct SsdParams {
    /// Preset name, for reports.
    pub name: String,
    /// True for the detailed variant, false for the cheap variant.
    pub detailed: bool,
    /// State of the drive before the run.
    pub state: State,
    /// Fraction of the addresses that hold data in the state `Used`, 0 to 1.
    pub fill: f64,
    /// The detailed variant models 1/`scale` of the drive. 0 means that the scale is selected
    /// automatically.
    pub scale: u64,
    /// Number of user pages.
    pub pages: u64,
    /// True for NVMe and UFS (queued FLUSH, duplex link), false for SATA and USB.
    pub queued_flush: bool,
    /// Payload rate of the link, MB/s.
    pub link_mb: f64,
    /// Link time per command.
    pub cmd_ns: u64,
    /// Maximum number of commands that the drive accepts at a time.
    pub depth: u32,
    /// Number of submission queues.
    pub hw_queues: u16,
    /// Number of channels.
    pub channels: u32,
    /// Number of flash units.
    pub units: u32,
    /// Number of pages per program operation.
    pub k: u32,
    /// Number of pages per block.
    pub block: u32,
    /// Time of an array read.
    pub read_ns: u64,
    /// Extra read time of each page type.
    pub read_add_ns: [u64; 3],
    /// Time of a program operation.
    pub prog_ns: u64,
    /// Time of a program operation on a unit that has been idle.
    pub prog_rested_ns: u64,
    /// Time of an erase.
    pub erase_ns: u64,
    /// Time to suspend an operation; 0 means that operations are not suspended.
    pub susp_ns: u64,
    /// Channel time per page.
    pub xfer_ns: u64,
    /// Time of a read in the command stage.
    pub fw_read_ns: u64,
    /// Time of a write in the command stage.
    pub fw_write_ns: u64,
    /// Additional latency of a read.
    pub lat_ns: u64,
    /// Time to acknowledge a write.
    pub ack_ns: u64,
    /// Size of the write buffer, in pages.
    pub buffer: u32,
    /// Over-provisioning: spare space divided by user space.
    pub rho: f64,
    /// True if the drive has power-loss protection.
    pub plp: bool,
    /// Time of a FLUSH.
    pub flush_ns: u64,
    /// True if the drive reports a volatile write cache.
    pub write_cache: bool,
    /// True if the drive supports FUA.
    pub fua: bool,
    /// Size of the read-ahead window, in pages.
    pub read_ahead: u32,
    /// Size of the fast region of an empty drive, in pages.
    pub slc_pages: u64,
    /// Size of the fast region of a full drive, in pages.
    pub slc_static: u64,
    /// Program time in the fast region.
    pub slc_prog_ns: u64,
    /// Number of pages per program in the fast region.
    pub slc_k: u32,
    /// Rate at which an idle drive moves pages out of the fast region, in pages per second.
    pub slc_fold: f64,
    /// Number of translation pages that fit into the cache; 0 means that the whole map is in RAM.
    pub map_cache: u32,
    /// Time of a TRIM.
    pub trim_ns: u64,
    /// Factor by which the number of programs is multiplied, for parity and journal writes.
    pub write_factor: f64,
    /// Policy that selects the block to clean.
    pub victim: Victim,
    /// Numbers of free blocks per unit: (low, high). Below `low`, cleaning keeps up with writes. At
    /// `high`, cleaning stops.
    pub gc_marks: (u32, u32),
    /// True if cleaning does not use the channel.
    pub copyback: bool,
    /// True if programs go to the units in fixed rotation.
    pub striped: bool,
    /// Maximum difference of erase counts; 0 means no wear levelling.
    pub wear_spread: u32,
}

/// Returns an error if `ok` is false. Used for conditions that the range of a single parameter
/// cannot express.
fn demand(ok: bool, key: &'static str, what: String, remedy: &str) -> Result<(), ParamError> {
    if ok {
        Ok(())
    } else {
        Err(ParamError::new(key, what, remedy))
    }
}

impl SsdParams {
    /// Converts a preset of kind `ssd`. Returns an error for an impossible value.
    pub fn from_preset(p: &Preset) -> Result<SsdParams, ParamError> {
        let ns = |key| Ok::<u64, ParamError>(libm::round(p.num(key)? * 1e6) as u64);
        let count = |key| Ok::<u32, ParamError>(p.num(key)? as u32);
        let pages = |key| Ok::<u64, ParamError>((p.num(key)? / PAGE) as u64);
        let sectors = p.num("capacity")? as u64;
        let word = p.word("link");
        let which = LINK_WORDS.iter().position(|w| *w == word).unwrap_or(2);
        // If the user typed a link, the rate of this link applies, unless the user also typed a
        // rate.
        let typed = |key: &str| p.get(key).is_some_and(|q| q.source == Source::Override);
        let keep = |key: &str| p.num_opt(key).filter(|_| !typed("link") || typed(key));
        let (link_mb, cmd_ns) = LINKS[which];
        let prog_ns = ns("t_prog")?;
        let out = SsdParams {
            name: p.name.clone(),
            detailed: p.word("variant") == "detailed",
            state: match p.word("state") {
                "fresh" => State::Fresh,
                "used" => State::Used,
                "steady" => State::Steady,
                _ => State::Filled,
            },
            fill: p.num("fill")?,
            scale: p.num("scale")? as u64,
            pages: sectors / 8,
            queued_flush: word.starts_with("pcie") || word.starts_with("ufs"),
            link_mb: keep("link_rate").unwrap_or(link_mb),
            cmd_ns: keep("t_cmd").map_or(cmd_ns, |ms| libm::round(ms * 1e6) as u64),
            depth: count("depth")?,
            hw_queues: p.num("hw_queues")? as u16,
            channels: count("channels")?,
            units: count("units")?,
            k: count("program_unit")?,
            block: count("block")?,
            read_ns: ns("t_read")?,
            read_add_ns: [0, ns("t_read_mid")?, ns("t_read_up")?],
            prog_ns,
            prog_rested_ns: match p.num_opt("t_prog_rested") {
                Some(_) => ns("t_prog_rested")?,
                None => prog_ns,
            },
            erase_ns: ns("t_erase")?,
            susp_ns: ns("t_susp")?,
            xfer_ns: libm::round(PAGE * 1e3 / p.num("channel_rate")?) as u64,
            fw_read_ns: ns("t_fw_read")?,
            fw_write_ns: ns("t_fw_write")?,
            lat_ns: ns("t_lat")?,
            ack_ns: ns("t_ack")?,
            buffer: pages("buffer")?.min(1 << 24) as u32,
            rho: p.num("rho")?,
            plp: p.flag("plp"),
            flush_ns: ns("t_flush")?,
            write_cache: p.flag("write_cache"),
            fua: p.flag("fua"),
            read_ahead: pages("read_ahead")? as u32,
            slc_pages: pages("slc_bytes")?,
            slc_static: pages("slc_static")?.min(pages("slc_bytes")?),
            slc_prog_ns: ns("slc_prog")?,
            slc_k: count("slc_unit")?,
            slc_fold: p.num("slc_fold")? * 1e6 / PAGE,
            map_cache: count("map_cache")?,
            trim_ns: ns("t_trim")?,
            write_factor: p.num("write_factor")?,
            victim: match p.word("gc") {
                "choices" => Victim::Choices(count("gc_choices")?),
                "cost-benefit" => Victim::CostBenefit,
                "fifo" => Victim::Fifo,
                _ => Victim::Greedy,
            },
            gc_marks: (count("gc_low")?, count("gc_high")?),
            copyback: p.flag("copyback"),
            striped: p.word("alloc") == "static",
            wear_spread: count("wear_spread")?,
        };
        out.check(sectors)?;
        Ok(out)
    }

    /// Checks the numbers of pages, blocks and units of the drive.
    fn check(&self, sectors: u64) -> Result<(), ParamError> {
        demand(
            sectors.is_multiple_of(8),
            "capacity",
            format!("{sectors} sectors are not whole pages of 4 KiB"),
            "give a multiple of 8 sectors",
        )?;
        demand(
            self.units.is_multiple_of(self.channels),
            "units",
            format!(
                "{} units cannot be spread evenly over {} channels",
                self.units, self.channels
            ),
            "give a multiple of the channels",
        )?;
        demand(
            self.block.is_multiple_of(self.k),
            "block",
            format!(
                "a block of {} pages is not whole programs of {} pages",
                self.block, self.k
            ),
            "give a multiple of program_unit",
        )?;
        demand(
            self.slc_pages == 0 || (self.slc_k <= self.k && self.k.is_multiple_of(self.slc_k)),
            "slc_unit",
            format!("{} pages do not divide {}", self.slc_k, self.k),
            "give a divisor of program_unit",
        )?;
        demand(
            self.buffer >= self.k,
            "buffer",
            format!(
                "a buffer of {} pages cannot hold one program of {}",
                self.buffer, self.k
            ),
            "give at least program_unit x 4 KiB",
        )?;
        demand(
            self.gc_marks.0 < self.gc_marks.1,
            "gc_high",
            format!(
                "cleaning would start below {} free blocks and end at {}",
                self.gc_marks.0, self.gc_marks.1
            ),
            "give more than gc_low",
        )?;
        demand(
            self.pages >= u64::from(self.units) * u64::from(self.block),
            "capacity",
            format!(
                "{} pages are less than one block of {} pages on each of {} units",
                self.pages, self.block, self.units
            ),
            "give more capacity, fewer units or smaller blocks",
        )
    }

    /// Returns the number of spare pages.
    pub fn spare(&self) -> f64 {
        self.rho * self.pages as f64
    }
}
