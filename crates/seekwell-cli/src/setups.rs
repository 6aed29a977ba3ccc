//! From options to setups: devices x schedulers, tunables where they belong.

use crate::choose;
use crate::cli::Bench;
use crate::fail::Failure;
use seekwell_core::suggest;
use seekwell_sched::{Layer, find, registry};
use seekwell_sim::Setup;
use std::path::Path;

/// What runs on what when nothing is said.
pub struct Usual {
    /// Devices.
    pub devices: &'static [&'static str],
    /// Schedulers.
    pub schedulers: &'static str,
}

/// For `run` and `replay`: one disk, the schedulers people argue about.
pub const USUAL: Usual = Usual {
    devices: &["hdd:hitachi-7k200"],
    schedulers: "noop,deadline,cfq,none,mq-deadline,kyber,bfq",
};

impl Usual {
    /// Devices asked for, or these.
    pub fn devices(&self, b: &Bench) -> Vec<String> {
        if b.device.is_empty() {
            self.devices.iter().map(|d| (*d).to_owned()).collect()
        } else {
            b.device.clone()
        }
    }
    /// Schedulers asked for, or these.
    pub fn schedulers<'a>(&self, b: &'a Bench) -> &'a str {
        b.schedulers.as_deref().unwrap_or(self.schedulers)
    }
}

/// A scheduler as typed: `NAME[-VERSION][:TUNABLE=VALUE]...`.
struct Typed {
    text: String,
    scheduler: String,
    tunables: Vec<(String, String)>,
}

fn typed(text: &str) -> Result<Typed, Failure> {
    let mut parts = text.split(':');
    let scheduler = parts.next().unwrap_or_default().trim().to_owned();
    let chosen = choose::scheduler(&scheduler)?;
    let tunables = parts.map(|t| choose::tunable(&chosen, t));
    Ok(Typed {
        text: text.trim().to_owned(),
        scheduler,
        tunables: tunables.collect::<Result<_, _>>()?,
    })
}

/// `all`, `single-queue`, `blk-mq`, or names.
fn schedulers(list: &str) -> Result<Vec<Typed>, Failure> {
    let mut out: Vec<Typed> = Vec::new();
    for part in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let of = |layer: Option<Layer>| {
            let all = registry()
                .iter()
                .filter(|s| layer.is_none_or(|l| s.layer == l));
            all.map(|s| s.name.to_owned()).collect()
        };
        let names: Vec<String> = match part {
            "all" => of(None),
            "single-queue" => of(Some(Layer::Legacy)),
            "blk-mq" => of(Some(Layer::Mq)),
            one => vec![one.to_owned()],
        };
        for name in names {
            if out.iter().all(|t| t.text != name) {
                out.push(typed(&name)?);
            }
        }
    }
    if out.is_empty() {
        return Err(Failure::input("--schedulers: name at least one, or all"));
    }
    Ok(out)
}

/// Gives `[SCHEDULER.]NAME=VALUE` to every scheduler it means.
fn spread(text: &str, all: &mut [Typed]) -> Result<(), Failure> {
    let name = text.split('=').next().unwrap_or_default().trim();
    let (whose, name) = match name.rsplit_once('.') {
        Some((s, n)) => (Some(s), n),
        None => (None, name),
    };
    let bare = text
        .split_once('=')
        .map_or(name.to_owned(), |(_, v)| format!("{name}={v}"));
    let (mut taken, mut all_names) = (false, Vec::new());
    for t in all.iter_mut() {
        let chosen = choose::scheduler(&t.scheduler)?;
        all_names.extend(
            (chosen.info.tunables)(chosen.version)
                .iter()
                .map(|t| t.name),
        );
        let meant = match whose {
            Some(s) => s == t.scheduler || s == chosen.info.name,
            None => (chosen.info.tunables)(chosen.version)
                .iter()
                .any(|x| x.name == name),
        };
        if meant {
            t.tunables.push(choose::tunable(&chosen, &bare)?);
            taken = true;
        }
    }
    match (taken, whose) {
        (true, _) => Ok(()),
        (false, Some(s)) => Err(Failure::input(format!(
            "--tunable {text}: {s} is not among the schedulers to run"
        ))),
        (false, None) => {
            let question = suggest::did_you_mean(name, all_names, &[]);
            let question = question.map_or(String::new(), |q| format!("{q} "));
            Err(Failure::input(format!(
                "--tunable {text}: none of the schedulers has a tunable `{name}`; {question}\
                 `seekwell schedulers NAME` lists them"
            )))
        }
    }
}

