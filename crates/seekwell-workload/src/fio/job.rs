//! A job of a fio file, with fio's defaults.

use seekwell_core::{Class, IoPrio, Nanos};

/// What a job does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Reads.
    pub reads: bool,
    /// Writes.
    pub writes: bool,
    /// At random places.
    pub random: bool,
}

/// How random places are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Uniform.
    #[default]
    Uniform,
    /// Zipf of this theta: block k with weight 1/k^theta.
    Zipf(f64),
    /// Pareto of this power.
    Pareto(f64),
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
    /// Smallest and largest block of reads.
    pub read_block: (u32, u32),
    /// And of writes.
    pub write_block: (u32, u32),
    /// Bytes of the region, over all files.
    pub size: u64,
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
    /// Shared by all clones; without it each has files of its own.
    pub filename: Option<String>,
    /// ioengine
    pub engine: Engine,
    /// iodepth
    pub depth: u32,
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
    pub fadvise_hint: bool,
    /// Drop the files' pages before the start.
    pub invalidate: bool,
    /// Bytes a second at most.
    pub rate: Option<u64>,
    /// Calls a second at most.
    pub rate_iops: Option<u64>,
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
            read_block: (4096, 4096),
            write_block: (4096, 4096),
            size: 0,
            io_size: None,
            offset: 0,
            number_ios: None,
            numjobs: 1,
            nrfiles: 1,
            filename: None,
            engine: Engine::Sync,
            depth: 1,
            direct: false,
            sync: false,
            dsync: false,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            fsync_on_close: false,
            fadvise_hint: true,
            invalidate: true,
            rate: None,
            rate_iops: None,
            thinktime: Nanos::ZERO,
            thinktime_blocks: 1,
            runtime: None,
            time_based: false,
            ramp_time: Nanos::ZERO,
            startdelay: Nanos::ZERO,
            stonewall: false,
            loops: 1,
            distribution: Distribution::Uniform,
            norandommap: false,
            prio: IoPrio {
                class: Class::None,
                level: 0,
            },
            nice: 0,
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

impl JobFile {
    /// Bytes of all files.
    pub fn space(&self) -> u64 {
        let of = |j: &Job| {
            let clones = if j.filename.is_some() {
                1
            } else {
                u64::from(j.numjobs)
            };
            j.size.saturating_add(j.offset).saturating_mul(clones)
        };
        self.jobs.iter().map(of).fold(0, u64::saturating_add)
    }
}
