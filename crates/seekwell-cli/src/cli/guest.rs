//! Arguments of `guest`, which runs a real kernel on virtual time.

use super::live::bytes;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// Arguments of `guest`.
#[derive(Args, Debug)]
pub struct Guest {
    /// What to do
    #[command(subcommand)]
    pub action: GuestAction,
}

/// The commands of `guest`.
#[derive(Subcommand, Debug)]
pub enum GuestAction {
    /// Build a kernel from its source and keep it in the cache
    ///
    /// The source is the newest package linux-source-* of the distribution, or --source. The
    /// kernel is User Mode Linux, trimmed to what disks need. Nothing is patched. The build takes
    /// about 3 minutes on two cores and 1.7 GB of disk, which is freed at the end.
    Build(GuestBuild),
    /// List the kernels in the cache
    List(GuestList),
    /// Run a command under a real kernel over a modelled disk, once per scheduler and seed
    ///
    /// The command runs in the root directory of the file system on the modelled disk. It can read
    /// the host's programs, but cannot write the host's files. It needs no root. Virtual time
    /// passes only while programs wait for the disk or a timer; code takes no time. The same command
    /// with the same seed gives the same requests at the same nanosecond.
    Run(GuestRun),
    /// Run a command under two kernels, and show the first request that differs
    ///
    /// For a patch to a scheduler: build both kernels, and run the same command with the same
    /// seeds. Requests are compared by operation, position and size, from the start of the command
    /// on. The exit code is 0 if all are identical, 1 if they differ, and 2 if nothing was compared.
    /// In a script for `git bisect run`, replace 2 by 125.
    Diff(GuestDiff),
    /// Compare the simulation with a real kernel: the same workloads, device and schedulers
    ///
    /// Each workload runs in a guest and in the simulation, with the same device model, memory,
    /// largest request and one CPU whose time is free. Results of the workload and numbers of
    /// requests are compared, as means over the seeds. A row is right if the two sides differ by at
    /// most 5 %. It is wrong if the 95 % confidence interval of the difference lies entirely beyond
    /// 5 %, and otherwise undecided. The baseline predicts, for every scheduler, the kernel's figure
    /// under the first one. The exit code is 1 if a row is wrong.
    Check(GuestCheck),
    /// Make one run inside a guest
    #[command(hide = true)]
    Inside,
}

/// Arguments of `guest build`.
#[derive(Args, Debug)]
pub struct GuestBuild {
    /// Archive or directory of a kernel source [default: the newest /usr/src/linux-source-*.tar.*]
    #[arg(long, value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    pub source: Option<PathBuf>,
    /// Name of the kernel in the cache [default: its version, for example 6.12]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// File systems: ext4, xfs, btrfs, f2fs
    #[arg(
        long,
        value_name = "LIST",
        default_value = "ext4",
        value_delimiter = ','
    )]
    pub fs: Vec<String>,
    /// File with further lines of the kernel's configuration
    #[arg(long, value_name = "FRAGMENT", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Number of parallel compilers [default: number of cores]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<usize>,
}

/// Arguments of `guest list`.
#[derive(Args, Debug)]
pub struct GuestList {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// The part that `guest run` and `guest diff` have in common.
#[derive(Args, Debug)]
pub struct GuestSetup {
    /// Modelled device, from `seekwell devices`; may be repeated. The first device has the file
    /// system and is /dev/vda in the guest
    #[arg(
        long,
        short,
        value_name = "DEVICE",
        default_value = "hdd:hitachi-7k200"
    )]
    pub device: Vec<String>,
    /// Schedulers of the kernel, each with optional tunables (mq-deadline:fifo_batch=1)
    #[arg(
        long,
        short,
        value_name = "LIST",
        default_value = "none,mq-deadline,kyber,bfq",
        value_delimiter = ','
    )]
    pub schedulers: Vec<String>,
    /// File system of the first device: ext4, xfs, btrfs, f2fs, or none for the bare /dev/vda
    #[arg(long, value_name = "FS", default_value = "ext4")]
    pub fs: String,
    /// Mount options of the file system
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        hide_default_value = true
    )]
    pub mount_options: String,
    /// Memory of the guest, with K, M or G
    #[arg(long, value_name = "BYTES", default_value = "512M", value_parser = bytes)]
    pub memory: u64,
    /// Seed of the first run; it determines all random numbers of the kernel and the device
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Number of runs per scheduler, with consecutive seeds
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub seeds: u32,
    /// Write VALUE to a file of the queue in sysfs (wbt_lat_usec=0, nr_requests=64,
    /// iosched/slice_idle=0), or to any file of the guest by its full path; may be repeated
    #[arg(long = "set", value_name = "FILE=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// Let the guest read this file or directory of the host, at the same path; may be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub bind: Vec<PathBuf>,
    /// End a run after this much virtual time, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600.0)]
    pub time_limit: f64,
    /// End a run after this much real time, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    pub wall_limit: f64,
    /// Number of runs at the same time [default: number of cores]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<usize>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Run this workload of `seekwell workloads` instead of a command; its own metric is compared
    #[arg(long, short, value_name = "WORKLOAD", conflicts_with = "command")]
    pub workload: Option<String>,
    /// The command and its arguments
    #[arg(
        last = true,
        required_unless_present = "workload",
        value_name = "COMMAND"
    )]
    pub command: Vec<String>,
}

