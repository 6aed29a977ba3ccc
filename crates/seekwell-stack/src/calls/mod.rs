//! The system calls, each from entry to return, and the interface of the kernel that executes them.

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
