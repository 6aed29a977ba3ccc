//! Reads facts about a device from its files in `/sys` and `/proc`.

use seekwell_calibrate::{Facts, Io, What};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Returns the text of a small file without its newline.
pub(super) fn line(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn number<T: std::str::FromStr>(path: PathBuf) -> Option<T> {
    line(path)?.parse().ok()
}

/// The directory of a block device. For a partition, also the directory of the whole disk.
pub(super) struct Dirs {
    pub own: PathBuf,
    pub disk: PathBuf,
}

/// Returns the sysfs directories of the device with these numbers.
pub(super) fn dirs(major: u32, minor: u32) -> Option<Dirs> {
    let own = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let disk = if own.join("partition").exists() {
        own.parent()?.to_owned()
    } else {
        own.clone()
    };
    Some(Dirs { own, disk })
}

/// Adds the facts about a block device.
pub(super) fn describe(d: &Dirs, facts: &mut Facts) {
    let queue = d.disk.join("queue");
    let flag = |name: &str| number::<u32>(queue.join(name)).map(|n| n > 0);
    facts.physical_block_bytes = number(queue.join("physical_block_size"));
    facts.rotational = flag("rotational");
    facts.fua = flag("fua");
    facts.write_cache = line(queue.join("write_cache")).map(|w| w == "write back");
    facts.depth =
        number(d.disk.join("device/queue_depth")).or_else(|| number(queue.join("nr_requests")));
    let device = d.disk.join("device");
    let words = ["vendor", "model", "rev", "firmware_rev"];
    let id: Vec<String> = words.iter().filter_map(|w| line(device.join(w))).collect();
    if !id.is_empty() {
        facts.identity.push(format!("device {}", id.join(" ")));
    }
    if let Some(file) = line(d.disk.join("loop/backing_file")) {
        let direct = line(d.disk.join("loop/dio")).as_deref() == Some("1");
        facts.identity.push(format!(
            "a loop device over a file ({}), {}",
            Path::new(&file)
                .file_name()
                .map_or("?".into(), |n| n.to_string_lossy().into_owned()),
            if direct {
                "without the page cache"
            } else {
                "through the page cache: reads may come from memory"
            }
        ));
    }
    let scheduler = line(queue.join("scheduler")).unwrap_or_default();
    if let Some(on) = scheduler.split_whitespace().find_map(|w| {
        w.strip_prefix('[')
            .and_then(|w| w.strip_suffix(']'))
            .filter(|w| *w != "none" && *w != "noop")
    }) {
        facts.identity.push(format!(
            "scheduler {on} was active: it may change the order and time of I/O; \
             `echo none > .../queue/scheduler` before calibrating"
        ));
    }
}

/// Returns the reason why a device cannot be fitted as a single drive, and the remedy. Returns
/// `None` if it can.
pub(super) fn unfit(d: &Dirs) -> Option<(&'static str, &'static str)> {
    let name = d.disk.file_name()?.to_string_lossy().into_owned();
    let zoned = line(d.disk.join("queue/zoned"));
    if zoned.is_some_and(|z| z != "none") {
        return Some((
            "it is zoned (shingled): no preset describes the rules for reads and writes in zones",
            "calibrate a conventional drive",
        ));
    }
    if d.disk.join("md").exists() || name.starts_with("md") {
        return Some((
            "it is an array: its addresses are spread over several drives",
            "calibrate the members one by one",
        ));
    }
    if d.disk.join("dm").exists() || name.starts_with("dm-") {
        return Some((
            "it is a mapped volume (LVM, dm-crypt, multipath): it maps addresses to other drives",
            "calibrate the drive below it",
        ));
    }
    if d.disk.to_string_lossy().contains("/usb") {
        return Some((
            "it is behind a USB bridge, whose latency cannot be separated from the drive's",
            "connect it to SATA or NVMe",
        ));
    }
    if d.own.join("size").exists() && line(d.own.join("size")).as_deref() == Some("0") {
        return Some(("it has no medium", "insert one, or attach a file"));
    }
    None
}

/// Returns the users of the device: mounts, swap, and holders such as arrays and volumes.
pub(super) fn users(d: &Dirs) -> Vec<String> {
    let mut out = vec![];
    let mut all = vec![d.own.clone()];
    // The users of its partitions count too.
    all.extend(children(&d.own).filter(|c| c.join("partition").exists()));
    for dir in &all {
        let Some(name) = dir.file_name().map(|n| n.to_string_lossy().into_owned()) else {
            continue;
        };
        if let Some(numbers) = line(dir.join("dev")) {
            out.extend(mounts(&numbers).map(|m| format!("{name} is mounted at {m}")));
        }
        for h in children(&dir.join("holders")) {
            let h = h.file_name().map(|h| h.to_string_lossy().into_owned());
            out.push(format!("{name} is held by {}", h.unwrap_or_default()));
        }
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        let device = format!("/dev/{name}");
        if swaps
            .lines()
            .any(|l| l.split_whitespace().next() == Some(&*device))
        {
            out.push(format!("{name} is used for swap"));
        }
    }
    out
}

fn children(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let mut all: Vec<PathBuf> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|e| e.path())
        .collect();
    all.sort();
    all.into_iter()
}

