//! Markdown for pull requests: one table per cell, with the reference in the first table row.

use crate::analysis::{CellAnalysis, Side, analyse};
use crate::results::Results;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Escapes a name. The result contains no markup and no invisible characters. On GitHub it does not
/// notify a person, and it does not end a table cell.
fn escaped(name: &str) -> String {
    let mut out = String::new();
    let mut all = name.chars().peekable();
    while let Some(c) = all.next() {
        let within = out.ends_with(|c: char| c.is_ascii_alphanumeric())
            && all.peek().is_some_and(char::is_ascii_alphanumeric);
        match c {
            // An underscore within a word is not markup. It stays, so that names can be found by a
            // search.
            '_' if within => out.push(c),
            '\n' | '\r' | '\t' => out.push(' '),
            // GitHub treats these characters as a mention of a person or a thread even if they are
            // HTML entities.
            '@' | '#' => {
                let _ = write!(out, "<span>{c}</span>");
            }
            c if invisible(c) => {
                let _ = write!(out, "[U+{:04X}]", u32::from(c));
            }
            c if "\\`*_{}[]<>|!~&$^\"'".contains(c) => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Returns whether a character is a control character or an invisible mark, for example of the text
/// direction.
fn invisible(c: char) -> bool {
    let marks = ['\u{200b}'..='\u{200f}', '\u{2060}'..='\u{206f}'];
    seekwell_core::foreign::acts(c) || c == '\u{feff}' || marks.iter().any(|r| r.contains(&c))
}

/// Formats a number with up to four significant digits, and always with all digits before the
/// decimal point.
fn digits(x: f64) -> String {
    let size = libm::fabs(x);
    if !size.is_finite() {
        return x.to_string();
    }
    if size != 0.0 && !(1e-4..1e9).contains(&size) {
        return format!("{x:.3e}");
    }
    let before = if size < 1.0 {
        0
    } else {
        libm::log10(size) as usize + 1
    };
    let behind = match (size, before) {
        (s, 0) if s > 0.0 => 3 + (-libm::floor(libm::log10(s))) as usize,
        (_, n) => 4usize.saturating_sub(n),
    };
    let text = format!("{x:.behind$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn or_dash(x: Option<f64>) -> String {
    x.map_or_else(|| "-".to_owned(), digits)
}

fn n(side: &Side) -> String {
    match side.failed {
        0 => side.n.to_string(),
        failed => format!("{} ({failed} failed)", side.n),
    }
}

/// Returns the name of the cell, followed by the metric if the cell has several rows.
fn heading(row: &CellAnalysis) -> String {
    match row.rows {
        1 => row.name.clone(),
        _ => format!("{}, {}", row.name, row.metric.name),
    }
}

pub(super) fn write(results: &Results, date: Option<&str>, to: &mut dyn Write) -> io::Result<()> {
    let all = analyse(results);
    writeln!(to, "## {}\n", escaped(&results.about.name))?;
    if !results.about.description.is_empty() {
        writeln!(to, "{}\n", escaped(&results.about.description))?;
    }
    for cell in &all.cells {
        writeln!(to, "### {}\n", escaped(&heading(cell)))?;
        let metric = &cell.metric;
        let better = if metric.higher_is_better {
            "more"
        } else {
            "less"
        };
        let (name, unit) = (escaped(&metric.name), escaped(&metric.unit));
        writeln!(
            to,
            "| scheduler | {name}, {unit} ({better} is better) | SD | n | against the reference |"
        )?;
        writeln!(to, "| :--- | ---: | ---: | ---: | :--- |")?;
        let reference = |s: &&Side| s.treatment == cell.reference;
        let first = cell.sides.iter().filter(reference);
        let rest = cell.sides.iter().filter(|s| !reference(s));
        for side in first.chain(rest) {
            let label = results
                .treatments
                .get(side.treatment)
                .map_or("", |t| &t.label);
            let told = cell.comparisons.iter().find(|c| c.one == side.treatment);
            let words = match told {
                Some(c) => escaped(&c.words),
                None if side.treatment == cell.reference => "reference".to_owned(),
                None => "-".to_owned(),
            };
            let (mean, sd) = (or_dash(side.mean), or_dash(side.sd));
            writeln!(
                to,
                "| {} | {mean} | {sd} | {} | {words} |",
                escaped(label),
                n(side)
            )?;
        }
        writeln!(to)?;
        if let Some(warm) = cell.warm_up.as_ref().filter(|w| w.seconds > 0) {
            let s = warm.seconds;
            writeln!(
                to,
                "The first {s} s of every run are left out as warm-up.\n"
            )?;
        }
        if !cell.sentence.is_empty() {
            writeln!(to, "{}\n", escaped(&cell.sentence))?;
        }
    }
    let percent = 100.0 * results.about.method.margin;
    let made = date.map(|d| format!(", {d} UTC")).unwrap_or_default();
    writeln!(
        to,
        "Differences under {} % do not matter here; {} comparisons, corrected together (Holm). \
         seekwell {}{made}.",
        digits(percent),
        all.comparisons,
        env!("CARGO_PKG_VERSION"),
    )?;
    for note in &results.about.notes {
        writeln!(to, "\nNote: {}", escaped(note))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        for (x, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (std::f64::consts::PI, "3.142"),
            (12_345.678, "12346"),
            (0.001_234_56, "0.001235"),
            (-250.04, "-250"),
            (1.5e12, "1.500e12"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(digits(x), text);
        }
    }

    #[test]
    fn underscores_inside_a_name_are_not_escaped() {
        assert_eq!(escaped("usr_0 read_ahead_kb"), "usr_0 read_ahead_kb");
        // An underscore at the edge of a word would be markup.
        assert_eq!(escaped("_x_ a_ _"), "&#95;x&#95; a&#95; &#95;");
    }

    #[test]
    fn markdown_escapes_every_active_character() {
        let text = escaped("a|b <script> [x](y) *z* @me #1 \u{202e}q\n\u{7}");
        let allowed = text.replace("<span>", "").replace("</span>", "");
        assert!(!allowed.contains(['|', '<', '>', '*', '[', '\n']) || !allowed.contains("[x]"));
        for bad in ["|", "<script", "[x]", "](", "*z", "\u{202e}", "\n", "\u{7}"] {
            assert!(!text.contains(bad), "{bad:?} in {text}");
        }
        assert!(
            text.contains("[U+202E]q") && text.contains("<span>@</span>me"),
            "{text}"
        );
    }
}
