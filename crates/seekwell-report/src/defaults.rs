//! The schedulers that distributions set: as a table for a terminal and as a page of the book, and
//! compared with the recommendation of simulated runs.

use crate::advice::{Advice, all, compared};
use crate::story::answers;
use crate::style::{HEAD, NAME};
use crate::table::{Align, Table, paint, painted, wrap};
use crate::throttle;
use seekwell_core::prose::in_prose;
use seekwell_lab::analysis::analyse;
use seekwell_lab::defaults::{By, CLASSES, Class, Defaults, Distribution, Row, Source, defaults};
use seekwell_lab::results::Results;
use serde::Serialize;

/// Width of the text of the page, in characters.
const PAGE: usize = 116;

/// The text of a cell without a scheduler: the distribution has no such devices.
const NO_DEVICES: &str = "-";

/// Mark of a scheduler that a file of the distribution sets.
const MARK: &str = "*";

/// Returns the text of a cell, without tunables. `mark` follows a scheduler that a file sets.
fn cell(row: Option<&Row>, mark: &str) -> String {
    let Some(row) = row else {
        return NO_DEVICES.to_owned();
    };
    match (&row.scheduler, row.by) {
        (Some(name), By::File) => format!("{name}{mark}"),
        (Some(name), _) => name.clone(),
        (None, _) => "not found".to_owned(),
    }
}

/// Returns the text of a cell with tunables and mark.
fn setup(row: Option<&Row>) -> String {
    let plain = cell(row, "");
    let file = row.is_some_and(|r| r.by == By::File);
    let text = row.and_then(Row::setup).unwrap_or(plain);
    if file { text + MARK } else { text }
}

/// What the marks in the table mean.
const LEGEND: &str = "*: a file of the distribution sets this scheduler. No mark: no file sets a \
                      scheduler, so the kernel chooses it. not found: none of the sources that were \
                      read names the scheduler. -: the distribution does not run on such devices.";

fn classes_in_words() -> Vec<String> {
    let word = |c: &Class| format!("{}: {}", c.name(), c.about());
    CLASSES.iter().map(word).collect()
}

fn source_in_words(s: &Source) -> String {
    format!("{}, {} (read {}): {}.", s.place, s.version, s.read, s.shows)
}

/// Returns the tunables and the other settings that the files of a distribution set.
fn settings_in_words(d: &Distribution) -> Vec<String> {
    let mut out = Vec::new();
    for row in &d.rows {
        let names: Vec<&str> = row.classes.iter().map(|c| c.name()).collect();
        let scheduler = row.scheduler.as_deref().unwrap_or_default();
        for (name, value) in &row.tunables {
            out.push(format!(
                "{name}: {value} (tunable of {scheduler}, for {})",
                names.join(", ")
            ));
        }
    }
    for s in &d.settings {
        out.push(format!("{}: {} ({})", s.name, s.value, s.place));
    }
    out
}

/// Returns the table for a terminal, with the sources below.
pub fn text(data: &Defaults, chosen: &[&Distribution], width: usize) -> String {
    let mut heads = vec![("DISTRIBUTION", Align::Left)];
    heads.extend(CLASSES.map(|c| (c.name(), Align::Left)));
    let mut table = Table::new(&heads);
    for d in chosen {
        let mut row = vec![painted(d.name.as_str(), NAME)];
        row.extend(CLASSES.map(|c| cell(d.row(c), MARK).into()));
        table.row(row);
    }
    let mut out = String::new();
    paint(&mut out, "I/O schedulers that distributions set", HEAD);
    out.push('\n');
    out += &table.render_fit(2, width, 1);
    out += &wrap(LEGEND, 2, width);
    for word in classes_in_words() {
        out += &wrap(&word, 2, width);
    }
    for d in chosen {
        out.push('\n');
        paint(&mut out, &format!("{}: {}", d.name, d.title), HEAD);
        out.push('\n');
        out += &wrap(&d.about, 2, width);
        for setting in settings_in_words(d) {
            out += &wrap(&setting, 2, width);
        }
        for source in d.sources().into_iter().filter_map(|id| data.source(id)) {
            out += &wrap(&source_in_words(source), 2, width);
        }
    }
    out
}

