//! Arguments, and nothing else: every option's help is its documentation.

use crate::fail::EXIT_CODES;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

mod bench;
mod choices;
mod foreign;
mod host;
mod lists;
mod live;
mod report;
mod reproduce;
mod results;
mod traces;

pub use bench::*;
use choices::{cgroup, machine, modes, workloads};
pub use foreign::*;
pub use host::*;
pub use lists::*;
pub use live::*;
pub use report::*;
pub use reproduce::*;
pub use results::*;
pub use traces::*;

/// A laboratory for I/O schedulers: every one Linux people have argued about since 2002, on
/// modelled disks, under modelled programs and recorded traces.
#[derive(Parser, Debug)]
#[command(name = "seekwell", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    /// No notes and no progress; results and errors only
    #[arg(long, short, global = true, help_heading = "General")]
    pub quiet: bool,
    /// Colours: auto, always or never
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
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// When to use colours.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Makes it the rule for every stream.
    pub fn apply(self) {
        match self {
            Color::Auto => {}
            Color::Always => anstream::ColorChoice::Always.write_global(),
            Color::Never => anstream::ColorChoice::Never.write_global(),
        }
    }
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Compare schedulers under programs on modelled disks (no root, seconds)
    ///
    /// Without arguments: a thinking reader against a bulk writer, a program that starts while a file is
    /// copied, and files created with fsync, under none, mq-deadline, kyber and bfq, on an NVMe drive, a
    /// SATA SSD and a hard disk, through the modelled page cache, file system and block layer. --era 2012
    /// takes schedulers and drives of that time. --workload takes others from `seekwell workloads`, with
    /// parameters, and fio job files; hdparm and seeker are one reader each, where no scheduler
    /// should make a difference.
    ///
    /// With FILE.toml it carries that experiment out: the plan first, then block by block until
    /// every interval is narrow enough, the budget ends or Ctrl-C comes; results go to a folder,
    /// and the same command goes on with what was interrupted.
    ///
    /// Each scheduler runs with the same seeds (where files lie, what is read when), and is compared
    /// with the others seed by seed. How many: 10, but so few that all runs together do about a
    /// million operations and I/Os, and 3 at least; where nothing is random 3 tell, and the answer
    /// is exact. It follows from the runs, not from the clock: same command, same bytes.
    ///
    /// The answer is one screen: workloads and schedulers, who is ahead, how far the others are
    /// behind, and how sure that is. --details adds all tables; --json all figures of the first seed
    /// and the verdicts as data.
    Compare(Compare),
    /// Write an experiment file to begin with: commented, and running as it is
    ///
    /// Devices, schedulers, workloads and machines, how often each is repeated and how it is judged,
    /// in one file (TOML) for `seekwell compare FILE`. docs/experiments.md tells what a file can say.
    /// With --schema it prints the JSON Schema of such files instead, by which an editor completes
    /// and checks them.
    ///
    /// With `scheduler NAME` it begins a scheduler in the source tree instead: a file that compiles,
    /// its line in the registry, and worked examples; docs/add-a-scheduler.md goes on from there.
    New(New),
    /// Meet a scheduler with all rivals of its layer: where it stands, and where it loses worst
    ///
    /// On a device of each class, under workloads that load them differently, and under traces of
    /// one's own, every scheduler of the layer runs with the same seeds. Told are throughput, the 99th
    /// percentile of latency and fairness of each, relative to the others, with 95 % intervals over
    /// the seeds; who is beaten by nobody in all three; and the cells where the scheduler is furthest
    /// behind somebody. A minute on two cores, as it is built for release.
    Arena(Arena),
    /// Search the tunables of schedulers for a device and a mix of workloads (Python)
    ///
    /// Optuna searches on some seeds and workloads, and what it finds is judged on others: the gain
    /// with its interval, or that the defaults are as good; with --results a folder for `seekwell
    /// apply`. It is a command of the Python package seekwell-lab, to which all arguments are handed:
    /// `seekwell tune --help` is its own.
    #[command(disable_help_flag = true)]
    Tune(Handed),
    /// Carry an experiment of thousands of cells out on a Ray cluster (Python)
    ///
    /// The same bytes as `seekwell compare FILE.toml`, on any number of workers, and gone on with
    /// after any of them, or the driver, was lost. It is a command of the Python package
    /// seekwell-lab, to which all arguments are handed: `seekwell sweep --help` is its own.
    #[command(disable_help_flag = true)]
    Sweep(Handed),
    /// Run a program under several schedulers on a modelled machine, or for real
    ///
    /// WORKLOAD is a name from `seekwell workloads`, with parameters behind a colon or by --param
    /// (fs-mark:files=100,workers=4), or the path of a fio job file (NAME.fio).
    ///
    /// Without --dir the program runs in simulation: modelled page cache, file system, block layer
    /// and disk, with the schedulers asked for. With --dir it runs on real files in that directory,
    /// under whatever scheduler is in force there: nothing is changed, and only files it made
    /// itself are written and removed. sqlite is then the real library.
    Run(Run),
    /// Replay a recorded trace on a modelled disk under several schedulers
    Replay(Replay),
    /// Show the behaviours that made schedulers famous, with numbers
    Demo(DemoArgs),
    /// Watch a scheduler think: each step of a request list, and why
    ///
    /// FILE holds cases as JSON lines (one object a line; zstd and gzip are read as they are, `-`
    /// is standard input), or is a CSV of bios, with the rest said by options: columns named as
    /// `seekwell formats csv` tells, or, without a line of names, `t_us,id,pid,op,sector,n`.
    /// Operations: R read, W asynchronous write, S synchronous write, N synchronous write that
    /// nobody idles for (fsync), P read of metadata with priority, M metadata read, A read-
    /// ahead, F flush, D discard, Z write zeroes.
    ///
    /// With one case (in the file, or by --case) every step is printed with the scheduler's
    /// reason and the state behind it. A case that carries a recorded dispatch order ends with
    /// the agreement, beside a FIFO and a wrong scheduler so that the figure means something.
    Explain(Explain),
    /// Put a modelled disk under real programs, on the wall clock, until Ctrl-C
    ///
    /// A FUSE file system appears at DIR with one file, `disk`. It answers when the model of the
    /// device says so; the data are real, in memory or in a sparse file. Programs use the file
    /// with direct I/O, or through a loop device (losetup --find --show --direct-io=on DIR/disk),
    /// which the kernel's own block layer and file systems then take for a slow disk. How late
    /// completions were, and whether the run may be believed, is told at the end.
    ///
    /// Ctrl-C, SIGTERM, SIGHUP and umount end it in order, with status 0. After kill -9 the mount
    /// stays and answers nobody: the next start at DIR takes it down, and so does
    /// `sudo umount --lazy DIR`. With --backing a flush is answered when the model's time has come
    /// and the file's data are on the host's disk.
    Serve(Serve),
    /// Run scripts on the running kernel over a modelled disk, and in the simulation: do they agree?
    ///
    /// Each workload runs on ext4 on a loop device over `seekwell serve` with its block trace
    /// taken, and in the simulation on the same model, cores, memory and scheduler. Compared are
    /// requests and bytes of sync data, journal and flushes (limit 5 %), of metadata and of data
    /// written back (20 %), and throughput (25 %), beside a prediction that knows nothing.
    ///
    /// Where a count is small, 2 requests or 16 KiB may be amiss instead (`5 % or 2`): one commit
    /// that a timer put on the other side of the end. On a machine that was busy, or where the
    /// modelled disk was late, what depends on time is not judged, and the exit code says so.
    ///
    /// Needs root. Everything it makes is its own and is removed, also after a signal.
    CheckWorlds(CheckWorlds),
    /// Are our schedulers those of the running kernel? Held against it, decision by decision
    ///
    /// On a loop device of our own over a slow disk of our own, the kernel's mq-deadline, kyber and
    /// bfq are given batches of requests from processes of known classes; its tracepoints tell what
    /// it issued in which order. Ours are replayed with the same insertions and completions, beside
    /// a FIFO and one-way sweeps, which know nothing, and beside ours with a planted mistake, which
    /// must be caught. Each batch is submitted twice: how often the kernel repeats itself stands
    /// beside. The exit code is 1 if ours differ where the kernel repeats itself.
    ///
    /// Needs root. Everything it makes is its own and is removed, also after a signal.
    VerifyKernel(VerifyKernel),
    /// Run published comparisons of schedulers again, by prediction: what holds, and whose doing it was
    ///
    /// Five of them, each an experiment with the machine, the drive and the kernel of its time, and the
    /// figures that were published. Printed are how near ours are, what the published differences are
    /// worth once corrected for their number, how many of them ours has, beside models that know
    /// nothing, and whether each was the scheduler's doing, with the evidence. Nothing in the models
    /// was tuned to a difference between schedulers.
    ///
    /// Results are kept in results/NAME: the same command goes on with what was interrupted, and runs
    /// nothing twice. The full form of all takes a quarter of an hour of CPU time for each of three
    /// repeats, --quick about a minute.
    Reproduce(Reproduce),
    /// List results folders: complete, to be resumed, or broken and why
    Results(Results),
    /// Write the results of a folder as CSV, JSON, Markdown or composite.xml
    ///
    /// The Parquet files of the folder are read by pandas, polars and DuckDB as they are; this is for
    /// everything else: a spreadsheet, a pull request, the Phoronix Test Suite.
    Export(Export),
    /// List the schedulers, or tell all about one
    Schedulers(Schedulers),
    /// List the workloads, or tell all about one: parameters, metric, what it stresses, source
    Workloads(Workloads),
    /// List the machines that --machine knows by name, or tell all about one, with sources
    Machines(Machines),
    /// List the modelled devices, or tell all about one
    Devices(Devices),
    /// Fit a device model to a real disk, drive or file by timing reads
    ///
    /// Finds by probing what PATH is (a hard disk or flash), measures what a model of it needs,
    /// and writes a preset that `--device FILE` and `seekwell devices FILE` take. Each parameter
    /// comes with its method, 95 % interval and number of samples; what the probes do not tell is
    /// marked. Only reads, unless --allow-write is given. The device should be idle. Interrupt it
    /// (Ctrl-C) and what is known by then is kept.
    Calibrate(Calibrate),
    /// Show what results or a recorded trace say: a page, Markdown, or this terminal
    ///
    /// Of a results folder, or of a file that `seekwell import` reads, one HTML page that needs no
    /// network: the answer for each device, a map of tests and schedulers, every test with its
    /// intervals and every run, sweeps as lines, and how it was measured. What is chosen on it is in
    /// its address, so that a view can be sent as a link.
    ///
    /// Of a trace (any that `seekwell formats` lists) what btt and iowatcher tell: sizes, distances,
    /// where the time goes from Q to C, merges, processes, the map of place and time, the course. The
    /// figures are btt's, to the digit.
    Report(Report),
    /// Tell in a few words what to set, from results or from a simulation made for it
    ///
    /// For each device the scheduler to have in force with the evidence, what it costs on the test
    /// where it is worst, when it would be another, and the line that sets it; or that it does not
    /// matter there, or that more runs are needed.
    ///
    /// A simulation runs each scheduler with writeback throttling off and on, and the answer says
    /// whether the scheduler or the throttle makes the difference.
    Recommend(Recommend),
    /// List the trace formats, or tell all about one
    Formats(Formats),
    /// Write a recorded trace in another format, or a part of one
    ///
    /// Formats that are written are in `seekwell formats`; the name of OUT tells which one is
    /// meant (trace.iolog, trace.csv.zst), or --to does. What the new format cannot say is told.
    /// Traces of any length pass through without being held.
    Convert(Convert),
    /// List this machine's block devices, or tell what schedules under a path (no root needed)
    ///
    /// Without PATH: a table of the devices as the kernel describes them, with the scheduler in
    /// force first and the others it could have behind it, depth, write cache, read-ahead, and what
    /// lies on each.
    ///
    /// With PATH: every layer from the file system down (encryption, LVM, RAID, multipath, loop
    /// devices and the disks), in words, and at which of them a scheduler can act. Nothing is
    /// changed.
    Host(Host),
    /// Tell what of this machine can be used, and what to do about the rest (no root needed)
    ///
    /// Simulations need nothing. What works on real disks, and what shows results, needs root,
    /// tracefs, BPF, io_uring, FUSE, loop devices, programs: each is looked for, nothing is changed,
    /// and beside what is missing stands the command that gets it.
    Doctor(Doctor),
    /// Set a device's scheduler and tunables, for good or while a command runs
    ///
    /// Sets, reads back, and tells what changed with it (a switch resets tunables, the number of
    /// requests, and under bfq writeback throttling), and the command that puts all of it back. It
    /// does not survive a boot.
    ///
    /// With --for COMMAND, everything is put back when the command has ended, in whatever way: its
    /// exit code is passed on, signals reach it. A guardian puts it back if this program is killed
    /// with kill -9; if both are, the next `seekwell switch` does, or `seekwell switch --restore`.
    ///
    /// A name that this kernel lacks (cfq, deadline, noop) is answered with the nearest it has.
    Switch(Switch),
    /// Set what was found best, now and for every boot to come; and take it away again
    ///
    /// Takes a scheduler, or a results folder whose verdict names one; sets it on the device and
    /// reads it back. With --persist it is kept by a udev rule that knows the disk by its serial
    /// number, by a profile of tuned (--persist=tuned), as lines for NixOS, or by a word on the
    /// command line of a kernel before 5.0 (later ones ignore elevator=). What would be written is
    /// shown first.
    ///
    /// --undo takes all of it away: files byte for byte, settings of this boot as they were.
    Apply(Apply),
    /// Record what reaches a block device while a command runs, as a trace to replay
    ///
    /// From the kernel's block tracepoints, through an instance of tracefs of our own: nothing of
    /// the machine's tracing changes. The name of the output tells the format: .ftrace is
    /// everything as the kernel prints it; blkparse's text, blktrace's binary (which blkparse and
    /// btt read), CSV and fio's iolog have the bios with their times, processes and names. The
    /// command's exit code is passed on; signals reach it. Events that the kernel lost are counted
    /// and told, and the exit code says so. Needs root.
    Record(Record),
    /// Judge results that other programs made: what of their differences holds
    ///
    /// Reads composite.xml of the Phoronix Test Suite, exports and pages of OpenBenchmarking.org,
    /// fio's JSON, what pgbench and sysbench print, pgbench's logs, hyperfine's JSON, and any CSV
    /// with columns scheduler, workload and value. Of single runs the logs are compared (Welch's
    /// test), of published means with errors the means; all are corrected for their number (Holm).
    /// The order in which foreign runs were made is not known, so drift cannot be excluded.
    Import(Import),
    /// What changed between two results: two kernels, two versions of a program, two days
    ///
    /// A and B are results folders, or files that `seekwell import` reads. Simulations are compared
    /// seed by seed, exactly. On a host a day moves everything, so each scheduler is judged by its
    /// change relative to a control that is in both, with an allowance for the sitting. What of
    /// machine and settings differs is listed first.
    ///
    /// The exit code is 1 if something got worse: the one-sided 95 % bound says so, and by more than
    /// the margin. What has no control may be the day, and fails nothing.
    Diff(Diff),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual page, or write one page per command into a directory
    Man(Man),
}

