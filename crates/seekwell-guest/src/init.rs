//! The guest's first process: mounts file systems, applies the settings, runs the command, records
//! its result, and powers off.

use crate::controller::Mark;
use crate::job::{DIR, Job, MOUNT};
use rustix::fs::{CWD, Mode, mkdirat};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::system::{RebootCommand, reboot};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// First argument of the program as the guest's first process.
pub const WORD: &str = "guest-init";
/// Mark before the command starts.
pub const STARTED: u64 = 1 << 32;
/// Mark after the command has ended and its file system is unmounted.
pub const ENDED: u64 = 2 << 32;
/// The file with the times of the phases.
pub const MARKS: &str = "marks";
/// The file to which a program may write the number of a mark (since 6.8).
const BROADCAST: &str = "/sys/kernel/um-ext-time/bc-message";

/// Runs as the guest's first process. Does not return in a guest.
pub fn main() -> u8 {
    if std::process::id() != 1 {
        eprintln!("this command runs only inside a guest");
        return 2;
    }
    let result = base().and_then(|()| work());
    let text = match result {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or(0)),
        },
        Err(why) => format!("error {why}"),
    };
    let _ = out_file("status").and_then(|mut f| f.write_all(text.as_bytes()));
    rustix::fs::sync();
    let _ = reboot(RebootCommand::PowerOff);
    1
}

fn base() -> Result<(), String> {
    attach("proc", "/proc", "proc", "")?;
    attach("sysfs", "/sys", "sysfs", "")?;
    attach("devtmpfs", "/dev", "devtmpfs", "")?;
    for dir in ["/dev/shm", "/tmp", "/run", "/var"] {
        if dir == "/dev/shm" {
            let _ = mkdirat(CWD, dir, Mode::from_raw_mode(0o1777));
        }
        attach("tmpfs", dir, "tmpfs", "mode=1777")?;
    }
    // Directories that programs expect in /var.
    for dir in ["/var/tmp", "/var/lib", "/var/run", "/var/log"] {
        let _ = mkdirat(CWD, dir, Mode::from_raw_mode(0o1777));
    }
    let out = format!("{DIR}/out");
    attach("none", &out, "hostfs", &out)?;
    let _ = attach("cgroup2", "/sys/fs/cgroup", "cgroup2", "");
    let _ = fs::set_permissions(
        BROADCAST,
        std::os::unix::fs::PermissionsExt::from_mode(0o666),
    );
    Ok(())
}

/// Default latency targets of writeback throttling, us (block/blk-wbt.c).
const ROTATING_LAT_USEC: &str = "75000";
const FLASH_LAT_USEC: &str = "2000";

fn attach(source: &str, target: &str, kind: &str, data: &str) -> Result<(), String> {
    let data = std::ffi::CString::new(data).map_err(|e| e.to_string())?;
    let data = Some(data.as_c_str()).filter(|d| !d.is_empty());
    mount(source, target, kind, MountFlags::empty(), data)
        .map_err(|e| format!("mount {kind} on {target}: {}", io::Error::from(e)))
}

fn work() -> Result<ExitStatus, String> {
    let text =
        fs::read_to_string(format!("{DIR}/job")).map_err(|e| format!("read the job: {e}"))?;
    let job = Job::from_text(&text);
    let file = |path: &str| match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("/sys/block/vda/queue/{path}"),
    };
    let writes = job.writes.iter().map(|(path, value)| (file(path), value));
    let writes: Vec<(String, &String)> = writes.collect();
    // A scheduler reads the kind of the disk when it starts.
    for (path, value) in writes.iter().filter(|w| w.0.ends_with("/queue/rotational")) {
        write_setting(path, value)?;
    }
    for (i, name) in job
        .schedulers
        .iter()
        .enumerate()
        .filter(|(_, n)| !n.is_empty())
    {
        let path = format!("/sys/block/{}/queue/scheduler", disk_name(i));
        write_setting(&path, name).map_err(|why| match fs::read_to_string(&path) {
            Ok(all) => {
                let all = all.replace(['[', ']'], "");
                format!(
                    "no scheduler of this kernel is called \"{name}\"; it has: {}",
                    all.trim()
                )
            }
            Err(_) => why,
        })?;
    }
    for i in 0..job.schedulers.len() {
        throttle_by_kind(&format!("/sys/block/{}/queue", disk_name(i)))?;
    }
    for (path, value) in &writes {
        write_setting(path, value)?;
    }
    let mounted = !job.file_system.is_empty();
    if mounted {
        let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if !known.split_whitespace().any(|w| w == job.file_system) {
            return Err(format!(
                "this kernel was built without {}. Build one with: seekwell guest build --fs ext4,{}",
                job.file_system, job.file_system
            ));
        }
        attach("/dev/vda", MOUNT, &job.file_system, &job.mount_options)?;
        let _ = fs::set_permissions(MOUNT, std::os::unix::fs::PermissionsExt::from_mode(0o1777));
        std::thread::sleep(Duration::from_nanos(job.settle_ns));
    }
    let status = command(&job, mounted)?;
    if mounted {
        let _ = std::env::set_current_dir("/");
        let _ = unmount(MOUNT, UnmountFlags::empty());
    }
    mark(ENDED)?;
    Ok(status)
}

