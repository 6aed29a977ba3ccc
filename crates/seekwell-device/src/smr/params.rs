//! The parameters of a shingled disk: those of a hard disk, and its own.

use crate::error::ParamError;
use crate::hdd;
use crate::preset::{Def, Dim, Preset, nanos};
use seekwell_core::Nanos;

/// The parameters that a shingled disk adds to those of the kind `hdd`.
#[rustfmt::skip]
static OWN: &[Def] = &[
    Def::new("pc_bytes", Dim::Bytes, Some("25GB"), (64e6, 1e13),
        "size of the persistent cache: a log at the outer diameter, before the first band"),
    Def::new("pc_extents", Dim::Count("extents"), Some("250000"), (16.0, 1e6),
        "largest number of extents in the persistent cache"),
    Def::new("pc", Dim::Word(&["empty", "full"]), Some("empty"), (0.0, 0.0),
        "persistent cache before the run: empty, or full of extents at random addresses"),
    Def::new("band_outer", Dim::Bytes, Some("40MiB"), (1e6, 1e9),
        "size of the outermost band; the sizes fall linearly"),
    Def::new("band_inner", Dim::Bytes, Some("15MiB"), (1e6, 1e9),
        "size of the innermost band"),
    Def::new("clean_idle", Dim::Time, Some("1000"), (0.0, 1e7),
        "time without commands of the host after which cleaning starts"),
    Def::new("clean_copies", Dim::Count("copies"), Some("2"), (1.0, 2.0),
        "number of times that cleaning writes a band: 2 if it first writes a safe copy"),
    Def::new("map_every", Dim::Count("groups"), Some("240"), (1.0, 1e6),
        "number of appended groups after which the drive updates the root of its map"),
    Def::new("map_time", Dim::Time, Some("20"), (0.0, 1e4),
        "time of an update of the root"),
    Def::new("group", Dim::Bytes, Some("2MiB"), (4096.0, 64e6),
        "largest group of data that one append to the persistent cache writes"),
    Def::new("buffer", Dim::Bytes, Some("64MiB"), (1e6, 1e10),
        "size of the volatile write buffer"),
    Def::new("buffer_extents", Dim::Count("extents"), Some("1024"), (1.0, 1e6),
        "largest number of extents that wait in the volatile buffer for the persistent cache"),
    Def::new("stream_runs", Dim::Count("runs"), Some("4"), (0.0, 64.0),
        "number of sequential writes that the drive follows; a run that fills a band is written in place"),
    Def::new("stream_idle", Dim::Time, Some("200"), (0.0, 1e5),
        "time without a write after which the drive gives up a run"),
];

/// Every parameter of the kind `smr`.
pub static DEFS: &[Def] = &{
    let mut all = [OWN[0]; hdd::DEFS.len() + OWN.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = match i < hdd::DEFS.len() {
            true => hdd::DEFS[i],
            false => OWN[i - hdd::DEFS.len()],
        };
        i += 1;
    }
    all
};

/// The typed parameters of the shingled part. Lengths are in sectors.
#[derive(Debug, Clone)]
pub struct SmrParams {
    /// Preset name.
    pub name: String,
    /// Sectors that the host sees.
    pub capacity: u64,
    /// Size of the persistent cache.
    pub cache: u64,
    /// Largest number of extents in the persistent cache.
    pub extents: usize,
    /// True if the persistent cache is full before the run.
    pub full: bool,
    /// Sizes of the outermost and the innermost band.
    pub bands: (u64, u64),
    /// Time without commands after which cleaning starts.
    pub clean_idle: Nanos,
    /// True if cleaning writes a safe copy of the band first.
    pub safe_copy: bool,
    /// Number of groups between two updates of the map's root, and the time of an update.
    pub map: (u32, Nanos),
    /// Largest group.
    pub group: u64,
    /// Size of the volatile write buffer.
    pub buffer: u64,
    /// Largest number of extents in the volatile buffer that wait for the log.
    pub buffered: usize,
    /// Number of runs that the drive follows.
    pub runs: usize,
    /// Time after which the drive gives up a run.
    pub run_idle: Nanos,
    /// True if the host's writes complete when they are in the volatile buffer.
    pub write_cache: bool,
    /// Time of a command that the buffer serves, and transfer time of a sector in picoseconds.
    pub hit: (Nanos, u64),
    /// Number of commands that the drive takes at once.
    pub depth: u32,
}

impl SmrParams {
    /// Converts a preset. Returns an error for an impossible value.
    pub fn from_preset(p: &Preset) -> Result<Self, ParamError> {
        // Whole blocks of 4 KiB.
        let sectors = |key: &'static str| p.num(key).map(|b| (b / 4096.0) as u64 * 8);
        let bands = (sectors("band_outer")?, sectors("band_inner")?);
        if bands.1 > bands.0 {
            return Err(ParamError::new(
                "band_inner",
                "the innermost band is larger than the outermost band",
                "make band_inner at most band_outer",
            ));
        }
        let (capacity, cache) = (p.num("capacity")? as u64, sectors("pc_bytes")?);
        if capacity < 2 * bands.0 {
            return Err(ParamError::new(
                "band_outer",
                format!("a drive of {capacity} sectors has no room for two bands"),
                "use smaller bands or a larger drive",
            ));
        }
        if capacity / bands.1 > BANDS_MAX {
            return Err(ParamError::new(
                "band_inner",
                format!("the drive has more than {BANDS_MAX} bands"),
                "use larger bands",
            ));
        }
        if cache < 2 * bands.0 {
            return Err(ParamError::new(
                "pc_bytes",
                "the persistent cache cannot hold two bands",
                "make it at least twice as large as band_outer",
            ));
        }
        let buffer = sectors("buffer")?;
        if buffer < bands.0 + MAX_SECTORS {
            return Err(ParamError::new(
                "buffer",
                "the buffer cannot hold a band and the largest command of 1 MiB",
                "make it larger than band_outer plus 1 MiB",
            ));
        }
        let time = |key: &'static str| p.num(key).map(nanos);
        Ok(SmrParams {
            name: p.name.clone(),
            capacity,
            cache,
            extents: p.num("pc_extents")? as usize,
            full: p.word("pc") == "full",
            bands,
            clean_idle: time("clean_idle")?,
            safe_copy: p.num("clean_copies")? >= 2.0,
            map: (p.num("map_every")? as u32, time("map_time")?),
            group: sectors("group")?.min(cache / 4),
            buffer,
            buffered: p.num("buffer_extents")? as usize,
            runs: p.num("stream_runs")? as usize,
            run_idle: time("stream_idle")?,
            write_cache: p.flag("write_cache"),
            hit: (time("hit_overhead")?, (512.0 / p.num("bus")? * 1e6) as u64),
            depth: p.num("depth")? as u32,
        })
    }
}

/// Largest command of the host.
pub(super) const MAX_SECTORS: u64 = 2048;

/// Largest number of bands: their list takes 8 bytes each.
const BANDS_MAX: u64 = 4_000_000;

/// Returns the memory of the map and of the list of bands, in bytes.
pub(crate) fn footprint(p: &Preset) -> u64 {
    let number = |key| p.num_opt(key).unwrap_or(0.0);
    let bands = number("capacity") * 512.0 / number("band_inner").max(1e6);
    (128.0 * number("pc_extents") + 8.0 * bands) as u64
}
