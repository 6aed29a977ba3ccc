//! The parser of fio job files.

use super::FioError;
use super::finish::finish;
use super::ignored::{setting, usual};
use super::job::Job;
use super::jobfile::JobFile;
use super::options::{Effect, is_device, set};
use super::outside::leaves_directory;
use super::values::Reading;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum numbers of jobs, of lines with all included files, and of nested includes. A file that
/// exceeds a limit is probably a mistake.
const MAX_JOBS: usize = 1000;
const MAX_LINES: usize = 100_000;
const MAX_INCLUDES: usize = 8;
/// Maximum number of included files. Even empty files count, because each must be read.
const MAX_INCLUDED: usize = 1000;

/// The environment of a job file: variables and included files.
pub trait Outside {
    /// Returns the value of `${NAME}`, if it is set.
    fn variable(&self, name: &str) -> Option<String>;
    /// Returns the text of an included file, or the reason why it is not available.
    fn include(&self, file: &str) -> Result<String, String> {
        Err(format!("put the text of {file} here"))
    }
}

/// An environment that has only variables and no included files.
impl<F: Fn(&str) -> Option<String>> Outside for F {
    fn variable(&self, name: &str) -> Option<String> {
        self(name)
    }
}

/// A line of a job file, with its file name and line number.
pub(super) struct Line {
    file: Arc<str>,
    number: usize,
    pub(super) text: String,
}

impl Line {
    fn fail(&self, what: String) -> FioError {
        FioError {
            file: self.file.to_string(),
            line: self.number,
            what,
        }
    }
}

/// Appends all non-empty lines. The lines of an included file replace its include line.
pub(super) fn flatten(
    file: &str,
    text: &str,
    outside: &dyn Outside,
    depth: usize,
    included: &mut usize,
    out: &mut Vec<Line>,
) -> Result<(), FioError> {
    let file: Arc<str> = file.into();
    for (i, raw) in text.lines().enumerate() {
        let line = Line {
            file: file.clone(),
            number: i + 1,
            text: strip(raw).trim().to_owned(),
        };
        if line.text.is_empty() {
            continue;
        }
        if out.len() == MAX_LINES {
            return Err(line.fail(format!("more than {MAX_LINES} lines")));
        }
        let include = line.text.strip_prefix("include");
        let Some(other) = include.filter(|o| o.starts_with(char::is_whitespace)) else {
            out.push(line);
            continue;
        };
        let other = other.trim();
        if depth == MAX_INCLUDES {
            return Err(line.fail(format!(
                "include {other}: includes are nested more than {MAX_INCLUDES} levels deep"
            )));
        }
        *included += 1;
        if *included > MAX_INCLUDED {
            return Err(line.fail(format!("include {other}: more than {MAX_INCLUDED} files")));
        }
        let inner = outside.include(other);
        let inner = inner.map_err(|e| line.fail(format!("include {other}: {e}")))?;
        flatten(other, &inner, outside, depth + 1, included, out)?;
    }
    Ok(())
}

/// A section of a job file.
struct Section<'a> {
    /// The line of its name.
    line: &'a Line,
    name: &'a str,
    options: Vec<&'a Line>,
}

impl Section<'_> {
    fn global(&self) -> bool {
        self.name.eq_ignore_ascii_case("global")
    }
}

/// Collects the sections of a job file.
fn sections<'a>(lines: &'a [Line]) -> Result<Vec<Section<'a>>, FioError> {
    let mut all: Vec<Section<'a>> = Vec::new();
    for line in lines {
        let l = line.text.as_str();
        if let Some(rest) = l.strip_prefix('[') {
            let name = rest.strip_suffix(']').map(str::trim).unwrap_or_default();
            if name.is_empty() {
                return Err(line.fail(format!("\"{l}\" is not a section; write [NAME]")));
            }
            if all.iter().filter(|s| !s.global()).count() == MAX_JOBS {
                return Err(line.fail(format!("more than {MAX_JOBS} jobs")));
            }
            all.push(Section {
                line,
                name,
                options: Vec::new(),
            });
            continue;
        }
        match all.last_mut() {
            Some(section) => section.options.push(line),
            None => {
                return Err(line.fail(format!(
                    "\"{l}\" is before the first section; write [global] or [NAME]"
                )));
            }
        }
    }
    Ok(all)
}

/// The option and the value of a line.
pub(super) fn split_option(text: &str) -> (&str, Option<&str>) {
    match text.split_once('=') {
        Some((k, v)) => (k.trim(), Some(v.trim())),
        None => (text, None),
    }
}

/// Notes for the user, each once.
#[derive(Default)]
struct Notes {
    ignored: BTreeSet<String>,
    others: Vec<String>,
}

impl Notes {
    fn add(&mut self, note: String) {
        if !self.others.contains(&note) {
            self.others.push(note);
        }
    }
    fn take(self) -> Vec<String> {
        let names: Vec<String> = self.ignored.into_iter().collect();
        let one = match names.as_slice() {
            [] => None,
            [name] => Some(format!("{name} has no effect on the requests of the job")),
            _ => Some(format!(
                "these options have no effect on the requests of the jobs: {}",
                names.join(", ")
            )),
        };
        one.into_iter().chain(self.others).collect()
    }
}

