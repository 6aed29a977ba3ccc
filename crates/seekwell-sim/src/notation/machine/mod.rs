//! The modelled machine. Converts a text such as `memory=2G,cores=2,without=readahead` to a
//! [`MachineSpec`], and a [`MachineSpec`] to the configuration of the modelled kernel.

mod named;
mod typed;

pub use named::{Machine, Sourced, machines, named};
pub(super) use typed::bytes;
pub use typed::{Typed, WORDS, Word, typed};

use super::{MachineSpec, SpecErrors, cgroup, unknown_word};
use seekwell_core::Era;
use seekwell_core::NSEC_PER_SEC;
use seekwell_core::spec::{
    CPU_PERMILLE, MAX_AGED_RUN_BLOCKS, MAX_CENTISECS, MAX_COMMIT_S, MAX_MEMORY_BYTES,
    MIN_CACHE_BYTES, MIN_DIRTY_BYTES, MIN_MEMORY_BYTES,
};
use seekwell_stack::{Ablations, Config, Fs};
use std::collections::BTreeMap;

/// A function that returns the switch of a mechanism.
type Switch = fn(&mut Ablations) -> &mut bool;

/// Mechanisms that can be removed, by name.
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
    ("scheduler-cpu", |a| &mut a.no_scheduler_cpu),
    ("scattered-memory", |a| &mut a.contiguous_memory),
];

const FILE_SYSTEMS: &[(&str, Fs)] = &[("ext3", Fs::Ext3), ("ext4", Fs::Ext4)];

/// File systems that only a guest kernel has.
const GUEST_FILE_SYSTEMS: &[&str] = &["xfs", "btrfs", "f2fs"];

/// Supported journal modes.
const JOURNAL_MODES: &[&str] = &["ordered", "writeback"];

/// Rules for the placement of directories in the root.
const PLACEMENTS: &[&str] = &["drawn", "first"];

/// Rules for the start time of a program.
const PHASES: &[&str] = &["boot", "drawn"];

/// Nanoseconds per unit of the sysctls whose name ends in `_centisecs`.
const NSEC_PER_CENTISEC: u64 = 10_000_000;

/// An interval of a hundred years, longer than any run.
const NEVER_CENTISECS: u64 = 100 * 365 * 86_400 * 100;

/// Size of a page of the page cache, in KiB.
const PAGE_KB: u32 = 4;

fn era(name: &str) -> Result<Era, SpecErrors> {
    let k = super::kernel::kernel(name)?;
    let era = seekwell_sched::kernels::machine(k.release);
    era.ok_or_else(|| SpecErrors::single("", format!("kernel {name} is not modelled")))
}

/// Checks that the kernel of a machine agrees with the kernel that was requested for the whole run.
///
/// # Errors
/// Returns an error if the two kernels are modelled differently.
pub fn of_kernel(m: &MachineSpec, k: &super::kernel::Kernel) -> Result<(), SpecErrors> {
    let Some(name) = &m.kernel else { return Ok(()) };
    let asked = seekwell_sched::kernels::machine(k.release);
    match asked.is_some_and(|e| Ok(e) == era(name)) {
        true => Ok(()),
        false => Err(SpecErrors::single(
            "kernel",
            format!(
                "the machine has kernel {name}, but the requested kernel is {}: leave one of them \
                 out",
                k.asked
            ),
        )),
    }
}

/// Returns the configuration of the modelled kernel, for a machine of the scheduler's era.
///
/// # Errors
/// Returns all invalid values.
pub fn config(m: &MachineSpec, scheduler: Era, seed: u64) -> Result<Config, SpecErrors> {
    let mut c = Config::new(scheduler);
    c.seed = seed;
    // The modelled kernel's samples are not used here.
    change(&mut c, m)?;
    Ok(c)
}

