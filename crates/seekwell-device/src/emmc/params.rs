//! The parameters of an eMMC, an SD card or a USB stick: their declarations and their typed values.

use crate::error::ParamError;
use crate::preset::{Def, Dim, Preset};
use seekwell_core::{MmcHost, Nanos, Packing};

/// Declarations of the parameters.
#[rustfmt::skip]
pub static DEFS: &[Def] = &[
    Def::new("capacity", Dim::Count("sectors"), None, (1024.0, 1e13), "sectors visible to the host"),
    // Reads
    Def::new("read_base", Dim::Time, None, (0.0, 1e3), "time of a read, apart from its length"),
    Def::new("read_per_kib", Dim::Real("us/KiB"), None, (0.1, 1e4), "additional time per KiB"),
    Def::new("map_segment", Dim::Bytes, Some("4MiB"), (4096.0, 1e12), "address range of one part of the map"),
    Def::new("map_entries", Dim::Count("parts"), Some("64"), (0.0, 65_536.0), "number of map parts cached in the controller"),
    Def::new("map_miss", Dim::Time, Some("0"), (0.0, 1e3), "time to load a part of the map"),
    // Writes
    Def::new("write_base", Dim::Time, None, (0.0, 1e3), "time of a write to the medium, apart from its length"),
    Def::new("write_per_kib", Dim::Real("us/KiB"), None, (0.1, 1e4), "additional time per KiB"),
    Def::new("segment", Dim::Bytes, Some("4MiB"), (4096.0, 1e12), "size of a segment (group of erase units), which a write opens"),
    Def::new("open_segments", Dim::Count("segments"), Some("4"), (0.0, 4096.0), "number of segments that stay open (the most recently written)"),
    Def::new("place_penalty", Dim::Time, Some("0"), (0.0, 1e4), "time to open a segment"),
    Def::new("page", Dim::Bytes, Some("8KiB"), (512.0, 1e9), "flash page"),
    Def::new("rmw", Dim::Time, Some("0"), (0.0, 1e3), "extra time of a write that covers a flash page only in part"),
    Def::new("discard", Dim::Time, Some("1"), (0.0, 1e4), "time of a discard"),
    // Garbage collection
    Def::new("gc_chance", Dim::Real("probability"), Some("0"), (0.0, 1.0), "probability of a collection when a segment is opened"),
    Def::new("gc_min", Dim::Time, Some("20"), (0.0, 1e5), "shortest collection"),
    Def::new("gc_max", Dim::Time, Some("150"), (0.0, 1e5), "longest collection"),
    Def::new("clean_pool", Dim::Bytes, Some("0"), (0.0, 1e13), "amount of data, written without an idle period, after which a collection is due; 0: never"),
    Def::new("gc_idle", Dim::Time, Some("500"), (0.0, 1e6), "length of an idle period that refills clean_pool"),
    // Cache
    Def::new("cache", Dim::Bytes, Some("0"), (0.0, 1e10), "size of the volatile write cache; 0: none or off"),
    Def::new("cache_base", Dim::Time, Some("250us"), (0.0, 1e3), "time of a cached write, apart from its length"),
    Def::new("bus_per_kib", Dim::Real("us/KiB"), Some("9.8"), (0.1, 1e4), "additional time per KiB, on the bus"),
    Def::new("flush_base", Dim::Time, Some("2"), (0.0, 1e4), "time of a flush, without its writes"),
    // Commands
    Def::new("max_request", Dim::Bytes, Some("512KiB"), (4096.0, 33_553_920.0), "largest command"),
    Def::new("fua", Dim::Flag, Some("yes"), (0.0, 0.0), "supports reliable writes"),
    Def::new("hpi", Dim::Flag, Some("yes"), (0.0, 0.0), "an urgent read can stop a running write"),
    Def::new("hpi_stop", Dim::Time, Some("300us"), (0.0, 1e3), "time to stop a write"),
    Def::new("max_packed", Dim::Count("writes"), Some("63"), (0.0, 63.0), "maximum number of writes per packed group; 0: no packing"),
    Def::new("pack_item", Dim::Time, Some("20us"), (0.0, 1e3), "time per write of a packed group, apart from its length"),
    // Host driver
    Def::new("driver", Dim::Word(&["mmc", "usb-storage"]), Some("mmc"), (0.0, 0.0), "driver of the host; with usb-storage the disk appears as rotating, and the other values of the driver have no effect"),
    Def::new("packing", Dim::Word(&["off", "always", "after"]), Some("off"), (0.0, 0.0), "when the driver packs writes: never, always (Linux 3.9), or after consecutive writes (Code Aurora)"),
    Def::new("pack_after", Dim::Count("writes"), Some("17"), (0.0, 1e6), "packing=after: number of consecutive writes after which packing begins"),
    Def::new("host_wakes", Dim::Flag, Some("yes"), (0.0, 0.0), "a new request wakes the driver while it waits for the card (Linux 3.8)"),
    Def::new("prepare", Dim::Time, Some("0"), (0.0, 1e3), "time to prepare a request on an idle queue"),
    // Noise
    Def::new("noise_read", Dim::Real("sigma"), Some("0.05"), (0.0, 2.0), "log-normal spread of read times; the mean stays the same"),
    Def::new("noise_write", Dim::Real("sigma"), Some("0.15"), (0.0, 2.0), "log-normal spread of write times; the mean stays the same"),
];

