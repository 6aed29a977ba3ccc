//! The self-contained HTML page of an experiment. It shows the recommendations first, then the map,
//! every test, and the method. It uses no network, and only its own script may run.
//!
//! Every number and every sentence is computed here. The script formats, draws and filters. It
//! reads one JSON index in the page. Long data (percentiles, series, windows of events for the
//! replay) are packed in parts, which the script unpacks when the user opens them.

mod answer;
mod budget;
mod closer;
mod columns;
mod index;
mod scene;

use crate::advice::advice;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::value::Serde;
use minijinja::{Environment, context};
use seekwell_lab::analysis::Analysis;
use seekwell_lab::detail::Detail;
use seekwell_lab::results::Results;
use seekwell_lab::scenes::Scene;
use seekwell_lab::trial::Timeline;
use serde::Serialize;
use sha2::{Digest, Sha256};

const SCRIPT: &str = include_str!("../../page/dist/page.js");
const STYLE: &str = include_str!("../../page/dist/page.css");
const UPLOT_LICENCE: &str = include_str!("../../page/dist/uplot-license.txt");
const PAGE: &str = include_str!("../../page/page.html");

/// Contents of the page other than results and analysis.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Facts {
    /// The environment, as pairs of name and value.
    pub environment: Vec<(String, String)>,
    /// The command that repeats the experiment.
    pub again: String,
    /// Version of Seekwell.
    pub seekwell: String,
}

/// Returns sentences about precision, and sentences about missing results.
pub(crate) fn method(results: &Results, analysis: &Analysis) -> (Vec<String>, Vec<String>) {
    (answer::how(results, analysis), answer::missing(results))
}

/// Details that are shown on demand. A page without details has recommendations, map and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Closer<'a> {
    /// Details, indexed by the cell. The list may be shorter than the list of cells.
    pub details: &'a [Detail],
    /// Windows of events.
    pub scenes: &'a [Scene],
    /// Sentences about missing details.
    pub notes: &'a [String],
    /// The periods of a trial.
    pub timeline: Option<&'a Timeline>,
}

/// Returns the page.
///
/// # Errors
///
/// An error in the template. Results cannot cause an error.
pub fn page(
    results: &Results,
    analysis: &Analysis,
    facts: &Facts,
    closer: &Closer<'_>,
) -> Result<String, minijinja::Error> {
    let mut index = index::index(results, analysis);
    let left_bytes = budget::left(&index);
    let packed = budget::pack(closer, left_bytes);
    for (row, of) in index.rows.iter_mut().zip(&analysis.cells) {
        let part = packed.details.get(of.cell).filter(|_| of.row == 0);
        row.part = part.and_then(|p| Some(p.as_ref()?.0.clone()));
    }
    index.scenes = packed.scenes;
    for scene in &mut index.scenes {
        let first = |c: &seekwell_lab::analysis::CellAnalysis| c.cell == scene.row && c.row == 0;
        scene.row = analysis.cells.iter().position(first).unwrap_or(0);
    }
    let mut missing = answer::missing(results);
    missing.extend(closer.notes.iter().map(|n| index::sentence(n, &[])));
    missing.extend(packed.thinned);
    let parts: Vec<(String, String)> = packed
        .details
        .into_iter()
        .flatten()
        .chain(packed.lanes)
        .collect();
    let answers: Vec<_> = analysis
        .groups
        .iter()
        .map(|g| answer::build_answer(&index, analysis, g, advice(results, analysis, g)))
        .collect();
    // The end tag of a script ends it at any place, so the tag is escaped.
    let json = serde_json::to_string(&index)
        .unwrap_or_default()
        .replace('<', "\\u003c");
    let hash = STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
    let mut environment = Environment::new();
    environment.add_template("page.html", PAGE)?;
    environment.get_template("page.html")?.render(context! {
        title => index.title,
        about => Serde(answer::about(results, analysis)),
        how => Serde(answer::how(results, analysis)),
        missing => Serde(missing),
        systems => Serde(answer::systems(results)),
        schedulers => Serde(&index.schedulers),
        devices => Serde(&index.devices),
        rows => Serde(&index.rows),
        margin => seekwell_lab::analysis::percent(analysis.method.margin),
        compared => index.schedulers.len() > 1,
        paired => results.about.paired && index.schedulers.len() > 1,
        answers => Serde(answers),
        facts => Serde(facts),
        index => json,
        parts => Serde(parts),
        scenes => !index.scenes.is_empty(),
        timeline => closer.timeline.map(|t| STANDARD.encode(crate::plot::trial(t))),
        closer => index.rows.iter().any(|r| r.part.is_some()),
        script => SCRIPT,
        style => STYLE,
        licence => UPLOT_LICENCE,
        hash,
    })
}

#[cfg(test)]
mod tests;
