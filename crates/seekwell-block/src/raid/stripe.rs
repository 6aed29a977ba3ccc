//! Striping (md RAID 0, dm-striped).
//!
//! Ascending addresses in the array are ascending addresses on each member. The order of an
//! elevator above the stripe is therefore also right for every member. A bio is split at the ends
//! of chunks. Neighbouring pieces on one member are contiguous there, and merge in the queue of the
//! member.

use super::array::{Array, Io, JoinId, Level};
use super::smallest;
use seekwell_core::{Bio, BioSink, Sector, Sectors};
use seekwell_device::ParamError;
use seekwell_device::raid::{self, Layout};

/// The level: the layout of the stripe.
pub struct Striping(Layout);

/// A RAID 0 array. The smallest member determines the size.
pub type Stripe<B> = Array<B, Striping>;

impl<B: BioSink> Stripe<B> {
    /// Creates the array. It needs at least one member. `chunk` must be a power of two, at least 8
    /// sectors.
    pub fn new(members: Vec<B>, chunk: Sectors) -> Result<Self, ParamError> {
        let size = smallest(&members);
        let layout = Layout::new(raid::Level::Raid0, members.len(), chunk, size)?;
        Ok(Array::with_level(members, Striping(layout)))
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
