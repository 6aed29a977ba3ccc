//! The facts about a block device that the kernel reports under `/sys/block`.

use super::kind::Kind;
use super::read::{self, Reader, clean};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The I/O schedulers that a queue offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Scheduler {
    /// The file `queue/scheduler` does not exist. The device has no request queue, or it passes
    /// requests on unchanged (bio-based).
    #[default]
    Absent,
    /// The file contains a single word. Older kernels report queues without schedulers in this way.
    Fixed {
        /// The word, which is `none`.
        word: String,
    },
    /// One scheduler is active, and others can be selected.
    Choice {
        /// The active scheduler.
        active: String,
        /// All schedulers that can be selected, including the active scheduler, in the kernel's
        /// order.
        offered: Vec<String>,
    },
}

impl Scheduler {
    /// Parses the text of `queue/scheduler`, for example `none [mq-deadline] kyber`. Returns `None`
    /// for malformed text: two pairs of brackets, or several words without brackets.
    pub fn parse(text: &str) -> Option<Scheduler> {
        let mut active = None;
        let mut offered = Vec::new();
        for word in text.split_whitespace() {
            let inside = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
            let name = inside.unwrap_or(word);
            if name.is_empty() || name.contains(['[', ']']) {
                return None;
            }
            if inside.is_some() && active.replace(name.to_owned()).is_some() {
                return None;
            }
            offered.push(name.to_owned());
        }
        match (active, offered.as_slice()) {
            (Some(active), _) => Some(Scheduler::Choice { active, offered }),
            (None, [word]) => Some(Scheduler::Fixed { word: word.clone() }),
            (None, _) => None,
        }
    }
    /// Returns the active scheduler, or `None` if the queue has no scheduler.
    pub fn active(&self) -> Option<&str> {
        match self {
            Scheduler::Absent => None,
            Scheduler::Fixed { word } => Some(word),
            Scheduler::Choice { active, .. } => Some(active),
        }
    }
    /// Returns the schedulers that can be selected. The list is empty if the queue has none.
    pub fn offered(&self) -> &[String] {
        match self {
            Scheduler::Choice { offered, .. } => offered,
            _ => &[],
        }
    }
}

/// A partition of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Partition {
    /// Kernel name, for example `sda2`.
    pub name: String,
    /// Major and minor device number.
    pub numbers: Option<(u32, u32)>,
    /// Size, bytes.
    pub size_bytes: Option<u64>,
    /// Mount points of the partition.
    pub mounts: Vec<PathBuf>,
    /// Whether the partition is used for swap.
    pub swap: bool,
    /// Names of the devices that are stacked on the partition.
    pub above: Vec<String>,
}

/// All facts about a device. A value is `None` if the kernel does not report it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Device {
    /// Kernel name, for example `sda`, `dm-0` or `cciss!c0d0`.
    pub name: String,
    /// Major and minor device number.
    pub numbers: Option<(u32, u32)>,
    /// Kind of device.
    pub kind: Kind,
    /// Vendor and model, as the device reports them.
    pub model: Option<String>,
    /// Serial number, as the device or udev reports it.
    pub serial: Option<String>,
    /// World-wide name.
    pub wwid: Option<String>,
    /// Keys and values by which a udev rule can identify this device, such as `ENV{ID_SERIAL}` or
    /// `ATTR{wwid}`. The most reliable pair comes first. The list is empty if no value stays the
    /// same after a boot.
    pub identity: Vec<(String, String)>,
    /// For a mapped device its name, such as `vg-home`. For an array its level, such as `raid1`.
    pub label: Option<String>,
    /// Size, bytes.
    pub size_bytes: Option<u64>,
    /// Whether the device reports a rotational medium.
    pub rotational: Option<bool>,
    /// Whether the medium is removable.
    pub removable: bool,
    /// Whether the device is read-only.
    pub read_only: bool,
    /// Whether programs must not open the device, because it is a path of NVMe multipath.
    pub hidden: bool,
    /// Number of commands that each hardware queue accepts at a time.
    pub depth: Option<u32>,
    /// Number of hardware queues.
    pub hw_queues: Option<u32>,
    /// Mode of the write cache: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Zone model: `none`, `host-aware` or `host-managed`.
    pub zoned: Option<String>,
    /// Smallest unit of I/O (logical block), bytes.
    pub logical_block_bytes: Option<u32>,
    /// Smallest unit of the medium (physical block), bytes.
    pub physical_block_bytes: Option<u32>,
    /// The schedulers of the queue.
    pub scheduler: Scheduler,
    /// Tunables of the active scheduler, from `queue/iosched`.
    pub tunables: BTreeMap<String, String>,
    /// Latency target of writeback throttling, us. 0 switches it off.
    pub wbt_lat_usec: Option<i64>,
    /// Maximum number of requests in the queue.
    pub nr_requests: Option<u32>,
    /// Maximum read-ahead, KiB.
    pub read_ahead_kb: Option<u64>,
    /// Maximum size of a request, KiB.
    pub max_sectors_kb: Option<u64>,
    /// Maximum size of a request that the hardware accepts, KiB.
    pub max_hw_sectors_kb: Option<u64>,
    /// Merging: 0 all merges, 1 simple merges only, 2 no merges.
    pub nomerges: Option<u32>,
    /// CPU that completes a request: 0 any CPU, 1 a CPU in the group of the submitting CPU, 2 the
    /// submitting CPU.
    pub rq_affinity: Option<u32>,
    /// Whether I/O statistics are collected.
    pub iostats: Option<bool>,
    /// Sequence number that the kernel gave when this device was attached. It is unique within a
    /// boot.
    pub diskseq: Option<u64>,
    /// Path of the file of a loop device.
    pub backing_file: Option<String>,
    /// Whether the loop device accesses its file without the page cache.
    pub direct_io: Option<bool>,
    /// Partitions of the device.
    pub partitions: Vec<Partition>,
    /// Mount points of the whole device.
    pub mounts: Vec<PathBuf>,
    /// Whether the whole device is used for swap.
    pub swap: bool,
    /// Names of the devices on which this device is stacked. If it is stacked on a partition, the
    /// name of the partition.
    pub below: Vec<String>,
    /// Names of the devices that are stacked on this device.
    pub above: Vec<String>,
    /// Files that could not be parsed, each with the reason.
    pub trouble: Vec<String>,
}

