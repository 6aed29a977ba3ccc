//! Records the kernel's block tracepoints of a device by BPF. The times have a resolution of a
//! nanosecond, and the kernel does not have to print text.
//!
//! Each tracepoint runs a program ([`program`]) that copies the event to a ring buffer. A thread
//! reads the buffer during the run. The events are converted to text in the format of tracefs, so
//! that all later steps are the same.
//!
//! Two kinds of events are lost. First, events for which the buffer has no room. Second,
//! completions whose interrupt came while a program was running on the same CPU (about ten in a
//! million at 60,000 IOPS on two CPUs). Both are counted. The kernel counts the second kind for all
//! devices together. Therefore the number reported for this device is the number of requests
//! without a completion, but at most the kernel's count.
//!
//! The programs and the buffer disappear when this process ends, even after a crash.

mod event;
mod histogram;
mod kernel;
mod latency;
mod program;
mod ring;

pub use latency::{Buckets, CLASSES, Latencies, LatencyCounts};

use super::blocktrace::{Recorded, Tracefs};
use super::{EVENTS, WatchError};
use event::Layout;
use program::{Wanted, program};
use ring::Ring;
use seekwell_core::Action;
use seekwell_trace::blk::BlkEvent;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Size of the ring buffer, bytes. It is enough for about 150,000 events.
const RING: u32 = 16 << 20;
/// Interval between reads of the ring buffer.
const LOOK: Duration = Duration::from_millis(50);
/// First kernel release that counts skipped tracepoint programs.
const COUNTS_SINCE: (u32, u32) = (6, 7);
const REMEDY: &str = "root is needed (CAP_BPF and CAP_PERFMON), or record with --by tracefs";

/// A recorder for one device.
#[derive(Debug)]
pub struct BpfTrace {
    layouts: Vec<Layout>,
    device: u32,
    running: Option<Running>,
}

/// State between start and stop.
#[derive(Debug)]
struct Running {
    /// Attachments to the tracepoints. They are dropped first.
    attached: Vec<OwnedFd>,
    programs: Vec<OwnedFd>,
    lost: OwnedFd,
    over: Arc<AtomicBool>,
    reader: Option<JoinHandle<Vec<u8>>>,
}

fn failed(call: &str) -> impl FnOnce(io::Error) -> WatchError + '_ {
    move |e| WatchError::Program {
        program: call.to_owned(),
        what: e.to_string(),
        remedy: REMEDY,
    }
}

/// Returns whether this kernel counts skipped programs.
fn counts(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= COUNTS_SINCE,
        _ => false,
    }
}

impl BpfTrace {
    /// Prepares a recorder without starting it. `device` is `major << 20 | minor`.
    ///
    /// # Errors
    /// The kernel does not support this, or this user is not allowed to do it. A program is loaded
    /// as a test, so that [`Self::start`] fails only if the machine lacks resources.
    pub fn open(device: u32) -> Result<Self, WatchError> {
        let release = rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned();
        if !counts(&release) {
            return Err(WatchError::Program {
                program: "BPF".to_owned(),
                what: format!("Linux {release} does not count the events that its programs miss"),
                remedy: "record with --by tracefs",
            });
        }
        let tracefs = Tracefs::find()?;
        let events = tracefs.root.join("events/block");
        let layouts: Result<_, _> = EVENTS.iter().map(|e| Layout::read(&events, e)).collect();
        let mut trace = BpfTrace {
            layouts: layouts?,
            device,
            running: None,
        };
        trace.start()?;
        trace.running = None;
        Ok(trace)
    }

    /// Starts a new recording.
    pub fn start(&mut self) -> Result<(), WatchError> {
        self.running = None;
        let ring = kernel::ring(RING).map_err(failed("a BPF ring buffer"))?;
        let lost = kernel::counter().map_err(failed("a BPF map"))?;
        let mut mapped = Ring::map(&ring, RING).map_err(failed("mapping a BPF ring buffer"))?;
        let mut programs = Vec::new();
        for (event, l) in self.layouts.iter().enumerate() {
            let made = program(&Wanted {
                device: self.device,
                device_at: l.device.0,
                bytes: l.bytes,
                event,
                ring: ring.as_raw_fd(),
                lost: lost.as_raw_fd(),
            });
            programs.push(kernel::load(&made).map_err(failed("a BPF program"))?);
        }
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let empty = move || {
            let mut all = Vec::new();
            loop {
                // The flag is read before the buffer, so that events that came before the flag was
                // set are still read.
                let last = told.load(Ordering::Acquire);
                mapped.take(|record| {
                    all.extend_from_slice(&(record.len() as u32).to_ne_bytes());
                    all.extend_from_slice(record);
                });
                if last {
                    return all;
                }
                std::thread::park_timeout(LOOK);
            }
        };
        let reader = std::thread::Builder::new()
            .name("seekwell-trace".to_owned())
            .spawn(empty)
            .map_err(failed("a thread to read events"))?;
        // From here on, dropping `running` ends the recording.
        let running = self.running.insert(Running {
            attached: Vec::new(),
            programs,
            lost,
            over,
            reader: Some(reader),
        });
        for (l, program) in self.layouts.iter().zip(&running.programs) {
            let fd = kernel::attach(program, l.id).map_err(failed(l.name))?;
            running.attached.push(fd);
        }
        Ok(())
    }

