//! The facts about a queue and the machine above it that decide how a scheduler behaves. A
//! simulation of the machine needs them. Everything is found by reading files.

use crate::block::{Acts, Device, Kind, Machine, Role, Tree, release};
use seekwell_core::result::Record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Settings that the kernel changes when another scheduler is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerScheduler {
    /// Value of `queue/nr_requests`.
    pub nr_requests: Option<u32>,
    /// Latency target of writeback throttling in us; 0 if throttling is off or absent.
    pub wbt_lat_usec: Option<u64>,
}

/// The facts about a queue and its machine. A fact that cannot be read is `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// Kernel name of the device.
    pub device: String,
    /// Description of the device in a few words, such as `NVMe SSD`.
    pub description: String,
    /// Model name of the device, as it reports it.
    pub model: Option<String>,
    /// Word for the kind of the disk at the bottom ([`Kind::word`]). It differs from the kind of
    /// the device for a loop device over a file.
    pub disk: String,
    /// Capacity in bytes.
    pub size_bytes: Option<u64>,
    /// Active scheduler.
    pub scheduler: String,
    /// Schedulers that the device offers, in the kernel's order.
    pub offered: Vec<String>,
    /// Settings that were read under a scheduler, by its name.
    pub under: BTreeMap<String, PerScheduler>,
    /// Whether the kernel treats the disk as rotational.
    pub rotational: Option<bool>,
    /// Whether the kernel sends flushes, because the device has a volatile write cache.
    pub write_back: Option<bool>,
    /// Number of commands that the device takes at once (`device/queue_depth`, else the tags).
    pub depth: Option<u32>,
    /// Number of tags of a hardware queue, from which the kernel derives `nr_requests`.
    pub tags: Option<u32>,
    /// Number of hardware queues.
    pub hw_queues: Option<u32>,
    /// Largest size of a request in KiB.
    pub max_sectors_kb: Option<u32>,
    /// Largest number of segments of a request.
    pub max_segments: Option<u32>,
    /// Value of `queue/nomerges`.
    pub nomerges: Option<u32>,
    /// Largest read-ahead in KiB.
    pub read_ahead_kb: Option<u32>,
    /// Kernel release.
    pub kernel: String,
    /// Timer ticks per second (CONFIG_HZ), from the configuration in `/boot`.
    pub hz: Option<u32>,
    /// Number of CPUs.
    pub cpus: Option<u16>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Values of the files `/proc/sys/vm/dirty_*`, by name.
    pub dirty: BTreeMap<String, u64>,
    /// Type of the file system; empty for a raw device.
    pub fs: String,
    /// Mount options, separated by commas.
    pub mount_options: String,
    /// Layers that the facts above do not describe, in words.
    pub layers: Vec<String>,
}

/// The files in `/proc/sys/vm` that limit dirty memory.
const DIRTY: &[&str] = &[
    "dirty_ratio",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
];

fn small<T: TryFrom<u64>>(n: Option<u64>) -> Option<T> {
    n.and_then(|n| T::try_from(n).ok())
}

fn number(path: impl AsRef<Path>) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.trim().parse().ok()
}