/// Every device with every scheduler; grouped by device.
pub fn of(b: &Bench, usual: &Usual) -> Result<Vec<Vec<Setup>>, Failure> {
    let mut typed = schedulers(usual.schedulers(b))?;
    for t in &b.tunable {
        spread(t, &mut typed)?;
    }
    let setup = |device: &String, t: &Typed| Setup {
        device: device.clone(),
        scheduler: t.scheduler.clone(),
        tunables: t.tunables.clone(),
        hz: b.hz,
        seed: b.seed,
        nr_requests: b.nr_requests,
        depth: b.depth,
        max_sectors_kb: b.max_sectors_kb,
        max_segments: None,
        nomerges: b.nomerges,
        ..Setup::default()
    };
    let mut groups = Vec::new();
    for device in &usual.devices(b) {
        seekwell_device::describe(device).map_err(|e| Failure::input(e.to_string()))?;
        let mut group: Vec<Setup> = typed.iter().map(|t| setup(device, t)).collect();
        for s in &group {
            s.validate().map_err(|e| Failure::input(e.to_string()))?;
        }
        Setup::align_requests(&mut group).map_err(|e| Failure::input(e.to_string()))?;
        groups.push(group);
    }
    Ok(groups)
}

/// What to know where a scheduler that was named without its version is of another time than the
/// device it was put on. Nothing where either was not chosen, or both versions run.
pub fn time_notes(b: &Bench, groups: &[Vec<Setup>]) -> Vec<String> {
    let typed = b.schedulers.as_deref().filter(|_| !b.device.is_empty());
    let Some(typed) = typed else {
        return Vec::new();
    };
    // `all` and the names of layers ask for no version of any.
    let parts = typed.split(',');
    let named: Vec<&str> = parts
        .map(|p| p.split(':').next().unwrap_or(p).trim())
        .collect();
    let mut notes = Vec::new();
    for group in groups {
        for s in group.iter().filter(|s| named.contains(&&*s.scheduler)) {
            // By whatever name: bfq-sq is bfq-v7r8.
            let runs = |then: &str| {
                let meant = find(then).map(|f| (f.0.name, f.1));
                let of = |o: &Setup| find(&o.scheduler).map(|f| (f.0.name, f.1));
                group.iter().any(|o| of(o) == meant)
            };
            let noted = s.time_note().filter(|(then, _)| !runs(then));
            notes.extend(noted.map(|n| n.1));
        }
    }
    notes
}

/// How each scheduler was typed, in the order of a group of [`of`].
pub fn labels(b: &Bench, usual: &Usual) -> Result<Vec<String>, Failure> {
    Ok(schedulers(usual.schedulers(b))?
        .into_iter()
        .map(|t| t.text)
        .collect())
}

/// The preset file that a device is, if it is one: what `-d` takes for a path.
pub fn preset_file(device: &str) -> Option<&Path> {
    let base = device.split(',').next()?;
    let path = !base.contains('=') && (base.ends_with(".toml") || base.contains('/'));
    path.then_some(Path::new(base))
}

/// The preset files among the devices asked for.
pub fn files(b: &Bench) -> impl Iterator<Item = &Path> {
    b.device.iter().filter_map(|d| preset_file(d))
}

/// Says what memory the devices take, or refuses to begin. Before [`of`], which opens some.
pub fn memory(b: &Bench, usual: &Usual, quiet: bool) -> Result<(), Failure> {
    let devices = usual.devices(b);
    let runs = devices.len() * schedulers(usual.schedulers(b))?.len();
    let devices = devices.iter().map(String::as_str);
    crate::memory::check(devices, threads(b).min(runs), b.force_memory, quiet)
}

/// Threads to use.
pub fn threads(b: &Bench) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    b.threads.map_or(cores, |n| n as usize)
}
