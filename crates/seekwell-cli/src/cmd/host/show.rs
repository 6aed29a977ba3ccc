//! The table of devices, and the layers under a path, as text.

use crate::cmd::switch::show::typed_as;
use seekwell_host::block::{Acts, Device, Machine, Partition, Role, Scheduler, Under, clean};
use seekwell_report::style::{BAD, DIM, GOOD, HEAD, NAME, WARN};
use seekwell_report::table::{Align, Cell, Table, painted, wrap};
use seekwell_report::units;
use std::path::PathBuf;

/// Columns in the order in which they are omitted if the terminal is too narrow.
const GIVEN_UP: &[&str] = &[
    "affinity", "nomerges", "serial", "cache", "max KiB", "ahead", "requests", "wbt", "model",
    "queues",
];

fn or_dash<T: ToString>(value: Option<T>) -> Cell {
    match value {
        Some(v) => v.to_string().into(),
        None => painted("-", DIM),
    }
}

/// Formats the schedulers as `[bfq] none kyber`; the active one is first.
fn choice(d: &Device) -> Cell {
    match &d.scheduler {
        Scheduler::Absent => painted("takes none", DIM),
        Scheduler::Fixed { word } => painted(format!("{word}, fixed"), DIM),
        Scheduler::Choice { active, offered } => {
            let others = offered.iter().filter(|o| *o != active);
            let mut text = format!("[{active}]");
            for o in others {
                text += &format!(" {o}");
            }
            text.into()
        }
    }
}

/// Formats the queues and their depth, for example `8 x 1023`, `1 x 32`.
fn queues(d: &Device) -> Cell {
    match (d.hw_queues, d.depth) {
        (Some(q), Some(n)) => format!("{q} x {n}").into(),
        (None, Some(n)) => format!("1 x {n}").into(),
        _ => painted("-", DIM),
    }
}

fn wbt(d: &Device) -> Cell {
    match d.wbt_lat_usec {
        Some(0) => "off".into(),
        Some(us) if us > 0 => units::time_ns(us as f64 * 1e3).into(),
        _ => painted("-", DIM),
    }
}

fn points(mounts: &[PathBuf], swap: bool) -> Vec<String> {
    let mut all: Vec<String> = mounts.iter().map(|m| clean(&m.to_string_lossy())).collect();
    if swap {
        all.push("swap".to_owned());
    }
    all
}

/// Returns the users of a partition: its mounts, and the devices stacked on it.
fn on_part(p: &Partition) -> Option<String> {
    let mut all = points(&p.mounts, p.swap);
    all.extend(p.above.iter().cloned());
    (!all.is_empty()).then(|| format!("{}: {}", p.name, all.join(" ")))
}

/// Returns the users of a device, and the devices below it.
fn used(d: &Device) -> String {
    let mut all = points(&d.mounts, d.swap);
    all.extend(d.above.iter().cloned());
    let mut parts: Vec<String> = Vec::new();
    if !all.is_empty() {
        parts.push(all.join(" "));
    }
    parts.extend(d.partitions.iter().filter_map(on_part));
    if let Some(file) = &d.backing_file {
        parts.push(format!("over {}", clean(file)));
    }
    if !d.below.is_empty() {
        parts.push(format!("over {}", d.below.join(" ")));
    }
    if d.is_zoned() {
        parts.push(format!("zoned: {}", d.zoned.as_deref().unwrap_or_default()));
    }
    if d.read_only {
        parts.push("read-only".to_owned());
    }
    parts.join("; ")
}

fn row(d: &Device) -> Vec<Cell> {
    vec![
        painted(&d.name, NAME),
        or_dash(d.size_bytes.map(|b| units::bytes(b as f64))),
        d.description().into(),
        or_dash(d.model.clone().or_else(|| d.label.clone())),
        or_dash(d.serial.clone()),
        choice(d),
        queues(d),
        or_dash(d.nr_requests),
        wbt(d),
        or_dash(d.read_ahead_kb),
        or_dash(d.max_sectors_kb),
        or_dash(
            d.write_cache
                .as_deref()
                .map(|w| w.trim_start_matches("write ")),
        ),
        or_dash(d.nomerges),
        or_dash(d.rq_affinity),
    ]
}

