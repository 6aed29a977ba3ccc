//! Parses schedulers with tunables: `NAME[-VERSION][:TUNABLE=VALUE]...`, and lists of them. Also
//! parses `[SCHEDULER.]TUNABLE=VALUE`, which applies to all schedulers that have the tunable.

use super::kernel::{HERE, Kernel, kernel};
use super::{SchedulerSpec, SpecErrors};
use seekwell_core::once::{Once, twice};
use seekwell_core::prose::in_prose;
use seekwell_core::suggest;
use seekwell_sched::kernels::{self, Release};
use seekwell_sched::{
    Kind, Layer, Tunable, WBT_LAT_USEC, registry, unknown_scheduler, unknown_tunable,
};

/// A scheduler of the registry, in one of its versions.
pub use seekwell_sched::Named as Found;

fn tunables(of: &Found) -> &'static [Tunable] {
    (of.info.tunables)(of.version)
}

/// Returns the scheduler's own tunables, and the queue attributes that can be set like tunables.
fn settings(of: &Found) -> impl Iterator<Item = &'static Tunable> + use<> {
    let queue = of.era.is_mq().then_some(&WBT_LAT_USEC);
    tunables(of).iter().chain(queue)
}

/// A scheduler of a list, with its settings as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The text as typed, for tables.
    pub text: String,
    /// The parsed specification.
    pub spec: SchedulerSpec,
    /// The kernel release, if the text names a release instead of a version.
    pub release: Option<Release>,
}

/// Finds `NAME`, `NAME-VERSION`, `NAME-RELEASE`, or `NAME-here` for the running kernel.
///
/// # Errors
/// For an unknown version, the error lists the versions. For an unknown name, it lists the names.
pub fn named(name: &str) -> Result<Found, SpecErrors> {
    let here = name.strip_suffix(HERE).filter(|n| n.ends_with('-'));
    if let Some(n) = here {
        return named(&format!("{n}{}", kernel(HERE)?.release));
    }
    if let Some(found) = seekwell_sched::named(name) {
        return Ok(found);
    }
    let remedy = unknown_scheduler(name);
    let what = format!("no scheduler is called \"{name}\"; {remedy}");
    Err(SpecErrors::single("", what))
}

/// Returns the value of a tunable in the form for sysfs. The value is checked and numbers are
/// normalised.
fn value(of: &Found, t: &Tunable, text: &str) -> Result<String, SpecErrors> {
    let text = text.trim();
    t.validate(text).map_err(|e| {
        let what = format!(
            "{e}; `seekwell schedulers {}` shows its range",
            of.info.name
        );
        SpecErrors::single("", what)
    })?;
    Ok(match (t.kind, text.parse::<i128>()) {
        (Kind::Text | Kind::ReadOnly, _) | (_, Err(_)) => text.to_owned(),
        (_, Ok(n)) => n.to_string(),
    })
}

/// Checks the value of a tunable.
///
/// # Errors
/// Returns an error if the scheduler has no such tunable, or if the value is out of range.
pub fn tunable(of: &Found, name: &str, text: &str) -> Result<String, SpecErrors> {
    let all = tunables(of);
    match settings(of).find(|t| t.name == name) {
        Some(t) => value(of, t, text),
        None => {
            let (who, remedy) = (in_prose(of.info.name), unknown_tunable(name, all));
            let what = format!("{who} has no tunable \"{name}\"; {remedy}");
            Err(SpecErrors::single("", what))
        }
    }
}

/// Returns a scheduler with all defaults filled in.
///
/// # Errors
/// Returns all faults of the name, the version and the tunables.
pub fn checked(spec: &SchedulerSpec) -> Result<(Found, SchedulerSpec), SpecErrors> {
    let mut errors = SpecErrors::default();
    let Some(found) = errors.take("name", named(&spec.versioned())) else {
        return Err(errors);
    };
    let mut whole = SchedulerSpec {
        name: found.info.name.to_owned(),
        version: Some(found.stated()),
        ..SchedulerSpec::default()
    };
    for (name, text) in &spec.tunables {
        if let Some(value) = errors.take(&format!("tunables.{name}"), tunable(&found, name, text)) {
            whole.tunables.insert(name.clone(), value);
        }
    }
    // The value that is written last would be used, so the result would depend on the order. Such
    // duplicates are rejected.
    for name in whole.tunables.keys() {
        let other = name.strip_suffix("_us").unwrap_or_default();
        if whole.tunables.contains_key(other) {
            let what =
                format!("{other} and {name} are the same value in two units: set one of them");
            errors.push(format!("tunables.{name}"), what);
        }
    }
    errors.or((found, whole))
}

/// Parses `NAME=VALUE` or `SCHEDULER.NAME=VALUE`.
///
/// # Errors
/// Returns an error if there is no `=`, if the scheduler has no such tunable, or if the value is
/// out of range.
pub fn assignment(of: &Found, text: &str) -> Result<(String, String), SpecErrors> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(SpecErrors::single(
            "",
            format!("tunable \"{text}\": write NAME=VALUE, for instance fifo_batch=1"),
        ));
    };
    let name = name.trim();
    let own = name.strip_prefix(of.info.name);
    let name = own.and_then(|n| n.strip_prefix('.')).unwrap_or(name);
    Ok((name.to_owned(), tunable(of, name, value)?))
}

