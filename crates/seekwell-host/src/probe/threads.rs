//! Sends many I/Os at a time by threads, if io_uring is not available.

use super::{Aligned, Failed, bytes, now};
use crate::stop::Stop as Asked;
use seekwell_calibrate::{Io, Timed, What};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of threads.
pub(super) const MOST: usize = 64;

/// Sends I/Os from threads. The threads are created for each run.
#[derive(Debug)]
pub(super) struct Threads;

impl Threads {
    /// Keeps `depth` I/Os outstanding until all have completed.
    pub fn run(
        &mut self,
        file: &File,
        ios: &[Io],
        contents: &mut [Option<Aligned>],
        depth: usize,
        stop: &Asked,
        out: &mut Vec<Timed>,
    ) -> Result<(), Failed> {
        out.resize(ios.len(), Timed::default());
        let next = AtomicUsize::new(0);
        let failed: Mutex<Option<Failed>> = Mutex::new(None);
        let fail = |f: Failed| {
            let mut slot = failed.lock().unwrap_or_else(PoisonError::into_inner);
            slot.get_or_insert(f);
        };
        // Contents and results of the I/Os. Each element is accessed only by the thread that sends
        // this I/O.
        let cells: Vec<Mutex<(Option<Aligned>, Timed)>> = contents
            .iter_mut()
            .map(|b| Mutex::new((b.take(), Timed::default())))
            .collect();
        let work = || {
            let mut own = Aligned::default();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(io) = ios.get(i) else { return };
                if stop.is_raised() {
                    return fail(Failed::Stopped);
                }
                let mut cell = cells[i].lock().unwrap_or_else(PoisonError::into_inner);
                let sent = now();
                let r = do_io(file, io, cell.0.as_mut(), &mut own);
                cell.1 = Timed { sent, done: now() };
                if let Err(e) = r {
                    next.store(ios.len(), Ordering::Relaxed);
                    return fail(Failed::Io(i, e));
                }
            }
        };
        std::thread::scope(|s| {
            for _ in 0..depth.min(MOST) {
                s.spawn(work);
            }
        });
        for (t, cell) in out.iter_mut().zip(cells) {
            *t = cell.into_inner().unwrap_or_else(PoisonError::into_inner).1;
        }
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.map_or(Ok(()), Err)
    }
}

fn do_io(
    file: &File,
    io: &Io,
    contents: Option<&mut Aligned>,
    own: &mut Aligned,
) -> io::Result<()> {
    let at = io.lba * 512;
    match (io.what, contents) {
        (What::Write, Some(b)) => file.write_all_at(b.room(bytes(io)), at),
        (What::Read, _) => file.read_exact_at(own.room(bytes(io)), at),
        (What::Flush | What::Write, _) => file.sync_data(),
    }
}
