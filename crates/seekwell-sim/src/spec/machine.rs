//! The modelled machine: `memory=2G,cores=2,without=readahead` to a [`MachineSpec`], and that to
//! what the modelled kernel takes.

use super::{MachineSpec, SpecErrors, unknown_word};
use seekwell_core::Era;
use seekwell_core::spec::{
    MAX_AGED_RUN_BLOCKS, MAX_LIMIT_S, MAX_MEMORY_BYTES, MIN_CACHE_BYTES, MIN_MEMORY_BYTES,
};
use seekwell_stack::{Ablations, Config, Fs};

/// Options of the notation, in the order of their documentation.
pub const OPTIONS: &[&str] = &[
    "kernel",
    "memory",
    "cache",
    "cores",
    "fs",
    "barriers",
    "aged",
    "read_ahead_kb",
    "without",
    "limit",
];

/// Where a named mechanism is switched off.
type Switch = fn(&mut Ablations) -> &mut bool;

/// Mechanisms by the name they are taken out with.
const MECHANISMS: &[(&str, Switch)] = &[
    ("plugging", |a| &mut a.no_plugging),
    ("readahead", |a| &mut a.no_readahead),
    ("stable-pages", |a| &mut a.no_stable_pages),
    ("ordered-data", |a| &mut a.no_ordered_data),
    ("shadows", |a| &mut a.no_shadows),
    ("metadata-reads", |a| &mut a.metadata_cached),
    ("throttling", |a| &mut a.no_throttling),
    ("cpu", |a| &mut a.no_cpu_limit),
    ("noidle", |a| &mut a.no_noidle),
];

const FILE_SYSTEMS: &[(&str, Fs)] = &[("ext3", Fs::Ext3), ("ext4", Fs::Ext4)];

/// KiB of a page of the cache.
const PAGE_KB: u32 = 4;

fn era(name: &str) -> Result<Era, SpecErrors> {
    let all = Era::ALL.iter();
    match all.clone().find(|e| e.name() == name) {
        Some(e) => Ok(*e),
        None => {
            let what = format!("no modelled kernel is called `{name}`");
            Err(unknown_word(&what, name, all.map(|e| e.name())))
        }
    }
}

/// What the modelled kernel takes, on a machine of a scheduler's time.
///
/// # Errors
/// All values that cannot be.
pub fn config(m: &MachineSpec, scheduler: Era, seed: u64) -> Result<Config, SpecErrors> {
    let mut c = Config::new(scheduler);
    c.seed = seed;
    // Nobody reads the samples of the modelled kernel here.
    c.series = false;
    change(&mut c, m)?;
    Ok(c)
}

/// Changes what a specification states, and nothing else.
///
/// # Errors
/// All values that cannot be.
pub fn change(c: &mut Config, m: &MachineSpec) -> Result<(), SpecErrors> {
    let mut errors = SpecErrors::default();
    if let Some(name) = &m.kernel
        && let Some(kernel) = errors.take("kernel", era(name))
        && kernel != c.era
    {
        let fresh = Config::new(kernel);
        (c.era, c.constants, c.fs) = (kernel, fresh.constants, fresh.fs);
    }
    if let Some(n) = m.cores {
        if !(1..=1024).contains(&n) {
            errors.push("cores", format!("{n} is outside 1..=1024"));
        }
        c.cores = n;
    }
    if let Some(n) = m.memory_bytes {
        if !(MIN_MEMORY_BYTES..=MAX_MEMORY_BYTES).contains(&n) {
            errors.push("memory_bytes", format!("{n} is outside 16 MiB to 4 TiB"));
        }
        c.memory_bytes = n;
    }
    if let Some(n) = m.cache_bytes {
        if !(MIN_CACHE_BYTES..=MAX_MEMORY_BYTES).contains(&n) {
            errors.push("cache_bytes", format!("{n} is outside 1 MiB to 4 TiB"));
        }
        c.cache_bytes = Some(n);
    }
    if let Some(name) = &m.fs {
        match FILE_SYSTEMS.iter().find(|f| f.0 == name) {
            Some((_, fs)) => c.fs = *fs,
            None => errors.under(
                "fs",
                unknown_word(
                    &format!("no modelled file system is called `{name}`"),
                    name,
                    FILE_SYSTEMS.iter().map(|f| f.0),
                ),
            ),
        }
    }
    c.barriers = m.barriers.or(c.barriers);
    if m.aged_run_blocks > MAX_AGED_RUN_BLOCKS {
        let what = format!("{} is outside 0..={MAX_AGED_RUN_BLOCKS}", m.aged_run_blocks);
        errors.push("aged_run_blocks", what);
    }
    if m.aged_run_blocks != 0 {
        c.aged_run_blocks = m.aged_run_blocks;
    }
    if let Some(kb) = m.read_ahead_kb {
        if kb > 65_536 || !kb.is_multiple_of(PAGE_KB) {
            let what = format!("{kb} is no multiple of {PAGE_KB} in 0..=65536");
            errors.push("read_ahead_kb", what);
        }
        c.constants.readahead_pages = (kb / PAGE_KB).into();
        // The kernel, too, reads nothing ahead then.
        c.ablations.no_readahead |= kb == 0;
    }
    for name in &m.without {
        match MECHANISMS.iter().find(|k| k.0 == name) {
            Some((_, field)) => *field(&mut c.ablations) = true,
            None => errors.under(
                "without",
                unknown_word(
                    &format!("no mechanism is called `{name}`"),
                    name,
                    MECHANISMS.iter().map(|k| k.0),
                ),
            ),
        }
    }
    errors.or(())
}

