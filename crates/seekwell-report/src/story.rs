//! The report of an experiment as Markdown for a pull request, and as text for a terminal. It
//! contains recommendations, map, verdicts, values and method, in this order.

use crate::advice::{Advice, all};
use crate::names::{escaped, plain};
use crate::page::method;
use crate::style::{DIM, HEAD};
use crate::table::{Align, Table, paint, wrap};
use crate::units::three;
use seekwell_lab::analysis::{Analysis, CellAnalysis, Side, percent, size};
use seekwell_lab::results::Results;

/// Returns the sign of a treatment in the map, relative to the best treatment of its row.
fn sign(cell: &CellAnalysis, side: &Side) -> String {
    let Some(mean) = side.mean else {
        return if side.failed > 0 { "failed" } else { "-" }.to_owned();
    };
    let value = three(mean);
    let Some(best) = cell.best else {
        return value;
    };
    if cell.level {
        return format!("{value} =");
    }
    if side.treatment == best {
        return format!("{value} *");
    }
    let Some((pair, _)) = cell.pair(best, side.treatment) else {
        return value;
    };
    if pair.near() {
        return format!("{value} =");
    }
    let times = cell.times(best, side.treatment).map(|t| t.0);
    match (cell.beats(best, side.treatment), times) {
        (true, Some(t)) => format!("{value} -{}", size(t)),
        (true, None) => format!("{value} -"),
        (false, _) => format!("{value} ?"),
    }
}

/// Returns the meaning of the signs.
fn key(analysis: &Analysis) -> String {
    format!(
        "* best of its row; -12 %: behind it by 12 %, significant; =: level, a difference above {} \
         is ruled out; ?: not decided.",
        percent(analysis.method.margin)
    )
}

fn row_name(cell: &CellAnalysis) -> String {
    let unit = match cell.metric.unit.as_str() {
        "" => cell.metric.name.clone(),
        unit => unit.to_owned(),
    };
    let better = if cell.metric.higher_is_better {
        "more"
    } else {
        "fewer"
    };
    format!("{}, {unit} ({better} is better)", cell.title())
}

fn place(device: &str, machine: &str) -> String {
    match machine {
        "" => device.to_owned(),
        machine => format!("{device}, {machine}"),
    }
}

fn title(results: &Results) -> &str {
    match (&*results.about.description, &*results.about.name) {
        ("", "") => "Which scheduler?",
        ("", name) => name,
        (description, _) => description,
    }
}

/// Returns the sentences of a recommendation.
pub fn sentences(a: &Advice) -> Vec<String> {
    let told = [&a.evidence, &a.cost, &a.throttling]
        .into_iter()
        .chain(&a.changes);
    let mut out: Vec<String> = told.filter(|t| !t.is_empty()).cloned().collect();
    out.extend(a.left_out.iter().map(|l| format!("Left out: {l}.")));
    out
}

fn figures_of<'a>(
    analysis: &'a Analysis,
    cell: &'a CellAnalysis,
) -> impl Iterator<Item = [String; 6]> + 'a {
    let or_dash = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), three);
    cell.sides.iter().map(move |s| {
        let told = cell.comparisons.iter().find(|c| c.one == s.treatment);
        let words = match told {
            Some(c) => c.words.clone(),
            None => "the reference".to_owned(),
        };
        let n = match s.failed {
            0 => s.n.to_string(),
            failed => format!("{} ({failed} failed)", s.n),
        };
        let label = analysis.treatments.get(s.treatment).map_or("?", |t| t);
        [
            label.to_owned(),
            or_dash(s.mean),
            or_dash(s.sd),
            or_dash(s.se),
            n,
            words,
        ]
    })
}

const FIGURES: [(&str, Align); 6] = [
    ("SCHEDULER", Align::Left),
    ("MEAN", Align::Right),
    ("SD", Align::Right),
    ("SE", Align::Right),
    ("N", Align::Right),
    ("AGAINST THE REFERENCE", Align::Left),
];

