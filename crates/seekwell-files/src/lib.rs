//! Access to the user's files. Only small regular files are read completely into memory. Output
//! files are replaced atomically.
//!
//! Commands write every file through [`Sink`]. They read complete files through [`read_text`] and
//! streams through [`open_stream`]. [`same`] returns whether two paths name the same file. Files
//! whose parser may panic are read inside [`guarded`].
//!
//! These functions avoid four kinds of damage. They never replace a device node by a file. They
//! never follow a link that an attacker planted under a temporary name. They never read a disk or
//! `/dev/zero` into memory. They never overwrite a disk with a result.

mod guarded;
mod read;
mod target;
mod write;

pub use guarded::guarded;
pub use read::{Kind, ReadError, open_stream, read_text};
pub use target::{check, check_directory, same};
pub use write::{Sink, scratch, stream, sweep};