impl MachineFacts {
    /// Reads the facts about the device below a path. The path may be a directory, a file or a
    /// device. If several devices decide, the first one is read and the others are listed in
    /// [`Self::layers`].
    ///
    /// # Errors
    /// The path does not exist, or no block device is below it.
    pub fn read(tree: &Tree, path: &Path) -> Result<MachineFacts, String> {
        let machine = Machine::read(tree);
        let under = machine.under(path).map_err(|e| e.to_string())?;
        let name = under.deciding.first();
        let device = name.and_then(|n| machine.device(n)).ok_or_else(|| {
            format!(
                "{}: no device with a scheduler is below it; {}",
                under.asked, under.verdict
            )
        })?;
        let mut facts = MachineFacts::of_device(tree, device);
        if under.filesystem.is_some()
            && let Some(mount) = machine.mount_of(&under.path)
        {
            facts.fs.clone_from(&mount.filesystem);
            facts.mount_options.clone_from(&mount.options);
        }
        if under.deciding.len() > 1 {
            let all = under.deciding.join(", ");
            facts.layers.push(format!(
                "{all} share the requests; only {} is read",
                device.name
            ));
        }
        let middle = under.steps.iter().filter(|s| {
            s.role == Role::Device
                && s.name != device.name
                && !under.again.contains(&s.name)
                && !matches!(s.acts, Acts::Unseen)
        });
        let known = |name: &str| machine.device(name).filter(|d| d.kind.stacked());
        let middle = middle.filter_map(|s| known(&s.name));
        let middle = middle.map(|d| format!("{} ({})", d.name, d.description()));
        facts.layers.extend(middle);
        let below = under.again.last().and_then(|n| machine.device(n));
        if let Some(below) = below {
            below.kind.word().clone_into(&mut facts.disk);
            facts.model = facts.model.take().or_else(|| below.model.clone());
            facts.layers.push(format!(
                "{} below schedules the requests a second time",
                under.again.join(", ")
            ));
        }
        if device.kind == Kind::Loop && device.direct_io != Some(true) {
            facts.layers.push(
                "the loop device uses the page cache for its file (losetup --direct-io=on avoids \
                 that)"
                    .to_owned(),
            );
        }
        Ok(facts)
    }

    /// Reads the facts about a device and the machine, without a file system.
    pub fn of_device(tree: &Tree, d: &Device) -> MachineFacts {
        let queue = tree.queue(&d.name);
        let file = |name: &str| number(queue.join(name));
        let first = format!("/sys/block/{}/mq/0/nr_tags", d.name);
        let active = d.scheduler.active().unwrap_or("none").to_owned();
        let own = PerScheduler {
            nr_requests: d.nr_requests,
            // A kernel without throttling has no file, or returns an error.
            wbt_lat_usec: Some(
                d.wbt_lat_usec
                    .and_then(|n| u64::try_from(n).ok())
                    .unwrap_or(0),
            ),
        };
        let tags: Option<u32> = small(number(tree.at(first)));
        let dirty = DIRTY.iter().filter_map(|name| {
            let n = number(tree.at("/proc/sys/vm").join(name))?;
            Some(((*name).to_owned(), n))
        });
        let release_text = tree.release();
        // Without a scheduler, `nr_requests` is the number of tags in use, which may have been
        // lowered.
        let lowered = d.nr_requests.filter(|_| active == "none");
        let depth = d.depth.or(tags);
        let depth = depth.map(|n| lowered.map_or(n, |l| l.min(n)));
        MachineFacts {
            device: d.name.clone(),
            description: d.description(),
            model: d.model.clone(),
            disk: d.kind.word().to_owned(),
            size_bytes: d.size_bytes,
            offered: d.scheduler.offered().to_vec(),
            under: BTreeMap::from([(active.clone(), own)]),
            scheduler: active,
            rotational: d.rotational,
            write_back: d.write_cache.as_deref().map(|c| c == "write back"),
            depth,
            tags: tags.or(d.depth),
            hw_queues: d.hw_queues,
            max_sectors_kb: small(d.max_sectors_kb),
            max_segments: small(file("max_segments")),
            nomerges: d.nomerges,
            read_ahead_kb: small(d.read_ahead_kb),
            hz: hz(tree, &release_text),
            kernel: release_text,
            cpus: cpus(tree),
            memory_bytes: memory(tree),
            dirty: dirty.collect(),
            ..MachineFacts::default()
        }
    }

