//! One self-contained HTML page of an experiment: answers first, then the map, every test, the
//! method. No network, nothing but its own script may run.
//!
//! Every number and every sentence is made here; the script formats, draws and filters. What the
//! script needs is one JSON index in the page; what is long (percentiles, series) is in parts that
//! are packed and opened when they are looked at. Left out: the elevator replay.

mod answer;
mod index;
mod parts;

pub use parts::{Curve, Detail, Spread};

use crate::advice::advice;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::value::Serde;
use minijinja::{Environment, context};
use seekwell_lab::analysis::Analysis;
use seekwell_lab::results::Results;
use serde::Serialize;
use sha2::{Digest, Sha256};

const SCRIPT: &str = include_str!("../../page/dist/page.js");
const STYLE: &str = include_str!("../../page/dist/page.css");
const UPLOT_LICENCE: &str = include_str!("../../page/dist/uplot-license.txt");
const PAGE: &str = include_str!("../../page/page.html");

/// What stands on the page beside results and analysis.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Facts {
    /// What it ran on, a line a fact: name and value.
    pub environment: Vec<(String, String)>,
    /// The command that makes it again.
    pub again: String,
    /// Version of Seekwell.
    pub seekwell: String,
}

/// The page. `details` of a cell, by its place, are asked for one by one, so that only one is in
/// memory at a time.
///
/// # Errors
/// A fault in the template; results cannot cause one.
pub fn page(
    results: &Results,
    analysis: &Analysis,
    facts: &Facts,
    mut details: impl FnMut(usize) -> Option<Detail>,
) -> Result<String, minijinja::Error> {
    let mut index = index::index(results, analysis);
    let mut packed = Vec::new();
    for (i, row) in index.rows.iter_mut().enumerate() {
        let Some(detail) = details(i) else { continue };
        let name = format!("t{i}");
        packed.push((name.clone(), parts::pack(&detail)));
        row.part = Some(name);
    }
    let answers: Vec<_> = analysis
        .groups
        .iter()
        .map(|g| answer::of(&index, analysis, g, advice(analysis, g)))
        .collect();
    // The end tag of a script ends it wherever it stands.
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
        missing => Serde(answer::missing(results)),
        systems => Serde(answer::systems(results)),
        schedulers => Serde(&index.schedulers),
        devices => Serde(&index.devices),
        rows => Serde(&index.rows),
        margin => seekwell_lab::analysis::percent(analysis.method.margin),
        compared => index.schedulers.len() > 1,
        answers => Serde(answers),
        facts => Serde(facts),
        index => json,
        parts => Serde(packed),
        script => SCRIPT,
        style => STYLE,
        licence => UPLOT_LICENCE,
        hash,
    })
}

#[cfg(test)]
mod tests;
