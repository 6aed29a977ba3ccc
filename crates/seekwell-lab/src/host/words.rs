//! Parses workloads for runs on this machine: a recipe, a built-in script on real files, a fio job
//! file, or a command line. A workload may have priority and cgroup settings.

use seekwell::{BackgroundSpec, SpecErrors, WorkloadSpec, plan, words};
use seekwell_core::once::twice;
use seekwell_host::program::{self, LIMITS, MetricOf, Recipe, Share};
use seekwell_workload::{Needs, Plan};
use std::collections::BTreeMap;
use std::path::Path;

/// Prefix that selects the built-in script if a program has the same name.
pub const SCRIPT: &str = "script:";
/// Prefix of a command line.
pub const COMMAND: &str = "cmd:";
/// Name in specifications of the work that the machine does anyway. Seekwell does not start it.
pub const OWN_WORK: &str = "own-work";
/// Prefix of program names in specifications; no built-in script has it.
const PROGRAM: &str = "program/";
/// Name of the parameter that contains the text of a recipe.
pub(super) const RECIPE: &str = "recipe";
/// Names of the parameters that every workload has: priorities and cgroup settings.
pub const PLACING: &[&str] = &["ionice", "nice", "weight", "rbps", "wbps", "riops", "wiops"];

/// A measured workload and its background workloads.
#[derive(Clone, Debug, PartialEq)]
pub struct HostWork {
    /// Label for tables.
    pub label: String,
    /// The workload. For a recipe, the text of the recipe is one of the parameters.
    pub spec: WorkloadSpec,
    /// Name of the metric that decides; `None` for the first metric of the workload.
    pub metric: Option<String>,
    /// Time limit of a run in seconds.
    pub limit_s: Option<u64>,
    /// Background workloads, which run at the same time.
    pub beside: Vec<BackgroundSpec>,
    /// The text that the user typed, and the texts of the background workloads.
    pub asked: (String, Vec<String>),
}

impl HostWork {
    /// Returns a workload without background workloads.
    pub fn alone(label: String, spec: WorkloadSpec) -> Self {
        HostWork {
            label,
            spec,
            metric: None,
            limit_s: None,
            beside: Vec::new(),
            asked: Default::default(),
        }
    }

    /// Selects the only metric that decides.
    ///
    /// # Errors
    /// The workload has no such metric; the error lists its metrics.
    pub fn judged_by(&mut self, metric: &str) -> Result<(), SpecErrors> {
        let before = self.metric.replace(metric.to_owned());
        super::expand::deciding(self)
            .map(|_| ())
            .inspect_err(|_| self.metric = before)
    }

    /// Returns whether the program is installed; always true for built-in scripts.
    pub fn is_here(&self) -> bool {
        match placement_of(&self.spec) {
            Ok((What::Program(recipe, _), _)) => recipe.check().is_ok(),
            other => other.is_ok(),
        }
    }

    /// Returns the commands of the program and of the background programs. Built-in scripts have no
    /// commands.
    pub fn commands(&self) -> Vec<Commands> {
        let beside = self.beside.iter().map(|b| &b.workload);
        let all = std::iter::once(&self.spec).chain(beside);
        all.filter_map(|spec| match placement_of(spec).ok()?.0 {
            What::Program(recipe, params) => Some(Commands::from_recipe(&recipe, params)),
            What::Fio(_, _) => Some(Commands::from_recipe(
                &super::runner::fio(),
                BTreeMap::new(),
            )),
            What::Script(_) | What::OwnWork => None,
        })
        .collect()
    }

    /// Adds a background workload in the syntax of [`beside`].
    ///
    /// # Errors
    /// All errors in the text.
    pub fn with(mut self, text: &str) -> Result<Self, SpecErrors> {
        self.beside.push(parse_background(text)?);
        self.asked.1.push(text.to_owned());
        Ok(self)
    }
}

