//! The list of workloads. `seekwell workloads` prints it, and `seekwell run` uses it.
//!
//! Another crate can add a workload while the program runs ([`register`]). Like the built-in
//! scripts, such a script is generic over the machine. It must be registered for each type of
//! machine on which it will run, because Rust cannot instantiate a generic function at run time.

use crate::fail::{Fail, Outcome};
use crate::machine::Machine;
use crate::params::{ParamError, Params, Profile};
use crate::row::Workload;
use crate::scripts;
use seekwell_core::{Errno, OpenList, suggest};
use std::any::{Any, TypeId};
use std::future::Future;
use std::pin::Pin;
use thiserror::Error;

macro_rules! registry {
    ($($module:ident)*) => {
        const BUILT_IN: &[&Workload] = &[$(&scripts::$module::WORKLOAD),*];

        /// Runs the script of a workload in the directory `dir`.
        pub(crate) async fn run<M: Machine>(
            w: &Workload,
            m: &mut M,
            p: &Params,
            dir: &str,
        ) -> Outcome {
            // Boxed, because otherwise the future would always be as large as the state of the
            // largest script.
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

/// Returns all workloads in the order of the documentation: the built-in workloads, then the
/// registered workloads.
pub fn workloads() -> &'static [&'static Workload] {
    ALL.all()
}

/// The script function for one type of machine.
pub type ScriptFn<M> =
    for<'a> fn(&'a mut M, &'a Params, &'a str) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// A workload from another crate, with its script function for each type of machine.
pub struct Script {
    workload: &'static Workload,
    /// Type of the machine, and the [`ScriptFn`] for this type.
    machines: Vec<(TypeId, Box<dyn Any + Send + Sync>)>,
}

impl Script {
    /// Makes a script of a workload, without any type of machine.
    pub fn new(workload: &'static Workload) -> Self {
        Script {
            workload,
            machines: Vec::new(),
        }
    }
    /// Adds a type of machine, for example `.on::<SimMachine>(|m, p, dir| Box::pin(run(m, p,
    /// dir)))`.
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

/// The reason why a workload was not registered.
#[derive(Error, Debug, Clone, PartialEq, Eq)]
pub enum RegisterError {
    /// The name cannot be parsed on the command line.
    #[error(
        "workload \"{0}\": a name consists of lower-case letters, digits, `-` and `_`, and must \
         not be `fio`"
    )]
    Name(String),
    /// The name is already in use.
    #[error("workload \"{0}\" is registered already: choose another name")]
    Taken(String),
    /// A default or a profile value is out of its range.
    #[error("workload \"{0}\": {1}")]
    Params(String, ParamError),
    /// The script has no type of machine.
    #[error("workload \"{0}\" has no machine: add one with `on`")]
    Nowhere(String),
}

/// Registers a workload from another crate, for the rest of the process.
///
/// # Errors
/// Returns an error if the name is already in use or cannot be typed, if a default is out of its
/// range, or if the script has no type of machine.
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
    // Add the script first, so that every listed workload has a script.
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

/// Returns the workload with this name.
pub fn workload(name: &str) -> Option<&'static Workload> {
    workloads().iter().find(|w| w.name == name).copied()
}

/// Other names that users type for the workloads.
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

/// Returns the end of the message "no workload is called NAME; ", with similar names or all names.
pub fn unknown_workload(name: &str) -> String {
    let known: Vec<_> = workloads().iter().map(|w| w.name).collect();
    suggest::remedy(name, &known, ALSO, "`seekwell workloads`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternative_workload_names_get_a_suggestion() {
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
