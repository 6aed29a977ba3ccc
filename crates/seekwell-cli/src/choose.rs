//! From what people type to what there is: schedulers and tunables by name, with a remedy.

use crate::fail::Failure;
use seekwell_sched::{SchedulerInfo, find};

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
    let remedy = seekwell_sched::unknown_scheduler(name);
    Err(Failure::input(format!(
        "no scheduler is called `{name}`; {remedy}"
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
        return Err(Failure::input(format!(
            "{} has no tunable `{name}`; {}",
            chosen.info.name,
            seekwell_sched::unknown_tunable(name, all)
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
