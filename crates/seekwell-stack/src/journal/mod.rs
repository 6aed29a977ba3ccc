//! The journal (jbd and jbd2): transactions, their commits, the blocks that a commit writes, and
//! the tasks that wait for a commit.
//!
//! A transaction collects metadata blocks. Its commit waits for the open handles and writes the
//! ordered data. Then the commit writes the metadata blocks into the journal. At last it writes the
//! commit record between two cache flushes. The blocks are written to their home locations later,
//! by the writeback of the block device. If the journal is full, a checkpoint in this module writes
//! them. A transaction records its data as a list of inodes (ordered mode).

mod commit;
mod handle;
mod meta;

pub(crate) use commit::{InodeData, thread};
pub(crate) use handle::{handle_reserved, handle_start, wait_commit};
pub(crate) use meta::{modify, read_meta};
