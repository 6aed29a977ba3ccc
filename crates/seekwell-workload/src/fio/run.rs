//! The script that runs a fio job file.

use super::figures::{Figure, Kind, each_direction};
use super::files;
use super::flow::{Flows, Steadiness};
use super::job::{Dir, Engine, ExitWhat, Job};
use super::jobfile::JobFile;
use super::task::task;
use crate::fail::{Context, Outcome};
use crate::machine::{Channel, How, Machine};
use crate::note::Mark;
use crate::scripts::common::*;
use seekwell_core::result::Latency;
use seekwell_core::{CgroupId, Errno, Instant, OpenFlags};
use std::collections::BTreeSet;

/// Totals over the clones of a section, without the ramp times.
#[derive(Clone, Default)]
pub(super) struct Total {
    /// Number of calls and number of bytes, by direction.
    of: [(u64, u64); 3],
    /// Latencies of the calls, by direction.
    latency: [Option<Box<Latency>>; 3],
    pub fsync: Option<Box<Latency>>,
    pub fdatasync: Option<Box<Latency>>,
    pub first: Option<Instant>,
    pub last: Option<Instant>,
}

impl Total {
    /// Counts a call that lasted from `begin` to `end`.
    pub(super) fn count(&mut self, dir: Dir, bytes: u64, begin: Instant, end: Instant) {
        let d = dir as usize;
        self.of[d] = (self.of[d].0 + 1, self.of[d].1 + bytes);
        let latency = self.latency[d].get_or_insert_default();
        latency.record(end.since(begin).0);
        self.first = [self.first, Some(begin)].into_iter().flatten().min();
        self.last = self.last.max(Some(end));
    }
    fn seconds(&self) -> Option<f64> {
        Some(self.last?.since(self.first?).as_secs_f64())
    }
    /// Returns the value of a metric, or `None` if there were no such operations.
    fn value(&self, kind: Kind) -> Option<f64> {
        let ms = |l: &Option<Box<Latency>>, f: fn(&Latency) -> f64| Some(f(l.as_ref()?) / 1e6);
        let p99 = |l: &Latency| l.percentile_ns(99.0) as f64;
        let of = |d: Dir| self.of[d as usize];
        match kind {
            Kind::Iops(d) | Kind::Bandwidth(d) if of(d).0 == 0 => None,
            Kind::Iops(d) => Some(rate(of(d).0 as f64, self.seconds()?)),
            Kind::Bandwidth(d) => Some(rate(mib(of(d).1), self.seconds()?)),
            Kind::Mean(d) => ms(&self.latency[d as usize], Latency::mean_ns),
            Kind::P99(d) => ms(&self.latency[d as usize], p99),
            Kind::FsyncP99 => ms(&self.fsync, p99),
            Kind::FdatasyncP99 => ms(&self.fdatasync, p99),
        }
    }
}

/// The jobs that were ended by jobs with the option exitall.
#[derive(Default)]
struct Ended {
    all: bool,
    groups: BTreeSet<u32>,
    walls: BTreeSet<u32>,
}

/// State that the tasks of a section share.
#[derive(Clone)]
pub(super) struct Section {
    pub total: Shared<Total>,
    ended: Shared<Ended>,
    /// Number of the reporting group, and number of stone walls above the section.
    at: (u32, u32),
    pub flows: Shared<Flows>,
    pub steady: Shared<Steadiness>,
    /// The section for which this section waits.
    pub after: Option<Channel>,
    /// Number of clones that have not ended, and the channel that ends with the last of them.
    left: Shared<u32>,
    done: Channel,
}

impl Section {
    /// Returns true if another job has ended the jobs of this section, or if they are in the steady
    /// state.
    pub(super) fn over(&self) -> bool {
        let ended = self
            .ended
            .with(|e| e.all || e.groups.contains(&self.at.0) || e.walls.contains(&self.at.1));
        ended || self.steady.with(|s| s.reached())
    }
    /// Ends other jobs, because a job with the option exitall has ended.
    pub(super) fn end_others(&self, what: ExitWhat) {
        self.ended.with(|e| match what {
            ExitWhat::All => e.all = true,
            ExitWhat::Group => {
                e.groups.insert(self.at.0);
            }
            ExitWhat::Stonewall => {
                e.walls.insert(self.at.1);
            }
        });
    }
    /// Records the end of a clone. The jobs that wait for the section start after the last clone.
    pub(super) fn clone_ended<M: Machine>(&self, m: &mut M) {
        let left = self.left.with(|n| {
            *n -= 1;
            *n
        });
        if left == 0 {
            m.end_channel(self.done);
        }
    }
}

