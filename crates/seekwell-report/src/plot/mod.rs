//! Pictures of results: self-contained SVGs without scripts, fonts or links. They are legible on
//! light and dark backgrounds.
//!
//! Pictures show the values of the tables. A mark shows its value when the pointer is above it.
//! Names come from users and files, so all text is escaped.

mod bars;
mod compare;
mod demo;
mod explain;
mod trial;

pub use compare::{Side, compare};
pub use demo::demo;
pub use explain::explain;
pub use trial::trial;

use std::fmt::{Display, Write};

/// Width of every picture, in SVG units.
const WIDE: f64 = 760.0;
/// Left edge of the text.
const LEFT: f64 = 24.0;
/// Font size of normal text, and of small text.
const PLAIN: f64 = 14.0;
const SMALL: f64 = 12.0;
/// Mean width of a letter as a fraction of the font size. It is larger than in most fonts, so that
/// texts do not overlap.
const LETTER: f64 = 0.6;

/// Colours by class, for light and dark backgrounds.
const STYLE: &str = "<style>\
    .bg{fill:#fff}text{fill:#222}.dim{fill:#666}.grid{stroke:#e2e2e2}.axis{stroke:#888;fill:none}\
    .bar{fill:#8fa3b8}.best{fill:#2563a8}.bad{fill:#b3261e}.range{stroke:#222;fill:none}\
    .wait{stroke:#b8b8b8}.path{stroke:#b8b8b8;fill:none}.read{fill:#2563a8;stroke:#2563a8}\
    .write{fill:#d1660f;stroke:#d1660f}.other{fill:#8a3f9e;stroke:#8a3f9e}.queue{stroke:#2b8a52;\
    fill:none}.hollow{fill:none}\
    @media(prefers-color-scheme:dark){.bg{fill:#16181c}text{fill:#e6e6e6}.dim{fill:#a0a4ab}\
    .grid{stroke:#33363c}.bar{fill:#5d7186}.best{fill:#69a7ef}.bad{fill:#f2857d}\
    .range{stroke:#e6e6e6}.wait{stroke:#5a5f68}.path{stroke:#5a5f68}\
    .read{fill:#69a7ef;stroke:#69a7ef}.write{fill:#f0a35e;stroke:#f0a35e}\
    .other{fill:#cf92e0;stroke:#cf92e0}.queue{stroke:#62c78b}.hollow{fill:none}}</style>";

/// Escapes text for XML, and removes characters that XML does not allow.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' | '\t' => out.push(' '),
            c if seekwell_core::foreign::acts(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

/// Returns the approximate width of a text, in SVG units.
fn width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * LETTER
}

/// Breaks text into lines of whole words. A word that is longer than a line is cut.
fn lines(text: &str, size: f64, wide: f64) -> Vec<String> {
    let most = ((wide / (size * LETTER)) as usize).max(8);
    let mut out: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = cut(word, most);
        match out.last_mut() {
            Some(l) if l.chars().count() + 1 + word.chars().count() <= most => {
                l.push(' ');
                l.push_str(&word);
            }
            _ => out.push(word),
        }
    }
    out
}

/// Cuts a text to at most `most` letters.
fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text
            .chars()
            .take(most.saturating_sub(1))
            .chain(['…'])
            .collect(),
        false => text.to_owned(),
    }
}

/// Alignment of a text: start, end or middle.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture to which parts are added at the bottom.
struct Picture {
    body: String,
    /// Height of the picture so far.
    y: f64,
}

