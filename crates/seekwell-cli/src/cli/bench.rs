//! Options that `compare`, `run` and `replay` share, and those of `compare`.

use super::choices::{cgroup, compared, devices, machine, schedulers};
use super::lists::budget;
use super::{MODELLED, Output, REAL, RESULTS};
use clap::{Args, ValueEnum, ValueHint};
use seekwell_lab::usual;
use std::path::PathBuf;

/// What runs on what; shared by `compare`, `run`, `replay` and `recommend`.
#[derive(Args, Clone, Debug)]
pub struct Bench {
    /// Modelled device, from `seekwell devices`, with changes behind commas
    /// (hdd:hitachi-7k200,write_cache=no), or the path of a preset file; may be repeated
    #[arg(long, short, value_name = "DEVICE", help = devices(false), long_help = devices(true))]
    pub device: Vec<String>,
    /// Schedulers by name, with version and tunables where wanted (cfq-2.6.18,
    /// deadline:fifo_batch=1:read_expire=50), or all, single-queue, blk-mq; +LIST: the default's and
    /// these
    #[arg(long, short, alias = "scheduler", value_name = "LIST", help = schedulers(false),
        long_help = schedulers(true))]
    pub schedulers: Option<String>,
    /// Set a tunable of all that have it, or of one
    ///
    /// Of one scheduler: deadline.fifo_batch=1. May be repeated.
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub tunable: Vec<String>,
    /// Kernel release, 2.6.18 to 7.0, or `here`
    ///
    /// 6.8, 5.15.0-91-generic, or `here` for the running kernel. Versions of schedulers, limits
    /// of the queue and the machine follow from it. The nearest kernel that is modelled stands for it, and
    /// the answer says which [default: 6.12, or what the schedulers' versions say].
    #[arg(long, value_name = "RELEASE")]
    pub kernel: Option<String>,
    /// Of which time the defaults are: [today] or 2012
    ///
    /// Devices, schedulers and workloads where none are named. 2012: cfq, deadline, noop and the bfq of
    /// today on a laptop disk and an SSD of then.
    #[arg(
        long,
        value_name = "ERA",
        default_value = "today",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub era: Era,
    /// Run with so many seeds [default: 3 to 10]
    ///
    /// From --seed on; 1 compares nothing but what one gave. By default the more the shorter they are:
    /// see `seekwell help compare`. --repeats means the same.
    #[arg(long, alias = "repeats", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub seeds: Option<u32>,
    /// Seed of every random stream: same seed, same bytes
    #[arg(long, value_name = "SEED", default_value_t = 1, hide_short_help = true)]
    pub seed: u64,
    /// Ticks a second of the modelled kernel (CONFIG_HZ)
    #[arg(long, value_name = "HZ", default_value_t = 250, value_parser = clap::value_parser!(u32).range(24..=10_000),
        help_heading = MODELLED, hide_short_help = true)]
    pub hz: u32,
    /// queue/nr_requests [default: the layer's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=10_240),
        help_heading = MODELLED, hide_short_help = true)]
    pub nr_requests: Option<u32>,
    /// device/queue_depth [default: what the device takes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536),
        help_heading = MODELLED, hide_short_help = true)]
    pub depth: Option<u32>,
    /// queue/max_sectors_kb [default: the kernel's]
    ///
    /// The smallest of them where several kernels are compared.
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(4..=32_767),
        help_heading = MODELLED, hide_short_help = true)]
    pub max_sectors_kb: Option<u32>,
    /// queue/nomerges: 0 merge, 1 simple merges only, 2 none
    #[arg(long, value_name = "0-2", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2),
        help_heading = MODELLED, hide_short_help = true)]
    pub nomerges: u8,
    /// Runs at a time [default: the number of cores]
    ///
    /// The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), hide_short_help = true)]
    pub threads: Option<u32>,
    /// Judge by this figure only; may be repeated
    ///
    /// Of the workloads that give it: "read p99", "bulk write", "reader read mean" of a job file's section
    /// [default: every figure that a user of the workload waits for].
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Run although tables need more memory than is left
    ///
    /// The tables of the devices, and the memory of this machine.
    #[arg(long, hide_short_help = true)]
    pub force_memory: bool,
    /// Keep every run in this folder
    ///
    /// It must be new, or one that the same words have begun (docs/results.md): `seekwell results`,
    /// `export` and `diff` read it [default: nothing is kept; of an experiment file and with --host,
    /// results/NAME beside it].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = RESULTS)]
    pub results: Option<PathBuf>,
}

/// Of which time the defaults are.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Era {
    /// Kernels since 5.0: an NVMe drive, a SATA SSD and a hard disk.
    Today,
    /// Single-queue kernels: a laptop disk and an SSD of 2011.
    #[value(name = "2012")]
    In2012,
}

impl Era {
    /// What is run then.
    pub const fn usual(self) -> &'static usual::Usual {
        match self {
            Era::Today => &usual::TODAY,
            Era::In2012 => &usual::IN_2012,
        }
    }
}

