//! Options that `compare`, `run` and `replay` share, and those of `compare`.

use super::Output;
use super::choices::{cgroup, devices, machine, workloads};
use super::lists::budget;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// What runs on what; shared by `compare` and `replay`.
#[derive(Args, Clone, Debug)]
pub struct Bench {
    /// Modelled device, from `seekwell devices`, with changes behind commas
    /// (hdd:hitachi-7k200,write_cache=no), or the path of a preset file; may be repeated
    /// [default: hdd:hitachi-7k200; compare: that and ssd:sata3-256-2011]
    #[arg(long, short, value_name = "DEVICE", long_help = devices())]
    pub device: Vec<String>,
    /// Schedulers by name, with version and tunables where wanted (cfq-2.6.18,
    /// deadline:fifo_batch=1:read_expire=50), or all, single-queue, blk-mq. NAME alone is the first
    /// version that `seekwell schedulers` lists; NAME-VERSION another (bfq is that of today,
    /// bfq-v7r8 that of 3.x kernels and phones); +LIST: the default's and these
    /// [default: noop,deadline,cfq,none,mq-deadline,kyber,bfq; compare: cfq,deadline,noop,bfq]
    #[arg(long, short, visible_alias = "scheduler", value_name = "LIST")]
    pub schedulers: Option<String>,
    /// The kernel: a release from 2.6.18 to 7.0 (6.8, 5.15.0-91-generic), or `here` for the running
    /// one. Versions of schedulers, limits of the queue and the machine follow from it; the nearest
    /// that is modelled stands for it, which is said [default: 6.12, or what the schedulers' versions
    /// say]
    #[arg(long, value_name = "RELEASE")]
    pub kernel: Option<String>,
    /// Set a tunable of every scheduler that has it, or of one (deadline.fifo_batch=1)
    #[arg(long, short, value_name = "[SCHEDULER.]NAME=VALUE")]
    pub tunable: Vec<String>,
    /// Ticks a second of the modelled kernel (CONFIG_HZ)
    #[arg(long, value_name = "HZ", default_value_t = 250, value_parser = clap::value_parser!(u32).range(24..=10_000))]
    pub hz: u32,
    /// Seed of every random stream: same seed, same bytes
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Run with so many seeds, from --seed on; 1 compares nothing but what one gave [default: 3 to
    /// 10, the more the shorter they are: see `seekwell help compare`]
    #[arg(long, visible_alias = "repeats", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub seeds: Option<u32>,
    /// queue/nr_requests [default: the layer's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=10_240))]
    pub nr_requests: Option<u32>,
    /// device/queue_depth [default: what the device takes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub depth: Option<u32>,
    /// queue/max_sectors_kb [default: the kernel's; the smallest of them where several kernels are
    /// compared]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(4..=32_767))]
    pub max_sectors_kb: Option<u32>,
    /// queue/nomerges: 0 merge, 1 simple merges only, 2 none
    #[arg(long, value_name = "0-2", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub nomerges: u8,
    /// Runs at a time; the result does not depend on it [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// Judge by this figure only, of the workloads that give it ("read p99", "bulk write", "reader read
    /// mean" of a job file's section); may be repeated [default: every figure that a user of the
    /// workload waits for]
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Keep every run in this folder (docs/results.md), which must be new, or one that the same words
    /// have begun: `seekwell results`, `export` and `diff` read it [default: nothing is kept; of an
    /// experiment file and with --host, results/NAME beside it]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub results: Option<PathBuf>,
    /// Run although the tables of the devices need more memory than this machine has left
    #[arg(long)]
    pub force_memory: bool,
}

/// A window of the runs' events; shared by `run`, `compare` and `replay`.
#[derive(Args, Clone, Debug, Default)]
pub struct EventArgs {
    /// Write what happened in every run to FILE, as JSON lines: each bio, request, reason, timer
    /// and move of a head, with what is inside at the beginning (docs/events.md). At most 250,000
    /// events a run
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub events: Option<PathBuf>,
    /// With --events: only this part, on the workload's own clock (10s,2s; 0,500ms) [default: the
    /// whole run]. With --report: what its replay shows [default: where it took longest]
    #[arg(long, value_name = "FROM,LENGTH", value_parser = crate::events::window)]
    pub window: Option<seekwell::Window>,
    /// Write a page to FILE, too, as `seekwell report` makes of results: one HTML file that needs no
    /// network
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
}

/// Arguments of `compare`.
#[derive(Args, Debug)]
pub struct Compare {
    /// Experiment file (TOML): devices, schedulers, workloads and machines, how often and how long
    #[arg(value_name = "FILE.toml", value_hint = ValueHint::FilePath, group = "experiment",
        conflicts_with_all = ["device", "schedulers", "kernel", "tunable", "hz", "seed", "seeds", "nr_requests",
            "depth", "max_sectors_kb", "nomerges", "metric", "workload", "machine", "cgroup", "plot", "series"])]
    pub file: Option<PathBuf>,
    /// For real, in this directory, with this kernel's schedulers set one after the other and put
    /// back: programs (pgbench, sqlite3, fs_mark, nginx; all: docs/host.md), scripts from `seekwell
    /// workloads`, fio job files, any command line (cmd:make -j4). Without root under what is in
    /// force
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, group = "experiment",
        conflicts_with_all = ["device", "kernel", "hz", "nr_requests", "depth", "max_sectors_kb", "nomerges",
            "threads", "machine", "cgroup", "plot", "series", "events"])]
    pub host: Option<PathBuf>,
    /// With --host, or a file with [host]: do not ask; the name of the device that is meant
    #[arg(long, value_name = "DEVICE", requires = "experiment")]
    pub confirm: Option<String>,
    /// With --host: run the scripts in simulation, too, on this modelled device (hdd:hitachi-7k200,
    /// or a preset that `seekwell calibrate` wrote), and say where both agree
    #[arg(long, value_name = "DEVICE", requires = "experiment")]
    pub with_sim: Option<String>,
    /// With a file or --host: print what would run, how long that takes and what it can see, and stop
    #[arg(long, requires = "experiment")]
    pub dry_run: bool,
    /// With a file or --host: begin no more blocks after so much time (90s, 10m), whatever the file says
    #[arg(long, value_name = "TIME", requires = "experiment", value_parser = budget)]
    pub budget: Option<f64>,
    /// What runs on what
    #[command(flatten)]
    pub bench: Bench,
    /// Workload, from `seekwell workloads`, with parameters behind a colon
    /// (fs-mark:files=100,workers=4), or a fio job file; may be repeated. Names alone may stand in
    /// one list (hdparm,seeker)
    #[arg(long, short, visible_alias = "workloads", value_name = "WORKLOAD", long_help = workloads())]
    pub workload: Vec<String>,
    /// A workload that runs beside the measured one on the same machine, begun and ended with it
    /// (streams:kind=write,seconds=60s, or a fio job file); loop:WORKLOAD begins it again whenever
    /// it ends; may be repeated
    #[arg(long, value_name = "WORKLOAD")]
    pub beside: Vec<String>,
    /// The modelled machine: a name from `seekwell machines`, or words that say what it is, or both
    /// (laptop,memory=8G,cpu=0.6,data=writeback,limit=30); all words: --help
    #[arg(long, value_name = "LIST", default_value = "", long_help = machine())]
    pub machine: String,
    /// A cgroup, the tasks in it and its limits (bulk:tasks=writer:wbps=2M:riops=100); may be
    /// repeated; all settings: --help
    #[arg(long, value_name = "NAME:SETTING=VALUE...", long_help = cgroup())]
    pub cgroup: Vec<String>,
    /// All tables: rates, requests, latencies, shares, operations
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Draw the comparison to FILE as SVG, too
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// What happened, in full
    #[command(flatten)]
    pub events: EventArgs,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// With --json: every second of every run, too
    #[arg(long, requires = "json")]
    pub series: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}