/// Returns the report for a pull request.
pub fn markdown(results: &Results, analysis: &Analysis) -> String {
    let mut out = format!("## {}\n\n", escaped(title(results)));
    for a in all(results, analysis) {
        out += &format!(
            "**{}: {}.** {}\n\n",
            escaped(&place(&a.device, &a.machine)),
            escaped(&a.headline),
            escaped(&sentences(&a).join(" "))
        );
        if let Some(apply) = &a.apply {
            out += &format!("    {}\n\n", apply.command);
        }
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    for group in &analysis.groups {
        let cells: Vec<&CellAnalysis> = group.cells.iter().map(|i| &analysis.cells[*i]).collect();
        let Some(first) = cells.first() else { continue };
        let mut head = vec![escaped(&place(&group.device, &group.machine))];
        let labels = first.sides.iter();
        let label = |s: &Side| analysis.treatments.get(s.treatment).map_or("?", |t| t);
        head.extend(labels.map(|s| escaped(label(s))));
        out += &line(&head);
        let rule: Vec<String> = (0..head.len())
            .map(|i| if i == 0 { "---" } else { "---:" }.to_owned())
            .collect();
        out += &line(&rule);
        for cell in cells {
            let mut row = vec![escaped(&row_name(cell))];
            row.extend(cell.sides.iter().map(|s| escaped(&sign(cell, s))));
            out += &line(&row);
        }
        out.push('\n');
    }
    out += &format!("{}\n\n", escaped(&key(analysis)));
    out += "### Verdicts\n\n";
    for cell in &analysis.cells {
        let where_ = place(&cell.device, &cell.machine);
        let (name, said) = (escaped(&cell.title()), escaped(&cell.sentence));
        out += &format!("- {}: {name}: {said}.\n", escaped(&where_));
    }
    out += "\n<details><summary>Figures</summary>\n\n";
    for cell in &analysis.cells {
        out += &format!("{}, {}\n\n", escaped(&cell.name), escaped(&row_name(cell)));
        out += &line(&FIGURES.map(|f| f.0.to_lowercase()));
        let lean = |a: Align| if a == Align::Right { "---:" } else { "---" };
        out += &line(&FIGURES.map(|f| lean(f.1).to_owned()));
        for row in figures_of(analysis, cell) {
            out += &line(&row.map(|c| escaped(&c)));
        }
        out.push('\n');
    }
    out += "</details>\n\n### How sure\n\n";
    let (how, missing) = method(results, analysis);
    let notes = results.about.notes.iter();
    for text in how.iter().chain(&missing).chain(notes) {
        out += &format!("- {}\n", escaped(text));
    }
    out
}

/// Returns the report for a terminal.
pub fn text(results: &Results, analysis: &Analysis, width: usize) -> String {
    let mut out = String::new();
    let head = |out: &mut String, text: &str| {
        paint(out, &plain(text), HEAD);
        out.push('\n');
    };
    head(&mut out, title(results));
    out += &answers(&all(results, analysis), width);
    for group in &analysis.groups {
        let cells: Vec<&CellAnalysis> = group.cells.iter().map(|i| &analysis.cells[*i]).collect();
        let Some(first) = cells.first() else { continue };
        let label = |s: &Side| {
            let label = analysis.treatments.get(s.treatment);
            plain(label.map_or("?", |t| t))
        };
        let labels: Vec<String> = first.sides.iter().map(label).collect();
        let where_ = plain(&place(&group.device, &group.machine));
        let mut heads = vec![(where_.as_str(), Align::Left)];
        heads.extend(labels.iter().map(|l| (l.as_str(), Align::Right)));
        let mut t = Table::new(&heads);
        for cell in cells {
            let mut row = vec![plain(&row_name(cell)).into()];
            row.extend(cell.sides.iter().map(|s| sign(cell, s).into()));
            t.row(row);
        }
        out.push('\n');
        out += &t.render_fit(2, width, 1);
    }
    let mut line = String::new();
    paint(&mut line, &key(analysis), DIM);
    out += &wrap(&line, 2, width);
    out.push('\n');
    head(&mut out, "Verdicts and figures");
    for cell in &analysis.cells {
        let told = format!("{}: {}.", plain(&cell.name), plain(&cell.sentence));
        out += &wrap(&told, 2, width);
        let mut t = Table::new(&FIGURES);
        for row in figures_of(analysis, cell) {
            t.row(row.map(|c| plain(&c).into()).into());
        }
        out += &t.render_within(4, width);
    }
    out.push('\n');
    head(&mut out, "How sure");
    let (how, missing) = method(results, analysis);
    for text in how.iter().chain(&missing).chain(&results.about.notes) {
        out += &wrap(&plain(text), 2, width);
    }
    out
}

/// Returns the recommendations with their commands. Devices with equal recommendations are merged.
pub fn answers(all: &[Advice], width: usize) -> String {
    let mut alike: Vec<(&Advice, Vec<String>, Vec<&Advice>)> = Vec::new();
    for a in all {
        let same = |b: &Advice| {
            let told = |a: &Advice| (a.headline.clone(), sentences(a), a.apply.clone());
            told(a) == told(b)
        };
        let where_ = plain(&place(&a.device, &a.machine));
        match alike.iter_mut().find(|g| same(g.0)) {
            Some(g) => {
                g.1.push(where_);
                g.2.push(a);
            }
            None => alike.push((a, vec![where_], vec![a])),
        }
    }
    // With several devices, each has two values, because all recommendations share one screen.
    let figures = if alike.len() > 1 { 2 } else { 3 };
    let mut out = String::new();
    for (i, (a, places, of)) in alike.into_iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let between = if places.iter().any(|p| p.contains(',')) {
            "; "
        } else {
            ", "
        };
        let told = wrap(
            &format!("{}: {}", places.join(between), a.headline),
            0,
            width,
        );
        paint(&mut out, told.trim_end(), HEAD);
        out.push('\n');
        let told: Vec<String> = match &of[..] {
            [one] => one.figures.iter().take(figures).cloned().collect(),
            // The first value of each device.
            all => {
                let first = all.iter().zip(&places);
                let first = first.filter_map(|(a, p)| Some(format!("{p}: {}", a.figures.first()?)));
                first.take(figures).collect()
            }
        };
        for text in told {
            let text = wrap(&plain(&text), 4, width);
            out += &format!("  {}", text.trim_start());
        }
        for text in sentences(a) {
            out += &wrap(&plain(&text), 2, width);
        }
        if let Some(apply) = &a.apply {
            out += &format!("  {}\n", apply.command);
        }
    }
    out
}
