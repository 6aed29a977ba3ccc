//! Converts the imported data to results: cells, treatments and runs, in the order of reading.

use super::harvest::{From, Harvest, Item, Of, short};
use super::input::base;
use super::names::{self, NameFrom, Named};
use super::{ImportError, Options, Place};
use crate::data::{
    About, Cell, CellEnd, Interned, Method, MetricInfo, Outcome, Results, Run, RunKey, Summary,
    Treatment,
};
use seekwell_core::prose::{all_in_prose, in_prose};
use seekwell_core::suggest;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the device if no file and no option gives one.
const DEVICE_UNKNOWN: &str = "device unknown";

/// The parts of a name that identify a cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Where {
    device: String,
    machine: String,
    test: String,
    /// Words of the file's name that are not the scheduler.
    file: String,
}

/// Splits the names of a value into treatment and cell, by the options and the file's format.
fn named(of: &Of, from: &From, options: &Options) -> (Named, Where) {
    let renamed = |name: &str| -> String {
        let mut all = options.renamed.iter();
        let same = |r: &&(String, String)| r.0.eq_ignore_ascii_case(name.trim());
        all.find(same).map_or(name.to_owned(), |r| r.1.clone())
    };
    let file_name = base(&from.file);
    let (system, test) = (renamed(&of.system), renamed(&of.test));
    let told = !of.scheduler.is_empty();
    let by = options.scheduler_from;
    let where_from = by.unwrap_or(from.scheduler_from);
    let (mut machine, mut device) = (of.machine.clone(), of.device.clone());
    let mut name: Named;
    let mut file = String::new();
    let mut workload = test.clone();
    match where_from {
        _ if told && by.is_none() => name = names::of_system(&renamed(&of.scheduler)),
        NameFrom::Test => {
            name = names::of_test(&test);
            workload = std::mem::take(&mut name.rest);
            if name.label.is_empty() {
                name.label = "not named".to_owned();
            }
        }
        NameFrom::File => {
            name = match renamed(file_name) {
                same if same == file_name => names::of_file(&from.file),
                told => names::of_system(&told),
            };
            // If no file name contains a scheduler, the commands are the treatments.
            if name.scheduler.is_empty() && !system.is_empty() && by.is_none() {
                file = std::mem::take(&mut name.label);
                name = names::of_system(&system);
            } else {
                file = std::mem::take(&mut name.rest);
            }
        }
        NameFrom::System => name = names::of_system(&system),
    }
    if name.scheduler.is_empty()
        && by.is_none()
        && let Some((scheduler, version)) = names::known(&of.recorded)
    {
        name = Named {
            label: scheduler.to_owned(),
            scheduler: scheduler.to_owned(),
            version,
            rest: if name.rest.is_empty() {
                name.label
            } else {
                name.rest
            },
        };
    }
    if !name.rest.is_empty() && machine.is_empty() {
        machine = std::mem::take(&mut name.rest);
    }
    if let Some(d) = &options.device {
        device = d.clone();
    }
    for known in [&mut machine, &mut file] {
        if device.is_empty() {
            device = std::mem::take(known);
        }
    }
    if device.is_empty() {
        device = DEVICE_UNKNOWN.to_owned();
    }
    if name.label.is_empty() {
        name.label = "not named".to_owned();
    }
    let place = Where {
        device: short(&device),
        machine: short(&machine),
        test: short(&workload),
        file,
    };
    (name, place)
}

/// The results while they are built.
#[derive(Default)]
struct Building {
    results: Results,
    /// The names and the metric of each cell, by cell index.
    keys: Vec<(Where, String)>,
    /// Cell index by names and metric. A search through all cells would be slow for large imports.
    index: BTreeMap<(Where, String), usize>,
    labels: BTreeMap<String, usize>,
    /// Number of runs so far, by cell and treatment.
    counts: BTreeMap<(usize, usize), u32>,
    /// Run keys that are already used.
    taken: BTreeSet<RunKey>,
    told: usize,
}

