//! What devices there are, and how a text becomes one.

use crate::constant::{Constant, DEFAULT_CAPACITY};
use crate::emmc::{self, Emmc, EmmcParams};
use crate::error::{DeviceError, ParamError};
use crate::hdd::{self, FastHdd, Hdd, HddParams};
use crate::preset::{Def, Dim, Preset, distance};
use crate::ssd::{self, CheapSsd, DetailedSsd, SsdParams};
use seekwell_core::{Device, Nanos, Sector};

type Opened = Box<dyn Device + Send>;

/// A kind of device: its parameters and how to build one.
struct Kind {
    name: &'static str,
    defs: &'static [Def],
    build: fn(&Preset, u64) -> Result<Opened, ParamError>,
    /// The preset taken when a specification names none (`constant:depth=4`).
    plain: Option<&'static str>,
}

static KINDS: &[Kind] = &[
    Kind {
        name: "constant",
        defs: CONSTANT,
        build: build_constant,
        plain: Some("constant"),
    },
    Kind {
        name: "hdd",
        defs: hdd::DEFS,
        build: build_hdd,
        plain: None,
    },
    Kind {
        name: "ssd",
        defs: ssd::DEFS,
        build: build_ssd,
        plain: None,
    },
    Kind {
        name: "emmc",
        defs: emmc::DEFS,
        build: build_emmc,
        plain: None,
    },
    Kind {
        name: "sd",
        defs: emmc::DEFS,
        build: build_emmc,
        plain: None,
    },
];

/// Every embedded preset: file name and text.
static FILES: &[(&str, &str)] = &[
    (
        "constant-constant.toml",
        include_str!("../../../devices/constant-constant.toml"),
    ),
    (
        "emmc-motog-sandisk8.toml",
        include_str!("../../../devices/emmc-motog-sandisk8.toml"),
    ),
    (
        "sd-samsung-evoplus32.toml",
        include_str!("../../../devices/sd-samsung-evoplus32.toml"),
    ),
    (
        "hdd-hitachi-7k200.toml",
        include_str!("../../../devices/hdd-hitachi-7k200.toml"),
    ),
    (
        "hdd-hitachi-7k500.toml",
        include_str!("../../../devices/hdd-hitachi-7k500.toml"),
    ),
    (
        "hdd-hitachi-t7k250.toml",
        include_str!("../../../devices/hdd-hitachi-t7k250.toml"),
    ),
    (
        "hdd-hus728t8.toml",
        include_str!("../../../devices/hdd-hus728t8.toml"),
    ),
    (
        "hdd-sata320-2006.toml",
        include_str!("../../../devices/hdd-sata320-2006.toml"),
    ),
    (
        "hdd-st2000dm006.toml",
        include_str!("../../../devices/hdd-st2000dm006.toml"),
    ),
    (
        "ssd-nvme-dc-2t.toml",
        include_str!("../../../devices/ssd-nvme-dc-2t.toml"),
    ),
    (
        "ssd-nvme-gen4-tlc-2t.toml",
        include_str!("../../../devices/ssd-nvme-gen4-tlc-2t.toml"),
    ),
    (
        "ssd-s3700-100.toml",
        include_str!("../../../devices/ssd-s3700-100.toml"),
    ),
    (
        "ssd-sata-tlc-1t.toml",
        include_str!("../../../devices/ssd-sata-tlc-1t.toml"),
    ),
    (
        "ssd-sata3-256-2011.toml",
        include_str!("../../../devices/ssd-sata3-256-2011.toml"),
    ),
    (
        "ssd-x25m-g2-160.toml",
        include_str!("../../../devices/ssd-x25m-g2-160.toml"),
    ),
];

