//! A parsed job file, and the sizes that follow from the options of a job.

use super::job::{Amount, Dir, Job};
use seekwell_core::{NSEC_PER_SEC, Nanos};
use std::collections::BTreeMap;

/// A parsed job file.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// Name of the file, without directories and suffix.
    pub name: String,
    /// The jobs; at least one.
    pub jobs: Vec<Job>,
    /// Warnings about ignored options and other differences.
    pub warnings: Vec<String>,
    /// The first setting, if any, with which fio itself would use files outside its directory, or
    /// would run other programs. Empty: none.
    pub outside: Option<String>,
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
        let size = self.size.map_or(0, Amount::bytes);
        self.filesize.unwrap_or(size / self.files().max(1))
    }
    /// Returns the number of bytes that the run needs in each file.
    pub fn length(&self) -> u64 {
        let clones = u64::from(self.numjobs.max(1)) - 1;
        let more = self.offset_increment.bytes().saturating_mul(clones);
        let start = self.offset.bytes().saturating_add(more);
        self.each().saturating_add(start)
    }
    /// Returns the job of one clone on a file or device of `whole` bytes. All amounts are numbers
    /// of bytes.
    pub fn resolved(&self, whole: u64, clone: u32) -> Job {
        let zone = self.zones.map_or(0, |z| z.range);
        let of = |a: Amount| a.of(whole, zone);
        let more = of(self.offset_increment).saturating_mul(u64::from(clone));
        Job {
            size: self.size.map(|s| Amount::Bytes(of(s))),
            io_size: self.io_size.map(|s| Amount::Bytes(of(s))),
            offset: Amount::Bytes(of(self.offset).saturating_add(more)),
            offset_increment: Amount::Bytes(0),
            ..self.clone()
        }
    }
    /// Returns true if the job makes calls of this direction.
    pub fn does(&self, dir: Dir) -> bool {
        match dir {
            Dir::Read => self.pattern.reads,
            Dir::Write => self.pattern.writes,
            Dir::Trim => self.pattern.trims,
        }
    }
    /// Returns the number of bytes of which all random positions are multiples.
    pub fn unit(&self) -> u32 {
        let of = |d: Dir| {
            let align = self.align[d as usize];
            let least = self.blocks[d as usize].min();
            self.does(d)
                .then_some(if align > 0 { align } else { least })
        };
        let all = [Dir::Read, Dir::Write, Dir::Trim].into_iter();
        all.filter_map(of).min().unwrap_or(4096)
    }
    /// Returns the smallest length of any call.
    pub fn smallest(&self) -> u32 {
        let of = |d: Dir| self.does(d).then(|| self.blocks[d as usize].min());
        let all = [Dir::Read, Dir::Write, Dir::Trim]
            .into_iter()
            .filter_map(of);
        all.min().unwrap_or(4096)
    }
}

/// Time of a run from which the user is told the time before it starts.
const LONG: Nanos = Nanos(60 * NSEC_PER_SEC);

/// Number of bytes of a run from which the user is told the number before it starts.
const MUCH: u64 = 32 << 30;

impl JobFile {
    /// Returns the longest time that the jobs take, from their delays and time limits. `None` if a
    /// job has no time limit.
    pub fn longest(&self) -> Option<Nanos> {
        let mut wall = Nanos::ZERO;
        let mut ends: Vec<Nanos> = Vec::new();
        for job in &self.jobs {
            if job.stonewall {
                wall = ends.iter().copied().max().unwrap_or(wall).max(wall);
            }
            let named = |name: &String| {
                self.jobs[..ends.len()]
                    .iter()
                    .rposition(|j| j.name == *name)
            };
            let waits = job.wait_for.as_ref().and_then(named);
            let start = waits.map_or(wall, |at| ends[at].max(wall));
            let own = [job.startdelay, job.ramp_time, job.runtime?];
            let end = own.iter().fold(start.0, |sum, n| sum.saturating_add(n.0));
            ends.push(Nanos(end));
        }
        ends.into_iter().max()
    }
    /// Returns the number of bytes that the jobs transfer if no time limit ends them. `None` if it
    /// depends on the device.
    fn bytes(&self) -> Option<u64> {
        let mut sum = 0u64;
        for job in &self.jobs {
            let Some(Amount::Bytes(pass)) = job.io_size.or(job.size) else {
                return None;
            };
            let all = pass
                .saturating_mul(job.loops)
                .saturating_mul(u64::from(job.numjobs));
            sum = sum.saturating_add(all);
        }
        Some(sum)
    }
    /// Returns what the user is told about a long job before it starts.
    pub fn length_note(&self) -> Option<String> {
        let files = self.space();
        let first = match files >= MUCH {
            true => format!(", after it has made files of {} GiB", files >> 30),
            false => String::new(),
        };
        match (self.longest(), self.bytes()) {
            (Some(t), _) if t >= LONG => {
                let exact = self.jobs.iter().all(|j| j.time_based);
                let bound = if exact { "" } else { "up to " };
                let seconds = t.0 / NSEC_PER_SEC;
                let time = match seconds % 60 {
                    0 => format!("{} min", seconds / 60),
                    s => format!("{} min {s} s", seconds / 60),
                };
                Some(format!(
                    "{}: each run measures {bound}{time}{first}",
                    self.name
                ))
            }
            (None, Some(n)) if n >= MUCH => Some(format!(
                "{}: each run transfers {} GiB{first}; add runtime for a shorter run",
                self.name,
                n >> 30
            )),
            _ if !first.is_empty() => Some(format!("{}: each run starts{first}", self.name)),
            _ => None,
        }
    }
    /// Returns true if the jobs use the raw device. Either all jobs or no jobs use it.
    pub fn raw(&self) -> bool {
        self.jobs.iter().any(|j| j.raw)
    }
    /// Returns the total size of all files.
    pub fn space(&self) -> u64 {
        // Jobs and clones with the same file names share the files.
        let mut shared: BTreeMap<&str, u64> = BTreeMap::new();
        let mut own = 0u64;
        for job in self.jobs.iter().filter(|j| !j.raw) {
            for name in &job.filenames {
                let length = shared.entry(name).or_default();
                *length = job.length().max(*length);
            }
            if job.filenames.is_empty() {
                let clones = u64::from(job.numjobs);
                let all = job.length().saturating_mul(job.files());
                own = own.saturating_add(all.saturating_mul(clones));
            }
        }
        shared.into_values().fold(own, u64::saturating_add)
    }
}
