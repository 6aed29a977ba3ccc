//! The calls of a machine that a script in Python can make.

use super::Class;
use super::drive::drive;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use seekwell::sdk::workload::machine::{
    Aio, AioDone, AioOp, AioRequest, Barrier, Channel, Fd, How, Join, Lock,
};
use seekwell::sdk::workload::{Advice, Context, Fail, Machine, OpenFlags, Outcome, Stat};
use seekwell_core::{IoPrio, Nanos};
use std::pin::Pin;
use std::sync::Arc;

/// A call that a script made.
pub enum Call {
    Compute(u64),
    Sleep(u64),
    Open(String, OpenFlags),
    OpenDevice(OpenFlags),
    Close(u32),
    Read(u32, u64, u32),
    Write(u32, u64, u32),
    Append(u32, u32),
    Fsync(u32),
    Fdatasync(u32),
    Syncfs,
    Truncate(u32, u64),
    Fallocate(u32, u64, u64),
    Fadvise(u32, u64, u64, Advice),
    Rename(String, String),
    Unlink(String),
    Mkdir(String),
    Rmdir(String),
    Readdir(String),
    Stat(String),
    Fstat(u32),
    DropCaches,
    Aio(u32),
    Submit(u32, Vec<AioRequest>),
    Reap(u32, usize),
    AioClose(u32),
    Spawn(Box<How>, Py<PyAny>, Py<PyAny>),
    Join(u32),
    Lock,
    Acquire(u32),
    Release(u32),
    Barrier(u32),
    Arrive(u32),
    Channel(u32),
    Send(u32, u64),
    Recv(u32),
    EndChannel(u32),
}

fn advice(text: &str) -> PyResult<Advice> {
    Ok(match text {
        "normal" => Advice::Normal,
        "random" => Advice::Random,
        "sequential" => Advice::Sequential,
        "willneed" => Advice::WillNeed,
        "dontneed" => Advice::DontNeed,
        other => {
            let what = format!(
                "no advice is called \"{other}\"; there are normal, random, sequential, willneed, dontneed"
            );
            return Err(PyValueError::new_err(what));
        }
    })
}

fn request(fd: u32, op: &str, off: u64, len: u32, tag: u64) -> PyResult<AioRequest> {
    let op = match op {
        "read" => AioOp::Read,
        "write" => AioOp::Write,
        "fsync" => AioOp::Fsync,
        "fdatasync" => AioOp::Fdatasync,
        other => {
            let what = format!(
                "no operation is called \"{other}\"; there are read, write, fsync, fdatasync"
            );
            return Err(PyValueError::new_err(what));
        }
    };
    let fd = Fd(fd);
    Ok(AioRequest {
        fd,
        op,
        off,
        len,
        tag,
    })
}

