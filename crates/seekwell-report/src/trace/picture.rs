//! Pictures of the accesses: a map of sectors over time, and the activity over time. Both are drawn
//! in characters and as SVG.

use super::words::{has_rate, long};
use crate::units::{bytes, rate, three, time_ns};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_trace::survey::{Heat, Survey};
use std::fmt::Write;

/// Number of rows of the map on a terminal.
const ROWS: usize = 12;
/// Width of the labels on a terminal, in columns.
const LABEL: usize = 12;
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Adds up reads and writes in the cells of a coarser grid. The cells are in order of columns, with
/// the lowest row first.
fn smaller(h: &Heat, columns: usize, rows: usize) -> (Vec<u64>, usize, usize) {
    let (columns, rows) = (columns.min(h.columns).max(1), rows.min(h.rows).max(1));
    let mut out = vec![0u64; columns * rows];
    for c in 0..h.columns {
        for r in 0..h.rows {
            let i = c * h.rows + r;
            let n = u64::from(h.reads[i]) + u64::from(h.writes[i]);
            out[c * columns / h.columns * rows + r * rows / h.rows] += n;
        }
    }
    (out, columns, rows)
}

/// Returns 0 if `n` is 0, or else a level from 1 to `most` on a logarithmic scale.
fn level(n: u64, top: u64, most: usize) -> usize {
    match (n, top) {
        (0, _) => 0,
        (_, 0 | 1) => most,
        (n, top) => {
            let x = libm::log(n as f64) / libm::log(top as f64);
            1 + (x * (most - 1) as f64 + 0.5) as usize
        }
    }
    .min(most)
}

/// Reduces the values to `columns` cells. Each cell has the maximum of its values, so that no peak
/// is lost.
fn squeezed(values: &[f64], columns: usize) -> Vec<f64> {
    let n = columns.min(values.len()).max(1);
    let mut out = vec![0.0f64; n];
    for (i, v) in values.iter().enumerate() {
        let to = &mut out[i * n / values.len()];
        *to = to.max(*v);
    }
    out
}

/// A quantity over time: its name, and its value in each step.
struct Strip {
    name: &'static str,
    values: Vec<f64>,
    /// Formats the largest value.
    most: fn(f64) -> String,
}

fn strips(s: &Survey) -> Vec<Strip> {
    let c = &s.course;
    let second = 1e9 / c.step_ns.max(1) as f64;
    let sum = |a: &[u64], b: &[u64]| -> Vec<f64> {
        a.iter()
            .zip(b)
            .map(|(a, b)| (a + b) as f64 * second)
            .collect()
    };
    let mut all = Vec::new();
    if has_rate(s) {
        all.push(Strip {
            name: "IOPS",
            values: sum(&c.reads, &c.writes),
            most: three,
        });
        all.push(Strip {
            name: "bytes",
            values: sum(&c.read_bytes, &c.write_bytes),
            most: rate,
        });
    }
    if c.max_ns.iter().any(|n| *n > 0) {
        all.push(Strip {
            name: "mean time",
            values: c.mean_ns.iter().map(|n| *n as f64).collect(),
            most: time_ns,
        });
        all.push(Strip {
            name: "longest",
            values: c.max_ns.iter().map(|n| *n as f64).collect(),
            most: time_ns,
        });
        all.push(Strip {
            name: "waiting",
            values: c.waiting.clone(),
            most: three,
        });
    }
    if s.merges.issued > 0 {
        all.push(Strip {
            name: "in device",
            values: c.in_device.clone(),
            most: three,
        });
    }
    all
}

fn place(sector: u64) -> String {
    bytes((sector * SECTOR_BYTES) as f64)
}

/// Returns the map and the activity over time in characters, with the same time axis.
pub(super) fn text(s: &Survey, width: usize) -> String {
    let h = &s.heat;
    if h.columns == 0 {
        return String::new();
    }
    let wide = width.saturating_sub(LABEL + 2).clamp(20, 120);
    let (grid, columns, rows) = smaller(h, wide, ROWS);
    let top = grid.iter().copied().max().unwrap_or(0);
    let mut out = String::from("  Place against time (darker: more)\n");
    for r in (0..rows).rev() {
        let sector = h.first_sector + h.row_sectors * (r * h.rows / rows) as u64;
        let label = if r % 3 == 0 || r + 1 == rows {
            place(sector)
        } else {
            String::new()
        };
        let cells: String = (0..columns)
            .map(|c| SHADES[level(grid[c * rows + r], top, SHADES.len() - 1)])
            .collect();
        let _ = writeln!(out, "{label:>LABEL$} {}", cells.trim_end());
    }
    for strip in strips(s) {
        let values = squeezed(&strip.values, columns);
        let top = values.iter().copied().fold(0.0, f64::max);
        let cells: String = values
            .iter()
            .map(|v| match v {
                v if *v <= 0.0 || top <= 0.0 => BARS[0],
                v => BARS[1 + ((v / top * 7.0) as usize).min(7)],
            })
            .collect();
        let (name, most) = (strip.name, (strip.most)(top));
        let _ = writeln!(out, "{name:>LABEL$} {cells}\n{:>LABEL$} up to {most}", "");
    }
    let _ = writeln!(out, "{:>LABEL$} 0 to {}", "time", long(s.span_ns));
    out
}

/// Width of the drawing, and of the labels to its left, in SVG units.
const WIDE: usize = 1000;
const LEFT: usize = 80;

