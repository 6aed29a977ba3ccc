//! Arguments of the commands that look at this machine's devices and switch their schedulers.

use super::Output;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `host`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_precedence_over_arg = true
)]
pub struct Host {
    /// Something else than looking
    #[command(subcommand)]
    pub action: Option<HostAction>,
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

/// What `host` does beside looking.
#[derive(Subcommand, Debug)]
pub enum HostAction {
    /// Put back what killed runs left, and tell what a power cut interrupted (a path of this name:
    /// ./restore)
    ///
    /// Settings of devices as they were before; files that were half written by `apply` removed;
    /// programs of dead runs ended, their directories, control groups and trace instances removed.
    /// Of each experiment that was interrupted: where its results are, and the command that goes on
    /// with it. What belongs to a run that lives is left alone.
    Restore(Restore),
}

/// Arguments of `host restore`.
#[derive(Args, Debug)]
pub struct Restore {
    /// Have it done at every boot: write a unit of systemd and enable it
    #[arg(long, conflicts_with = "remove_unit")]
    pub install_unit: bool,
    /// Disable the unit and take it away, byte for byte
    #[arg(long)]
    pub remove_unit: bool,
    /// Write the unit below DIR, or put back what is left in the copy of a machine there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, conflicts_with_all = ["install_unit", "remove_unit"])]
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
    /// Write to the copy of another machine's /sys below DIR: what a switch there would do
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath,
        conflicts_with_all = ["restore", "during"])]
    pub root: Option<PathBuf>,
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

/// Arguments of `apply`.
#[derive(Args, Debug)]
pub struct Apply {
    /// Scheduler, as the kernel calls it, or a results folder: what its verdict says
    #[arg(value_name = "RESULTS|SCHEDULER", required_unless_present = "undo",
        conflicts_with = "undo", value_hint = ValueHint::AnyPath)]
    pub what: Option<String>,
    /// The block device (sda): the whole one, which has the queue
    #[arg(long, short, value_name = "DEVICE")]
    pub device: String,
    /// Set a tunable of the scheduler, or of the queue, as for `seekwell switch`; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", conflicts_with = "undo")]
    pub tunable: Vec<String>,
    /// Of results with several devices: the one that counts, as they call it
    #[arg(long, value_name = "NAME", conflicts_with = "undo")]
    pub measured_on: Option<String>,
    /// Keep it for the next boots: by a udev rule with the disk's identity, a profile of tuned,
    /// lines for NixOS, or a word for the command line of a kernel before 5.0
    #[arg(long, value_name = "WAY", num_args = 0..=1, default_missing_value = "udev",
        require_equals = true, conflicts_with = "undo")]
    pub persist: Option<Way>,
    /// Take away what was written for the device, byte for byte, and put its settings back
    #[arg(long)]
    pub undo: bool,
    /// Show what would be written and set, and stop
    #[arg(long, conflicts_with = "undo")]
    pub dry_run: bool,
    /// Do not ask before files are written
    #[arg(long)]
    pub yes: bool,
    /// Below this directory instead of /: its sys, etc, run and var
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// How a choice is kept.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// /etc/udev/rules.d/62-seekwell-SERIAL.rules
    Udev,
    /// /etc/tuned/seekwell-SERIAL/tuned.conf
    Tuned,
    /// Lines to copy: services.udev.extraRules
    Nixos,
    /// elevator= for kernels before 5.0
    Boot,
}

/// A way to the kernel's tracepoints.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Programs at the tracepoints and a ring buffer: times to the nanosecond (Linux 6.7 and later)
    Bpf,
    /// The text that the kernel prints: times to the microsecond
    Tracefs,
}

/// Arguments of `record`.
#[derive(Args, Debug)]
pub struct Record {
    /// Device (sda), or a file or directory on it
    #[arg(value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
    /// Write the trace to FILE
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Its format [default: what the name of FILE tells]
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<String>,
    /// Through which of the kernel's doors [default: bpf, and tracefs where that is closed]
    #[arg(long, value_enum)]
    pub by: Option<Door>,
    /// Print what was recorded as one JSON document
    #[arg(long)]
    pub json: bool,
    /// What runs, behind --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