impl Picture {
    /// Makes a picture with a heading.
    fn new(heading: &str) -> Self {
        let mut p = Picture {
            body: String::new(),
            y: 16.0,
        };
        p.title(heading);
        for line in lines(heading, 18.0, WIDE - 2.0 * LEFT) {
            p.y += 22.0;
            p.styled(LEFT, p.y, 18.0, "", Anchor::Start, true, &line);
        }
        p.y += 10.0;
        p
    }
    fn push(&mut self, args: std::fmt::Arguments<'_>) {
        // A write to a String cannot fail.
        let _ = self.body.write_fmt(args);
        self.body.push('\n');
    }
    /// Adds a text that is shown when the pointer is above the open element.
    fn title(&mut self, text: &str) {
        self.push(format_args!("<title>{}</title>", escaped(text)));
    }
    #[allow(clippy::too_many_arguments)]
    fn styled(&mut self, x: f64, y: f64, size: f64, class: &str, at: Anchor, bold: bool, t: &str) {
        let anchor = match at {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = match class {
            "" => String::new(),
            c => format!(" class=\"{c}\""),
        };
        let bold = if bold { " font-weight=\"bold\"" } else { "" };
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\"{class}{anchor}{bold}>{}</text>",
            escaped(t)
        ));
    }
    fn text(&mut self, x: f64, y: f64, at: Anchor, text: &str) {
        self.styled(x, y, PLAIN, "", at, false, text);
    }
    fn small(&mut self, x: f64, y: f64, at: Anchor, text: &str) {
        self.styled(x, y, SMALL, "dim", at, false, text);
    }
    /// Adds a paragraph below the existing picture.
    fn paragraph(&mut self, text: &str, class: &str) {
        for line in lines(text, 13.0, WIDE - 2.0 * LEFT) {
            self.y += 17.0;
            self.styled(LEFT, self.y, 13.0, class, Anchor::Start, false, &line);
        }
        self.y += 4.0;
    }
    fn line(&mut self, d: impl Display, class: &str, wide: f64) {
        self.push(format_args!(
            "<path d=\"{d}\" class=\"{class}\" stroke-width=\"{wide}\"/>"
        ));
    }
    /// Returns the whole document.
    fn finish(self) -> String {
        let high = self.y + 20.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDE} {high:.0}\" \
             width=\"{WIDE}\" height=\"{high:.0}\" font-family=\"sans-serif\" role=\"img\">\n\
             {STYLE}\n<rect class=\"bg\" width=\"{WIDE}\" height=\"{high:.0}\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// Checks of the pictures, as any XML parser would do them.
#[cfg(test)]
mod check {
    /// Panics unless all elements are properly nested and all text is escaped.
    pub fn well_formed(svg: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = svg;
        while let Some(at) = rest.find('<') {
            bare(&rest[..at]);
            let end = at + rest[at..].find('>').expect("a tag ends");
            let tag = &rest[at + 1..end];
            assert!(!tag.contains('<'), "{tag}");
            if let Some(closing) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(closing), "in {svg}");
            } else {
                let first = tag.trim_end_matches('/').split(' ').next().unwrap_or("");
                assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
                if !tag.ends_with('/') {
                    open.push(first);
                }
            }
            rest = &rest[end + 1..];
        }
        bare(rest);
        assert!(open.is_empty(), "left open: {open:?}");
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
        let links = svg.matches("http").count();
        assert_eq!(links, 1, "the name space only");
    }
    fn bare(text: &str) {
        for (i, _) in text.match_indices('&') {
            let known = ["&amp;", "&lt;", "&gt;", "&quot;"];
            assert!(known.iter().any(|k| text[i..].starts_with(k)), "{text}");
        }
        assert!(
            text.chars().all(|c| c == '\n' || !c.is_control()),
            "{text:?}"
        );
    }

    /// Panics if any two texts overlap.
    pub fn no_overlap(svg: &str) {
        let mut boxes: Vec<(f64, f64, f64, f64, &str)> = Vec::new();
        for t in svg.split("<text ").skip(1) {
            let number = |name: &str| -> f64 {
                let from = t.find(&format!("{name}=\"")).expect(name) + name.len() + 2;
                let text = &t[from..];
                text[..text.find('"').expect("ends")].parse().expect(name)
            };
            let head = t.split_once('>').expect("a tag");
            let (words, _) = head.1.split_once('<').expect("an end");
            // Real letters are narrower than the layout assumes.
            let (size, n) = (number("font-size"), words.chars().count() as f64);
            let wide = n * size * 0.5;
            let x = match head.0 {
                h if h.contains("\"middle\"") => number("x") - wide / 2.0,
                h if h.contains("\"end\"") => number("x") - wide,
                _ => number("x"),
            };
            assert!(x >= 0.0 && x + wide <= super::WIDE, "outside: {words}");
            let (top, bottom) = (number("y") - size * 0.75, number("y"));
            for b in &boxes {
                let apart = x >= b.1 || x + wide <= b.0 || top >= b.3 || bottom <= b.2;
                assert!(apart, "'{words}' lies over '{}'", b.4);
            }
            boxes.push((x, x + wide, top, bottom, words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picture_texts_are_escaped() {
        let hostile = "<img onerror=1> & \"q\" \u{1b}[31m\u{7}\u{ffff}";
        let text = escaped(hostile);
        assert_eq!(text, "&lt;img onerror=1&gt; &amp; &quot;q&quot; [31m");
        let svg = Picture::new(hostile).finish();
        check::well_formed(&svg);
        assert!(!svg.contains("<img"));
    }

    #[test]
    fn picture_texts_are_wrapped_and_long_words_cut() {
        assert_eq!(lines("one two three", 10.0, 60.0), ["one two", "three"]);
        let long = "a".repeat(30);
        assert_eq!(lines(&long, 10.0, 60.0), [format!("{}…", "a".repeat(9))]);
    }
}
