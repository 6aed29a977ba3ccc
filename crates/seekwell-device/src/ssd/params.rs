//! The parameters of a flash drive: their declarations for files, overrides and listings, and their
//! typed form.

use crate::error::ParamError;
use crate::preset::{Def, Dim, Preset, Source};

const MS: (f64, f64) = (0.0, 10_000.0);
const RATE: (f64, f64) = (0.1, 1e6);
const NONE: (f64, f64) = (0.0, 0.0);
const PAGE: f64 = 4096.0;

const LINK_WORDS: &[&str] = &[
    "sata-1.5", "sata-3", "sata-6", "pcie-3x4", "pcie-4x4", "pcie-5x4",
];

/// For each link: payload rate in MB/s, and time per command in ns.
const LINKS: [(f64, u64); 6] = [
    (135.0, 5_000),
    (270.0, 3_000),
    (550.0, 3_000),
    (3_300.0, 0),
    (7_000.0, 0),
    (14_000.0, 0),
];

/// Every parameter of the kind `ssd`. A page is 4 KiB here, whatever the page size of the flash. A
/// unit is the smallest part that works independently: a die, or a plane if planes are independent.
#[rustfmt::skip]
pub static DEFS: &[Def] = &[
    Def::new("variant", Dim::Word(&["cheap", "detailed"]), Some("cheap"), NONE,
        "cheap: computed from clocks and counts, for sweeps; detailed: page map and garbage \
         collection by page"),
    Def::new("state", Dim::Word(&["fresh", "filled", "used", "steady"]), Some("filled"), NONE,
        "state before the run: erased; written once in order; in use (see fill); written at random \
         for a long time"),
    Def::new("fill", Dim::Real("ratio"), Some("0.6"), (0.01, 1.0),
        "state used: share of addresses with data; the rest is trimmed"),
    Def::new("scale", Dim::Count("times"), Some("0"), (0.0, 65_536.0),
        "detailed: model 1/scale of the capacity; 0: the least power of 2 with tables under 128 \
         MiB"),
    Def::new("capacity", Dim::Count("sectors"), None, (8.0, 1e12),
        "user sectors of 512 bytes"),
    Def::new("link", Dim::Word(LINK_WORDS), Some("sata-6"), NONE,
        "host link; on SATA, FLUSH and TRIM run alone and the link is half-duplex"),
    Def::new("link_rate", Dim::Rate, None, RATE,
        "payload rate of the link; absent: 135, 270, 550 (SATA), 3300, 7000, 14000 (PCIe)"),
    Def::new("t_cmd", Dim::Time, None, MS,
        "link time per command; absent: 5, 3, 3 us (SATA), 0 (PCIe)"),
    Def::new("depth", Dim::Count("commands"), Some("31"), (1.0, 65_536.0),
        "commands accepted at a time"),
    Def::new("hw_queues", Dim::Count("queues"), Some("1"), (1.0, 1024.0),
        "submission queues offered"),
    Def::new("channels", Dim::Count("channels"), None, (1.0, 256.0),
        "flash channels"),
    Def::new("units", Dim::Count("units"), None, (1.0, 256.0),
        "flash units that work independently, all channels together"),
    Def::new("program_unit", Dim::Count("pages"), None, (1.0, 256.0),
        "4 KiB pages per program operation"),
    Def::new("block", Dim::Count("pages"), None, (1.0, 65_534.0),
        "4 KiB pages per erase block"),
    Def::new("t_read", Dim::Time, None, (1e-6, 10_000.0),
        "array read"),
    Def::new("t_read_mid", Dim::Time, Some("0"), MS,
        "added on every second of three pages (TLC middle pages)"),
    Def::new("t_read_up", Dim::Time, Some("0"), MS,
        "added on every third of three pages (TLC upper pages)"),
    Def::new("t_prog", Dim::Time, None, (1e-6, 10_000.0),
        "program of a program unit"),
    Def::new("t_prog_rested", Dim::Time, None, (1e-6, 10_000.0),
        "program on a unit that rested for t_prog: a fast page is free; absent: t_prog"),
    Def::new("t_erase", Dim::Time, None, MS,
        "erase of a block"),
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
        "write buffer"),
    Def::new("rho", Dim::Real("ratio"), None, (0.01, 20.0),
        "spare over user capacity, without the few blocks being written or erased"),
    Def::new("plp", Dim::Flag, Some("no"), NONE,
        "power-loss protection: a FLUSH does not wait for programs"),
    Def::new("t_flush", Dim::Time, Some("0"), MS,
        "time of a FLUSH in addition to draining the buffer"),
    Def::new("write_cache", Dim::Flag, Some("yes"), NONE,
        "reports a volatile write cache, so that the host sends FLUSH"),
    Def::new("fua", Dim::Flag, Some("no"), NONE,
        "FUA offered to the host (not by default in libata)"),
    Def::new("read_ahead", Dim::Bytes, Some("256KiB"), (0.0, 1e9),
        "read-ahead for a sequential reader; 0: none"),
    Def::new("slc_bytes", Dim::Bytes, Some("0"), (0.0, 1e15),
        "size of the fast region (one bit per cell), which takes writes first; 0: none"),
    Def::new("slc_static", Dim::Bytes, Some("0"), (0.0, 1e15),
        "part of the fast region that remains on a full drive; the rest shrinks with free space"),
    Def::new("slc_prog", Dim::Time, Some("0.3"), (1e-6, 10_000.0),
        "program of slc_unit pages in the fast region"),
    Def::new("slc_unit", Dim::Count("pages"), Some("4"), (1.0, 256.0),
        "4 KiB pages programmed at once in the fast region"),
    Def::new("slc_fold", Dim::Rate, Some("500"), (0.0, 1e6),
        "rate at which the fast region is emptied while the host is idle"),
    Def::new("map_cache", Dim::Count("entries"), Some("0"), (0.0, 1e7),
        "translation pages (4 MiB of addresses each) in RAM; 0: the whole map"),
    Def::new("t_trim", Dim::Time, Some("0.05"), MS,
        "time of a TRIM"),
    Def::new("write_factor", Dim::Real("ratio"), Some("1"), (1.0, 4.0),
        "internal writes for parity and the map's journal, as a factor on programs"),
    Def::new("gc", Dim::Word(&["greedy", "choices", "cost-benefit", "fifo"]), Some("greedy"), NONE,
        "detailed: which block is cleaned (fewest valid pages; best of a few; by age; oldest)"),
    Def::new("gc_choices", Dim::Count("blocks"), Some("0"), (0.0, 1e5),
        "blocks that gc=choices samples; 0: log2 of the blocks per unit"),
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

