//! The page of a demo or a case: one picture with its sentences, figures and steps. It is one HTML
//! file without scripts, network or fonts.

use minijinja::{Environment, context};

pub(crate) const STYLE: &str = include_str!("../page/dist/page.css");
/// Style for pages without a script, in addition to the common style.
pub(crate) const OWN: &str = include_str!("../page/trace.css");
/// The template. It shares its head with the page of a trace.
const PAGE: &str = concat!(
    include_str!("../page/head.html"),
    include_str!("../page/plain.html")
);

/// Contents of the page. Everything except the picture is plain text.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// Kind of the page in two words, for example "a demo".
    pub kind: &'static str,
    /// Heading.
    pub title: String,
    /// Sentences below the heading.
    pub sentences: Vec<String>,
    /// An SVG of [`crate::plot`], which escapes all text.
    pub picture: String,
    /// Heads of the table's columns.
    pub heads: Vec<String>,
    /// Rows of the table.
    pub rows: Vec<Vec<String>>,
    /// Steps as on a terminal, without styles.
    pub steps: String,
    /// The command that repeats the run.
    pub again: String,
}

/// Returns the page.
///
/// # Errors
///
/// An error in the template. The contents cannot cause an error.
pub fn page(p: &Plain) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("plain.html", PAGE)?;
    // The SVG is embedded in the page without its XML declaration.
    let picture = match p.picture.find("<svg") {
        Some(i) => &p.picture[i..],
        None => "",
    };
    environment.get_template("plain.html")?.render(context! {
        kind => p.kind,
        title => &p.title,
        sentences => &p.sentences,
        picture,
        heads => &p.heads,
        rows => &p.rows,
        steps => &p.steps,
        again => &p.again,
        style => STYLE,
        sheet => OWN,
    })
}

#[cfg(test)]
mod tests {
    use super::{Plain, page};

    #[test]
    fn names_are_escaped_and_the_picture_is_embedded() {
        let bad = "<img onerror=x>\"'".to_owned();
        let html = page(&Plain {
            kind: "a demo",
            title: bad.clone(),
            sentences: vec![bad.clone()],
            picture: "<?xml version=\"1.0\"?><svg><text>1</text></svg>".to_owned(),
            heads: vec![bad.clone()],
            rows: vec![vec![bad.clone()]],
            steps: bad.clone(),
            again: bad,
        })
        .expect("a page");
        assert!(!html.contains("<img") && !html.contains("<?xml"));
        assert_eq!(html.matches("&lt;img onerror=x&gt;").count(), 7);
        assert!(html.contains("<svg><text>1</text></svg>"));
    }
}
