//! Builds a kernel for guests from its source: User Mode Linux, trimmed to what a disk needs.

use crate::cpu_state;
use crate::error::GuestError;
use crate::image::FileSystem;
use crate::kernel::{Kernel, REGISTERS};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the packages `linux-source-*` put their archives.
const SOURCES: &str = "/usr/src";

/// Options that are turned on.
const ON: &str = "64BIT PRINTK MULTIUSER BINFMT_ELF BINFMT_SCRIPT HOSTFS BLOCK BLK_DEV IO_URING AIO \
    EPOLL FUTEX SIGNALFD TIMERFD EVENTFD SHMEM TMPFS DEVTMPFS PROC_FS SYSFS SYSCTL SYSVIPC \
    POSIX_MQUEUE MAGIC_SYSRQ MQ_IOSCHED_DEADLINE MQ_IOSCHED_KYBER IOSCHED_BFQ BFQ_GROUP_IOSCHED CGROUPS MEMCG \
    BLK_CGROUP CGROUP_WRITEBACK BLK_CGROUP_IOCOST BLK_CGROUP_IOLATENCY BLK_CGROUP_IOPRIO \
    BLK_DEV_THROTTLING BLK_WBT BLK_WBT_MQ HIGH_RES_TIMERS NO_HZ_IDLE UML_TIME_TRAVEL_SUPPORT NET \
    UNIX POSIX_TIMERS FILE_LOCKING FHANDLE ADVISE_SYSCALLS MEMBARRIER TTY NULL_CHAN STDERR_CONSOLE \
    VIRTIO_MENU VIRTIO_UML VIRTIO_BLK INOTIFY_USER MD BLK_DEV_DM DM_CRYPT BLK_DEV_MD MD_RAID0 \
    MD_RAID1 MD_RAID10 MD_RAID456 CRYPTO_AES CRYPTO_XTS";
/// Options that are turned off. The benchmark of RAID 6 excludes time travel.
const OFF: &str = "INET BLK_DEV_UBD BLK_DEV_NBD FTRACE DEBUG_FS KALLSYMS RAID6_PQ_BENCHMARK SMP";
/// Options without which the kernel is useless here.
const NEEDED: &str = "UML_TIME_TRAVEL_SUPPORT VIRTIO_UML VIRTIO_BLK HOSTFS DEVTMPFS PROC_FS SYSFS \
    MQ_IOSCHED_DEADLINE MQ_IOSCHED_KYBER IOSCHED_BFQ BLK_WBT_MQ";
/// Programs that the build needs, with their Debian packages.
const TOOLS: &[(&str, &str)] = &[
    ("make", "make"),
    ("gcc", "gcc"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("xz", "xz-utils"),
    ("tar", "tar"),
];

/// A build.
#[derive(Clone, Debug)]
pub struct Build {
    /// Name in the cache; `None`: the version of the source, such as `6.12`.
    pub name: Option<String>,
    /// Archive or directory of the source; `None`: the newest archive of the distribution.
    pub source: Option<PathBuf>,
    /// File systems that the kernel supports.
    pub file_systems: Vec<FileSystem>,
    /// File with further lines of the configuration.
    pub config: Option<PathBuf>,
    /// Number of parallel compilers.
    pub jobs: usize,
}

/// Returns the tools that are not installed, with the packages that contain them.
pub fn missing_tools() -> Vec<(&'static str, &'static str)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |name: &str| std::env::split_paths(&path).any(|d| d.join(name).is_file());
    TOOLS.iter().copied().filter(|t| !has(t.0)).collect()
}

