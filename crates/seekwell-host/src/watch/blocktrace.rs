//! Records the kernel's block tracepoints of a device by a separate instance of tracefs.
//!
//! An instance has its own buffer, filter and switches, so other tracing on the machine is not
//! affected. Dropping the value removes the instance. If tracefs is not mounted, it is mounted in a
//! temporary directory and unmounted at the end. The buffer is read continuously during the run, so
//! it only needs room for the events of about one second.

use super::{Pipe, WatchError, call, get, put};
use crate::left::{PREFIX, of_a_dead_one};
use seekwell_trace::blk::BlkEvent;
use seekwell_trace::formats::ftrace::{Line, parse};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The tracepoints that are recorded.
pub const EVENTS: [&str; 8] = [
    "block_bio_queue",
    "block_getrq",
    "block_bio_backmerge",
    "block_bio_frontmerge",
    "block_rq_insert",
    "block_rq_issue",
    "block_rq_requeue",
    "block_rq_complete",
];

/// Buffer size for each CPU, KiB. It is enough for about 200,000 events.
const BUFFER_KIB: u32 = 16 << 10;
const NO_EVENTS: &str = "a kernel with block tracepoints is needed (CONFIG_BLK_DEV_IO_TRACE)";

/// A recording of block events.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Events in order of time.
    pub events: Vec<BlkEvent>,
    /// Number of events that did not fit into the buffer. If it is not 0, the recording is
    /// unreliable.
    pub lost: u64,
    /// The text as the kernel printed it.
    pub text: String,
}

impl Recorded {
    /// Parses the kernel's text. `lost` is the number of missing events.
    pub(super) fn read(text: String, lost: u64) -> Result<Recorded, WatchError> {
        let mut recorded = Recorded {
            text,
            ..Recorded::default()
        };
        for (i, line) in recorded.text.lines().enumerate() {
            match parse(line.as_bytes()) {
                Ok(Line::Event(e, _)) => recorded.events.push(e),
                Ok(Line::Lost) => recorded.lost += 1,
                Ok(Line::Nothing | Line::End | Line::Request(_)) => {}
                Err((field, found)) => {
                    return Err(WatchError::Line {
                        line: i + 1,
                        field,
                        found: String::from_utf8_lossy(found).into_owned(),
                    });
                }
            }
        }
        // Events of one CPU may be late if the buffer of another CPU was being read.
        recorded.events.sort_by_key(|e| e.t_ns);
        // The gaps that the text marks are included in this number.
        recorded.lost = recorded.lost.max(lost);
        Ok(recorded)
    }
}

/// A recorder for one device.
#[derive(Debug)]
pub struct BlockTrace {
    // Fields are dropped in this order, because the instance must be removed before its mount.
    instance: PathBuf,
    pipe: Option<Pipe>,
    _tracefs: Tracefs,
}

/// The mount point of tracefs. If this value mounted it, dropping the value unmounts it.
#[derive(Debug)]
pub(super) struct Tracefs {
    /// Path of the mount point.
    pub root: PathBuf,
    own: bool,
}

impl Tracefs {
    /// Finds tracefs, or mounts it in a temporary directory.
    pub fn find() -> Result<Self, WatchError> {
        let (root, mounted) = tracefs()?;
        Ok(Tracefs { root, own: mounted })
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        if self.own {
            let dir = self.root.display().to_string();
            let _ = call("umount", &[&dir], "");
            let _ = std::fs::remove_dir(&self.root);
        }
    }
}

