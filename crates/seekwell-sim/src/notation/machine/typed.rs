//! Parses a text such as `laptop,memory=8G,cpu=0.6,data=writeback` into a [`MachineSpec`].

use super::{
    FILE_SYSTEMS, GUEST_FILE_SYSTEMS, JOURNAL_MODES, MECHANISMS, MachineSpec, PAGE_KB, PHASES,
    PLACEMENTS, era, named,
};
use crate::notation::{SpecErrors, cgroup, unknown_word};
use seekwell_core::once::Once;
use seekwell_core::spec::{
    CPU_PERMILLE, MAX_AGED_RUN_BLOCKS, MAX_CENTISECS, MAX_COMMIT_S, MAX_LIMIT_S, MAX_MEMORY_BYTES,
    MIN_CACHE_BYTES, MIN_DIRTY_BYTES, MIN_MEMORY_BYTES,
};

/// An option of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// Name of the option, as typed.
    pub name: &'static str,
    /// The allowed values after `=`, for the help.
    pub values: &'static str,
    /// Description of the option, with its default in brackets.
    pub help: &'static str,
}

const fn word(name: &'static str, values: &'static str, help: &'static str) -> Word {
    Word { name, values, help }
}

/// All options, in the order of their documentation.
#[rustfmt::skip]
pub const WORDS: &[Word] = &[
    word("kernel", "2.6.18 to 7.0, or here",
        "kernel above the queue; here means the running kernel [the scheduler's kernel]"),
    word("memory", "16M to 4096G", "memory of the machine [4G]"),
    word("cache", "1M to 4096G", "memory for the page cache [the rest of the memory]"),
    word("cores", "1 to 1024", "cores [4]"),
    word("cpu", "0.05 to 20",
        "speed of a core relative to the default core of the kernel's era; all CPU costs of kernel \
         and programs are divided by this number [1]"),
    word("fs", "ext3 or ext4", "file system [that of the kernel's era]"),
    word("data", "ordered or writeback",
        "mount option: with ordered, a commit first writes the file data of its transaction; with \
         writeback, it does not write them [ordered]"),
    word("commit", "0 to 86400 s",
        "mount option: seconds between two commits of the journal; 0 is the default [5]"),
    word("barrier", "0 or 1",
        "mount option: flush the drive's cache (also barriers=yes or no, nobarrier) [1; with ext3: 0]"),
    word("noatime", "",
        "mount option: always in effect; relatime and strictatime are not modelled"),
    word("dirty_ratio", "1 to 100 %",
        "sysctl vm.dirty_ratio: percentage of dirtyable memory at which writers are throttled [20; \
         with the modelled kernel 2.6.24: 10; with 2.6.18: 40]"),
    word("dirty_background_ratio", "0 to 100 %",
        "sysctl vm.dirty_background_ratio: percentage of dirtyable memory above which background \
         writeback starts [10; with the modelled kernel 2.6.24: 5]"),
    word("dirty_bytes", "8k to 4096G",
        "sysctl vm.dirty_bytes: dirty memory at which writers are throttled, in bytes; replaces dirty_ratio"),
    word("dirty_background_bytes", "8k to 4096G",
        "sysctl vm.dirty_background_bytes: dirty memory above which background writeback starts, \
         in bytes; replaces dirty_background_ratio"),
    word("dirty_expire_centisecs", "0 to 8640000",
        "sysctl vm.dirty_expire_centisecs: age at which dirty data are written back, in 1/100 s [3000]"),
    word("dirty_writeback_centisecs", "0 to 8640000",
        "sysctl vm.dirty_writeback_centisecs: interval at which the flusher wakes up, in 1/100 s; \
         0 disables it [500]"),
    word("read_ahead_kb", "0 to 65536, a multiple of 4",
        "queue/read_ahead_kb: largest read-ahead window, in KiB [128]"),
    word("aged", "0 to 32768",
        "fragmentation: mean length of a file's contiguous runs, in blocks; 0 is a fresh file system [0]"),
    word("placement", "drawn or first",
        "placement of files on a fresh file system: with drawn, the directory of the files is in a \
         random group; with first, the directory is in the first group with free space [drawn]"),
    word("phase", "boot or drawn",
        "start time of the program: with boot, the program starts in phase with the machine's \
         clocks; with drawn, the seed determines the start time and the delay of each wake-up \
         [boot]"),
    word("without", "MECHANISM+...",
        "remove mechanisms, to measure their effect: plugging, readahead, stable-pages, \
         ordered-data, shadows, metadata-reads, throttling, cpu, noidle, \
         scheduler-cpu or scattered-memory"),
    word("cgroup", "NAME:SETTING=VALUE:...+NAME:...",
        "cgroups with the tasks in them and their limits: bulk:tasks=writer:wbps=2M (all settings: \
         seekwell run --help)"),
    word("limit", "1 to 1000000000 s", "stop the run after this many seconds of simulated time"),
];

