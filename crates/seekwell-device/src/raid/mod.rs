//! Disk arrays: the mapping of data to members, and the parameters.
//!
//! Two kinds of array use these mappings. The block layer crate models md: each member of md is a
//! queue with its own scheduler. The hardware RAID controller of this crate has devices without
//! schedulers as members.

mod layout;
mod members;
mod params;

pub use layout::{Layout, Level, Order, Spot};
pub use members::{
    LeafOptions, equal, failures, level_of, member_seed, member_specs, numbers, of_member,
};
pub(crate) use params::text;
pub use params::{ArrayParams, Combined, DEFS, LEVELS};
