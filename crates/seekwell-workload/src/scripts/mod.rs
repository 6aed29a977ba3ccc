//! The scripts, a file each: what the original does, call by call, and what it prints.

pub mod common;
pub mod fs_mark;
