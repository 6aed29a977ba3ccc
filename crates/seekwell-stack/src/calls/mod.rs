//! System calls: each from its entry to its return, and the kernel that takes them.

mod aio;
mod direct;
mod kernel;
mod mapped;
mod names;
mod raw;
mod read;
mod short;
mod sync;
mod truncate;
mod write;

pub use kernel::Kernel;
pub use short::{AtOnce, Parts};