impl Call {
    /// Converts the value that a coroutine yielded.
    ///
    /// # Errors
    /// Returns an error if the value is not a call of a machine, because the script awaited
    /// something else.
    pub fn of(asked: &Bound<'_, PyAny>) -> PyResult<Self> {
        let foreign = || {
            let what = "a script may await the machine's calls only: nothing else is simulated";
            PyValueError::new_err(what)
        };
        let of: &Bound<'_, PyTuple> = asked.cast().map_err(|_| foreign())?;
        let name: String = of.get_item(0)?.extract().map_err(|_| foreign())?;
        let text = |i: usize| -> PyResult<String> { of.get_item(i)?.extract() };
        let int = |i: usize| -> PyResult<u64> { of.get_item(i)?.extract() };
        let small = |i: usize| -> PyResult<u32> { of.get_item(i)?.extract() };
        let flags = |i: usize| -> PyResult<OpenFlags> {
            Ok(OpenFlags::from_bits_truncate(of.get_item(i)?.extract()?))
        };
        Ok(match &*name {
            "compute" => Call::Compute(int(1)?),
            "sleep" => Call::Sleep(int(1)?),
            "open" => Call::Open(text(1)?, flags(2)?),
            "open_device" => Call::OpenDevice(flags(1)?),
            "close" => Call::Close(small(1)?),
            "read" => Call::Read(small(1)?, int(2)?, small(3)?),
            "write" => Call::Write(small(1)?, int(2)?, small(3)?),
            "append" => Call::Append(small(1)?, small(2)?),
            "fsync" => Call::Fsync(small(1)?),
            "fdatasync" => Call::Fdatasync(small(1)?),
            "syncfs" => Call::Syncfs,
            "truncate" => Call::Truncate(small(1)?, int(2)?),
            "fallocate" => Call::Fallocate(small(1)?, int(2)?, int(3)?),
            "fadvise" => Call::Fadvise(small(1)?, int(2)?, int(3)?, advice(&text(4)?)?),
            "rename" => Call::Rename(text(1)?, text(2)?),
            "unlink" => Call::Unlink(text(1)?),
            "mkdir" => Call::Mkdir(text(1)?),
            "rmdir" => Call::Rmdir(text(1)?),
            "readdir" => Call::Readdir(text(1)?),
            "stat" => Call::Stat(text(1)?),
            "fstat" => Call::Fstat(small(1)?),
            "drop_caches" => Call::DropCaches,
            "aio" => Call::Aio(small(1)?),
            "submit" => {
                let all: Vec<(u32, String, u64, u32, u64)> = of.get_item(2)?.extract()?;
                let all = all.iter().map(|r| request(r.0, &r.1, r.2, r.3, r.4));
                Call::Submit(small(1)?, all.collect::<PyResult<_>>()?)
            }
            "reap" => Call::Reap(small(1)?, int(2)? as usize),
            "aio_close" => Call::AioClose(small(1)?),
            "spawn" => {
                let (class, level): (u64, u64) = of.get_item(3)?.extract()?;
                let ioprio = IoPrio::from_numbers(class, level).ok_or_else(|| {
                    PyValueError::new_err(format!(
                        "ioprio: ({class}, {level}) is none: a class up to 3, a level up to 7"
                    ))
                })?;
                let how = How {
                    nice: of.get_item(2)?.extract()?,
                    ioprio,
                    ..How::named(text(1)?)
                };
                let (machine, run) = (of.get_item(4)?, of.get_item(5)?);
                Call::Spawn(Box::new(how), machine.unbind(), run.unbind())
            }
            "join" => Call::Join(small(1)?),
            "lock" => Call::Lock,
            "acquire" => Call::Acquire(small(1)?),
            "release" => Call::Release(small(1)?),
            "barrier" => Call::Barrier(small(1)?),
            "arrive" => Call::Arrive(small(1)?),
            "channel" => Call::Channel(small(1)?),
            "send" => Call::Send(small(1)?, int(2)?),
            "recv" => Call::Recv(small(1)?),
            "end_channel" => Call::EndChannel(small(1)?),
            _ => return Err(foreign()),
        })
    }
}

/// The result of a call.
pub enum Answer {
    Nothing,
    Number(u64),
    Maybe(Option<u64>),
    Stat(Stat),
    Names(Vec<(String, bool)>),
    Done(Vec<AioDone>),
}

impl Answer {
    /// Converts the result to a Python object.
    pub fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match self {
            Answer::Nothing => py.None(),
            Answer::Number(n) => n.into_pyobject(py)?.into_any().unbind(),
            Answer::Maybe(n) => n.into_pyobject(py)?.into_any().unbind(),
            Answer::Names(all) => all.into_pyobject(py)?.into_any().unbind(),
            Answer::Stat(s) => {
                let of = (s.len, s.allocated, s.dir, s.ino, s.mtime.0);
                of.into_pyobject(py)?.into_any().unbind()
            }
            Answer::Done(all) => {
                let each = all.iter().map(|d| match d.result {
                    Ok(n) => (d.tag, Some(n), None),
                    Err(e) => (d.tag, None, Some(e.0)),
                });
                each.collect::<Vec<_>>()
                    .into_pyobject(py)?
                    .into_any()
                    .unbind()
            }
        })
    }
}

