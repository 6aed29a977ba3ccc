//! Device models: state machines that implement [`seekwell_core::Device`].
//!
//! A model does not depend on the scheduler, and has no clock of its own. Its behaviour is a pure
//! function of its parameters, its seed and its commands. [`open`] makes a device from a
//! specification such as `hdd:hitachi-7k200` or `constant:depth=32,service_us=100`. [`catalogue`]
//! lists the available devices.
//!
//! To add a kind of device, add a module with its parameter table and an entry in `catalogue.rs`.
//! To add a device of an existing kind, add a file in `presets/` and an entry in `embedded.rs`. A
//! running program can also register both ([`register_kind`], [`register_preset`]).

mod catalogue;
pub mod cloud;
pub mod constant;
pub mod controller;
mod divide;
mod embedded;
pub mod emmc;
pub mod error;
mod files;
mod footprint;
pub mod guest;
pub mod hdd;
mod names;
pub mod preset;
pub mod probe;
pub mod raid;
pub mod smr;
pub mod spec;
pub mod ssd;

pub use catalogue::{
    Entry, Kind, Opened, catalogue, describe, files_of, kinds, open, open_hdd, open_member,
    over_queues, read_preset, register_kind, register_preset,
};
pub use cloud::Cloud;
pub use constant::Constant;
pub use controller::{Controller, ControllerParams};
pub use emmc::{Emmc, EmmcParams};
pub use error::{DeviceError, ParamError};
pub use files::with_files;
pub use footprint::{DEVICES_MAX, Footprint, footprint};
pub use guest::GuestParams;
pub use hdd::{FastHdd, Hdd, HddParams};
pub use preset::{Param, Preset, Source, Value};
pub use smr::{Smr, SmrParams};
pub use ssd::{CheapSsd, DetailedSsd, SsdParams};
