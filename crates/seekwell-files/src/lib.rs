//! The user's files: read whole only if they are small and plain, replaced whole or not at all.
//!
//! Every file that a command writes goes through [`Sink`], every one it reads whole through
//! [`read_text`], every one it reads as a stream through [`open_stream`]; [`same`] tells when two
//! of them are one. What is never done here: a device's node replaced by a file, a link's target
//! overwritten through a temporary name that somebody planted, a disk or `/dev/zero` read into
//! memory, a result written over a disk. Files that a library reads which may panic on them go
//! through [`guarded`].

mod guarded;
mod read;
mod target;
mod write;

pub use guarded::guarded;
pub use read::{Kind, ReadError, open_stream, read_text};
pub use target::{check, check_directory, same};
pub use write::{Sink, scratch, stream, sweep};