/// Headings of options.
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

/// Where the result goes.
#[derive(Args, Debug)]
pub struct Output {
    /// Write the result to FILE
    ///
    /// It appears whole or not at all and keeps its owner and mode; a pipe, a terminal or /dev/stdout is
    /// written to as it stands; - is standard output.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// Arguments of `run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    /// Name from `seekwell workloads`, or the path of a fio job file
    #[arg(required_unless_present = "clean_up", long_help = workloads())]
    pub workload: Option<String>,
    /// What runs on what
    #[command(flatten)]
    pub bench: Bench,
    /// Set a parameter of the workload; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", display_order = 2)]
    pub param: Vec<String>,
    /// All tables, not only the answer on a screen
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
    /// Machine; see `seekwell machines`
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true, long_help = machine(),
        conflicts_with = "dir", help_heading = MODELLED)]
    pub machine: String,
    /// A workload that runs beside the measured one; may be repeated
    ///
    /// On the same machine, begun and ended with it (streams:kind=write,seconds=60s, or a fio job
    /// file); loop:WORKLOAD begins it again whenever it ends.
    #[arg(long, value_name = "WORK", conflicts_with = "dir", help_heading = MODELLED)]
    pub beside: Vec<String>,
    /// A cgroup: bulk:tasks=writer:wbps=2M
    #[arg(long, value_name = "CGROUP", long_help = cgroup(), conflicts_with = "dir",
        help_heading = MODELLED)]
    pub cgroup: Vec<String>,
    /// What happened, in full
    #[command(flatten)]
    pub events: EventArgs,
    /// Print one JSON document
    #[arg(long, help_heading = RESULTS)]
    pub json: bool,
    /// With --json: every second of every run, too
    #[arg(long, requires = "json", help_heading = RESULTS, hide_short_help = true)]
    pub series: bool,
    /// Run for real, in this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = REAL,
        conflicts_with_all = ["device", "schedulers", "era", "kernel", "tunable", "hz", "seeds", "nr_requests", "depth",
            "max_sectors_kb", "nomerges", "threads", "results",
            "events", "report"])]
    pub dir: Option<PathBuf>,
    /// With --dir: the device or file that raw workloads read
    #[arg(long, value_name = "PATH", requires = "dir", value_hint = ValueHint::AnyPath, help_heading = REAL)]
    pub raw: Option<PathBuf>,
    /// With --dir: remove what killed runs left there
    ///
    /// Nothing else is removed; then WORKLOAD runs, if one is given.
    #[arg(long, requires = "dir", help_heading = REAL)]
    pub clean_up: bool,
    /// Stop after so many seconds of the run's own time
    ///
    /// [default: docs/run.md, "Limits"; with --dir none]
    #[arg(long, value_name = "SECONDS", hide_short_help = true,
        value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub limit: Option<u64>,
}

