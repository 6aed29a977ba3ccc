//! The parameters of a hard disk: their declarations (for preset files, overrides and listings) and
//! their typed values.

use super::seek::SeekForm;
use crate::error::ParamError;
use crate::preset::{Def, Dim, Preset};

const PROBABILITY: (f64, f64) = (0.0, 1.0);
const MS: (f64, f64) = (0.0, 10_000.0);

/// Declarations of all parameters of the kind `hdd`.
#[rustfmt::skip]
pub static DEFS: &[Def] = &[
    Def::new("model", Dim::Word(&["full", "fast"]), Some("full"), (0.0, 0.0),
        "full: mechanics, caches, queue; fast: random service times for sweeps (means only)"),
    Def::new("capacity", Dim::Count("sectors"), None, (1.0, 1e12),
        "user sectors of 512 bytes"),
    Def::new("rpm", Dim::Real("rpm"), None, (300.0, 60_000.0),
        "spindle speed"),
    Def::new("rpm_error", Dim::Real("ppm"), Some("0"), (-10_000.0, 10_000.0),
        "deviation of this spindle from its nominal speed"),
    Def::new("surfaces", Dim::Count("surfaces"), None, (1.0, 64.0),
        "number of recording surfaces (heads)"),
    Def::new("outer_track", Dim::Count("sectors"), None, (1.0, 1e6),
        "sectors per track of the outer zone; or give one of the outer_rate_* instead"),
    Def::new("outer_rate_instantaneous", Dim::Rate, None, (0.01, 10_000.0),
        "disk-to-buffer rate of the outer zone"),
    Def::new("outer_rate_sustained", Dim::Rate, None, (0.01, 10_000.0),
        "sustained rate of the outer zone, track switches included"),
    Def::new("outer_rate_channel", Dim::Real("Mbit/s"), None, (0.1, 100_000.0),
        "read-channel rate of the outer zone; about 0.75 of it is data"),
    Def::new("inner_ratio", Dim::Real("ratio"), Some("0.5"), (0.05, 1.0),
        "sectors per track of the inner zone divided by those of the outer zone"),
    Def::new("zone_count", Dim::Count("zones"), Some("24"), (1.0, 1024.0),
        "number of zones; they have equal numbers of cylinders, and sectors per track fall linearly"),
    Def::new("zone_table", Dim::Pairs("first sector, sectors per track"), None, (0.0, 0.0),
        "measured zones, which replace outer_*, inner_ratio and zone_count"),
    Def::new("layout", Dim::Word(&["cylinder", "serpentine"]), Some("cylinder"), (0.0, 0.0),
        "order of the tracks: all heads of a cylinder, or bands of one head"),
    Def::new("band_tracks", Dim::Count("tracks"), Some("128"), (1.0, 1e6),
        "number of tracks in a serpentine band"),
    Def::new("seek_form", Dim::Word(&["fit3", "lee", "hpl", "table"]), Some("fit3"), (0.0, 0.0),
        "shape of the seek curve"),
    Def::new("seek_track", Dim::Time, Some("0.8"), MS,
        "time of a seek to the next cylinder, for reads"),
    Def::new("seek_settle", Dim::Time, Some("1.2"), MS,
        "intercept of the seek curve (fit3)"),
    Def::new("seek_average", Dim::Time, Some("8.5"), MS,
        "mean seek time over uniform pairs of cylinders (fit3, lee)"),
    Def::new("seek_full", Dim::Time, Some("15.5"), MS,
        "seek time over all cylinders (fit3, lee)"),
    Def::new("seek_hpl", Dim::Pairs("knee ms; ms ms; ms ms"), None, (0.0, 0.0),
        "[V1,V6],[V2,V3],[V4,V5]: knee (cylinders), one cylinder; V2+V3*sqrt(d) below, V4+V5*d above"),
    Def::new("seek_table", Dim::Pairs("cylinders, ms"), None, (0.0, 0.0),
        "measured seek curve, in ascending order of distance"),
    Def::new("seek_inward", Dim::Real("ratio"), Some("1"), (0.1, 10.0),
        "factor of the time of seeks towards the spindle"),
    Def::new("seek_outward", Dim::Real("ratio"), Some("1"), (0.1, 10.0),
        "factor of the time of seeks away from the spindle"),
    Def::new("head_switch", Dim::Time, Some("0.9"), MS,
        "time to switch to another head and settle"),
    Def::new("band_switch", Dim::Time, Some("0"), MS,
        "time of a step to the next cylinder or band, included in the skew"),
    Def::new("write_settle", Dim::Time, Some("0.5"), MS,
        "extra settling before a write"),
    Def::new("settle_sigma", Dim::Time, Some("0"), MS,
        "standard deviation of an additional random settling time, which the drive does not \
         foresee"),
    Def::new("overhead", Dim::Time, Some("0.2"), MS,
        "firmware time of a media access"),
    Def::new("hit_overhead", Dim::Time, Some("0.05"), MS,
        "firmware time of a cache hit"),
    Def::new("status", Dim::Time, Some("0.003"), MS,
        "time to send the status of a command"),
    Def::new("bus", Dim::Rate, Some("270"), (0.1, 100_000.0),
        "link rate after coding and framing"),
    Def::new("zero_latency", Dim::Flag, Some("yes"), (0.0, 0.0),
        "a transfer can start at any sector of the request"),
    Def::new("look_ahead", Dim::Flag, Some("yes"), (0.0, 0.0),
        "the drive reads ahead"),
    Def::new("segments_read", Dim::Count("segments"), Some("14"), (0.0, 1024.0),
        "number of segments of the read cache"),
    Def::new("segments_write", Dim::Count("segments"), Some("2"), (0.0, 1024.0),
        "number of segments that keep written data readable"),
    Def::new("segment", Dim::Bytes, Some("512KiB"), (512.0, 4e9),
        "size of a segment"),
    Def::new("ra_max", Dim::Bytes, None, (0.0, 4e9),
        "longest read-ahead; absent: the size of a segment"),
    Def::new("ra_min", Dim::Bytes, Some("0"), (0.0, 4e9),
        "amount of read-ahead that commands cannot interrupt"),
    Def::new("write_cache", Dim::Flag, Some("yes"), (0.0, 0.0),
        "the drive caches writes"),
    Def::new("wc_bytes", Dim::Bytes, Some("8MiB"), (512.0, 1e12),
        "size of the write cache in data"),
    Def::new("wc_cmds", Dim::Count("extents"), Some("128"), (1.0, 65_536.0),
        "size of the write cache in extents"),
    Def::new("wc_idle", Dim::Time, Some("30"), MS,
        "idle time before background destaging"),
    Def::new("wc_hi", Dim::Real("ratio"), Some("0.75"), PROBABILITY,
        "fill level at which forced destaging starts"),
    Def::new("wc_lo", Dim::Real("ratio"), Some("0.5"), PROBABILITY,
        "fill level at which forced destaging ends"),
    Def::new("destage_window", Dim::Count("extents"), Some("0"), (0.0, 65_536.0),
        "number of oldest extents that are compared when destaging; 0: all"),
    Def::new("fua", Dim::Flag, Some("no"), (0.0, 0.0),
        "the drive supports FUA (libata does not use it by default)"),
    Def::new("depth", Dim::Count("commands"), Some("31"), (1.0, 1024.0),
        "maximum number of commands accepted at a time; 1: no NCQ"),
    Def::new("window", Dim::Count("commands"), Some("31"), (1.0, 1024.0),
        "number of oldest commands that are compared to select the next"),
    Def::new("policy", Dim::Word(&["sptf", "fifo", "sstf", "clook", "asptf"]), Some("sptf"),
        (0.0, 0.0), "policy that selects the next queued command"),
    Def::new("age_weight", Dim::Real("ratio"), Some("0.01"), (0.0, 1000.0),
        "asptf: positioning time that is subtracted for each unit of waiting time"),
    Def::new("guard", Dim::Time, Some("0.5"), MS,
        "for the selection: minimum time between the arrival of the arm and the arrival of the \
         sector"),
    Def::new("p_miss", Dim::Real("probability"), Some("0.02"), PROBABILITY,
        "probability of missing the target, which costs one revolution"),
    Def::new("age_limit", Dim::Time, Some("700"), (0.0, 1e6),
        "age at which the oldest command is served first; 0: never"),
    Def::new("t_err", Dim::Time, Some("60"), MS,
        "time of an error recovery"),
    Def::new("p_err", Dim::Real("probability"), Some("0"), PROBABILITY,
        "probability that a media access needs a recovery"),
    Def::new("physical_block", Dim::Bytes, Some("512"), (512.0, 4096.0),
        "physical sector: 512, or 4096 with 512-byte addresses"),
    Def::new("remap", Dim::Real("ppm"), Some("0"), (0.0, 100_000.0),
        "sectors remapped to spares"),
    Def::new("spare_interval", Dim::Count("cylinders"), Some("4096"), (1.0, 1e9),
        "distance between spare tracks"),
    Def::new("fast_gamma", Dim::Real("exponent"), Some("0.2"), (0.0, 0.5),
        "fast model: throughput grows with this power of the depth"),
];

