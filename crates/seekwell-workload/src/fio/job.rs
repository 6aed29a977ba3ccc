//! A job of a fio job file, with the defaults of fio.

use super::priority::Priorities;
use seekwell_core::{Class, IoPrio, Nanos, SyncRange};

/// The direction of a call, in the order of fio's lists ("bs=4k,8k,64k").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dir {
    /// Reads.
    #[default]
    Read,
    /// Writes.
    Write,
    /// Discards; only on a raw device.
    Trim,
}

/// The access pattern of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// The job reads.
    pub reads: bool,
    /// The job writes.
    pub writes: bool,
    /// The job discards.
    pub trims: bool,
    /// The job discards each block and then writes it.
    pub trims_first: bool,
    /// The positions are random.
    pub random: bool,
    /// Number of consecutive calls from each random position (rw=randread:8). For 0 and 1, each
    /// call has its own random position.
    pub run: u32,
    /// Number of bytes that a sequential job skips after each call (rw=read:8k). A negative number
    /// goes back (rw=read:-8k).
    pub hole: i64,
    /// All calls of a run go to its first position (rw_sequencer=identical).
    pub identical: bool,
}

/// Lengths of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Smallest and largest length in bytes. All lengths between them are equally frequent.
    Range(u32, u32),
    /// Pairs of length in bytes and percentage of the calls (bssplit).
    Split(Vec<(u32, u32)>),
}

impl Blocks {
    /// Returns the smallest length. Random positions are multiples of it.
    pub fn min(&self) -> u32 {
        match self {
            Blocks::Range(lo, _) => *lo,
            Blocks::Split(all) => all.iter().map(|b| b.0).min().unwrap_or(4096),
        }
    }
    /// Returns the largest length.
    pub fn max(&self) -> u32 {
        match self {
            Blocks::Range(_, hi) => *hi,
            Blocks::Split(all) => all.iter().map(|b| b.0).max().unwrap_or(4096),
        }
    }
    /// Returns true if all calls have the same length.
    pub fn fixed(&self) -> bool {
        self.min() == self.max()
    }
}

/// How the file of the next call is selected (file_service_type).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// In turn, with this number of consecutive calls per file.
    RoundRobin(u64),
    /// One file after the other; the next file follows when the current file is finished.
    Sequential,
    /// A random file, with this number of consecutive calls per file.
    Random(u64),
}

/// Advice to the kernel about future accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// No advice.
    None,
    /// Advice that corresponds to the pattern.
    Pattern,
    /// Advice for sequential access, with any pattern.
    Sequential,
    /// Advice for random access, with any pattern.
    Random,
}

/// Distribution of random positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Uniform distribution.
    #[default]
    Uniform,
    /// Zipf distribution with this theta: block k has weight 1/k^theta.
    Zipf(f64),
    /// Pareto distribution: a fraction h of the positions gets 1 - h of the calls, recursively.
    Pareto(f64),
    /// Normal distribution; the value is the standard deviation in percent of the file.
    Normal(f64),
    /// Zones from the start of the file: (percent of the calls, percent of the file).
    Zoned(Vec<(f64, f64)>),
}

/// What the I/O engine does for each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// One call at a time: sync, psync, vsync, pvsync, mmap.
    #[default]
    Sync,
    /// Several calls in flight: libaio, io_uring, posixaio.
    Async,
    /// Nothing; each call only uses the CPU.
    Null,
    /// Uses the CPU and makes no call.
    Cpu,
    /// Allocates the range of a write (fallocate).
    Falloc,
    /// Sets the length of the file to the end of the range of a write.
    Truncate,
    /// One call per file or directory.
    Files(FileCall),
}

/// The calls of the engines that work on whole files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileCall {
    /// Makes the file.
    Create,
    /// Reads the properties of the file.
    Stat,
    /// Removes the file.
    Delete,
    /// Makes the directory.
    CreateDir,
    /// Reads the properties of the directory.
    StatDir,
    /// Removes the directory.
    DeleteDir,
}

/// An amount of data: a number, or a share of the file or device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Number of bytes.
    Bytes(u64),
    /// Percentage of the file or device.
    Percent(f64),
    /// Number of zones.
    Zones(u64),
}

impl Amount {
    /// Returns the number of bytes, for a file or device of `whole` bytes with zones of `zone`
    /// bytes.
    pub fn of(self, whole: u64, zone: u64) -> u64 {
        match self {
            Amount::Bytes(n) => n,
            Amount::Percent(p) => (whole as f64 * p / 100.0) as u64,
            Amount::Zones(n) => n.saturating_mul(zone),
        }
    }
    /// Returns the number of bytes, or 0 if it depends on the file or device.
    pub fn bytes(self) -> u64 {
        self.of(0, 0)
    }
}