/// Arguments of `workloads`.
#[derive(Args, Debug)]
pub struct Workloads {
    /// Tell about this one: metric, parameters, profiles
    pub name: Option<String>,
    /// Tell more: of each what it is in full; of one the ranges, what profiles set, source
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `replay`.
#[derive(Args, Debug)]
#[command(after_help = REPLAY_EXAMPLES)]
pub struct Replay {
    /// Trace, `-` for standard input; zstd and gzip are read as they are
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// What runs on what
    #[command(flatten)]
    pub bench: Bench,
    /// Timing: [timed], scaled:FACTOR, depth:N or closed
    #[arg(long, short, value_name = "MODE", default_value = "timed", hide_default_value = true, long_help = modes(), display_order = 2)]
    pub mode: String,
    /// All tables, not only the answer on a screen
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
    /// Records behind the end of the device: [strict] or wrap
    ///
    /// strict: an error; wrap: folded, sector modulo size.
    #[arg(long, value_name = "HOW", default_value = "strict", hide_possible_values = true,
        hide_default_value = true, help_heading = TRACE)]
    pub fit: Fit,
    /// What of the trace
    #[command(flatten)]
    pub input: TraceInput,
    /// What happened, in full
    #[command(flatten)]
    pub events: EventArgs,
    /// Print one JSON document
    #[arg(long, help_heading = RESULTS)]
    pub json: bool,
    /// With --json: every second of every run, too
    #[arg(long, requires = "json", help_heading = RESULTS, hide_short_help = true)]
    pub series: bool,
}