/// Arguments of `guest run`.
#[derive(Args, Debug)]
pub struct GuestRun {
    /// Kernel, from `seekwell guest list` [default: the newest version]
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Store results, outputs and request logs in FOLDER, which must not exist. `seekwell report`,
    /// `recommend`, `export` and `diff` read it
    #[arg(long, short, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// The setup
    #[command(flatten)]
    pub setup: GuestSetup,
}

/// Arguments of `guest diff`.
#[derive(Args, Debug)]
pub struct GuestDiff {
    /// First kernel, from `seekwell guest list`
    #[arg(value_name = "KERNEL_A")]
    pub a: String,
    /// Second kernel
    #[arg(value_name = "KERNEL_B")]
    pub b: String,
    /// The setup
    #[command(flatten)]
    pub setup: GuestSetup,
}

/// Arguments of `guest check`.
#[derive(Args, Debug)]
pub struct GuestCheck {
    /// Kernel, from `seekwell guest list` [default: the newest version]
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Workloads, from `seekwell workloads`, with parameters; may be repeated
    #[arg(
        long,
        short,
        value_name = "WORKLOAD",
        default_values_t = WORKLOADS.map(str::to_owned)
    )]
    pub workload: Vec<String>,
    /// Modelled device, from `seekwell devices`
    #[arg(
        long,
        short,
        value_name = "DEVICE",
        default_value = "hdd:hitachi-7k200"
    )]
    pub device: String,
    /// Schedulers, each with optional tunables [default: none,mq-deadline,kyber,bfq]
    #[arg(long, short, value_name = "LIST")]
    pub schedulers: Option<String>,
    /// Memory of the guest and of the simulated machine, with K, M or G
    #[arg(long, value_name = "BYTES", default_value = "512M", value_parser = bytes)]
    pub memory: u64,
    /// Number of seeds
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub seeds: u32,
    /// Print all rows, including the counts that are right
    #[arg(long)]
    pub details: bool,
    /// Print a Markdown table
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// The default workloads of `guest check`. Left out: web and blogbench, whose tasks do nothing but
/// compute and read the cache, which takes no time in a guest; hdparm, seeker and mysql-scan, which
/// need a raw device or 13 GB; compile, which needs CPU time.
const WORKLOADS: [&str; 14] = [
    "fs-mark:files=100,size=16k",
    "fs-mark:files=50,size=64k",
    "sqlite:transactions=20",
    "sqlite:profile=wal,transactions=50",
    "pgbench:scale=1,clients=4,transactions=60",
    "innodb:size=128m,threads=4,seconds=5s,innodb_buffer_pool_size=16m",
    "tiobench:size=8m,threads=4,random=100",
    "fsync-latency:seconds=20s,bulk=64m",
    "interactive:seconds=10s",
    "streams:streams=4,size=256m,seconds=10s",
    "streams:streams=2,kind=write,size=128m,seconds=10s",
    "random-read:size=256m,tasks=4,depth=4,seconds=5s",
    "compilebench:trees=2,reads=1,sources=600,objects=200,dirs=40,think=0,sync=yes",
    "androbench-io:size=8m,write_size=8m",
];

fn setting(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|p| !p.0.is_empty());
    let (file, value) = pair.ok_or("write FILE=VALUE, for example wbt_lat_usec=0")?;
    Ok((file.to_owned(), value.to_owned()))
}
