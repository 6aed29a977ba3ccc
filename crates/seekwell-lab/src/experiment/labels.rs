//! Short and unique labels for devices, schedulers, workloads and machines in tables.

use super::design::{Level, Work};
use super::fault::{Faults, Place};
use seekwell::words::{self, TypedMachine};
use seekwell::{DeviceSpec, MachineSpec, QueueSpec, SchedulerSpec, WorkloadSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Returns unique labels for the levels of a factor. The label of a named level is its name with
/// the values of its grid. The other labels are the first candidates with which all labels differ.
fn unique<T>(
    levels: &[Level<T>],
    ways: &[&dyn Fn(usize) -> String],
    what: &str,
    places: &[Place],
    faults: &mut Faults,
) -> Vec<String> {
    let said = |way: &dyn Fn(usize) -> String| -> Vec<String> {
        let each = levels.iter().enumerate();
        each.map(|(i, l)| l.name.clone().unwrap_or_else(|| way(i)))
            .collect()
    };
    let mut labels = Vec::new();
    for way in ways {
        labels = said(*way);
        if labels.iter().collect::<BTreeSet<_>>().len() == labels.len() {
            return labels;
        }
    }
    let mut seen = BTreeSet::new();
    for (i, label) in labels.iter().enumerate() {
        if !seen.insert(label) {
            let at = places.get(i).copied().unwrap_or_default();
            let remedy = "name it once, or give each its own `name`";
            faults.push(at, what, format!("\"{label}\" occurs twice: {remedy}"));
        }
    }
    labels
}

/// Removes the kind of a device, for example in `hdd:hitachi-7k200,write_cache=no`.
fn without_kind(spec: &str) -> String {
    let (base, options) = match spec.find([',', '(']) {
        Some(at) => spec.split_at(at),
        None => (spec, ""),
    };
    let short = match base.split_once(':') {
        // The kind is kept if the name alone is not clear, as in `constant:depth=4`.
        Some((_, name)) if !name.is_empty() && !name.contains('=') => name,
        _ if base.ends_with(".toml") => {
            let stem = Path::new(base).file_stem().and_then(|s| s.to_str());
            stem.unwrap_or(base)
        }
        _ => base,
    };
    format!("{short}{options}")
}

pub(super) fn devices(
    levels: &[Level<DeviceSpec>],
    places: &[Place],
    faults: &mut Faults,
) -> Vec<String> {
    let short = |i: usize| without_kind(&levels[i].spec.spec);
    let full = |i: usize| levels[i].spec.spec.clone();
    unique(levels, &[&short, &full], "device", places, faults)
}

/// Returns the label of a scheduler as typed, for example `cfq` or `cfq-3.4:slice_idle=0`. The
/// version is left out if it is the default version.
pub(super) fn scheduler(spec: &SchedulerSpec) -> String {
    let usual = words::named(&spec.name);
    let usual = usual.is_ok_and(|f| spec.version.as_deref().is_none_or(|v| v == f.version));
    let mut text = match usual {
        true => spec.name.clone(),
        false => spec.versioned(),
    };
    for (name, value) in &spec.tunables {
        text += &format!(":{name}={value}");
    }
    text
}

pub(super) fn schedulers(
    levels: &[Level<SchedulerSpec>],
    places: &[Place],
    faults: &mut Faults,
) -> Vec<String> {
    let way = |i: usize| scheduler(&levels[i].spec);
    unique(levels, &[&way], "scheduler", places, faults)
}

/// Returns the name of a file without its folders and extension.
fn stem(file: &str) -> String {
    let stem = Path::new(file).file_stem().and_then(|s| s.to_str());
    stem.unwrap_or(file).to_owned()
}

fn workload_name(spec: &WorkloadSpec) -> String {
    match spec {
        WorkloadSpec::Script { name, .. } => name.clone(),
        WorkloadSpec::Fio { file, .. } | WorkloadSpec::Trace { file, .. } => stem(file),
    }
}

/// Returns the parameters that distinguish workloads with the same name.
fn parameters(spec: &WorkloadSpec) -> BTreeMap<String, String> {
    match spec {
        WorkloadSpec::Script { params, .. } => params.clone(),
        WorkloadSpec::Fio { .. } => BTreeMap::new(),
        WorkloadSpec::Trace { mode, .. } => BTreeMap::from([("mode".to_owned(), mode.clone())]),
    }
}

/// Formats the parameters whose names are in `shown`, with their values.
fn list(all: &BTreeMap<String, String>, shown: &BTreeSet<String>) -> String {
    let parts = all.iter().filter(|p| shown.contains(p.0));
    let parts: Vec<String> = parts.map(|(k, v)| format!("{k}={v}")).collect();
    parts.join(" ")
}

fn joined(name: String, more: &str) -> String {
    match more {
        "" => name,
        more => format!("{name} {more}"),
    }
}

pub(super) fn workloads(
    levels: &[Level<Work>],
    places: &[Place],
    faults: &mut Faults,
) -> Vec<String> {
    // Collects, by workload name, the parameters in which workloads differ, and the profiles.
    let mut by_name: BTreeMap<String, Vec<BTreeMap<String, String>>> = BTreeMap::new();
    for l in levels {
        let name = workload_name(&l.spec.spec);
        by_name
            .entry(name)
            .or_default()
            .push(parameters(&l.spec.spec));
    }
    let differ: BTreeMap<String, BTreeSet<String>> = by_name
        .into_iter()
        .map(|(name, all)| {
            let keys: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
            let differs = |k: &String| all.iter().any(|p| p.get(k) != all[0].get(k));
            let keys = keys.into_iter().filter(|k| differs(k)).cloned().collect();
            (name, keys)
        })
        .collect();
    let label = |i: usize| {
        let spec = &levels[i].spec.spec;
        let name = workload_name(spec);
        let shown = differ.get(&name).cloned().unwrap_or_default();
        let more = list(&parameters(spec), &shown);
        joined(name, &more)
    };
    let beside = |i: usize| {
        let with = &levels[i].spec.beside;
        let with: Vec<String> = with.iter().map(|b| workload_name(&b.workload)).collect();
        match with.is_empty() {
            true => label(i),
            false => format!("{} beside {}", label(i), with.join(" + ")),
        }
    };
    let metric = |i: usize| match &levels[i].spec.metric {
        Some(m) => format!("{}: {m}", beside(i)),
        None => beside(i),
    };
    unique(
        levels,
        &[&label, &beside, &metric],
        "workload",
        places,
        faults,
    )
}

/// Formats a number of bytes in the largest unit that divides it, in the notation for machines.
pub(super) fn bytes(n: u64) -> String {
    for (shift, unit) in [(30, "G"), (20, "M"), (10, "k")] {
        if n > 0 && n.is_multiple_of(1 << shift) {
            return format!("{}{unit}", n >> shift);
        }
    }
    n.to_string()
}

/// Formats a number of thousandths as a decimal number: 600 becomes `0.6`.
fn thousandths(n: u32) -> String {
    let text = format!("{}.{:03}", n / 1000, n % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the options of a machine in the notation of `--machine`; empty for the default machine.
pub(super) fn machine(m: &MachineSpec) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    let mut add = |name: &'static str, value: Option<String>| {
        if let Some(v) = value {
            all.push((name, v));
        }
    };
    let yes = |b: bool| if b { "yes" } else { "no" }.to_owned();
    add("kernel", m.kernel.clone());
    add("cores", m.cores.map(|n| n.to_string()));
    add("memory", m.memory_bytes.map(bytes));
    add("cache", m.cache_bytes.map(bytes));
    add("fs", m.fs.clone());
    add("barriers", m.barriers.map(yes));
    let number = |n: Option<u32>| n.map(|n| n.to_string());
    add("cpu", m.cpu_permille.map(thousandths));
    add("data", m.data.clone());
    add("commit", number(m.commit_s));
    add("dirty_ratio", number(m.dirty_ratio));
    add("dirty_background_ratio", number(m.dirty_background_ratio));
    add("dirty_bytes", m.dirty_bytes.map(bytes));
    add(
        "dirty_background_bytes",
        m.dirty_background_bytes.map(bytes),
    );
    add("dirty_expire_centisecs", number(m.dirty_expire_centisecs));
    add(
        "dirty_writeback_centisecs",
        number(m.dirty_writeback_centisecs),
    );
    let aged = (m.aged_run_blocks != 0).then(|| m.aged_run_blocks.to_string());
    add("aged", aged);
    add("placement", m.placement.clone());
    add("phase", m.phase.clone());
    add("read_ahead_kb", m.read_ahead_kb.map(|n| n.to_string()));
    if !m.cgroups.is_empty() {
        let one = |(name, settings): (&String, &String)| match settings.is_empty() {
            true => name.clone(),
            false => format!("{name}:{settings}"),
        };
        let all: Vec<String> = m.cgroups.iter().map(one).collect();
        add("cgroup", Some(all.join("+")));
    }
    if !m.without.is_empty() {
        let names: Vec<&str> = m.without.iter().map(String::as_str).collect();
        add("without", Some(names.join("+")));
    }
    all
}

pub(super) fn machines(
    levels: &[Level<TypedMachine>],
    places: &[Place],
    faults: &mut Faults,
) -> Vec<String> {
    let label = |i: usize| {
        let spec = &levels[i].spec.spec;
        if let Some(known) = words::machines().iter().find(|m| m.spec == *spec) {
            return known.name.clone();
        }
        let parts = machine(spec);
        let parts: Vec<String> = parts.iter().map(|(k, v)| format!("{k}={v}")).collect();
        match (parts.is_empty(), levels.len()) {
            (true, 1) => String::new(),
            (true, _) => "usual".to_owned(),
            _ => parts.join(","),
        }
    };
    let limit = |i: usize| match levels[i].spec.limit_s {
        Some(s) => format!("{},limit={s}", label(i)),
        None => label(i),
    };
    unique(levels, &[&label, &limit], "machine", places, faults)
}

/// Returns the settings of a queue that differ from the defaults, by name.
pub(super) fn queue(q: &QueueSpec) -> Vec<(&'static str, u64)> {
    let usual = QueueSpec::default();
    let some = |n: Option<u32>| n.map(u64::from);
    [
        ("hz", (q.hz != usual.hz).then_some(q.hz.into())),
        ("nr_requests", some(q.nr_requests)),
        ("depth", some(q.depth)),
        ("max_sectors_kb", some(q.max_sectors_kb)),
        ("max_segments", some(q.max_segments)),
        ("nomerges", (q.nomerges != 0).then_some(q.nomerges.into())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

pub(super) fn queues(
    levels: &[Level<QueueSpec>],
    places: &[Place],
    faults: &mut Faults,
) -> Vec<String> {
    let label = |i: usize| {
        let parts = queue(&levels[i].spec);
        let parts: Vec<String> = parts.iter().map(|(k, v)| format!("{k}={v}")).collect();
        match (levels.len(), parts.is_empty()) {
            // If all cells have the same queue, the labels do not contain it.
            (1, _) => String::new(),
            (_, true) => "usual queue".to_owned(),
            _ => parts.join(","),
        }
    };
    unique(levels, &[&label], "queue", places, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_labels_omit_redundant_kinds() {
        assert_eq!(without_kind("hdd:hitachi-7k200"), "hitachi-7k200");
        assert_eq!(without_kind("ssd:x,state=used"), "x,state=used");
        assert_eq!(without_kind("my/disk.toml,depth=3"), "disk,depth=3");
        assert_eq!(without_kind("constant:depth=4"), "constant:depth=4");
        assert_eq!(
            without_kind("raid5:members=4,of=hdd:x"),
            "raid5:members=4,of=hdd:x"
        );
    }

    #[test]
    fn printed_byte_sizes_are_parsed_back() {
        for n in [0, 1, 1023, 1024, 3 << 20, 5 << 30, (5 << 30) + 1024] {
            let typed = words::machine(&format!("memory={}", bytes(n)));
            if (16 << 20..=4 << 40).contains(&n) {
                assert_eq!(typed.expect("a size").spec.memory_bytes, Some(n));
            }
        }
    }
}
