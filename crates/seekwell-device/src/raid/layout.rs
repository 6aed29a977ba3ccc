//! Mapping of array addresses to member addresses and back.
//!
//! The mappings are those of Linux md, as the manual page md(4) describes them: RAID 0 with equal
//! members, RAID 10 with the layouts near, far and offset, RAID 5 and RAID 6 left-symmetric. The
//! model leaves out RAID 4, asymmetric parity, and RAID 0 with unequal members.

use crate::error::ParamError;
use seekwell_core::{Sector, Sectors};

/// Placement of the copies in RAID 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Copies are on adjacent members, so the array is a stripe of mirrors.
    Near,
    /// Copies are in another section of the members, shifted by one member. Reads are striped as in
    /// RAID 0, but writes need long seeks.
    Far,
    /// Copies are in the next row, shifted by one member.
    Offset,
}

/// The RAID level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Striping without redundancy.
    Raid0,
    /// Every member holds all data.
    Raid1,
    /// Striping with copies.
    Raid10 {
        /// Number of copies of each chunk, at least 2.
        copies: u32,
        /// Placement of the copies.
        order: Order,
    },
    /// One parity chunk per row.
    Raid5,
    /// Two parity chunks per row.
    Raid6,
}

impl Level {
    /// Returns the number of parity chunks per row.
    pub const fn parities(self) -> u64 {
        match self {
            Level::Raid5 => 1,
            Level::Raid6 => 2,
            _ => 0,
        }
    }
    /// Returns the minimum number of members.
    pub const fn least(self) -> u64 {
        match self {
            Level::Raid0 | Level::Raid1 => 1,
            Level::Raid10 { copies, .. } => copies as u64,
            Level::Raid5 => 3,
            Level::Raid6 => 4,
        }
    }
    /// Returns the usual name of the level, for example `RAID 10`.
    pub const fn text(self) -> &'static str {
        match self {
            Level::Raid0 => "RAID 0",
            Level::Raid1 => "RAID 1",
            Level::Raid10 { .. } => "RAID 10",
            Level::Raid5 => "RAID 5",
            Level::Raid6 => "RAID 6",
        }
    }
}

/// A position on a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Index of the member.
    pub member: usize,
    /// Sector on the member.
    pub sector: u64,
}

/// The mapping of one array.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    level: Level,
    members: u64,
    /// Sectors per chunk; for RAID 1, the size of a member.
    chunk: u64,
    /// Number of whole chunks per member.
    rows: u64,
}