/// Sets the options of a section.
fn apply(
    job: &mut Job,
    section: &Section<'_>,
    reading: &mut Reading,
    outside: &dyn Outside,
    notes: &mut Notes,
    leaves: &mut Option<String>,
) -> Result<(), FioError> {
    // fio reads kb_base first, because the other values depend on it.
    for line in &section.options {
        if let ("kb_base", Some(value)) = split_option(&line.text) {
            reading.kb = if value == "1000" { 1000 } else { 1024 };
        }
    }
    // The lines that set options in this section, by setting. A file may override an option that an
    // included file sets.
    let mut given: BTreeMap<(Arc<str>, &str), &Line> = BTreeMap::new();
    for line in &section.options {
        let (key, value) = split_option(&line.text);
        let value = value
            .map(|v| expand(v, &job.name, *reading, outside))
            .transpose();
        let value = value.map_err(|what| line.fail(what))?;
        if leaves.is_none() && leaves_directory(key, value.as_deref()) {
            *leaves = Some(line.text.clone());
        }
        let before = job.clone();
        let effect = set(job, key, value.as_deref(), *reading).map_err(|what| line.fail(what))?;
        if let Some(earlier) = given.insert((line.file.clone(), setting(key)), line)
            && before != *job
            && effect == Effect::Set
        {
            notes.add(format!(
                "{}, line {}: \"{}\" replaces \"{}\" of line {}",
                line.file, line.number, line.text, earlier.text, earlier.number
            ));
        }
        match effect {
            Effect::Set => {}
            Effect::Ignored => {
                notes.ignored.insert(usual(key).to_owned());
            }
            Effect::Noted(note) => notes.add(note),
        }
    }
    Ok(())
}

/// Parses a job file. `name` is used in messages and in the record of the run.
pub fn parse(name: &str, text: &str, outside: &dyn Outside) -> Result<JobFile, FioError> {
    let mut lines = Vec::new();
    flatten(name, text, outside, 0, &mut 0, &mut lines)?;
    let mut global = Job::default();
    let mut reading = Reading::default();
    // Each job, with the line of its section.
    let mut jobs: Vec<(Job, &Line)> = Vec::new();
    let mut notes = Notes::default();
    let mut leaves = None;
    for section in &sections(&lines)? {
        if section.global() {
            apply(
                &mut global,
                section,
                &mut reading,
                outside,
                &mut notes,
                &mut leaves,
            )?;
            continue;
        }
        let mut job = global.clone();
        section.name.clone_into(&mut job.name);
        let mut own = reading;
        apply(
            &mut job,
            section,
            &mut own,
            outside,
            &mut notes,
            &mut leaves,
        )?;
        // Without a file name, fio uses the job's name if it is that of a device.
        if job.filenames.is_empty() && job.format.is_none() && is_device(&job.name) {
            job.raw = true;
            job.filenames = vec![job.name.clone()];
            leaves = leaves.or_else(|| Some(section.line.text.clone()));
        }
        jobs.push((job, section.line));
    }
    if jobs.is_empty() {
        return Err(FioError {
            file: name.to_owned(),
            line: text.lines().count().max(1),
            what: "the file has no job; add a section [NAME]".into(),
        });
    }
    let mut warnings = notes.take();
    finish(&mut jobs, &mut warnings, &|line: &&Line, what| {
        line.fail(what)
    })?;
    let stem = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let stem = stem.rsplit_once('.').map_or(stem, |s| s.0);
    Ok(JobFile {
        name: stem.to_owned(),
        jobs: jobs.into_iter().map(|j| j.0).collect(),
        warnings,
        outside: leaves,
    })
}

/// Removes the comment from a line.
fn strip(line: &str) -> &str {
    let t = line.trim_start();
    if t.starts_with(';') || t.starts_with('#') {
        return "";
    }
    // A comment within a line must follow a blank, because names can contain `;` and `#`.
    let cut = line.match_indices([';', '#']).find(|(i, _)| {
        let before = line[..*i].chars().next_back();
        before.is_some_and(char::is_whitespace)
    });
    cut.map_or(line, |(i, _)| &line[..i])
}

/// Replaces `${VAR}`, `$jobname` and `$pagesize` by their values.
fn expand(
    value: &str,
    job: &str,
    reading: Reading,
    outside: &dyn Outside,
) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = value;
    while let Some(i) = rest.find('$') {
        out.push_str(&rest[..i]);
        rest = &rest[i..];
        if let Some(after) = rest.strip_prefix("$jobname") {
            out.push_str(job);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("$pagesize") {
            out.push_str(&reading.page.to_string());
            rest = after;
        } else if rest.starts_with("$mb_memory") || rest.starts_with("$ncpus") {
            return Err(format!(
                "\"{value}\": the modelled machine is not known here; write the number"
            ));
        } else if let Some(after) = rest.strip_prefix("${") {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| format!("\"{value}\": ${{ without }}"))?;
            let v = outside.variable(name).ok_or_else(|| {
                format!(
                    "the variable {name} is not set in the environment; set it before the \
                     command, as in {name}=VALUE seekwell run"
                )
            })?;
            out.push_str(&v);
            rest = after;
        } else {
            out.push('$');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}