/// Order of tracks on the surfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// All heads of a cylinder come first, then the next cylinder.
    Cylinder,
    /// Bands of this many tracks on one head, then the next head.
    Serpentine(u32),
}

/// The policy by which the drive selects one of its queued commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Oldest command first.
    Fifo,
    /// Shortest seek distance first (SSTF).
    Sstf,
    /// Ascending cylinders, then back to the lowest cylinder (C-LOOK).
    Clook,
    /// Shortest positioning time first (SPTF).
    Sptf,
    /// Smallest value of positioning time minus weighted age first (ASPTF).
    Asptf,
}

/// The parameters of a hard disk as typed values. Times are in ms, sizes in sectors, rates in MB/s
/// (10^6 bytes per second).
#[derive(Debug, Clone)]
pub struct HddParams {
    /// Preset name, for reports.
    pub name: String,
    /// Number of user sectors.
    pub capacity: u64,
    /// Revolutions per minute, including the deviation of this drive from its nominal speed.
    pub rpm: f64,
    /// Number of recording surfaces.
    pub surfaces: u32,
    /// The zones, or the values from which they are built.
    pub zones: Zones,
    /// Order of tracks.
    pub layout: Layout,
    /// Seek curve.
    pub seek: SeekForm,
    /// Factors of the seek time: (inward, outward).
    pub seek_factor: (f64, f64),
    /// Seek time to the next cylinder. With the curves fit3, lee and hpl, it is the first value of
    /// the curve.
    pub seek_track_ms: f64,
    /// Time of a head switch.
    pub head_switch_ms: f64,
    /// Time of a step to the next cylinder or band. The skew includes this time.
    pub band_switch_ms: f64,
    /// Additional settling time of writes.
    pub write_settle_ms: f64,
    /// Standard deviation of the random settling time.
    pub settle_sigma_ms: f64,
    /// Command overhead before an access to the medium.
    pub overhead_ms: f64,
    /// Command overhead of a cache hit.
    pub hit_overhead_ms: f64,
    /// Time to send the status to the host.
    pub status_ms: f64,
    /// Transfer rate of the link.
    pub bus_mb: f64,
    /// True if a transfer can start at any sector of its track.
    pub zero_latency: bool,
    /// Number of read segments; 0 if look-ahead is off.
    pub segments_read: u32,
    /// Number of write segments.
    pub segments_write: u32,
    /// Sectors per segment.
    pub segment: u64,
    /// Maximum read-ahead, in sectors; 0 if look-ahead is off.
    pub ra_max: u64,
    /// Number of sectors of read-ahead that is never interrupted.
    pub ra_min: u64,
    /// True if the drive caches writes.
    pub write_cache: bool,
    /// Size of the write cache, sectors.
    pub wc_sectors: u64,
    /// Size of the write cache, extents.
    pub wc_cmds: u32,
    /// Idle time before background destaging starts.
    pub wc_idle_ms: f64,
    /// Fill levels (0 to 1) at which forced destaging starts and ends.
    pub wc_marks: (f64, f64),
    /// Number of oldest extents that are compared when destaging; 0 means all.
    pub destage_window: u32,
    /// True if the drive supports FUA.
    pub fua: bool,
    /// Maximum number of commands that the drive accepts at a time.
    pub depth: u32,
    /// Number of oldest commands that the drive compares.
    pub window: u32,
    /// Policy that selects among queued commands.
    pub choice: Choice,
    /// Weight of the age in the policy asptf.
    pub age_weight: f64,
    /// Minimum time between the arrival of the arm and the arrival of the sector.
    pub guard_ms: f64,
    /// Probability that an access misses its target and loses a revolution.
    pub p_miss: f64,
    /// Age above which the oldest command is served first; 0 means no limit.
    pub age_limit_ms: f64,
    /// Duration of an error recovery.
    pub t_err_ms: f64,
    /// Probability of an error recovery, per media operation.
    pub p_err: f64,
    /// Number of 512-byte sectors per physical sector: 1 or 8.
    pub physical: u64,
    /// Number of remapped sectors per million.
    pub remap_ppm: f64,
    /// Distance between spare tracks, in cylinders.
    pub spare_interval: u32,
    /// Exponent of throughput over queue depth in the fast model.
    pub fast_gamma: f64,
}