/// What to do with addresses behind the end of the device.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Fit {
    /// Stop and say so.
    Strict,
    /// Sector modulo the device's size.
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
    /// Which; `all` runs all of them; without it they are listed
    pub name: Option<String>,
    /// Of the list: what each shows; of one: every claim and range, whatever the screen
    #[arg(long, conflicts_with = "json")]
    pub details: bool,
    /// Seed of every random stream: same seed, same bytes
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Run with so many seeds, from --seed on: figures are means with their 95 % interval, under
    /// five seeds with the least and the most [default: 3 to 10, the more the less a demo does]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// Show these schedulers, too, beside those the demo is about (NAME, NAME-VERSION,
    /// NAME:TUNABLE=VALUE); nothing is claimed of them
    #[arg(
        long,
        short,
        visible_alias = "scheduler",
        value_name = "LIST",
        requires = "name"
    )]
    pub schedulers: Option<String>,
    /// Draw its numbers to FILE as SVG, too
    #[arg(long, value_name = "FILE.svg", requires = "name", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// Write a page to FILE, too: claim, figures, picture, in one HTML file
    #[arg(long, value_name = "FILE.html", requires = "name", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// Cases (JSON lines) or bios (CSV); `-` for standard input; --legend can do without
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "legend")]
    pub file: Option<PathBuf>,
    /// Only the case of this name
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub case: Option<String>,
    /// All cases: agreement summed over the file (with --csv: every log, each with its head line)
    #[arg(long)]
    pub all: bool,
    /// Scheduler, with version if not the default (`cfq-3.4`) [CSV default: deadline]
    #[arg(long, short, value_name = "SCHEDULER")]
    pub scheduler: Option<String>,
    /// Set a tunable before the start, as a write to sysfs would
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub tunable: Vec<String>,
    /// Ticks a second [CSV default: 1000]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub hz: Option<u32>,
    /// Requests the device takes at once [CSV default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub depth: Option<u32>,
    /// Time the device takes for each request, in microseconds [CSV default: 5000]
    #[arg(long, value_name = "US", value_parser = service_us)]
    pub service_us: Option<f64>,
    /// Exit with status 1 if any case differs from its recording
    #[arg(long)]
    pub strict: bool,
    /// Print the rules that the reasons name, too: each with the kernel's function it lies in and
    /// what it says. Without FILE: all rules of the scheduler, or of every one
    #[arg(long, conflicts_with_all = ["csv", "json"])]
    pub legend: bool,
    /// Draw one case to FILE as SVG, too: sectors against time, the order of dispatch, the queue
    #[arg(long, value_name = "FILE.svg", conflicts_with_all = ["all", "csv", "json"],
        value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// Write a page of one case to FILE, too: the picture and every step, in one HTML file
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["all", "csv", "json"],
        value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Print the decision log as `id,t_ns,event`: dispatch, dispatch+ (further bios of the same
    /// request) and timer (without id); times in ns since the start
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

fn service_us(text: &str) -> Result<f64, String> {
    let us: f64 = text
        .parse()
        .map_err(|_| "not a number of microseconds".to_owned())?;
    if us.is_finite() && (0.0..=1e9).contains(&us) {
        Ok(us)
    } else {
        Err("outside 0..=1000000000 microseconds".to_owned())
    }
}
