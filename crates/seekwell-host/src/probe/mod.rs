//! The probe of the calibration for a real block device or file. It uses O_DIRECT and a single
//! thread. The times come from CLOCK_MONOTONIC_RAW, read immediately before and after each call.
//!
//! Single I/Os use pread(2), which has the least overhead. Several I/Os at a time use io_uring, or
//! threads if io_uring is not available. Nothing is written without permission. With permission,
//! only data that were just read from the same address are written back. While the probe is open,
//! the CPUs stay out of deep idle states. This request belongs to a file descriptor, so it ends
//! with the process.
//!
//! This module is not in the crate of the estimators, because the estimators use no clock and no
//! system calls.

mod check;
mod priority;
mod ring;
mod sysfs;
mod threads;

pub use check::Refusal;

use crate::buffer::Aligned;
use crate::stop::Stop as Asked;
use ring::Ring;
use rustix::time::{ClockId, clock_gettime};
use seekwell_calibrate::{Facts, Io, Probe, Stop, Timed, What};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use threads::Threads;

/// Maximum length of an I/O, bytes.
const LONGEST: usize = 1 << 20;

/// Returns the length of an I/O, bytes.
fn bytes(io: &Io) -> usize {
    (io.sectors as usize * 512).min(LONGEST)
}

/// Returns the current time, ns.
fn now() -> u64 {
    let t = clock_gettime(ClockId::MonotonicRaw);
    (t.tv_sec as u64) * 1_000_000_000 + t.tv_nsec as u64
}

/// Method of sending several I/Os at a time.
#[derive(Debug)]
enum Many {
    Ring(Box<Ring>),
    Threads(Threads),
}

/// A probe for a real device or file.
#[derive(Debug)]
pub struct RealProbe {
    path: PathBuf,
    file: Arc<File>,
    facts: Facts,
    stop: Arc<Asked>,
    one: Aligned,
    many: Option<Many>,
    /// The file with the kernel's I/O counters, and their values at the start.
    counted: Option<(PathBuf, sysfs::Counts)>,
    own: sysfs::Counts,
    /// Time that tasks had waited for a CPU at the start, in us, and the start in ns.
    waited: (Option<u64>, u64),
    /// An open file that keeps the CPUs out of deep idle states.
    _awake: Option<File>,
}

impl RealProbe {
    /// Opens a block device or a regular file. The calibration ends when `stop` is raised.
    pub fn open(path: &Path, allow_write: bool, stop: Arc<Asked>) -> Result<Self, Refusal> {
        let (file, mut facts, counted) = check::open(path, allow_write)?;
        facts.identity.push(sysfs::today());
        let awake = sysfs::stay_awake();
        if awake.is_none() {
            facts.identity.push(
                "CPU idle states were not prevented (needs root): times are a little longer".into(),
            );
        }
        Ok(RealProbe {
            path: path.to_owned(),
            file: Arc::new(file),
            facts,
            stop,
            one: Aligned::default(),
            many: None,
            counted,
            own: sysfs::Counts::default(),
            waited: (priority::waited_us(), now()),
            _awake: awake,
        })
    }

    fn failed(&self, io: &Io, e: &io::Error) -> Stop {
        let what = match io.what {
            What::Read => "reading",
            What::Write => "writing",
            What::Flush => "flushing",
        };
        let gone = matches!(e.raw_os_error(), Some(5 | 6 | 19))
            .then_some("; is it still there? See the kernel's log (dmesg)")
            .unwrap_or_default();
        Stop::Device(format!(
            "{}: {what} {} sectors at sector {}: {e}{gone}",
            self.path.display(),
            io.sectors,
            io.lba
        ))
    }

    fn alone(&mut self, io: &Io) -> Result<Timed, Stop> {
        let (at, n) = (io.lba * 512, bytes(io));
        let file = Arc::clone(&self.file);
        let buffer = self.one.room(n);
        let r = match io.what {
            What::Read => {
                let sent = now();
                file.read_exact_at(buffer, at).map(|()| sent)
            }
            What::Write => file.read_exact_at(buffer, at).and_then(|()| {
                let sent = now();
                file.write_all_at(buffer, at).map(|()| sent)
            }),
            What::Flush => {
                let sent = now();
                file.sync_data().map(|()| sent)
            }
        };
        let done = now();
        match r {
            Ok(sent) => Ok(Timed { sent, done }),
            Err(e) => Err(self.failed(io, &e)),
        }
    }

    /// Reads the data that the writes in `ios` will write back. Flushes and reads get `None`.
    fn contents(&self, ios: &[Io]) -> Result<Vec<Option<Aligned>>, Stop> {
        ios.iter()
            .map(|io| {
                if io.what != What::Write {
                    return Ok(None);
                }
                let mut b = Aligned::default();
                match self.file.read_exact_at(b.room(bytes(io)), io.lba * 512) {
                    Ok(()) => Ok(Some(b)),
                    Err(e) => Err(self.failed(io, &e)),
                }
            })
            .collect()
    }
}