/// Returns what distributions set for one device.
pub fn of_device(device: &str, class: Class, chosen: &[&Distribution], width: usize) -> String {
    let mut out = String::new();
    paint(&mut out, &format!("{device}: {}", class.name()), HEAD);
    out.push('\n');
    out += &wrap(&format!("Class: {}.", class.about()), 2, width);
    let mut table = Table::new(&[
        ("DISTRIBUTION", Align::Left),
        ("SCHEDULER", Align::Left),
        ("RELEASE", Align::Left),
    ]);
    for d in chosen {
        table.row(vec![
            painted(d.name.as_str(), NAME),
            setup(d.row(class)).into(),
            d.title.as_str().into(),
        ]);
    }
    out += &table.render_within(2, width);
    out += &wrap(LEGEND, 2, width);
    out
}

/// Returns a link to a source, or its package and path as code.
fn linked(s: &Source) -> String {
    match s.place.starts_with("https://") {
        true => format!("<{}>", s.place),
        false => format!("`{}`", s.place),
    }
}

/// Returns the page `docs/defaults.md`.
pub fn markdown(data: &Defaults) -> String {
    let mut out =
        "# What distributions set\n\nGenerated by `make docs` from a table of the program; a \
                   test compares them.\n\n"
            .to_owned();
    for text in [
        "Linux chooses an I/O scheduler for each disk when it finds the disk. Distributions can \
         change that choice with a udev rule, with a TuneD profile or, on Android, with an init \
         file. This page says what the files of each distribution do, and names every file that was \
         read. `seekwell defaults` prints the table. `seekwell defaults --device DEVICE` prints the \
         column for the class of a modelled device.",
        "`seekwell defaults --evidence` simulates one device of each class with the workloads of \
         `seekwell compare`. It prints which scheduler the runs recommend, and how far the choice \
         of each distribution is from it. These workloads are those of a desktop: one of them \
         starts a program while a file is copied. For a server, name its workloads with `-w`. A \
         recommendation for your own disk comes from `seekwell recommend` or [`seekwell \
         predict`](predict.md).",
    ] {
        out += &wrap(text, 0, PAGE);
        out.push('\n');
    }
    let heads = CLASSES.map(|c| format!(" {} |", c.name())).concat();
    out += &format!(
        "| distribution |{heads}\n|---|{}\n",
        "---|".repeat(CLASSES.len())
    );
    for d in &data.distributions {
        let cells = CLASSES
            .map(|c| format!(" {} |", cell(d.row(c), " \\*")))
            .concat();
        out += &format!("| [{}](#{}) |{cells}\n", d.name, d.name);
    }
    out.push('\n');
    let legend = LEGEND.replacen('*', "\\*", 1);
    out += &wrap(&legend, 0, PAGE);
    out.push('\n');
    for word in classes_in_words() {
        out += &format!("- {word}\n");
    }
    for d in &data.distributions {
        out += &format!("\n## {}\n\n", d.name);
        out += &wrap(&format!("{}. {}", d.title, d.about), 0, PAGE);
        out.push('\n');
        if !d.settings.is_empty() {
            out += "Other settings:\n\n";
            for setting in settings_in_words(d) {
                out += &item(&setting);
            }
            out.push('\n');
        }
        out += "Sources:\n\n";
        for s in d.sources().into_iter().filter_map(|id| data.source(id)) {
            out += &format!("- {}\n", linked(s));
            let said = format!("{} (read {}): {}.", s.version, s.read, s.shows);
            for line in wrap(&said, 0, PAGE).lines() {
                out += &format!("  {}\n", line.trim_start());
            }
        }
    }
    out
}

fn item(text: &str) -> String {
    let lines = wrap(text, 0, PAGE);
    let mut out = String::new();
    for (i, line) in lines.lines().enumerate() {
        let start = if i == 0 { "- " } else { "  " };
        out += &format!("{start}{}\n", line.trim_start());
    }
    out
}

/// The choice of some distributions for a device, compared with the recommendation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The scheduler with its tunables.
    pub scheduler: String,
    /// Names of the distributions.
    pub distributions: Vec<String>,
    /// Whether it is the recommended scheduler.
    pub recommended: bool,
    /// The effect relative to the recommended scheduler, with its interval, in words. Without a
    /// recommendation, it is relative to the kernel's choice.
    pub effect: String,
}

