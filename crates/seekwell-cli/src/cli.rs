//! Command-line arguments. Their doc comments are the help texts.

use crate::fail::EXIT_CODES;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

mod bench;
mod choices;
mod color;
mod defaults;
mod foreign;
mod guest;
mod host;
mod lists;
mod live;
mod predict;
mod report;
mod reproduce;
mod results;
mod traces;
mod trial;

pub use bench::*;
use choices::{cgroup, machine, modes, workloads};
pub use color::Color;
pub use defaults::*;
pub use foreign::*;
pub use guest::*;
pub use host::*;
pub use lists::*;
pub use live::*;
pub use predict::*;
pub use report::*;
pub use reproduce::*;
pub use results::*;
pub use traces::*;
pub use trial::*;

/// Compares Linux I/O schedulers from 2002 to today with modelled disks, programs, and traces.
#[derive(Parser, Debug)]
#[command(name = "seekwell", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    /// Print results and errors only, no notes and no progress
    #[arg(long, short, global = true, help_heading = "General")]
    pub quiet: bool,
    /// Use colours: auto, always or never
    ///
    /// auto: on a terminal, unless NO_COLOR is set.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        help_heading = "General"
    )]
    pub color: Color,
    /// The command
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Compare schedulers on modelled disks, in seconds, without root
    ///
    /// Without arguments, it compares `none`, mq-deadline, kyber and bfq on an NVMe drive, a SATA
    /// SSD and a hard disk with three workloads: a slow reader next to a bulk writer, a program
    /// that starts while a file is copied, and files created with fsync. Page cache, file system,
    /// block layer and disk are modelled. --era 2012 selects schedulers and drives of that time.
    /// --workload selects workloads from `seekwell workloads` and fio job files. With hdparm or
    /// seeker, a single process reads, so no scheduler should make a difference.
    ///
    /// With FILE.toml, it prints the plan of that experiment and then runs it block by block. It
    /// stops when every confidence interval is narrow enough, at the end of the budget, or on
    /// Ctrl-C. The results are stored in a folder. The same command resumes an interrupted run.
    ///
    /// All schedulers run with the same seeds and are compared seed by seed. A seed determines
    /// where files lie and which data are read when. The default is 10 seeds, or fewer (at least 3)
    /// if the runs would exceed about a million operations and I/Os. If nothing is random, 3 seeds
    /// are enough and the result is exact. The same command always prints the same output.
    ///
    /// The summary fits one screen. It shows which scheduler is ahead in each workload, how far the
    /// others are behind, and the uncertainty. --details adds all tables. --json prints the
    /// verdicts and all measurements of the first seed.
    Compare(Compare),
    /// Write a commented experiment file that runs unchanged
    ///
    /// The file (TOML) names devices, schedulers, workloads and machines, the number of repeats,
    /// and how results are judged. `seekwell compare FILE` runs it. docs/experiments.md describes
    /// all settings. --schema prints a JSON Schema for editors instead.
    ///
    /// With `scheduler NAME`, `device NAME`, `workload NAME` or `format NAME`, it adds a template
    /// to the source tree: a file that works, and its line in the registry. See
    /// docs/add-a-scheduler.md, docs/add-a-device.md, docs/add-a-workload.md and
    /// docs/add-a-trace-format.md.
    New(New),
    /// Compare one scheduler with all others of its layer
    ///
    /// All schedulers of the layer (single-queue or blk-mq) run with the same seeds on one device
    /// of each class. They run several workloads and your own traces (--trace). The result shows
    /// throughput, p99 latency and fairness relative to the others, with 95 % confidence intervals.
    /// The Pareto front is marked: schedulers that no other scheduler beats in all three. The
    /// result lists the cells where NAME is furthest behind. It takes about a minute.
    Arena(Arena),
    /// Find the best tunables for a device and workloads (Python)
    ///
    /// The optimiser Optuna searches for values of the tunables on some seeds and workloads. These
    /// values are then tested on other seeds and workloads. The command prints the gain over the
    /// defaults with its confidence interval, or reports that the defaults are as good. --results
    /// writes a folder for `seekwell apply`. The command is part of the Python package
    /// seekwell-lab, which must be installed. `seekwell tune --help` shows the help of that
    /// package.
    #[command(disable_help_flag = true)]
    Tune(Handed),
    /// Run a large experiment on a Ray cluster (Python)
    ///
    /// Use this command for experiments with thousands of cells. With any number of workers, the
    /// results are the same as those of `seekwell compare FILE.toml`. If a worker process stops,
    /// its run is repeated. If the main process of the command stops, the same command resumes the
    /// experiment. The command is part of the Python package seekwell-lab, which must be installed.
    /// `seekwell sweep --help` shows the help of that package.
    #[command(disable_help_flag = true)]
    Sweep(Handed),
    /// Run one workload under several schedulers, or on real files
    ///
    /// WORKLOAD is a name from `seekwell workloads`, or the path of a fio job file (NAME.fio).
    /// Parameters follow a colon (fs-mark:files=100,workers=4) or are set by --param.
    ///
    /// Without --dir, the workload runs in simulation: page cache, file system, block layer and
    /// disk are modelled, under the schedulers that you name. With --dir, it runs on real files in
    /// that directory, under the scheduler that is set there. It changes no settings, and writes
    /// and removes only files that it created itself. sqlite then uses the real library.
    Run(Run),
    /// Replay a trace on a modelled disk under several schedulers
    Replay(Replay),
    /// Show well-known effects of schedulers, with numbers
    Demo(DemoArgs),
    /// Show each decision of a scheduler, and the reason for it
    ///
    /// FILE contains cases as JSON lines (one object per line), or bios as CSV. It may be
    /// compressed with zstd or gzip; `-` is standard input. The CSV has a header with the column
    /// names of `seekwell formats csv`, or no header and the columns `t_us,id,pid,op,sector,n`.
    /// Options set the values that a CSV does not contain. Operations: R read, W asynchronous
    /// write, S synchronous write, N synchronous write without idling (fsync), P metadata read with
    /// priority, M metadata read, A read-ahead, F flush, D discard, Z write zeroes.
    ///
    /// For a single case (the only one in the file, or --case), it prints every step with the
    /// scheduler's reason and state. If the case contains a recorded dispatch order, it also prints
    /// how many dispatches of the scheduler agree with that order. For comparison, it prints the
    /// agreement of two other schedulers: a FIFO, and one with different rules.
    Explain(Explain),
    /// Serve a modelled disk to real programs in real time
    ///
    /// The command mounts a FUSE file system with one file, `disk`, at DIR. Each request completes
    /// at the time that the device model computes. The data are real, and are stored in memory or
    /// in a sparse file. Programs use the file with direct I/O, or through a loop device (losetup
    /// --find --show --direct-io=on DIR/disk). The kernel treats the loop device as a slow disk. At
    /// the end, a report shows how late completions were and whether the run is valid.
    ///
    /// Ctrl-C, SIGTERM, SIGHUP and umount stop it cleanly, with exit code 0. After kill -9, the
    /// mount stays and does not respond. The next start at DIR removes it, and so does `sudo umount
    /// --lazy DIR`. With --backing, a flush completes when the model's time has passed and the
    /// file's data are on the host's disk.
    Serve(Serve),
    /// Run programs under a real Linux kernel on virtual time, over a modelled disk
    ///
    /// The kernel is User Mode Linux, an ordinary process that needs no root. `guest build` builds
    /// it from the distribution's kernel source. See docs/guest.md.
    Guest(Guest),
    /// Compare the simulation with the running kernel (root)
    ///
    /// Each workload runs twice. The real run uses ext4 on a loop device over `seekwell serve` and
    /// records a block trace. The simulated run uses the same device model, cores, memory and
    /// scheduler. Allowed differences of requests and bytes are 5 % for sync data, the journal and
    /// flushes, and 20 % for metadata and written-back data. Throughput may differ by 25 %. A null
    /// model without cache, journal and disk mechanics is shown as a baseline.
    ///
    /// Small counts may differ by 2 requests or 16 KiB instead (`5 % or 2`), because a timer can
    /// move one journal commit past the end of the run. If the machine was busy, or the modelled
    /// disk completed requests too late, results that depend on time are not judged, and the exit
    /// code is 5.
    ///
    /// It needs root. It removes everything that it creates, also after a signal.
    CheckWorlds(CheckWorlds),
    /// Compare our schedulers with those of the running kernel (root)
    ///
    /// Two test devices are created: a slow disk and a loop device on it. Processes of known I/O
    /// priority classes submit batches of requests to the kernel's mq-deadline, kyber and bfq.
    /// Tracepoints show in which order the kernel issues the requests. Seekwell's schedulers replay
    /// the same insertions and completions. Two null models (a FIFO and one-way sweeps) replay them
    /// too. Copies of the schedulers with a planted mistake also replay them, and must be detected.
    /// Each batch is submitted twice, to show how often the kernel repeats its decisions. The exit
    /// code is 1 if Seekwell's decisions differ from decisions that the kernel repeated.
    ///
    /// It needs root. It removes everything that it creates, also after a signal.
    VerifyKernel(VerifyKernel),
    /// Reproduce published comparisons of schedulers in simulation
    ///
    /// Each of five publications is reproduced with the machine, drive and kernel of its time. The
    /// result shows how close the simulated figures are to the published ones. It shows which
    /// published differences are significant after correction for multiple comparisons. It also
    /// shows how many of them the simulation and null models predict, and whether the scheduler
    /// caused each difference, with the evidence. No model was tuned to a difference between
    /// schedulers.
    ///
    /// The results are stored in results/NAME. The same command resumes an interrupted
    /// reproduction, and repeats no run. The full form of all publications takes a quarter of an
    /// hour of CPU time per repeat, with three repeats. --quick takes about a minute.
    Reproduce(Reproduce),
    /// List results folders: complete, resumable or broken
    Results(Results),
    /// Export results as CSV, JSON, Markdown or composite.xml
    ///
    /// The output is for spreadsheets, pull requests and the Phoronix Test Suite. pandas, polars
    /// and DuckDB can read the folder's Parquet files directly.
    Export(Export),
    /// List the schedulers, or describe one
    Schedulers(Schedulers),
    /// List the workloads, or describe one: metric, parameters, source
    Workloads(Workloads),
    /// List the machines for --machine, or describe one
    Machines(Machines),
    /// List the modelled devices, or describe one
    Devices(Devices),
    /// Fit a device model to a real disk or file by timing reads
    ///
    /// The command detects whether PATH is a hard disk or flash, and measures the parameters of the
    /// model. It writes a preset for `--device FILE` and `seekwell devices FILE`. Each parameter
    /// has its method, 95 % confidence interval and number of samples, or a mark if it could not be
    /// measured. The command only reads, unless you give --allow-write. The device should be idle.
    /// After Ctrl-C, the results so far are written.
    Calibrate(Calibrate),
    /// Report on results or a trace: HTML page, Markdown or terminal
    ///
    /// For a results folder, or a file that `seekwell import` reads, the command writes one HTML
    /// page that needs no network. The page shows the result for each device, every test with its
    /// intervals and runs, and the method. A map has one row per test and one column per scheduler.
    /// A sweep over the values of a parameter is drawn as lines. The page's address contains the
    /// selected view, so that you can send the view as a link.
    ///
    /// For a trace (any format of `seekwell formats`), the command shows the statistics of btt and
    /// iowatcher: sizes, distances, merges, processes, the times from Q (queued) to C (completed),
    /// and sectors and load over time. The values equal those of btt, to the digit.
    Report(Report),
    /// Recommend a scheduler from results or from a simulation
    ///
    /// For each device, it names the scheduler to set, with the evidence and the command that sets
    /// it. It shows the scheduler's cost on its worst test, and when another scheduler would be
    /// better. Or it reports that the scheduler does not matter, or that more runs are needed.
    ///
    /// A simulation runs each scheduler with writeback throttling off and on. The result says
    /// whether the scheduler or the throttling makes the difference.
    Recommend(Recommend),
    /// Show which scheduler each distribution sets, with the sources
    ///
    /// The table has one row per distribution and one column per class of device. With --evidence,
    /// simulated runs show how far each choice is from the recommendation. See docs/defaults.md.
    Defaults(Defaults),
    /// List the trace formats, or describe one
    Formats(Formats),
    /// Convert a trace, or a part of it, to another format
    ///
    /// `seekwell formats` lists the formats that can be written. --to selects the format; without
    /// it, the name of OUT does (trace.iolog, trace.csv.zst). A note lists information that the new
    /// format cannot hold. Traces may have any length, because they are not held in memory.
    Convert(Convert),
    /// Show this machine's block devices, or the layers under a path
    ///
    /// Without PATH, it prints a table of the devices as the kernel describes them: schedulers (the
    /// current one first), queue depth, write cache, read-ahead, and users of the device.
    ///
    /// With PATH, it describes every layer from the file system down, for example encryption, LVM,
    /// RAID and disks. It marks the layers where a scheduler can be set. The command changes
    /// nothing and needs no root.
    Host(Host),
    /// Check what works on this machine, and how to get the rest
    ///
    /// Simulations have no requirements. Tests on real disks and some displays need root, tracefs,
    /// BPF, io_uring, FUSE, loop devices or other programs. The command checks each of these and
    /// prints the commands that provide the missing ones. It changes nothing and needs no root.
    Doctor(Doctor),
    /// Predict which scheduler suits the disk below a path, in seconds
    ///
    /// The disk, its queue, kernel, memory and file system are simulated with their real settings.
    /// With COMMAND, the requests of a command are recorded once (root) and simulated. Each
    /// prediction states the probability that it is right. --verify measures it (root). --record
    /// shows how good past predictions were. See docs/predict.md.
    Predict(Predict),
    /// Switch the scheduler periodically while the machine works, and decide (root)
    ///
    /// A guard ends harmful periods, and the settings are restored at the end. See docs/trial.md.
    Trial(Trial),
    /// Set a scheduler and tunables until reboot, or for one command
    ///
    /// The command prints which other settings changed, and the command that undoes the change. A
    /// switch resets tunables and nr_requests, and bfq disables writeback throttling.
    ///
    /// With --for COMMAND, it restores everything when the command ends, also after a failure and
    /// `kill -9`. It returns the exit code of the command and passes signals to it. If the guardian
    /// process is killed too, `seekwell switch --restore` restores the settings.
    Switch(Switch),
    /// Apply a scheduler, optionally at every boot, or undo it
    ///
    /// The command sets a scheduler on the device and reads the setting back. You name the
    /// scheduler, or give a results folder whose verdict names it. --persist keeps the scheduler
    /// for later boots. It writes a udev rule with the serial number of the disk, or a tuned
    /// profile (--persist=tuned). It can also print lines for NixOS (--persist=nixos), or a kernel
    /// parameter (--persist=boot; only kernels before 5.0 use elevator=). It shows the files first.
    /// --undo removes these files, restores replaced files, and restores the settings of this boot.
    Apply(Apply),
    /// Record a device's block I/O as a trace while a command runs
    ///
    /// It reads the kernel's block tracepoints with BPF or a separate tracefs instance, so other
    /// tracing is not affected. The name of the output file selects the format. A .ftrace file
    /// holds all events as the kernel prints them. blkparse text, blktrace binary (for blkparse and
    /// btt), CSV and fio iolog hold the bios with times, processes and names. The exit code is that
    /// of the command, and signals are passed to it. If the kernel lost events, this is reported
    /// and the exit code is 4. It needs root.
    Record(Record),
    /// Import results of other programs and test their differences
    ///
    /// The command reads composite.xml of the Phoronix Test Suite, exports and pages of
    /// OpenBenchmarking.org, and JSON of fio and hyperfine. It also reads output of pgbench and
    /// sysbench, logs of pgbench, and any CSV with columns scheduler, workload and value. Single
    /// runs are compared by Welch's test on the logarithms of their values. Published means are
    /// compared by Welch's test on means and standard errors. The tests are corrected for multiple
    /// comparisons (Holm). The order of runs is unknown, so drift cannot be excluded.
    Import(Import),
    /// Compare two results: kernels, program versions or days
    ///
    /// A and B are results folders, or files that `seekwell import` reads. Simulations are compared
    /// seed by seed, exactly. On a host, all figures change from session to session. Each scheduler
    /// is therefore judged by its change relative to a control in both results, with an allowance
    /// for differences between sessions. Differences in machine and settings are listed first.
    ///
    /// The exit code is 1 if a scheduler got worse by more than the margin, and the one-sided 95 %
    /// bound confirms it. Without a control, the exit code is always 0, because a difference
    /// between the sessions may be the cause.
    Diff(Diff),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual page, or write one page per command
    Man(Man),
}