/// Changes the parts of a configuration that a specification states.
///
/// # Errors
/// Returns all invalid values.
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
            None if GUEST_FILE_SYSTEMS.contains(&name.as_str()) => errors.push(
                "fs",
                format!(
                    "{name} is not simulated, but a real kernel can have it: `seekwell guest build \
                     --fs ext4,{name}`, then add `--substrate kernel` to this command"
                ),
            ),
            None => errors.under(
                "fs",
                unknown_word(
                    &format!("no modelled file system is called \"{name}\""),
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
    for (field, value, known) in [
        ("placement", &m.placement, PLACEMENTS),
        ("phase", &m.phase, PHASES),
    ] {
        if let Some(other) = value.as_deref().filter(|v| !known.contains(v)) {
            let what = format!("{field}={other} is not modelled");
            errors.unknown(field, &what, other, known);
        }
    }
    c.first_placement |= m.placement.as_deref() == Some("first");
    if let Some(kb) = m.read_ahead_kb {
        if kb > 65_536 || !kb.is_multiple_of(PAGE_KB) {
            let what = format!("{kb} is not a multiple of {PAGE_KB} in 0..=65536");
            errors.push("read_ahead_kb", what);
        }
        c.constants.readahead_pages = (kb / PAGE_KB).into();
        // The kernel does not read ahead in this case either.
        c.ablations.no_readahead |= kb == 0;
    }
    vm(c, m, &mut errors);
    match m.data.as_deref() {
        None | Some("ordered") => {}
        Some("writeback") => c.ablations.no_ordered_data = true,
        Some(other) => {
            let what = format!("data={other} is not modelled");
            errors.unknown("data", &what, other, JOURNAL_MODES);
        }
    }
    if let Some(s) = m.commit_s {
        if s > MAX_COMMIT_S {
            errors.push("commit_s", format!("{s} is outside 0..={MAX_COMMIT_S}"));
        }
        // 0 means the default, as in mount(8).
        if s > 0 {
            c.constants.commit_interval_ns = u64::from(s) * NSEC_PER_SEC;
        }
    }
    errors.take("cgroups", cgroup::all(&m.cgroups));
    for name in &m.without {
        match MECHANISMS.iter().find(|k| k.0 == name) {
            Some((_, field)) => *field(&mut c.ablations) = true,
            None => errors.under(
                "without",
                unknown_word(
                    &format!("no mechanism is called \"{name}\""),
                    name,
                    MECHANISMS.iter().map(|k| k.0),
                ),
            ),
        }
    }
    errors.or(())
}

/// Returns whether the seed determines when programs start.
pub fn phase_drawn(m: &MachineSpec) -> bool {
    m.phase.as_deref() == Some("drawn")
}

/// Applies the dirty memory settings of /proc/sys/vm, and the speed of a core.
fn vm(c: &mut Config, m: &MachineSpec, errors: &mut SpecErrors) {
    if let Some(n) = m.cpu_permille {
        if !CPU_PERMILLE.contains(&n) {
            let (least, most) = (CPU_PERMILLE.start(), CPU_PERMILLE.end());
            errors.push("cpu_permille", format!("{n} is outside {least}..={most}"));
        }
        c.cpu_permille = n.max(1);
    }
    for (field, ratio, bytes, least) in [
        ("dirty_ratio", m.dirty_ratio, m.dirty_bytes, 1),
        (
            "dirty_background_ratio",
            m.dirty_background_ratio,
            m.dirty_background_bytes,
            0,
        ),
    ] {
        if let Some(n) = ratio.filter(|n| !(least..=100).contains(n)) {
            errors.push(field, format!("{n} is outside {least}..=100 percent"));
        }
        let own = field.replace("ratio", "bytes");
        if let Some(n) = bytes.filter(|n| !(MIN_DIRTY_BYTES..=MAX_MEMORY_BYTES).contains(n)) {
            errors.push(&*own, format!("{n} is outside 8 KiB to 4 TiB"));
        }
        if ratio.is_some() && bytes.is_some() {
            errors.push(
                &*own,
                format!("{field} is given as well: the kernel uses only one of them"),
            );
        }
    }
    let k = &mut c.constants;
    k.dirty_limit_percent = m.dirty_ratio.map_or(k.dirty_limit_percent, u64::from);
    k.dirty_background_percent = m
        .dirty_background_ratio
        .map_or(k.dirty_background_percent, u64::from);
    c.dirty_bytes = m.dirty_bytes.or(c.dirty_bytes);
    c.dirty_background_bytes = m.dirty_background_bytes.or(c.dirty_background_bytes);
    for (field, value, ns) in [
        (
            "dirty_expire_centisecs",
            m.dirty_expire_centisecs,
            &mut k.dirty_expire_ns,
        ),
        (
            "dirty_writeback_centisecs",
            m.dirty_writeback_centisecs,
            &mut k.dirty_writeback_ns,
        ),
    ] {
        let Some(n) = value else { continue };
        if n > MAX_CENTISECS {
            errors.push(field, format!("{n} is outside 0..={MAX_CENTISECS}"));
        }
        // 0 disables the periodic flusher; an interval longer than any run has the same effect.
        let n = match (field, n) {
            ("dirty_writeback_centisecs", 0) => NEVER_CENTISECS,
            _ => u64::from(n),
        };
        *ns = n * NSEC_PER_CENTISEC;
    }
}

/// Returns the same machine with all kernel defaults filled in.
pub fn stated(m: &MachineSpec, c: &Config) -> MachineSpec {
    let fs = FILE_SYSTEMS.iter().find(|f| f.1 == c.fs);
    let usual = Config::new(c.era).constants;
    let usual_commit_s = (usual.commit_interval_ns / NSEC_PER_SEC) as u32;
    MachineSpec {
        kernel: Some(c.era.name().to_owned()),
        cores: Some(c.cores),
        memory_bytes: Some(c.memory_bytes),
        cache_bytes: c.cache_bytes,
        fs: fs.map(|f| f.0.to_owned()),
        barriers: Some(c.flushes()),
        aged_run_blocks: c.aged_run_blocks,
        placement: m.placement.clone().filter(|p| p != "drawn"),
        phase: m.phase.clone().filter(|p| p != "boot"),
        read_ahead_kb: Some(c.constants.readahead_pages as u32 * PAGE_KB),
        // These fields are left out if they have the default value, so that older records stay
        // equal.
        cpu_permille: m.cpu_permille.filter(|n| *n != 1000),
        data: m.data.clone().filter(|d| d != "ordered"),
        commit_s: m.commit_s.filter(|s| ![0, usual_commit_s].contains(s)),
        dirty_ratio: m
            .dirty_ratio
            .filter(|n| u64::from(*n) != usual.dirty_limit_percent),
        dirty_background_ratio: m
            .dirty_background_ratio
            .filter(|n| u64::from(*n) != usual.dirty_background_percent),
        dirty_bytes: m.dirty_bytes,
        dirty_background_bytes: m.dirty_background_bytes,
        dirty_expire_centisecs: m
            .dirty_expire_centisecs
            .filter(|n| u64::from(*n) * NSEC_PER_CENTISEC != usual.dirty_expire_ns),
        dirty_writeback_centisecs: m
            .dirty_writeback_centisecs
            .filter(|n| u64::from(*n) * NSEC_PER_CENTISEC != usual.dirty_writeback_ns),
        cgroups: cgroups(m),
        without: m.without.clone(),
    }
}

/// Returns the settings of the cgroups in normalised form.
fn cgroups(m: &MachineSpec) -> BTreeMap<String, String> {
    let all = m.cgroups.iter();
    let usual = |(name, settings): (&String, &String)| {
        let read = cgroup::parse_cgroup(name, settings);
        let settings = read.map_or_else(|_| settings.clone(), |c| c.settings());
        (name.clone(), settings)
    };
    all.map(usual).collect()
}