impl Build {
    /// Builds the kernel and puts it into the cache. `progress` receives one line per step.
    ///
    /// # Errors
    /// Returns an error with the last lines of the output if a step fails. The cache then keeps the
    /// former kernel of this name.
    pub fn execute(
        &self,
        cache: &Path,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Kernel, GuestError> {
        if let Some((tool, package)) = missing_tools().first() {
            return Err(GuestError::Missing((*tool).into(), (*package).into()));
        }
        let source = match &self.source {
            Some(s) if s.exists() => s.clone(),
            Some(s) => {
                return Err(GuestError::Usage(format!(
                    "the source \"{}\" does not exist",
                    s.display()
                )));
            }
            None => newest_source(Path::new(SOURCES))?,
        };
        let work = Workplace::new(cache)?;
        let tree = if source.is_dir() {
            fs::canonicalize(&source)
                .map_err(GuestError::host(format!("find {}", source.display())))?
        } else {
            progress(&format!("unpack {}", source.display()));
            work.unpack(&source)?
        };
        let fixed = cpu_state::fixed_in(&tree);
        let needed = cpu_state::size();
        let adapt = fixed.is_some_and(|size| size < needed);
        let tree = match fixed {
            Some(size) if adapt => {
                progress(&format!(
                    "adapt the kernel to the registers of this CPU: {needed} instead of {size} bytes"
                ));
                let tree = work.own_copy(tree)?;
                cpu_state::adapt(&tree, size, needed)?;
                tree
            }
            _ => tree,
        };
        let version = version_of(&tree)?;
        let name = self
            .name
            .clone()
            .unwrap_or_else(|| short_version(&version).to_owned());
        if name.is_empty() || name.contains(['/', ' ', ',']) || name.starts_with('.') {
            return Err(GuestError::Usage(format!(
                "\"{name}\" cannot be the name of a kernel: use letters, digits, dots and dashes"
            )));
        }
        let place = Kernel::place(cache, &name);
        progress(&format!("configure Linux {version}"));
        // The kernel keeps several copies of the registers on its stacks.
        let stacks = if adapt {
            "CONFIG_KERNEL_STACK_ORDER=4\n"
        } else {
            ""
        };
        self.configure(&work, &tree, stacks)?;
        progress(&format!("compile with {} jobs", self.jobs));
        work.make(&tree, &[&format!("-j{}", self.jobs.max(1)), "linux"])?;
        let made = work.dir.join("made");
        let create = |p: &Path| {
            fs::create_dir_all(p).map_err(GuestError::host(format!("create {}", p.display())))
        };
        create(&made)?;
        let output = work.dir.join("out");
        let linux = made.join("linux");
        work.tool(
            "strip",
            &[
                "-o",
                &path_text(&linux)?,
                &path_text(&output.join("linux"))?,
            ],
        )?;
        let seed_source = work.dir.join("seed.c");
        let write = |p: &Path, text: &[u8]| {
            fs::write(p, text).map_err(GuestError::host(format!("write {}", p.display())))
        };
        write(&seed_source, include_bytes!("seed.c"))?;
        let seed = path_text(&made.join("seed.so"))?;
        work.tool(
            "gcc",
            &[
                "-O2",
                "-shared",
                "-fPIC",
                "-o",
                &seed,
                &path_text(&seed_source)?,
            ],
        )?;
        let config =
            fs::read(output.join(".config")).map_err(GuestError::host("read the configuration"))?;
        write(&made.join("config"), &config)?;
        let file_systems: Vec<_> = self.file_systems.iter().map(|f| f.name()).collect();
        let mut about = format!(
            "version {version}\nsource {}\nfile-systems {}\n",
            source.display(),
            file_systems.join(",")
        );
        let registers = match fixed {
            Some(size) => size.max(needed).to_string(),
            None => "any".to_owned(),
        };
        about += &format!("{REGISTERS} {registers}\n");
        write(&made.join("about"), about.as_bytes())?;
        if let Some(parent) = place.parent() {
            create(parent)?;
        }
        let _ = fs::remove_dir_all(&place);
        fs::rename(&made, &place)
            .map_err(GuestError::host(format!("write {}", place.display())))?;
        Ok(Kernel { name, dir: place })
    }

    fn configure(&self, work: &Workplace, tree: &Path, more: &str) -> Result<(), GuestError> {
        work.make(tree, &["tinyconfig"])?;
        let path = work.dir.join("out/.config");
        let error = || GuestError::host(format!("write {}", path.display()));
        let mut f = File::options().append(true).open(&path).map_err(error())?;
        let mut text = more.to_owned();
        for o in ON.split_whitespace() {
            text += &format!("CONFIG_{o}=y\n");
        }
        for fs in &self.file_systems {
            text += &format!("CONFIG_{}_FS=y\n", fs.name().to_uppercase());
        }
        for o in OFF.split_whitespace() {
            text += &format!("# CONFIG_{o} is not set\n");
        }
        if let Some(more) = &self.config {
            text += &fs::read_to_string(more)
                .map_err(GuestError::host(format!("read {}", more.display())))?;
        }
        f.write_all(text.as_bytes()).map_err(error())?;
        work.make(tree, &["olddefconfig"])?;
        let config =
            fs::read_to_string(&path).map_err(GuestError::host("read the configuration"))?;
        let fs_options = self
            .file_systems
            .iter()
            .map(|f| format!("{}_FS", f.name().to_uppercase()));
        let needed = NEEDED
            .split_whitespace()
            .map(str::to_owned)
            .chain(fs_options);
        let lost: Vec<_> = needed
            .filter(|o| !config.lines().any(|l| l == format!("CONFIG_{o}=y")))
            .collect();
        if lost.is_empty() {
            return Ok(());
        }
        Err(GuestError::Usage(format!(
            "the configuration does not allow {}: another option excludes it, or this kernel does not have it",
            lost.join(", ")
        )))
    }
}

/// The directory of a build. It is removed at the end, apart from its log.
struct Workplace {
    dir: PathBuf,
    log: PathBuf,
}

impl Drop for Workplace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Workplace {
    fn new(cache: &Path) -> Result<Self, GuestError> {
        let dir = cache.join(format!("build-{}", std::process::id()));
        let out = dir.join("out");
        fs::create_dir_all(&out).map_err(GuestError::host(format!("create {}", out.display())))?;
        let log = cache.join("build.log");
        let _ = fs::remove_file(&log);
        Ok(Workplace { dir, log })
    }

