//! Memory: the page cache as a structure, folios, and what read-ahead makes of a sequence of reads.
//! Nothing here waits or reads; whoever does owns the structures.

mod cache;
mod folio;
mod page;
mod readahead;

pub(crate) use cache::{Cache, Find, Owner, Tree};
pub(crate) use folio::{Fill, Scatter};
pub(crate) use page::{NONE, flag};
pub(crate) use readahead::{Cached, Context, Most, ReadAhead, Window};
