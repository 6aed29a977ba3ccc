//! Runs the scripts of a recipe one after the other, and stops them if necessary. Counts the I/O of
//! the block device during the run.

use super::group::takes_processes;
use super::recipe::{Cache, Recipe, expand};
use super::{ProgramError, metric};
use crate::files::drop_clean;
use crate::place::{self, Scratch};
use seekwell_core::result::{BUILD, Direction, Metric, Record, SCHEMA};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Environment variable that marks the processes of a run. Its value identifies the run.
pub const MARK: &str = "SEEKWELL_MARK";
/// Interval at which a run checks whether it must stop.
const LOOK: Duration = Duration::from_millis(20);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// Time limit of a clean-up script.
const CLEAN_UP: Duration = Duration::from_secs(60);
/// Maximum number of bytes that are read from the end of a program's output.
const PRINTED_MAX: u64 = 4 << 20;

/// Where and how a recipe runs.
pub struct Where<'a> {
    /// Directory of the user. The run creates its own directory inside.
    pub dir: &'a Path,
    /// Node of the block device under the directory, for programs that read the device directly.
    pub device: Option<PathBuf>,
    /// File with the counters of the device, `/sys/block/NAME/stat`. `None` without a device.
    pub stat: Option<PathBuf>,
    /// Seed of the run.
    pub seed: u64,
    /// Number of CPU cores that the program should use.
    pub threads: usize,
    /// Function that is called regularly. It returns the reason why the run must stop, or `None`.
    pub stop: &'a (dyn Fn() -> Option<String> + Sync),
    /// Set to true when the measured phase begins.
    pub began: &'a AtomicBool,
    /// Function that parses metrics from the output, for programs whose metrics no regular
    /// expression can find. The first of these metrics replaces the main metric of the recipe. If
    /// the list is empty, the metrics of the recipe are used.
    pub numbers: &'a (dyn Fn(&str) -> Result<Vec<Metric>, String> + Sync),
    /// Nice value of the programs. `None`: the nice value of this process.
    pub nice: Option<i32>,
    /// I/O priority: class and level.
    pub ioprio: Option<(u8, u8)>,
    /// The file that adds a process or thread to a control group.
    pub cgroup: Option<PathBuf>,
    /// Value of the environment variable [`MARK`].
    pub mark: &'a str,
    /// Called when the measured phase begins.
    pub on_start: Option<fn()>,
}

/// Returns PATH with the directories of the recipe and the directories of administration programs,
/// which are not in the PATH of every user.
pub(super) fn search_path(more: &[String]) -> OsString {
    let mut all: Vec<PathBuf> = more.iter().flat_map(|p| expand(p)).collect();
    let own = std::env::var_os("PATH").unwrap_or_default();
    all.extend(std::env::split_paths(&own));
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    all.extend(system.iter().map(PathBuf::from));
    std::env::join_paths(all).unwrap_or(own)
}

/// Returns user and group number of a user from `/etc/passwd`.
fn user(name: &str) -> Option<(u32, u32)> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    let line = text.lines().find(|l| l.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Counters of a block device.
#[derive(Clone, Copy, Default)]
struct Counters {
    /// Numbers of completed requests, merged requests and sectors: first of reads, then of writes.
    of: [u64; 6],
    busy_ms: u64,
}

impl Counters {
    fn read(path: Option<&Path>) -> Option<Counters> {
        let text = fs::read_to_string(path?).ok()?;
        let all: Vec<u64> = text
            .split_whitespace()
            .filter_map(|w| w.parse().ok())
            .collect();
        let at = |i: usize| all.get(i).copied();
        Some(Counters {
            of: [at(0)?, at(1)?, at(2)?, at(4)?, at(5)?, at(6)?],
            busy_ms: at(9)?,
        })
    }

    /// Writes the differences from `before` to a record.
    fn fill(self, before: Counters, r: &mut Record) {
        let d = |i: usize| self.of[i].saturating_sub(before.of[i]);
        let side = |i: usize| Direction {
            ios: d(i),
            bytes: d(i + 2) * 512,
            ..Direction::default()
        };
        (r.read, r.write) = (side(0), side(3));
        r.requests = d(0) + d(3);
        r.back_merges = d(1) + d(4);
        r.device_busy_ns = self.busy_ms.saturating_sub(before.busy_ms) * 1_000_000;
    }
}

/// Counts the I/O of a block device from [`Counted::begin`] on.
pub struct Counted {
    stat: Option<PathBuf>,
    before: Option<Counters>,
}

impl Counted {
    /// Starts to count. `stat` is the file with the counters of the device.
    pub fn begin(stat: Option<PathBuf>) -> Self {
        let before = Counters::read(stat.as_deref());
        Counted { stat, before }
    }
    /// Writes the counts so far to a record. Adds a warning if there was no I/O.
    pub fn fill(&self, record: &mut Record) {
        let after = Counters::read(self.stat.as_deref());
        let (Some(before), Some(after)) = (self.before, after) else {
            return;
        };
        after.fill(before, record);
        if record.requests == 0 {
            record.warnings.push(
                "no request reached the block device during the run, so the result does not \
                 depend on the scheduler"
                    .to_owned(),
            );
        }
    }
}

/// State of a run.
struct Running<'a> {
    recipe: &'a Recipe,
    at: &'a Where<'a>,
    dir: &'a Path,
    params: &'a BTreeMap<String, String>,
    user: Option<(u32, u32)>,
}

