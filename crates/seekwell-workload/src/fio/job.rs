//! A job of a fio file, with fio's defaults.

use seekwell_core::{Class, IoPrio, Nanos};

/// The direction of a call, in the order of fio's lists ("bs=4k,8k,64k").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dir {
    /// Reads.
    #[default]
    Read,
    /// Writes.
    Write,
    /// Discards; only of a raw device.
    Trim,
}

/// The access pattern of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// It reads.
    pub reads: bool,
    /// It writes.
    pub writes: bool,
    /// It discards.
    pub trims: bool,
    /// It discards each block and then writes it.
    pub trims_first: bool,
    /// Places are random.
    pub random: bool,
    /// Number of consecutive calls from each random place (rw=randread:8). Below 2, each call has
    /// its own place.
    pub run: u32,
    /// Bytes skipped after each call of a sequential job (rw=read:8k).
    pub hole: u64,
    /// All calls of a run go to its first place (rw_sequencer=identical).
    pub identical: bool,
}

/// Lengths of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Smallest and largest; all lengths between are equally frequent.
    Range(u32, u32),
    /// Bytes, and the number of calls in a hundred (bssplit).
    Split(Vec<(u32, u32)>),
}

impl Blocks {
    /// The smallest length, which is the grid of random places.
    pub fn min(&self) -> u32 {
        match self {
            Blocks::Range(lo, _) => *lo,
            Blocks::Split(all) => all.iter().map(|b| b.0).min().unwrap_or(4096),
        }
    }
    /// The largest length.
    pub fn max(&self) -> u32 {
        match self {
            Blocks::Range(_, hi) => *hi,
            Blocks::Split(all) => all.iter().map(|b| b.0).max().unwrap_or(4096),
        }
    }
    /// Whether all calls have the same length.
    pub fn fixed(&self) -> bool {
        self.min() == self.max()
    }
}

/// How the next file is chosen (file_service_type).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// In turn, with this number of calls per file.
    RoundRobin(u64),
    /// The next file when one is finished.
    Sequential,
    /// A random file, with this number of calls per file.
    Random(u64),
}

/// Advice to the kernel about future access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// No advice.
    None,
    /// According to the pattern.
    Pattern,
    /// Sequential, for any pattern.
    Sequential,
    /// Random, for any pattern.
    Random,
}

/// Distribution of random places.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Uniform.
    #[default]
    Uniform,
    /// Zipf with this theta: block k has weight 1/k^theta.
    Zipf(f64),
    /// Pareto: this share of the places gets the rest of the calls, recursively.
    Pareto(f64),
    /// Normal: the standard deviation in per cent of the file.
    Normal(f64),
    /// Zones from the file's start: (per cent of the calls, per cent of the file).
    Zoned(Vec<(f64, f64)>),
}

/// Whether the engine makes one call at a time or keeps a depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// sync, psync, vsync, pvsync, mmap.
    #[default]
    Sync,
    /// libaio, io_uring, posixaio.
    Async,
}