/// Makes a call.
///
/// # Errors
/// Returns the error of the machine, with the name of the call.
pub async fn carry_out<M: Machine>(
    m: &mut M,
    class: &Arc<Class>,
    call: Call,
) -> Result<Answer, Fail> {
    let number = |n: u32| Answer::Number(u64::from(n));
    match call {
        Call::Compute(ns) => m.compute(Nanos(ns)).await.doing(|| "compute")?,
        Call::Sleep(ns) => m.sleep(Nanos(ns)).await.doing(|| "sleep")?,
        Call::Open(path, how) => {
            let fd = m.open(&path, how).await.doing(|| format!("open {path}"))?;
            return Ok(number(fd.0));
        }
        Call::OpenDevice(how) => {
            let fd = m.open_device(how).await.doing(|| "open the device")?;
            return Ok(number(fd.0));
        }
        Call::Close(fd) => m.close(Fd(fd)).await.doing(|| "close")?,
        Call::Read(fd, off, len) => {
            let what = || format!("read {len} bytes at {off}");
            return Ok(number(m.read(Fd(fd), off, len).await.doing(what)?));
        }
        Call::Write(fd, off, len) => {
            let what = || format!("write {len} bytes at {off}");
            return Ok(number(m.write(Fd(fd), off, len).await.doing(what)?));
        }
        Call::Append(fd, len) => {
            let what = || format!("append {len} bytes");
            return Ok(number(m.append(Fd(fd), len).await.doing(what)?));
        }
        Call::Fsync(fd) => m.fsync(Fd(fd)).await.doing(|| "fsync")?,
        Call::Fdatasync(fd) => m.fdatasync(Fd(fd)).await.doing(|| "fdatasync")?,
        Call::Syncfs => m.syncfs().await.doing(|| "syncfs")?,
        Call::Truncate(fd, len) => m.truncate(Fd(fd), len).await.doing(|| "truncate")?,
        Call::Fallocate(fd, off, len) => {
            m.fallocate(Fd(fd), off, len).await.doing(|| "fallocate")?;
        }
        Call::Fadvise(fd, off, len, advice) => {
            m.fadvise(Fd(fd), off, len, advice)
                .await
                .doing(|| "fadvise")?;
        }
        Call::Rename(from, to) => {
            let what = || format!("rename {from} to {to}");
            m.rename(&from, &to).await.doing(what)?;
        }
        Call::Unlink(path) => m.unlink(&path).await.doing(|| format!("unlink {path}"))?,
        Call::Mkdir(path) => m.mkdir(&path).await.doing(|| format!("mkdir {path}"))?,
        Call::Rmdir(path) => m.rmdir(&path).await.doing(|| format!("rmdir {path}"))?,
        Call::Readdir(path) => {
            let all = m.readdir(&path).await.doing(|| format!("list {path}"))?;
            return Ok(Answer::Names(
                all.into_iter().map(|e| (e.name, e.dir)).collect(),
            ));
        }
        Call::Stat(path) => {
            let stat = m.stat(&path).await.doing(|| format!("stat {path}"))?;
            return Ok(Answer::Stat(stat));
        }
        Call::Fstat(fd) => return Ok(Answer::Stat(m.fstat(Fd(fd)).await.doing(|| "fstat")?)),
        Call::DropCaches => m.drop_caches().await.doing(|| "drop caches")?,
        Call::Aio(depth) => return Ok(number(m.aio(depth).await.doing(|| "make a queue")?.0)),
        Call::Submit(aio, what) => {
            m.aio_submit(Aio(aio), &what)
                .await
                .doing(|| "submit operations")?;
        }
        Call::Reap(aio, min) => {
            let mut out = Vec::new();
            let reaped = m.aio_reap(Aio(aio), min, &mut out).await;
            reaped.doing(|| "wait for operations")?;
            return Ok(Answer::Done(out));
        }
        Call::AioClose(aio) => m.aio_close(Aio(aio)).await.doing(|| "end a queue")?,
        Call::Spawn(how, machine, run) => {
            let what = format!("start {}", how.name);
            let class = class.clone();
            // The future is boxed, because otherwise it would contain itself.
            let script = move |mut own: M| -> Pin<Box<dyn Future<Output = Outcome>>> {
                Box::pin(async move { drive(&mut own, class, machine, run).await })
            };
            return Ok(number(m.spawn(*how, script).await.doing(|| what)?.0));
        }
        Call::Join(task) => m.join(Join(task)).await?,
        Call::Lock => return Ok(number(m.lock().0)),
        Call::Acquire(lock) => m.acquire(Lock(lock)).await.doing(|| "take a lock")?,
        Call::Release(lock) => m.release(Lock(lock)),
        Call::Barrier(tasks) => return Ok(number(m.barrier(tasks).0)),
        Call::Arrive(barrier) => m
            .arrive(Barrier(barrier))
            .await
            .doing(|| "wait for others")?,
        Call::Channel(room) => return Ok(number(m.channel(room).0)),
        Call::Send(channel, value) => m.send(Channel(channel), value).await.doing(|| "send")?,
        Call::Recv(channel) => {
            let value = m.recv(Channel(channel)).await.doing(|| "receive")?;
            return Ok(Answer::Maybe(value));
        }
        Call::EndChannel(channel) => m.end_channel(Channel(channel)),
    }
    Ok(Answer::Nothing)
}
