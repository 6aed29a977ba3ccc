//! A parsed job file, and the sizes that follow from the options of a job.

use super::job::{Amount, Dir, Job};

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
            j.length().saturating_mul(j.files()).saturating_mul(clones)
        };
        let files = self.jobs.iter().filter(|j| !j.raw);
        files.map(of).fold(0, u64::saturating_add)
    }
}
