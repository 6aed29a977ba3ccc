//! Options that `compare`, `run` and `replay` share, and the options of `compare`.

use super::choices::{cgroup, compared, devices, machine, schedulers};
use super::lists::budget;
use super::{MODELLED, Output, REAL, RESULTS};
use clap::{Args, ValueEnum, ValueHint};
use seekwell_lab::usual;
use std::path::PathBuf;

/// Devices, schedulers and repeats; shared by `compare`, `run`, `replay` and `recommend`.
#[derive(Args, Clone, Debug)]
pub struct Bench {
    /// Modelled device, from `seekwell devices`, with changes after commas
    /// (hdd:hitachi-7k200,write_cache=no), or the path of a preset file; may be repeated
    #[arg(long, short, value_name = "DEVICE", help = devices(false), long_help = devices(true))]
    pub device: Vec<String>,
    /// Schedulers by name, with optional version and tunables (cfq-2.6.18,
    /// deadline:fifo_batch=1:read_expire=50), or all, single-queue, blk-mq; +LIST adds to the
    /// default list
    #[arg(long, short, alias = "scheduler", value_name = "LIST", help = schedulers(false),
        long_help = schedulers(true))]
    pub schedulers: Option<String>,
    /// Set a tunable of all schedulers that have it
    ///
    /// With the name of a scheduler, it is set for that scheduler only (deadline.fifo_batch=1). May
    /// be repeated.
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub tunable: Vec<String>,
    /// Kernel release, 2.6.18 to 7.0, or `here`
    ///
    /// A release (6.8, 5.15.0-91-generic), or `here` for the running kernel. It determines the
    /// versions of schedulers, the limits of the queue and the machine. The nearest modelled kernel
    /// is used, and its release is printed [default: 6.12, or the kernel of the schedulers'
    /// versions].
    #[arg(long, value_name = "RELEASE")]
    pub kernel: Option<String>,
    /// Where the runs take place: [sim] or kernel
    ///
    /// sim simulates kernel and device. kernel runs a real Linux kernel on virtual time over the
    /// modelled device (docs/guest.md). Build it first: `seekwell guest build`. --kernel then names
    /// a kernel of `seekwell guest list`. It takes longer, and CPU time is free.
    #[arg(
        long,
        value_name = "WHERE",
        default_value = "sim",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub substrate: Substrate,
    /// Era of the defaults: [today] or 2012
    ///
    /// The era selects the devices, schedulers and workloads that you do not name. For 2012, these
    /// are cfq, deadline, noop and today's bfq on a laptop disk and an SSD of that time.
    #[arg(
        long,
        value_name = "ERA",
        default_value = "today",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub era: Era,
    /// Number of seeds [default: 3 to 10]
    ///
    /// The first seed is --seed. With N = 1, single runs are compared. The default is larger for
    /// shorter runs; see `seekwell help compare`. --repeats means the same.
    #[arg(long, alias = "repeats", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub seeds: Option<u32>,
    /// Seed of all random numbers: the same seed gives the same bytes
    #[arg(long, value_name = "SEED", default_value_t = 1, hide_short_help = true)]
    pub seed: u64,
    /// Timer ticks per second of the modelled kernel (CONFIG_HZ)
    #[arg(long, value_name = "HZ", default_value_t = 250, value_parser = clap::value_parser!(u32).range(24..=10_000),
        help_heading = MODELLED, hide_short_help = true)]
    pub hz: u32,
    /// Number of requests of a queue (queue/nr_requests) [default: the block layer's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=10_240),
        help_heading = MODELLED, hide_short_help = true)]
    pub nr_requests: Option<u32>,
    /// Number of requests that the device accepts at once (device/queue_depth) [default: the
    /// device's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536),
        help_heading = MODELLED, hide_short_help = true)]
    pub depth: Option<u32>,
    /// Largest request in KiB (queue/max_sectors_kb) [default: the kernel's]
    ///
    /// If several kernels are compared, the default is the smallest of their values.
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(4..=32_767),
        help_heading = MODELLED, hide_short_help = true)]
    pub max_sectors_kb: Option<u32>,
    /// Merging of requests (queue/nomerges): 0 all merges, 1 simple merges only, 2 no merges
    #[arg(long, value_name = "0-2", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2),
        help_heading = MODELLED, hide_short_help = true)]
    pub nomerges: u8,
    /// Number of parallel runs [default: the number of cores]
    ///
    /// The results do not depend on this number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), hide_short_help = true)]
    pub threads: Option<u32>,
    /// Judge by this metric only; may be repeated
    ///
    /// METRIC is, for example, "read p99" or "bulk write", or "reader read mean" for the section
    /// `reader` of a job file. It applies to workloads that report it [default: every metric that a
    /// user of the workload waits for].
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Run even if the device tables exceed the available memory
    ///
    /// Large device models need large tables. Without this option, such runs are refused.
    #[arg(long, hide_short_help = true)]
    pub force_memory: bool,
    /// Store all runs in this folder
    ///
    /// The folder must be new, or come from the same command, which is then resumed
    /// (docs/results.md). `seekwell results`, `export` and `diff` read the folder [default: no
    /// folder; for an experiment file and with --host, results/NAME].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = RESULTS)]
    pub results: Option<PathBuf>,
}

/// Where the runs of a command take place.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Substrate {
    /// In the simulation.
    Sim,
    /// In a real kernel on virtual time.
    Kernel,
}

