//! The catalogue of devices, and the functions that make a device from a specification.

mod members;

use crate::cloud::{self, Cloud};
use crate::constant::{self, Constant, DEFAULT_CAPACITY};
use crate::controller::{self, Controller, ControllerParams};
use crate::embedded::BUILT_IN_FILES;
use crate::emmc::{self, Emmc, EmmcParams};
use crate::error::{DeviceError, ParamError};
use crate::hdd::{self, FastHdd, Hdd, HddParams};
use crate::preset::{Def, Preset, Source};
use crate::raid::{self, LeafOptions};
use crate::smr::{self, Smr, SmrParams};
use crate::ssd::{self, CheapSsd, DetailedSsd, SsdParams};
use crate::{files, guest, spec};
pub use members::open_member;
use seekwell_core::once::Once;
use seekwell_core::{Device, Nanos, OpenList, Sector};

/// A device of any kind.
pub type Opened = Box<dyn Device + Send>;

/// A kind of device: its parameters and how to build one.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Name of the kind: the part of a specification before the colon.
    pub name: &'static str,
    /// Parameters of the kind.
    pub defs: &'static [Def],
    /// Makes a device from a preset and a random seed.
    pub build: fn(&Preset, u64) -> Result<Opened, ParamError>,
    /// Preset that is used if the specification gives no preset name (as in `constant:depth=4`).
    pub plain: Option<&'static str>,
}

static KINDS: OpenList<Kind> = OpenList::new(BUILT_IN_KINDS);

const BUILT_IN_KINDS: &[Kind] = &[
    Kind {
        name: "constant",
        defs: constant::DEFS,
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
        name: "smr",
        defs: smr::DEFS,
        build: build_smr,
        plain: None,
    },
    Kind {
        name: "ssd",
        defs: ssd::DEFS,
        build: build_ssd,
        plain: None,
    },
    Kind {
        name: "ufs",
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
    Kind {
        name: "usb",
        defs: emmc::DEFS,
        build: build_emmc,
        plain: None,
    },
    Kind {
        name: "controller",
        defs: controller::DEFS,
        build: build_controller,
        plain: Some("plain"),
    },
    Kind {
        name: "cloud",
        defs: cloud::DEFS,
        build: |p, seed| Ok(Box::new(Cloud::new(p, seed)?)),
        plain: None,
    },
    Kind {
        name: "raid",
        defs: raid::DEFS,
        build: needs_queues,
        plain: Some("plain"),
    },
    Kind {
        name: "virtual",
        defs: guest::DEFS,
        build: needs_queues,
        plain: Some("plain"),
    },
];

/// All embedded presets, as pairs of file name and text.
static FILES: OpenList<(&str, &str)> = OpenList::new(BUILT_IN_FILES);

/// One device of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Specification that [`open`] accepts, for example `hdd:hitachi-7k200`.
    pub name: String,
    /// Other accepted names.
    pub aliases: Vec<String>,
    /// One-line description.
    pub summary: String,
}