/// Headings of groups of options.
const RESULTS: &str = "Results and pages";
const REAL: &str = "For real";
const MODELLED: &str = "Modelled machine";
const TRACE: &str = "Trace";

const RUN_EXAMPLES: &str = "\
Examples:
  seekwell run pgbench -p clients=16 -d ssd:sata-tlc-1t
  seekwell run job.fio -s mq-deadline,bfq
All options: seekwell run --help";
const REPLAY_EXAMPLES: &str = "\
Examples:
  seekwell replay trace.blkparse -d ssd:sata-tlc-1t -s mq-deadline,bfq
  seekwell replay trace.csv --mode closed --report page.html
All options: seekwell replay --help";

/// The option for the output file.
#[derive(Args, Debug)]
pub struct Output {
    /// Write the result to FILE
    ///
    /// FILE is replaced completely or not at all, and keeps its owner and mode. A pipe, a terminal
    /// and /dev/stdout are written to directly. `-` is standard output.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// Arguments of `run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    /// Name from `seekwell workloads`, or path of a fio job file
    #[arg(required_unless_present_any = ["clean_up", "fio"], long_help = workloads())]
    pub workload: Option<String>,
    /// A fio command instead of WORKLOAD
    ///
    /// For example: -- fio --name=a --rw=read --size=1g
    #[arg(last = true, value_name = "FIO COMMAND", conflicts_with_all = ["workload", "param"])]
    pub fio: Vec<String>,
    /// Devices, schedulers and repeats
    #[command(flatten)]
    pub bench: Bench,
    /// Set a parameter of the workload, or an option of all jobs of a job file; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", display_order = 2)]
    pub param: Vec<String>,
    /// Print all tables, not only the summary
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
    /// Modelled machine; see `seekwell machines`
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true, long_help = machine(),
        conflicts_with = "dir", help_heading = MODELLED)]
    pub machine: String,
    /// Workload to run alongside; may be repeated
    ///
    /// The workload runs on the same machine, and starts and ends with the measured workload
    /// (streams:kind=write,seconds=60s, or a fio job file). loop:WORKLOAD repeats it.
    #[arg(long, value_name = "WORK", conflicts_with = "dir", help_heading = MODELLED)]
    pub beside: Vec<String>,
    /// Cgroup with limits: bulk:tasks=writer:wbps=2M
    #[arg(long, value_name = "CGROUP", long_help = cgroup(), conflicts_with = "dir",
        help_heading = MODELLED)]
    pub cgroup: Vec<String>,
    /// Pages and event files
    #[command(flatten)]
    pub events: EventArgs,
    /// Print one JSON document
    #[arg(long, help_heading = RESULTS)]
    pub json: bool,
    /// With --json: add every second of every run
    #[arg(long, requires = "json", help_heading = RESULTS, hide_short_help = true)]
    pub series: bool,
    /// Run on real files in this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = REAL,
        conflicts_with_all = ["device", "schedulers", "era", "kernel", "tunable", "hz", "seeds", "nr_requests", "depth",
            "max_sectors_kb", "nomerges", "threads", "results",
            "events", "report"])]
    pub dir: Option<PathBuf>,
    /// With --dir: device or file for raw reads
    #[arg(long, value_name = "PATH", requires = "dir", value_hint = ValueHint::AnyPath, help_heading = REAL)]
    pub raw: Option<PathBuf>,
    /// With --dir: remove files that killed runs left there
    ///
    /// Nothing else is removed. If you give WORKLOAD, it runs afterwards.
    #[arg(long, requires = "dir", help_heading = REAL, hide_short_help = true)]
    pub clean_up: bool,
    /// Stop each run after SECONDS of its own time
    ///
    /// [default: see docs/run.md, "Limits"; with --dir no limit]
    #[arg(long, value_name = "SECONDS", hide_short_help = true,
        value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub limit: Option<u64>,
}