    fn unpack(&self, archive: &Path) -> Result<PathBuf, GuestError> {
        let tree = self.dir.join("source");
        fs::create_dir_all(&tree)
            .map_err(GuestError::host(format!("create {}", tree.display())))?;
        let (from, to) = (path_text(archive)?, path_text(&tree)?);
        self.tool("tar", &["xf", &from, "-C", &to, "--strip-components=1"])?;
        Ok(tree)
    }

    /// Returns a copy of a tree, in which files can be replaced. An unpacked archive is one.
    fn own_copy(&self, tree: PathBuf) -> Result<PathBuf, GuestError> {
        if tree.starts_with(&self.dir) {
            return Ok(tree);
        }
        let copy = self.dir.join("source");
        self.tool("cp", &["-as", &path_text(&tree)?, &path_text(&copy)?])?;
        Ok(copy)
    }

    fn make(&self, tree: &Path, targets: &[&str]) -> Result<(), GuestError> {
        let (tree, out) = (
            path_text(tree)?,
            format!("O={}", path_text(&self.dir.join("out"))?),
        );
        let mut args = vec!["-C", &tree, &out, "ARCH=um"];
        args.extend(targets);
        self.tool("make", &args)
    }

    /// Runs a program with its output in the log.
    fn tool(&self, program: &str, args: &[&str]) -> Result<(), GuestError> {
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.map_err(GuestError::host(format!("write {}", self.log.display())))?;
        let errors = log.try_clone().map_err(GuestError::host("write the log"))?;
        let status = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .status()
            .map_err(GuestError::host(format!("start {program}")))?;
        if status.success() {
            return Ok(());
        }
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let last = text
            .lines()
            .rev()
            .find(|l| l.contains("rror") || l.contains("***"));
        Err(GuestError::Build {
            what: format!(
                "{program} failed: {}",
                last.unwrap_or("no reason given").trim()
            ),
            log: self.log.clone(),
        })
    }
}

fn path_text(p: &Path) -> Result<String, GuestError> {
    let text = p.to_str().map(str::to_owned);
    text.ok_or_else(|| GuestError::Usage(format!("the path {} is not valid UTF-8", p.display())))
}

/// Returns the newest archive `linux-source-VERSION.tar.*`.
fn newest_source(dir: &Path) -> Result<PathBuf, GuestError> {
    let entries = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let versions = entries.filter_map(|e| {
        let name = e.file_name().into_string().ok()?;
        let rest = name.strip_prefix("linux-source-")?;
        let version = rest
            .split(".tar")
            .next()
            .filter(|_| rest.contains(".tar."))?;
        let key: Option<Vec<u32>> = version.split('.').map(|p| p.parse().ok()).collect();
        Some((key?, e.path()))
    });
    let newest = versions.max().map(|(_, path)| path);
    newest.ok_or_else(|| GuestError::NoSource(dir.display().to_string()))
}

/// Returns the version in the top Makefile of a source tree.
fn version_of(tree: &Path) -> Result<String, GuestError> {
    let path = tree.join("Makefile");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let value = |key: &str| {
        let mut lines = text.lines().take(10);
        lines.find_map(|l| {
            Some(
                l.strip_prefix(key)?
                    .trim()
                    .strip_prefix('=')?
                    .trim()
                    .to_owned(),
            )
        })
    };
    match (value("VERSION"), value("PATCHLEVEL"), value("SUBLEVEL")) {
        (Some(a), Some(b), Some(c)) => Ok(format!("{a}.{b}.{c}")),
        _ => Err(GuestError::Usage(format!(
            "\"{}\" is not the source of a kernel: its Makefile has no version",
            tree.display()
        ))),
    }
}

fn short_version(version: &str) -> &str {
    version.rsplit_once('.').map_or(version, |v| v.0)
}