/// The shell commands of a program's recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commands {
    /// Name of the recipe.
    pub name: String,
    /// The user that runs the commands if Seekwell runs as root; `None` for root.
    pub user: Option<String>,
    /// Shell variables of the commands.
    pub params: BTreeMap<String, String>,
    /// One entry per phase: its name and its commands, in order.
    pub scripts: Vec<(&'static str, String)>,
}

impl Commands {
    fn from_recipe(recipe: &Recipe, params: BTreeMap<String, String>) -> Self {
        let all = [
            ("version", &recipe.version),
            ("prepare", &recipe.prepare),
            ("run", &recipe.run),
            ("clean up", &recipe.clean_up),
        ];
        let scripts = all
            .into_iter()
            .map(|(phase, s)| (phase, s.trim().to_owned()));
        Commands {
            name: recipe.name.clone(),
            user: recipe.user.clone(),
            params,
            scripts: scripts.filter(|s| !s.1.is_empty()).collect(),
        }
    }
}

/// Priority and cgroup settings of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Placing {
    /// I/O priority class and level.
    pub ioprio: Option<(u8, u8)>,
    pub nice: Option<i32>,
    /// Weight and limits of the process's cgroup.
    pub share: Share,
}

/// Parses an I/O priority, such as `idle`, `be:7` or `rt`. Returns class and level.
fn ioprio(text: &str) -> Result<(u8, u8), String> {
    let (class, level) = text.split_once(':').unwrap_or((text, "4"));
    let level: u8 = level.parse().ok().filter(|l| *l < 8).ok_or_else(|| {
        format!(
            "ionice={text}: levels are 0 (highest priority) to 7; write for example be:7, rt:0 \
                 or idle"
        )
    })?;
    match class {
        "rt" => Ok((1, level)),
        "be" => Ok((2, level)),
        "idle" => Ok((3, 0)),
        _ => Err(format!(
            "ionice={text}: write be:0 to be:7, rt:0 to rt:7, or idle"
        )),
    }
}

/// Parses a limit, such as `1000`, or `8m` for bytes.
fn most(name: &str, text: &str) -> Result<u64, String> {
    let bytes = name.ends_with("bps");
    let units = [('k', 10), ('m', 20), ('g', 30)];
    let found = units.iter().find_map(|(unit, by)| {
        let number = text.to_ascii_lowercase();
        let number: u64 = number.strip_suffix(*unit)?.parse().ok()?;
        bytes.then(|| number.checked_mul(1 << by)).flatten()
    });
    let found = found.or_else(|| text.parse().ok()).filter(|n| *n > 0);
    found.ok_or_else(|| match bytes {
        true => format!("{name}={text}: write bytes per second, for example 8m"),
        false => format!("{name}={text}: write requests per second, for example 100"),
    })
}

impl Placing {
    /// Removes the priority and cgroup parameters from `params` and parses them.
    pub fn take(params: &mut BTreeMap<String, String>) -> Result<Placing, String> {
        let mut p = Placing::default();
        if let Some(text) = params.remove("ionice") {
            p.ioprio = Some(ioprio(&text)?);
        }
        if let Some(text) = params.remove("nice") {
            let nice = text.parse().ok().filter(|n| (-20..=19).contains(n));
            p.nice = Some(nice.ok_or_else(|| format!("nice={text}: -20 to 19"))?);
        }
        if let Some(text) = params.remove("weight") {
            let weight = text.parse().ok().filter(|n| (1..=1000).contains(n));
            p.share.weight = Some(weight.ok_or_else(|| format!("weight={text}: 1 to 1000"))?);
        }
        for (name, _) in LIMITS {
            if let Some(text) = params.remove(*name) {
                p.share.limits.push((name, most(name, &text)?));
            }
        }
        Ok(p)
    }
}