static CONSTANT: &[Def] = &[
    Def::new(
        "depth",
        Dim::Count("commands"),
        Some("32"),
        (1.0, 65_536.0),
        "commands taken at a time",
    ),
    Def::new(
        "service_us",
        Dim::Real("us"),
        Some("100"),
        (0.0, 1e9),
        "time of a command",
    ),
    Def::new(
        "servers",
        Dim::Word(&["serial", "parallel"]),
        Some("serial"),
        (0.0, 0.0),
        "one server in order of acceptance, or one for each command",
    ),
    Def::new(
        "rotational",
        Dim::Flag,
        Some("no"),
        (0.0, 0.0),
        "reports a spinning medium",
    ),
    Def::new(
        "write_cache",
        Dim::Flag,
        Some("no"),
        (0.0, 0.0),
        "reports a volatile write cache",
    ),
    Def::new(
        "capacity",
        Dim::Count("sectors"),
        None,
        (1.0, 1e15),
        "sectors; absent: 2 TiB",
    ),
];

/// One device of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// As [`open`] takes it (`hdd:hitachi-7k200`).
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// One line.
    pub summary: String,
}

fn build_constant(p: &Preset, _seed: u64) -> Result<Opened, ParamError> {
    let depth = p.num("depth")? as u32;
    let service = Nanos(libm::round(p.num("service_us")? * 1e3) as u64);
    let device = match p.word("servers") {
        "parallel" => Constant::parallel(depth, service),
        _ => Constant::serial(depth, service),
    };
    let capacity = p
        .num_opt("capacity")
        .map_or(DEFAULT_CAPACITY, |n| Sector(n as u64));
    Ok(Box::new(
        device
            .capacity(capacity)
            .rotational(p.flag("rotational"))
            .write_cache(p.flag("write_cache")),
    ))
}

fn build_hdd(p: &Preset, seed: u64) -> Result<Opened, ParamError> {
    let params = HddParams::from_preset(p)?;
    Ok(match p.word("model") {
        "fast" => Box::new(FastHdd::new(&params, seed)?),
        _ => Box::new(Hdd::new(&params, seed)?),
    })
}

fn build_ssd(p: &Preset, seed: u64) -> Result<Opened, ParamError> {
    let params = SsdParams::from_preset(p)?;
    Ok(if params.detailed {
        Box::new(DetailedSsd::new(&params, seed)?)
    } else {
        Box::new(CheapSsd::new(&params, seed))
    })
}

fn build_emmc(p: &Preset, seed: u64) -> Result<Opened, ParamError> {
    Ok(Box::new(Emmc::new(&EmmcParams::from_preset(p)?, seed)))
}

fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|k| k.name == name)
}

/// Every embedded device, in the order of the registry.
pub fn catalogue() -> Vec<Entry> {
    let presets = FILES
        .iter()
        .filter_map(|(file, text)| parse(file, text).ok());
    presets
        .map(|p| Entry {
            name: format!("{}:{}", p.kind, p.name),
            aliases: p
                .aliases
                .iter()
                .map(|a| format!("{}:{a}", p.kind))
                .collect(),
            summary: p.summary,
        })
        .collect()
}

fn parse(file: &str, text: &str) -> Result<Preset, DeviceError> {
    let (named, line) = Preset::kind_of(file, text)?;
    let kind = kind(&named).ok_or_else(|| DeviceError::Preset {
        file: file.to_owned(),
        line,
        what: format!("unknown kind of device \"{named}\""),
        remedy: format!(
            "kinds are {}",
            names(KINDS.iter().map(|k| k.name.to_owned()))
        ),
    })?;
    Preset::parse(kind.name, kind.defs, file, text)
}

fn names(list: impl Iterator<Item = String>) -> String {
    list.collect::<Vec<_>>().join(", ")
}

