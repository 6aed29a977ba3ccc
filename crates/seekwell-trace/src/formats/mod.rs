//! The formats, one file or folder each.

pub mod blkparse;
pub mod blktrace;
pub mod csv;
pub mod ftrace;
pub mod iolog;
pub mod vscsi;
