//! The page of a trace: one HTML file without scripts, network or fonts.

use super::{Grid, grids, heading, picture, words};
use crate::names;
use crate::plain::{OWN, STYLE};
use crate::table::Align;
use minijinja::value::Serde;
use minijinja::{Environment, context};
use seekwell_trace::survey::Survey;
use serde::Serialize;

const PAGE: &str = concat!(
    include_str!("../../page/head.html"),
    include_str!("../../page/trace.html")
);

#[derive(Serialize)]
struct Shown {
    title: &'static str,
    heads: Vec<(String, bool)>,
    rows: Vec<Vec<String>>,
}

fn shown(g: Grid) -> Shown {
    let lower = |h: &(&str, Align)| (h.0.to_lowercase(), h.1 == Align::Right);
    Shown {
        title: g.title,
        heads: g.heads.iter().map(lower).collect(),
        rows: g.rows,
    }
}

/// Returns the page.
///
/// # Errors
///
/// An error in the template. A trace cannot cause an error.
pub fn page(s: &Survey) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("trace.html", PAGE)?;
    let tables: Vec<Shown> = grids(s).into_iter().map(shown).collect();
    let again = format!("seekwell report {}", names::plain(&s.name));
    environment.get_template("trace.html")?.render(context! {
        title => heading(s),
        sentences => words::sentences(s),
        tables => Serde(tables),
        map => picture::map_svg(s),
        course => picture::course_svg(s),
        warnings => s.warnings.iter().map(|w| names::plain(w)).collect::<Vec<_>>(),
        events => s.events,
        again,
        style => STYLE,
        sheet => OWN,
    })
}
