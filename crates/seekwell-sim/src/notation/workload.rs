//! Parses workloads: `NAME:param=value,...`, fio job files with their includes, and recorded
//! traces.

use super::{BackgroundSpec, SpecErrors, WorkloadSpec};
use seekwell_core::once::Once;
use seekwell_core::spec::content_hash;
use seekwell_files::{open_stream, read_text};
use seekwell_trace::{Format, ReadOptions, ReplayMode, TimeUnit, device_number, find_format};
use seekwell_workload::fio::{self, Outside};
use seekwell_workload::{ParamError, Plan};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

/// Extensions of fio job files.
const JOB_FILES: &[&str] = &["fio", "ini", "job"];

/// Size limit for a job file, and for each file that it includes, in bytes.
const JOB_BYTES_MAX: u64 = 1 << 20;

/// Values of the environment that a job file used. They are kept for the specification.
#[derive(Default)]
struct Taken {
    includes: RefCell<BTreeMap<String, String>>,
    variables: RefCell<BTreeMap<String, String>>,
}

/// The real environment, and the files in the directory of the job file.
struct Beside<'a> {
    file: &'a Path,
    taken: &'a Taken,
}

impl Outside for Beside<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        let value = std::env::var(name).ok()?;
        let mut all = self.taken.variables.borrow_mut();
        all.insert(name.to_owned(), value.clone());
        Some(value)
    }
    fn include(&self, file: &str) -> Result<String, String> {
        let path = self.file.parent().unwrap_or(Path::new("")).join(file);
        let text = read_text(&path, JOB_BYTES_MAX);
        let text = text.map_err(|e| format!("{}: {e}; name a fio job file", path.display()))?;
        let mut all = self.taken.includes.borrow_mut();
        all.insert(file.to_owned(), text.clone());
        Ok(text)
    }
}

/// Only the environment and the files that a specification contains.
struct Stated<'a> {
    includes: &'a BTreeMap<String, String>,
    variables: &'a BTreeMap<String, String>,
}

impl Outside for Stated<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
    fn include(&self, file: &str) -> Result<String, String> {
        let text = self.includes.get(file).cloned();
        text.ok_or_else(|| format!("{file}: its text is not in workload.includes"))
    }
}

fn param_error(e: &ParamError) -> SpecErrors {
    let field = match e {
        ParamError::NoWorkload { .. } => "name".to_owned(),
        ParamError::Unknown { name, .. } | ParamError::Bad { name, .. } => format!("params.{name}"),
        ParamError::Clash { .. } => "params".to_owned(),
    };
    SpecErrors::single(field, e.to_string())
}

/// Returns the plan of a script or a job file, or `None` for a trace.
///
/// # Errors
/// Returns faults of names, of parameters or of the job file's text.
pub fn plan(spec: &WorkloadSpec) -> Result<Option<Plan>, SpecErrors> {
    match spec {
        WorkloadSpec::Script { name, params } => {
            if name.contains(':') {
                return Err(SpecErrors::single("name", "parameters belong in params"));
            }
            let given: Vec<(String, String)> =
                params.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
            // Check each parameter on its own first, so that every fault is reported.
            let mut errors = SpecErrors::default();
            for one in given.iter().filter(|g| g.0 != "profile") {
                if let Err(e @ (ParamError::Unknown { .. } | ParamError::Bad { .. })) =
                    Plan::new(name, std::slice::from_ref(one))
                {
                    errors.under("", param_error(&e));
                }
            }
            errors.or(())?;
            let plan = Plan::new(name, &given);
            plan.map(Some).map_err(|e| param_error(&e))
        }
        WorkloadSpec::Fio {
            file,
            text,
            includes,
            variables,
        } => {
            let outside = Stated {
                includes,
                variables,
            };
            let plan = Plan::fio(file, text, &outside);
            plan.map(Some)
                .map_err(|e| SpecErrors::single("text", e.to_string()))
        }
        WorkloadSpec::Trace { .. } => Ok(None),
    }
}

/// Returns a workload with all parameters filled in.
///
/// # Errors
/// Returns all faults.
pub fn checked(spec: &WorkloadSpec) -> Result<WorkloadSpec, SpecErrors> {
    match (plan(spec)?, spec) {
        (Some(plan), WorkloadSpec::Script { name, .. }) => Ok(WorkloadSpec::Script {
            name: name.clone(),
            params: plan.params(),
        }),
        (None, WorkloadSpec::Trace { .. }) => {
            reading(spec)?;
            Ok(spec.clone())
        }
        _ => Ok(spec.clone()),
    }
}

