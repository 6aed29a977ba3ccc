//! Bar charts: rows with names, and columns next to each other with one value per row.

use super::{Anchor, LEFT, PLAIN, Picture, SMALL, WIDE, lines, width};

/// A value, its text, and its range if there were several runs.
#[derive(Clone, Debug)]
pub struct Bar {
    pub value: f64,
    pub text: String,
    pub range: Option<(f64, f64)>,
    /// Whether the value is better than the others.
    pub best: bool,
}

/// A quantity with one bar per row. A row without a value has no bar.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub bars: Vec<Option<Bar>>,
}

/// Distance between rows, in SVG units.
const ROW: f64 = 24.0;
/// Height of a bar, in SVG units.
const HIGH: f64 = 16.0;
/// Distance between columns, in SVG units.
const GAP: f64 = 18.0;
/// Maximum number of columns next to each other.
const BESIDE: usize = 3;
/// Maximum length of a row's name, in letters.
const NAME: usize = 34;

/// Shortens a name in its middle, because names of schedulers differ at both ends.
fn shorter(name: &str) -> String {
    let n = name.chars().count();
    if n <= NAME {
        return name.to_owned();
    }
    let head = name.chars().take(NAME / 2);
    let tail = name.chars().skip(n - (NAME - NAME / 2 - 1));
    head.chain(['…']).chain(tail).collect()
}

/// Draws rows of bars below the existing picture. Columns that do not fit are drawn below the
/// others.
pub fn bars(p: &mut Picture, rows: &[String], columns: &[Column]) {
    let rows: Vec<String> = rows.iter().map(|r| shorter(r)).collect();
    let names = rows.iter().map(|r| width(r, PLAIN)).fold(40.0, f64::max);
    for some in columns.chunks(BESIDE) {
        let all = WIDE - 2.0 * LEFT - names - 10.0;
        let each = (all - GAP * (some.len() - 1) as f64) / some.len() as f64;
        let heads: Vec<Vec<String>> = some.iter().map(|c| lines(&c.name, SMALL, each)).collect();
        let deep = heads.iter().map(Vec::len).max().unwrap_or(1);
        let top = p.y + 6.0 + 15.0 * deep as f64;
        for (i, name) in rows.iter().enumerate() {
            let y = top + ROW * i as f64;
            p.text(LEFT + names, y + HIGH + 1.0, Anchor::End, name);
        }
        for (k, (column, head)) in some.iter().zip(&heads).enumerate() {
            let x = LEFT + names + 10.0 + (each + GAP) * k as f64;
            for (i, line) in head.iter().enumerate() {
                let y = top - 15.0 * (deep - 1 - i) as f64 - 4.0;
                p.small(x, y, Anchor::Start, line);
            }
            draw_bar(p, column, x, top, each);
        }
        p.y = top + ROW * rows.len() as f64 + 8.0;
    }
}

fn draw_bar(p: &mut Picture, column: &Column, x: f64, top: f64, wide: f64) {
    let drawn = || column.bars.iter().flatten();
    let text = drawn().map(|b| width(&b.text, SMALL)).fold(0.0, f64::max);
    let most = drawn()
        .map(|b| b.range.map_or(b.value, |r| r.1))
        .filter(|v| v.is_finite())
        .fold(0.0, f64::max);
    let room = (wide - text - 6.0).max(20.0);
    let scale = |v: f64| match most > 0.0 && v.is_finite() {
        true => (v.max(0.0) / most * room).max(0.0),
        false => 0.0,
    };
    for (i, bar) in column.bars.iter().enumerate() {
        let y = top + ROW * i as f64 + 4.0;
        let Some(bar) = bar else {
            p.small(x, y + HIGH - 3.0, Anchor::Start, "–");
            continue;
        };
        let class = if bar.best { "best" } else { "bar" };
        let w = scale(bar.value).max(1.0);
        p.push(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{HIGH}\" rx=\"2\" \
             class=\"{class}\" data-value=\"{}\">",
            bar.value
        ));
        p.title(&format!("{}: {}", column.name, bar.text));
        p.push(format_args!("</rect>"));
        let mut end = w;
        if let Some((least, most)) = bar.range.filter(|r| r.1 > r.0) {
            let (a, b, mid) = (x + scale(least), x + scale(most), y + HIGH / 2.0);
            let ends = format!(
                "M{a:.1} {mid:.1}H{b:.1}M{a:.1} {:.1}v6M{b:.1} {:.1}v6",
                mid - 3.0,
                mid - 3.0
            );
            p.line(ends, "range", 1.2);
            end = end.max(scale(most));
        }
        p.styled(
            x + end + 5.0,
            y + HIGH - 3.5,
            SMALL,
            "",
            Anchor::Start,
            bar.best,
            &bar.text,
        );
    }
}
