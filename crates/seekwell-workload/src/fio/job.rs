//! A job of a fio file, with fio's defaults.

use seekwell_core::{Class, IoPrio, Nanos};

/// What a call does. The order is that of fio's lists ("bs=4k,8k,64k").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dir {
    /// Reads.
    #[default]
    Read,
    /// Writes.
    Write,
    /// Discards; of a raw device only.
    Trim,
}

/// What a job does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Reads.
    pub reads: bool,
    /// Writes.
    pub writes: bool,
    /// Discards.
    pub trims: bool,
    /// Each block is discarded and then written.
    pub trims_first: bool,
    /// At random places.
    pub random: bool,
    /// Calls from one random place on, one behind the other (rw=randread:8); fewer than 2: each
    /// call has a place of its own.
    pub run: u32,
    /// Bytes left out behind each call of a sequential job (rw=read:8k).
    pub hole: u64,
    /// All calls of a run go to its first place (rw_sequencer=identical).
    pub identical: bool,
}

/// Lengths of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Smallest and largest, all equally often.
    Range(u32, u32),
    /// Bytes, and how often of a hundred calls (bssplit).
    Split(Vec<(u32, u32)>),
}

impl Blocks {
    /// The smallest: the grid on which random places lie.
    pub fn min(&self) -> u32 {
        match self {
            Blocks::Range(lo, _) => *lo,
            Blocks::Split(all) => all.iter().map(|b| b.0).min().unwrap_or(4096),
        }
    }
    /// The largest.
    pub fn max(&self) -> u32 {
        match self {
            Blocks::Range(_, hi) => *hi,
            Blocks::Split(all) => all.iter().map(|b| b.0).max().unwrap_or(4096),
        }
    }
    /// All of one length?
    pub fn fixed(&self) -> bool {
        self.min() == self.max()
    }
}

/// Which file the next call goes to (file_service_type).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// One after the other, after so many calls on one.
    RoundRobin(u64),
    /// The next one when one is done.
    Sequential,
    /// Any, after so many calls on one.
    Random(u64),
}

/// What the kernel is told about the access to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Nothing.
    None,
    /// What the pattern is.
    Pattern,
    /// Sequential, whatever it is.
    Sequential,
    /// Random, whatever it is.
    Random,
}

/// How random places are drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Uniform.
    #[default]
    Uniform,
    /// Zipf of this theta: block k with weight 1/k^theta.
    Zipf(f64),
    /// Pareto: this share of the places gets the rest of the calls, in it again, and so on.
    Pareto(f64),
    /// Normal: the deviation in per cent of the file.
    Normal(f64),
    /// Zones from the file's start: (per cent of the calls, per cent of the file).
    Zoned(Vec<(f64, f64)>),
}

/// One call at a time, or a depth.
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
    /// Its section.
    pub name: String,
    /// rw
    pub pattern: Pattern,
    /// rwmixread, per cent.
    pub mix_read: u32,
    /// Lengths of reads, writes and discards.
    pub blocks: [Blocks; 3],
    /// Bytes of the region, over all files; 0: of files of `filesize`, or a whole raw device.
    pub size: u64,
    /// Bytes of each file.
    pub filesize: Option<u64>,
    /// Bytes to move; `None`: the size.
    pub io_size: Option<u64>,
    /// Where the region begins.
    pub offset: u64,
    /// Most calls.
    pub number_ios: Option<u64>,
    /// Clones.
    pub numjobs: u32,
    /// Files of a clone.
    pub nrfiles: u32,
    /// Shared by all clones; without them each has files of its own.
    pub filenames: Vec<String>,
    /// On the raw device of the run (filename=/dev/NAME) instead of files.
    pub raw: bool,
    /// Which file is next.
    pub service: Service,
    /// Blocks are given to files before they are written (fallocate).
    pub fallocate: bool,
    /// Files are there before they are written.
    pub overwrite: bool,
    /// ioengine
    pub engine: Engine,
    /// iodepth
    pub depth: u32,
    /// Calls submitted at a time (iodepth_batch).
    pub batch: u32,
    /// Completions waited for at a time (iodepth_batch_complete_min).
    pub batch_complete: u32,
    /// Once full, reap until so few are outstanding (iodepth_low); `None`: the depth.
    pub low: Option<u32>,
    /// O_DIRECT.
    pub direct: bool,
    /// O_SYNC.
    pub sync: bool,
    /// O_DSYNC.
    pub dsync: bool,
    /// fsync after so many writes; 0: never.
    pub fsync: u64,
    /// fdatasync after so many writes; 0: never.
    pub fdatasync: u64,
    /// fsync at the end of writing.
    pub end_fsync: bool,
    /// fsync at each close.
    pub fsync_on_close: bool,
    /// Tell the kernel about sequential or random access.
    pub fadvise_hint: Hint,
    /// Drop the files' pages before the start.
    pub invalidate: bool,
    /// Bytes a second at most, of each direction.
    pub rate: [Option<u64>; 3],
    /// Calls a second at most, of each direction.
    pub rate_iops: [Option<u64>; 3],
    /// Pause, and after how many calls.
    pub thinktime: Nanos,
    /// After how many calls.
    pub thinktime_blocks: u64,
    /// Longest time.
    pub runtime: Option<Nanos>,
    /// Go on until the time is up, over and over.
    pub time_based: bool,
    /// Time before what is done counts.
    pub ramp_time: Nanos,
    /// Before the first call.
    pub startdelay: Nanos,
    /// Wait for the jobs before it.
    pub stonewall: bool,
    /// When this job ends, all end.
    pub exitall: bool,
    /// Passes over the region.
    pub loops: u64,
    /// random_distribution
    pub distribution: Distribution,
    /// Places may come again before all were visited.
    pub norandommap: bool,
    /// ioprio
    pub prio: IoPrio,
    /// nice
    pub nice: i8,
    /// Weight of a cgroup of the job's own.
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
    /// At least one.
    pub jobs: Vec<Job>,
    /// Options that were ignored, and what else to keep in mind.
    pub warnings: Vec<String>,
}

impl Job {
    /// Files of a clone.
    pub fn files(&self) -> u64 {
        match self.filenames.len() {
            0 => u64::from(self.nrfiles),
            n => n as u64,
        }
    }
    /// Bytes of each file's region; of a whole raw device nothing is known here.
    pub fn each(&self) -> u64 {
        self.filesize.unwrap_or(self.size / self.files())
    }
    /// Does it call for this?
    pub fn does(&self, dir: Dir) -> bool {
        match dir {
            Dir::Read => self.pattern.reads,
            Dir::Write => self.pattern.writes,
            Dir::Trim => self.pattern.trims,
        }
    }
    /// The smallest block of any call: places lie on multiples of it.
    pub fn smallest(&self) -> u32 {
        let of = |d: Dir| self.does(d).then(|| self.blocks[d as usize].min());
        let all = [Dir::Read, Dir::Write, Dir::Trim]
            .into_iter()
            .filter_map(of);
        all.min().unwrap_or(4096)
    }
}

impl JobFile {
    /// On the raw device: all jobs are, or none.
    pub fn raw(&self) -> bool {
        self.jobs.iter().any(|j| j.raw)
    }
    /// Bytes of all files.
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