/// A window of the runs' events; shared by `run`, `compare` and `replay`.
#[derive(Args, Clone, Debug, Default)]
pub struct EventArgs {
    /// Write a page to FILE: one HTML file
    ///
    /// As `seekwell report` makes of results; it needs no network.
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath, help_heading = RESULTS)]
    pub report: Option<PathBuf>,
    /// Write each event of every run to FILE
    ///
    /// As JSON lines: each bio, request, reason, timer and move of a head, with what is inside at the beginning
    /// (docs/events.md). At most 250,000 events a run.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RESULTS,
        hide_short_help = true)]
    pub events: Option<PathBuf>,
    /// Which part --events and --report show (10s,2s)
    ///
    /// FROM,LENGTH on the workload's own clock (10s,2s; 0,500ms) [default of --events: the whole run; of
    /// --report: where it took longest].
    #[arg(long, value_name = "FROM,LENGTH", value_parser = crate::events::window, help_heading = RESULTS,
        hide_short_help = true)]
    pub window: Option<seekwell::Window>,
}

const EXAMPLES: &str = "\
Examples:
  seekwell compare -w fs-mark:files=100 -d hdd:exos-x18 -s mq-deadline,bfq
  seekwell compare lab.toml
  sudo seekwell compare --host /srv/scratch -w pgbench
All options: seekwell compare --help";

/// Arguments of `compare`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Compare {
    /// Experiment file, which `seekwell new` begins
    ///
    /// TOML: devices, schedulers, workloads and machines, how often and how long (docs/experiments.md).
    #[arg(value_name = "FILE.toml", value_hint = ValueHint::FilePath, group = "experiment",
        conflicts_with_all = ["device", "schedulers", "kernel", "era", "tunable", "hz", "seed", "seeds", "nr_requests",
            "depth", "max_sectors_kb", "nomerges", "metric", "workload", "machine", "cgroup", "plot", "series"])]
    pub file: Option<PathBuf>,
    /// Workload, or a fio job file; may be repeated
    #[arg(long, short, alias = "workloads", value_name = "WORK", long_help = compared())]
    pub workload: Vec<String>,
    /// What runs on what
    #[command(flatten)]
    pub bench: Bench,
    /// All tables, not only the answer on a screen
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
    /// Machine; see `seekwell machines`
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true, long_help = machine(),
        help_heading = MODELLED)]
    pub machine: String,
    /// A workload that runs beside the measured one
    ///
    /// On the same machine, begun and ended with it (streams:kind=write,seconds=60s, or a fio job
    /// file); loop:WORKLOAD begins it again whenever it ends. May be repeated.
    #[arg(long, value_name = "WORK", help_heading = MODELLED)]
    pub beside: Vec<String>,
    /// A cgroup: bulk:tasks=writer:wbps=2M
    #[arg(long, value_name = "CGROUP", long_help = cgroup(), help_heading = MODELLED)]
    pub cgroup: Vec<String>,
    /// What happened, in full
    #[command(flatten)]
    pub events: EventArgs,
    /// Draw the comparison to FILE
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath, help_heading = RESULTS,
        hide_short_help = true)]
    pub plot: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, help_heading = RESULTS)]
    pub json: bool,
    /// With --json: every second of every run, too
    #[arg(long, requires = "json", help_heading = RESULTS, hide_short_help = true)]
    pub series: bool,
    /// With this kernel's schedulers, on the disk of DIR
    ///
    /// They are set one after the other and put back. Programs (pgbench, sqlite3, fs_mark, nginx; all:
    /// docs/host.md), scripts from `seekwell workloads`, fio job files, any command line
    /// (cmd:make -j4) run in DIR. Without root under what is in force.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, group = "experiment", help_heading = REAL,
        conflicts_with_all = ["device", "kernel", "era", "hz", "nr_requests", "depth", "max_sectors_kb", "nomerges",
            "threads", "machine", "cgroup", "plot", "series", "events"])]
    pub host: Option<PathBuf>,
    /// Do not ask; the name of the device that is meant
    ///
    /// With --host, or a file with [host].
    #[arg(long, value_name = "DEVICE", requires = "experiment", help_heading = REAL)]
    pub confirm: Option<String>,
    /// Simulate the same scripts on this modelled device, too
    ///
    /// With --host: on hdd:hitachi-7k200, or a preset that `seekwell calibrate` wrote, and say where both
    /// agree.
    #[arg(long, value_name = "DEVICE", requires = "experiment", help_heading = REAL, hide_short_help = true)]
    pub with_sim: Option<String>,
    /// Print what would run, how long it takes, and stop
    ///
    /// With a file or --host; also what it can see.
    #[arg(long, requires = "experiment", help_heading = REAL)]
    pub dry_run: bool,
    /// Begin no more blocks after so much time (90s, 10m)
    ///
    /// With a file or --host, whatever the file says.
    #[arg(long, value_name = "TIME", requires = "experiment", value_parser = budget, help_heading = REAL,
        hide_short_help = true)]
    pub budget: Option<f64>,
}