/// The parameters of a card in the units of the model: times in ns, lengths in sectors.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct EmmcParams {
    pub name: String,
    pub capacity: u64,
    pub read_base_ns: f64,
    pub read_sector_ns: f64,
    pub map_segment: u64,
    pub map_entries: usize,
    pub map_miss_ns: f64,
    pub write_base_ns: f64,
    pub write_sector_ns: f64,
    pub segment: u64,
    pub open_segments: usize,
    pub place_penalty_ns: f64,
    pub page: u64,
    pub rmw_ns: f64,
    pub discard_ns: f64,
    pub gc_chance: f64,
    pub gc_ns: (f64, f64),
    pub clean_pool: u64,
    pub gc_idle_ns: u64,
    pub cache: u64,
    pub cache_base_ns: f64,
    pub bus_sector_ns: f64,
    pub flush_base_ns: f64,
    pub max_request: u32,
    pub fua: bool,
    pub hpi: bool,
    pub hpi_stop_ns: u64,
    pub pack_item_ns: f64,
    /// The driver of a card; `None` for a USB stick.
    pub host: Option<MmcHost>,
    pub noise: (f64, f64),
}

impl EmmcParams {
    /// Converts a preset. Returns an error for an impossible value.
    pub fn from_preset(p: &Preset) -> Result<Self, ParamError> {
        let ns = |key| p.num(key).map(|ms| ms * 1e6);
        let per_sector = |key| p.num(key).map(|us_kib| us_kib * 1e3 / 2.0);
        // Converts a length to sectors. `least` is the smallest permitted value.
        let sectors = |key: &'static str, least: u64| -> Result<u64, ParamError> {
            let bytes = p.num(key)?;
            let n = bytes / 512.0;
            if n != libm::trunc(n) || (n as u64) < least {
                return Err(ParamError::new(
                    key,
                    format!("`{key}` is {bytes} bytes"),
                    format!("give whole sectors of 512 bytes, at least {least}"),
                ));
            }
            Ok(n as u64)
        };
        let (segment, page) = (sectors("segment", 1)?, sectors("page", 1)?);
        if !segment.is_multiple_of(page) {
            return Err(ParamError::new(
                "page",
                format!(
                    "a segment of {} KiB is not a multiple of the page size",
                    segment / 2
                ),
                "make `segment` a multiple of `page`",
            ));
        }
        let capacity = p.num("capacity")? as u64;
        if capacity < segment {
            return Err(ParamError::new(
                "segment",
                format!("a segment of {segment} sectors on a card of {capacity}"),
                "make it smaller than the card",
            ));
        }
        let gc_ns = (ns("gc_min")?, ns("gc_max")?);
        if gc_ns.0 > gc_ns.1 {
            return Err(ParamError::new(
                "gc_min",
                "the shortest collection is longer than the longest",
                "make gc_min at most gc_max",
            ));
        }
        let max_packed = p.num("max_packed")? as u32;
        let packing = match p.word("packing") {
            "always" => Packing::Always,
            "after" => Packing::After(p.num("pack_after")? as u32),
            _ => Packing::Off,
        };
        if packing != Packing::Off && max_packed < 2 {
            return Err(ParamError::new(
                "packing",
                format!("the driver cannot pack: the card accepts {max_packed} writes per group"),
                "set packing=off, or max_packed to 2 to 63",
            ));
        }
        Ok(EmmcParams {
            name: p.name.clone(),
            capacity,
            read_base_ns: ns("read_base")?,
            read_sector_ns: per_sector("read_per_kib")?,
            map_segment: sectors("map_segment", 8)?,
            map_entries: p.num("map_entries")? as usize,
            map_miss_ns: ns("map_miss")?,
            write_base_ns: ns("write_base")?,
            write_sector_ns: per_sector("write_per_kib")?,
            segment,
            open_segments: p.num("open_segments")? as usize,
            place_penalty_ns: ns("place_penalty")?,
            page,
            rmw_ns: ns("rmw")?,
            discard_ns: ns("discard")?,
            gc_chance: p.num("gc_chance")?,
            gc_ns,
            clean_pool: sectors("clean_pool", 0)?,
            gc_idle_ns: ns("gc_idle")? as u64,
            cache: sectors("cache", 0)?,
            cache_base_ns: ns("cache_base")?,
            bus_sector_ns: per_sector("bus_per_kib")?,
            flush_base_ns: ns("flush_base")?,
            max_request: sectors("max_request", 8)? as u32,
            fua: p.flag("fua"),
            hpi: p.flag("hpi"),
            hpi_stop_ns: ns("hpi_stop")? as u64,
            pack_item_ns: ns("pack_item")?,
            host: match p.word("driver") {
                "usb-storage" => None,
                _ => Some(MmcHost {
                    max_packed,
                    packing,
                    wakes: p.flag("host_wakes"),
                    prepare: Nanos(ns("prepare")? as u64),
                }),
            },
            noise: (p.num("noise_read")?, p.num("noise_write")?),
        })
    }
}
