//! Aligned text: tables of short cells, and paragraphs that are wrapped to a width.

use crate::style::{HEAD, PLAIN};
use anstyle::Style;
use std::fmt::Write;

/// Alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A text and its style.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    style: Style,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell {
            text: text.into(),
            style: PLAIN,
        }
    }
}

/// Returns a cell with a style.
pub fn painted(text: impl Into<String>, style: Style) -> Cell {
    Cell {
        text: text.into(),
        style,
    }
}

/// Minimum width of a wrapped column of words, in characters.
const WORDS: usize = 18;

/// A row of a table.
#[derive(Clone, Debug)]
enum Row {
    /// One cell for each column.
    Cells(Vec<Cell>),
    /// A heading of the rows below it, across all columns.
    Heading(Cell),
}

impl Row {
    fn cells(&self) -> &[Cell] {
        match self {
            Row::Cells(cells) => cells,
            Row::Heading(_) => &[],
        }
    }
}

/// A table with heads of columns, and with rows of as many cells.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Row>,
}

impl Table {
    /// Makes a table with these columns. If all heads are empty, the line of heads is not printed.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Table {
            columns: columns.iter().map(|c| (c.0.to_owned(), c.1)).collect(),
            rows: Vec::new(),
        }
    }
    /// Adds a row. Missing cells are empty. Too many cells are an error of the caller.
    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert!(cells.len() <= self.columns.len(), "more cells than columns");
        self.rows.push(Row::Cells(cells));
    }
    /// Adds a heading for the rows that follow. It does not widen any column.
    pub fn heading(&mut self, text: impl Into<Cell>) {
        self.rows.push(Row::Heading(text.into()));
    }
    /// Returns whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// Returns the text. The last column is wrapped so that lines fit into `width` columns. If that
    /// leaves too little space for words, the widest other column except the first is wrapped too.
    pub fn render_within(&self, indent: usize, width: usize) -> String {
        let last = self.columns.len().saturating_sub(1);
        let mut caps = self.widths();
        caps.truncate(last);
        let used = |caps: &[usize]| indent + caps.iter().map(|w| w + 2).sum::<usize>();
        let over = (used(&caps) + WORDS).saturating_sub(width);
        let widest = (1..last).max_by_key(|i| caps[*i]);
        if let Some(i) = widest.filter(|_| over > 0) {
            let name = self.columns[i].0.chars().count();
            caps[i] = caps[i].saturating_sub(over).max(WORDS / 2).max(name);
        }
        caps.push(width.saturating_sub(used(&caps)).max(WORDS));
        let mut t = Table {
            columns: self.columns.clone(),
            rows: Vec::new(),
        };
        for row in &self.rows {
            let Row::Cells(row) = row else {
                t.rows.push(row.clone());
                continue;
            };
            let cells = row.iter().zip(&caps);
            let cells = cells.map(|(cell, cap)| match cell.text.chars().count() > *cap {
                true => wrap(&cell.text, 0, *cap),
                false => cell.text.clone(),
            });
            let cells: Vec<String> = cells.collect();
            let high = cells.iter().map(|c| c.lines().count()).max().unwrap_or(0);
            for n in 0..high.max(1) {
                let part = cells.iter().zip(row);
                let part =
                    part.map(|(c, cell)| painted(c.lines().nth(n).unwrap_or(""), cell.style));
                t.rows.push(Row::Cells(part.collect()));
            }
        }
        t.render(indent)
    }
    /// Returns the text in at most `width` columns, if single cells allow this. Columns that do not
    /// fit are printed below, in a second table. Each table begins with the first `keys` columns.
    pub fn render_fit(&self, indent: usize, width: usize, keys: usize) -> String {
        let widths = self.widths();
        let least = indent + widths.iter().take(keys).map(|w| w + 2).sum::<usize>();
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let mut used = usize::MAX;
        for (i, w) in widths.iter().enumerate().skip(keys) {
            used = used.saturating_add(w + 2);
            // The last column is not followed by two blanks.
            if used > width + 2 {
                parts.push((0..keys).collect());
                used = least + w + 2;
            }
            if let Some(p) = parts.last_mut() {
                p.push(i);
            }
        }
        if parts.len() < 2 {
            return self.render(indent);
        }
        parts.iter().map(|p| self.only(p).render(indent)).collect()
    }
    /// Returns whether the table fits into `width` columns.
    pub fn fits(&self, indent: usize, width: usize) -> bool {
        self.wide(indent) <= width
    }
    /// Removes the columns with these heads, in this order, until the table fits.
    pub fn without(self, heads: &[&str], indent: usize, width: usize) -> Table {
        let mut t = self;
        for head in heads {
            if t.fits(indent, width) {
                break;
            }
            let kept: Vec<usize> = (0..t.columns.len())
                .filter(|i| t.columns[*i].0 != *head)
                .collect();
            t = t.only(&kept);
        }
        t
    }
    /// Adds a last column of words, with one cell per row.
    pub fn with(mut self, head: &str, cells: Vec<Cell>) -> Table {
        let others = self.columns.len();
        self.columns.push((head.to_owned(), Align::Left));
        let rows = self.rows.iter_mut().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Heading(_) => None,
        });
        for (row, cell) in rows.zip(cells) {
            row.resize(others, "".into());
            row.push(cell);
        }
        self
    }
    /// Returns the width of the table in columns of text.
    pub fn wide(&self, indent: usize) -> usize {
        let used: usize = self.widths().iter().map(|w| w + 2).sum();
        (indent + used).saturating_sub(2)
    }
    /// Returns a table that has only these columns.
    fn only(&self, columns: &[usize]) -> Table {
        let row = |r: &Row| {
            let Row::Cells(r) = r else { return r.clone() };
            let cell = |i: &usize| r.get(*i).cloned().unwrap_or_else(|| "".into());
            Row::Cells(columns.iter().map(cell).collect())
        };
        Table {
            columns: columns.iter().map(|i| self.columns[*i].clone()).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|c| c.0.chars().count()).collect();
        for row in &self.rows {
            for (w, cell) in widths.iter_mut().zip(row.cells()) {
                *w = (*w).max(cell.text.chars().count());
            }
        }
        widths
    }
    /// Returns the text. Each line is indented by `indent` blanks.
    pub fn render(&self, indent: usize) -> String {
        let widths = self.widths();
        let mut out = String::new();
        if self.columns.iter().any(|c| !c.0.is_empty()) {
            let heads: Vec<Cell> = self.columns.iter().map(|c| painted(&c.0, HEAD)).collect();
            self.line(&mut out, &heads, &widths, indent);
        }
        for row in &self.rows {
            match row {
                Row::Cells(cells) => self.line(&mut out, cells, &widths, indent),
                Row::Heading(cell) => {
                    out.extend(std::iter::repeat_n(' ', indent));
                    paint(&mut out, &cell.text, cell.style);
                    out.push('\n');
                }
            }
        }
        out
    }

    fn line(&self, out: &mut String, cells: &[Cell], widths: &[usize], indent: usize) {
        let Some(last) = cells.iter().rposition(|c| !c.text.is_empty()) else {
            out.push('\n');
            return;
        };
        out.extend(std::iter::repeat_n(' ', indent));
        for (i, cell) in cells.iter().enumerate().take(last + 1) {
            let pad = widths[i] - cell.text.chars().count();
            let right = self.columns[i].1 == Align::Right;
            if i > 0 {
                out.push_str("  ");
            }
            if right {
                out.extend(std::iter::repeat_n(' ', pad));
            }
            // Blanks at the end of a cell are not styled, so that they can be removed at the end of
            // a line.
            let text = cell.text.trim_end_matches(' ');
            paint(out, text, cell.style);
            out.push_str(&cell.text[text.len()..]);
            if !right && i < last {
                out.extend(std::iter::repeat_n(' ', pad));
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
}

/// Returns the width of a line on a terminal. Styles have no width.
pub fn columns_of(line: &str) -> usize {
    let mut rest = line;
    let mut n = 0;
    while let Some(i) = rest.find('\u{1b}') {
        n += rest[..i].chars().count();
        rest = rest[i..].find('m').map_or("", |e| &rest[i + e + 1..]);
    }
    n + rest.chars().count()
}

/// Puts two blocks of lines next to each other if they fit into `width`, and otherwise below each
/// other.
pub fn side_by_side(left: &str, right: &str, width: usize) -> String {
    let widest = |s: &str| s.lines().map(columns_of).max().unwrap_or(0);
    let at = widest(left) + 2;
    if left.is_empty() || right.is_empty() || at + widest(right) > width {
        return format!("{left}{right}");
    }
    let mut out = String::new();
    let (mut l, mut r) = (left.lines(), right.lines());
    loop {
        let (a, b) = (l.next(), r.next());
        if a.is_none() && b.is_none() {
            return out;
        }
        let a = a.unwrap_or("");
        out.push_str(a);
        if let Some(b) = b {
            out.extend(std::iter::repeat_n(' ', at - columns_of(a)));
            out.push_str(b);
        }
        out.push('\n');
    }
}

/// Appends a text with its style.
pub fn paint(out: &mut String, text: &str, style: Style) {
    if style == PLAIN || text.is_empty() {
        out.push_str(text);
    } else {
        // Writing to a String cannot fail.
        let _ = write!(out, "{style}{text}{style:#}");
    }
}

/// Wraps words to `width` columns, and indents each line. A word that is longer gets its own line.
/// Styles have no width and end with their word.
pub fn wrap(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut at = 0;
    for word in text.split_whitespace() {
        let n = columns_of(word);
        if at > 0 && at + 1 + n > width {
            out.push('\n');
            at = 0;
        }
        if at == 0 {
            out.extend(std::iter::repeat_n(' ', indent));
            at = indent + n;
        } else {
            out.push(' ');
            at += 1 + n;
        }
        out.push_str(word);
    }
    if at > 0 {
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_without_trailing_blanks() {
        let mut t = Table::new(&[
            ("name", Align::Left),
            ("n", Align::Right),
            ("", Align::Left),
        ]);
        t.row(vec!["a".into(), "1".into(), "x".into()]);
        t.row(vec!["long".into(), "1,000".into()]);
        let plain = t
            .render(1)
            .replace("\u{1b}[1m", "")
            .replace("\u{1b}[0m", "");
        assert_eq!(plain, " name      n\n a         1  x\n long  1,000\n");
    }

    #[test]
    fn headings_do_not_widen_columns_and_stay_with_their_rows() {
        let mut t = Table::new(&[("A", Align::Left), ("B", Align::Right), ("C", Align::Right)]);
        t.heading("a heading that is longer than all of it");
        t.row(vec!["x".into(), "1".into(), "22".into()]);
        assert_eq!(t.wide(2), 2 + 1 + 2 + 1 + 2 + 2);
        let heading = "  a heading that is longer than all of it\n";
        let plain = |text: String| anstyle_free(&text);
        assert_eq!(
            plain(t.render(2)),
            format!("  A  B   C\n{heading}  x  1  22\n")
        );
        assert_eq!(
            plain(t.render_fit(2, 9, 1)),
            format!("  A  B\n{heading}  x  1\n  A   C\n{heading}  x  22\n")
        );
        let t = t.with("W", vec!["words".into()]);
        assert_eq!(
            plain(t.render_within(2, 80)),
            format!("  A  B   C  W\n{heading}  x  1  22  words\n")
        );
    }

    #[test]
    fn colours_do_not_widen_a_column() {
        let mut t = Table::new(&[("", Align::Left), ("", Align::Left)]);
        t.row(vec![painted("ab", crate::style::BAD), "x".into()]);
        t.row(vec!["cde".into(), "y".into()]);
        let text = t.render(0);
        let plain: String = anstyle_free(&text);
        assert_eq!(plain, "ab   x\ncde  y\n");
    }

    fn anstyle_free(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(i) = rest.find('\u{1b}') {
            out.push_str(&rest[..i]);
            let end = rest[i..].find('m').map_or(rest.len(), |e| i + e + 1);
            rest = &rest[end..];
        }
        out + rest
    }

    #[test]
    fn two_text_columns_wrap_if_space_is_short() {
        let mut t = Table::new(&[
            ("NAME", Align::Left),
            ("VERSIONS", Align::Left),
            ("WHAT", Align::Left),
        ]);
        let words = "one two three four five six seven eight nine ten";
        t.row(vec!["a".into(), words.into(), words.into()]);
        let whole = anstyle_free(&t.render_within(0, 110));
        assert_eq!(whole.lines().count(), 2, "{whole}");
        for width in [50, 60, 80] {
            let text = anstyle_free(&t.render_within(0, width));
            assert!(text.lines().all(|l| l.len() <= width), "{width}\n{text}");
            for word in words.split(' ') {
                assert_eq!(text.matches(word).count(), 2, "{word} {width}\n{text}");
            }
        }
    }

    #[test]
    fn columns_that_do_not_fit_continue_below_with_the_same_keys() {
        let mut t = Table::new(&[
            ("WHO", Align::Left),
            ("ONE", Align::Right),
            ("TWO", Align::Right),
            ("THREE", Align::Right),
        ]);
        t.row(vec!["noop".into(), "1".into(), "2".into(), "3".into()]);
        let plain = |width| anstyle_free(&t.render_fit(2, width, 1));
        let whole = "  WHO   ONE  TWO  THREE\n  noop    1    2      3\n";
        assert_eq!(plain(23), whole);
        assert_eq!(
            plain(22),
            "  WHO   ONE  TWO\n  noop    1    2\n  WHO   THREE\n  noop      3\n"
        );
        for width in 13..40 {
            let text = plain(width);
            assert!(text.lines().all(|l| l.len() <= width), "{width}: {text}");
        }
    }

    #[test]
    fn least_valuable_columns_are_dropped_first() {
        let mut t = Table::new(&[
            ("WHO", Align::Left),
            ("ONE", Align::Right),
            ("TWO", Align::Right),
        ]);
        t.row(vec!["noop".into(), "1".into(), "2".into()]);
        let at = |width| {
            let t = t.clone().without(&["TWO", "ONE"], 0, width);
            anstyle_free(&t.render(0))
        };
        assert_eq!(at(14), "WHO   ONE  TWO\nnoop    1    2\n");
        assert_eq!(at(13), "WHO   ONE\nnoop    1\n");
        assert_eq!(at(8), "WHO\nnoop\n");
    }

    #[test]
    fn blocks_are_printed_side_by_side_if_they_fit() {
        let (a, b) = ("\u{1b}[1mab\u{1b}[0m\nc\n", "x\ny\nz\n");
        assert_eq!(
            anstyle_free(&side_by_side(a, b, 5)),
            "ab  x\nc   y\n    z\n"
        );
        assert_eq!(anstyle_free(&side_by_side(a, b, 4)), "ab\nc\nx\ny\nz\n");
    }

    #[test]
    fn paragraphs_wrap_at_the_width() {
        assert_eq!(wrap("aa bb cc", 2, 7), "  aa bb\n  cc\n");
        assert_eq!(wrap("overlong x", 0, 4), "overlong\nx\n");
        assert_eq!(wrap("", 0, 4), "");
    }
}
