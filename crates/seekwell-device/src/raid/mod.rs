//! Disk arrays: the placement of data on members, and the parameters.
//!
//! Two kinds of array use this arithmetic. The block layer models md, whose members are queues with
//! a scheduler each. The hardware controller of this crate has bare devices as members.

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
