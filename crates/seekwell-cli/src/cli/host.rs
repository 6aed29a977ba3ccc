//! Arguments of the commands that show this machine's devices and set their schedulers.

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
    /// An action other than showing devices
    #[command(subcommand)]
    pub action: Option<HostAction>,
    /// Device (sda, /dev/sda2, /dev/mapper/vg-home), file or directory whose layers and schedulers
    /// are shown [default: a table of all devices]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub path: Option<PathBuf>,
    /// Also show empty loop devices and other devices that are usually omitted
    #[arg(long, conflicts_with = "path")]
    pub all: bool,
    /// Use the copy of another machine's /sys, /proc and /run/udev in DIR
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Actions of `host` other than showing devices.
#[derive(Subcommand, Debug)]
pub enum HostAction {
    /// Restore settings that killed runs changed; list interrupted experiments
    ///
    /// It restores settings of devices, and removes unfinished files of `apply`. It ends programs
    /// of killed runs and removes their directories, control groups and trace instances. For each
    /// interrupted experiment, it prints where the results are, and the command that resumes it. It
    /// does not change anything that belongs to a run that is still alive.
    ///
    /// To show a file or directory that is called restore, write ./restore.
    Restore(Restore),
}

/// Arguments of `host restore`.
#[derive(Args, Debug)]
pub struct Restore {
    /// Install and enable a systemd unit that runs `seekwell host restore` at every boot
    #[arg(long, conflicts_with = "remove_unit")]
    pub install_unit: bool,
    /// Disable and remove the unit completely
    #[arg(long)]
    pub remove_unit: bool,
    /// Use DIR instead of /: write the unit there, or restore the copy of a machine there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, conflicts_with_all = ["install_unit", "remove_unit"])]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `switch`.
#[derive(Args, Debug)]
pub struct Switch {
    /// Device (sda), or a file or directory on it
    #[arg(required_unless_present_any = ["restore", "guard"], value_hint = ValueHint::AnyPath)]
    pub path: Option<PathBuf>,
    /// Name of the scheduler in the kernel
    #[arg(required_unless_present_any = ["restore", "guard"])]
    pub scheduler: Option<String>,
    /// Set a tunable of the scheduler (queue/iosched) or of the queue (nr_requests, wbt_lat_usec,
    /// read_ahead_kb, max_sectors_kb, nomerges, rq_affinity, rotational, iostats, add_random); may
    /// be repeated
    #[arg(long, short, value_name = "NAME=VALUE", conflicts_with = "restore")]
    pub tunable: Vec<String>,
    /// Set the scheduler only while COMMAND runs, then restore everything, also after a failure.
    /// COMMAND is the rest of the line, with or without `--` before it
    #[arg(long = "for", value_name = "COMMAND", num_args = 0.., allow_hyphen_values = true,
        conflicts_with = "restore")]
    pub during: Option<Vec<OsString>>,
    /// Switch all devices below PATH, if there are several (RAID, LVM, btrfs)
    #[arg(long, conflicts_with = "restore")]
    pub all_members: bool,
    /// Write to the copy of another machine's /sys in DIR, to see the effect of a switch
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath,
        conflicts_with_all = ["restore", "during"])]
    pub root: Option<PathBuf>,
    /// Do not ask before switching the device that holds /
    #[arg(long)]
    pub yes: bool,
    /// Restore settings of runs that were killed with kill -9
    #[arg(long)]
    pub restore: bool,
    /// Wait for the end of standard input, then restore the settings that process PID has not
    /// restored
    #[arg(long, hide = true, value_name = "PID")]
    pub guard: Option<u32>,
}

/// Arguments of `apply`.
#[derive(Args, Debug)]
pub struct Apply {
    /// Name of the scheduler in the kernel, or a results folder with a verdict
    #[arg(value_name = "RESULTS|SCHEDULER", required_unless_present = "undo",
        conflicts_with = "undo", value_hint = ValueHint::AnyPath)]
    pub what: Option<String>,
    /// Block device (sda): the whole device, not a partition
    #[arg(long, short, value_name = "DEVICE")]
    pub device: String,
    /// Set a tunable of the scheduler or of the queue, like `seekwell switch`; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", conflicts_with = "undo")]
    pub tunable: Vec<String>,
    /// Which device of the results to use, by its name in the results
    #[arg(long, value_name = "NAME", conflicts_with = "undo")]
    pub measured_on: Option<String>,
    /// Keep the choice for later boots: udev (writes a rule for this disk), tuned (writes a
    /// profile), nixos (prints lines), or boot (prints a kernel parameter for kernels before 5.0)
    #[arg(long, value_name = "WAY", num_args = 0..=1, default_missing_value = "udev",
        require_equals = true, conflicts_with = "undo")]
    pub persist: Option<Way>,
    /// Remove all files written for the device, and restore its settings
    #[arg(long)]
    pub undo: bool,
    /// Show the files and settings that would be written, then stop
    #[arg(long, conflicts_with = "undo")]
    pub dry_run: bool,
    /// Do not ask before writing files
    #[arg(long)]
    pub yes: bool,
    /// Use DIR instead of /; it contains sys, etc, run and var
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// How to keep a scheduler for later boots.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// /etc/udev/rules.d/62-seekwell-SERIAL.rules
    Udev,
    /// /etc/tuned/seekwell-SERIAL/tuned.conf
    Tuned,
    /// Lines to copy into the NixOS configuration: services.udev.extraRules
    Nixos,
    /// The kernel parameter elevator=, for kernels before 5.0
    Boot,
}

/// How to read the kernel's tracepoints.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// BPF programs and a ring buffer, with times in nanoseconds (Linux 6.7 and later)
    Bpf,
    /// The text of tracefs, with times in microseconds
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
    /// Format of the trace [default: from the name of FILE]
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<String>,
    /// Method of recording [default: bpf, or tracefs where BPF is not allowed]
    #[arg(long, value_enum)]
    pub by: Option<Door>,
    /// Print the numbers of recorded and lost events as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Command to run, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