fn tick(out: &mut String, y: f64, text: &str) {
    let _ = write!(
        out,
        r#"<text x="{}" y="{y:.1}" class="end">{text}</text>"#,
        LEFT - 6
    );
}

/// Draws the cells of one kind as paths, with one path per shade. Adjacent cells in a row are one
/// piece.
fn cells(h: &Heat, counts: &[u32], class: &str, high: f64) -> String {
    let top = u64::from(counts.iter().copied().max().unwrap_or(0));
    let mut paths = vec![String::new(); 6];
    let dx = (WIDE - LEFT) as f64 / h.columns as f64;
    for r in 0..h.rows {
        let y = high * (h.rows - 1 - r) as f64;
        let mut c = 0;
        while c < h.columns {
            let shade = level(u64::from(counts[c * h.rows + r]), top, 5);
            let from = c;
            while c < h.columns && level(u64::from(counts[c * h.rows + r]), top, 5) == shade {
                c += 1;
            }
            if shade > 0 {
                let (x, w) = (LEFT as f64 + dx * from as f64, dx * (c - from) as f64);
                let _ = write!(paths[shade], "M{x:.1} {y:.1}h{w:.1}v{high:.1}h-{w:.1}z");
            }
        }
    }
    let drawn = paths.iter().enumerate().filter(|(_, p)| !p.is_empty());
    drawn
        .map(|(i, p)| {
            format!(
                r#"<path class="{class}" opacity="{:.2}" d="{p}"/>"#,
                0.2 * i as f64
            )
        })
        .collect()
}

/// Returns the map as SVG.
pub(super) fn map_svg(s: &Survey) -> String {
    let h = &s.heat;
    if h.columns == 0 {
        return String::new();
    }
    let high = (330.0 / h.rows as f64).clamp(3.0, 24.0);
    let tall = high * h.rows as f64;
    let mut out = format!(
        r#"<svg class="trace" viewBox="0 0 {WIDE} {:.0}" role="img" aria-label="Sectors of requests against time: {} to {}, 0 to {}">"#,
        tall + 22.0,
        place(h.first_sector),
        place(h.first_sector + h.row_sectors * h.rows as u64),
        long(s.span_ns)
    );
    let _ = write!(
        out,
        r#"<rect class="ground" x="{LEFT}" y="0" width="{}" height="{tall:.1}"/>"#,
        WIDE - LEFT
    );
    out += &cells(h, &h.reads, "read", high);
    out += &cells(h, &h.writes, "write", high);
    for i in 0..=4 {
        let sector = h.first_sector + h.row_sectors * h.rows as u64 * i / 4;
        let y = tall - tall * i as f64 / 4.0;
        tick(&mut out, (y + 4.0).clamp(10.0, tall), &place(sector));
    }
    axis(&mut out, s, tall + 16.0);
    out + "</svg>"
}

/// Writes the times below a picture.
fn axis(out: &mut String, s: &Survey, y: f64) {
    for i in 0..=4u64 {
        let x = LEFT + (WIDE - LEFT) * i as usize / 4;
        let class = match i {
            0 => "start",
            4 => "end",
            _ => "middle",
        };
        let t = match i {
            0 => "0".to_owned(),
            i => long(s.span_ns / 4 * i),
        };
        let _ = write!(
            out,
            r#"<text x="{x}" y="{y:.1}" class="{class}">{t}</text>"#
        );
    }
}

/// Returns the activity over time as SVG: strips with one time axis, each with its largest value. A
/// peak keeps its height in a trace of any length.
pub(super) fn course_svg(s: &Survey) -> String {
    const HIGH: f64 = 56.0;
    const STEP: f64 = 78.0;
    let strips = strips(s);
    let tall = STEP * strips.len() as f64;
    let mut out = format!(
        r#"<svg class="trace" viewBox="0 0 {WIDE} {:.0}" role="img" aria-label="Performance over time: {}">"#,
        tall + 20.0,
        strips
            .iter()
            .map(|t| {
                let top = t.values.iter().copied().fold(0.0, f64::max);
                format!("{} up to {}", t.name, (t.most)(top))
            })
            .collect::<Vec<_>>()
            .join(", ")
    );
    // The last step may extend beyond the end of the trace.
    let steps = s.course.reads.len().max(1);
    for (i, strip) in strips.iter().enumerate() {
        let top = strip.values.iter().copied().fold(0.0, f64::max);
        let base = STEP * i as f64 + 16.0 + HIGH;
        let values = squeezed(&strip.values, WIDE - LEFT);
        let dx = (WIDE - LEFT) as f64 / values.len().max(1) as f64;
        let mut d = format!("M{LEFT} {base:.1}");
        for (j, v) in values.iter().enumerate() {
            let y = if top > 0.0 {
                base - HIGH * v / top
            } else {
                base
            };
            let x = LEFT as f64 + dx * j as f64;
            let _ = write!(d, "L{x:.1} {y:.1}h{dx:.1}");
        }
        let _ = write!(d, "L{WIDE} {base:.1}z");
        let _ = write!(
            out,
            r#"<text x="{LEFT}" y="{:.1}" class="start name">{}</text><path class="area" d="{d}"/>"#,
            base - HIGH - 4.0,
            strip.name
        );
        tick(&mut out, base - HIGH + 8.0, &(strip.most)(top));
        tick(&mut out, base, "0");
    }
    debug_assert!(steps > 0);
    axis(&mut out, s, tall + 14.0);
    out + "</svg>"
}

#[cfg(test)]
pub(super) fn spikes(values: &[f64], columns: usize) -> Vec<f64> {
    squeezed(values, columns)
}