    /// Returns the facts in the records of stored runs of one device, one or more for each
    /// scheduler. Dirty limits and layers are not stored, so they are missing.
    pub fn of_records<'a>(records: impl Iterator<Item = &'a Record>) -> MachineFacts {
        let mut facts = MachineFacts::default();
        for r in records {
            let name = r.scheduler.name.clone();
            let wbt = r.scheduler.tunables.get("wbt_lat_usec");
            let own = PerScheduler {
                nr_requests: r.queue.as_ref().map(|q| q.nr_requests),
                wbt_lat_usec: Some(wbt.and_then(|t| t.parse().ok()).unwrap_or(0)),
            };
            facts.under.entry(name.clone()).or_insert(own);
            if !facts.offered.contains(&name) {
                facts.offered.push(name);
            }
            if let Some(q) = &r.queue {
                facts.max_sectors_kb = Some(q.max_sectors_kb);
                facts.max_segments = q.max_segments;
                facts.read_ahead_kb = q.read_ahead_kb;
                facts.depth = Some(q.depth).filter(|d| *d > 0);
                facts.tags = facts.depth;
                facts.hw_queues = Some(q.hw_queues);
            }
            if let Some(h) = &r.host {
                facts.kernel.clone_from(&h.kernel);
                facts.cpus = u16::try_from(h.cores).ok().filter(|n| *n > 0);
                facts.memory_bytes = Some(h.memory_bytes).filter(|n| *n > 0);
                facts.fs.clone_from(&h.fs);
                facts.mount_options.clone_from(&h.mount_options);
            }
            let merges = r.scheduler.tunables.get("nomerges");
            facts.nomerges = merges.and_then(|t| t.parse().ok());
            facts.rotational = Some(r.device.rotational);
            facts.description.clone_from(&r.device.name);
        }
        facts
    }
}

/// Returns the configured timer ticks per second.
fn hz(tree: &Tree, release_text: &str) -> Option<u32> {
    release(release_text)?;
    let text = std::fs::read_to_string(tree.at(format!("/boot/config-{release_text}"))).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("CONFIG_HZ="));
    line?.trim().parse().ok()
}

/// Returns the number of CPUs. On this machine it is the number that this process may use.
fn cpus(tree: &Tree) -> Option<u16> {
    if tree.is_live() {
        let n = std::thread::available_parallelism().ok()?;
        return u16::try_from(n.get()).ok();
    }
    let text = std::fs::read_to_string(tree.at("/proc/cpuinfo")).ok()?;
    let n = text.lines().filter(|l| l.starts_with("processor")).count();
    u16::try_from(n).ok().filter(|n| *n > 0)
}

