//! A workload with checked parameters, ready to run on any machine.

use crate::fail::{Context, Outcome};
use crate::fio::{self, FioError, JobFile, Outside};
use crate::machine::Machine;
use crate::note::Mark;
use crate::params::{ParamError, Params};
use crate::registry;
use crate::row::{Needs, Workload};
use seekwell_core::once::Once;
use seekwell_core::{Errno, Nanos};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A workload with its parameters. It is plain data, so it can be sent to another thread and run
/// repeatedly.
#[derive(Clone, Debug)]
pub struct Plan(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// A workload of the registry.
    Script(&'static Workload, Params),
    /// A fio job file, its text for the record of the run, and an empty set of parameters.
    Fio(Arc<JobFile>, String, Params),
}

impl Plan {
    /// Makes a plan of a workload of the registry. Parameters that are not given have the values of
    /// the original program. The name can also contain parameters, each at most once, for example
    /// `fs-mark:profile=4-threads,files=100`. In `given`, a later value replaces an earlier value.
    pub fn new(name: &str, given: &[(String, String)]) -> Result<Plan, ParamError> {
        let (name, inline) = name.split_once(':').unwrap_or((name, ""));
        let workload = registry::workload(name).ok_or_else(|| ParamError::NoWorkload {
            name: name.to_owned(),
            remedy: registry::unknown_workload(name),
        })?;
        let mut all = Vec::new();
        for part in inline.split(',').filter(|p| !p.is_empty()) {
            let (k, v) = part.split_once('=').ok_or_else(|| ParamError::Clash {
                workload: name.to_owned(),
                why: format!("\"{part}\" is not a parameter: write NAME=VALUE"),
            })?;
            all.push((k.to_owned(), v.to_owned()));
        }
        let mut once = Once::default();
        for (k, v) in &all {
            let taken = once.take(k, &format!("{k}={v}"));
            taken.map_err(|why| ParamError::Clash {
                workload: name.to_owned(),
                why,
            })?;
        }
        all.extend_from_slice(given);
        let params = Params::new(name, workload.params, workload.profiles, &all)?;
        (workload.check)(&params).map_err(|why| ParamError::Clash {
            workload: name.to_owned(),
            why,
        })?;
        Ok(Plan(Kind::Script(workload, params)))
    }

    /// Makes a plan of a fio job file. `outside` supplies variables and included files.
    pub fn fio(name: &str, text: &str, outside: &dyn Outside) -> Result<Plan, FioError> {
        let file = fio::parse(name, text, outside)?;
        Ok(Plan(Kind::Fio(
            Arc::new(file),
            text.to_owned(),
            Params::none(),
        )))
    }

    /// Returns the name of the workload, or "fio" for a fio job file.
    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::Script(w, _) => w.name,
            Kind::Fio(..) => "fio",
        }
    }
    /// Returns all parameters as text, for the record of the run.
    pub fn params(&self) -> BTreeMap<String, String> {
        match &self.0 {
            Kind::Script(_, p) => p.texts(),
            Kind::Fio(file, text, _) => BTreeMap::from([
                ("jobfile".to_owned(), file.name.clone()),
                ("text".to_owned(), text.clone()),
            ]),
        }
    }
    /// Returns the values of the parameters. A job file has no parameters.
    pub fn values(&self) -> &Params {
        match &self.0 {
            Kind::Script(_, p) | Kind::Fio(_, _, p) => p,
        }
    }
    /// Returns the name for tables: the name of the workload, or the file name of the job file
    /// without directories and suffix.
    pub fn label(&self) -> &str {
        self.job_file().map_or(self.name(), |file| &file.name)
    }
    /// Returns the job file, if the plan is of a job file.
    pub fn job_file(&self) -> Option<&JobFile> {
        match &self.0 {
            Kind::Fio(file, ..) => Some(file),
            Kind::Script(..) => None,
        }
    }
    /// Returns the duration of the measurement from the start of the clock, if it is fixed. The
    /// parameter `seconds` sets it, or the options `time_based` and `runtime` of every job.
    pub fn span(&self) -> Option<Nanos> {
        let ns = match &self.0 {
            Kind::Script(w, p) if w.params.iter().any(|q| q.name == "seconds") => p.time("seconds"),
            Kind::Script(..) => return None,
            Kind::Fio(file, ..) => {
                let of = |j: &fio::Job| j.runtime.filter(|_| j.time_based);
                let all: Option<Vec<Nanos>> = file.jobs.iter().map(of).collect();
                all?.into_iter().max()?
            }
        };
        (ns.0 > 0).then_some(ns)
    }
    /// Returns warnings, for example about options of a job file that have no effect.
    pub fn warnings(&self) -> &[String] {
        match &self.0 {
            Kind::Script(..) => &[],
            Kind::Fio(file, ..) => &file.warnings,
        }
    }
    /// Returns the name, the summary, and the parameters that differ from those of the original
    /// program.
    pub fn title(&self) -> String {
        match &self.0 {
            Kind::Script(w, _) => format!("{}: {}{}", w.name, w.summary, self.changed()),
            Kind::Fio(file, ..) => format!("fio job file {}", file.name),
        }
    }
    /// Returns the name, and the parameters that differ from those of the original program.
    pub fn short(&self) -> String {
        match &self.0 {
            Kind::Script(w, _) => format!("{}{}", w.name, self.changed()),
            Kind::Fio(file, ..) => file.name.clone(),
        }
    }
    /// Returns for example " (size=4KiB)". Empty if all parameters are those of the original
    /// program.
    fn changed(&self) -> String {
        let Kind::Script(w, p) = &self.0 else {
            return String::new();
        };
        let usual = Params::new(w.name, w.params, w.profiles, &[]);
        let usual = usual.map(|p| p.texts()).unwrap_or_default();
        let changed: Vec<String> = p
            .texts()
            .into_iter()
            .filter(|(k, v)| usual.get(k) != Some(v))
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        if changed.is_empty() {
            String::new()
        } else {
            format!(" ({})", changed.join(", "))
        }
    }
    /// Returns whether the workload runs in a directory or on the raw device.
    pub fn needs(&self) -> Needs {
        match &self.0 {
            Kind::Script(w, _) => w.needs,
            Kind::Fio(file, ..) if file.raw() => Needs::Device,
            Kind::Fio(..) => Needs::Directory,
        }
    }
    /// Returns true if the workload writes to the raw device or discards its blocks, which destroys
    /// the data on it.
    pub fn destroys(&self) -> bool {
        let changes = |j: &fio::Job| j.raw && (j.pattern.writes || j.pattern.trims);
        match &self.0 {
            // The built-in scripts that use the raw device only read it.
            Kind::Script(..) => false,
            Kind::Fio(file, ..) => file.jobs.iter().any(changes),
        }
    }
    /// Returns an approximate upper bound of the size of the workload's files, in bytes.
    pub fn space(&self) -> u64 {
        match &self.0 {
            Kind::Script(w, p) => (w.space)(p),
            Kind::Fio(file, ..) => file.space(),
        }
    }
    /// Returns the name of the directory that the workload makes in the directory of the run, and
    /// removes at the end.
    pub fn directory(&self) -> String {
        format!("seekwell-{}", self.name())
    }

    /// Runs the workload as the main task of a run. Removes its files at the end, even if it fails
    /// or is stopped, unless the file system is deleted after the run.
    pub async fn run<M: Machine>(self, m: M) -> Outcome {
        let dir = self.directory();
        let keep = m.disposable();
        self.run_in(m, dir, keep).await
    }

    /// Does the same as [`Plan::run`] in a directory with the name `dir`. The directory is made
    /// first, and removed at the end unless `keep` is true.
    pub async fn run_in<M: Machine>(self, mut m: M, dir: String, keep: bool) -> Outcome {
        let files = self.needs() == Needs::Directory;
        if files {
            m.mkdir(&dir).await.doing(|| {
                format!("make the directory {dir} (if an earlier run left it, remove it)")
            })?;
        }
        let outcome = match &self.0 {
            Kind::Script(w, p) => registry::run(w, &mut m, p, &dir).await,
            Kind::Fio(file, ..) => Box::pin(fio::run(&mut m, file, &dir)).await,
        };
        m.mark(Mark::ClockStop);
        if files && !keep {
            let removed = remove(&mut m, &dir).await;
            return outcome.and(removed);
        }
        outcome
    }
}

/// Removes a directory with its contents. Stopped tasks can still make files during the removal;
/// another pass removes them.
async fn remove<M: Machine>(m: &mut M, dir: &str) -> Outcome {
    let mut last = Ok(());
    for _ in 0..3 {
        last = remove_once(m, dir).await;
        if last.is_ok() {
            break;
        }
    }
    last
}

async fn remove_once<M: Machine>(m: &mut M, dir: &str) -> Outcome {
    let gone = |r: Result<(), Errno>| match r {
        Err(Errno::ENOENT) => Ok(()),
        r => r,
    };
    // Directories found so far. Each follows its parent, so they are removed in reverse order.
    let mut dirs = vec![dir.to_owned()];
    let mut next = 0;
    while next < dirs.len() {
        let d = dirs[next].clone();
        next += 1;
        for e in m.readdir(&d).await.doing(|| format!("list {d}"))? {
            let path = format!("{d}/{}", e.name);
            if e.dir {
                dirs.push(path);
            } else {
                gone(m.unlink(&path).await).doing(|| format!("remove {path}"))?;
            }
        }
    }
    for d in dirs.iter().rev() {
        gone(m.rmdir(d).await).doing(|| format!("remove {d}"))?;
    }
    Ok(())
}