/// Returns the table of devices. Unused loop devices and similar are only shown with `all`.
pub fn table(m: &Machine, all: bool, width: usize) -> String {
    let mut t = Table::new(&[
        ("device", Align::Left),
        ("size", Align::Right),
        ("what", Align::Left),
        ("model", Align::Left),
        ("serial", Align::Left),
        ("scheduler", Align::Left),
        ("queues", Align::Right),
        ("requests", Align::Right),
        ("wbt", Align::Right),
        ("ahead", Align::Right),
        ("max KiB", Align::Right),
        ("cache", Align::Left),
        ("nomerges", Align::Right),
        ("affinity", Align::Right),
    ]);
    let shown: Vec<&Device> = m.devices.iter().filter(|d| all || !d.idle()).collect();
    for d in &shown {
        t.row(row(d));
    }
    let mut text = String::new();
    if shown.is_empty() {
        text += "This machine has no block device that is in use.\n";
    } else {
        // The last column may be wrapped. The other columns must leave it a minimum width.
        let kept = t.without(GIVEN_UP, 0, width.saturating_sub(ON_IT));
        let on_it = shown.iter().map(|d| used(d).into()).collect();
        text += &kept.with("on it", on_it).render_within(0, width);
    }
    let head = text.lines().next().unwrap_or_default().to_owned();
    text.push('\n');
    let idle = m.devices.len() - shown.len();
    if idle > 0 {
        let s = if idle == 1 { "" } else { "s" };
        text += &wrap(
            &format!("{idle} empty device{s} (loop, RAM and similar) omitted; --all shows them."),
            0,
            width.min(100),
        );
    }
    let mut told: Vec<&str> = EXPLAINED
        .iter()
        .filter(|e| head.contains(&format!(" {} ", e.0)))
        .map(|e| e.1)
        .collect();
    if told.len() < EXPLAINED.len() {
        told.push("a wider terminal shows more");
    }
    text += &wrap(
        &format!(
            "{}. All columns: --json. Layers and schedulers under a file: seekwell host PATH.",
            told.join("; ")
        ),
        0,
        width.min(100),
    );
    text + &trouble(shown.into_iter(), width.min(100))
}

/// Explanations of columns with short names.
const EXPLAINED: &[(&str, &str)] = &[
    ("queues", "queues: hardware queues x commands on each"),
    ("requests", "requests: nr_requests"),
    ("ahead", "ahead: read-ahead, KiB"),
    ("cache", "cache: write back or through"),
];

/// Minimum width of the last column, in characters.
const ON_IT: usize = 22;

fn trouble<'a>(devices: impl Iterator<Item = &'a Device>, width: usize) -> String {
    let mut text = String::new();
    for d in devices {
        for what in &d.trouble {
            let line = wrap(&format!("! {}/{what}", d.name), 2, width);
            text += &format!("{WARN}{}{WARN:#}\n", line.trim_end());
        }
    }
    text
}

/// Returns the layers under a path, and how to change the scheduler there.
pub fn under(m: &Machine, u: &Under, width: usize) -> String {
    let mut text = format!("{HEAD}{}{HEAD:#}", u.asked);
    let path = clean(&u.path.to_string_lossy());
    if path != u.asked {
        text += &format!(" ({path})");
    }
    text += ": from the top down\n\n";
    let indent = |s: &seekwell_host::block::Step| "  ".repeat(s.depth.min(12) as usize);
    let name = |s: &seekwell_host::block::Step| format!("{}{}", indent(s), s.name);
    let mut t = Table::new(&[("", Align::Left), ("", Align::Left)]);
    for s in &u.steps {
        let style = match &s.acts {
            Acts::Chooses { .. } => GOOD,
            Acts::Unseen => BAD,
            _ if s.role == Role::Device => NAME,
            _ => DIM,
        };
        t.row(vec![painted(name(s), style), s.says.as_str().into()]);
    }
    text += &t.render_within(2, width);
    text.push('\n');
    text += &wrap(&u.verdict, 0, width);
    text += &advice(m, u, width);
    let seen = u.steps.iter().filter(|s| s.role == Role::Device);
    text + &trouble(seen.filter_map(|s| m.device(&s.name)), width)
}

/// Returns the command that changes the scheduler.
fn advice(m: &Machine, u: &Under, width: usize) -> String {
    let target = match (u.deciding.as_slice(), &u.device) {
        ([], _) => return String::new(),
        ([one], _) => one.clone(),
        (_, Some(device)) => format!("{device} SCHEDULER --all-members"),
        (..) => format!("{} SCHEDULER --all-members", u.path.display()),
    };
    let target = match target.contains(" SCHEDULER") {
        true => target,
        false => format!("{target} SCHEDULER"),
    };
    wrap(
        &format!(
            "To change the scheduler: {} {target}",
            typed_as(m.tree(), "seekwell", "switch")
        ),
        0,
        width,
    )
}