fn memory(tree: &Tree) -> Option<u64> {
    let text = std::fs::read_to_string(tree.at("/proc/meminfo")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::made_up::MadeUp;

    fn server() -> MadeUp {
        let t = MadeUp::new("machine-facts");
        t.disk("sda", "pci0/ata1/host0", "none [mq-deadline] kyber bfq");
        t.put("sys/block/sda/dev", "8:0\n");
        t.put("sys/block/sda/mq/0/nr_tags", "32\n");
        for (name, value) in [
            ("rotational", "1"),
            ("wbt_lat_usec", "75000"),
            ("nr_requests", "64"),
            ("read_ahead_kb", "256"),
            ("max_sectors_kb", "1280"),
            ("max_segments", "168"),
            ("nomerges", "1"),
            ("write_cache", "write back"),
        ] {
            t.queue("sda", name, value);
        }
        t.disk("loop1", "virtual", "[none] bfq");
        t.put("sys/block/loop1/dev", "7:1\n");
        t.put("sys/block/loop1/loop/backing_file", "/data/disk.img\n");
        t.put("data/disk.img", "");
        t.dir("mnt");
        t.put(
            "proc/self/mountinfo",
            "1 1 0:9 / / rw - overlay overlay rw\n\
             2 1 8:0 / /data rw,noatime shared:1 - ext4 /dev/sda rw,commit=30\n\
             3 1 7:1 / /mnt rw - xfs /dev/loop1 rw\n",
        );
        t.put("proc/meminfo", "MemTotal:  2048 kB\n");
        t.put("proc/cpuinfo", "processor\t: 0\nprocessor\t: 1\n");
        t.put("proc/sys/kernel/osrelease", "6.12.3-x\n");
        t.put("boot/config-6.12.3-x", "CONFIG_HZ_1000=y\nCONFIG_HZ=1000\n");
        t.put("proc/sys/vm/dirty_ratio", "10\n");
        t.put("proc/sys/vm/dirty_bytes", "0\n");
        t
    }

    #[test]
    fn queue_machine_and_mount_are_read() {
        let t = server();
        let f = MachineFacts::read(&t.tree(), Path::new("/data")).expect("there");
        assert_eq!(
            (f.device.as_str(), f.scheduler.as_str()),
            ("sda", "mq-deadline")
        );
        let own = PerScheduler {
            nr_requests: Some(64),
            wbt_lat_usec: Some(75_000),
        };
        assert_eq!(f.under.get("mq-deadline"), Some(&own));
        assert_eq!((f.max_segments, f.nomerges), (Some(168), Some(1)));
        assert_eq!(
            (f.tags, f.depth, f.hw_queues),
            (Some(32), Some(32), Some(1))
        );
        assert_eq!((f.cpus, f.memory_bytes), (Some(2), Some(2 << 20)));
        assert_eq!((f.kernel.as_str(), f.hz), ("6.12.3-x", Some(1000)));
        assert_eq!((f.fs.as_str(), f.write_back), ("ext4", Some(true)));
        assert_eq!(f.mount_options, "rw,noatime,rw,commit=30");
        assert_eq!(f.dirty.get("dirty_ratio"), Some(&10));
        assert_eq!(f.layers, [""; 0]);
    }

    #[test]
    fn a_loop_device_names_the_disk_below_and_its_page_cache() {
        let t = server();
        let f = MachineFacts::read(&t.tree(), Path::new("/mnt")).expect("there");
        assert_eq!((f.device.as_str(), f.disk.as_str()), ("loop1", "SATA"));
        let layers = f.layers.join("\n");
        assert!(layers.contains("sda below schedules"), "{layers}");
        assert!(layers.contains("page cache for its file"), "{layers}");
        // A kernel without throttling has no file.
        assert_eq!(f.under["none"].wbt_lat_usec, Some(0));
    }

    #[test]
    fn tags_that_were_lowered_under_no_scheduler_limit_the_depth() {
        let t = server();
        t.put("sys/block/loop1/mq/0/nr_tags", "128\n");
        t.queue("loop1", "nr_requests", "31");
        let f = MachineFacts::read(&t.tree(), Path::new("/mnt")).expect("there");
        assert_eq!((f.depth, f.tags), (Some(31), Some(128)));
    }

    #[test]
    fn stored_records_give_the_settings_of_each_scheduler() {
        let record = |name: &str, wbt: &str, nr: u32| {
            let mut r = Record::default();
            r.scheduler.name = name.to_owned();
            let tunable = ("wbt_lat_usec".to_owned(), wbt.to_owned());
            r.scheduler.tunables.extend([tunable]);
            r.queue = Some(seekwell_core::result::QueueUsed {
                nr_requests: nr,
                depth: 32,
                ..Default::default()
            });
            r
        };
        let all = [record("none", "2000", 32), record("bfq", "0", 64)];
        let f = MachineFacts::of_records(all.iter());
        assert_eq!(f.offered, ["none", "bfq"]);
        assert_eq!(f.under["bfq"].nr_requests, Some(64));
        assert_eq!(f.under["none"].wbt_lat_usec, Some(2_000));
        assert_eq!((f.depth, f.dirty.len()), (Some(32), 0));
    }

    #[test]
    fn a_path_without_a_block_device_is_refused() {
        let t = server();
        let e = MachineFacts::read(&t.tree(), Path::new("/")).expect_err("an overlay");
        assert!(e.contains("no device with a scheduler"), "{e}");
    }
}
