//! Arguments of the commands that look at this machine's devices and switch their schedulers.

use super::Output;
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `host`.
#[derive(Args, Debug)]
pub struct Host {
    /// Device (sda, /dev/sda2, /dev/mapper/vg-home), file or directory: tell what schedules under
    /// it, layer by layer [default: a table of all devices]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub path: Option<PathBuf>,
    /// Empty loop devices and the like, too
    #[arg(long, conflicts_with = "path")]
    pub all: bool,
    /// Look at the copy of another machine's /sys, /proc and /run/udev below DIR
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `switch`.
#[derive(Args, Debug)]
pub struct Switch {
    /// Device (sda), or a file or directory on it
    #[arg(required_unless_present_any = ["restore", "guard"], value_hint = ValueHint::AnyPath)]
    pub path: Option<PathBuf>,
    /// Scheduler, as the kernel calls it
    #[arg(required_unless_present_any = ["restore", "guard"])]
    pub scheduler: Option<String>,
    /// Set a tunable of the scheduler (queue/iosched), or one of the queue: nr_requests,
    /// wbt_lat_usec, read_ahead_kb, max_sectors_kb, nomerges, rq_affinity, rotational, iostats,
    /// add_random; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", conflicts_with = "restore")]
    pub tunable: Vec<String>,
    /// Only while COMMAND runs, which is everything behind (with `--` before it or without); then
    /// put all back, whatever happens
    #[arg(long = "for", value_name = "COMMAND", num_args = 0.., allow_hyphen_values = true,
        conflicts_with = "restore")]
    pub during: Option<Vec<OsString>>,
    /// Several devices, if PATH lies on several (RAID, LVM, btrfs)
    #[arg(long, conflicts_with = "restore")]
    pub all_members: bool,
    /// Do not ask before the device that carries / is switched
    #[arg(long)]
    pub yes: bool,
    /// Put back what runs that were killed with kill -9 left switched
    #[arg(long)]
    pub restore: bool,
    /// Wait for the end of standard input, then put back what this process left switched
    #[arg(long, hide = true, value_name = "PID")]
    pub guard: Option<u32>,
}