/// Registers a kind of device that another crate implements, for the rest of the process.
///
/// # Errors
/// Returns an error if the name is already in use, or contains characters that a specification
/// cannot contain.
pub fn register_kind(kind: Kind) -> Result<(), DeviceError> {
    let name = kind.name;
    let refuse = |what: &str, remedy: &str| DeviceError::Spec {
        spec: name.to_owned(),
        what: what.to_owned(),
        remedy: remedy.to_owned(),
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(plain) {
        let remedy = "a name consists of lower-case letters, digits, `-` and `_`";
        return Err(refuse(
            "this is not a valid name for a kind of device",
            remedy,
        ));
    }
    KINDS.add(kind, |all| {
        let taken = all.iter().any(|k| k.name == name) || raid::LEVELS.contains(&name);
        match taken {
            true => Err(refuse(
                "the kind is registered already",
                "choose another name",
            )),
            false => Ok(()),
        }
    })
}

/// Registers the text of a preset file as an embedded preset, for the rest of the process. The name
/// of the preset is its kind, a colon and the name in the text. Error messages call the preset
/// `file`.
///
/// # Errors
/// Returns an error if the text is invalid or its name is already in use.
pub fn register_preset(file: &str, text: &str) -> Result<(), DeviceError> {
    let new = parse(file, text)?;
    // A registered preset lives until the process ends, so the memory may leak.
    let own = |t: &str| &*Box::leak(t.to_owned().into_boxed_str());
    FILES.add((own(file), own(text)), |all| {
        let presets = all.iter().filter_map(|(f, t)| parse(f, t).ok());
        let mut same_kind = presets.filter(|p| p.kind == new.kind);
        let names = |p: &Preset| {
            p.aliases
                .iter()
                .chain([&p.name])
                .cloned()
                .collect::<Vec<_>>()
        };
        let own = names(&new);
        match same_kind.any(|p| names(&p).iter().any(|n| own.contains(n))) {
            true => Err(DeviceError::Spec {
                spec: format!("{}:{}", new.kind, new.name),
                what: "a device of this name exists already".to_owned(),
                remedy: "choose another name".to_owned(),
            }),
            false => Ok(()),
        }
    })
}

/// Returns true if a device of this kind contains block queues with I/O schedulers. This crate
/// cannot build such a device. A crate that depends on this crate builds it.
pub fn over_queues(kind: &str) -> bool {
    matches!(kind, "raid" | "virtual")
}

fn needs_queues(p: &Preset, _seed: u64) -> Result<Opened, ParamError> {
    let key = if p.kind == "raid" { "of" } else { "over" };
    Err(ParamError::new(
        key,
        format!(
            "the device below a {} needs schedulers, which are not available here",
            p.kind
        ),
        "a controller's disks are bare devices: use `hdd:`, `ssd:` or `controller:`",
    ))
}

fn build_controller(p: &Preset, seed: u64) -> Result<Opened, ParamError> {
    let params = ControllerParams::from_preset(p)?;
    let options = LeafOptions {
        rpm_spread: p.num("rpm_spread")?,
        write_cache: Some(params.disk_cache),
    };
    let members = params.members.iter().enumerate().map(|(i, text)| {
        open_member(text, raid::member_seed(seed, i), options).map_err(|e| raid::of_member(e, "of"))
    });
    let members: Vec<Opened> = members.collect::<Result<_, _>>()?;
    let sizes: Vec<Sector> = members.iter().map(|m| m.facts().capacity).collect();
    raid::equal(&sizes)?;
    Ok(Box::new(Controller::new(params, members)?))
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
    mechanics(p, &HddParams::from_preset(p)?, seed)
}

fn mechanics(p: &Preset, params: &HddParams, seed: u64) -> Result<Opened, ParamError> {
    Ok(match p.word("model") {
        "fast" => Box::new(FastHdd::new(params, seed)?),
        _ => Box::new(Hdd::new(params, seed)?),
    })
}

fn build_smr(p: &Preset, seed: u64) -> Result<Opened, ParamError> {
    let own = SmrParams::from_preset(p)?;
    let params = HddParams {
        capacity: Smr::needed(&own),
        // The parameter of the same name decides when the host's writes complete.
        write_cache: true,
        ..HddParams::from_preset(p)?
    };
    let mechanics = mechanics(p, &params, seed)?;
    Ok(Box::new(Smr::new(own, mechanics, seed)))
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

/// Returns all kinds of devices: the built-in kinds first, then the registered kinds.
pub fn kinds() -> &'static [Kind] {
    KINDS.all()
}

fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.all().iter().find(|k| k.name == name)
}

/// Returns all embedded devices, in the order of registration.
pub fn catalogue() -> Vec<Entry> {
    presets()
        .into_iter()
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
            names(KINDS.all().iter().map(|k| k.name.to_owned()))
        ),
    })?;
    Preset::parse(kind.name, kind.defs, file, text)
}

fn names(list: impl Iterator<Item = String>) -> String {
    list.collect::<Vec<_>>().join(", ")
}

/// Reads a preset and applies the overrides. `text` is `NAME[,key=value...]` for an embedded preset
/// or `PATH[,key=value...]` for a preset file. Specifications of nested devices are in parentheses;
/// see [`crate::spec`].
pub fn read_preset(text: &str) -> Result<Preset, DeviceError> {
    let preset = read_one(text)?;
    check_nesting(&preset, text, &mut vec![place(&preset, text)])?;
    Ok(preset)
}

