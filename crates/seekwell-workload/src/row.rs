//! The row of a workload in the list of workloads. Each script has one in its own file.

use crate::params::{Param, Params, Profile};

/// Where a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// In a directory of a file system. The workload makes its own directory there, and removes it
    /// later.
    Directory,
    /// On the raw device, which it only reads.
    Device,
}

/// A workload: its description, its parameters and its checks.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Name of the workload.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Metric of the original program, with its unit and whether more or less is better.
    pub metric: &'static str,
    /// Part of the machine that the workload stresses.
    pub stresses: &'static str,
    /// The original program with its version, and the published profile.
    pub source: &'static str,
    /// All parameters, with the defaults of the original program.
    pub params: &'static [Param],
    /// Published sets of parameters.
    pub profiles: &'static [Profile],
    /// Where the workload runs.
    pub needs: Needs,
    /// Returns an approximate upper bound of the size of its files, in bytes.
    pub space: fn(&Params) -> u64,
    /// Checks combinations of parameter values. The error contains the reason and the remedy.
    pub check: fn(&Params) -> Result<(), String>,
}

/// A [`Workload::check`] that accepts all combinations.
pub(crate) fn any(_: &Params) -> Result<(), String> {
    Ok(())
}
