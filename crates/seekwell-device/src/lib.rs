//! Device models: state machines behind [`seekwell_core::Device`].
//!
//! A model knows no scheduler and has no clock; what it does is a pure function of its parameters,
//! its seed and the commands it is given.

pub mod constant;

pub use constant::Constant;
