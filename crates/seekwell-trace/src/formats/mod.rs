//! The formats. Each has its own file or directory.

pub mod alibaba;
pub mod blkparse;
pub mod blktrace;
pub mod csv;
pub mod ftrace;
pub mod iolog;
mod lines;
pub mod msr;
pub mod parquet;
pub mod systor;
pub mod tencent;
mod volumes;
pub mod vscsi;