/// Parses major and minor device number, for example `8:1`.
pub fn numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns the size in bytes. The file `size` counts units of 512 bytes, whatever the block size of
/// the device.
fn sectors(r: &mut Reader) -> Option<u64> {
    r.number::<u64>("size")?.checked_mul(512)
}

impl Device {
    /// Reads the device in directory `dir`. `udev` is the directory of udev's database.
    pub fn read(name: &str, dir: &Path, udev: &Path) -> Device {
        let real = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        let mut r = Reader::new(dir.to_owned());
        let uuid = r.label("dm/uuid");
        let mut d = Device {
            name: clean(name),
            kind: Kind::detect(name, &real, uuid.as_deref()),
            size_bytes: sectors(&mut r),
            removable: r.flag("removable").unwrap_or_default(),
            read_only: r.flag("ro").unwrap_or_default(),
            hidden: r.flag("hidden").unwrap_or_default(),
            diskseq: r.number("diskseq"),
            below: read::names(&dir.join("slaves")),
            above: read::names(&dir.join("holders")),
            backing_file: backing(dir),
            direct_io: r.flag("loop/dio"),
            ..Device::default()
        };
        d.numbers = r.text("dev").and_then(|t| numbers(&t));
        d.queue(&mut r);
        d.identity(&mut r, udev);
        for part in read::names(dir) {
            if dir.join(&part).join("partition").is_file() {
                d.partitions.push(partition(&part, &dir.join(&part)));
            }
        }
        d.trouble = r.trouble();
        d
    }

    fn queue(&mut self, r: &mut Reader) {
        if let Some(text) = r.text("queue/scheduler") {
            match Scheduler::parse(&text) {
                Some(s) => self.scheduler = s,
                None => r.wrong(
                    "queue/scheduler",
                    &format!("cannot be understood: \"{text}\""),
                ),
            }
        }
        for name in read::names(&r.dir().join("queue/iosched")) {
            if let Some(value) = r.text(&format!("queue/iosched/{name}")) {
                self.tunables.insert(name, value);
            }
        }
        self.rotational = r.flag("queue/rotational");
        self.write_cache = r.text("queue/write_cache");
        self.zoned = r.text("queue/zoned");
        self.logical_block_bytes = r.number("queue/logical_block_size");
        self.physical_block_bytes = r.number("queue/physical_block_size");
        self.wbt_lat_usec = r.number("queue/wbt_lat_usec");
        self.nr_requests = r.number("queue/nr_requests");
        self.read_ahead_kb = r.number("queue/read_ahead_kb");
        self.max_sectors_kb = r.number("queue/max_sectors_kb");
        self.max_hw_sectors_kb = r.number("queue/max_hw_sectors_kb");
        self.nomerges = r.number("queue/nomerges");
        self.rq_affinity = r.number("queue/rq_affinity");
        self.iostats = r.flag("queue/iostats");
        let queues = read::names(&r.dir().join("mq"));
        self.hw_queues = u32::try_from(queues.len()).ok().filter(|n| *n > 0);
        // For SCSI the kernel reports the queue depth of the device. For other devices the number
        // of tags of a queue is used.
        self.depth = r.number("device/queue_depth").or_else(|| {
            let first = queues.first()?;
            r.number(&format!("mq/{first}/nr_tags"))
        });
    }

