//! The engines that make one call per file or directory.

use super::job::{Dir, FileCall, Job};
use super::run::Section;
use crate::fail::{Context, Outcome};
use crate::machine::Machine;
use crate::scripts::common::*;
use seekwell_core::{Nanos, OpenFlags};

/// Makes the file or directory before the run, if the engine does not make it.
pub(super) async fn prepare<M: Machine>(m: &mut M, call: FileCall, path: &str) -> Outcome {
    if m.stat(path).await.is_ok() {
        return Ok(());
    }
    match call {
        FileCall::Create | FileCall::CreateDir => Ok(()),
        FileCall::Stat | FileCall::Delete => {
            let fd = open(m, path, OpenFlags::CREATE).await?;
            close(m, fd, path).await
        }
        FileCall::StatDir | FileCall::DeleteDir => {
            m.mkdir(path).await.doing(|| format!("make {path}"))
        }
    }
}

/// Makes the calls of a task. They count as reads, as in fio.
pub(super) async fn run<M: Machine>(
    m: &mut M,
    job: &Job,
    call: FileCall,
    files: &[String],
    section: &Section,
) -> Outcome {
    let end = job.runtime.map(|r| m.now() + r);
    for path in files {
        if section.over() || end.is_some_and(|e| m.now() >= e) {
            break;
        }
        let op = m.op_begin("read");
        match call {
            FileCall::Create => {
                let fd = open(m, path, OpenFlags::CREATE).await?;
                close(m, fd, path).await?;
            }
            FileCall::Stat | FileCall::StatDir => {
                m.stat(path).await.doing(|| format!("stat {path}"))?;
            }
            FileCall::Delete => m.unlink(path).await.doing(|| format!("remove {path}"))?,
            FileCall::CreateDir => m.mkdir(path).await.doing(|| format!("make {path}"))?,
            FileCall::DeleteDir => m.rmdir(path).await.doing(|| format!("remove {path}"))?,
        }
        let now = m.now();
        section.total.with(|t| t.count(Dir::Read, 0, op.since, now));
        m.op_end(op, 0);
        if job.thinktime > Nanos::ZERO {
            m.sleep(job.thinktime).await.doing(|| "thinktime")?;
        }
    }
    Ok(())
}