/// Reads a preset from a file of the user's, or an embedded one by name, and applies the
/// overrides: `NAME[,key=value...]` or `PATH[,key=value...]`.
pub fn read_preset(spec: &str) -> Result<Preset, DeviceError> {
    let err = |what: String, remedy: String| DeviceError::Spec {
        spec: spec.to_owned(),
        what,
        remedy,
    };
    let (base, rest) = match spec.split_once(',') {
        Some((b, r)) => (b.trim(), r),
        None => (spec.trim(), ""),
    };
    let mut options: Vec<&str> = rest
        .split(',')
        .map(str::trim)
        .filter(|o| !o.is_empty())
        .collect();
    let mut preset = if base.ends_with(".toml") || base.contains('/') {
        let text = std::fs::read_to_string(base).map_err(|e| DeviceError::Read {
            path: base.to_owned(),
            what: e.to_string(),
        })?;
        parse(base, &text)?
    } else {
        let (k, name) = base.split_once(':').unwrap_or((base, ""));
        let kind = kind(k).ok_or_else(|| {
            let known = names(KINDS.iter().map(|k| k.name.to_owned()));
            err(
                format!("unknown kind of device \"{k}\""),
                format!("write KIND:NAME with one of: {known}; or the path of a preset file"),
            )
        })?;
        // `constant:depth=4`: an option where the name would be.
        let name = match kind.plain {
            Some(plain) if name.is_empty() || name.contains('=') => {
                if !name.is_empty() {
                    options.insert(0, name);
                }
                plain
            }
            _ => name,
        };
        embedded(kind, name).ok_or_else(|| {
            let all = FILES.iter().filter_map(|(f, t)| parse(f, t).ok());
            let known: Vec<String> = all
                .filter(|p| p.kind == kind.name)
                .map(|p| p.name)
                .collect();
            let near = known.iter().min_by_key(|k| distance(k, name));
            err(
                format!("there is no {k} called \"{name}\""),
                format!(
                    "nearest is {}:{}; `seekwell devices` lists all",
                    kind.name,
                    near.map_or("", |n| n)
                ),
            )
        })?
    };
    let defs = kind(preset.kind).map_or(&[][..], |k| k.defs);
    for option in options {
        let (key, text) = option.split_once('=').ok_or_else(|| {
            err(
                format!("\"{option}\" is no option"),
                "write key=value".into(),
            )
        })?;
        preset.set(defs, key.trim(), text.trim()).map_err(|what| {
            err(
                format!("option \"{option}\": {what}"),
                format!("`seekwell devices {base}` lists the parameters"),
            )
        })?;
    }
    Ok(preset)
}

fn embedded(kind: &Kind, name: &str) -> Option<Preset> {
    let presets = FILES
        .iter()
        .filter_map(|(file, text)| parse(file, text).ok());
    presets
        .into_iter()
        .find(|p| p.kind == kind.name && (p.name == name || p.aliases.iter().any(|a| a == name)))
}

/// Makes a device: `hdd:NAME[,key=value...]`, `constant:depth=32,service_us=100`, or the path of a
/// preset file with the same options. The same seed gives the same device.
pub fn open(spec: &str, seed: u64) -> Result<Opened, DeviceError> {
    let preset = read_preset(spec)?;
    let build = kind(preset.kind).map_or(build_hdd as fn(&Preset, u64) -> _, |k| k.build);
    build(&preset, seed).map_err(|e| preset.locate(e, spec))
}

/// The same for a hard disk of the full model, as its own type.
pub fn open_hdd(spec: &str, seed: u64) -> Result<Hdd, DeviceError> {
    let preset = read_preset(spec)?;
    if preset.kind != "hdd" {
        return Err(DeviceError::Spec {
            spec: spec.to_owned(),
            what: format!("it is a {}, not a hard disk", preset.kind),
            remedy: "name one of kind hdd".into(),
        });
    }
    HddParams::from_preset(&preset)
        .and_then(|p| Hdd::new(&p, seed))
        .map_err(|e| preset.locate(e, spec))
}

/// The parameters of a device with value, unit and source, overrides applied: what
/// `seekwell devices NAME` prints.
pub fn describe(spec: &str) -> Result<Preset, DeviceError> {
    read_preset(spec)
}
