//! The journal (jbd, jbd2): transactions, commits, what they block and what they write.
//!
//! A transaction collects metadata blocks. Its commit waits for open handles, writes the data that
//! must go first, then the blocks into the journal, then the commit record between cache flushes.
//! Home locations are written later, by whoever writes back the block device, or here when the
//! journal is full. Data of a transaction are known by inode, as ordered mode does.

mod commit;
mod handle;
mod meta;

pub(crate) use commit::{InodeData, thread};
pub(crate) use handle::{handle_reserved, handle_start, wait_commit};
pub(crate) use meta::{modify, read_meta};
