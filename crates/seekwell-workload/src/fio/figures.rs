//! The metrics that decide a comparison with a job file. Each section of the file is one reporting
//! group, and each direction of a section has its own metrics.
//!
//! | direction of a section | metrics |
//! |---|---|
//! | paced by `rate`, `rate_iops` or `thinktime`, or one call at a time | mean and 99th percentile of the latency |
//! | several calls at a time, or a stream through the page cache | throughput |
//! | `fsync` or `fdatasync` after some writes | also the 99th percentile of that call |
//!
//! Throughput is IOPS for random calls of less than 64 KiB, and bandwidth otherwise.

use super::job::{Dir, Engine, Job};
use super::jobfile::JobFile;
use seekwell_core::Nanos;
use std::borrow::Cow;

/// Minimum size, in bytes, of random calls whose throughput is given as bandwidth.
const LARGE: u32 = 64 << 10;

/// The quantity of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Calls per second.
    Iops(Dir),
    /// MiB per second.
    Bandwidth(Dir),
    /// Mean latency in ms.
    Mean(Dir),
    /// 99th percentile of the latency in ms.
    P99(Dir),
    /// 99th percentile of the latency of fsync in ms.
    FsyncP99,
    /// 99th percentile of the latency of fdatasync in ms.
    FdatasyncP99,
}

/// A metric of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Index of the section in [`JobFile::jobs`].
    pub section: usize,
    /// Quantity of the metric.
    pub kind: Kind,
    /// Name of the metric, for example "reader read p99". Without the name of the section if there
    /// is only one section.
    pub name: Cow<'static, str>,
}

/// Returns the name of a direction.
pub(super) fn word(dir: Dir) -> &'static str {
    match dir {
        Dir::Read => "read",
        Dir::Write => "write",
        Dir::Trim => "trim",
    }
}

impl Kind {
    /// Returns the unit of the metric.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Iops(_) => "I/Os/s",
            Kind::Bandwidth(_) => "MiB/s",
            _ => "ms",
        }
    }
    /// Returns true if a larger value is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Kind::Iops(_) | Kind::Bandwidth(_))
    }
    /// Returns the kind of operation that is measured.
    pub fn operation(self) -> &'static str {
        match self {
            Kind::Iops(d) | Kind::Bandwidth(d) | Kind::Mean(d) | Kind::P99(d) => word(d),
            Kind::FsyncP99 => "fsync",
            Kind::FdatasyncP99 => "fdatasync",
        }
    }
    fn text(self) -> String {
        let what = match self {
            Kind::Iops(_) => "IOPS",
            Kind::Bandwidth(_) => "bandwidth",
            Kind::Mean(_) => "mean",
            Kind::P99(_) | Kind::FsyncP99 | Kind::FdatasyncP99 => "p99",
        };
        format!("{} {what}", self.operation())
    }
}

/// Returns true if a call of this direction waits for the device, so that users notice its latency.
fn waits(job: &Job, dir: Dir) -> bool {
    let d = dir as usize;
    if job.thinktime > Nanos::ZERO || job.rate[d].is_some() || job.rate_iops[d].is_some() {
        return true;
    }
    let one_at_a_time = job.engine != Engine::Async || job.depth <= 1;
    // Writes go to the page cache, and read-ahead serves a sequential reader.
    let streams = !job.direct
        && match dir {
            Dir::Write => !job.sync && !job.dsync,
            _ => !job.pattern.random,
        };
    one_at_a_time && !streams
}

/// Returns the deciding metrics of a section, as in the table of this module.
pub(super) fn of_section(job: &Job) -> Vec<Kind> {
    match job.engine {
        Engine::Cpu => return Vec::new(),
        // These calls have no length.
        Engine::Files(_) => return vec![Kind::Iops(Dir::Read)],
        _ => {}
    }
    let mut all = Vec::new();
    if job.pattern.writes {
        all.extend((job.fsync > 0).then_some(Kind::FsyncP99));
        all.extend((job.fdatasync > 0).then_some(Kind::FdatasyncP99));
    }
    for dir in [Dir::Read, Dir::Write, Dir::Trim]
        .into_iter()
        .filter(|d| job.does(*d))
    {
        if dir != Dir::Trim && waits(job, dir) {
            all.extend([Kind::Mean(dir), Kind::P99(dir)]);
        } else if job.pattern.random && job.blocks[dir as usize].max() < LARGE {
            all.push(Kind::Iops(dir));
        } else {
            all.push(Kind::Bandwidth(dir));
        }
    }
    all
}

/// Returns the metrics of a direction that every section reports, deciding or not.
pub(super) fn each_direction(dir: Dir) -> [Kind; 4] {
    [
        Kind::Iops(dir),
        Kind::Bandwidth(dir),
        Kind::Mean(dir),
        Kind::P99(dir),
    ]
}

impl JobFile {
    /// Returns the deciding metrics of the file, by section. A direction without calls in a run has
    /// no value.
    pub fn figures(&self) -> Vec<Figure> {
        let all = self.jobs.iter().enumerate();
        let of = |(section, job): (usize, &Job)| {
            let kinds = of_section(job).into_iter();
            kinds.map(move |kind| (section, kind)).collect::<Vec<_>>()
        };
        let all = all.flat_map(of);
        all.map(|(section, kind)| self.figure(section, kind))
            .collect()
    }

    /// Returns all metrics that a run can report for the sections of the file, deciding or not.
    pub fn all_figures(&self) -> Vec<Figure> {
        let mut all = self.figures();
        for (section, job) in self.jobs.iter().enumerate() {
            let dirs = [Dir::Read, Dir::Write, Dir::Trim].into_iter();
            for kind in dirs.filter(|d| job.does(*d)).flat_map(each_direction) {
                let figure = self.figure(section, kind);
                if !all.contains(&figure) {
                    all.push(figure);
                }
            }
        }
        all
    }

    /// Makes a metric of a section, with its name.
    pub(super) fn figure(&self, section: usize, kind: Kind) -> Figure {
        let name = match self.jobs.len() {
            1 => kind.text(),
            _ => format!("{} {}", self.title_of(section), kind.text()),
        };
        Figure {
            section,
            kind,
            name: name.into(),
        }
    }

    /// Returns the name of a section. If two sections have the same name, the second gets a number.
    fn title_of(&self, section: usize) -> String {
        let name = &self.jobs[section].name;
        let before = self.jobs[..section]
            .iter()
            .filter(|j| j.name == *name)
            .count();
        match before {
            0 => name.clone(),
            n => format!("{name} ({})", n + 1),
        }
    }
}