/// The era that the default devices, schedulers and workloads come from.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Era {
    /// Kernels since 5.0: an NVMe drive, a SATA SSD and a hard disk.
    Today,
    /// Single-queue kernels: a laptop disk and an SSD of 2011.
    #[value(name = "2012")]
    In2012,
}

impl Era {
    /// Returns the default devices, schedulers and workloads of the era.
    pub const fn usual(self) -> &'static usual::Usual {
        match self {
            Era::Today => &usual::TODAY,
            Era::In2012 => &usual::IN_2012,
        }
    }
}

/// Options for the HTML page and the events of runs; shared by `run`, `compare` and `replay`.
#[derive(Args, Clone, Debug, Default)]
pub struct EventArgs {
    /// Write one HTML page to FILE
    ///
    /// The page is like that of `seekwell report` and needs no network.
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath, help_heading = RESULTS)]
    pub report: Option<PathBuf>,
    /// Write the events of every run to FILE
    ///
    /// The format is JSON lines (docs/events.md). The file starts with the state at the start.
    /// Bios, requests, reasons, timers and head movements follow. At most 250,000 events per run
    /// are written.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RESULTS,
        hide_short_help = true)]
    pub events: Option<PathBuf>,
    /// Time window for --events and --report (10s,2s)
    ///
    /// FROM and LENGTH are times on the workload's clock (10s,2s; 0,500ms) [default of --events:
    /// the whole run; of --report: around the longest operation].
    #[arg(long, value_name = "FROM,LENGTH", value_parser = crate::windows::window, help_heading = RESULTS,
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
    /// Experiment file; `seekwell new` writes an example
    ///
    /// The file (TOML) contains devices, schedulers, workloads, machines, repeats and budget
    /// (docs/experiments.md).
    #[arg(value_name = "FILE.toml", value_hint = ValueHint::FilePath, group = "experiment",
        conflicts_with_all = ["device", "schedulers", "era", "tunable", "hz", "seed", "seeds", "nr_requests",
            "depth", "max_sectors_kb", "nomerges", "metric", "workload", "machine", "cgroup", "plot", "series"])]
    pub file: Option<PathBuf>,
    /// Workload or fio job file; may be repeated
    #[arg(long, short, alias = "workloads", value_name = "WORK", long_help = compared())]
    pub workload: Vec<String>,
    /// Devices, schedulers and repeats
    #[command(flatten)]
    pub bench: Bench,
    /// Print all tables, not only the summary
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
    /// Modelled machine; see `seekwell machines`
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true, long_help = machine(),
        help_heading = MODELLED)]
    pub machine: String,
    /// Workload to run alongside; may be repeated
    ///
    /// The workload runs on the same machine, and starts and ends with the measured workload
    /// (streams:kind=write,seconds=60s, or a fio job file). loop:WORKLOAD repeats it.
    #[arg(long, value_name = "WORK", help_heading = MODELLED)]
    pub beside: Vec<String>,
    /// Cgroup with limits: bulk:tasks=writer:wbps=2M
    #[arg(long, value_name = "CGROUP", long_help = cgroup(), help_heading = MODELLED)]
    pub cgroup: Vec<String>,
    /// Pages and event files
    #[command(flatten)]
    pub events: EventArgs,
    /// Draw the comparison to FILE as SVG
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath, help_heading = RESULTS,
        hide_short_help = true)]
    pub plot: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, help_heading = RESULTS)]
    pub json: bool,
    /// With --json: add every second of every run
    #[arg(long, requires = "json", help_heading = RESULTS, hide_short_help = true)]
    pub series: bool,
    /// Compare the real schedulers on the disk of DIR
    ///
    /// The schedulers of the running kernel are set one after the other. At the end, the old
    /// settings are restored. The workloads run in DIR. They are programs (pgbench, sqlite3,
    /// fs_mark, nginx; full list: docs/host.md), scripts from `seekwell workloads`, fio job files,
    /// and any command line (cmd:make -j4). Without root, no scheduler is set, and the current
    /// scheduler is measured.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, group = "experiment", help_heading = REAL,
        conflicts_with_all = ["device", "kernel", "era", "hz", "nr_requests", "depth", "max_sectors_kb", "nomerges",
            "threads", "machine", "cgroup", "plot", "series", "events"])]
    pub host: Option<PathBuf>,
    /// Confirm the device by name, without a question
    ///
    /// It needs --host, or a file with [host].
    #[arg(long, value_name = "DEVICE", requires = "experiment", help_heading = REAL)]
    pub confirm: Option<String>,
    /// Also simulate the scripts on this modelled device
    ///
    /// It needs --host, or a file with [host]. The same scripts run in simulation on DEVICE: a name
    /// (hdd:hitachi-7k200), or a preset that `seekwell calibrate` wrote. The report compares the
    /// real and the simulated differences between schedulers.
    #[arg(long, value_name = "DEVICE", requires = "experiment", help_heading = REAL, hide_short_help = true)]
    pub with_sim: Option<String>,
    /// Print the plan and its estimated time, then stop
    ///
    /// It needs a file or --host. The plan also shows the smallest difference that the runs can
    /// detect.
    #[arg(long, requires = "experiment", help_heading = REAL)]
    pub dry_run: bool,
    /// Start no new block after TIME (90s, 10m)
    ///
    /// It needs a file or --host. It overrides the budget in the file.
    #[arg(long, value_name = "TIME", requires = "experiment", value_parser = budget, help_heading = REAL,
        hide_short_help = true)]
    pub budget: Option<f64>,
}