/// What the runs on one device show about the choices of distributions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Name of the class.
    pub class: Class,
    /// The modelled device.
    pub device: String,
    /// The recommendation of the runs.
    pub recommendation: Advice,
    /// The scheduler that `effect` refers to.
    pub against: String,
    /// The choices, the recommended one first.
    pub choices: Vec<Choice>,
    /// Distributions without a known scheduler for the class.
    pub not_found: Vec<String>,
    /// What the results depend on besides the schedulers.
    pub note: String,
}

/// Returns the schedulers that distributions set for a class, each with the names of the
/// distributions, in the order of the table.
pub fn choices(class: Class, chosen: &[&Distribution]) -> Vec<(String, Vec<String>)> {
    let mut out: Vec<(String, Vec<String>)> = Vec::new();
    for d in chosen {
        let Some(setup) = d.row(class).and_then(Row::setup) else {
            continue;
        };
        match out.iter_mut().find(|o| o.0 == setup) {
            Some(found) => found.1.push(d.name.clone()),
            None => out.push((setup, vec![d.name.clone()])),
        }
    }
    out
}

/// Returns the results with this reference.
fn turned(results: &Results, reference: usize) -> Results {
    let mut out = results.clone();
    for cell in &mut out.cells {
        cell.reference = reference;
    }
    out
}

/// Returns the index of the scheduler that the kernel chooses for the class, if it ran.
fn kernels_choice(class: Class, results: &Results) -> Option<usize> {
    let upstream = defaults().distribution("upstream").ok()?;
    let name = upstream.row(class)?.setup()?;
    results.treatments.iter().position(|t| t.label == name)
}

/// Judges the choices of distributions by the runs on one device. The reference of the
/// recommendation is the kernel's choice for the class. Returns `None` if the results contain
/// nothing to compare.
pub fn evidence(
    class: Class,
    device: &str,
    chosen: &[&Distribution],
    results: &Results,
) -> Option<Evidence> {
    let own = kernels_choice(class, results).map(|k| turned(results, k));
    let results = own.as_ref().unwrap_or(results);
    let analysis = analyse(results);
    let recommendation = all(results, &analysis).into_iter().next()?;
    let group = analysis.groups.first()?;
    // The effects are those of the analysis whose reference is the recommended scheduler.
    let against = match &recommendation.scheduler {
        Some(_) => group.pick.unwrap_or(group.reference),
        None => group.reference,
    };
    let turned = analyse(&turned(results, against));
    let group = turned.groups.first()?;
    let known = recommendation.scheduler.is_some();
    let mut list: Vec<Choice> = Vec::new();
    for (scheduler, distributions) in choices(class, chosen) {
        let Some(t) = turned.treatments.iter().position(|l| *l == scheduler) else {
            continue;
        };
        let same = t == against;
        let effect = match (same, known) {
            (true, true) => "the recommendation".to_owned(),
            (true, false) => "the kernel's choice".to_owned(),
            _ => compared(&turned, group, t).unwrap_or_else(|| "not compared".to_owned()),
        };
        list.push(Choice {
            scheduler,
            distributions,
            recommended: same && known,
            effect,
        });
    }
    list.sort_by_key(|c| !c.recommended);
    let not_found = chosen
        .iter()
        .filter(|d| d.row(class).is_some_and(|r| r.scheduler.is_none()));
    Some(Evidence {
        class,
        device: device.to_owned(),
        against: turned.treatments.get(against).cloned().unwrap_or_default(),
        recommendation,
        choices: list,
        not_found: not_found.map(|d| d.name.clone()).collect(),
        note: throttle::line(results),
    })
}

/// Returns a sentence about the settings of distributions that the runs do not contain. The text is
/// empty if there are none.
fn not_simulated(chosen: &[&Distribution]) -> String {
    let with = chosen.iter().filter(|d| !d.settings.is_empty());
    let each = with.map(|d| {
        let names: Vec<&str> = d.settings.iter().map(|s| s.name.as_str()).collect();
        format!("{} of {}", names.join(", "), d.name)
    });
    let each: Vec<String> = each.collect();
    match each.is_empty() {
        true => String::new(),
        false => format!(
            "The runs do not contain these settings: {}.",
            each.join("; ")
        ),
    }
}