impl Probe for RealProbe {
    fn facts(&self) -> &Facts {
        &self.facts
    }
    fn now(&self) -> u64 {
        now()
    }
    fn disturbed(&self) -> Option<String> {
        let (waited, start) = self.waited;
        let busy = priority::busy(waited, priority::waited_us(), now().saturating_sub(start));
        let counted = self.counted.as_ref();
        let io = counted.and_then(|(path, start)| sysfs::counts(path)?.beyond(*start, self.own));
        match (busy, io) {
            (Some(busy), Some(io)) => Some(format!("{busy}; {io}")),
            (busy, io) => busy.or(io),
        }
    }
    fn sleep(&mut self, ns: u64) -> Result<(), Stop> {
        let until = now() + ns;
        loop {
            if self.stop.is_raised() {
                return Err(Stop::Interrupted);
            }
            let left = until.saturating_sub(now());
            if left == 0 {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_nanos(left.min(50_000_000)));
        }
    }
    fn run(&mut self, ios: &[Io], depth: usize, out: &mut Vec<Timed>) -> Result<(), Stop> {
        out.clear();
        // Without it, a wait for a CPU would look like a latency of the device.
        let _first = priority::Realtime::take();
        let writes = ios.iter().any(|io| io.what != What::Read);
        if writes && !self.facts.may_write {
            return Err(Stop::Device(
                "a write was requested without permission".into(),
            ));
        }
        if depth == 1 {
            // A single write reads its data just before the write, outside the timed interval. For
            // several writes, all data are read first, so that the reads do not disturb the writes.
            let mut contents = if ios.len() > 1 && writes {
                self.contents(ios)?
            } else {
                vec![]
            };
            for (i, io) in ios.iter().enumerate() {
                if self.stop.is_raised() {
                    return Err(Stop::Interrupted);
                }
                self.own.add(io);
                let t = match contents.get_mut(i).and_then(Option::as_mut) {
                    Some(b) => {
                        let sent = now();
                        let r = self.file.write_all_at(b.room(bytes(io)), io.lba * 512);
                        let done = now();
                        r.map_err(|e| self.failed(io, &e))?;
                        self.own.read += u64::from(io.sectors);
                        Timed { sent, done }
                    }
                    None => self.alone(io)?,
                };
                out.push(t);
            }
            return Ok(());
        }
        let mut contents = self.contents(ios)?;
        for io in ios {
            self.own.add(io);
            if io.what == What::Write {
                self.own.read += u64::from(io.sectors);
            }
        }
        let mut many = match self.many.take() {
            Some(m) => m,
            None => match Ring::new() {
                Ok(r) => Many::Ring(Box::new(r)),
                Err(e) => {
                    self.facts.identity.push(format!(
                        "no io_uring ({e}): threads replace it, with a maximum depth of {}",
                        threads::MOST
                    ));
                    Many::Threads(Threads)
                }
            },
        };
        let r = match &mut many {
            Many::Ring(ring) => ring.run(&self.file, ios, &mut contents, depth, &self.stop, out),
            Many::Threads(t) => t.run(&self.file, ios, &mut contents, depth, &self.stop, out),
        };
        self.many = Some(many);
        r.map_err(|e| match e {
            Failed::Stopped => Stop::Interrupted,
            Failed::Io(i, e) => self.failed(&ios[i], &e),
        })
    }
}

/// Reason why several I/Os at a time ended early.
#[derive(Debug)]
enum Failed {
    /// The user stopped the calibration.
    Stopped,
    /// This I/O failed.
    Io(usize, io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of 32 MiB in cargo's directory for tests. Dropping it removes the file.
    struct Image(PathBuf);

    impl Image {
        fn new(name: &str) -> Image {
            let path = std::env::temp_dir().join(format!("seekwell-{}-{name}", std::process::id()));
            let bytes: Vec<u8> = (0..32u32 << 20).map(|i| (i / 512 % 251) as u8).collect();
            std::fs::write(&path, bytes).expect("a scratch file");
            Image(path)
        }
        fn open(&self, write: bool) -> Option<(RealProbe, Arc<Asked>)> {
            let stop = Arc::new(Asked::new(None, false));
            match RealProbe::open(&self.0, write, Arc::clone(&stop)) {
                Ok(p) => Some((p, stop)),
                Err(e) => {
                    println!("skipped: {e}");
                    None
                }
            }
        }
    }

    impl Drop for Image {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn every_submission_method_returns_times_and_preserves_the_data() {
        let image = Image::new("ways");
        let before = std::fs::read(&image.0).expect("the file");
        let Some((mut p, stop)) = image.open(true) else {
            return;
        };
        let ios: Vec<Io> = (0..200)
            .map(|i| match i % 7 {
                3 => Io::write(i * 64, 8),
                5 => Io::flush(),
                _ => Io::read(i * 64, 16),
            })
            .collect();
        let mut out = vec![];
        for (depth, threads) in [(1, false), (16, false), (16, true)] {
            if threads {
                p.many = Some(Many::Threads(Threads));
            }
            p.run(&ios, depth, &mut out).expect("it runs");
            assert_eq!(out.len(), ios.len());
            assert!(
                out.iter().all(|t| t.sent > 0 && t.done >= t.sent),
                "{depth}"
            );
        }
        assert!(before == std::fs::read(&image.0).expect("the file"));
        stop.raise("enough");
        for depth in [1, 16] {
            assert_eq!(p.run(&ios, depth, &mut out), Err(Stop::Interrupted));
        }
    }

    #[test]
    fn shrunk_device_is_an_error_with_the_sector() {
        let image = Image::new("gone");
        let Some((mut p, _)) = image.open(false) else {
            return;
        };
        std::fs::write(&image.0, []).expect("truncated");
        let ios = [Io::read(800, 8), Io::read(1600, 8)];
        for depth in [1, 2] {
            let e = p.run(&ios, depth, &mut vec![]).expect_err("nothing there");
            assert!(
                e.to_string().contains("reading 8 sectors at sector 800"),
                "{e}"
            );
        }
        let e = p
            .run(&[Io::write(0, 8)], 1, &mut vec![])
            .expect_err("not allowed");
        assert!(e.to_string().contains("without permission"), "{e}");
    }
}
