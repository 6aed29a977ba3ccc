//! Arrays of disks: where the data of an array lie on its members, and what can be set about one.
//!
//! The arithmetic serves both forms of an array: md in the block layer, whose members are queues
//! with a scheduler each, and the hardware controller of this crate, whose members are bare
//! devices.

mod layout;
mod members;
mod params;

pub use layout::{Layout, Level, Order, Spot};
pub use members::{
    LeafOptions, equal, failures, level_of, member_seed, member_specs, numbers, of_member,
    open_member,
};
pub(crate) use params::text;
pub use params::{ArrayParams, Combined, DEFS, LEVELS};