/// Returns the evidence for all devices as text.
pub fn evidence_text(all: &[Evidence], chosen: &[&Distribution], width: usize) -> String {
    let mut out = String::new();
    for (i, e) in all.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        paint(
            &mut out,
            &format!("{}: {}", e.class.name(), e.class.about()),
            HEAD,
        );
        out.push('\n');
        out += &answers(std::slice::from_ref(&e.recommendation), width);
        let effect = format!("AGAINST {}", in_prose(&e.against));
        let mut table = Table::new(&[
            ("SET", Align::Left),
            (&effect, Align::Left),
            ("BY", Align::Left),
        ]);
        for c in &e.choices {
            table.row(vec![
                painted(c.scheduler.as_str(), NAME),
                c.effect.as_str().into(),
                c.distributions.join(", ").into(),
            ]);
        }
        if !table.is_empty() {
            out += &table.render_within(2, width);
        }
        if !e.not_found.is_empty() {
            out += &wrap(&format!("Not found: {}.", e.not_found.join(", ")), 2, width);
        }
        out += &wrap(&e.note, 2, width);
    }
    let missing = not_simulated(chosen);
    if !all.is_empty() && !missing.is_empty() {
        out.push('\n');
        out += &wrap(&missing, 0, width);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::analysed;

    fn chosen() -> Vec<&'static Distribution> {
        defaults().distributions.iter().collect()
    }

    #[test]
    fn table_marks_the_schedulers_that_a_file_sets() {
        let text = text(defaults(), &chosen(), 120);
        let text = anstream::adapter::strip_str(&text).to_string();
        let line = |name: &str| {
            let found = text.lines().find(|l| l.trim_start().starts_with(name));
            found
                .unwrap_or_default()
                .split_whitespace()
                .collect::<Vec<_>>()
        };
        assert_eq!(line("cachyos ")[1..4], ["bfq*", "mq-deadline*", "kyber*"]);
        assert_eq!(
            line("debian ")[1..4],
            ["mq-deadline", "mq-deadline", "none"]
        );
        assert_eq!(line("pixel-8 ")[1..3], ["-", "bfq*"]);
        assert_eq!(line("ubuntu ")[1..3], ["not", "found"]);
    }

    /// Returns the evidence of runs with these values, for the schedulers `none`, mq-deadline and
    /// bfq. Larger values are better.
    fn told(values: &[f64]) -> Evidence {
        let names = ["none", "mq-deadline", "bfq"];
        let cell = ("sda", "copy", "MB/s", true, values);
        let (mut results, _) = analysed(&names, &[cell]);
        for c in &mut results.cells {
            c.reference = 1;
        }
        evidence(Class::Hdd, "sda", &chosen(), &results).expect("evidence")
    }

    #[test]
    fn choice_behind_the_recommendation_has_an_effect_and_an_interval() {
        let e = told(&[100.0, 100.0, 150.0]);
        assert_eq!(e.recommendation.headline, "Take bfq");
        assert_eq!(e.against, "bfq");
        assert_eq!(e.choices[0].scheduler, "bfq");
        assert!(e.choices[0].recommended && e.choices[0].effect == "the recommendation");
        let other = &e.choices[1];
        assert_eq!(other.scheduler, "mq-deadline");
        assert!(other.effect.contains("behind bfq"), "{}", other.effect);
        assert!(other.distributions.contains(&"debian".to_owned()));
        assert_eq!(e.not_found, ["ubuntu", "arch"]);
        let text = evidence_text(&[e], &chosen(), 100);
        let text = anstream::adapter::strip_str(&text).to_string();
        assert!(
            text.contains("AGAINST bfq") && text.contains("Not found: ubuntu, arch."),
            "{text}"
        );
    }

    #[test]
    fn equal_choices_do_not_differ() {
        let e = told(&[100.0, 100.0, 100.0]);
        assert_eq!(e.recommendation.headline, "It does not matter here");
        let effects: Vec<&str> = e.choices.iter().map(|c| c.effect.as_str()).collect();
        assert_eq!(effects, ["the recommendation", "no difference within 2 %"]);
    }
}
