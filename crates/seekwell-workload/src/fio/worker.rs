//! The state of a task: when the next call is due, and which sync precedes it.

use super::figures::word;
use super::flow::{Depth, Member};
use super::job::{Dir, Engine, Job};
use super::places::{Call, Places};
use super::run::Section;
use crate::fail::{Context, Outcome};
use crate::machine::{AioOp, AioRequest, Fd, Machine};
use crate::note::Running;
use crate::scripts::common::*;
use seekwell_core::{Advice, Errno, Instant, NSEC_PER_SEC, Nanos, SyncRange};

/// CPU time of a call of the engine null. The call does nothing else.
const NULL_CALL: Nanos = Nanos(1_000);

/// Shortest pause of a job that is ahead of its share of a flow.
const FLOW_PAUSE: Nanos = Nanos(20_000);

/// A sync that must precede the next call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Fsync,
    Fdatasync,
    Range(SyncRange),
}

pub(super) struct Worker {
    pub job: Job,
    pub places: Places,
    pub section: Section,
    pub start: Instant,
    /// Sum of the pauses.
    pub paused: Nanos,
    /// End of the last pause, or start of the job.
    pub pause_ended: Instant,
    /// Times of the next calls of each direction, if the intervals are random.
    pub due: [Instant; 3],
    /// True if the last call was a sync, or if there was no call yet.
    pub synced: bool,
    /// True if a write found no more space, and the job fills the device.
    pub full: bool,
    /// File, start and end of the writes since the last sync_file_range.
    pub changed: Option<(Fd, u64, u64)>,
    pub flow: Member,
    pub depth: Depth,
}

impl Worker {
    pub(super) fn more<M: Machine>(&self, m: &M) -> bool {
        let until = |r: Nanos| m.now() < self.start + r + self.job.ramp_time;
        self.job.runtime.is_none_or(until)
            && !self.full
            && !self.depth.found()
            && !self.section.over()
            && self.places.more(&self.job)
    }

    /// Counts a completed call, unless it began during the ramp time.
    pub(super) fn count<M: Machine>(&mut self, m: &mut M, op: Running, dir: Dir, len: u32) {
        let now = m.now();
        self.depth.count(now, now.since(op.since));
        if op.since < self.start + self.job.ramp_time {
            return;
        }
        let (bytes, begin) = (u64::from(len), op.since);
        self.section.total.with(|t| t.count(dir, bytes, begin, now));
        self.section.steady.with(|s| s.count(now, bytes));
        m.op_end(op, bytes);
    }

    /// Returns the sync that must precede the next call.
    pub(super) fn sync_due(&self) -> Option<Due> {
        let n = self.places.of[Dir::Write as usize].0;
        let due = |every: u64| every > 0 && n > 0 && n.is_multiple_of(every);
        if self.synced {
            None
        } else if due(self.job.fsync) {
            Some(Due::Fsync)
        } else if due(self.job.fdatasync) {
            Some(Due::Fdatasync)
        } else {
            let (how, every) = self.job.sync_range?;
            due(every).then_some(Due::Range(how))
        }
    }

    pub(super) async fn sync<M: Machine>(&mut self, m: &mut M, due: Due) -> Outcome {
        self.synced = true;
        let begin = m.now();
        if let Due::Range(how) = due {
            if let Some((fd, from, to)) = self.changed.take() {
                let done = m.sync_range(fd, from, to - from, how).await;
                done.doing(|| "sync_file_range")?;
            }
            return Ok(());
        }
        let fd = self.places.file(m, &self.job);
        match due {
            Due::Fdatasync => fdatasync(m, fd, &self.job.name).await?,
            _ => fsync(m, fd, &self.job.name).await?,
        }
        if begin >= self.start + self.job.ramp_time {
            let took = m.now().since(begin).0;
            self.section.total.with(|t| {
                let of = match due {
                    Due::Fdatasync => &mut t.fdatasync,
                    _ => &mut t.fsync,
                };
                of.get_or_insert_default().record(took);
            });
        }
        Ok(())
    }

    pub(super) fn next<M: Machine>(&mut self, m: &mut M) -> Call {
        self.synced = false;
        let call = self.places.next(m, &self.job);
        self.depth.begin();
        let d = call.dir as usize;
        if call.dir == Dir::Write && self.job.sync_range.is_some() {
            let (from, to) = (call.off, call.off + u64::from(call.len));
            self.changed = match self.changed {
                Some((fd, a, b)) if fd == call.fd => Some((fd, a.min(from), b.max(to))),
                _ => Some((call.fd, from, to)),
            };
        }
        if self.job.poisson {
            let bytes =
                self.job.rate[d].map(|r| u128::from(call.len) * 1_000_000_000 / u128::from(r));
            let calls = self.job.rate_iops[d].map(|r| u128::from(NSEC_PER_SEC / r.max(1)));
            if let Some(mean) = bytes.max(calls).and_then(|n| u64::try_from(n).ok()) {
                self.due[d] = self.due[d] + exponential(m, Nanos(mean));
            }
        }
        call
    }