/// The way in which a workload runs on this machine.
pub(super) enum What {
    /// A program, with its parameters.
    Program(Box<Recipe>, BTreeMap<String, String>),
    /// A built-in script.
    Script(Box<Plan>),
    /// A job file and its path. fio runs it if installed, otherwise Seekwell runs it.
    Fio(Box<Plan>, String),
    /// The work that other programs do already; nothing is started.
    OwnWork,
}

fn single_error(what: impl Into<String>) -> SpecErrors {
    SpecErrors::single("", what)
}

/// Returns how a workload runs on this machine.
pub(super) fn placement_of(spec: &WorkloadSpec) -> Result<(What, Placing), SpecErrors> {
    match spec {
        WorkloadSpec::Script { name, .. } if name == OWN_WORK => {
            Ok((What::OwnWork, Placing::default()))
        }
        WorkloadSpec::Script { name, params } => {
            let mut params = params.clone();
            let placing = Placing::take(&mut params).map_err(single_error)?;
            if let Some(text) = params.remove(RECIPE) {
                let recipe = Recipe::parse(name, &text).map_err(|e| single_error(e.to_string()))?;
                let params = recipe
                    .params(&params)
                    .map_err(|e| single_error(e.to_string()))?;
                return Ok((What::Program(Box::new(recipe), params), placing));
            }
            if let Some(line) = params.remove(COMMAND) {
                let metric = command_metric(&mut params)?;
                if let Some(name) = params.keys().next() {
                    return Err(single_error(format!(
                        "a command has no parameter \"{name}\""
                    )));
                }
                let recipe = Recipe::command(&line, metric);
                return Ok((What::Program(Box::new(recipe), params), placing));
            }
            let own = WorkloadSpec::Script {
                name: name.clone(),
                params,
            };
            match plan(&own)? {
                Some(plan) => Ok((What::Script(Box::new(plan)), placing)),
                None => Err(single_error(format!("{name} is not a program"))),
            }
        }
        WorkloadSpec::Fio { file, text, .. } => match plan(spec)? {
            Some(plan) => {
                outside(file, &plan)?;
                Ok((What::Fio(Box::new(plan), text.clone()), Placing::default()))
            }
            None => Err(single_error(format!("{file} is not a job file"))),
        },
        WorkloadSpec::Trace { file, .. } => Err(single_error(format!(
            "{file}: a trace contains requests below a file system and cannot run in a directory; \
             `seekwell replay` replays it on modelled disks"
        ))),
    }
}

/// Rejects job files with which fio would use other files, run other programs or change the
/// machine, because only Seekwell's files may be written.
fn outside(file: &str, plan: &Plan) -> Result<(), SpecErrors> {
    match plan.job_file().and_then(|f| f.outside.as_deref()) {
        None => Ok(()),
        Some(line) => Err(single_error(format!(
            "{file}: \"{line}\" refers to files outside the experiment's directory or changes the \
             machine, which Seekwell never does; remove the line"
        ))),
    }
}

fn command_metric(params: &mut BTreeMap<String, String>) -> Result<Option<MetricOf>, SpecErrors> {
    let mut get = |name: &str| params.remove(name);
    let (regex, name, unit, better) = (get("regex"), get("name"), get("unit"), get("better"));
    let Some(regex) = regex else {
        return match name.or(unit).or(better) {
            None => Ok(None),
            Some(_) => Err(single_error(
                "name, unit and better describe the number that `regex` finds: add a regex",
            )),
        };
    };
    let metric = MetricOf {
        name: name.unwrap_or_else(|| "metric".to_owned()),
        unit: unit.unwrap_or_default(),
        better: match better.as_deref() {
            None | Some("higher") => program::Better::Higher,
            Some("lower") => program::Better::Lower,
            Some(other) => {
                return Err(single_error(format!(
                    "better={other}: write higher or lower"
                )));
            }
        },
        regex: Some(regex),
        factor: None,
    };
    metric.check().map_err(single_error)?;
    Ok(Some(metric))
}