    fn identity(&mut self, r: &mut Reader, udev: &Path) {
        let database = self
            .numbers
            .map(|(a, b)| read::lossy(&udev.join(format!("b{a}:{b}"))));
        let database = database.unwrap_or_default();
        let raw = |key: &str| {
            let mut lines = database.lines().filter_map(|l| l.strip_prefix("E:"));
            lines.find_map(|l| l.strip_prefix(key)?.strip_prefix('='))
        };
        let told = |key: &str| raw(key).map(clean).filter(|v| !v.is_empty());
        for key in ["ID_SERIAL", "ID_WWN", "DM_UUID", "MD_UUID"] {
            if let Some(value) = raw(key) {
                self.identity
                    .push((format!("ENV{{{key}}}"), value.to_owned()));
            }
        }
        // udev ignores trailing blanks in comparisons.
        for file in [
            "wwid",
            "device/wwid",
            "serial",
            "device/serial",
            "device/cid",
            "loop/backing_file",
        ] {
            let value = read::lossy(&r.dir().join(file));
            self.identity
                .push((format!("ATTR{{{file}}}"), value.trim_end().to_owned()));
        }
        self.identity.retain(|i| !i.1.trim().is_empty());
        // A SATA disk reports the vendor `ATA`.
        let vendor = r.label("device/vendor");
        let vendor = vendor.filter(|v| v != "ATA" && !v.starts_with("0x"));
        let model = r.label("device/model").or_else(|| r.label("device/name"));
        self.model = match (vendor, model) {
            (Some(v), Some(m)) if !m.starts_with(&v) => Some(format!("{v} {m}")),
            (_, model) => model,
        };
        let page80 = || {
            // The page contains four bytes of header, then text.
            let page = read::bytes(&r.dir().join("device/vpd_pg80")).ok()??;
            let text = clean(&String::from_utf8_lossy(page.get(4..)?));
            (!text.is_empty()).then_some(text)
        };
        self.serial = told("ID_SERIAL_SHORT")
            .or_else(|| r.label("device/serial"))
            .or_else(|| r.label("serial"))
            .or_else(page80);
        self.wwid = r
            .label("wwid")
            .or_else(|| r.label("device/wwid"))
            .or_else(|| told("ID_WWN"));
        self.label = r.label("dm/name").or_else(|| r.label("md/level"));
    }

    /// Returns the path of the device node, for example `/dev/cciss/c0d0`.
    pub fn path(&self) -> PathBuf {
        Path::new("/dev").join(self.name.replace('!', "/"))
    }

    /// Returns whether the device is unused and of a kind that the kernel creates in advance (see
    /// [`Kind::idle_by_the_dozen`]).
    pub fn idle(&self) -> bool {
        self.kind.idle_by_the_dozen()
            && self.size_bytes.unwrap_or(0) == 0
            && self.backing_file.is_none()
            && self.mounts.is_empty()
            && !self.swap
    }

    /// Returns a short description, for example `SATA HDD`, `NVMe SSD`, `LVM` or `md RAID raid1`.
    pub fn description(&self) -> String {
        let word = self.kind.word();
        match (self.kind, self.rotational, &self.label) {
            (Kind::Md, _, Some(level)) => format!("md {level}"),
            // For the disk of a virtual machine the rotational flag is not reliable.
            (Kind::VirtioBlk | Kind::VirtioScsi | Kind::Xen, ..) => format!("{word} disk"),
            (Kind::Mmc | Kind::Usb, Some(false), _) => word.to_owned(),
            (k, Some(true), _) if k.disk() => format!("{word} HDD"),
            (k, Some(false), _) if k.disk() => format!("{word} SSD"),
            _ => word.to_owned(),
        }
    }

    /// Returns whether the device is zoned. On a zoned device the order of writes matters.
    pub fn is_zoned(&self) -> bool {
        self.zoned.as_deref().is_some_and(|z| z != "none")
    }
}

/// Returns the file of a loop device. The name may contain any characters, so it is not cleaned.
fn backing(dir: &Path) -> Option<String> {
    let text = read::lossy(&dir.join("loop/backing_file"));
    let text = text.strip_suffix('\n').unwrap_or(&text);
    (!text.is_empty()).then(|| text.to_owned())
}

fn partition(name: &str, dir: &Path) -> Partition {
    let mut r = Reader::new(dir.to_owned());
    Partition {
        name: clean(name),
        numbers: r.text("dev").and_then(|t| numbers(&t)),
        size_bytes: sectors(&mut r),
        above: read::names(&dir.join("holders")),
        ..Partition::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheduler_list_of_a_queue_is_parsed() {
        let choice = |active: &str, offered: &[&str]| {
            Some(Scheduler::Choice {
                active: active.to_owned(),
                offered: offered.iter().map(|s| s.to_string()).collect(),
            })
        };
        let parse = Scheduler::parse;
        assert_eq!(
            parse("none [bfq] kyber\n"),
            choice("bfq", &["none", "bfq", "kyber"])
        );
        assert_eq!(
            parse("noop deadline [cfq]"),
            choice("cfq", &["noop", "deadline", "cfq"])
        );
        assert_eq!(parse("[none]"), choice("none", &["none"]));
        assert_eq!(
            parse("none"),
            Some(Scheduler::Fixed {
                word: "none".into()
            })
        );
        for bad in ["", "none kyber", "[a] [b]", "[]", "a[b]", "[a", "[[a]]"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