/// Zones of a file or device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zoning {
    /// True if each zone is written from its start to its end (zonemode=zbd). Otherwise, the job
    /// leaves a zone after `size` bytes (zonemode=strided).
    pub sequential: bool,
    /// Number of bytes that are transferred in each zone.
    pub size: u64,
    /// Length of a zone in bytes.
    pub range: u64,
    /// Number of bytes between two zones.
    pub skip: u64,
    /// Maximum number of zones that are written at a time; 0: no limit.
    pub open: u64,
}

/// Which jobs end when a job with the option exitall ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// The jobs of the same reporting group.
    #[default]
    Group,
    /// The jobs between the same two stone walls.
    Stonewall,
    /// All jobs, also those that have not started.
    All,
}

/// Weight of a job in a group of jobs that proceed in proportion to their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Number of the group (flow_id).
    pub id: u32,
    /// Weight of the job.
    pub weight: u32,
    /// Pause of a job that is ahead of its share.
    pub sleep: Nanos,
}

/// Selects the greatest depth at which most calls are shorter than a limit (latency_target).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTarget {
    /// Limit of the latency.
    pub target: Nanos,
    /// Time between two changes of the depth.
    pub window: Nanos,
    /// Percentage of the calls that must be within the limit.
    pub percentile: f64,
    /// Continue after the depth has been found.
    pub run: bool,
}

/// The quantity that must become steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyOf {
    /// Calls per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
}

/// Ends a job when a quantity has become steady (steadystate).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// The quantity.
    pub of: SteadyOf,
    /// Compare the slope instead of the greatest deviation from the mean.
    pub slope: bool,
    /// Limit of the slope or deviation.
    pub limit: f64,
    /// The limit is a percentage of the mean.
    pub percent: bool,
    /// Number of seconds that are compared.
    pub seconds: u64,
    /// Time at the start that is not compared.
    pub ramp: Nanos,
}

/// A job. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name of the section.
    pub name: String,
    /// Option rw.
    pub pattern: Pattern,
    /// Option rwmixread: percentage of reads.
    pub mix_read: u32,
    /// Lengths of reads, writes and discards.
    pub blocks: [Blocks; 3],
    /// Total size of the regions of all files. `None`: determined by `filesize`, or the whole raw
    /// device.
    pub size: Option<Amount>,
    /// Size of each file.
    pub filesize: Option<u64>,
    /// Number of bytes to transfer; `None`: as many as `size`.
    pub io_size: Option<Amount>,
    /// Start of the region in each file.
    pub offset: Amount,
    /// Distance between the starts of the regions of two clones.
    pub offset_increment: Amount,
    /// Write until the device or file system is full.
    pub fill_device: bool,
    /// The size of the region is the length that the file has when the job starts.
    pub whole_file: bool,
    /// Random positions are multiples of this number of bytes; 0: of the smallest length.
    pub align: [u32; 3],
    /// Percentage of the calls of a random job that go to a random position. The other calls
    /// continue at the end of the last call.
    pub random_percent: [u8; 3],
    /// Zones of the file or device.
    pub zones: Option<Zoning>,
    /// The option zonemode=strided is given, not only the size of a zone.
    pub strided: bool,
    /// Maximum number of calls.
    pub number_ios: Option<u64>,
    /// Number of clones of the job.
    pub numjobs: u32,
    /// Number of files per clone.
    pub nrfiles: u32,
    /// Names of files that all clones share. If empty, each clone has its own files.
    pub filenames: Vec<String>,
    /// Option filename_format: names of the files, with `$jobname`, `$jobnum` and `$filenum`.
    pub format: Option<String>,
    /// True if the job uses the raw device of the run (filename=/dev/NAME) instead of files.
    pub raw: bool,
    /// The engine finds its data without a file name.
    pub own_device: bool,
    /// How the file of the next call is selected.
    pub service: Service,
    /// Allocate the blocks of files before writing (fallocate).
    pub fallocate: bool,
    /// Write the files once before the run.
    pub overwrite: bool,
    /// Option ioengine.
    pub engine: Engine,
    /// Option iodepth.
    pub depth: u32,
    /// Number of calls per submission (iodepth_batch).
    pub batch: u32,
    /// Number of completions to wait for at a time (iodepth_batch_complete_min).
    pub batch_complete: u32,
    /// When the queue is full, collect completions until only this number of calls is in flight
    /// (iodepth_low). `None`: the depth.
    pub low: Option<u32>,
    /// O_DIRECT.
    pub direct: bool,
    /// O_SYNC.
    pub sync: bool,
    /// O_DSYNC.
    pub dsync: bool,
    /// Number of writes between two fsync calls; 0: no fsync.
    pub fsync: u64,
    /// Number of writes between two fdatasync calls; 0: no fdatasync.
    pub fdatasync: u64,
    /// Flags of sync_file_range, and the number of writes between two calls of it.
    pub sync_range: Option<(SyncRange, u64)>,
    /// Call fsync after the last write.
    pub end_fsync: bool,
    /// Call fsync before each close.
    pub fsync_on_close: bool,
    /// Advice about sequential or random access (fadvise_hint).
    pub fadvise_hint: Hint,
    /// Drop the cached pages of the files before the start, and before each further pass.
    pub invalidate: bool,
    /// Maximum rate of each direction, in bytes per second.
    pub rate: [Option<u64>; 3],
    /// Maximum rate of each direction, in calls per second.
    pub rate_iops: [Option<u64>; 3],
    /// The intervals between calls are random with an exponential distribution (rate_process).
    pub poisson: bool,
    /// The rate does not catch up after a pause (rate_ignore_thinktime).
    pub rate_without_thinktime: bool,
    /// Length of a pause.
    pub thinktime: Nanos,
    /// Time between two pauses; 0: `thinktime_blocks` counts.
    pub thinktime_iotime: Nanos,
    /// Number of calls before each pause.
    pub thinktime_blocks: u64,
    /// Maximum duration of the job.
    pub runtime: Option<Nanos>,
    /// Repeat the job until `runtime` has passed.
    pub time_based: bool,
    /// Time at the start that is not measured.
    pub ramp_time: Nanos,
    /// Delay before the first call.
    pub startdelay: Nanos,
    /// Wait until the previous jobs have ended.
    pub stonewall: bool,
    /// Name of the job that must have ended before this job starts.
    pub wait_for: Option<String>,
    /// When this job ends, other jobs end.
    pub exitall: bool,
    /// The jobs that end.
    pub exit_what: ExitWhat,
    /// The job starts a new reporting group.
    pub new_group: bool,
    /// Number of the reporting group.
    pub group: u32,
    /// Weight among other jobs.
    pub flow: Option<Flow>,
    /// Search of the greatest depth with a short latency.
    pub latency: Option<LatencyTarget>,
    /// End of the job in the steady state.
    pub steady: Option<Steady>,
    /// Share of the CPU in percent, and the length of each part of work, of the engine cpuio.
    pub cpu: (u32, Nanos),
    /// Read the files into memory before the start.
    pub pre_read: bool,
    /// Only make the files.
    pub create_only: bool,
    /// Number of passes over the region.
    pub loops: u64,
    /// Option random_distribution.
    pub distribution: Distribution,
    /// Random positions may repeat before all positions have been used.
    pub norandommap: bool,
    /// I/O priority (prio, prioclass).
    pub prio: IoPrio,
    /// Priorities of single calls (cmdprio_percentage, cmdprio_bssplit).
    pub priorities: Option<Priorities>,
    /// Option nice.
    pub nice: i8,
    /// Weight of the job's own cgroup.
    pub cgroup_weight: Option<u32>,
}

