//! From what people type to what there is: schedulers and tunables by name, with a remedy.

use crate::fail::Failure;
use seekwell_sched::{SchedulerInfo, find, registry};

/// A scheduler that was asked for.
#[derive(Clone, Copy)]
pub struct Chosen {
    /// Its line in the registry.
    pub info: &'static SchedulerInfo,
    /// One of its versions.
    pub version: &'static str,
}

/// Finds `NAME` or `NAME-VERSION`.
pub fn scheduler(name: &str) -> Result<Chosen, Failure> {
    if let Some((info, version, _)) = find(name) {
        return Ok(Chosen { info, version });
    }
    // A known name with an unknown version gets the versions, anything else the names.
    let family = registry().iter().filter(|s| name.starts_with(s.name));
    if let Some(s) = family.max_by_key(|s| s.name.len())
        && name[s.name.len()..].starts_with('-')
    {
        let known: Vec<_> = s.versions.iter().map(|v| v.0).collect();
        let (version, known) = (&name[s.name.len() + 1..], known.join(", "));
        return Err(Failure::input(format!(
            "{} has no version `{version}`; it has {known}",
            s.name
        )));
    }
    let known: Vec<_> = registry().iter().map(|s| s.name).collect();
    Err(Failure::input(format!(
        "no scheduler is called `{name}`; there are {}",
        known.join(", ")
    )))
}

/// `NAME=VALUE` for one scheduler, checked against its tunables.
pub fn tunable(chosen: &Chosen, text: &str) -> Result<(String, String), Failure> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(Failure::input(format!(
            "tunable `{text}`: write NAME=VALUE, for instance fifo_batch=1"
        )));
    };
    let (name, value) = (name.trim(), value.trim());
    let name = name
        .strip_prefix(chosen.info.name)
        .and_then(|n| n.strip_prefix('.'))
        .unwrap_or(name);
    let all = (chosen.info.tunables)(chosen.version);
    let Some(t) = all.iter().find(|t| t.name == name) else {
        let known: Vec<_> = all.iter().map(|t| t.name).collect();
        let known = match known.is_empty() {
            true => "it has none".to_owned(),
            false => format!("it has {}", known.join(", ")),
        };
        return Err(Failure::input(format!(
            "{} has no tunable `{name}`; {known}",
            chosen.info.name
        )));
    };
    t.validate(value).map_err(|e| {
        Failure::input(format!(
            "{e}; `seekwell schedulers {}` tells its range",
            chosen.info.name
        ))
    })?;
    Ok((name.to_owned(), value.to_owned()))
}
