//! Plots of curves: in braille dots for a terminal, and as a self-contained SVG.
//!
//! The y-axis begins at 0. The names of the curves are written at their right ends, so that a plot
//! is readable without colours.

mod svg;

pub use svg::svg;

use crate::style::{DIM, HEAD};
use crate::table::paint;
use crate::units::three;
use anstyle::{AnsiColor, Style};
use seekwell_evidence::curves::{Axis, Plot};

/// Colours of the curves, in their order.
const PENS: [Style; 4] = [
    AnsiColor::Cyan.on_default(),
    AnsiColor::Yellow.on_default(),
    AnsiColor::Green.on_default(),
    AnsiColor::Magenta.on_default(),
];

/// Height of a plot on a terminal, in rows of characters.
const ROWS: usize = 12;

/// Returns round numbers from 0 to `top` or slightly above. There are about `about` steps, each 1,
/// 2 or 5 times a power of ten.
pub(crate) fn ticks(top: f64, about: usize) -> Vec<f64> {
    let raw = (top / about as f64).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|m| m * power)
        .into_iter()
        .find(|s| *s >= raw * 0.999)
        .unwrap_or(10.0 * power);
    let n = (top / step - 1e-9).ceil().max(1.0) as u64;
    (0..=n).map(|i| i as f64 * step).collect()
}

/// Formats the number of a tick with the digits that it needs.
pub(crate) fn number(x: f64) -> String {
    if x != 0.0 && x.abs() < 1.0 {
        let text = format!("{x:.4}");
        text.trim_end_matches('0').to_owned()
    } else if x.fract() == 0.0 && x < 1e15 {
        crate::units::count(x as u64)
    } else {
        three(x)
    }
}

/// Maps values to fractions of the width and of the height.
struct Frame {
    x: (f64, f64),
    doubling: bool,
    x_ticks: Vec<f64>,
    y_ticks: Vec<f64>,
}

impl Frame {
    fn for_plot(plot: &Plot) -> Frame {
        let all = || plot.curves.iter().flat_map(|c| &c.points);
        let top = all().map(|p| p.1).fold(0.0, f64::max);
        let first = all().map(|p| p.0).fold(f64::INFINITY, f64::min);
        let last = all().map(|p| p.0).fold(0.0, f64::max);
        let y_ticks = ticks(if top > 0.0 { top } else { 1.0 }, 4);
        let doubling = plot.x.doubling && first > 0.0;
        let x_ticks = if doubling {
            plot.curves
                .first()
                .map_or(vec![], |c| c.points.iter().map(|p| p.0).collect())
        } else {
            let mut t = ticks(last, 5);
            t.retain(|x| *x <= last);
            t
        };
        let x = if doubling { (first, last) } else { (0.0, last) };
        Frame {
            x,
            doubling,
            x_ticks,
            y_ticks,
        }
    }
    fn top(&self) -> f64 {
        self.y_ticks.last().copied().unwrap_or(1.0)
    }
    /// Returns the horizontal position: 0 at the left end, 1 at the right end.
    fn across(&self, x: f64) -> f64 {
        let of = |x: f64| if self.doubling { x.log2() } else { x };
        let (a, b) = (of(self.x.0), of(self.x.1));
        if b > a { (of(x) - a) / (b - a) } else { 0.0 }
    }
    /// Returns the vertical position: 0 at the bottom, 1 at the top.
    fn up(&self, y: f64) -> f64 {
        y / self.top()
    }
}

/// Returns the height of a curve at a fraction of the width, or `None` beyond the ends of the
/// curve.
fn height(frame: &Frame, points: &[(f64, f64)], at: f64) -> Option<f64> {
    let place = |p: &(f64, f64)| (frame.across(p.0), frame.up(p.1));
    points.windows(2).find_map(|w| {
        let ((x0, y0), (x1, y1)) = (place(&w[0]), place(&w[1]));
        let inside = x0 <= at + 1e-9 && at <= x1 + 1e-9;
        inside.then(|| y0 + (y1 - y0) * if x1 > x0 { (at - x0) / (x1 - x0) } else { 0.0 })
    })
}

/// A canvas of dots. One character has two by four dots.
struct Canvas {
    columns: usize,
    cells: Vec<(u8, usize)>,
}

