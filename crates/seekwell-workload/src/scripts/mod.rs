//! The scripts, one file per original program. A script reproduces the calls of the program in
//! order, and the metrics that it prints.

pub mod androbench_io;
pub mod app_start;
pub mod blogbench;
pub mod common;
pub mod compile;
pub mod compilebench;
pub mod device;
pub mod fs_mark;
pub mod fsync_latency;
pub mod hdparm;
pub mod innodb;
pub mod interactive;
pub mod iozone;
pub mod mysql_scan;
pub mod pgbench;
pub mod postmark;
pub mod random_read;
pub mod seeker;
pub mod sqlite;
pub mod streams;
pub mod tiobench;
pub mod web;