/// Returns the mount point of tracefs, and whether it was mounted by this call.
fn tracefs() -> Result<(PathBuf, bool), WatchError> {
    // Each recorder of a process may need its own mount.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for path in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        if Path::new(path).join("events/block").is_dir() {
            return Ok((path.into(), false));
        }
    }
    let tmp = std::env::temp_dir();
    for left in of_dead_runs(&tmp, &format!("{PREFIX}tracefs-")) {
        let _ = call("umount", &[&left.display().to_string()], "");
        let _ = std::fs::remove_dir(left);
    }
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let own = tmp.join(format!("{PREFIX}tracefs-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&own).map_err(|source| WatchError::File {
        path: own.clone(),
        source,
        remedy: "choose another TMPDIR",
    })?;
    let dir = own.display().to_string();
    let remedy = "root is needed, and a kernel with tracefs (CONFIG_FTRACE)";
    let mounted = call("mount", &["-t", "tracefs", "nodev", &dir], remedy);
    if let Err(e) = mounted {
        let _ = std::fs::remove_dir(&own);
        return Err(e);
    }
    Ok((own, true))
}

/// Returns the entries of `dir` whose name is `prefix` and the number of a process that has ended.
fn of_dead_runs(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|e| of_a_dead_one(prefix, &e.file_name().to_string_lossy()))
        .map(|e| e.path())
        .collect()
}

impl BlockTrace {
    /// Prepares a recorder without starting it. `device` is `major << 20 | minor`.
    pub fn open(device: u32) -> Result<Self, WatchError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let tracefs = Tracefs::find()?;
        let instances = tracefs.root.join("instances");
        for left in of_dead_runs(&instances, PREFIX) {
            let _ = std::fs::remove_dir(left);
        }
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let instance = instances.join(format!("{PREFIX}{}-{n}", std::process::id()));
        let made = std::fs::create_dir(&instance);
        // From here on, dropping `trace` removes the instance.
        let trace = BlockTrace {
            instance,
            pipe: None,
            _tracefs: tracefs,
        };
        made.map_err(|source| WatchError::File {
            path: trace.instance.clone(),
            source,
            remedy: "root is needed, and a kernel with tracefs instances",
        })?;
        let file = |name: &str| trace.instance.join(name);
        put(&file("tracing_on"), "0")?;
        put(&file("trace_clock"), "mono")?;
        put(&file("buffer_size_kb"), &BUFFER_KIB.to_string())?;
        for event in EVENTS {
            let dir = file("events/block").join(event);
            let filter = std::fs::write(dir.join("filter"), format!("dev=={device}"));
            filter.map_err(|source| WatchError::File {
                path: dir.join("filter"),
                source,
                remedy: NO_EVENTS,
            })?;
            put(&dir.join("enable"), "1")?;
        }
        Ok(trace)
    }

    /// Starts a new recording.
    pub fn start(&mut self) -> Result<(), WatchError> {
        self.pipe = None;
        put(&self.instance.join("trace"), "\n")?;
        self.pipe = Some(Pipe::open(&self.instance.join("trace_pipe"))?);
        put(&self.instance.join("tracing_on"), "1")
    }

    /// Stops the recording and returns it. It is empty if the recorder was not started.
    pub fn stop(&mut self) -> Result<Recorded, WatchError> {
        put(&self.instance.join("tracing_on"), "0")?;
        let text = match self.pipe.take() {
            Some(pipe) => pipe.end()?,
            None => String::new(),
        };
        Recorded::read(text, self.overruns())
    }

    /// Returns the number of events that were overwritten or dropped, on all CPUs.
    fn overruns(&self) -> u64 {
        let Ok(cpus) = std::fs::read_dir(self.instance.join("per_cpu")) else {
            return 0;
        };
        let mut lost = 0;
        for cpu in cpus.filter_map(Result::ok) {
            let stats = get(&cpu.path().join("stats")).unwrap_or_default();
            for line in stats.lines() {
                if let Some((name, n)) = line.split_once(": ")
                    && matches!(name, "overrun" | "commit overrun" | "dropped events")
                {
                    lost += n.trim().parse::<u64>().unwrap_or(0);
                }
            }
        }
        lost
    }
}

impl Drop for BlockTrace {
    fn drop(&mut self) {
        let _ = put(&self.instance.join("tracing_on"), "0");
        let _ = put(&self.instance.join("events/enable"), "0");
        // An instance cannot be removed while it is being read.
        self.pipe = None;
        let _ = std::fs::remove_dir(&self.instance);
    }
}
