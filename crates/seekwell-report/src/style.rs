//! The styles of reports, by meaning.

use anstyle::{AnsiColor, Style};

/// Column heads and titles.
pub const HEAD: Style = Style::new().bold();
/// Names one can type.
pub const NAME: Style = AnsiColor::Cyan.on_default();
/// Success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Differences and errors.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What to keep in mind.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// Background knowledge.
pub const DIM: Style = Style::new().dimmed();
/// As it comes.
pub const PLAIN: Style = Style::new();