impl Default for Job {
    /// Returns a job with the defaults of fio.
    fn default() -> Self {
        Job {
            name: String::new(),
            pattern: Pattern {
                reads: true,
                ..Pattern::default()
            },
            mix_read: 50,
            blocks: [const { Blocks::Range(4096, 4096) }; 3],
            size: None,
            filesize: None,
            io_size: None,
            offset: Amount::Bytes(0),
            offset_increment: Amount::Bytes(0),
            fill_device: false,
            whole_file: false,
            align: [0; 3],
            random_percent: [100; 3],
            zones: None,
            strided: false,
            number_ios: None,
            numjobs: 1,
            nrfiles: 1,
            filenames: Vec::new(),
            format: None,
            raw: false,
            own_device: false,
            service: Service::RoundRobin(1),
            fallocate: true,
            overwrite: false,
            engine: Engine::Sync,
            depth: 1,
            batch: 1,
            batch_complete: 1,
            low: None,
            direct: false,
            sync: false,
            dsync: false,
            fsync: 0,
            fdatasync: 0,
            sync_range: None,
            end_fsync: false,
            fsync_on_close: false,
            fadvise_hint: Hint::Pattern,
            invalidate: true,
            rate: [None; 3],
            rate_iops: [None; 3],
            poisson: false,
            rate_without_thinktime: false,
            thinktime: Nanos::ZERO,
            thinktime_iotime: Nanos::ZERO,
            thinktime_blocks: 1,
            runtime: None,
            time_based: false,
            ramp_time: Nanos::ZERO,
            startdelay: Nanos::ZERO,
            stonewall: false,
            wait_for: None,
            exitall: false,
            exit_what: ExitWhat::Group,
            new_group: false,
            group: 0,
            flow: None,
            latency: None,
            steady: None,
            cpu: (0, Nanos(50_000_000)),
            pre_read: false,
            create_only: false,
            loops: 1,
            distribution: Distribution::Uniform,
            norandommap: false,
            prio: IoPrio {
                class: Class::None,
                level: 0,
            },
            priorities: None,
            nice: 0,
            cgroup_weight: None,
        }
    }
}