/// The values from which the zones are built.
#[derive(Debug, Clone)]
pub enum Zones {
    /// Zones of equal width, built from the size of the outermost track, the ratio and the number
    /// of zones.
    Linear {
        /// Number of sectors of the outermost track.
        outer: u32,
        /// Size of the innermost track divided by the size of the outermost track.
        ratio: f64,
        /// Number of zones.
        count: u32,
    },
    /// Measured zones: (first sector, sectors per track).
    Table(Vec<(u64, u32)>),
}

impl HddParams {
    /// Returns the time of a revolution, in ms.
    pub fn revolution_ms(&self) -> f64 {
        60_000.0 / self.rpm
    }
    /// Returns the mean time of a step to the next track in sequential access, in ms. It does not
    /// include the extra sectors of the skew.
    fn mean_switch_ms(head: f64, band: f64, surfaces: f64) -> f64 {
        ((surfaces - 1.0) * head + band.max(head)) / surfaces
    }

    /// Converts a preset of kind `hdd`. Returns an error for an impossible value.
    pub fn from_preset(p: &Preset) -> Result<HddParams, ParamError> {
        let sectors = |key| Ok::<u64, ParamError>((p.num(key)? / 512.0) as u64);
        let physical = sectors("physical_block")?;
        if physical != 1 && physical != 8 {
            return Err(ParamError::new(
                "physical_block",
                "physical sectors have 512 or 4096 bytes",
                "give one of the two",
            ));
        }
        let (lo, hi) = (p.num("wc_lo")?, p.num("wc_hi")?);
        if lo > hi {
            return Err(ParamError::new(
                "wc_lo",
                format!("destaging would stop at {lo}, above the level at which it starts ({hi})"),
                "make wc_lo at most wc_hi",
            ));
        }
        let segment = sectors("segment")?;
        let look_ahead = p.flag("look_ahead");
        let ra_max = match p.num_opt("ra_max") {
            Some(b) => ((b / 512.0) as u64).min(segment),
            None => segment,
        };
        Ok(HddParams {
            name: p.name.clone(),
            capacity: p.num("capacity")? as u64,
            rpm: p.num("rpm")? * (1.0 + p.num("rpm_error")? * 1e-6),
            surfaces: p.num("surfaces")? as u32,
            zones: zones(p)?,
            layout: match p.word("layout") {
                "serpentine" => Layout::Serpentine(p.num("band_tracks")? as u32),
                _ => Layout::Cylinder,
            },
            seek: SeekForm::from_preset(p)?,
            seek_factor: (p.num("seek_inward")?, p.num("seek_outward")?),
            seek_track_ms: p.num("seek_track")?,
            head_switch_ms: p.num("head_switch")?,
            band_switch_ms: p.num("band_switch")?,
            write_settle_ms: p.num("write_settle")?,
            settle_sigma_ms: p.num("settle_sigma")?,
            overhead_ms: p.num("overhead")?,
            hit_overhead_ms: p.num("hit_overhead")?,
            status_ms: p.num("status")?,
            bus_mb: p.num("bus")?,
            zero_latency: p.flag("zero_latency"),
            segments_read: p.num("segments_read")? as u32,
            segments_write: p.num("segments_write")? as u32,
            segment,
            ra_max: if look_ahead { ra_max } else { 0 },
            ra_min: if look_ahead {
                sectors("ra_min")?.min(ra_max)
            } else {
                0
            },
            write_cache: p.flag("write_cache"),
            wc_sectors: sectors("wc_bytes")?,
            wc_cmds: p.num("wc_cmds")? as u32,
            wc_idle_ms: p.num("wc_idle")?,
            wc_marks: (hi, lo),
            destage_window: p.num("destage_window")? as u32,
            fua: p.flag("fua"),
            depth: p.num("depth")? as u32,
            window: p.num("window")? as u32,
            choice: match p.word("policy") {
                "fifo" => Choice::Fifo,
                "sstf" => Choice::Sstf,
                "clook" => Choice::Clook,
                "asptf" => Choice::Asptf,
                _ => Choice::Sptf,
            },
            age_weight: p.num("age_weight")?,
            guard_ms: p.num("guard")?,
            p_miss: p.num("p_miss")?,
            age_limit_ms: p.num("age_limit")?,
            t_err_ms: p.num("t_err")?,
            p_err: p.num("p_err")?,
            physical,
            remap_ppm: p.num("remap")?,
            spare_interval: p.num("spare_interval")? as u32,
            fast_gamma: p.num("fast_gamma")?,
        })
    }
}

