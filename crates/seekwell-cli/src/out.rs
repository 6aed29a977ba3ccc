//! Where results go: stdout, or a file that appears whole or not at all.

use crate::fail::Failure;
use anstream::adapter::strip_str;
use seekwell_core::foreign;
use seekwell_files::Sink;
use std::borrow::Cow;
use std::io::{self, BufRead, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

/// A result under way.
pub struct Out {
    to: To,
    plain: bool,
    name: String,
}

enum To {
    Stdout(BufWriter<StdoutLock<'static>>),
    File(Late),
}

impl To {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            To::Stdout(out) => out.write_all(bytes),
            To::File(late) => late.write(bytes),
        }
    }
}

/// What is kept in memory before a file is opened.
const KEPT_BYTES: usize = 1 << 20;

/// A file that is not opened before there is much to write or all is written: a command that
/// fails, or is killed while it measures, leaves nothing behind, and a pipe's reader may come late.
struct Late {
    path: PathBuf,
    kept: Vec<u8>,
    sink: Option<Sink>,
}

impl Late {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.kept.extend_from_slice(bytes);
        if self.kept.len() < KEPT_BYTES {
            return Ok(());
        }
        let mut sink = self.emptied()?;
        sink.flush()?;
        self.sink = Some(sink);
        Ok(())
    }
    /// Opened if need be, with what was kept in it.
    fn emptied(&mut self) -> io::Result<Sink> {
        let mut sink = match self.sink.take() {
            Some(sink) => sink,
            None => Sink::open(&self.path)?,
        };
        sink.write_all(&self.kept)?;
        self.kept.clear();
        Ok(sink)
    }
}

impl Out {
    /// `None` or `-` is stdout, in colour if it is a terminal and NO_COLOR is not set. A path is
    /// checked as by [`Out::check`] and opened later.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = named(path) else {
            let stdout = io::stdout();
            let plain = anstream::AutoStream::choice(&stdout) == anstream::ColorChoice::Never;
            return Ok(Out {
                to: To::Stdout(BufWriter::new(stdout.lock())),
                plain,
                name: "standard output".to_owned(),
            });
        };
        Out::check(Some(path))?;
        let late = Late {
            path: path.to_owned(),
            kept: Vec::new(),
            sink: None,
        };
        Ok(Out {
            to: To::File(late),
            plain: true,
            name: path.display().to_string(),
        })
    }

    /// Whether a result can be written there, before minutes are spent on it. Changes nothing.
    pub fn check(path: Option<&Path>) -> Result<(), Failure> {
        let Some(path) = named(path) else {
            return Ok(());
        };
        seekwell_files::check(path).map_err(|source| Failure::Output {
            what: format!("{}: cannot be written", path.display()),
            source,
        })
    }

    /// Whether a result would take the place of what it is made from.
    pub fn apart<'a>(
        output: Option<&Path>,
        inputs: impl IntoIterator<Item = &'a Path>,
    ) -> Result<(), Failure> {
        let Some(output) = named(output) else {
            return Ok(());
        };
        match inputs.into_iter().find(|i| seekwell_files::same(output, i)) {
            None => Ok(()),
            Some(other) => Err(Failure::input(format!(
                "{}: the same file as {}, which would be lost: name another for the result",
                output.display(),
                other.display(),
            ))),
        }
    }

    /// Writes a text to a file of its own.
    pub fn whole(path: &Path, text: &str) -> Result<(), Failure> {
        let mut out = Out::open(Some(path))?;
        out.text(text)?;
        out.done()
    }

    fn failed(&self, source: io::Error) -> Failure {
        Failure::Output {
            what: format!("{}: cannot be written", self.name),
            source,
        }
    }

    /// Adds text. Names of strangers in it do nothing to a terminal.
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        let stripped = self.plain.then(|| strip_str(text).to_string());
        let text = harmless(stripped.as_deref().unwrap_or(text));
        let written = self.to.write(text.as_bytes());
        written.map_err(|e| self.failed(e))
    }
    /// Adds bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.to.write(bytes);
        written.map_err(|e| self.failed(e))
    }
    /// Adds text and a newline.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.text(text)?;
        self.text("\n")
    }
    /// Adds lines of prose, those that are too long for the terminal wrapped.
    pub fn prose(&mut self, text: &str) -> Result<(), Failure> {
        for line in text.lines() {
            match line {
                "" => self.line("")?,
                line => self.text(&seekwell_report::table::wrap(line, 0, width()))?,
            }
        }
        Ok(())
    }
    /// Adds a value as one JSON document.
    pub fn json(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        self.line(&crate::json::text(value))
    }
    /// Everything is written: a file gets its name now.
    pub fn done(mut self) -> Result<(), Failure> {
        let done = match &mut self.to {
            To::Stdout(out) => out.flush(),
            To::File(late) => late.emptied().and_then(Sink::finish),
        };
        done.map_err(|e| self.failed(e))
    }
}

/// A text with nothing in it that acts on a terminal, besides ends of lines, tabs and our own colours.
/// Everything that a command prints comes through here.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let kept = |c: char| matches!(c, '\n' | '\t');
    if !text.chars().any(|c| foreign::acts(c) && !kept(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let len = match colour(rest) {
            Some(len) => {
                out.push_str(&rest[..len]);
                len
            }
            None => {
                out.push(if foreign::acts(c) && !kept(c) {
                    foreign::MARK
                } else {
                    c
                });
                c.len_utf8()
            }
        };
        rest = &rest[len..];
    }
    Cow::Owned(out)
}

/// How long the sequence is that sets a colour or weight, if the text begins with one: `ESC [ 1 m`.
fn colour(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("\x1b[")?;
    let end = inside.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    inside[end..].starts_with('m').then_some(end + 3)
}

/// A path that is one: `-` is standard output.
fn named(path: Option<&Path>) -> Option<&Path> {
    path.filter(|p| *p != Path::new("-"))
}

/// Columns to wrap prose to: those of the terminal, at most 100.
pub fn width() -> usize {
    columns().min(100)
}

/// Columns that tables may take: COLUMNS, else those of the terminal, else 100.
pub fn columns() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let terminal = || {
        let stdout = io::stdout();
        let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
        Some(usize::from(size.ws_col)).filter(|c| *c > 0)
    };
    told.or_else(terminal).unwrap_or(100).clamp(40, 400)
}

/// A message about the run, on stderr, unless `--quiet`.
pub fn note(quiet: bool, text: &str) {
    if !quiet {
        let w = seekwell_report::style::WARN;
        let text = harmless(text);
        let _ = writeln!(anstream::stderr(), "{w}note:{w:#} {text}");
    }
}

/// A question on the terminal; the answer, without its end of line.
pub fn ask(question: &str) -> String {
    let mut err = anstream::stderr();
    let _ = write!(err, "{}", harmless(question));
    let _ = err.flush();
    let mut line = String::new();
    let _ = io::stdin().lock().read_line(&mut line);
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_pass_and_nothing_else_that_acts() {
        let good = "\x1b[1;31mbest\x1b[0m\ta\n\x1b[m";
        assert_eq!(harmless(good), good);
        let bad = "a\x1b]0;title\x07b\x1b[2Jc\r\u{9b}31md\u{202e}e\u{2028}\x1b[1";
        let mark = foreign::MARK;
        assert_eq!(
            harmless(bad),
            format!("a{mark}]0;title{mark}b{mark}[2Jc{mark}{mark}31md{mark}e{mark}{mark}[1")
        );
    }
}
