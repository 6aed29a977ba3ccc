//! The list of workloads: what `seekwell workloads` documents and `seekwell run` finds.
//!
//! A script from outside the tree joins it while the program runs ([`register`]). It is written
//! once for any machine as those in the tree are, and registered for each kind of machine it is to
//! run on, for a type that is not known here cannot be made for it later.

use crate::fail::{Fail, Outcome};
use crate::machine::Machine;
use crate::params::{Param, ParamError, Params, Profile};
use crate::scripts;
use seekwell_core::{Errno, OpenList, suggest};
use std::any::{Any, TypeId};
use std::future::Future;
use std::pin::Pin;
use thiserror::Error;

/// What a workload runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// A directory of a file system; it makes its own directory there and removes it.
    Directory,
    /// The raw device, read only.
    Device,
}

/// A workload: what it is, and what can be set.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// As it is asked for.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What the original prints, with unit and direction.
    pub metric: &'static str,
    /// What part of the machine it stresses, and how.
    pub stresses: &'static str,
    /// The original: program, version, published profile.
    pub source: &'static str,
    /// All parameters with the original's defaults.
    pub params: &'static [Param],
    /// Published sets of parameters.
    pub profiles: &'static [Profile],
    /// On what it runs.
    pub needs: Needs,
    /// Bytes its files hold at most, roughly.
    pub space: fn(&Params) -> u64,
    /// Values that do not go together: why, and the remedy.
    pub check: fn(&Params) -> Result<(), String>,
}

/// For [`Workload::check`] where any values go together.
pub(crate) fn any(_: &Params) -> Result<(), String> {
    Ok(())
}

macro_rules! registry {
    ($($module:ident)*) => {
        const BUILT_IN: &[&Workload] = &[$(&scripts::$module::WORKLOAD),*];

        /// Runs the script of a workload in its directory.
        pub(crate) async fn run<M: Machine>(
            w: &Workload,
            m: &mut M,
            p: &Params,
            dir: &str,
        ) -> Outcome {
            // Boxed, or the future would hold the largest script's state in every run.
            $(if w.name == scripts::$module::WORKLOAD.name {
                return Box::pin(scripts::$module::run(m, p, dir)).await;
            })*
            match outside::<M>(w) {
                Some(script) => script(m, p, dir).await,
                None => Err(Fail {
                    what: format!("run {}: it was not registered for this machine", w.name),
                    errno: Errno::EOPNOTSUPP,
                }),
            }
        }
    };
}

registry! {
    fs_mark blogbench compilebench iozone tiobench postmark pgbench innodb sqlite androbench_io mysql_scan
    hdparm seeker random_read web compile app_start interactive streams fsync_latency
}

static ALL: OpenList<&Workload> = OpenList::new(BUILT_IN);
static OUTSIDE: OpenList<&Script> = OpenList::new(&[]);

/// All workloads, in the order of the documentation; behind those of the tree the registered ones.
pub fn workloads() -> &'static [&'static Workload] {
    ALL.all()
}

/// A script for machines of one kind.
pub type ScriptFn<M> =
    for<'a> fn(&'a mut M, &'a Params, &'a str) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// A workload from outside the tree: what it is, and its script for each kind of machine.
pub struct Script {
    workload: &'static Workload,
    /// By machine: a [`ScriptFn`] of it.
    machines: Vec<(TypeId, Box<dyn Any + Send + Sync>)>,
}

impl Script {
    /// Of a workload, for no machine yet.
    pub fn new(workload: &'static Workload) -> Self {
        Script {
            workload,
            machines: Vec::new(),
        }
    }
    /// Also for machines of this kind: `.on::<SimMachine>(|m, p, dir| Box::pin(run(m, p, dir)))`.
    #[must_use]
    pub fn on<M: Machine>(mut self, script: ScriptFn<M>) -> Self {
        self.machines.push((TypeId::of::<M>(), Box::new(script)));
        self
    }
}