/// The same machine with everything stated that a kernel has a default for.
pub fn stated(m: &MachineSpec, c: &Config) -> MachineSpec {
    let fs = FILE_SYSTEMS.iter().find(|f| f.1 == c.fs);
    MachineSpec {
        kernel: Some(c.era.name().to_owned()),
        cores: Some(c.cores),
        memory_bytes: Some(c.memory_bytes),
        cache_bytes: c.cache_bytes,
        fs: fs.map(|f| f.0.to_owned()),
        barriers: Some(c.flushes()),
        aged_run_blocks: c.aged_run_blocks,
        read_ahead_kb: Some(c.constants.readahead_pages as u32 * PAGE_KB),
        without: m.without.clone(),
    }
}

/// `4096`, `16k`, `512M`, `2G`.
fn bytes(text: &str) -> Option<u64> {
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

/// A machine as typed, with the limit of the run that the notation has room for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// The machine.
    pub spec: MachineSpec,
    /// Stop after so much virtual time, seconds.
    pub limit_s: Option<u64>,
}

/// Reads `memory=2G,cores=2,fs=ext3,without=readahead+plugging`.
///
/// # Errors
/// All options that do not exist and all values that cannot be.
pub fn typed(list: &str) -> Result<Typed, SpecErrors> {
    let mut errors = SpecErrors::default();
    let mut t = Typed::default();
    for part in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        errors.take("", set(&mut t, name.trim(), value.trim()));
    }
    errors.or(t)
}

fn set(t: &mut Typed, name: &str, value: &str) -> Result<(), SpecErrors> {
    let bad = |wanted: &str| SpecErrors::one(name, format!("`{value}` is not {wanted}"));
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
            if !known {
                return Err(bad("ext3 or ext4"));
            }
            m.fs = Some(value.to_owned());
        }
        "barriers" => {
            m.barriers = Some(match value {
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
        "read_ahead_kb" => {
            let n: Option<u32> = value.parse().ok();
            let n = n.filter(|n| *n <= 65_536 && n.is_multiple_of(PAGE_KB));
            m.read_ahead_kb = Some(n.ok_or_else(|| bad("a multiple of 4 in 0..=65536 KiB"))?);
        }
        "without" => {
            for one in value.split('+').map(str::trim) {
                if MECHANISMS.iter().all(|k| k.0 != one) {
                    let known: Vec<&str> = MECHANISMS.iter().map(|k| k.0).collect();
                    let what = format!("`{one}` is no mechanism that can be taken out");
                    let mut errors = SpecErrors::default();
                    errors.unknown(name, &what, one, &known);
                    return Err(errors);
                }
                m.without.insert(one.to_owned());
            }
        }
        "limit" => {
            let n = value.parse().ok().filter(|n| (1..=MAX_LIMIT_S).contains(n));
            t.limit_s = Some(n.ok_or_else(|| bad("a number of seconds, 1..=1000000000"))?);
        }
        _ => {
            let what = format!("there is no option `{name}` of the modelled machine");
            return Err(unknown_word(&what, name, OPTIONS.iter().copied()));
        }
    }
    Ok(())
}
