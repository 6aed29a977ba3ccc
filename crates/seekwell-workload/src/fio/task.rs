//! A task of a job: opens the files, makes the calls, and closes the files.

use super::figures::word;
use super::files;
use super::flow::Depth;
use super::job::{Dir, Engine, Hint, Job};
use super::places::Places;
use super::priority::Helpers;
use super::run::Section;
use super::worker::{Worker, make_call, request};
use crate::fail::{Context, Fail, Outcome};
use crate::machine::{Aio, AioDone, AioRequest, Fd, Machine};
use crate::note::{Mark, Running};
use crate::scripts::common::*;
use seekwell_core::{Advice, Errno, Nanos, OpenFlags};

/// Runs a clone of a job.
pub(super) async fn task<M: Machine>(
    mut m: M,
    job: Job,
    clone: u32,
    files: Vec<String>,
    section: Section,
) -> Outcome {
    let m = &mut m;
    if let Some(after) = section.after {
        m.recv(after).await.doing(|| "wait_for")?;
    }
    m.sleep(job.startdelay).await.doing(|| "startdelay")?;
    let flow = section.flows.with(|f| f.join(job.flow));
    let ends = (job.exitall, job.exit_what);
    let outcome = match job.engine {
        _ if job.create_only => Ok(()),
        Engine::Files(call) => files::run(m, &job, call, &files, &section).await,
        Engine::Cpu => burn(m, &job, &section).await,
        _ => transfer(m, job, clone, &files, &section, flow).await,
    };
    section.flows.with(|f| f.leave(flow));
    outcome?;
    if ends.0 {
        section.end_others(ends.1);
    }
    section.clone_ended(m);
    let now = m.now();
    let total = &section.total;
    total.with(|t| t.last = t.first.map(|_| now).max(t.last));
    Ok(())
}

/// Uses a share of the CPU until the runtime has passed.
async fn burn<M: Machine>(m: &mut M, job: &Job, section: &Section) -> Outcome {
    let (load, chunk) = (u64::from(job.cpu.0.max(1)), job.cpu.1);
    let end = m.now() + job.runtime.unwrap_or_default();
    while m.now() < end && !section.over() {
        let op = m.op_begin("compute");
        m.compute(chunk).await.doing(|| "compute")?;
        m.op_end(op, 0);
        let pause = Nanos(chunk.0.saturating_mul(100 - load) / load);
        m.sleep(pause).await.doing(|| "cpuload")?;
    }
    Ok(())
}

/// Opens the files or the device of a job.
async fn open_all<M: Machine>(m: &mut M, job: &Job, files: &[String]) -> Outcome<Vec<Fd>> {
    let changes = job.pattern.writes || job.pattern.trims;
    let mut how = OpenFlags::empty();
    how.set(OpenFlags::DIRECT, job.direct);
    how.set(OpenFlags::SYNC, job.sync);
    how.set(OpenFlags::DSYNC, job.dsync);
    how.set(OpenFlags::CREATE, changes && !job.raw);
    how.set(OpenFlags::RDONLY, !changes);
    let mut fds = Vec::new();
    for path in files {
        let fd = match job.raw {
            true => m.open_device(how).await.doing(|| "open the device")?,
            false => open(m, path, how).await?,
        };
        if job.invalidate && !job.pre_read {
            drop_pages(m, fd, path).await?;
        }
        let hint = match job.fadvise_hint {
            Hint::None => None,
            Hint::Pattern if job.pattern.random => Some(Advice::Random),
            Hint::Pattern | Hint::Sequential => Some(Advice::Sequential),
            Hint::Random => Some(Advice::Random),
        };
        if let Some(hint) = hint {
            let done = m.fadvise(fd, 0, 0, hint).await;
            done.doing(|| format!("fadvise {path}"))?;
        }
        fds.push(fd);
    }
    Ok(fds)
}

async fn drop_pages<M: Machine>(m: &mut M, fd: Fd, path: &str) -> Outcome {
    let done = m.fadvise(fd, 0, 0, Advice::DontNeed).await;
    done.doing(|| format!("drop the cached pages of {path}"))
}

/// Returns the size of the region in each file, and the job with amounts in bytes.
async fn region<M: Machine>(m: &mut M, job: Job, clone: u32, fds: &[Fd]) -> Outcome<(Job, u64)> {
    let mut whole = 0;
    if job.raw || job.whole_file {
        whole = m
            .fstat(fds[0])
            .await
            .doing(|| "size of the device or file")?
            .len;
    }
    let job = job.resolved(whole, clone);
    if !(job.raw || job.whole_file) {
        let each = if job.fill_device && job.size.is_none() {
            1 << 43
        } else {
            job.each()
        };
        return Ok((job, each));
    }
    let offset = job.offset.bytes();
    let room = whole.saturating_sub(offset);
    if room < u64::from(job.unit()) {
        return Err(Fail {
            what: format!("job {}: offset {offset} of {whole} bytes", job.name),
            errno: Errno::ENOSPC,
        });
    }
    let each = job.each();
    // fio, too, uses only as much as the device has.
    if each > room {
        m.mark(Mark::Other(
            "the device has fewer bytes than the size of the job",
        ));
    }
    let each = if each == 0 { room } else { each.min(room) };
    Ok((job, each))
}