/// Returns the description of the zones. If the preset has a measured zone table, it is used.
/// Otherwise the zones are linear, and the size of the outermost track is taken from the preset or
/// computed from the transfer rate of the data sheet.
fn zones(p: &Preset) -> Result<Zones, ParamError> {
    const WAYS: [&str; 5] = [
        "zone_table",
        "outer_track",
        "outer_rate_instantaneous",
        "outer_rate_sustained",
        "outer_rate_channel",
    ];
    let given: Vec<&'static str> = WAYS.into_iter().filter(|k| p.get(k).is_some()).collect();
    let &[way] = given.as_slice() else {
        return Err(ParamError::new(
            given.get(1).copied().unwrap_or("outer_track"),
            format!("the outer track is given {} times", given.len()),
            format!("give exactly one of {}", WAYS.join(", ")),
        ));
    };
    if let Some(rows) = p.pairs("zone_table") {
        let whole = |x: f64| x >= 0.0 && x == libm::trunc(x) && x < 1e15;
        if rows.iter().any(|r| !whole(r.0) || !whole(r.1) || r.1 > 1e6) {
            return Err(ParamError::new(
                way,
                "the start and the track length of a zone must be whole numbers of sectors",
                "write [first sector, sectors per track]",
            ));
        }
        return Ok(Zones::Table(
            rows.iter().map(|r| (r.0 as u64, r.1 as u32)).collect(),
        ));
    }
    let value = p.num(way)?;
    let turn_s = 60.0 / p.num("rpm")?;
    let outer = match way {
        "outer_rate_instantaneous" => value * 1e6 * turn_s / 512.0,
        "outer_rate_sustained" => {
            let switch = HddParams::mean_switch_ms(
                p.num("head_switch")?,
                p.num("band_switch")?,
                p.num("surfaces")?,
            );
            value * 1e6 * (turn_s + switch / 1e3) / 512.0
        }
        // 75 % of the bits of the channel rate are data: the Deskstar 7K500 has 817 Mbit/s and 76.3
        // MB/s.
        "outer_rate_channel" => 0.75 * value * 1e6 / 8.0 * turn_s / 512.0,
        _ => value,
    };
    Ok(Zones::Linear {
        outer: outer as u32,
        ratio: p.num("inner_ratio")?,
        count: p.num("zone_count")? as u32,
    })
}