/// Runs a job file in the directory `dir`.
pub(crate) async fn run<M: Machine>(m: &mut M, file: &JobFile, dir: &str) -> Outcome {
    m.mark(Mark::Phase("lay out"));
    let mut told = false;
    for (n, job) in file.jobs.iter().enumerate().filter(|j| !j.1.raw) {
        for clone in 0..job.numjobs {
            for path in paths(dir, n, job, clone) {
                match job.engine {
                    Engine::Files(call) => files::prepare(m, call, &path).await?,
                    Engine::Cpu | Engine::Null => {}
                    _ => prepare(m, job, &path, &mut told).await?,
                }
            }
        }
    }
    if !file.raw() {
        m.syncfs().await.doing(|| "sync")?;
    }
    m.mark(Mark::ClockStart);
    let ended = Shared::new(Ended::default());
    let flows = Shared::new(Flows::default());
    let mut wall = 0;
    let mut sections: Vec<Section> = Vec::new();
    let mut outcome = Ok(());
    let mut group = Group::new();
    for (n, job) in file.jobs.iter().enumerate() {
        if job.stonewall {
            wall += 1;
            outcome = both(outcome, std::mem::take(&mut group).join(m).await);
        }
        let section = Section {
            total: Shared::new(Total::default()),
            ended: ended.clone(),
            at: (job.group, wall),
            flows: flows.clone(),
            steady: Shared::new(Steadiness::new(job.steady)),
            after: job.wait_for.as_ref().and_then(|name| {
                let before = file.jobs[..n].iter().rposition(|j| j.name == *name);
                before.map(|at| sections[at].done)
            }),
            left: Shared::new(job.numjobs),
            done: m.channel(1),
        };
        sections.push(section.clone());
        let cgroup = match job.cgroup_weight {
            Some(w) => {
                let made = m.cgroup(CgroupId::default(), w).await;
                made.doing(|| format!("make a cgroup of weight {w} for job {}", job.name))?
            }
            None => CgroupId::default(),
        };
        for clone in 0..job.numjobs {
            let files = paths(dir, n, job, clone);
            let (job, section) = (job.clone(), section.clone());
            let how = How {
                ioprio: job.prio,
                nice: job.nice,
                cgroup,
                ..How::named(format!("{}{n}.{clone}", job.name))
            };
            let started = group
                .spawn(m, how, move |m| task(m, job, clone, files, section))
                .await;
            outcome = both(outcome, started);
        }
    }
    outcome = both(outcome, group.join(m).await);
    let each: Vec<Total> = sections
        .iter()
        .map(|s| s.total.with(|t| t.clone()))
        .collect();
    report(m, file, &each);
    outcome
}

/// Reports the metrics of a run. First come the deciding metrics of each section, then the totals
/// of all jobs, then the other metrics of each section.
fn report<M: Machine>(m: &mut M, file: &JobFile, each: &[Total]) {
    let firsts = each.iter().filter_map(|t| t.first);
    let lasts = each.iter().filter_map(|t| t.last);
    let (Some(first), Some(last)) = (firsts.min(), lasts.max()) else {
        return;
    };
    let mut given: Vec<Figure> = Vec::new();
    for figure in file.figures() {
        if let Some(value) = each[figure.section].value(figure.kind) {
            if given.is_empty() {
                m.counts(figure.kind.operation());
            }
            tell(m, &figure, value);
            given.push(figure);
        }
    }
    let secs = last.since(first).as_secs_f64();
    let sum = |f: fn(&(u64, u64)) -> u64| each.iter().flat_map(|t| &t.of).map(f).sum::<u64>();
    m.metric("IOPS", "I/Os/s", rate(sum(|d| d.0) as f64, secs), true);
    m.metric("bandwidth", "MiB/s", rate(mib(sum(|d| d.1)), secs), true);
    for (section, total) in each.iter().enumerate() {
        for kind in [Dir::Read, Dir::Write, Dir::Trim]
            .into_iter()
            .flat_map(each_direction)
        {
            let figure = file.figure(section, kind);
            if let Some(value) = total.value(kind).filter(|_| !given.contains(&figure)) {
                tell(m, &figure, value);
            }
        }
    }
}

fn tell<M: Machine>(m: &mut M, figure: &Figure, value: f64) {
    let kind = figure.kind;
    m.metric_of(
        figure.name.clone(),
        kind.unit(),
        value,
        kind.higher_is_better(),
    );
}

/// Returns the paths of the files of a clone. They are the given names, or they follow the given
/// format, or they consist of the numbers of job, clone and file.
fn paths(dir: &str, n: usize, job: &Job, clone: u32) -> Vec<String> {
    if let (Some(format), true) = (&job.format, job.filenames.is_empty()) {
        let name = |f: u32| {
            let name = format.replace("$jobnum", &clone.to_string());
            let name = name.replace("$filenum", &f.to_string());
            name.replace("$clientuid", "")
        };
        return (0..job.nrfiles)
            .map(|f| format!("{dir}/{}", name(f)))
            .collect();
    }
    if job.filenames.is_empty() {
        return (0..job.nrfiles)
            .map(|f| format!("{dir}/job{n}.{clone}.{f}"))
            .collect();
    }
    let names = job.filenames.iter();
    names.map(|name| format!("{dir}/{name}")).collect()
}

/// Prepares a file. If the job reads or overwrites it, the file is written and synced. Otherwise,
/// its blocks are allocated. `told` becomes true when the warning is given that the file system
/// cannot preallocate, so that it is given only once.
async fn prepare<M: Machine>(m: &mut M, job: &Job, path: &str, told: &mut bool) -> Outcome {
    if job.whole_file {
        return Ok(());
    }
    let need = if job.fill_device { 0 } else { job.length() };
    let there = m.stat(path).await.map_or(0, |s| s.len);
    if need > 0 && there >= need {
        return Ok(());
    }
    let fd = open(m, path, OpenFlags::CREATE).await?;
    if job.fallocate && need > 0 {
        match m.fallocate(fd, 0, need).await {
            // ext3 cannot preallocate. fio warns and continues, and later the writes allocate the
            // blocks.
            Err(Errno::EOPNOTSUPP) => {
                if !std::mem::replace(told, true) {
                    m.mark(Mark::Other("goes on without fallocate"));
                }
            }
            done => done.doing(|| format!("give {need} bytes to {path}"))?,
        }
    }
    if job.pattern.reads || job.overwrite {
        let mut off = 0;
        while off < need {
            let len = size_of_call(1 << 20, need - off);
            let n = m.write(fd, off, len).await;
            off += u64::from(n.doing(|| format!("write {len} bytes at {off} of {path}"))?);
        }
        m.fsync(fd).await.doing(|| format!("fsync {path}"))?;
    }
    close(m, fd, path).await
}