/// Parses one scheduler: `NAME[-VERSION][:TUNABLE=VALUE]...`.
///
/// # Errors
/// Returns all faults.
pub fn typed(text: &str) -> Result<Typed, SpecErrors> {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default().trim();
    let found = named(name)?;
    let (mut errors, mut once) = (SpecErrors::default(), Once::default());
    let mut spec = SchedulerSpec {
        name: found.info.name.to_owned(),
        version: Some(found.stated()),
        ..SchedulerSpec::default()
    };
    for part in parts {
        if let Some((name, value)) = errors.take("", assignment(&found, part)) {
            if let Err(what) = once.take(&name, part) {
                errors.push("", format!("{text}: {what}"));
            }
            spec.tunables.insert(name, value);
        }
    }
    errors.or(Typed {
        text: text.trim().to_owned(),
        spec,
        release: found.release,
    })
}

/// Gives a scheduler the version that belongs to a kernel.
fn put_in(t: &mut Typed, k: &Kernel) -> Result<(), SpecErrors> {
    let bad = |what: String| SpecErrors::single("", what);
    let (word, found) = (
        t.text.split(':').next().unwrap_or_default(),
        named(&t.spec.versioned())?,
    );
    let m = kernels::modelled(found.info, k.release).map_err(bad)?;
    if word != found.info.name {
        // The text names a version. It must belong to that kernel. A version that belongs to no
        // kernel must at least use the same layer.
        let own = kernels::in_tree(found.info.name);
        let same = found.era == m.era && (found.version == m.version || !own);
        return match same {
            true => Ok(()),
            false => Err(bad(format!(
                "{word} belongs to kernel {}, but the requested kernel is {}: leave one of them \
                 out",
                found.era.name(),
                k.asked
            ))),
        };
    }
    let whole = named(&format!("{}-{}", found.info.name, k.release))?;
    (t.spec.version, t.release) = (Some(whole.stated()), whole.release);
    Ok(())
}

/// Parses a comma-separated list of `all`, `single-queue`, `blk-mq`, and schedulers in the syntax
/// of [`typed`].
///
/// # Errors
/// Returns all faults.
pub fn list(text: &str) -> Result<Vec<Typed>, SpecErrors> {
    list_in(text, None)
}

/// Parses a list as [`list`] does. If a kernel is given, the schedulers get the versions of that
/// kernel.
///
/// # Errors
/// Returns all faults. A scheduler that the kernel does not contain is a fault.
pub fn list_in(text: &str, kernel: Option<&Kernel>) -> Result<Vec<Typed>, SpecErrors> {
    let mut errors = SpecErrors::default();
    let mut out: Vec<Typed> = Vec::new();
    let mut any = false;
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        any = true;
        let of = |layer: Option<Layer>| {
            let all = registry()
                .iter()
                .filter(|s| layer.is_none_or(|l| s.layer == l))
                .filter(|s| kernel.is_none_or(|k| kernels::modelled(s, k.release).is_ok()));
            all.map(|s| s.name).collect()
        };
        let names: Vec<&str> = match part {
            "all" => of(None),
            "single-queue" => of(Some(Layer::Legacy)),
            "blk-mq" => of(Some(Layer::Mq)),
            one => vec![one],
        };
        if let Some(k) = kernel.filter(|_| names.is_empty()) {
            errors.push(
                "",
                format!(
                    "{part}: kernel {} contains none of these schedulers",
                    k.asked
                ),
            );
        }
        for name in names {
            if out.iter().all(|t| t.text != name) {
                let one = typed(name).and_then(|mut t| {
                    kernel.map_or(Ok(()), |k| put_in(&mut t, k))?;
                    Ok(t)
                });
                out.extend(errors.take("", one));
            }
        }
    }
    if !any {
        errors.push("", "no scheduler is named: name at least one, or all");
    }
    errors.or(out)
}

/// Applies `[SCHEDULER.]NAME=VALUE` to every scheduler of the list that it matches.
///
/// # Errors
/// Returns an error if the value is out of range, or if no scheduler has this tunable.
pub fn spread(text: &str, all: &mut [Typed]) -> Result<(), SpecErrors> {
    let (left, right) = match text.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value)),
        None => (text.trim(), None),
    };
    let (whose, name) = match left.rsplit_once('.') {
        Some((s, n)) => (Some(s), n),
        None => (None, left),
    };
    let bare = right.map_or(name.to_owned(), |v| format!("{name}={v}"));
    let mut taken = false;
    for t in all.iter_mut() {
        let found = named(&t.spec.versioned())?;
        let as_typed = t.text.split(':').next().unwrap_or_default();
        let meant = match whose {
            Some(s) => s == as_typed || s == found.info.name || s == t.spec.versioned(),
            None => settings(&found).any(|x| x.name == name),
        };
        if meant {
            let (name, value) = assignment(&found, &bare)?;
            if let Some(before) = t.spec.tunables.get(&name) {
                let before = format!("{name}={before}");
                let what = twice(&name, &before, &format!("{name}={value}"));
                return Err(SpecErrors::single("", format!("{}: {what}", t.text)));
            }
            t.spec.tunables.insert(name, value);
            taken = true;
        }
    }
    match (taken, whose) {
        (true, _) => Ok(()),
        (false, Some(s)) => Err(SpecErrors::single(
            "",
            format!("{s} is not among the schedulers to run"),
        )),
        (false, None) => {
            let known: Vec<&str> = all
                .iter()
                .filter_map(|t| named(&t.spec.versioned()).ok())
                .flat_map(|f| settings(&f).map(|t| t.name))
                .collect();
            let question = suggest::did_you_mean(name, known, &[]);
            let question = question.map_or(String::new(), |q| format!("{q} "));
            Err(SpecErrors::single(
                "",
                format!(
                    "none of the schedulers has a tunable \"{name}\"; {question}`seekwell \
                     schedulers NAME` lists them"
                ),
            ))
        }
    }
}