/// The history of the drive before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Erased: no address holds data.
    Fresh,
    /// Written once, in order.
    Filled,
    /// In use: a share of the addresses holds data, the rest is trimmed, all of it aged.
    Used,
    /// Written at random over the whole range for several times the capacity.
    Steady,
}

/// How cleaning chooses its victim block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// Fewest valid pages.
    Greedy,
    /// Fewest valid pages among this number of random blocks.
    Choices(u32),
    /// Most space gained per copied page, weighted by age.
    CostBenefit,
    /// The block that was closed first.
    Fifo,
}

/// The parameters of a flash drive, in typed form. Times in nanoseconds, sizes in 4 KiB pages
/// unless stated.
#[derive(Debug, Clone)]
pub struct SsdParams {
    /// Preset name, for reports.
    pub name: String,
    /// Use the detailed variant, which maps pages.
    pub detailed: bool,
    /// State before the run.
    pub state: State,
    /// Share of addresses with data in the state `Used`.
    pub fill: f64,
    /// The detailed variant models 1/`scale` of the drive; 0: chosen automatically.
    pub scale: u64,
    /// Number of user pages.
    pub pages: u64,
    /// NVMe (queued FLUSH, duplex link) or SATA.
    pub nvme: bool,
    /// Payload rate of the link, MB/s.
    pub link_mb: f64,
    /// Link time per command.
    pub cmd_ns: u64,
    /// Commands accepted at a time.
    pub depth: u32,
    /// Number of submission queues.
    pub hw_queues: u16,
    /// Number of channels.
    pub channels: u32,
    /// Number of flash units.
    pub units: u32,
    /// Pages per program operation.
    pub k: u32,
    /// Pages per block.
    pub block: u32,
    /// Time of an array read.
    pub read_ns: u64,
    /// Extra read time by page type.
    pub read_add_ns: [u64; 3],
    /// Time of a program operation.
    pub prog_ns: u64,
    /// Program time on a unit that has rested.
    pub prog_rested_ns: u64,
    /// Time of an erase.
    pub erase_ns: u64,
    /// Time to suspend an operation; 0: no suspension.
    pub susp_ns: u64,
    /// Channel time per page.
    pub xfer_ns: u64,
    /// Time of a read in the command stage.
    pub fw_read_ns: u64,
    /// Time of a write in the command stage.
    pub fw_write_ns: u64,
    /// Further latency of a read.
    pub lat_ns: u64,
    /// Time to acknowledge a write.
    pub ack_ns: u64,
    /// Size of the write buffer.
    pub buffer: u32,
    /// Over-provisioning: spare space over user space.
    pub rho: f64,
    /// Power-loss protection.
    pub plp: bool,
    /// Time of a FLUSH.
    pub flush_ns: u64,
    /// The drive reports a write cache.
    pub write_cache: bool,
    /// The drive supports FUA.
    pub fua: bool,
    /// Read-ahead window.
    pub read_ahead: u32,
    /// Size of the fast region of an empty drive.
    pub slc_pages: u64,
    /// Part of the fast region that a full drive keeps.
    pub slc_static: u64,
    /// Program time in the fast region.
    pub slc_prog_ns: u64,
    /// Pages per program in the fast region.
    pub slc_k: u32,
    /// Pages per second moved out of the fast region when idle.
    pub slc_fold: f64,
    /// Number of cached translation pages; 0: all of them.
    pub map_cache: u32,
    /// Time of a TRIM.
    pub trim_ns: u64,
    /// Factor on the number of programs.
    pub write_factor: f64,
    /// Rule to choose the block to clean.
    pub victim: Victim,
    /// Numbers of free blocks: cleaning keeps pace with writes below the first, and stops at the
    /// second.
    pub gc_marks: (u32, u32),
    /// Cleaning does not use the channel.
    pub copyback: bool,
    /// Programs go to the units in fixed rotation.
    pub striped: bool,
    /// Largest difference of erase counts; 0: no wear levelling.
    pub wear_spread: u32,
}

/// Checks a condition that the range of a parameter cannot express.
fn demand(ok: bool, key: &'static str, what: String, remedy: &str) -> Result<(), ParamError> {
    if ok {
        Ok(())
    } else {
        Err(ParamError::new(key, what, remedy))
    }
}

impl SsdParams {
    /// Converts a preset of kind `ssd`.
    pub fn from_preset(p: &Preset) -> Result<SsdParams, ParamError> {
        let ns = |key| Ok::<u64, ParamError>(libm::round(p.num(key)? * 1e6) as u64);
        let count = |key| Ok::<u32, ParamError>(p.num(key)? as u32);
        let pages = |key| Ok::<u64, ParamError>((p.num(key)? / PAGE) as u64);
        let sectors = p.num("capacity")? as u64;
        let word = p.word("link");
        let which = LINK_WORDS.iter().position(|w| *w == word).unwrap_or(2);
        // A link typed by the user implies its own rate, unless the user typed a rate too.
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
            nvme: word.starts_with("pcie"),
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

    /// Checks the geometry of the drive.
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

    /// Number of spare pages.
    pub fn spare(&self) -> f64 {
        self.rho * self.pages as f64
    }
}
