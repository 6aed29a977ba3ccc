//! One run of a command in a guest.

use crate::clock::{Asked, Clock};
use crate::controller::{Controller, Limits, Mark, panic_line, wait};
use crate::disk::{GuestDisk, LogEntry};
use crate::error::GuestError;
use crate::image::{self, FileSystem};
use crate::init::{self, ENDED, STARTED};
use crate::job::{DIR, Job};
use crate::kernel::Kernel;
use crate::launch;
use crate::vhost::Connection;
use seekwell_core::Device;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Real time within which a kernel must ask for the time. It takes 0.1 s on an idle machine.
const CONNECT: Duration = Duration::from_secs(20);

/// Everything that determines one run.
pub struct Run {
    /// The kernel.
    pub kernel: Kernel,
    /// The disks; the first one has the file system.
    pub disks: Vec<Box<dyn Device + Send>>,
    /// Name of the scheduler of every disk; empty leaves the kernel's choice.
    pub scheduler: String,
    /// Settings to write before the command: path and value. A path without a leading slash is
    /// below `/sys/block/vda/queue`.
    pub writes: Vec<(String, String)>,
    /// The file system of the first disk. The command runs in its root directory. `None`: the
    /// command runs in `/tmp` and can use `/dev/vda`.
    pub file_system: Option<FileSystem>,
    /// Options of mount(2).
    pub mount_options: String,
    /// Memory of the guest in bytes.
    pub memory_bytes: u64,
    /// Seed of the guest's random numbers.
    pub seed: u64,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Environment variables of the command.
    pub environment: Vec<(String, String)>,
    /// Further files and directories of the host that the guest can read.
    pub visible: Vec<PathBuf>,
    /// Number of requests that the first disk accepts at once; `None` for the value of its model.
    pub depth: Option<u32>,
    /// Most segments of a request (`queue/max_segments`).
    pub segments: u32,
    /// The run ends soon after this flag is set.
    pub stop: Option<Arc<AtomicBool>>,
    /// Most real time.
    pub wall_limit: Duration,
    /// Most virtual time.
    pub time_limit: Duration,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Exit status of the command; 128 plus the number of the signal that ended it.
    pub exit: u8,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its error output.
    pub stderr: Vec<u8>,
    /// Virtual time at which the command started, ns.
    pub started_ns: u64,
    /// Virtual time at which the command had ended and its file system was unmounted, ns.
    pub ended_ns: u64,
    /// The program's own marks.
    pub marks: Vec<Mark>,
    /// The requests of each disk, in order of arrival, from the boot on.
    pub logs: Vec<Vec<LogEntry>>,
    /// Real time of the run.
    pub wall: Duration,
    /// What the kernel printed.
    pub console: String,
}

/// The directory of one run. It is removed at the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self, GuestError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let base = std::env::temp_dir();
        remove_stale(&base);
        let n = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = base.join(format!("{PREFIX}{}-{n}", std::process::id()));
        let place = Place(dir);
        let out = place.0.join("run/out");
        fs::create_dir_all(&out).map_err(GuestError::host(format!("create {}", out.display())))?;
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const PREFIX: &str = "seekwell-guest-";