/// Returns a background workload with all parameters filled in.
///
/// # Errors
/// Returns all faults. A trace is a fault, and so is a job file that writes to the raw device.
pub fn background_spec(b: &BackgroundSpec) -> Result<WorkloadSpec, SpecErrors> {
    let wrong = |what: &str| Err(SpecErrors::single("workload", what));
    if matches!(b.workload, WorkloadSpec::Trace { .. }) {
        return wrong(
            "a trace was recorded below a machine and cannot run beside a program: replay it \
             alone, or name a script or a fio job file",
        );
    }
    let under = |e: SpecErrors| {
        let mut errors = SpecErrors::default();
        errors.under("workload", e);
        errors
    };
    if plan(&b.workload)
        .map_err(under)?
        .is_some_and(|p| p.destroys())
    {
        return wrong("writes to the raw device, which holds the files of the other programs");
    }
    checked(&b.workload).map_err(under)
}

/// Prefix of a background workload that restarts whenever it ends.
pub const LOOP: &str = "loop:";

/// Parses a background workload in the syntax of [`typed`]. With the prefix `loop:`, the workload
/// restarts whenever it ends.
///
/// # Errors
/// Returns all faults.
pub fn typed_beside(text: &str) -> Result<BackgroundSpec, SpecErrors> {
    let text = text.trim();
    let (again, inner) = match text.strip_prefix(LOOP) {
        Some(inner) => (true, inner),
        None => (false, text),
    };
    let workload = typed(inner, &[])?;
    let mut neighbour = BackgroundSpec { again, workload };
    neighbour.workload = background_spec(&neighbour)?;
    Ok(neighbour)
}

/// File name of a trace that is read from standard input.
pub const STREAM: &str = "-";

/// Units of the response times in a trace.
const UNITS: &[(&str, TimeUnit)] = &[
    ("ns", TimeUnit::Ns),
    ("us", TimeUnit::Us),
    ("ms", TimeUnit::Ms),
];

/// Parses the device numbers in a block trace, for example `8,16`.
fn major_minor(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once([',', ':'])?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    (major < 4096 && minor < 1 << 20).then(|| device_number(major, minor))
}

/// Options for opening and replaying a trace.
#[derive(Debug)]
pub struct Reading {
    /// The requested format. `None`: the format is detected.
    pub format: Option<Format>,
    /// Options of the reader.
    pub options: ReadOptions,
    /// Timing of the replay.
    pub mode: ReplayMode,
}

/// Returns how the trace of a specification is to be read. `None` if the workload is not a trace.
///
/// # Errors
/// Returns faults of the format, the mode or the hash.
pub fn reading(spec: &WorkloadSpec) -> Result<Option<Reading>, SpecErrors> {
    let WorkloadSpec::Trace {
        file,
        sha256,
        format,
        columns,
        mode,
        stream,
        volume,
        from_ns,
        until_ns,
        pids,
        response_unit,
        allow_truncated,
        ..
    } = spec
    else {
        return Ok(None);
    };
    let mut errors = SpecErrors::default();
    let field = |name: &'static str| {
        move |e: seekwell_trace::TraceError| SpecErrors::single(name, e.to_string())
    };
    let format = format
        .as_deref()
        .map(find_format)
        .transpose()
        .map_err(field("format"));
    let format = errors.take("", format).flatten();
    let mode = errors.take("", mode.parse().map_err(field("mode")));
    let digits = sha256.len() == 64
        && sha256
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    // Data from a pipe have no hash, because they cannot be read before the run.
    let from_a_pipe = file == STREAM && sha256.is_empty();
    if !digits && !from_a_pipe {
        errors.push(
            "sha256",
            "is not a SHA-256: write 64 hexadecimal digits, as printed by sha256sum",
        );
    }
    let unit = response_unit.as_deref().and_then(|asked| {
        let found = UNITS.iter().find(|u| u.0 == asked).map(|u| u.1);
        if found.is_none() {
            let names: Vec<&str> = UNITS.iter().map(|u| u.0).collect();
            errors.unknown("response_unit", "no such unit", asked, &names);
        }
        found
    });
    let Some(mode) = mode else {
        return Err(errors);
    };
    errors.or(Some(Reading {
        format,
        options: ReadOptions {
            stream: match stream {
                super::Stream::Queue => seekwell_trace::Stream::Queue,
                super::Stream::Issue => seekwell_trace::Stream::Issue,
            },
            device: volume.as_deref().and_then(major_minor),
            volume: volume.clone(),
            from_ns: *from_ns,
            until_ns: *until_ns,
            pids: pids.clone(),
            columns: columns.clone(),
            vscsi_response: unit,
            allow_truncated: *allow_truncated,
            ..ReadOptions::default()
        },
        mode,
    }))
}

/// Splits a list such as `a=1,b=2`, the text after the colon of a workload. If no NAME=VALUE
/// follows a comma, the comma belongs to the value before it.
fn parts(text: &str) -> Vec<&str> {
    let all: Vec<&str> = text.split(',').collect();
    if all.iter().all(|p| p.contains('=')) {
        all
    } else {
        vec![text]
    }
}

