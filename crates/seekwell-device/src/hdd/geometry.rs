//! The mapping of a sector address to cylinder, head and angle.
//!
//! An angle is a number of whole sectors ("slots") on a track. The geometry converts it to ticks
//! after the index mark. This avoids rounding errors: each sector of a track starts exactly where
//! the previous sector ended. The model leaves out defects that are skipped by slipping. The offset
//! of the first track of each zone is zero.

use super::params::{HddParams, Layout, Zones};
use super::{Ticks, ticks_ms};
use crate::divide::Divisor;
use crate::error::ParamError;
use libm::ceil;

/// Number of fraction bits of the time per sector, in ticks.
const FRACTION: u32 = 20;

/// The physical position of a sector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Cylinder number; 0 is at the outer edge.
    pub cyl: u32,
    /// Head number.
    pub head: u32,
    /// Zone number.
    pub zone: u32,
    /// Slot of the sector on the track: its angle, in sectors.
    pub slot: u32,
    /// Number of sectors from this sector to the end of the track, including this sector.
    pub left: u32,
}

/// A zone: cylinders whose tracks have the same number of sectors.
#[derive(Debug, Clone)]
struct Zone {
    first: u64,
    first_cyl: u32,
    cyls: u32,
    /// Number of sectors per track.
    spt: u32,
    /// Skew, in sectors, of a step to the next track within a cylinder or band.
    skew_step: u32,
    /// Skew, in sectors, of a step to the next cylinder or band.
    skew_band: u32,
    /// Time of a sector, in 2^-20 ticks.
    sector: u64,
    by_track: Divisor,
    by_sector: Divisor,
}

/// The mapping of addresses to positions of one drive.
#[derive(Debug, Clone)]
pub struct Geometry {
    zones: Vec<Zone>,
    /// Table that divides the addresses into equal intervals, and holds the zone of the first
    /// sector of each interval. The search for a zone starts there.
    hint: Vec<u16>,
    hint_shift: u32,
    heads: u32,
    by_heads: Divisor,
    band: Option<u32>,
    capacity: u64,
    cylinders: u32,
    turn: Ticks,
}

/// The table of hints has between 1 and 2 times this many intervals.
const HINTS: u32 = 256;

impl Geometry {
    /// Builds the zones and skews. The number of cylinders results from the capacity.
    pub fn new(p: &HddParams) -> Result<Self, ParamError> {
        let turn = ticks_ms(p.revolution_ms());
        let heads = p.surfaces;
        let tracks = match &p.zones {
            Zones::Linear {
                outer,
                ratio,
                count,
            } => linear(p.capacity, heads, *outer, *ratio, *count)?,
            Zones::Table(rows) => measured(p.capacity, heads, rows)?,
        };
        // A step within a cylinder switches heads. A step within a band moves the arm by one track.
        let (step_ms, band) = match p.layout {
            Layout::Cylinder => (p.head_switch_ms, None),
            Layout::Serpentine(w) => (p.seek_track_ms, Some(w)),
        };
        let band_ms = p.head_switch_ms.max(p.seek_track_ms).max(p.band_switch_ms);
        let mut zones = vec![];
        let mut first_cyl = 0u32;
        for (first, cyls, spt) in tracks {
            // Add one extra sector, so that sequential access does not lose a revolution.
            let skew = |ms: f64| {
                (ceil(ms / p.revolution_ms() * f64::from(spt)) as u64 + 1) % u64::from(spt)
            };
            zones.push(Zone {
                first,
                first_cyl,
                cyls,
                spt,
                skew_step: skew(step_ms) as u32,
                skew_band: skew(band_ms) as u32,
                sector: (turn << FRACTION) / u64::from(spt),
                by_track: Divisor::new(u64::from(spt)),
                by_sector: Divisor::new((turn << FRACTION) / u64::from(spt)),
            });
            first_cyl += cyls;
        }
        let hint_shift = (p.capacity / u64::from(HINTS)).max(1).ilog2();
        let hint = (0..=(p.capacity >> hint_shift))
            .map(|i| zones.partition_point(|z| z.first <= i << hint_shift) as u16 - 1)
            .collect();
        Ok(Geometry {
            zones,
            hint,
            hint_shift,
            heads,
            by_heads: Divisor::new(u64::from(heads)),
            band,
            capacity: p.capacity,
            cylinders: first_cyl,
            turn,
        })
    }

    /// Returns the number of sectors.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }
    /// Returns the number of cylinders.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }
    /// Returns the zones from the outer edge: (first sector, sectors per track).
    pub fn zones(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.zones.iter().map(|z| (z.first, z.spt))
    }
    /// Returns the number of sectors per track at an address.
    pub fn track_sectors(&self, lba: u64) -> u32 {
        self.zones[self.zone_of(lba)].spt
    }

    #[inline]
    fn zone_of(&self, lba: u64) -> usize {
        let mut z = self.hint[(lba >> self.hint_shift) as usize] as usize;
        while z + 1 < self.zones.len() && self.zones[z + 1].first <= lba {
            z += 1;
        }
        z
    }