/// Mount options of ext3 and ext4 that are not modelled. They are rejected with an explanation.
const NOT_MODELLED: &[&str] = &[
    "relatime",
    "strictatime",
    "atime",
    "nodiratime",
    "discard",
    "nodiscard",
    "delalloc",
    "nodelalloc",
    "journal_async_commit",
    "journal_checksum",
    "auto_da_alloc",
    "noauto_da_alloc",
    "stripe",
    "inode_readahead_blks",
    "journal_ioprio",
    "max_batch_time",
    "min_batch_time",
    "dioread_nolock",
    "dioread_lock",
    "nobh",
    "sync",
    "async",
    "dirsync",
    "lazytime",
    "noload",
    "norecovery",
    "dax",
    "user_xattr",
    "acl",
];

/// Parses a size such as `4096`, `16k`, `512M` or `2G` into bytes.
pub(in crate::notation) fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A machine as typed, and the time limit of the run, which the same text can contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// The machine.
    pub spec: MachineSpec,
    /// Virtual time after which the run stops, in seconds.
    pub limit_s: Option<u64>,
}

/// Parses a number such as `0.6` or `1.25` into thousandths.
fn permille(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 3 || whole.len() + part.len() == 0 {
        return None;
    }
    let whole: u32 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let part: u32 = format!("{part:0<3}").parse().ok()?;
    whole.checked_mul(1000)?.checked_add(part)
}

/// Parses options such as `memory=2G,cores=2,fs=ext3,without=readahead+plugging`. The first word
/// may be the name of a machine ([`super::machines`]). The other options then change this machine.
///
/// # Errors
/// Returns all unknown options and invalid values.
pub fn typed(list: &str) -> Result<Typed, SpecErrors> {
    let mut errors = SpecErrors::default();
    let mut t = Typed::default();
    let (mut first, mut once) = (true, Once::default());
    for part in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let named = std::mem::take(&mut first).then(|| named(part)).flatten();
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (part, None),
        };
        let done = match named {
            Some(machine) => {
                t.spec = machine.spec.clone();
                Ok(())
            }
            None => {
                let name = name.strip_prefix("vm.").unwrap_or(name);
                let taken = match option(name) {
                    None => Ok(()),
                    Some(one) => once.take(one, part),
                };
                let taken = taken.map_err(|what| SpecErrors::single(name, what));
                taken.and_then(|()| set(&mut t, name, value))
            }
        };
        errors.take("", done);
    }
    errors.or(t)
}

/// Returns the name of the setting that an option sets, if the option may occur only once. Some
/// options are aliases for the same setting. Returns `None` for options that may be repeated.
fn option(word: &str) -> Option<&str> {
    match word {
        "without" | "cgroup" => None,
        "barriers" | "nobarrier" => Some("barrier"),
        other => Some(other),
    }
}