/// Parses a workload: `NAME`, `NAME:param=value,...`, or the path of a fio job file. The text, the
/// includes and the variables of a job file become part of the specification. `params` contains
/// more parameters in the form `param=value`. Those of a job file are options of all its jobs.
///
/// # Errors
/// Returns all faults, or the reason why the file cannot be read.
pub fn typed(text: &str, params: &[String]) -> Result<WorkloadSpec, SpecErrors> {
    let file = Path::new(text);
    let suffix = file.extension().and_then(|e| e.to_str());
    if suffix.is_some_and(|s| JOB_FILES.contains(&s)) {
        let options: Vec<String> = params
            .iter()
            .flat_map(|p| parts(p))
            .map(str::to_owned)
            .collect();
        return job_file_with(text, &options);
    }
    let (name, inline) = text.split_once(':').unwrap_or((text, ""));
    let mut errors = SpecErrors::default();
    let (mut given, mut once) = (BTreeMap::new(), Once::default());
    let inline = inline.split(',').filter(|p| !p.is_empty());
    for p in inline.chain(params.iter().flat_map(|p| parts(p))) {
        match p.split_once('=') {
            Some((k, v)) => {
                let taken = once.take(k.trim(), p);
                let taken = taken.map_err(|what| SpecErrors::single(k.trim(), what));
                errors.take("", taken);
                given.insert(k.trim().to_owned(), v.trim().to_owned());
            }
            None => errors.push(
                "",
                format!("\"{p}\" is not a parameter: write NAME=VALUE, as in files=100"),
            ),
        }
    }
    errors.or(())?;
    checked(&WorkloadSpec::Script {
        name: name.trim().to_owned(),
        params: given,
    })
}

/// Reads a fio job file with any extension, including its includes and variables.
///
/// # Errors
/// Returns all faults, or the reason why the file cannot be read.
pub fn job_file(name: &str) -> Result<WorkloadSpec, SpecErrors> {
    job_file_with(name, &[])
}

/// Reads a fio job file whose jobs have further options, each in the form `NAME=VALUE`.
fn job_file_with(name: &str, options: &[String]) -> Result<WorkloadSpec, SpecErrors> {
    let file = Path::new(name);
    let text = read_text(file, JOB_BYTES_MAX);
    let text =
        text.map_err(|e| SpecErrors::single("", format!("{name}: {e}; name a fio job file")))?;
    if options.is_empty() {
        return job_text(name, file, text);
    }
    let taken = Taken::default();
    let outside = Beside {
        file,
        taken: &taken,
    };
    let text = fio::with_options(name, &text, &outside, options);
    let text = text.map_err(|e| SpecErrors::single("", e.to_string()))?;
    job_text(name, file, text)
}

/// Parses the text of a job file. Parsing stores everything that the text needs from outside in
/// the specification.
fn job_text(name: &str, file: &Path, text: String) -> Result<WorkloadSpec, SpecErrors> {
    let taken = Taken::default();
    let outside = Beside {
        file,
        taken: &taken,
    };
    Plan::fio(name, &text, &outside).map_err(|e| SpecErrors::single("", e.to_string()))?;
    Ok(WorkloadSpec::Fio {
        file: name.to_owned(),
        text,
        includes: taken.includes.into_inner(),
        variables: taken.variables.into_inner(),
    })
}

/// Name of the jobs of a fio command, in messages and tables.
const COMMAND: &str = "fio command";

/// Parses a fio command, for example `fio --name=a --rw=read --size=1g`, as the workload of a run.
///
/// # Errors
/// Returns the faults of the command and of the job file that it names.
pub fn fio_command(args: &[String]) -> Result<WorkloadSpec, SpecErrors> {
    let bad = |e: String| SpecErrors::single("", format!("{COMMAND}: {e}"));
    let made = fio::command(args).map_err(bad)?;
    let Some(name) = &made.file else {
        return job_text(COMMAND, Path::new(""), made.text);
    };
    let file = Path::new(name);
    let text = read_text(file, JOB_BYTES_MAX);
    let text = text.map_err(|e| bad(format!("{name}: {e}; name a fio job file")))?;
    job_text(name, file, made.text + &text)
}

/// Returns a trace as a workload that is replayed as timed, with the hash of its content.
///
/// # Errors
/// Returns the reason why the file cannot be read.
pub fn trace(path: &Path) -> Result<WorkloadSpec, SpecErrors> {
    let name = path.display().to_string();
    let bad = |e: String| SpecErrors::single("", format!("{name}: {e}"));
    // Data that can be read only once are not hashed.
    let once = path == Path::new(STREAM) || std::fs::metadata(path).is_ok_and(|m| !m.is_file());
    let (name, sha256) = if once {
        (STREAM.to_owned(), String::new())
    } else {
        let file = open_stream(path).map_err(|e| bad(e.to_string()))?;
        let sha256 = content_hash(file).map_err(|e| bad(e.to_string()))?;
        (name, sha256)
    };
    Ok(WorkloadSpec::Trace {
        file: name,
        sha256,
        format: None,
        mode: "timed".to_owned(),
        fit: super::Fit::Strict,
        limit: None,
        stream: super::Stream::Queue,
        volume: None,
        from_ns: 0,
        until_ns: None,
        pids: Default::default(),
        columns: None,
        response_unit: None,
        allow_truncated: false,
    })
}
