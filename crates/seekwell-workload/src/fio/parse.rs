//! The parser of fio job files.

use super::FioError;
use super::job::{Blocks, Dir, Engine, Job, JobFile};
use super::options::{set, usual};
use std::collections::BTreeMap;
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
struct Line {
    file: Arc<str>,
    number: usize,
    text: String,
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
fn flatten(
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
        let Some(other) = line.text.strip_prefix("include ") else {
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

/// Parses a job file. `name` is used in messages and in the record of the run.
pub fn parse(name: &str, text: &str, outside: &dyn Outside) -> Result<JobFile, FioError> {
    let mut lines = Vec::new();
    flatten(name, text, outside, 0, &mut 0, &mut lines)?;
    let mut global = Job::default();
    // Each job, with the line of its section.
    let mut jobs: Vec<(Job, &Line)> = Vec::new();
    let mut warnings: Vec<String> = Vec::new();
    let mut in_section = false;
    // The lines that set options in this section, by file and option name. A file may override an
    // option that an included file sets.
    let mut given: BTreeMap<(Arc<str>, &str), &Line> = BTreeMap::new();
    let mut in_global = false;
    for line in &lines {
        let l = line.text.as_str();
        if let Some(rest) = l.strip_prefix('[') {
            let section = rest.strip_suffix(']').map(str::trim).unwrap_or_default();
            if section.is_empty() {
                return Err(line.fail(format!("\"{l}\" is not a section; write [NAME]")));
            }
            in_section = true;
            given.clear();
            in_global = section.eq_ignore_ascii_case("global");
            if !in_global {
                if jobs.len() == MAX_JOBS {
                    return Err(line.fail(format!("more than {MAX_JOBS} jobs")));
                }
                let mut job = global.clone();
                section.clone_into(&mut job.name);
                jobs.push((job, line));
            }
            continue;
        }
        if !in_section {
            return Err(line.fail(format!(
                "\"{l}\" is before the first section; write [global] or [NAME]"
            )));
        }
        let job = if in_global {
            &mut global
        } else {
            match jobs.last_mut() {
                Some(j) => &mut j.0,
                None => continue,
            }
        };
        let (key, value) = match l.split_once('=') {
            Some((k, v)) => (k.trim(), Some(v.trim())),
            None => (l, None),
        };
        if let Some(before) = given.insert((line.file.clone(), usual(key)), line) {
            return Err(line.fail(format!(
                "\"{l}\": line {} of the same section has \"{}\": remove one of them",
                before.number, before.text
            )));
        }
        let value = value.map(|v| expand(v, &job.name, outside)).transpose();
        let value = value.map_err(|what| line.fail(what))?;
        match set(job, key, value.as_deref()) {
            Ok(None) => {}
            Ok(Some(w)) => {
                if !warnings.contains(&w) {
                    warnings.push(w);
                }
            }
            Err(what) => return Err(line.fail(what)),
        }
    }
    if jobs.is_empty() {
        return Err(FioError {
            file: name.to_owned(),
            line: text.lines().count().max(1),
            what: "the file has no job; add a section [NAME]".into(),
        });
    }
    let raw = jobs[0].0.raw;
    for (job, line) in &mut jobs {
        let name = job.name.clone();
        finish(job, raw, &mut warnings).map_err(|what| line.fail(format!("job {name}: {what}")))?;
    }
    let stem = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let stem = stem.rsplit_once('.').map_or(stem, |s| s.0);
    Ok(JobFile {
        name: stem.to_owned(),
        jobs: jobs.into_iter().map(|j| j.0).collect(),
        warnings,
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

/// Replaces `${VAR}` and `$jobname` by their values.
fn expand(value: &str, job: &str, outside: &dyn Outside) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = value;
    while let Some(i) = rest.find('$') {
        out.push_str(&rest[..i]);
        rest = &rest[i..];
        if let Some(after) = rest.strip_prefix("$jobname") {
            out.push_str(job);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("${") {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| format!("\"{value}\": ${{ without }}"))?;
            let v = outside
                .variable(name)
                .ok_or_else(|| format!("the variable {name} is not set in the environment"))?;
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

/// Checks combinations of options of a job.
fn finish(job: &mut Job, raw: bool, warnings: &mut Vec<String>) -> Result<(), String> {
    let used = |d: Dir| job.does(d).then(|| job.blocks[d as usize].clone());
    let used = [Dir::Read, Dir::Write, Dir::Trim].map(used);
    let largest = used.iter().flatten().map(|b| b.max()).max().unwrap_or(0);
    if job.raw != raw {
        return Err(
            "this job uses filename=/dev/NAME and another job uses files: use only one of these"
                .into(),
        );
    }
    if job.pattern.trims && !job.raw {
        return Err(
            "a file cannot be trimmed: use filename=/dev/NAME, which means the run's device".into(),
        );
    }
    if job.size == 0 {
        job.size = job
            .filesize
            .unwrap_or(0)
            .checked_mul(job.files())
            .ok_or("filesize is too large")?;
    }
    if job.size == 0 && !job.raw {
        return Err("size is missing".into());
    }
    if job.size > 0 && job.each() < u64::from(largest) {
        return Err(format!(
            "size={} is less than one block of {largest} per file",
            job.size
        ));
    }
    let end = job.each().checked_mul(job.files());
    if end
        .and_then(|e| e.max(job.size).checked_add(job.offset))
        .is_none_or(|end| end > 1 << 50)
    {
        return Err("size and offset go beyond 1 PiB".into());
    }
    if job.time_based && job.runtime.is_none() {
        return Err("time_based needs runtime".into());
    }
    let whole = |b: &Blocks| match b {
        Blocks::Range(lo, _) => lo % 4096 == 0,
        Blocks::Split(all) => all.iter().all(|b| b.0 % 4096 == 0),
    };
    let offset = job.offset.is_multiple_of(4096);
    if job.direct && !(offset && used.iter().flatten().all(whole)) {
        return Err("with direct=1 blocks and offset must be multiples of 4096".into());
    }
    if job.direct && !job.pattern.hole.is_multiple_of(4096) {
        return Err("with direct=1 the skipped bytes must be a multiple of 4096".into());
    }
    if job.engine == Engine::Sync && job.depth > 1 {
        warnings.push(format!(
            "job {}: iodepth has no effect without libaio or io_uring; depth 1 is used",
            job.name
        ));
        job.depth = 1;
    }
    if job.batch > job.depth || job.batch_complete > job.depth {
        warnings.push(format!(
            "job {}: a batch cannot be larger than iodepth; {} is used",
            job.name, job.depth
        ));
        job.batch = job.batch.min(job.depth);
        job.batch_complete = job.batch_complete.min(job.depth);
    }
    if job.engine == Engine::Async && !job.direct && job.depth > 1 && job.pattern.writes {
        warnings.push(format!(
            "job {}: buffered writes are not asynchronous, so iodepth has no effect on them",
            job.name
        ));
    }
    Ok(())
}
