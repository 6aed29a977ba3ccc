//! `--events FILE`: writes the events of every run, within the window, to one file.
//!
//! Each run writes to an anonymous temporary file, so that memory stays bounded and runs may end in
//! any order. At the end, these parts are joined in the order of the runs, and the file appears
//! atomically.

use crate::cli::EventArgs;
use crate::fail::Failure;
use crate::out::{Out, note};
use seekwell::event::wire::{Cell, End, Header, Line, VERSION};
use seekwell::{MOST_EVENTS, Recording, RunSpec, Watch, Window, WorkloadSpec};
use seekwell_core::Nanos;
use std::fs::File;
use std::io::{BufWriter, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Number of bytes that are copied at a time.
const PIECE_BYTES: usize = 1 << 16;

/// The part of the file that one run wrote.
struct Part {
    run: usize,
    label: String,
    text: File,
    end: End,
}

/// Records the events of one run.
pub struct Listening {
    run: usize,
    label: String,
    recording: Recording<BufWriter<File>>,
}

impl Listening {
    /// Returns the listener for the hooks of the run.
    pub fn listener(&self) -> Watch {
        Box::new(self.recording.clone())
    }
}

fn unwritten(e: std::io::Error) -> Failure {
    Failure::Output {
        what: "the temporary file of the events cannot be written".to_owned(),
        source: e,
    }
}

/// Collects the parts of all runs. Does nothing if no events are requested.
pub struct Events {
    to: Option<PathBuf>,
    window: Window,
    parts: Mutex<Vec<Part>>,
}

impl Events {
    /// Checks the options for events. The output must not replace any of the files in `others`.
    pub fn asked<'a>(
        a: &EventArgs,
        others: impl IntoIterator<Item = &'a Path>,
    ) -> Result<Self, Failure> {
        let to = a.events.as_deref();
        if a.window.is_some() && to.is_none() && a.report.is_none() {
            return Err(Failure::input(
                "--window selects events for --events FILE or --report FILE.html; give one of them",
            ));
        }
        let others: Vec<&Path> = others.into_iter().collect();
        for path in [to, a.report.as_deref()].into_iter().flatten() {
            Out::check(Some(path))?;
            Out::apart(Some(path), others.iter().copied())?;
        }
        Out::apart(to, a.report.as_deref())?;
        Ok(Events {
            to: to.map(Path::to_owned),
            window: a.window.unwrap_or_default(),
            parts: Mutex::default(),
        })
    }

    /// Returns a recorder for the `run`th run, or `None` if no events are requested.
    pub fn listening(&self, run: usize, spec: &RunSpec) -> Result<Option<Listening>, Failure> {
        if self.to.is_none() {
            return Ok(None);
        }
        let scratch = seekwell_files::scratch().map_err(unwritten)?;
        let cell = Cell {
            cell: u32::try_from(run).unwrap_or(u32::MAX),
            device: without_folders(&spec.device.spec),
            scheduler: spec.scheduler_label(),
            workload: workload(&spec.workload),
            seed: spec.run_seed(),
            ..Cell::default()
        };
        Ok(Some(Listening {
            run,
            label: format!("{} on {}", cell.scheduler, cell.device),
            recording: Recording::new(BufWriter::new(scratch), cell, self.window),
        }))
    }

    /// Adds the events of a run that has ended; `early` is the reason why it ended early.
    pub fn keep(&self, heard: Listening, early: Option<&str>) -> Result<(), Failure> {
        let (text, end) = heard.recording.finish(early).map_err(unwritten)?;
        let text = text.into_inner().map_err(|e| unwritten(e.into_error()))?;
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.push(Part {
            run: heard.run,
            label: heard.label,
            text,
            end,
        });
        Ok(())
    }

    /// Joins the parts into the file, and prints notes about omitted events.
    pub fn write(self, quiet: bool) -> Result<(), Failure> {
        let Some(path) = self.to else {
            return Ok(());
        };
        let mut parts = self.parts.into_inner();
        let parts = parts.as_mut().unwrap_or_else(|e| e.get_mut());
        parts.sort_by_key(|p| p.run);
        let header = Header {
            events: VERSION,
            seekwell: env!("CARGO_PKG_VERSION").to_owned(),
            cells: u32::try_from(parts.len()).unwrap_or(u32::MAX),
        };
        let mut out = Out::open(Some(&path))?;
        out.line(&Line::Header(header).text())?;
        let mut piece = vec![0; PIECE_BYTES];
        for p in parts.iter_mut() {
            let failed = |e: std::io::Error| Failure::Output {
                what: "the temporary file of the events cannot be read".to_owned(),
                source: e,
            };
            p.text.rewind().map_err(failed)?;
            loop {
                let n = p.text.read(&mut piece).map_err(failed)?;
                if n == 0 {
                    break;
                }
                out.bytes(&piece[..n])?;
            }
        }
        out.done()?;
        for p in parts.iter() {
            self.window.tell(p, quiet);
        }
        Ok(())
    }
}

/// Prints notes about a part of the file.
trait Tell {
    fn tell(&self, part: &Part, quiet: bool);
}

impl Tell for Window {
    fn tell(&self, part: &Part, quiet: bool) {
        let (label, end) = (&part.label, &part.end);
        if end.left_out > 0 {
            note(
                quiet,
                &format!(
                    "{label}: {} events were left out, because at most {MOST_EVENTS} per run are \
                     written; select a shorter part with --window FROM,LENGTH",
                    end.left_out
                ),
            );
        }
        let ran = Nanos(end.t.saturating_sub(end.clock));
        if end.events == 0 && self.from > ran {
            note(
                quiet,
                &format!(
                    "{label}: no events: the window starts at {:.3} s, but the run's clock stopped \
                     at {:.3} s",
                    self.from.as_secs_f64(),
                    ran.as_secs_f64()
                ),
            );
        }
    }
}

/// Returns a specification in which file names have no directories, because readers of a result
/// need not see them.
pub fn without_folders(spec: &str) -> String {
    let ends = |c: char| "(),=: ".contains(c);
    let pieces = spec.split_inclusive(ends);
    pieces
        .map(|p| p.rfind('/').map_or(p, |i| &p[i + 1..]))
        .collect()
}

/// Returns the name of a workload in the file.
fn workload(spec: &WorkloadSpec) -> String {
    match spec {
        WorkloadSpec::Fio { file, .. } | WorkloadSpec::Trace { file, .. } => without_folders(file),
        WorkloadSpec::Script { name, .. } => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_header_contains_no_directories() {
        assert_eq!(without_folders("hdd:hitachi-7k200"), "hdd:hitachi-7k200");
        assert_eq!(
            without_folders("/home/anna/disk.toml,write_cache=no"),
            "disk.toml,write_cache=no"
        );
        assert_eq!(
            without_folders("raid0:members=4,of=(/home/anna/disk.toml)"),
            "raid0:members=4,of=(disk.toml)"
        );
    }
}