/// Parses a command line with its parameters.
pub fn command(line: &str, params: BTreeMap<String, String>) -> Result<HostWork, SpecErrors> {
    let mut params = params;
    params.insert(COMMAND.to_owned(), line.to_owned());
    let spec = WorkloadSpec::Script {
        name: format!("{PROGRAM}cmd"),
        params,
    };
    placement_of(&spec)?;
    Ok(HostWork::alone(line.to_owned(), spec))
}

/// Parses a recipe, built-in or of the user, with parameters.
fn recipe(text: &str, from: &str, given: BTreeMap<String, String>) -> Result<HostWork, SpecErrors> {
    let recipe = Recipe::parse(from, text).map_err(|e| single_error(e.to_string()))?;
    let said: Vec<String> = given.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let label = match said.as_slice() {
        [] => recipe.name.clone(),
        said => format!("{}:{}", recipe.name, said.join(",")),
    };
    let mut params = given;
    params.insert(RECIPE.to_owned(), text.to_owned());
    let spec = WorkloadSpec::Script {
        name: format!("{PROGRAM}{}", recipe.name),
        params,
    };
    placement_of(&spec)?;
    Ok(HostWork::alone(label, spec))
}

/// Parses a workload. The text has one of three forms:
///
/// - the name of a recipe or built-in script, with parameters;
/// - the path of a recipe (NAME.toml) or of a fio job file;
/// - `cmd:` and a command line.
///
/// # Errors
/// All errors in the text.
pub fn work(text: &str, more: &BTreeMap<String, String>) -> Result<HostWork, SpecErrors> {
    let mut work = read(text, more)?;
    work.asked.0 = text.to_owned();
    Ok(work)
}

