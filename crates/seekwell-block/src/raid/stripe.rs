//! Striping (md RAID 0, dm-striped).
//!
//! Ascending array addresses give ascending member addresses, so an elevator above a stripe also
//! works for every member. A bio is split at the ends of chunks; neighbouring pieces on one member
//! are contiguous there and merge in its queue.

use super::array::{Array, Io, JoinId, Level};
use super::smallest;
use seekwell_core::{Bio, BioSink, Sector, Sectors};
use seekwell_device::ParamError;
use seekwell_device::raid::{self, Layout};

/// The level.
pub struct Striping(Layout);

/// RAID 0; the smallest member sets the size.
pub type Stripe<B> = Array<B, Striping>;

impl<B: BioSink> Stripe<B> {
    /// Over at least one member; `chunk` a power of two of 8 sectors or more.
    pub fn new(members: Vec<B>, chunk: Sectors) -> Result<Self, ParamError> {
        let size = smallest(&members);
        let layout = Layout::new(raid::Level::Raid0, members.len(), chunk, size)?;
        Ok(Array::of(members, Striping(layout)))
    }
}

impl Level for Striping {
    fn data<B: BioSink>(&mut self, io: &mut Io<B>, bio: Bio, join: JoinId) {
        let (mut at, end) = (bio.sector.0, bio.end().0);
        while at < end {
            let n = self.0.rest(at).min(end - at);
            let s = self.0.copy(at, 0);
            io.send(join, &bio, s.member, s.sector, n as u32);
            at += n;
        }
    }
    fn size(&self) -> Sector {
        self.0.capacity()
    }
}
