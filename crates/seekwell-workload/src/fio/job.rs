//! A job of a fio job file, with the defaults of fio.

use seekwell_core::{Class, IoPrio, Nanos};

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
    /// Number of bytes that a sequential job skips after each call (rw=read:8k).
    pub hole: u64,
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

/// Whether the I/O engine makes one call at a time or keeps several calls in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// One call at a time: sync, psync, vsync, pvsync, mmap.
    #[default]
    Sync,
    /// Several calls in flight: libaio, io_uring, posixaio.
    Async,
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
    /// Total size of the regions of all files. 0: determined by `filesize`, or the whole raw
    /// device.
    pub size: u64,
    /// Size of each file.
    pub filesize: Option<u64>,
    /// Number of bytes to transfer; `None`: as many as `size`.
    pub io_size: Option<u64>,
    /// Start of the region in each file.
    pub offset: u64,
    /// Maximum number of calls.
    pub number_ios: Option<u64>,
    /// Number of clones of the job.
    pub numjobs: u32,
    /// Number of files per clone.
    pub nrfiles: u32,
    /// Names of files that all clones share. If empty, each clone has its own files.
    pub filenames: Vec<String>,
    /// True if the job uses the raw device of the run (filename=/dev/NAME) instead of files.
    pub raw: bool,
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
    /// Call fsync after the last write.
    pub end_fsync: bool,
    /// Call fsync before each close.
    pub fsync_on_close: bool,
    /// Advice about sequential or random access (fadvise_hint).
    pub fadvise_hint: Hint,
    /// Drop the cached pages of the files before the start.
    pub invalidate: bool,
    /// Maximum rate of each direction, in bytes per second.
    pub rate: [Option<u64>; 3],
    /// Maximum rate of each direction, in calls per second.
    pub rate_iops: [Option<u64>; 3],
    /// Length of a pause.
    pub thinktime: Nanos,
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
    /// When this job ends, all jobs end.
    pub exitall: bool,
    /// Number of passes over the region.
    pub loops: u64,
    /// Option random_distribution.
    pub distribution: Distribution,
    /// Random positions may repeat before all positions have been used.
    pub norandommap: bool,
    /// I/O priority (prio, prioclass).
    pub prio: IoPrio,
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
            size: 0,
            filesize: None,
            io_size: None,
            offset: 0,
            number_ios: None,
            numjobs: 1,
            nrfiles: 1,
            filenames: Vec::new(),
            raw: false,
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
            end_fsync: false,
            fsync_on_close: false,
            fadvise_hint: Hint::Pattern,
            invalidate: true,
            rate: [None; 3],
            rate_iops: [None; 3],
            thinktime: Nanos::ZERO,
            thinktime_blocks: 1,
            runtime: None,
            time_based: false,
            ramp_time: Nanos::ZERO,
            startdelay: Nanos::ZERO,
            stonewall: false,
            exitall: false,
            loops: 1,
            distribution: Distribution::Uniform,
            norandommap: false,
            prio: IoPrio {
                class: Class::None,
                level: 0,
            },
            nice: 0,
            cgroup_weight: None,
        }
    }
}

/// A parsed job file.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// Name of the file, without directories and suffix.
    pub name: String,
    /// The jobs; at least one.
    pub jobs: Vec<Job>,
    /// Warnings about ignored options and other differences.
    pub warnings: Vec<String>,
}

impl Job {
    /// Returns the number of files per clone.
    pub fn files(&self) -> u64 {
        match self.filenames.len() {
            0 => u64::from(self.nrfiles),
            n => n as u64,
        }
    }
    /// Returns the size of the region of each file. Returns 0 for a whole raw device, because its
    /// size is not known before the run.
    pub fn each(&self) -> u64 {
        self.filesize.unwrap_or(self.size / self.files())
    }
    /// Returns true if the job makes calls of this direction.
    pub fn does(&self, dir: Dir) -> bool {
        match dir {
            Dir::Read => self.pattern.reads,
            Dir::Write => self.pattern.writes,
            Dir::Trim => self.pattern.trims,
        }
    }
    /// Returns the smallest length of any call. All positions are multiples of it.
    pub fn smallest(&self) -> u32 {
        let of = |d: Dir| self.does(d).then(|| self.blocks[d as usize].min());
        let all = [Dir::Read, Dir::Write, Dir::Trim]
            .into_iter()
            .filter_map(of);
        all.min().unwrap_or(4096)
    }
}

impl JobFile {
    /// Returns true if the jobs use the raw device. Either all jobs or no jobs use it.
    pub fn raw(&self) -> bool {
        self.jobs.iter().any(|j| j.raw)
    }
    /// Returns the total size of all files.
    pub fn space(&self) -> u64 {
        let of = |j: &Job| {
            let clones = if j.filenames.is_empty() {
                u64::from(j.numjobs)
            } else {
                1
            };
            let each = j.each().saturating_add(j.offset);
            each.saturating_mul(j.files()).saturating_mul(clones)
        };
        let files = self.jobs.iter().filter(|j| !j.raw);
        files.map(of).fold(0, u64::saturating_add)
    }
}