/// Makes the calls of a job that transfers data.
async fn transfer<M: Machine>(
    m: &mut M,
    job: Job,
    clone: u32,
    files: &[String],
    section: &Section,
    flow: super::flow::Member,
) -> Outcome {
    let changes = job.pattern.writes || job.pattern.trims;
    let fds = match job.engine {
        // The file of this engine is never used.
        Engine::Null => vec![Fd(u32::MAX); files.len()],
        _ => open_all(m, &job, files).await?,
    };
    let (job, each) = match job.engine {
        Engine::Null => {
            let each = job.each();
            (
                job.resolved(0, clone),
                if each == 0 { 1 << 30 } else { each },
            )
        }
        _ => region(m, job, clone, &fds).await?,
    };
    if job.pre_read {
        for (fd, path) in fds.iter().zip(files) {
            read_to_end(m, *fd, 1 << 20, path).await?;
        }
    }
    let start = m.now();
    let mut w = Worker {
        places: Places::new(&job, &fds, each),
        synced: true,
        full: false,
        start,
        paused: Nanos::ZERO,
        pause_ended: start,
        due: [start; 3],
        changed: None,
        flow,
        depth: Depth::new(&job, start),
        job,
        section: section.clone(),
    };
    match w.job.engine {
        Engine::Async if w.job.depth > 1 || w.job.priorities.is_some() => deep(m, &mut w).await?,
        _ => plain(m, &mut w).await?,
    }
    if w.job.engine == Engine::Null {
        return Ok(());
    }
    for (fd, path) in fds.iter().zip(files) {
        if w.job.fsync_on_close || (w.job.end_fsync && changes) {
            fsync(m, *fd, path).await?;
        }
        close(m, *fd, path).await?;
    }
    Ok(())
}

/// Drops the pages of the files whose next pass begins. A second pass is then as slow as the first.
async fn begin_passes<M: Machine>(m: &mut M, w: &mut Worker) -> Outcome {
    let again = w.places.passed();
    if w.job.invalidate && !w.job.direct && w.job.engine != Engine::Null {
        for fd in again {
            drop_pages(m, fd, &w.job.name).await?;
        }
    }
    Ok(())
}

async fn plain<M: Machine>(m: &mut M, w: &mut Worker) -> Outcome {
    while w.more(m) {
        if let Some(due) = w.sync_due() {
            w.sync(m, due).await?;
            continue;
        }
        if w.ahead() {
            w.fall_back(m).await?;
            continue;
        }
        w.pace(m).await?;
        let call = w.next(m);
        begin_passes(m, w).await?;
        make_call(m, w, call).await?;
        w.think(m).await?;
    }
    Ok(())
}

/// An asynchronous call in flight.
#[derive(Clone, Copy)]
struct Slot {
    op: Running,
    dir: Dir,
}

async fn deep<M: Machine>(m: &mut M, w: &mut Worker) -> Outcome {
    let depth = w.job.depth as usize;
    let aio = m.aio(w.job.depth).await.doing(|| "make a queue")?;
    let none = Slot {
        op: m.op_begin("read"),
        dir: Dir::Read,
    };
    let mut running: Vec<Slot> = vec![none; depth];
    let mut free: Vec<u64> = (0..w.job.depth.into()).rev().collect();
    let mut batch: Vec<AioRequest> = Vec::new();
    let mut done: Vec<AioDone> = Vec::new();
    let helpers = Helpers::start(m, w.job.priorities.clone(), aio).await?;
    loop {
        let limit = w.depth.limit(depth);
        while depth - free.len() < limit && w.more(m) {
            if let Some(due) = w.sync_due() {
                submit(m, aio, &mut batch).await?;
                w.sync(m, due).await?;
                continue;
            }
            if w.ahead() {
                submit(m, aio, &mut batch).await?;
                if free.len() < depth {
                    break;
                }
                w.fall_back(m).await?;
                continue;
            }
            w.pace(m).await?;
            let call = w.next(m);
            begin_passes(m, w).await?;
            if call.dir == Dir::Trim {
                // The engines of fio make this call synchronously, too.
                make_call(m, w, call).await?;
                continue;
            }
            let Some(tag) = free.pop() else { break };
            running[tag as usize] = Slot {
                op: m.op_begin(word(call.dir)),
                dir: call.dir,
            };
            if let Some(helper) = helpers.pick(m, &call) {
                submit(m, aio, &mut batch).await?;
                helpers
                    .submit(m, helper, request(call.fd, call, tag))
                    .await?;
                w.think(m).await?;
                continue;
            }
            batch.push(request(call.fd, call, tag));
            if batch.len() >= w.job.batch as usize || w.job.thinktime > Nanos::ZERO {
                submit(m, aio, &mut batch).await?;
                w.think(m).await?;
            }
        }
        submit(m, aio, &mut batch).await?;
        if free.len() == depth {
            if w.more(m) {
                continue;
            }
            helpers.end(m).await?;
            return m
                .aio_close(aio)
                .await
                .doing(|| "close the asynchronous queue");
        }
        // At the end, wait for all calls. Before the end, wait for the configured number of calls.
        let least = w.job.batch_complete as usize;
        let low = w
            .job
            .low
            .map_or(depth, |l| l as usize)
            .min(limit.max(1) - 1);
        loop {
            let least = least.min(depth - free.len()).max(1);
            done.clear();
            m.aio_reap(aio, least, &mut done).await.doing(|| "reap")?;
            for d in &done {
                let slot = running[d.tag as usize];
                free.push(d.tag);
                if d.result == Err(Errno::ENOSPC) && w.job.fill_device {
                    w.full = true;
                    continue;
                }
                let n = d.result.map_err(|errno| Fail {
                    what: format!("{} of job {}", slot.op.kind, w.job.name),
                    errno,
                })?;
                w.count(m, slot.op, slot.dir, n);
            }
            if depth - free.len() <= low {
                break;
            }
        }
    }
}

async fn submit<M: Machine>(m: &mut M, aio: Aio, batch: &mut Vec<AioRequest>) -> Outcome {
    if !batch.is_empty() {
        m.aio_submit(aio, batch).await.doing(|| "submit")?;
        batch.clear();
    }
    Ok(())
}
