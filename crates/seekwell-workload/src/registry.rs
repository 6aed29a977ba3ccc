//! The list of workloads: what `seekwell workloads` documents and `seekwell run` finds.

use crate::fail::Outcome;
use crate::machine::Machine;
use crate::params::{Param, Params, Profile};
use crate::scripts;

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
        /// All workloads, in the order of the documentation.
        pub fn workloads() -> &'static [&'static Workload] {
            &[$(&scripts::$module::WORKLOAD),*]
        }

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
            Ok(())
        }
    };
}

registry! {
    fs_mark blogbench compilebench iozone tiobench postmark pgbench sqlite androbench_io mysql_scan
    hdparm seeker random_read web compile app_start interactive streams fsync_latency
}

/// The workload of a name.
pub fn workload(name: &str) -> Option<&'static Workload> {
    workloads().iter().find(|w| w.name == name).copied()
}