fn set(t: &mut Typed, name: &str, given: Option<&str>) -> Result<(), SpecErrors> {
    let value = given.unwrap_or_default();
    let bad = |wanted: &str| SpecErrors::single(name, format!("\"{value}\" is not {wanted}"));
    let whole = |least: u32, most: u32, unit: &str| {
        let n = value.parse().ok().filter(|n| (least..=most).contains(n));
        n.ok_or_else(|| bad(&format!("a number of {least}..={most}{unit}")))
    };
    let size = || {
        let n = bytes(value).filter(|n| (MIN_DIRTY_BYTES..=MAX_MEMORY_BYTES).contains(n));
        n.ok_or_else(|| bad("a size of 8k to 4096G (64M, 1G)"))
    };
    let one_of = |known: &[&str]| known.contains(&value).then(|| value.to_owned());
    let m = &mut t.spec;
    match name {
        "kernel" => {
            let found = era(value).map_err(|e| {
                let mut errors = SpecErrors::default();
                errors.under(name, e);
                errors
            })?;
            m.kernel = Some(found.name().to_owned());
        }
        "memory" => {
            let n = bytes(value).filter(|n| (MIN_MEMORY_BYTES..=MAX_MEMORY_BYTES).contains(n));
            let n = n.ok_or_else(|| bad("a size of 16M to 4096G (2G, 512M)"))?;
            m.memory_bytes = Some(n);
        }
        "cache" => {
            let n = bytes(value).filter(|n| (MIN_CACHE_BYTES..=MAX_MEMORY_BYTES).contains(n));
            let n = n.ok_or_else(|| bad("a size of 1M to 4096G (2G, 512M)"))?;
            m.cache_bytes = Some(n);
        }
        "cores" => {
            let n = value.parse().ok().filter(|n| (1..=1024).contains(n));
            m.cores = Some(n.ok_or_else(|| bad("a number of 1..=1024"))?);
        }
        "fs" => {
            let known = FILE_SYSTEMS.iter().any(|f| f.0 == value);
            if !known && !GUEST_FILE_SYSTEMS.contains(&value) {
                return Err(bad(
                    "ext3 or ext4; with `--substrate kernel` also xfs, btrfs or f2fs",
                ));
            }
            m.fs = Some(value.to_owned());
        }
        "cpu" => {
            let n = permille(value).filter(|n| CPU_PERMILLE.contains(n));
            let what = "a number of 0.05..=20 with at most three decimals: 1 is the default core";
            m.cpu_permille = Some(n.ok_or_else(|| bad(what))?);
        }
        "data" => {
            if value == "journal" || !JOURNAL_MODES.contains(&value) {
                return Err(bad("ordered or writeback, the modes that are modelled"));
            }
            m.data = Some(value.to_owned());
        }
        "commit" => m.commit_s = Some(whole(0, MAX_COMMIT_S, " seconds")?),
        "dirty_ratio" => m.dirty_ratio = Some(whole(1, 100, " percent")?),
        "dirty_background_ratio" => m.dirty_background_ratio = Some(whole(0, 100, " percent")?),
        "dirty_bytes" => m.dirty_bytes = Some(size()?),
        "dirty_background_bytes" => m.dirty_background_bytes = Some(size()?),
        "dirty_expire_centisecs" => {
            m.dirty_expire_centisecs = Some(whole(0, MAX_CENTISECS, " hundredths of a second")?);
        }
        "dirty_writeback_centisecs" => {
            m.dirty_writeback_centisecs = Some(whole(0, MAX_CENTISECS, " hundredths of a second")?);
        }
        // The model neither reads nor writes access times.
        "noatime" if matches!(given, None | Some("1" | "yes")) => {}
        "nobarrier" if given.is_none() => m.barriers = Some(false),
        "barrier" | "barriers" => {
            m.barriers = Some(match value {
                "" if given.is_none() && name == "barrier" => true,
                "yes" | "on" | "1" => true,
                "no" | "off" | "0" => false,
                _ => return Err(bad("yes or no")),
            });
        }
        "aged" => {
            let n = value.parse().ok().filter(|n| *n <= MAX_AGED_RUN_BLOCKS);
            m.aged_run_blocks = n.ok_or_else(|| {
                bad("a mean run of 1..=32768 blocks, a group of the file system (0: fresh)")
            })?;
        }
        "placement" => m.placement = Some(one_of(PLACEMENTS).ok_or_else(|| bad("drawn or first"))?),
        "phase" => m.phase = Some(one_of(PHASES).ok_or_else(|| bad("boot or drawn"))?),
        "read_ahead_kb" => {
            let n: Option<u32> = value.parse().ok();
            let n = n.filter(|n| *n <= 65_536 && n.is_multiple_of(PAGE_KB));
            m.read_ahead_kb = Some(n.ok_or_else(|| bad("a multiple of 4 in 0..=65536 KiB"))?);
        }
        "without" => {
            for one in value.split('+').map(str::trim) {
                if MECHANISMS.iter().all(|k| k.0 != one) {
                    let known: Vec<&str> = MECHANISMS.iter().map(|k| k.0).collect();
                    let what = format!("\"{one}\" is not a mechanism that can be removed");
                    let mut errors = SpecErrors::default();
                    errors.unknown(name, &what, one, &known);
                    return Err(errors);
                }
                m.without.insert(one.to_owned());
            }
        }
        "cgroup" => {
            for (group, settings) in cgroup::typed(value)? {
                if let Some(before) = m.cgroups.get(&group) {
                    let what = cgroup::twice(&group, before, &settings);
                    return Err(SpecErrors::single(name, what));
                }
                m.cgroups.insert(group, settings);
            }
        }
        "limit" => {
            let n = value.parse().ok().filter(|n| (1..=MAX_LIMIT_S).contains(n));
            t.limit_s = Some(n.ok_or_else(|| bad("a number of seconds, 1..=1000000000"))?);
        }
        _ if NOT_MODELLED.contains(&name) => {
            let what = "is a mount option that is not modelled; modelled are data=ordered, \
                        data=writeback, commit=SECONDS, barrier=0 or 1, nobarrier and noatime";
            return Err(SpecErrors::single(name, what));
        }
        _ => {
            let what = match given {
                Some(_) => format!("there is no option \"{name}\" of the modelled machine"),
                None => format!("\"{name}\" is neither a machine nor an option of one"),
            };
            let machines = super::machines().iter().map(|m| &*m.name);
            let known = WORDS.iter().map(|w| w.name);
            let known = known.chain(machines.filter(|_| given.is_none()));
            return Err(unknown_word(&what, name, known));
        }
    }
    Ok(())
}
