//! Arrays over queues, as md and dm make them: bio-based, above members that each have a scheduler.
//!
//! One file a level. What they share (flushes, members in step, parts joined to bios, the
//! write-intent bitmap) is [`Array`]; a level says which parts a bio has. A member is anything that
//! takes bios: a queue, another array, a virtual disk's host.
//!
//! What these models leave out: rebuilding and checking, bad blocks, journals of RAID 5, RAID 0
//! over unequal members, RAID 4, barriers of 2.6 (they go down with the parts that carry them).

mod array;
mod balance;
mod bitmap;
mod copies;
mod linear;
pub mod parity;
mod remap;
mod stripe;

pub use array::{Array, Io, JoinId, Level};
pub use balance::ReadPolicy;
pub use bitmap::BitmapOptions;
pub use copies::{Copies, Mirror};
pub use linear::{Chain, Linear};
pub use parity::{Parity, ParityOptions};
pub use remap::{Remap, RemapOptions, Remapped};
pub use stripe::{Stripe, Striping};

use seekwell_core::{BioSink, Sector};
use seekwell_device::ParamError;

/// Size of the smallest member.
fn smallest<B: BioSink>(members: &[B]) -> Sector {
    let all = members.iter().map(|m| m.capacity());
    all.min().unwrap_or_default()
}

/// Which members are gone, as flags.
fn failures(failed: &[usize], members: usize) -> Result<Vec<bool>, ParamError> {
    let mut out = vec![false; members];
    for m in failed {
        match out.get_mut(*m) {
            Some(f) => *f = true,
            None => {
                return Err(ParamError::new(
                    "failed",
                    format!("there is no member {m} to fail among {members}"),
                    "members are counted from 0",
                ));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod testing {
    use seekwell_core::{Bio, BioDone, BioSink, Control, Instant, Sector};

    /// A member that nothing is ever sent to.
    pub struct Null(pub Sector);

    impl BioSink for Null {
        fn submit(&mut self, _: Instant, _: Bio) {
            unreachable!("nothing is sent here");
        }
        fn next_event(&self) -> Option<Instant> {
            None
        }
        fn advance(&mut self, _: Instant, _: &mut Vec<BioDone>) {}
        fn control(&mut self, _: Instant, _: Control) {}
        fn capacity(&self) -> Sector {
            self.0
        }
    }
}