/// A job; sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name of its section.
    pub name: String,
    /// rw
    pub pattern: Pattern,
    /// rwmixread: share of reads, per cent.
    pub mix_read: u32,
    /// Lengths of reads, writes and discards.
    pub blocks: [Blocks; 3],
    /// Total bytes of all files' regions; 0: determined by `filesize`, or a whole raw device.
    pub size: u64,
    /// Bytes of each file.
    pub filesize: Option<u64>,
    /// Bytes to move; `None`: as many as `size`.
    pub io_size: Option<u64>,
    /// Start of the region.
    pub offset: u64,
    /// Greatest number of calls.
    pub number_ios: Option<u64>,
    /// Number of clones.
    pub numjobs: u32,
    /// Number of files per clone.
    pub nrfiles: u32,
    /// Names of files shared by all clones. If empty, each clone has its own files.
    pub filenames: Vec<String>,
    /// Runs on the run's raw device (filename=/dev/NAME) instead of files.
    pub raw: bool,
    /// How the next file is chosen.
    pub service: Service,
    /// Allocate blocks before writing (fallocate).
    pub fallocate: bool,
    /// Write the files once before the run.
    pub overwrite: bool,
    /// ioengine
    pub engine: Engine,
    /// iodepth
    pub depth: u32,
    /// Number of calls submitted at a time (iodepth_batch).
    pub batch: u32,
    /// Number of completions awaited at a time (iodepth_batch_complete_min).
    pub batch_complete: u32,
    /// Once full, reap until this number of calls is outstanding (iodepth_low); `None`: the depth.
    pub low: Option<u32>,
    /// O_DIRECT.
    pub direct: bool,
    /// O_SYNC.
    pub sync: bool,
    /// O_DSYNC.
    pub dsync: bool,
    /// fsync after this number of writes; 0: never.
    pub fsync: u64,
    /// fdatasync after this number of writes; 0: never.
    pub fdatasync: u64,
    /// fsync after the last write.
    pub end_fsync: bool,
    /// fsync at each close.
    pub fsync_on_close: bool,
    /// Advice about sequential or random access.
    pub fadvise_hint: Hint,
    /// Drop the files' pages before the start.
    pub invalidate: bool,
    /// Greatest rate of each direction, bytes per second.
    pub rate: [Option<u64>; 3],
    /// Greatest rate of each direction, calls per second.
    pub rate_iops: [Option<u64>; 3],
    /// Length of a pause.
    pub thinktime: Nanos,
    /// Number of calls before each pause.
    pub thinktime_blocks: u64,
    /// Longest time.
    pub runtime: Option<Nanos>,
    /// Repeat until the time is up.
    pub time_based: bool,
    /// Initial time that is not measured.
    pub ramp_time: Nanos,
    /// Delay before the first call.
    pub startdelay: Nanos,
    /// Wait for the previous jobs.
    pub stonewall: bool,
    /// The end of this job ends all jobs.
    pub exitall: bool,
    /// Number of passes over the region.
    pub loops: u64,
    /// random_distribution
    pub distribution: Distribution,
    /// Random places may repeat before all have been used.
    pub norandommap: bool,
    /// ioprio
    pub prio: IoPrio,
    /// nice
    pub nice: i8,
    /// Weight of the job's own cgroup.
    pub cgroup_weight: Option<u32>,
}

impl Default for Job {
    /// fio's defaults.
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

/// A job file.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// Its name, without directories and suffix.
    pub name: String,
    /// The jobs, at least one.
    pub jobs: Vec<Job>,
    /// Warnings about ignored options and other differences.
    pub warnings: Vec<String>,
}

impl Job {
    /// Number of files per clone.
    pub fn files(&self) -> u64 {
        match self.filenames.len() {
            0 => u64::from(self.nrfiles),
            n => n as u64,
        }
    }
    /// Bytes of each file's region; 0 for a whole raw device, whose size is unknown here.
    pub fn each(&self) -> u64 {
        self.filesize.unwrap_or(self.size / self.files())
    }
    /// Whether the job has calls of this direction.
    pub fn does(&self, dir: Dir) -> bool {
        match dir {
            Dir::Read => self.pattern.reads,
            Dir::Write => self.pattern.writes,
            Dir::Trim => self.pattern.trims,
        }
    }
    /// The smallest length of any call; places are multiples of it.
    pub fn smallest(&self) -> u32 {
        let of = |d: Dir| self.does(d).then(|| self.blocks[d as usize].min());
        let all = [Dir::Read, Dir::Write, Dir::Trim]
            .into_iter()
            .filter_map(of);
        all.min().unwrap_or(4096)
    }
}

impl JobFile {
    /// Whether the jobs use the raw device; either all or none do.
    pub fn raw(&self) -> bool {
        self.jobs.iter().any(|j| j.raw)
    }
    /// Total bytes of all files.
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