    /// Returns the position of sector `lba`, which must be less than the capacity.
    // Inlined for speed. A position that is returned through memory is read in larger units than it
    // was written in, which stalls the processor.
    #[inline(always)]
    pub fn locate(&self, lba: u64) -> Place {
        let zi = self.zone_of(lba);
        let z = &self.zones[zi];
        let (k, q) = z.by_track.split(lba - z.first);
        let q = q as u32;
        let (cyl, head, ends) = match self.band {
            None => {
                let (c, h) = self.by_heads.split(k);
                (c as u32, h as u32, c)
            }
            Some(w) => self.serpentine(z, w, k),
        };
        let turned = (k - ends) * u64::from(z.skew_step) + ends * u64::from(z.skew_band);
        Place {
            cyl: z.first_cyl + cyl,
            head,
            zone: zi as u32,
            slot: z.by_track.rest(u64::from(q) + turned) as u32,
            left: z.spt - q,
        }
    }

    /// Returns, for track `k` of the zone: the cylinder within the zone, the head, and the number
    /// of completed bands. A band has `w` tracks. Even heads go inward and odd heads go outward.
    /// The last group of bands may be narrower.
    fn serpentine(&self, z: &Zone, w: u32, k: u64) -> (u32, u32, u64) {
        let row_tracks = u64::from(w) * u64::from(self.heads);
        let row = k / row_tracks;
        let row_cyl = row as u32 * w;
        let width = u64::from(w.min(z.cyls - row_cyl));
        let r = k % row_tracks;
        let (head, i) = ((r / width) as u32, (r % width) as u32);
        let i = if head.is_multiple_of(2) {
            i
        } else {
            width as u32 - 1 - i
        };
        let ends = row * u64::from(self.heads) + u64::from(head);
        (row_cyl + i, head, ends)
    }

    /// Returns the time from the index mark to the start of `slot`, in ticks. It can exceed one
    /// revolution.
    #[inline]
    pub fn angle(&self, zone: u32, slot: u32) -> Ticks {
        (u64::from(slot) * self.zones[zone as usize].sector) >> FRACTION
    }
    /// Returns the first slot that starts at least `offset` ticks after the index mark, on the
    /// tracks of this zone. `offset` is at most a few revolutions.
    #[inline]
    pub(super) fn slot_at(&self, zone: u32, offset: Ticks) -> u32 {
        self.zones[zone as usize].by_sector.up(offset << FRACTION) as u32
    }
    /// Returns the time of a revolution, in ticks.
    pub fn turn(&self) -> Ticks {
        self.turn
    }
}

fn no_room(key: &'static str, what: String) -> ParamError {
    ParamError::new(
        key,
        what,
        "check capacity, surfaces, sectors per track and zones",
    )
}

/// Returns (first sector, cylinders, sectors per track) of zones that all have the same number of
/// cylinders. The number of sectors per track decreases linearly.
fn linear(
    capacity: u64,
    heads: u32,
    outer: u32,
    ratio: f64,
    count: u32,
) -> Result<Vec<(u64, u32, u32)>, ParamError> {
    let spt = |i: u32| {
        let fall = (1.0 - ratio) * f64::from(i) / f64::from((count - 1).max(1));
        (f64::from(outer) * (1.0 - fall)) as u32
    };
    let sum: u64 = (0..count).map(|i| u64::from(spt(i))).sum();
    if spt(count - 1) < 1 {
        return Err(no_room(
            "inner_ratio",
            format!("the inner zone of {outer} x {ratio} sectors per track has no sectors"),
        ));
    }
    let per_cyl = u64::from(heads) * sum;
    let total = (u128::from(capacity) * u128::from(count)).div_ceil(u128::from(per_cyl)) as u64;
    if total < u64::from(count) || total > u64::from(u32::MAX) {
        return Err(no_room(
            "capacity",
            format!("{capacity} sectors give {total} cylinders for {count} zones"),
        ));
    }
    let (mut zones, mut first) = (vec![], 0u64);
    for i in 0..count {
        let share = |i: u32| total * u64::from(i) / u64::from(count);
        let mut cyls = (share(i + 1) - share(i)) as u32;
        let sectors = u64::from(spt(i)) * u64::from(heads);
        if i + 1 == count {
            // Rounding can make the last zone slightly too short or too long.
            cyls = capacity.saturating_sub(first).div_ceil(sectors).max(1) as u32;
        }
        if first >= capacity {
            break;
        }
        zones.push((first, cyls, spt(i)));
        first += sectors * u64::from(cyls);
    }
    Ok(zones)
}