fn read(text: &str, more: &BTreeMap<String, String>) -> Result<HostWork, SpecErrors> {
    if let Some(line) = text.strip_prefix(COMMAND) {
        return command(line.trim(), more.clone());
    }
    let (name, inline) = match text.strip_prefix(SCRIPT) {
        Some(rest) => rest.split_once(':').unwrap_or((rest, "")),
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let mut given = more.clone();
    for p in inline.split(',').filter(|p| !p.is_empty()) {
        let Some((k, v)) = p.split_once('=') else {
            return Err(single_error(format!(
                "\"{p}\" is not a parameter: write NAME=VALUE"
            )));
        };
        if let Some(before) = given.insert(k.trim().to_owned(), v.trim().to_owned()) {
            let first = format!("{}={before}", k.trim());
            return Err(single_error(format!(
                "{name}: {}",
                twice(k.trim(), &first, p)
            )));
        }
    }
    if Path::new(name).extension().is_some_and(|x| x == "toml") {
        let read = std::fs::read_to_string(name);
        let own = read.map_err(|e| single_error(format!("{name}: {e}; name a recipe")))?;
        return recipe(&own, name, given);
    }
    if !text.starts_with(SCRIPT)
        && let Some(own) = program::find(name)
    {
        return recipe(own, name, given);
    }
    let mut placing = BTreeMap::new();
    for key in PLACING {
        if let Some(value) = given.remove(*key) {
            placing.insert((*key).to_owned(), value);
        }
    }
    let params: Vec<String> = given.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let mut spec = words::workload(name, &params).map_err(|e| unknown(name, e))?;
    if let WorkloadSpec::Script { params, .. } = &mut spec {
        params.extend(placing);
    }
    let (what, _) = placement_of(&spec)?;
    let (What::Script(plan) | What::Fio(plan, _)) = what else {
        return Err(single_error(format!("{name} is not a script")));
    };
    match plan.needs() {
        Needs::Directory if !plan.destroys() => {}
        _ => {
            return Err(single_error(format!(
                "{name} needs a raw device: on a host Seekwell writes only its own files; \
                 `seekwell run {name} --dir DIR --raw PATH` reads one"
            )));
        }
    }
    Ok(HostWork::alone(text.to_owned(), spec))
}

/// Adds the names of recipes to the suggestions in an error.
fn unknown(name: &str, e: SpecErrors) -> SpecErrors {
    let recipes = program::recipes();
    let names: Vec<&str> = recipes.iter().map(|r| r.name.as_str()).collect();
    match seekwell_core::suggest::did_you_mean(name, names.iter().copied(), &[]) {
        Some(near) if !Path::new(name).exists() => single_error(format!(
            "no workload is called \"{name}\": {near} (programs: {}; scripts: `seekwell \
             workloads`)",
            names.join(", ")
        )),
        _ => e,
    }
}

/// Parses a background workload in the syntax of [`work`]. With the prefix `loop:`, the workload
/// starts again whenever it ends.
///
/// # Errors
/// All errors in the text.
pub fn parse_background(text: &str) -> Result<BackgroundSpec, SpecErrors> {
    let (again, rest) = match text.strip_prefix(words::LOOP) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    Ok(BackgroundSpec {
        again,
        workload: work(rest, &BTreeMap::new())?.spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_work(text: &str) -> Result<HostWork, String> {
        work(text, &BTreeMap::new()).map_err(|e| e.to_string())
    }

    #[test]
    fn workload_name_means_a_program_before_a_script() {
        let kind = |text: &str| match placement_of(&parse_work(text).expect(text).spec)
            .expect(text)
            .0
        {
            What::Program(r, _) => format!("program {}", r.name),
            What::Script(p) => format!("script {}", p.name()),
            What::Fio(..) => "fio".to_owned(),
            What::OwnWork => "own work".to_owned(),
        };
        assert_eq!(kind("pgbench:clients=2"), "program pgbench");
        assert_eq!(kind("script:pgbench"), "script pgbench");
        assert_eq!(kind("fs-mark:files=3"), "script fs-mark");
        assert_eq!(kind("cmd:make -j2"), "program cmd");
        let e = parse_work("pgbench:cliants=2").expect_err("no such parameter");
        assert!(e.contains("did you mean `clients`"), "{e}");
        let e = parse_work("pgbanch").expect_err("no such workload");
        assert!(e.contains("`pgbench`"), "{e}");
        assert!(parse_work("hdparm:option=--direct").is_ok());
        assert!(
            parse_work("script:hdparm")
                .expect_err("raw")
                .contains("raw device")
        );
    }

    #[test]
    fn process_placement_options_are_not_program_parameters() {
        let w = parse_work("fs-mark:files=3,ionice=idle,nice=5").expect("placed");
        let (_, placing) = placement_of(&w.spec).expect("good");
        assert_eq!((placing.ioprio, placing.nice), (Some((3, 0)), Some(5)));
        for bad in [
            "ionice=be:9",
            "ionice=later",
            "nice=40",
            "weight=0",
            "rbps=fast",
            "riops=1k",
            "wiops=0",
        ] {
            assert!(parse_work(&format!("fs-mark:{bad}")).is_err(), "{bad}");
        }
        let b = parse_background("loop:streams:kind=write,ionice=be:7").expect("beside");
        assert!(b.again);
        assert_eq!(
            placement_of(&b.workload).expect("good").1.ioprio,
            Some((2, 7))
        );
    }

    #[test]
    fn fio_job_with_files_outside_the_directory_is_rejected() {
        let checked = |lines: &str| {
            let spec = WorkloadSpec::Fio {
                file: "x.fio".to_owned(),
                text: format!("[a]\nrw=read\nsize=1m\n{lines}\n"),
                includes: BTreeMap::new(),
                variables: BTreeMap::new(),
            };
            placement_of(&spec).map(drop).map_err(|e| e.to_string())
        };
        for line in ["filename=/dev/sda", "directory = ../x", "filename=../../x"] {
            let e = checked(line).expect_err(line);
            assert!(e.contains("outside the experiment's directory"), "{e}");
        }
        assert_eq!(checked("filename=data"), Ok(()));
    }
}