fn outside<M: Machine>(w: &Workload) -> Option<ScriptFn<M>> {
    let script = OUTSIDE.all().iter().find(|s| s.workload.name == w.name)?;
    let machines = &script.machines;
    let own = machines.iter().find(|m| m.0 == TypeId::of::<M>())?;
    own.1.downcast_ref::<ScriptFn<M>>().copied()
}

/// Why a workload was not registered.
#[derive(Error, Debug, Clone, PartialEq, Eq)]
pub enum RegisterError {
    /// A name that the notations of the command line could not take apart.
    #[error("workload `{0}`: a name has small letters, digits, `-` and `_`, and is not fio")]
    Name(String),
    /// Somebody has that name already.
    #[error("workload `{0}` is registered already: choose another name")]
    Taken(String),
    /// A default or a profile that its own table of parameters refuses.
    #[error("workload `{0}`: {1}")]
    Params(String, ParamError),
    /// A script for no machine runs nowhere.
    #[error("workload `{0}` is for no machine: add one with `on`")]
    Nowhere(String),
}

/// Adds a workload from outside the tree, for the rest of the process.
///
/// # Errors
/// A name that is taken or cannot be typed, defaults out of their ranges, no machine.
pub fn register(script: Script) -> Result<(), RegisterError> {
    let w = script.workload;
    let name = || w.name.to_owned();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if w.name.is_empty() || !w.name.chars().all(plain) || w.name == "fio" {
        return Err(RegisterError::Name(name()));
    }
    if script.machines.is_empty() {
        return Err(RegisterError::Nowhere(name()));
    }
    let profile = |p: &Profile| vec![("profile".to_owned(), p.name.to_owned())];
    for given in w.profiles.iter().map(profile).chain([Vec::new()]) {
        Params::new(w.name, w.params, w.profiles, &given)
            .map_err(|e| RegisterError::Params(name(), e))?;
    }
    // First the script: whoever finds the workload finds that, too.
    let mut script = Some(script);
    ALL.add(w, |all| {
        if all.iter().any(|o| o.name == w.name) {
            return Err(RegisterError::Taken(name()));
        }
        match script.take() {
            Some(s) => OUTSIDE.add(&*Box::leak(Box::new(s)), |_| Ok(())),
            None => Ok(()),
        }
    })
}

/// The workload of a name.
pub fn workload(name: &str) -> Option<&'static Workload> {
    workloads().iter().find(|w| w.name == name).copied()
}

/// Other names people know the programs by.
const ALSO: &[(&str, &str)] = &[
    ("androbench2", "androbench-io"),
    ("sqlite3", "sqlite"),
    ("tpc-b", "pgbench"),
    ("postgres", "pgbench"),
    ("postgresql", "pgbench"),
    ("mysql", "innodb"),
    ("sysbench", "innodb"),
    ("mariadb", "innodb"),
    ("make", "compile"),
    ("kernel-build", "compile"),
    ("build", "compile"),
    ("launch", "app-start"),
    ("fsync", "fsync-latency"),
    ("randread", "random-read"),
    ("dd", "streams"),
    ("sequential", "streams"),
    ("apache", "web"),
    ("browser", "web"),
];

/// What to say behind "no workload is called NAME; ": the names that may be meant, or all.
pub fn unknown_workload(name: &str) -> String {
    let known: Vec<_> = workloads().iter().map(|w| w.name).collect();
    suggest::remedy(name, &known, ALSO, "`seekwell workloads`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_places_find_theirs() {
        for (typed, meant) in [
            ("androbench", "`androbench-io`"),
            ("fsmark", "`fs-mark`"),
            ("fs_mark", "`fs-mark`"),
            ("sqlite3", "`sqlite`"),
            ("postmrak", "`postmark`"),
        ] {
            let said = unknown_workload(typed);
            assert!(
                said.starts_with(&format!("did you mean {meant}?")),
                "{typed}: {said}"
            );
        }
        assert!(unknown_workload("qqqq").starts_with("there are fs-mark, "));
        assert!(
            ALSO.iter()
                .all(|a| workload(a.0).is_none() && workload(a.1).is_some())
        );
    }
}