/// Sets the latency target of writeback throttling for a disk that does not rotate. A virtio disk
/// appears as a rotating one, so its throttling begins with that target. If the scheduler keeps
/// throttling off, the kernel shows 0, and nothing is changed. The kernel regards the new target as
/// set by hand: throttling stays on if the command later selects bfq.
fn throttle_by_kind(queue: &str) -> Result<(), String> {
    let shows = |file: &str, value: &str| {
        fs::read_to_string(format!("{queue}/{file}")).is_ok_and(|now| now.trim() == value)
    };
    match shows("rotational", "0") && shows("wbt_lat_usec", ROTATING_LAT_USEC) {
        true => write_setting(&format!("{queue}/wbt_lat_usec"), FLASH_LAT_USEC),
        false => Ok(()),
    }
}

fn command(job: &Job, mounted: bool) -> Result<ExitStatus, String> {
    let Some((program, args)) = job.command.split_first() else {
        return Err("no command".to_owned());
    };
    let file = |name: &str| out_file(name).map_err(|e| format!("create the file of {name}: {e}"));
    let (out, err) = (file("stdout")?, file("stderr")?);
    mark(STARTED)?;
    let child = Command::new(program)
        .args(args)
        .current_dir(if mounted { MOUNT } else { "/tmp" })
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .env("HOME", "/tmp")
        .env("LANG", "C.UTF-8")
        .env("TMPDIR", "/tmp")
        .envs(job.environment.iter().map(|(n, v)| (n, v)))
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .status();
    child.map_err(|e| format!("start \"{program}\": {e}"))
}

fn out_file(name: &str) -> io::Result<fs::File> {
    fs::File::create(Path::new(DIR).join("out").join(name))
}

/// Records the time of a phase for the controller. A program in the guest uses numbers below 2^32.
///
/// The controller cannot do it: while the disk is idle, the guest lets time pass without telling the
/// controller.
///
/// # Errors
/// The file of the marks cannot be written, for example outside a guest.
pub fn mark(value: u64) -> Result<(), String> {
    let t = clock_gettime(ClockId::Monotonic);
    let ns = t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64;
    let path = Path::new(DIR).join("out").join(MARKS);
    let file = fs::OpenOptions::new().append(true).create(true).open(&path);
    let written = file.and_then(|mut f| f.write_all(format!("{ns} {value}\n").as_bytes()));
    written.map_err(|e| format!("write {}: {e}", path.display()))
}

/// Reads the marks that [`mark`] wrote.
pub fn marks(text: &str) -> Vec<Mark> {
    let parsed = text.lines().filter_map(|l| {
        let (ns, value) = l.split_once(' ')?;
        Some(Mark {
            at_ns: ns.parse().ok()?,
            value: value.parse().ok()?,
        })
    });
    parsed.collect()
}

fn write_setting(path: &str, value: &str) -> Result<(), String> {
    let mut f = fs::OpenOptions::new()
        .write(true)
        .open(path)
        .map_err(|e| format!("open {path}: {e}"))?;
    f.write_all(value.as_bytes())
        .map_err(|e| format!("write \"{value}\" to {path}: {e}"))
}

/// Returns the name of disk `i`: vda, vdb, ...
fn disk_name(i: usize) -> String {
    format!("vd{}", char::from(b'a' + (i as u8).min(25)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_with_their_times() {
        let all = marks("12 4294967296\nbroken\n13 1\n");
        let expected = [(12, STARTED), (13, 1)];
        let expected = expected.map(|(at_ns, value)| Mark { at_ns, value });
        assert_eq!(all, expected);
        assert!(mark(1).is_err(), "this is not a guest");
    }
}
