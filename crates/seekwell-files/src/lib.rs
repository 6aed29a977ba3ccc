//! Access to the user's files: only small regular files are read whole, and files are replaced
//! atomically.
//!
//! Commands write every file through [`Sink`]. They read complete files through [`read_text`] and
//! streams through [`open_stream`]. [`same`] tells whether two paths name the same file. Files
//! whose parser may panic are read inside [`guarded`].
//!
//! These functions never replace a device node by a file. They never write through a planted
//! temporary name to a link's target, read a disk or `/dev/zero` into memory, or write a result
//! over a disk.

mod guarded;
mod read;
mod target;
mod write;

pub use guarded::guarded;
pub use read::{Kind, ReadError, open_stream, read_text};
pub use target::{check, check_directory, same};
pub use write::{Sink, scratch, stream, sweep};