impl Canvas {
    fn new(columns: usize) -> Self {
        Canvas {
            columns,
            cells: vec![(0, 0); columns * ROWS],
        }
    }
    /// Sets a dot, `x` from the left and `y` from the top.
    fn dot(&mut self, x: usize, y: usize, pen: usize) {
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let cell = &mut self.cells[y / 4 * self.columns + x / 2];
        *cell = (cell.0 | BITS[y % 4][x % 2], pen);
    }
    fn line(&self, row: usize, out: &mut String) {
        for &(bits, pen) in &self.cells[row * self.columns..(row + 1) * self.columns] {
            if bits == 0 {
                out.push(' ');
            } else {
                let dots = char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' ');
                paint(out, &dots.to_string(), PENS[pen % PENS.len()]);
            }
        }
    }
}

fn named(a: &Axis) -> String {
    match a.unit {
        "" => a.label.to_owned(),
        unit => format!("{}, {unit}", a.label),
    }
}

/// Returns the rows of the names at the right ends of the curves. Names that overlap are moved
/// apart.
fn ends(plot: &Plot, frame: &Frame) -> Vec<Option<usize>> {
    let mut rows = vec![None; ROWS];
    if plot.curves.len() < 2 {
        return rows;
    }
    for (i, c) in plot.curves.iter().enumerate() {
        let y = c.points.last().map_or(0.0, |p| frame.up(p.1));
        let wanted = ((1.0 - y) * (ROWS as f64 - 1.0)).round() as usize;
        let free = |r: &usize| rows[*r].is_none();
        let nearest = (0..ROWS).filter(free).min_by_key(|r| r.abs_diff(wanted));
        if let Some(r) = nearest {
            rows[r] = Some(i);
        }
    }
    rows
}

