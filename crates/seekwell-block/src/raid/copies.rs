//! Mirrors (md RAID 1) and striped mirrors (RAID 10: near, far, offset).
//!
//! A write goes to every copy, and completes when the slowest copy completes. A read goes to one
//! copy, which the read policy selects. Both belong to the io context of their submitter. Not
//! modelled: write-behind, write-mostly members, and the rule of 2 MiB read-ahead for RAID 10 far.

use super::array::{Array, Io, JoinId, Level};
use super::balance::{Balance, ReadPolicy};
use super::smallest;
use seekwell_core::{Bio, BioSink, Op, Sector, Sectors};
use seekwell_device::ParamError;
use seekwell_device::raid::{self, Layout, Spot};

/// The level of an array with copies: RAID 1 or RAID 10.
pub struct Copies {
    layout: Layout,
    balance: Balance,
    failed: Vec<bool>,
    spots: Vec<Spot>,
}

/// A RAID 1 or RAID 10 array.
pub type Mirror<B> = Array<B, Copies>;

impl<B: BioSink> Mirror<B> {
    /// Creates an array. `level` is RAID 1 or 10, and `chunk` is used for RAID 10. `rotating`: all
    /// members are rotational. `failed` lists the failed members. `reserve` sectors at the end of
    /// every member stay unused.
    pub fn new(
        members: Vec<B>,
        level: raid::Level,
        chunk: Sectors,
        policy: ReadPolicy,
        rotating: bool,
        failed: &[usize],
        reserve: u64,
    ) -> Result<Self, ParamError> {
        let size = Sector(smallest(&members).0.saturating_sub(reserve));
        let layout = Layout::new(level, members.len(), chunk, size)?;
        let failed = super::failures(failed, members.len())?;
        // Every chunk needs a copy on a working member. The first rows contain every combination of
        // members, so it is enough to check these rows.
        let rows = (0..members.len() as u64).map(|q| q * layout.chunk());
        for at in rows.filter(|at| *at < layout.capacity().0) {
            if (0..layout.copies()).all(|k| failed[layout.copy(at, k).member]) {
                return Err(ParamError::new(
                    "failed",
                    "all copies of some sectors are on failed members",
                    "let fewer members fail",
                ));
            }
        }
        let balance = Balance::new(policy, rotating, members.len(), size.0);
        let level = Copies {
            layout,
            balance,
            failed,
            spots: Vec::new(),
        };
        Ok(Array::with_level(members, level))
    }
}

impl Level for Copies {
    fn data<B: BioSink>(&mut self, io: &mut Io<B>, bio: Bio, join: JoinId) {
        let (mut at, end) = (bio.sector.0, bio.end().0);
        while at < end {
            let n = self.layout.rest(at).min(end - at);
            self.spots.clear();
            for k in 0..self.layout.copies() {
                let spot = self.layout.copy(at, k);
                if !self.failed[spot.member] {
                    self.spots.push(spot);
                }
            }
            if bio.op == Op::Read {
                let i = self.balance.choose(&self.spots);
                let spot = self.spots[i];
                self.spots.clear();
                self.spots.push(spot);
            }
            for s in self.spots.iter().copied() {
                self.balance.sent(s, n);
                io.send(join, &bio, s.member, s.sector, n as u32);
            }
            at += n;
        }
    }
    fn returned(&mut self, member: usize) {
        self.balance.returned(member);
    }
    fn size(&self) -> Sector {
        self.layout.capacity()
    }
    fn alive(&self, member: usize) -> bool {
        !self.failed[member]
    }
}
