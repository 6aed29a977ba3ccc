//! Writeback: the choice of the pages, the threads that write them, the throttling of tasks that
//! dirty pages, and the conversion of unwritten blocks afterwards.

mod convert;
mod flusher;
mod inode;
mod throttle;

pub(crate) use convert::{thread as conversion_thread, wait_all_converted, wait_converted};
pub(crate) use flusher::{have_all_written, pdflush, thread as flusher_thread};
pub(crate) use inode::{
    Fresh, OrderedData, Pass, allocate, allocate_in, blocks_changed, inode_changed, read_inode,
    wait_written, write_inode,
};
pub(crate) use throttle::balance;