    /// Returns true if the job has made more than its share of the calls of its flow. Otherwise,
    /// the next call is counted.
    pub(super) fn ahead(&mut self) -> bool {
        let flow = &mut self.flow;
        self.section.flows.with(|f| f.ahead(flow))
    }

    /// Pauses, because the job is ahead of its share.
    pub(super) async fn fall_back<M: Machine>(&self, m: &mut M) -> Outcome {
        let pause = self
            .job
            .flow
            .map_or(FLOW_PAUSE, |f| f.sleep.max(FLOW_PAUSE));
        m.sleep(pause).await.doing(|| "flow")
    }

    /// Waits until the rate limits permit the next call.
    pub(super) async fn pace<M: Machine>(&self, m: &mut M) -> Outcome {
        let start = match self.job.rate_without_thinktime {
            true => self.start + self.paused,
            false => self.start,
        };
        let after = |n: u64, per_second: u64| {
            let ns = u128::from(n) * u128::from(NSEC_PER_SEC) / u128::from(per_second.max(1));
            start + Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
        };
        let mut at = self.start;
        for (i, (ios, bytes)) in self.places.of.into_iter().enumerate() {
            if self.job.poisson {
                at = at.max(self.due[i]);
                continue;
            }
            if let Some(r) = self.job.rate_iops[i] {
                at = at.max(after(ios, r));
            }
            if let Some(r) = self.job.rate[i] {
                at = at.max(after(bytes, r));
            }
        }
        // The end of the job is not delayed.
        let end = self
            .job
            .runtime
            .map(|r| self.start + r + self.job.ramp_time);
        let at = end.map_or(at, |end| at.min(end));
        let now = m.now();
        if at > now {
            m.sleep(at.since(now)).await.doing(|| "rate")?;
        }
        Ok(())
    }

    /// Pauses after every `thinktime_blocks` calls, even after the last call, or after every
    /// `thinktime_iotime`.
    pub(super) async fn think<M: Machine>(&mut self, m: &mut M) -> Outcome {
        let due = match self.job.thinktime_iotime {
            Nanos::ZERO => self.places.ios.is_multiple_of(self.job.thinktime_blocks),
            every => m.now() >= self.pause_ended + every,
        };
        if self.job.thinktime > Nanos::ZERO && due {
            m.sleep(self.job.thinktime).await.doing(|| "thinktime")?;
            self.paused += self.job.thinktime;
            self.pause_ended = m.now();
        }
        Ok(())
    }
}

/// Makes one call and waits until it completes.
pub(super) async fn make_call<M: Machine>(m: &mut M, w: &mut Worker, call: Call) -> Outcome {
    let op = m.op_begin(word(call.dir));
    let len = u64::from(call.len);
    let all = |done: Result<(), Errno>| done.map(|()| call.len);
    let done = match (w.job.engine, call.dir) {
        (Engine::Null, _) => all(m.compute(NULL_CALL).await),
        (Engine::Truncate, Dir::Read | Dir::Write) => {
            all(m.truncate(call.fd, call.off + len).await)
        }
        (Engine::Falloc, Dir::Read | Dir::Write) => all(m.fallocate(call.fd, call.off, len).await),
        (_, Dir::Read) => m.read(call.fd, call.off, call.len).await,
        (_, Dir::Write) => m.write(call.fd, call.off, call.len).await,
        (_, Dir::Trim) if w.job.raw => all(m.discard(call.fd, call.off, len).await),
        // A punched hole is not modelled. Its pages leave the cache.
        (_, Dir::Trim) => all(m.fadvise(call.fd, call.off, len, Advice::DontNeed).await),
    };
    if done == Err(Errno::ENOSPC) && w.job.fill_device {
        w.full = true;
        return Ok(());
    }
    let n = done.doing(|| format!("{} {} bytes at {}", op.kind, call.len, call.off))?;
    w.count(m, op, call.dir, n);
    Ok(())
}

/// Makes the request of a call.
pub(super) fn request(fd: Fd, call: Call, tag: u64) -> AioRequest {
    AioRequest {
        fd,
        op: match call.dir {
            Dir::Write => AioOp::Write,
            Dir::Read | Dir::Trim => AioOp::Read,
        },
        off: call.off,
        len: call.len,
        tag,
    }
}
