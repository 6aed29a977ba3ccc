//! Linear concatenation of members (md linear, dm-linear).

use super::array::{Array, Io, JoinId, Level};
use seekwell_core::{Bio, BioSink, Sector};
use seekwell_device::ParamError;

/// The level: the first sector of each member, and the end of the array.
pub struct Chain(Vec<u64>);

/// An array in which the members follow each other.
pub type Linear<B> = Array<B, Chain>;

impl<B: BioSink> Linear<B> {
    /// Creates the array from its members, in order. There must be at least one.
    pub fn new(members: Vec<B>) -> Result<Self, ParamError> {
        if members.is_empty() {
            return Err(ParamError::new(
                "members",
                "a linear array has no members",
                "give members=1 or more",
            ));
        }
        let mut starts = vec![0];
        for m in &members {
            starts.push(starts[starts.len() - 1] + m.capacity().0);
        }
        Ok(Array::with_level(members, Chain(starts)))
    }
}

impl Level for Chain {
    fn data<B: BioSink>(&mut self, io: &mut Io<B>, bio: Bio, join: JoinId) {
        let (mut at, end) = (bio.sector.0, bio.end().0);
        let mut member = self.0.partition_point(|s| *s <= at) - 1;
        while at < end {
            let n = end.min(self.0[member + 1]) - at;
            if n > 0 {
                io.send(join, &bio, member, at - self.0[member], n as u32);
            }
            at += n;
            member += 1;
        }
    }
    fn size(&self) -> Sector {
        Sector(self.0[self.0.len() - 1])
    }
}