impl Building {
    fn cell(&mut self, place: &Where, metric: &MetricInfo, value: f64) -> usize {
        let key = (place.clone(), metric.name.clone());
        if let Some(cell) = self.index.get(&key) {
            return *cell;
        }
        let mut axes = BTreeMap::new();
        if !place.file.is_empty() {
            axes.insert("file".to_owned(), place.file.clone());
        }
        self.results.cells.push(Cell {
            device: place.device.clone(),
            workload: place.test.clone(),
            machine: place.machine.clone(),
            substrate: "import".to_owned(),
            axes,
            primary: MetricInfo {
                step: metric
                    .step
                    .or_else(|| known_step(&place.test, metric, value)),
                ..metric.clone()
            },
            ended: CellEnd::Open,
            ..Cell::default()
        });
        self.keys.push(key.clone());
        self.index.insert(key, self.results.cells.len() - 1);
        self.results.cells.len() - 1
    }

    fn treatment(&mut self, cell: usize, name: &Named) -> usize {
        let all = &mut self.results.treatments;
        let treatment = *self.labels.entry(name.label.clone()).or_insert_with(|| {
            all.push(Treatment {
                label: name.label.clone(),
                scheduler: name.scheduler.clone(),
                version: name.version.clone(),
                ..Treatment::default()
            });
            all.len() - 1
        });
        let of = &mut self.results.cells[cell].treatments;
        if !of.contains(&treatment) {
            of.push(treatment);
        }
        treatment
    }
}

/// Returns the resolution of a value if it is coarser than the printed digits. PostMark divides its
/// transactions (25,000 in the test profile) by whole seconds, so all runs that end within the same
/// second have the same value.
fn known_step(test: &str, metric: &MetricInfo, value: f64) -> Option<f64> {
    let postmark = test.to_lowercase().starts_with("postmark") && metric.higher_is_better;
    (postmark && value > 0.0).then(|| value * value / 25_000.0)
}

/// Builds the results.
pub fn assemble(harvest: Harvest, options: &Options) -> Result<Results, ImportError> {
    let mut b = Building::default();
    let mut figures: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (file, item) in harvest.items {
        let from = &harvest.files[file];
        let wrong = |what: String| ImportError {
            file: from.file.clone(),
            place: Place::File,
            what,
        };
        match item {
            Item::Run(run) => {
                let (name, place) = named(&run.of, from, options);
                let Some(primary) = run.values.first() else {
                    continue;
                };
                let cell = b.cell(&place, &primary.metric.clone(), primary.value);
                let treatment = b.treatment(cell, &name);
                let count = b.counts.entry((cell, treatment)).or_insert(0);
                let block = run.block.unwrap_or(*count);
                *count += 1;
                b.told += usize::from(run.block.is_some());
                let key = RunKey {
                    cell,
                    block,
                    treatment,
                };
                if !b.taken.insert(key) {
                    return Err(wrong(format!(
                        "block {block} of {} contains {} twice; number runs and blocks so that \
                         each occurs once",
                        place.test,
                        in_prose(&name.label)
                    )));
                }
                let failed = matches!(run.outcome, Outcome::Failed(_));
                b.results.runs.push(Run {
                    key,
                    outcome: run.outcome,
                    values: if failed { Vec::new() } else { run.values },
                    began_unix_ns: run.began_unix_ns,
                    duration_ns: run.duration_ns,
                    ..Run::default()
                });
            }
            Item::Figure(f) => {
                let (name, place) = named(&f.of, from, options);
                let cell = b.cell(&place, &f.metric, f.mean.value);
                let treatment = b.treatment(cell, &name);
                if figures.insert((cell, treatment), file).is_some() {
                    return Err(wrong(format!(
                        "two figures for {} of {} under {}; keep one, or give single runs a \
                         column `run`",
                        f.metric.name,
                        place.test,
                        in_prose(&name.label)
                    )));
                }
                b.results.summaries.push(Summary {
                    cell,
                    treatment,
                    metric: f.metric,
                    mean: f.mean.value,
                    se: f.se.map(|n| n.value),
                    sd: f.sd.map(|n| n.value),
                    n: f.n,
                    mean_step: f.mean.step,
                    error_step: f.se.or(f.sd).and_then(|n| n.step),
                });
            }
        }
    }
    if b.results.runs.is_empty() && b.results.summaries.is_empty() {
        let file = harvest.files.first().map_or("", |f| f.file.as_str());
        let mut what = "holds no figure that could be imported".to_owned();
        if let Some(note) = harvest.notes.first() {
            what += &format!(" ({note})");
        }
        return Err(ImportError {
            file: file.to_owned(),
            place: Place::File,
            what,
        });
    }
    let reference = reference(&b.results.treatments, options)?;
    let paired = b.told > 0 && b.told == b.results.runs.len() && b.results.summaries.is_empty();
    let mut results = b.results;
    results.runs.sort_by_key(|r| r.key);
    number_blocks(&mut results.runs);
    let mut metrics = Interned::default();
    results.runs.iter_mut().for_each(|r| metrics.share(r));
    name_cells(&mut results.cells);
    for cell in &mut results.cells {
        let first = cell.treatments.first().copied().unwrap_or(0);
        let named = reference.filter(|r| cell.treatments.contains(r));
        cell.reference = named.unwrap_or(first);
    }
    results.about = about(&harvest.files, harvest.title, harvest.description, paired);
    results.about.notes.extend(harvest.notes);
    if let Some(margin) = options.margin {
        results.about.method.margin = margin;
    }
    Ok(results)
}

