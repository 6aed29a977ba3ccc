//! Starts the kernel in its own mount and process namespaces, with a prepared root directory.
//!
//! The root directory contains read-only views of the host's programs and one writable directory
//! for the results. So all paths are the same in every run, and the guest cannot change a file of
//! the host. The end of this process kills the guest, and the end of the controller kills this
//! process.

use crate::job::DIR;
use rustix::fs::{CWD, Mode, mkdirat, symlinkat};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};
use rustix::process::{
    Resource, Rlimit, Signal, chdir, chroot, getgid, getuid, set_parent_process_death_signal,
    setrlimit,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// First argument of the program as the launcher.
pub const WORD: &str = "guest-launch";
/// Directories of the host that the guest can read.
const SHARED: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/etc", "/opt",
];
/// Directories that exist for mounts in the guest.
const EMPTY: &[&str] = &[
    "/proc", "/sys", "/dev", "/tmp", "/run", "/var", "/disk", "/root", "/mnt",
];
/// Devices that the kernel's process itself needs.
const DEVICES: &[&str] = &["null", "zero", "full", "urandom", "random"];

/// Runs as the launcher: `DIR PROGRAM KERNEL_DIR [PATH]... -- KERNEL_ARGUMENTS`. The guest can read
/// each PATH.
pub fn main(args: Vec<OsString>) -> u8 {
    match launch(&args) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("launch: {e}");
            125
        }
    }
}

fn step<T, E: Into<io::Error>>(what: &str, r: Result<T, E>) -> Result<T, String> {
    r.map_err(|e| format!("{what}: {}", e.into()))
}

fn launch(args: &[OsString]) -> Result<u8, String> {
    let end = args.iter().position(|a| a == "--");
    let (Some(end @ 3..), [dir, program, kernel_dir, ..]) = (end, args) else {
        return Err("wrong arguments".to_owned());
    };
    let binds: Vec<PathBuf> = args[3..end].iter().map(PathBuf::from).collect();
    let death = set_parent_process_death_signal(Some(Signal::KILL));
    step("set the signal of the parent's death", death)?;
    namespaces()?;
    let root = prepare(Path::new(dir), &binds)?;
    let own = root.join(DIR.trim_start_matches('/'));
    for (from, name) in [
        (PathBuf::from(program), "seekwell"),
        (Path::new(kernel_dir).join("linux"), "linux"),
        (Path::new(kernel_dir).join("seed.so"), "seed.so"),
    ] {
        bind(&from, &own.join(name), true)?;
    }
    // The first process of the new namespace. Its end kills all others of the namespace.
    let mut kernel = Command::new(format!("{DIR}/linux"));
    kernel
        .args(&args[end + 1..])
        .env_clear()
        .env("HOME", "/root")
        .env("TMPDIR", "/dev/shm")
        .env("LD_PRELOAD", format!("{DIR}/seed.so"))
        .envs(std::env::var_os("SEEKWELL_GUEST_SEED").map(|s| ("SEEKWELL_GUEST_SEED", s)));
    let enter = move || -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // A kernel that panics aborts. Its memory is of no use to the user.
        let none = Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        setrlimit(Resource::Core, none)?;
        chroot(&root)?;
        chdir("/")?;
        // UML reads /proc of its own namespace.
        mount("proc", "/proc", "proc", MountFlags::empty(), None)?;
        fixed_addresses()
    };
    #[expect(
        unsafe_code,
        reason = "the calls must be made after fork(2), in the new namespace"
    )]
    // SAFETY: this process has one thread, so the closure may allocate.
    unsafe {
        kernel.pre_exec(enter);
    }
    let status = step("start the kernel", kernel.status())?;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => 128 + signal.unwrap_or(0) as u8,
    })
}

