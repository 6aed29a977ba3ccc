//! Memory: the page cache as a data structure, folios, and the read-ahead state machine. These
//! modules neither wait nor read. Their callers do.

mod cache;
mod folio;
mod page;
mod readahead;

pub(crate) use cache::{Cache, Find, Owner, Tree};
pub(crate) use folio::{Fill, Scatter};
pub(crate) use page::{NONE, flag};
pub(crate) use readahead::{Cached, Context, Most, ReadAhead, Window};