/// Returns the texts of all preset files that a device uses, directly or through other presets, by
/// path.
///
/// # Errors
/// Returns the same errors as [`read_preset`] for this device.
pub fn files_of(spec: &str) -> Result<files::Files, DeviceError> {
    let (read, seen) = files::recorded(|| read_preset(spec));
    read.map(|_| seen)
}

/// Returns a string that identifies a preset, to find cycles among nested devices.
fn place(p: &Preset, text: &str) -> String {
    match spec::split(text, ',').first() {
        Some(base) if is_path(base) => std::fs::canonicalize(base)
            .map_or_else(|_| (*base).to_owned(), |p| p.display().to_string()),
        _ => p.file.clone(),
    }
}

/// Maximum nesting depth of devices.
const NESTED: usize = 8;

/// Checks that every device inside the preset exists, and that no device contains itself.
fn check_nesting(p: &Preset, text: &str, around: &mut Vec<String>) -> Result<(), DeviceError> {
    for key in ["of", "over"] {
        let Some(param) = p.get(key) else { continue };
        for inner in spec::split(&param.value.to_string(), '+') {
            let inner = spec::bare(inner);
            if inner.is_empty() {
                continue;
            }
            let fault =
                |what: String, remedy: &str| p.locate(ParamError::new(key, what, remedy), text);
            let q = read_one(inner).map_err(|e| match param.source {
                Source::Override => e,
                _ => p.locate(raid::of_member(e, key), text),
            })?;
            let here = place(&q, inner);
            if is_path(spec::split(inner, ',')[0]) && around.contains(&here) {
                return Err(fault(
                    format!("`{key}`: the device contains itself ({inner})"),
                    "name another device",
                ));
            }
            if around.len() >= NESTED {
                return Err(fault(
                    format!("devices are nested more than {NESTED} levels deep"),
                    "use fewer levels",
                ));
            }
            around.push(here);
            check_nesting(&q, inner, around)?;
            around.pop();
        }
    }
    Ok(())
}

fn is_path(base: &str) -> bool {
    !base.contains('=') && (base.ends_with(".toml") || base.contains('/'))
}

fn read_one(text: &str) -> Result<Preset, DeviceError> {
    let err = |what: String, remedy: String| DeviceError::Spec {
        spec: text.to_owned(),
        what,
        remedy,
    };
    if !spec::balanced(text) {
        return Err(err(
            "the parentheses do not match".into(),
            "close every opened parenthesis".into(),
        ));
    }
    let mut options = spec::split(text, ',');
    let base = options.remove(0);
    options.retain(|o| !o.is_empty());
    let mut given = Once::default();
    let mut preset = if is_path(base) {
        parse(base, &files::text(base)?)?
    } else {
        let (mut k, mut name) = base.split_once(':').unwrap_or((base, ""));
        // For example `raid5:members=4`: the RAID level replaces the kind.
        let mut level = String::new();
        if raid::LEVELS.contains(&k) {
            level = format!("level={k}");
            k = "raid";
        }
        // For example `hitachi-7k200`: a preset name without a kind is enough if only one kind has
        // it.
        if !base.contains(':')
            && kind(k).is_none()
            && let Some(p) = crate::names::unique(&presets(), base)
        {
            (k, name) = (p.kind, base);
        }
        let kind = kind(k).ok_or_else(|| {
            let kinds = KINDS.all().iter().map(|k| k.name.to_owned());
            let known = names(kinds.chain(raid::LEVELS.iter().map(|l| (*l).to_owned())));
            if name.is_empty() {
                let remedy = crate::names::instead(&presets(), k, &known);
                return err(format!("no device is called \"{k}\""), remedy);
            }
            let remedy = crate::names::instead_of_kind(&presets(), k, name);
            let kinds = format!("kinds are {known}");
            err(
                format!("unknown kind of device \"{k}\""),
                remedy.unwrap_or(kinds),
            )
        })?;
        // For example `constant:depth=4`: the first option replaces the preset name.
        let name = match kind.plain {
            Some(plain) if name.is_empty() || name.contains('=') => {
                if !name.is_empty() {
                    options.insert(0, name);
                }
                plain
            }
            _ => name,
        };
        let mut preset = embedded(kind, name).ok_or_else(|| {
            let what = match name {
                "" => format!("{k} is a kind of device"),
                _ => format!("no {k} is called \"{name}\""),
            };
            let remedy = crate::names::instead_of_kind(&presets(), kind.name, name);
            let lister = || "`seekwell devices` lists all".to_owned();
            err(what, remedy.unwrap_or_else(lister))
        })?;
        set(&mut preset, &level, text, base, &mut given)?;
        preset
    };
    for option in options {
        set(&mut preset, option, text, base, &mut given)?;
    }
    Ok(preset)
}