/// Removes the directories of runs whose process was killed.
fn remove_stale(base: &Path) {
    for entry in fs::read_dir(base)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
    {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|n| n.strip_prefix(PREFIX)?.split('-').next());
        let Some(pid) = pid.and_then(|p| p.parse::<u32>().ok()) else {
            continue;
        };
        if !Path::new(&format!("/proc/{pid}")).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The processes of a guest. They are killed at the end.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        // The launcher's end kills the kernel, and the kernel's end all processes of its namespace.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Run {
    /// Performs the run. `program` is a program whose `main` calls [`crate::enter`] first.
    ///
    /// # Errors
    /// Returns an error if the guest did not reach the end of the command. The command's own failure
    /// is not an error.
    pub fn execute(self, program: &Path) -> Result<Outcome, GuestError> {
        let began = Instant::now();
        let place = Place::new()?;
        let run = place.0.join("run");
        let limits = Limits {
            stop: self.stop.clone(),
            wall: self.wall_limit,
            virtual_time: self.time_limit,
            settle: Duration::from_nanos(self.settle_ns()),
        };
        self.write_job(&run)?;
        let listen = |name: &str| {
            let path = run.join(name);
            UnixListener::bind(&path)
                .map_err(GuestError::host(format!("listen on {}", path.display())))
        };
        let clock = listen("clock")?;
        let mut arguments = self.kernel_arguments();
        let modelled = self.disks.first().map_or(1, |d| d.facts().depth);
        let depth = self.depth.map_or(modelled, |d| d.min(modelled));
        arguments.push(format!("virtio_blk.queue_depth={}", depth.clamp(1, 256)));
        let mut disks = Vec::new();
        for (i, device) in self.disks.into_iter().enumerate() {
            let fs = self.file_system.filter(|_| i == 0);
            let image = image::new(&place.0, device.facts().capacity.0 * 512, fs, self.seed)?;
            let name = format!("disk{i}");
            arguments.push(format!("virtio_uml.device={DIR}/{name}:2"));
            disks.push(Connection::new(
                listen(&name)?,
                GuestDisk::new(device, image, self.segments),
            ));
        }
        // What follows `--` are arguments of the first process.
        arguments.extend(["--".to_owned(), init::WORD.to_owned()]);
        let console = place.0.join("console");
        let error = || GuestError::host(format!("create {}", console.display()));
        let output = File::create(&console).map_err(error())?;
        let errors = output.try_clone().map_err(error())?;
        let child = Command::new(program)
            .arg(launch::WORD)
            .arg(&place.0)
            .arg(program)
            .arg(&self.kernel.dir)
            .args(&self.visible)
            .arg("--")
            .args(&arguments)
            .env("SEEKWELL_GUEST_SEED", self.seed.to_string())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(GuestError::host(format!("start {}", program.display())))?;
        let mut guest = Guest(child);
        let text = || fs::read(&console).map(|b| String::from_utf8_lossy(&b).into_owned());
        let clock = match connect(&clock, &mut guest, began)? {
            Some(clock) => clock,
            None => {
                let status = guest.0.try_wait().ok().flatten();
                return Err(match status {
                    Some(s) => early(&text().unwrap_or_default(), 0, s.to_string()),
                    None => GuestError::NoTimeTravel(self.kernel.name, CONNECT),
                });
            }
        };
        let mut controller = Controller::new(clock, disks, limits, began, &console);
        controller.run()?;
        let at_ns = controller.now();
        let status = guest
            .0
            .wait()
            .map_err(GuestError::host("wait for the guest"))?;
        let console = text().unwrap_or_default();
        let (mut marks, disks) = controller.into_parts();
        let own = fs::read_to_string(run.join("out").join(init::MARKS)).unwrap_or_default();
        marks.extend(init::marks(&own));
        let time = |value| marks.iter().find(|m| m.value == value).map(|m| m.at_ns);
        let result = fs::read_to_string(run.join("out/status")).unwrap_or_default();
        let exit = match result.split_once(' ') {
            Some(("exit", code)) => code.parse().unwrap_or(255),
            Some(("signal", n)) => 128 + n.parse().unwrap_or(0),
            Some(("error", why)) => return Err(GuestError::Init(why.to_owned())),
            _ => return Err(early(&console, at_ns, status.to_string())),
        };
        let read = |name: &str| fs::read(run.join("out").join(name)).unwrap_or_default();
        Ok(Outcome {
            exit,
            stdout: read("stdout"),
            stderr: read("stderr"),
            started_ns: time(STARTED).unwrap_or(0),
            ended_ns: time(ENDED).unwrap_or(at_ns),
            marks: marks.into_iter().filter(|m| m.value < STARTED).collect(),
            logs: disks
                .into_iter()
                .map(|d| d.into_disk().into_log())
                .collect(),
            wall: began.elapsed(),
            console,
        })
    }

    fn write_job(&self, run: &Path) -> Result<(), GuestError> {
        let job = Job {
            schedulers: vec![self.scheduler.clone(); self.disks.len()],
            writes: self.writes.clone(),
            file_system: self.file_system.map_or("", FileSystem::name).to_owned(),
            mount_options: self.mount_options.clone(),
            settle_ns: self.settle_ns(),
            command: self.command.clone(),
            environment: self.environment.clone(),
        };
        // The launcher covers the empty files with the kernel, the library and the program.
        for (name, text) in [
            ("job", job.to_text()),
            ("linux", String::new()),
            ("seed.so", String::new()),
            ("seekwell", String::new()),
        ] {
            let path = run.join(name);
            fs::write(&path, text)
                .map_err(GuestError::host(format!("write {}", path.display())))?;
        }
        Ok(())
    }

    /// Returns the time between the mount and the command, ns. After a mount, ext4 reads block
    /// bitmaps in the background for some seconds. The last part is random, so that the command does
    /// not start at the same point of the flusher's period of 5 s.
    fn settle_ns(&self) -> u64 {
        const MINUTE_NS: u64 = 60_000_000_000;
        const PERIOD_NS: u64 = 5_000_000_000;
        if self.file_system.is_none() {
            return 0;
        }
        let mixed = self
            .seed
            .wrapping_add(1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        MINUTE_NS + (mixed >> 20) % PERIOD_NS
    }

    fn kernel_arguments(&self) -> Vec<String> {
        let fixed = "norandmaps rootfstype=hostfs rootflags=/ ro con=null con0=fd:0,fd:1 con1=null \
                     ssl=null quiet";
        let mut all = vec![
            format!("mem={}K", self.memory_bytes / 1024),
            format!("time-travel=ext:1:{DIR}/clock"),
            format!("init={DIR}/seekwell"),
        ];
        all.extend(fixed.split_whitespace().map(str::to_owned));
        all
    }
}

/// Waits for the connection of the guest's clock. Returns `None` if there is none in time.
fn connect(
    listener: &UnixListener,
    guest: &mut Guest,
    began: Instant,
) -> Result<Option<Clock>, GuestError> {
    loop {
        let ready = wait(&[listener.as_fd()], Duration::from_millis(20))?;
        if ready != 0 {
            let accepted = listener.accept();
            let (socket, _) = accepted.map_err(GuestError::host("accept the guest's clock"))?;
            let mut clock = Clock::new(socket)?;
            return match clock.receive()? {
                Asked::Started => Ok(Some(clock)),
                _ => Ok(None),
            };
        }
        let ended = guest
            .0
            .try_wait()
            .map_err(GuestError::host("wait for the guest"))?;
        if ended.is_some() || began.elapsed() > CONNECT {
            return Ok(None);
        }
    }
}

/// Returns the reason that a guest ended before its command.
fn early(console: &str, at_ns: u64, status: String) -> GuestError {
    if let Some(line) = panic_line(console) {
        return GuestError::Panic { at_ns, line };
    }
    let line = console.lines().rev().find(|l| !l.trim().is_empty());
    GuestError::Ended {
        status,
        line: line.unwrap_or("it printed nothing").trim().to_owned(),
    }
}