/// Draws a plot for a terminal in at most `width` columns.
pub fn terminal(plot: &Plot, width: usize) -> String {
    let frame = Frame::for_plot(plot);
    let labels: Vec<String> = frame.y_ticks.iter().map(|t| number(*t)).collect();
    let margin = labels.iter().map(String::len).max().unwrap_or(1);
    let names = match plot.curves.len() {
        1 => 0,
        _ => plot
            .curves
            .iter()
            .map(|c| c.name.len() + 1)
            .max()
            .unwrap_or(0),
    };
    let columns = width.saturating_sub(margin + 5 + names).clamp(16, 72);
    let (wide, high) = (columns * 2, ROWS * 4);
    let mut canvas = Canvas::new(columns);
    for (pen, c) in plot.curves.iter().enumerate() {
        let mut before: Option<usize> = None;
        for x in 0..wide {
            let at = x as f64 / (wide - 1) as f64;
            let Some(h) = height(&frame, &c.points, at) else {
                continue;
            };
            let y = ((1.0 - h.clamp(0.0, 1.0)) * (high - 1) as f64).round() as usize;
            // The line starts at the middle of the previous step, so that steep parts have no gaps.
            let (from, to) = match before {
                Some(b) if b < y => (b + 1, y),
                Some(b) if b > y => (y, b - 1),
                _ => (y, y),
            };
            (from..=to).for_each(|y| canvas.dot(x, y, pen));
            before = Some(y);
        }
    }
    let mut out = String::from("  ");
    paint(&mut out, &plot.title, HEAD);
    out.push('\n');
    out += &format!("  {}\n", named(&plot.y));
    let row_of = |share: f64| ((1.0 - share) * (ROWS as f64 - 1.0)).round() as usize;
    let ends = ends(plot, &frame);
    for (row, end) in ends.iter().enumerate() {
        let tick = frame
            .y_ticks
            .iter()
            .position(|t| row_of(frame.up(*t)) == row);
        let label = tick.map_or("", |i| &labels[i]);
        paint(&mut out, &format!("  {label:>margin$} "), DIM);
        paint(&mut out, if tick.is_some() { "┤" } else { "│" }, DIM);
        canvas.line(row, &mut out);
        if let Some(i) = *end {
            paint(
                &mut out,
                &format!(" {}", plot.curves[i].name),
                PENS[i % PENS.len()],
            );
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out += &across(plot, &frame, margin, columns);
    out
}

/// Returns the line of the x-axis with its numbers and name.
fn across(plot: &Plot, frame: &Frame, margin: usize, columns: usize) -> String {
    let mut line: Vec<char> = vec!['─'; columns];
    let mut numbers: Vec<char> = vec![' '; columns + 8];
    let mut free = 0;
    for &t in &frame.x_ticks {
        let at = (frame.across(t) * (columns - 1) as f64).round() as usize;
        let text = number(t);
        let from = at.saturating_sub(text.len() / 2);
        if from < free || from + text.len() > numbers.len() {
            continue;
        }
        line[at] = '┬';
        numbers[from..from + text.len()]
            .iter_mut()
            .zip(text.chars())
            .for_each(|(n, c)| *n = c);
        free = from + text.len() + 1;
    }
    let pad = " ".repeat(margin + 3);
    let line: String = line.into_iter().collect();
    let numbers: String = numbers.into_iter().collect();
    let mut out = String::new();
    paint(&mut out, &format!("{pad}└{line}\n"), DIM);
    paint(&mut out, &format!("{pad} {}\n", numbers.trim_end()), DIM);
    out + &format!("{pad} {}\n", named(&plot.x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_evidence::curves::Curve;

    fn plot(points: &[(f64, f64)]) -> Plot {
        let axis = Axis {
            label: "time",
            unit: "s",
            doubling: false,
        };
        Plot {
            title: "A line".into(),
            x: axis,
            y: axis,
            curves: vec![Curve {
                name: "a",
                points: points.to_vec(),
            }],
        }
    }

    #[test]
    fn ticks_are_round_and_cover_the_maximum() {
        assert_eq!(ticks(18.0, 4), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(ticks(20.0, 4), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(ticks(0.07, 4), [0.0, 0.02, 0.04, 0.06, 0.08]);
        assert_eq!(ticks(97_898.0, 5).last(), Some(&100_000.0));
        for i in 1..400 {
            let top = 1.1f64.powi(i - 200);
            let t = ticks(top, 4);
            assert!(
                *t.last().unwrap() >= top * 0.999_999 && (2..=7).contains(&t.len()),
                "{top}"
            );
        }
    }

    #[test]
    fn straight_line_is_drawn_from_corner_to_corner() {
        let text = terminal(&plot(&[(0.0, 0.0), (100.0, 20.0)]), 40);
        let plain = anstream::adapter::strip_str(&text).to_string();
        let expected = "  A line
  time, s
  20 ┤                              ⢀⠔⠊
     │                           ⢀⡠⠊⠁
     │                         ⡠⠒⠁
  15 ┤                      ⡠⠔⠉
     │                   ⢀⠔⠊
     │                ⢀⠤⠊⠁
  10 ┤             ⢀⡠⠒⠁
     │           ⡠⠔⠁
   5 ┤        ⣀⠔⠊
     │     ⢀⠤⠊
     │  ⢀⡠⠊⠁
   0 ┤⡠⠔⠁
     └┬─────┬──────┬─────┬──────┬─────┬
      0    20     40    60     80    100
      time, s
";
        assert_eq!(plain, expected, "\n{plain}");
    }

    /// Every column of a curve has a dot, for any shape.
    #[test]
    fn curves_have_no_gaps() {
        let jump = [(0.0, 1.0), (49.9, 1.0), (50.0, 9.0), (100.0, 9.0)];
        let text = terminal(&plot(&jump), 60);
        let plain = anstream::adapter::strip_str(&text).to_string();
        let rows: Vec<Vec<char>> = plain
            .lines()
            .skip(2)
            .take(ROWS)
            .map(|l| {
                l.chars()
                    .skip_while(|c| !"│┤".contains(*c))
                    .skip(1)
                    .collect()
            })
            .collect();
        let columns = rows.iter().map(Vec::len).max().unwrap();
        for x in 0..columns {
            assert!(
                rows.iter().any(|r| r.get(x).is_some_and(|c| *c != ' ')),
                "{x}\n{plain}"
            );
        }
    }

    #[test]
    fn svg_is_a_complete_document() {
        let text = svg("<a & b>", &[plot(&[(0.0, 0.0), (1.0, 2.0)])]);
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
        assert!(text.contains("&lt;a &amp; b&gt;") && text.contains("<polyline"));
        for tag in ["svg", "g", "text"] {
            let open = text.matches(&format!("<{tag} ")).count()
                + text.matches(&format!("<{tag}>")).count();
            assert_eq!(open, text.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(!text.contains("NaN") && !text.contains("inf"));
        assert!(
            !text.contains("http:") || text.matches("http:").count() == 1,
            "only the name space"
        );
    }
}
