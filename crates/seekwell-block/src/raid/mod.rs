//! Arrays of queues, like md and dm. An array divides bios. Each member has its own scheduler.
//!
//! There is one file per level. [`Array`] contains the parts that all levels share: flushes,
//! members that advance together, parts of bios that are joined, and the write-intent bitmap. A
//! level defines how a bio is divided. A member is any sink of bios: a queue, another array, or the
//! host of a virtual disk.
//!
//! Not modelled: rebuilding and checking, bad blocks, journals of RAID 5, RAID 0 with unequal
//! members, RAID 4, and the barriers of 2.6. (A barrier is passed to the members with the parts
//! that carry it.)

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

/// Returns the size of the smallest member.
fn smallest<B: BioSink>(members: &[B]) -> Sector {
    let all = members.iter().map(|m| m.capacity());
    all.min().unwrap_or_default()
}

/// Returns for each member whether it failed.
fn failures(failed: &[usize], members: usize) -> Result<Vec<bool>, ParamError> {
    let mut out = vec![false; members];
    for m in failed {
        match out.get_mut(*m) {
            Some(f) => *f = true,
            None => {
                return Err(ParamError::new(
                    "failed",
                    format!("there is no member {m} to fail: the array has {members} members"),
                    "members are numbered from 0",
                ));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod testing {
    use seekwell_core::{Bio, BioDone, BioSink, Control, Instant, Sector};

    /// A member that never receives a bio.
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