/// Arguments of `replay`.
#[derive(Args, Debug)]
#[command(after_help = REPLAY_EXAMPLES)]
pub struct Replay {
    /// Trace file, or `-` for standard input; may be zstd or gzip
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Devices, schedulers and repeats
    #[command(flatten)]
    pub bench: Bench,
    /// Timing: [timed], scaled:FACTOR, depth:N, closed or steady
    #[arg(long, short, value_name = "MODE", default_value = "timed", hide_default_value = true, long_help = modes(), display_order = 2)]
    pub mode: String,
    /// Print all tables, not only the summary
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
    /// Records past the device's end: [strict] or wrap
    ///
    /// strict: report an error. wrap: use the sector modulo the device's size.
    #[arg(long, value_name = "HOW", default_value = "strict", hide_possible_values = true,
        hide_default_value = true, help_heading = TRACE)]
    pub fit: Fit,
    /// Options that select records
    #[command(flatten)]
    pub input: TraceInput,
    /// Pages and event files
    #[command(flatten)]
    pub events: EventArgs,
    /// Print one JSON document
    #[arg(long, help_heading = RESULTS)]
    pub json: bool,
    /// With --json: add every second of every run
    #[arg(long, requires = "json", help_heading = RESULTS, hide_short_help = true)]
    pub series: bool,
}