impl Layout {
    /// Makes a layout of `members` members of `size` sectors each. `chunk` must be a power of two
    /// of at least 4 KiB; RAID 1 has no chunks and ignores it. Returns an error for an impossible
    /// value. The parameter in the error is `members`, `chunk` or `copies`.
    pub fn new(
        level: Level,
        members: usize,
        chunk: Sectors,
        size: Sector,
    ) -> Result<Layout, ParamError> {
        let n = members as u64;
        let least = level.least();
        if n < least {
            return Err(ParamError::new(
                "members",
                format!("{} needs at least {least} members, not {n}", level.text()),
                format!("use members={least} or more"),
            ));
        }
        if n > 256 {
            return Err(ParamError::new(
                "members",
                format!("an array has at most 256 members, not {n}"),
                "nest arrays for more",
            ));
        }
        if let Level::Raid10 { copies: 0 | 1, .. } = level {
            return Err(ParamError::new(
                "copies",
                "RAID 10 needs at least 2 copies",
                "give copies=2, or use RAID 0",
            ));
        }
        let chunk = match level {
            Level::Raid1 => size.0.max(1),
            _ => u64::from(chunk.0),
        };
        if level != Level::Raid1 && (chunk < 8 || !chunk.is_power_of_two()) {
            return Err(ParamError::new(
                "chunk",
                format!(
                    "a chunk must be a power of two of at least 4 KiB, not {} bytes",
                    chunk * 512
                ),
                "use, for example, chunk=64KiB",
            ));
        }
        let rows = size.0 / chunk;
        let sections = match level {
            Level::Raid10 { copies, .. } => u64::from(copies),
            _ => 1,
        };
        if rows < sections {
            return Err(ParamError::new(
                "chunk",
                format!("a member of {size} sectors is smaller than a chunk of {chunk}"),
                "use larger members or smaller chunks",
            ));
        }
        Ok(Layout {
            level,
            members: n,
            chunk,
            rows,
        })
    }
    /// Returns the RAID level.
    pub fn level(&self) -> Level {
        self.level
    }
    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.members as usize
    }
    /// Returns the number of sectors per chunk.
    pub fn chunk(&self) -> u64 {
        self.chunk
    }
    /// Returns the number of data chunks per row for parity levels. For other levels, returns the
    /// number of members that serve a long sequential read.
    pub fn width(&self) -> u64 {
        match self.level {
            Level::Raid1 => 1,
            Level::Raid10 {
                copies,
                order: Order::Near,
            } => (self.members / u64::from(copies)).max(1),
            _ => self.members - self.level.parities(),
        }
    }
    /// Returns the number of data bytes per row, which is the best request size
    /// (queue/optimal_io_size). Returns 0 for a level without chunks.
    pub fn optimal_bytes(&self) -> u64 {
        match self.level {
            Level::Raid1 => 0,
            _ => self.width() * self.chunk * 512,
        }
    }
    /// Returns the size of the array in sectors.
    pub fn capacity(&self) -> Sector {
        let (n, rows) = (self.members, self.rows);
        let chunks = match self.level {
            Level::Raid0 => rows * n,
            Level::Raid1 => rows,
            Level::Raid10 {
                copies,
                order: Order::Near,
            } => rows * n / u64::from(copies),
            Level::Raid10 { copies, .. } => rows / u64::from(copies) * n,
            Level::Raid5 | Level::Raid6 => rows * (n - self.level.parities()),
        };
        Sector(chunks * self.chunk)
    }
    /// Returns the number of sectors from `at` to the end of its chunk.
    pub fn rest(&self, at: u64) -> u64 {
        self.chunk - at % self.chunk
    }
    /// Returns the number of copies of each sector, without parity.
    pub fn copies(&self) -> usize {
        match self.level {
            Level::Raid1 => self.members as usize,
            Level::Raid10 { copies, .. } => copies as usize,
            _ => 1,
        }
    }
    /// Returns the position of copy `k` of an array sector.
    pub fn copy(&self, at: u64, k: usize) -> Spot {
        let (n, q, rest, k) = (self.members, at / self.chunk, at % self.chunk, k as u64);
        let (member, row) = match self.level {
            Level::Raid0 => (q % n, q / n),
            Level::Raid1 => (k, 0),
            Level::Raid10 { copies, order } => {
                let c = u64::from(copies);
                match order {
                    Order::Near => ((q * c + k) % n, (q * c + k) / n),
                    Order::Far => ((q + k) % n, q / n + k * (self.rows / c)),
                    Order::Offset => ((q + k) % n, q / n * c + k),
                }
            }
            Level::Raid5 | Level::Raid6 => {
                let (row, i) = (q / self.width(), (q % self.width()) as usize);
                (self.data_member(row, i) as u64, row)
            }
        };
        Spot {
            member: member as usize,
            sector: row * self.chunk + rest,
        }
    }
    /// Returns the row of chunks that contains a sector of a member.
    pub fn row(&self, member_sector: u64) -> u64 {
        member_sector / self.chunk
    }
    /// Returns the members that hold the parity of a row: P, and Q for RAID 6.
    pub fn parity(&self, row: u64) -> (usize, Option<usize>) {
        let n = self.members;
        let p = (n - 1) - row % n;
        let q = (self.level == Level::Raid6).then(|| ((p + 1) % n) as usize);
        (p as usize, q)
    }
    /// Returns the member that holds data chunk `i` of a row.
    pub fn data_member(&self, row: u64, i: usize) -> usize {
        let n = self.members;
        let p = (n - 1) - row % n;
        ((p + self.level.parities() + i as u64) % n) as usize
    }
    /// Returns the array sector that is stored in a sector of a member, or `None` if that sector
    /// holds parity. Only for parity levels.
    pub fn logical(&self, member: usize, sector: u64) -> Option<u64> {
        let (n, row) = (self.members, sector / self.chunk);
        let p = (n - 1) - row % n;
        let i = (member as u64 + n - p) % n;
        let i = i.checked_sub(self.level.parities())?;
        Some((row * self.width() + i) * self.chunk + sector % self.chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const LEVELS: [(Level, usize); 10] = {
        const fn raid10(copies: u32, order: Order) -> Level {
            Level::Raid10 { copies, order }
        }
        [
            (Level::Raid0, 1),
            (Level::Raid0, 3),
            (Level::Raid1, 2),
            (raid10(2, Order::Near), 4),
            (raid10(2, Order::Near), 3),
            (raid10(2, Order::Far), 3),
            (raid10(3, Order::Offset), 5),
            (Level::Raid5, 3),
            (Level::Raid5, 5),
            (Level::Raid6, 6),
        ]
    };

    /// The mapping of every array is a bijection. No two copies have the same position, every copy
    /// is on the right member, and all other sectors of a member hold parity.
    #[test]
    fn array_mappings_are_bijections() {
        for (level, n) in LEVELS {
            let size = 8 * 60;
            let l = Layout::new(level, n, Sectors(8), Sector(size)).unwrap();
            let mut seen = BTreeSet::new();
            for at in 0..l.capacity().0 {
                for k in 0..l.copies() {
                    let s = l.copy(at, k);
                    assert!(s.member < n && s.sector < size, "{level:?} {at} {s:?}");
                    assert!(seen.insert(s), "{level:?}: {s:?} twice");
                    if level.parities() > 0 {
                        assert_eq!(l.logical(s.member, s.sector), Some(at));
                        let (p, q) = l.parity(l.row(s.sector));
                        assert!(s.member != p && Some(s.member) != q);
                        assert_eq!(l.logical(p, s.sector), None);
                    }
                }
            }
            let used = seen.len() as u64 + 60 * 8 * level.parities();
            let spare = n as u64 * size - used;
            assert!(spare < 8 * n as u64, "{level:?}: {spare} sectors unused");
        }
    }

    /// The mapping equals a simple rule that fills a table chunk by chunk.
    #[test]
    fn left_symmetric_layout_equals_the_table() {
        let l = Layout::new(Level::Raid5, 4, Sectors(8), Sector(80)).unwrap();
        let table = [[0, 1, 2, -1], [4, 5, -1, 3], [8, -1, 6, 7], [-1, 9, 10, 11]];
        for (row, disks) in table.iter().enumerate() {
            for (disk, chunk) in disks.iter().enumerate() {
                let at = l.logical(disk, row as u64 * 8);
                assert_eq!(
                    at.map_or(-1, |a| (a / 8) as i64),
                    *chunk,
                    "row {row} disk {disk}"
                );
            }
        }
        let six = Layout::new(Level::Raid6, 4, Sectors(8), Sector(80)).unwrap();
        assert_eq!((six.parity(0), six.parity(1)), ((3, Some(0)), (2, Some(3))));
        assert_eq!((six.data_member(0, 0), six.data_member(0, 1)), (1, 2));
    }

    #[test]
    fn raid0_members_keep_the_address_order() {
        let l = Layout::new(Level::Raid0, 4, Sectors(128), Sector(1 << 20)).unwrap();
        let mut last = [0; 4];
        for at in (0..l.capacity().0).step_by(64) {
            let s = l.copy(at, 0);
            assert!(s.sector >= last[s.member]);
            last[s.member] = s.sector;
        }
    }

    #[test]
    fn impossible_arrays_are_rejected() {
        let bad = |level, n, chunk, size| {
            let e = Layout::new(level, n, Sectors(chunk), Sector(size)).unwrap_err();
            assert!(!e.remedy.is_empty());
            (e.key, e.what)
        };
        assert_eq!(bad(Level::Raid5, 2, 128, 1 << 20).0, "members");
        assert_eq!(bad(Level::Raid6, 3, 128, 1 << 20).0, "members");
        assert_eq!(bad(Level::Raid0, 4, 0, 1 << 20).0, "chunk");
        assert_eq!(bad(Level::Raid0, 4, 96, 1 << 20).0, "chunk");
        assert_eq!(bad(Level::Raid0, 4, 1024, 512).0, "chunk");
        let one = Level::Raid10 {
            copies: 1,
            order: Order::Near,
        };
        assert_eq!(bad(one, 4, 128, 1 << 20).0, "copies");
    }
}