/// Result of a script.
struct Ended {
    status: ExitStatus,
    printed: String,
    took: Duration,
    /// Reason why the script was stopped, if it was stopped.
    stopped: Option<String>,
}

impl Running<'_> {
    fn command(&self, script: &str, output: &File) -> std::io::Result<Command> {
        let mut c = Command::new("sh");
        c.args(["-eu", "-c", script])
            .current_dir(self.dir)
            .env("PATH", search_path(&self.recipe.paths))
            .env("LC_ALL", "C")
            .env(MARK, self.at.mark)
            .env("dir", self.dir)
            .env("device", self.at.device.clone().unwrap_or_default())
            .env("seed", self.at.seed.to_string())
            .env("threads", self.at.threads.to_string())
            .envs(self.params)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?);
        if let Some((uid, gid)) = self.user {
            c.uid(uid).gid(gid).env("HOME", self.dir);
        }
        Ok(c)
    }

    /// Runs a script until it ends or must be stopped.
    fn script(&self, script: &str, limit: Option<Duration>) -> std::io::Result<Ended> {
        let mut output = memory()?;
        let mut command = self.command(script, &output)?;
        // Only the thread that starts the script gets the priorities.
        let (nice, ioprio) = (self.at.nice, self.at.ioprio);
        let (processes, threads): (Option<&Path>, Option<&Path>) = match self.at.cgroup.as_deref() {
            Some(f) if takes_processes(f) => (Some(f), None),
            other => (None, other),
        };
        let mut child = std::thread::scope(|s| {
            let start = s.spawn(|| {
                place_thread(nice, ioprio, threads)?;
                command.spawn()
            });
            let broken = || std::io::Error::other("a thread could not be started");
            start.join().unwrap_or_else(|_| Err(broken()))
        })?;
        if let Some(file) = processes {
            // The shell has just started, so its child processes will be in the group too.
            let placed = fs::write(file, child.id().to_string());
            if let Err(e) = placed {
                let _ = child.kill();
                let _ = child.wait();
                return Err(e);
            }
        }
        let began = Instant::now();
        let pid = rustix::process::Pid::from_child(&child);
        let over = AtomicBool::new(false);
        let (status, stopped, took) = std::thread::scope(|s| {
            let watch = s.spawn(|| {
                let mut why = None;
                let mut asked = None;
                while !over.load(Ordering::Acquire) {
                    let late = limit.is_some_and(|l| began.elapsed() > l);
                    if why.is_none() {
                        why = (self.at.stop)().filter(|_| limit.is_none());
                        if late {
                            why = Some("the program did not end in time".to_owned());
                        }
                    }
                    let signal = match (&why, asked) {
                        (Some(_), None) => Some(rustix::process::Signal::TERM),
                        (Some(_), Some(at)) if Instant::elapsed(&at) > GRACE => {
                            Some(rustix::process::Signal::KILL)
                        }
                        _ => None,
                    };
                    if let Some(signal) = signal {
                        asked.get_or_insert_with(Instant::now);
                        let _ = rustix::process::kill_process_group(pid, signal);
                    }
                    std::thread::park_timeout(LOOK);
                }
                why
            });
            let status = child.wait();
            let took = began.elapsed();
            over.store(true, Ordering::Release);
            watch.thread().unpark();
            (status, watch.join().unwrap_or_default(), took)
        });
        Ok(Ended {
            status: status?,
            printed: end_of_file(&mut output)?,
            took,
            stopped,
        })
    }

    /// Runs a phase. If it fails, the error contains the end of the output.
    fn phase(&self, phase: &'static str, script: &str) -> Result<Ended, ProgramError> {
        let failed = |why: String| ProgramError::Failed {
            recipe: self.recipe.name.clone(),
            phase,
            why,
        };
        let limit = (phase == "clean up").then_some(CLEAN_UP);
        let ended = self
            .script(script, limit)
            .map_err(|e| match self.dir.exists() {
                true => failed(e.to_string()),
                false => failed(self.gone()),
            })?;
        if let Some(why) = ended.stopped {
            return Err(match phase {
                "clean up" => failed(why),
                _ => ProgramError::Stopped(why),
            });
        }
        if !ended.status.success() {
            let mut why = format!("{} ({})", last_words(&ended.printed), ended.status);
            if !self.dir.exists() {
                why = self.gone();
            } else if full(self.dir) {
                why = format!(
                    "the file system at {} is full: {why}",
                    self.at.dir.display()
                );
            }
            return Err(failed(why));
        }
        Ok(ended)
    }

    fn gone(&self) -> String {
        format!(
            "the directory {} was removed while the program ran",
            self.dir.display()
        )
    }

    fn drop_cache(&self) {
        if self.recipe.cache == Cache::Keep {
            return;
        }
        // A single syncfs(2) is used for all files. If a server keeps writing, separate calls would
        // delay the sync of each file.
        if let Ok(dir) = File::open(self.dir) {
            let _ = rustix::fs::syncfs(dir);
        }
        let mut dirs = vec![self.dir.to_owned()];
        while let Some(dir) = dirs.pop() {
            for e in fs::read_dir(dir).into_iter().flatten().flatten() {
                match e.file_type() {
                    Ok(t) if t.is_dir() => dirs.push(e.path()),
                    Ok(t) if t.is_file() => {
                        // A file that was just removed, or a socket, has no pages to drop.
                        let _ = File::open(e.path()).map(drop_clean);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Sets the nice value, the I/O priority (class and level) and the control group of the calling
/// thread. Processes that this thread starts inherit them.
///
/// # Errors
/// Returns the error of the kernel.
pub fn place_thread(
    nice: Option<i32>,
    ioprio: Option<(u8, u8)>,
    cgroup: Option<&Path>,
) -> std::io::Result<()> {
    use seekwell_core::{Class, IoPrio};
    if let Some(file) = cgroup {
        let me = rustix::thread::gettid().as_raw_nonzero().get();
        fs::write(file, me.to_string())?;
    }
    if let Some((class, level)) = ioprio {
        let class = match class {
            1 => Class::Rt,
            2 => Class::Be,
            3 => Class::Idle,
            _ => Class::None,
        };
        let set = crate::sys::set_ioprio(IoPrio { class, level });
        set.map_err(|e| std::io::Error::from_raw_os_error(e.host()))?;
    }
    if let Some(nice) = nice {
        let me = rustix::thread::gettid();
        rustix::process::setpriority_process(Some(me), nice)?;
    }
    Ok(())
}

/// Creates a file in memory, so that the program's output does not load the measured disk.
fn memory() -> std::io::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    Ok(File::from(rustix::fs::memfd_create(
        "seekwell-output",
        flags,
    )?))
}

fn end_of_file(file: &mut File) -> std::io::Result<String> {
    let len = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(len.saturating_sub(PRINTED_MAX)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the last lines of the output, joined to one line.
fn last_words(printed: &str) -> String {
    let lines: Vec<&str> = printed.lines().filter(|l| !l.trim().is_empty()).collect();
    // Of many lines, the first and the last two are used, because a long usage text begins with the
    // error.
    let told: Vec<&str> = match lines.as_slice() {
        [first, .., last, end] if lines.len() > 3 => vec![first, "...", last, end],
        few => few.to_vec(),
    };
    let words = crate::block::clean(&told.join("; "));
    match words.is_empty() {
        true => "it printed nothing".to_owned(),
        false => words,
    }
}

/// Returns whether the file system is full.
fn full(dir: &Path) -> bool {
    rustix::fs::statvfs(dir).is_ok_and(|s| s.f_bavail * s.f_frsize < 1 << 20 || s.f_favail == 0)
}

/// Ends all processes with this mark or a mark below it (`MARK/...`), and returns their number.
pub fn end_of(mark: &str) -> usize {
    let marked = format!("{MARK}={mark}");
    let is = |v: &[u8]| {
        let rest = v.strip_prefix(marked.as_bytes());
        rest.is_some_and(|r| r.is_empty() || r[0] == b'/')
    };
    let me = std::process::id();
    let mut ended = 0;
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        let mut any = false;
        for e in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = e.file_name();
            let Some(pid) = name.to_str().and_then(|n| n.parse::<i32>().ok()) else {
                continue;
            };
            let environment = fs::read(e.path().join("environ")).unwrap_or_default();
            let own = environment.split(|b| *b == 0).any(is);
            if own && pid as u32 != me {
                any = true;
                if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                    let _ = rustix::process::kill_process(pid, signal);
                    ended += usize::from(signal == rustix::process::Signal::TERM);
                }
            }
        }
        if !any {
            break;
        }
        std::thread::sleep(Duration::from_millis(300));
    }
    ended
}

/// Runs a recipe once: prepare, run, clean up. The record contains its metrics and the I/O of the
/// device.
///
/// # Errors
/// The run was stopped, a phase failed, or the output does not contain the metric. Even after an
/// error no process and no file is left.
pub fn run(
    recipe: &Recipe,
    params: &BTreeMap<String, String>,
    at: &Where<'_>,
) -> Result<Record, ProgramError> {
    recipe.check()?;
    let failed = |phase: &'static str, why: String| ProgramError::Failed {
        recipe: recipe.name.clone(),
        phase,
        why,
    };
    let prepare = |e: place::PlaceError| failed("prepare", e.to_string());
    let scratch = Scratch::new(at.dir, &recipe.name).map_err(prepare)?;
    let root = rustix::process::geteuid().is_root();
    let user = match recipe.user.as_deref().filter(|_| root) {
        None => None,
        Some(name) => {
            let found = user(name).ok_or_else(|| {
                failed(
                    "prepare",
                    format!("there is no user {name}: install the program"),
                )
            })?;
            chown(scratch.path(), Some(found.0), Some(found.1))
                .map_err(|e| failed("prepare", e.to_string()))?;
            Some(found)
        }
    };
    let running = Running {
        recipe,
        at,
        dir: scratch.path(),
        params,
        user,
    };
    let ran = measured(&running);
    let cleaned = match recipe.clean_up.trim() {
        "" => Ok(()),
        script => running.phase("clean up", script).map(drop),
    };
    end_of(at.mark);
    let removed = scratch.remove();
    let mut record = ran?;
    if let Err(e) = cleaned {
        record.warnings.push(e.to_string());
    }
    if let Err(e) = removed {
        record
            .warnings
            .push(format!("some files of the run could not be removed: {e}"));
    }
    Ok(record)
}

fn measured(running: &Running<'_>) -> Result<Record, ProgramError> {
    let (recipe, at) = (running.recipe, running.at);
    let mut record = Record {
        schema: SCHEMA,
        seekwell: env!("CARGO_PKG_VERSION").to_owned(),
        build: BUILD.to_owned(),
        substrate: "host".to_owned(),
        workload: recipe.name.clone(),
        params: running.params.clone(),
        seed: at.seed,
        ..Record::default()
    };
    let force = crate::in_force(at.dir);
    crate::run::describe(&mut record, &crate::Options::new(at.dir, at.seed), &force);
    if !recipe.version.trim().is_empty()
        && let Ok(ended) = running.script(&recipe.version, Some(CLEAN_UP))
    {
        let version = crate::block::clean(&ended.printed);
        record.params.insert("version".to_owned(), version);
    }
    if !recipe.prepare.trim().is_empty() {
        running.phase("prepare", &recipe.prepare)?;
    }
    running.drop_cache();
    at.began.store(true, Ordering::Release);
    if let Some(tell) = at.on_start {
        tell();
    }
    let counted = Counted::begin(at.stat.clone());
    let ended = running.phase("run", &recipe.run)?;
    counted.fill(&mut record);
    record.duration_ns = u64::try_from(ended.took.as_nanos()).unwrap_or(u64::MAX);
    let numbers = (at.numbers)(&ended.printed).map_err(|why| ProgramError::Failed {
        recipe: recipe.name.clone(),
        phase: "run",
        why,
    })?;
    if !numbers.is_empty() {
        let mut numbers = numbers.into_iter();
        record.metric = numbers.next();
        record.more_metrics = numbers.collect();
        return Ok(record);
    }
    let took_s = ended.took.as_secs_f64();
    for (i, m) in recipe.metrics.iter().enumerate() {
        match m.find(&ended.printed, took_s) {
            Some(value) if i == 0 => record.metric = Some(m.metric(value)),
            Some(value) => record.more_metrics.push(m.metric(value)),
            None if i == 0 => return Err(missing(recipe, m, &ended.printed)),
            None => {}
        }
    }
    Ok(record)
}

fn missing(recipe: &Recipe, m: &metric::MetricOf, printed: &str) -> ProgramError {
    ProgramError::NoMetric {
        recipe: recipe.name.clone(),
        metric: m.name.clone(),
        regex: m.regex.clone().unwrap_or_default(),
        last: last_words(printed),
    }
}