/// Applies one override `key=value`. An empty text changes nothing.
fn set(
    preset: &mut Preset,
    option: &str,
    text: &str,
    base: &str,
    given: &mut Once,
) -> Result<(), DeviceError> {
    if option.is_empty() {
        return Ok(());
    }
    let err = |what: String, remedy: String| DeviceError::Spec {
        spec: text.to_owned(),
        what,
        remedy,
    };
    let (key, value) = option.split_once('=').ok_or_else(|| {
        err(
            format!("\"{option}\" is not an option"),
            "write key=value".into(),
        )
    })?;
    let once = given.take(key.trim(), option);
    once.map_err(|what| err(what, "an option can be given only once".into()))?;
    let defs = defs(preset.kind);
    preset.set(defs, key.trim(), value.trim()).map_err(|what| {
        let base = if base.contains('=') {
            preset.kind
        } else {
            base
        };
        err(
            format!("option \"{option}\": {what}"),
            format!("`seekwell devices {base}` lists the parameters"),
        )
    })
}

/// Returns the parameters of a kind.
pub(crate) fn defs(name: &str) -> &'static [Def] {
    kind(name).map_or(&[], |k| k.defs)
}

/// Returns all embedded presets.
fn presets() -> Vec<Preset> {
    let all = FILES.all().iter();
    all.filter_map(|(file, text)| parse(file, text).ok())
        .collect()
}

fn embedded(kind: &Kind, name: &str) -> Option<Preset> {
    let meant =
        |p: &Preset| p.kind == kind.name && (p.name == name || p.aliases.iter().any(|a| a == name));
    // Try the file with that name first. Parsing all files takes milliseconds, and every run calls
    // this function.
    let own = format!("{}-{name}.toml", kind.name);
    let file = FILES.all().iter().find(|f| f.0 == own);
    let own = file.and_then(|(file, text)| parse(file, text).ok());
    own.filter(meant)
        .or_else(|| presets().into_iter().find(meant))
}

/// Makes a device from a specification: `hdd:NAME[,key=value...]`,
/// `constant:depth=32,service_us=100`, or the path of a preset file with the same options. The same
/// seed gives the same device. Returns an error for a device that contains block queues
/// ([`over_queues`]), because this crate cannot build such a device.
pub fn open(text: &str, seed: u64) -> Result<Opened, DeviceError> {
    build(&read_preset(text)?, text, seed)
}

/// Makes the device that a preset describes. `text` is its specification.
pub(crate) fn build(preset: &Preset, text: &str, seed: u64) -> Result<Opened, DeviceError> {
    let build = kind(preset.kind).map_or(build_hdd as fn(&Preset, u64) -> _, |k| k.build);
    build(preset, seed).map_err(|e| preset.locate(e, text))
}

/// Makes a hard disk of the full model and returns its concrete type.
pub fn open_hdd(spec: &str, seed: u64) -> Result<Hdd, DeviceError> {
    let preset = read_preset(spec)?;
    if preset.kind != "hdd" {
        return Err(DeviceError::Spec {
            spec: spec.to_owned(),
            what: format!("the device is a {}, not a hard disk", preset.kind),
            remedy: "use a device of kind `hdd`".into(),
        });
    }
    HddParams::from_preset(&preset)
        .and_then(|p| Hdd::new(&p, seed))
        .map_err(|e| preset.locate(e, spec))
}

/// Returns the parameters of a device with value, unit and source after the overrides. `seekwell
/// devices NAME` prints them.
pub fn describe(spec: &str) -> Result<Preset, DeviceError> {
    let mut preset = read_preset(spec)?;
    if matches!(preset.kind, "ssd" | "ufs") {
        ssd::state_scale(&mut preset);
    }
    Ok(preset)
}