/// Builds the zones from a table of (first sector, sectors per track).
fn measured(
    capacity: u64,
    heads: u32,
    rows: &[(u64, u32)],
) -> Result<Vec<(u64, u32, u32)>, ParamError> {
    let rising = rows.windows(2).all(|w| w[0].0 < w[1].0);
    if rows.is_empty() || rows[0].0 != 0 || !rising || rows.iter().any(|r| r.1 == 0) {
        return Err(no_room(
            "zone_table",
            "zones must start at sector 0, be in ascending order, and have at least one sector per \
             track".into(),
        ));
    }
    if rows.len() > 1024 || rows[rows.len() - 1].0 >= capacity {
        return Err(no_room(
            "zone_table",
            "more than 1024 zones, or a zone after the end of the drive".into(),
        ));
    }
    let ends = rows.iter().skip(1).map(|r| r.0).chain([capacity]);
    let mut zones = vec![];
    let mut total = 0u64;
    for (&(first, spt), end) in rows.iter().zip(ends) {
        let cyls = (end - first).div_ceil(u64::from(spt) * u64::from(heads));
        total += cyls;
        zones.push((first, cyls.min(u64::from(u32::MAX)) as u32, spt));
    }
    if total > u64::from(u32::MAX) {
        return Err(no_room(
            "zone_table",
            format!("{total} cylinders are too many"),
        ));
    }
    Ok(zones)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdd::tests::params;
    use proptest::prelude::*;

    #[test]
    fn cylinder_counts_equal_the_published_ones() {
        // The number of cylinders must equal that of the published parameter tables.
        for (name, cylinders) in [
            ("hitachi-7k200", 97_898),
            ("sata320-2006", 145_084),
            ("hitachi-7k500", 106_476),
            ("hitachi-t7k250", 128_234),
            ("hus728t8", 509_550),
            ("st2000dm006", 462_426),
        ] {
            let g = Geometry::new(&params(name)).unwrap();
            let off = f64::from(g.cylinders()) / f64::from(cylinders) - 1.0;
            assert!(off.abs() < 5e-4, "{name}: {} cylinders", g.cylinders());
        }
    }

    #[test]
    fn consecutive_sectors_are_adjacent_on_a_track() {
        let g = Geometry::new(&params("hitachi-7k200")).unwrap();
        let (a, b) = (g.locate(0), g.locate(1));
        assert_eq!((a.cyl, a.head, a.slot, a.left), (0, 0, 0, 1331));
        assert_eq!((b.cyl, b.slot, b.left), (0, 1, 1330));
        // The next track is on the other head. It is offset by the time of the head switch and one
        // extra sector.
        let c = g.locate(1331);
        let skew = (1.4f64 / (60_000.0 / 7200.0) * 1331.0).ceil() as u32 + 1;
        assert_eq!((c.cyl, c.head, c.slot), (0, 1, skew));
        assert_eq!(g.locate(2662).cyl, 1);
    }

    #[test]
    fn serpentine_band_stays_on_one_head() {
        let mut p = params("hitachi-7k200");
        p.layout = Layout::Serpentine(100);
        let g = Geometry::new(&p).unwrap();
        let at = |track: u64| {
            let l = g.locate(track * 1331);
            (l.cyl, l.head)
        };
        assert_eq!((at(0), at(99)), ((0, 0), (99, 0)));
        assert_eq!((at(100), at(199)), ((99, 1), (0, 1)));
        assert_eq!(at(200), (100, 0));
    }

    #[test]
    fn invalid_zone_tables_are_rejected() {
        let mut p = params("hitachi-7k200");
        p.zones = Zones::Table(vec![(0, 1000), (p.capacity, 500)]);
        assert_eq!(Geometry::new(&p).unwrap_err().key, "zone_table");
        p.zones = Zones::Table(vec![(8, 1000)]);
        assert_eq!(Geometry::new(&p).unwrap_err().key, "zone_table");
        p.zones = Zones::Linear {
            outer: 1,
            ratio: 0.5,
            count: 4,
        };
        assert_eq!(Geometry::new(&p).unwrap_err().key, "inner_ratio");
        p.capacity = 100;
        p.zones = Zones::Linear {
            outer: 1331,
            ratio: 0.5,
            count: 24,
        };
        assert_eq!(Geometry::new(&p).unwrap_err().key, "capacity");
    }

    proptest! {
        /// No two sectors have the same position in any layout. The test walks over a random range
        /// of addresses, finds each (cylinder, head, slot) at most once, and checks that tracks end
        /// where `left` says.
        #[test]
        fn no_two_sectors_share_a_position(start in 0u64..195_000_000, band in 0u32..40) {
            let mut p = params("hitachi-7k200");
            if band > 0 {
                p.layout = Layout::Serpentine(band);
            }
            let g = Geometry::new(&p).unwrap();
            let mut seen = std::collections::BTreeSet::new();
            for lba in start..(start + 5000).min(g.capacity()) {
                let l = g.locate(lba);
                prop_assert!(l.cyl < g.cylinders() && l.head < 2);
                prop_assert!(seen.insert((l.cyl, l.head, l.slot)));
                if lba > start {
                    let b = g.locate(lba - 1);
                    let same = (l.cyl, l.head) == (b.cyl, b.head);
                    prop_assert_eq!(same, b.left > 1);
                }
            }
        }
    }
}
