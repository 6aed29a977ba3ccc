//! The journal (jbd, jbd2): transactions, commits, the tasks that they block and the blocks that
//! they write.
//!
//! A transaction collects metadata blocks. Its commit waits for open handles and writes the ordered
//! data. Then it writes the blocks into the journal, and the commit record between cache flushes.
//! Home locations are written later by the writeback of the block device, or here when the journal
//! is full. The data of a transaction are recorded by inode, as in ordered mode.

mod commit;
mod handle;
mod meta;

pub(crate) use commit::{InodeData, thread};
pub(crate) use handle::{handle_reserved, handle_start, wait_commit};
pub(crate) use meta::{modify, read_meta};