    /// Stops the recording and returns it. It is empty if the recorder was not started.
    pub fn stop(&mut self) -> Result<Recorded, WatchError> {
        let Some(mut running) = self.running.take() else {
            return Ok(Recorded::default());
        };
        running.attached.clear();
        let bytes = running.wait();
        let mut lost = kernel::count(&running.lost).map_err(failed("a BPF map"))?;
        let mut missed = 0;
        for p in &running.programs {
            missed += kernel::missed(p).map_err(failed("a BPF program"))?;
        }
        let mut records: Vec<&[u8]> = Vec::new();
        let mut rest = bytes.as_slice();
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let length = (u32::from_ne_bytes(*length) as usize).min(behind.len());
            let (record, next) = behind.split_at(length);
            records.push(record);
            rest = next;
        }
        // A program reserves room in the buffer before it reads the time, so records may be out of
        // order.
        records.sort_by_key(|r| event::time_ns(r));
        let mut text = String::new();
        for r in records {
            if event::line(&self.layouts, r, &mut text).is_none() {
                lost += 1;
            }
        }
        let mut recorded = Recorded::read(text, lost)?;
        recorded.lost += missed.min(unanswered(&recorded.events));
        Ok(recorded)
    }
}

/// Returns the number of requests that were issued and have no completion.
fn unanswered(events: &[BlkEvent]) -> u64 {
    let mut open: BTreeMap<u64, u64> = BTreeMap::new();
    for e in events {
        match e.action {
            Action::Issue => *open.entry(e.sector).or_default() += 1,
            // Requests from before the start of the recording are unknown.
            Action::Complete | Action::Requeue => {
                if let Some(n) = open.get_mut(&e.sector) {
                    *n = n.saturating_sub(1);
                }
            }
            _ => {}
        }
    }
    open.values().sum()
}

impl Running {
    fn wait(&mut self) -> Vec<u8> {
        let Some(reader) = self.reader.take() else {
            return Vec::new();
        };
        self.over.store(true, Ordering::Release);
        reader.thread().unpark();
        reader.join().unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.attached.clear();
        self.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_without_completion_is_counted() {
        let at = |t: u32, what: &str, sector: u64| {
            format!("a-1 [000] ..... 1.{t:06}: block_rq_{what}: 7,0 R () {sector} + 8 [0]\n")
        };
        let text = |all: &[(&str, u64)]| {
            let lines = all.iter().enumerate();
            lines
                .map(|(t, e)| at(t as u32, e.0, e.1))
                .collect::<String>()
        };
        let of = |all: &[(&str, u64)]| {
            unanswered(&Recorded::read(text(all), 0).expect("readable").events)
        };
        let whole = [
            ("complete", 64),
            ("issue", 8),
            ("issue", 16),
            ("complete", 16),
        ];
        assert_eq!(of(&whole), 1);
        let put_back = [("issue", 8), ("requeue", 8), ("issue", 8), ("complete", 8)];
        assert_eq!(of(&put_back), 0);
        // Two requests for the same sector were issued, and only one has completed.
        assert_eq!(of(&[("issue", 8), ("complete", 8), ("issue", 8)]), 1);
    }

    #[test]
    fn kernels_that_count_skipped_programs_are_recognised() {
        for (release, does) in [
            ("6.18.44-fc-v669", true),
            ("6.7.0", true),
            ("6.7-rc1", true),
            ("10.0", true),
            ("6.6.99", false),
            ("5.15.0-100-generic", false),
            ("odd", false),
        ] {
            assert_eq!(counts(release), does, "{release}");
        }
    }
}
