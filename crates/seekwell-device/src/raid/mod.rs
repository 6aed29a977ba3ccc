//! Arrays of disks: where the data of an array lie on its members.
//!
//! The arithmetic serves both forms of an array: md in the block layer, whose members are queues
//! with a scheduler each, and the hardware controller of this crate, whose members are bare
//! devices.

mod layout;

pub use layout::{Layout, Level, Order, Spot};
