//! Asynchronous I/O. Direct operations run in the background. Buffered operations block the task in
//! the submission.

use super::direct;
use crate::executor::Actor;
use crate::fs::BDEV;
use crate::machine::{Aio, K, Notify, Q, Ret, lock, wait};
use seekwell_core::{Errno, Op};

/// Makes a context and returns its number.
pub(crate) fn new(k: &K, depth: u32) -> Ret {
    if depth == 0 {
        return Err(Errno::EINVAL);
    }
    let mut w = k.w();
    w.aios.push(Aio {
        depth,
        ..Aio::default()
    });
    Ok(w.aios.len() as u64 - 1)
}

/// The parameters of an operation.
pub(crate) struct Operation {
    pub(crate) fd: u32,
    pub(crate) write: bool,
    pub(crate) off: u64,
    pub(crate) len: u64,
    pub(crate) tag: u64,
}

/// Submits one operation (io_submit).
pub(crate) async fn submit(k: &K, a: Actor, aio: u32, o: Operation) -> Ret {
    let f = {
        let mut w = k.w();
        let f = w.file(o.fd)?;
        let c = w.aios.get_mut(aio as usize).ok_or(Errno::EINVAL)?;
        if c.under_way >= c.depth {
            return Err(Errno::EAGAIN);
        }
        c.under_way += 1;
        f
    };
    if !f.is_direct() {
        // A buffered operation completes during the submission.
        let ret = if o.write {
            super::write::write(k, a, o.fd, o.off, o.len, false).await
        } else {
            super::read::read(k, a, o.fd, o.off, o.len).await
        };
        k.w().aio_done(aio, o.tag, ret);
        return Ok(0);
    }
    let op = if o.write { Op::Write } else { Op::Read };
    let grows = o.write && o.off.saturating_add(o.len) > k.w().fs.inodes[f.ino as usize].len;
    if grows && f.ino != BDEV {
        // A write that extends the file completes during the submission.
        let ret = direct::transfer(k, a, f.ino, op, o.off, o.len).await;
        k.w().aio_done(aio, o.tag, ret);
        return Ok(0);
    }
    let locks = o.write && f.ino != BDEV;
    if locks {
        lock(k, a, f.ino).await;
    }
    let started = direct::start(k, a, f.ino, op, o.off, o.len).await;
    let mut w = k.w();
    if locks {
        w.unlock(f.ino);
    }
    match started {
        Err(e) => {
            w.aios[aio as usize].under_way -= 1;
            return Err(e);
        }
        Ok(None) => w.aio_done(aio, o.tag, Ok(0)),
        Ok(Some(s)) => {
            w.fs.inodes[f.ino as usize].pins += 1;
            let n = Notify {
                aio,
                tag: o.tag,
                len: s.len,
                ino: f.ino,
            };
            w.notify_group(s.group, n);
        }
    }
    Ok(0)
}

/// Waits for one completion (io_getevents).
pub(crate) async fn reap(k: &K, a: Actor, aio: u32) -> Ret {
    {
        let w = k.w();
        let c = w.aios.get(aio as usize).ok_or(Errno::EINVAL)?;
        if c.under_way == 0 {
            return Err(Errno::EINVAL);
        }
    }
    let (tag, ret) = loop {
        wait(k, a, |w| {
            w.aios[aio as usize].done.is_empty().then_some(Q::Aio(aio))
        })
        .await;
        // Another task may have taken the completion.
        if let Some(done) = k.w().aios[aio as usize].done.pop_front() {
            break done;
        }
    };
    let mut w = k.w();
    w.aios[aio as usize].under_way -= 1;
    w.tasks[a as usize].out.aio = Some((tag, ret));
    Ok(tag)
}