/// Renumbers blocks from 0 without gaps, in ascending order. Block numbers in files have no bound.
fn number_blocks(runs: &mut [Run]) {
    let told: BTreeSet<u32> = runs.iter().map(|r| r.key.block).collect();
    let rank: BTreeMap<u32, u32> = told.into_iter().zip(0..).collect();
    for run in runs {
        run.key.block = rank.get(&run.key.block).copied().unwrap_or(run.key.block);
    }
}

fn about(files: &[From], title: String, description: String, paired: bool) -> About {
    let mut formats: Vec<&str> = Vec::new();
    for f in files {
        if !formats.contains(&f.format) {
            formats.push(f.format);
        }
    }
    let first = files.first().map_or("import", |f| base(&f.file));
    let notes = match paired {
        true => Vec::new(),
        false => vec!["order unknown: drift cannot be excluded".to_owned()],
    };
    About {
        name: short(if title.is_empty() { first } else { &title }),
        description: short(&description),
        source: formats.join(", "),
        method: Method {
            repeats_min: 1,
            ..Method::default()
        },
        paired,
        notes,
    }
}

/// Returns the index of the reference treatment that the options name, if any.
fn reference(all: &[Treatment], options: &Options) -> Result<Option<usize>, ImportError> {
    let Some(asked) = &options.reference else {
        return Ok(None);
    };
    let is = |t: &Treatment| {
        t.label.eq_ignore_ascii_case(asked)
            || (!t.scheduler.is_empty() && t.scheduler.eq_ignore_ascii_case(asked))
    };
    let labels: Vec<_> = all.iter().map(|t| t.label.as_str()).collect();
    match all.iter().position(is) {
        Some(found) => Ok(Some(found)),
        None => {
            let remedy = suggest::did_you_mean(asked, labels.iter().copied(), &[]);
            let there = format!("there are {}", all_in_prose(&labels).join(", "));
            Err(ImportError::general(&format!(
                "there is no reference \"{asked}\"; {}",
                remedy.unwrap_or(there)
            )))
        }
    }
}

/// Gives each cell a unique name that is as short as possible.
fn name_cells(cells: &mut [Cell]) {
    let several = |pick: fn(&Cell) -> &str, cells: &[Cell]| {
        let all: BTreeSet<&str> = cells.iter().map(pick).collect();
        all.len() > 1
    };
    let devices = several(|c| &c.device, cells);
    let machines = several(|c| &c.machine, cells);
    let metrics: BTreeSet<(String, String)> = cells
        .iter()
        .map(|c| (c.workload.clone(), c.primary.name.clone()))
        .collect();
    let mut of_test: BTreeMap<&str, usize> = BTreeMap::new();
    for (test, _) in &metrics {
        *of_test.entry(test).or_insert(0) += 1;
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for cell in cells {
        let mut name = cell.workload.clone();
        if of_test.get(cell.workload.as_str()).is_some_and(|n| *n > 1) {
            name = format!("{name}: {}", cell.primary.name);
            cell.workload = name.clone();
        }
        if let Some(file) = cell.axes.get("file") {
            name = format!("{name} ({file})");
        }
        let place = match (devices, machines, cell.machine.as_str()) {
            (_, true, m) if !m.is_empty() => Some(m),
            (true, _, _) => Some(cell.device.as_str()),
            _ => None,
        };
        if let Some(place) = place {
            name = format!("{name} on {place}");
        }
        let n = seen.entry(name.clone()).or_insert(0);
        *n += 1;
        cell.name = match *n {
            1 => name,
            n => format!("{name} #{n}"),
        };
    }
}
