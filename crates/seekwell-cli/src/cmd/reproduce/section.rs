//! A table of a robustness check, with text before and after it, for the terminal or a document.

use crate::fail::Failure;
use crate::out::{Out, columns, width};
use seekwell_report::table::{Align, Table, wrap};

/// A table with text before and after it.
pub struct Section {
    /// Title.
    pub title: String,
    /// Text before the table.
    pub before: Vec<String>,
    /// Column titles and alignments.
    pub head: &'static [(&'static str, Align)],
    /// Rows.
    pub rows: Vec<Vec<String>>,
    /// Text after the table.
    pub after: Vec<String>,
    /// Columns that are omitted on a narrow terminal; the last is omitted first.
    pub spare: &'static [&'static str],
}

/// Formats a row that is too wide for a table as a list of column titles and values.
fn sentence(head: &[(&str, Align)], row: &[String]) -> String {
    let told = |((name, align), cell): (&(&str, Align), &String)| match align {
        _ if cell.is_empty() => None,
        Align::Left => Some(cell.clone()),
        Align::Right => Some(format!("{} {cell}", name.to_lowercase())),
    };
    let told: Vec<String> = head.iter().zip(row).filter_map(told).collect();
    told.join("; ") + "."
}

/// Prints the section on the terminal.
pub fn show(out: &mut Out, s: &Section) -> Result<(), Failure> {
    out.prose(&s.title)?;
    for text in &s.before {
        out.text(&wrap(text, 2, width()))?;
    }
    out.line("")?;
    let mut t = Table::new(s.head);
    for row in &s.rows {
        t.row(row.iter().map(|c| c.clone().into()).collect());
    }
    let t = t.without(s.spare, 2, columns());
    if t.fits(2, columns()) {
        out.text(&t.render(2))?;
    } else {
        for row in &s.rows {
            out.text(&wrap(&sentence(s.head, row), 2, width()))?;
        }
    }
    out.line("")?;
    for text in &s.after {
        out.text(&wrap(text, 2, width()))?;
    }
    out.line("")
}

/// Writes the section as part of a document.
pub fn page(out: &mut Out, s: &Section) -> Result<(), Failure> {
    out.text(&format!("## {}\n\n", s.title))?;
    for text in &s.before {
        out.text(&super::page::prose(text))?;
    }
    let head: Vec<String> = s.head.iter().map(|h| h.0.to_lowercase()).collect();
    out.text(&super::page::row(&head))?;
    let rule = s.head.iter().map(|h| match h.1 {
        Align::Left => "---|",
        Align::Right => "---:|",
    });
    out.text(&format!("|{}\n", rule.collect::<String>()))?;
    for row in &s.rows {
        out.text(&super::page::row(row))?;
    }
    out.text("\n")?;
    for text in &s.after {
        out.text(&super::page::prose(text))?;
    }
    Ok(())
}