/// Moves to new mount and process namespaces; as an ordinary user also to a user namespace.
fn namespaces() -> Result<(), String> {
    let (uid, gid) = (getuid(), getgid());
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWPID;
    if !uid.is_root() {
        flags |= UnshareFlags::NEWUSER;
    }
    #[expect(
        unsafe_code,
        reason = "rustix marks unshare(2) as unsafe for FILES and VM"
    )]
    // SAFETY: neither file descriptors nor memory are unshared.
    let r = unsafe { unshare_unsafe(flags) };
    step(
        "make namespaces (is kernel.unprivileged_userns_clone 1?)",
        r,
    )?;
    if !uid.is_root() {
        let _ = fs::write("/proc/self/setgroups", "deny");
        let map = |id: u32| format!("0 {id} 1");
        step(
            "map the user",
            fs::write("/proc/self/uid_map", map(uid.as_raw())),
        )?;
        step(
            "map the group",
            fs::write("/proc/self/gid_map", map(gid.as_raw())),
        )?;
    }
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    step("make mounts private", mount_change("/", private))
}

/// Builds the root directory as mounts below `dir/root`.
fn prepare(dir: &Path, binds: &[PathBuf]) -> Result<PathBuf, String> {
    let root = dir.join("root");
    let below = |p: &str| root.join(p.trim_start_matches('/'));
    let make = |p: &Path| step(&format!("create {}", p.display()), fs::create_dir_all(p));
    make(&root)?;
    let tmpfs = mount(
        "tmpfs",
        &root,
        "tmpfs",
        MountFlags::NOSUID,
        Some(c"mode=755"),
    );
    step("mount the root directory", tmpfs)?;
    for d in EMPTY {
        make(&below(d))?;
    }
    for d in SHARED {
        let (from, to) = (Path::new(d), below(d));
        match fs::symlink_metadata(from) {
            Ok(m) if m.is_symlink() => {
                let target = step(d, fs::read_link(from))?;
                step(d, symlinkat(&target, CWD, &to))?;
            }
            Ok(m) if m.is_dir() => {
                make(&to)?;
                bind(from, &to, true)?;
            }
            _ => {}
        }
    }
    for path in binds {
        let to = below(&path.to_string_lossy());
        if path.is_dir() {
            make(&to)?;
        } else {
            if let Some(parent) = to.parent() {
                make(parent)?;
            }
            step("create a file", fs::write(&to, ""))?;
        }
        bind(path, &to, true)?;
    }
    let shm = below("/dev/shm");
    make(&shm)?;
    let memory = mount("tmpfs", &shm, "tmpfs", MountFlags::NOSUID, None);
    step("mount the memory's directory", memory)?;
    for d in DEVICES {
        let to = below("/dev").join(d);
        step("create a device", fs::write(&to, ""))?;
        bind(&Path::new("/dev").join(d), &to, false)?;
    }
    let own = below(DIR);
    make(&own)?;
    // The sockets, the job and the kernel are read-only for the guest; only `out` is writable.
    bind(&dir.join("run"), &own, true)?;
    bind(&dir.join("run/out"), &own.join("out"), false)?;
    let _ = mkdirat(CWD, below("/root").join(".uml"), Mode::from_raw_mode(0o700));
    Ok(root)
}

fn bind(from: &Path, to: &Path, read_only: bool) -> Result<(), String> {
    let what = format!("show {} to the guest", from.display());
    step(&what, mount_bind_recursive(from, to))?;
    if read_only {
        // In a user namespace, flags that the mount already has must be kept.
        let flags = rustix::fs::statvfs(to).map(|s| s.f_flag);
        let mut keep = MountFlags::BIND | MountFlags::RDONLY;
        if let Ok(f) = flags {
            use rustix::fs::StatVfsMountFlags as Has;
            let pairs = [
                (Has::NOSUID, MountFlags::NOSUID),
                (Has::NODEV, MountFlags::NODEV),
                (Has::NOEXEC, MountFlags::NOEXEC),
                (Has::NOATIME, MountFlags::NOATIME),
                (Has::NODIRATIME, MountFlags::NODIRATIME),
                (Has::RELATIME, MountFlags::RELATIME),
            ];
            for (has, flag) in pairs {
                if f.contains(has) {
                    keep |= flag;
                }
            }
        }
        step(&what, mount_remount(to, keep, c""))?;
    }
    Ok(())
}

/// Turns off the randomisation of addresses: hashes in the kernel depend on them.
fn fixed_addresses() -> io::Result<()> {
    #[expect(unsafe_code, reason = "no crate in use wraps the call")]
    // SAFETY: the call changes a flag of this process only.
    let r = unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
    if r < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