/// How to treat records past the end of the device.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Fit {
    /// Report an error.
    Strict,
    /// Use the sector modulo the device's size.
    Wrap,
}

impl From<Fit> for seekwell::Fit {
    fn from(f: Fit) -> Self {
        match f {
            Fit::Strict => seekwell::Fit::Strict,
            Fit::Wrap => seekwell::Fit::Wrap,
        }
    }
}

/// Arguments of `demo`.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Name of the demo, or `all`; without it, all demos are listed
    pub name: Option<String>,
    /// Print more: in the list, what each demo shows; for one demo, all claims and ranges
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Seed of all random numbers: the same seed gives the same bytes
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Run with N seeds, starting at --seed. The output shows means with 95 % confidence intervals,
    /// or with minimum and maximum if N is below five [default: 3 to 10, more for shorter demos]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// Also run these schedulers (NAME, NAME-VERSION, NAME:TUNABLE=VALUE). The claims of the demo
    /// do not apply to them
    #[arg(
        long,
        short,
        visible_alias = "scheduler",
        value_name = "LIST",
        requires = "name"
    )]
    pub schedulers: Option<String>,
    /// Also draw the figures to FILE as SVG
    #[arg(long, value_name = "FILE.svg", requires = "name", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// Also write one HTML page to FILE: claims, figures and picture
    #[arg(long, value_name = "FILE.html", requires = "name", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// Cases (JSON lines) or bios (CSV), or `-` for standard input; optional with --legend
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "legend")]
    pub file: Option<PathBuf>,
    /// Explain only the case with this name
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub case: Option<String>,
    /// Explain all cases: total agreement over the file; with --csv, the decisions of each case
    #[arg(long)]
    pub all: bool,
    /// Scheduler, with a version if not the default one (`cfq-3.4`) [CSV default: deadline]
    #[arg(long, short, value_name = "SCHEDULER")]
    pub scheduler: Option<String>,
    /// Set a tunable before the start, like a write to sysfs
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub tunable: Vec<String>,
    /// Timer ticks per second (CONFIG_HZ) [CSV default: 1000]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub hz: Option<u32>,
    /// Requests that the device accepts at once [CSV default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub depth: Option<u32>,
    /// Service time of each request, in microseconds [CSV default: 5000]
    #[arg(long, value_name = "US", value_parser = live::service_us)]
    pub service_us: Option<f64>,
    /// Exit with status 1 if a case differs from its recording
    #[arg(long)]
    pub strict: bool,
    /// Also print the rules that the reasons name, each with its kernel function and its text.
    /// Without FILE, print all rules of the scheduler, or of all schedulers
    #[arg(long, conflicts_with_all = ["csv", "json"])]
    pub legend: bool,
    /// Also draw one case to FILE as SVG: sectors over time, dispatch order and queue
    #[arg(long, value_name = "FILE.svg", conflicts_with_all = ["all", "csv", "json"],
        value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// Also write an HTML page of one case to FILE, with the picture and all steps
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["all", "csv", "json"],
        value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Print the decisions as CSV: id, time in ns since the start, dispatch or timer
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}