/// Returns the mount points of the device with these numbers, such as `8:1`.
fn mounts(numbers: &str) -> impl Iterator<Item = String> + use<> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let at: Vec<String> = table
        .lines()
        .filter_map(|l| {
            let mut f = l.split(' ');
            let (dev, point) = (f.nth(2)?, f.nth(1)?);
            (dev == numbers).then(|| point.replace("\\040", " "))
        })
        .collect();
    at.into_iter()
}

/// Returns a line that describes the host and its kernel.
pub(super) fn host() -> String {
    let u = rustix::system::uname();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |m| m.1.trim());
    format!(
        "host: Linux {} on {}, {model}",
        u.release().to_string_lossy(),
        u.machine().to_string_lossy()
    )
}

/// Returns the current date, for the record.
pub(super) fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let days = since.map_or(0, |d| d.as_secs() / 86_400) as i64;
    // The algorithm is `civil_from_days` from Howard Hinnant, "chrono-compatible low-level date
    // algorithms".
    let z = days + 719_468;
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, (mp + 2) % 12 + 1);
    let year = yoe + era * 400 + i64::from(month <= 2);
    format!("measured {year}-{month:02}-{day:02} (UTC)")
}

/// Requests that the CPUs enter no idle state while the returned file is open.
pub(super) fn stay_awake() -> Option<File> {
    let mut f = OpenOptions::new()
        .write(true)
        .open("/dev/cpu_dma_latency")
        .ok()?;
    f.write_all(&0i32.to_ne_bytes()).ok()?;
    Some(f)
}

/// Number of sectors that were transferred.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub read: u64,
    pub written: u64,
}

impl Counts {
    /// Adds an I/O of this process.
    pub fn add(&mut self, io: &Io) {
        match io.what {
            What::Read => self.read += u64::from(io.sectors),
            What::Write => self.written += u64::from(io.sectors),
            What::Flush => {}
        }
    }
    /// Describes the transfers since `start` that are not in `own`. Returns `None` if they are
    /// negligible.
    pub fn beyond(self, start: Counts, own: Counts) -> Option<String> {
        let read = (self.read - start.read).saturating_sub(own.read);
        let written = (self.written - start.written).saturating_sub(own.written);
        let mib = |sectors: u64| sectors as f64 / 2048.0;
        (mib(read) > 0.5 + mib(own.read) * 0.01 || mib(written) > 0.5).then(|| {
            format!(
                "other programs read {:.1} MiB and wrote {:.1} MiB meanwhile: values may be wrong",
                mib(read),
                mib(written)
            )
        })
    }
}

/// Returns the kernel's counters of a device.
pub(super) fn counts(stat: &Path) -> Option<Counts> {
    let text = line(stat)?;
    let mut f = text.split_whitespace().map(|n| n.parse::<u64>());
    let read = f.nth(2)?.ok()?;
    let written = f.nth(3)?.ok()?;
    Some(Counts { read, written })
}
