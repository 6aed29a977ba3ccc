//! The styles of reports, named by their meaning.

use anstyle::{AnsiColor, Style};

/// Column heads and titles.
pub const HEAD: Style = Style::new().bold();
/// Names that the user can type.
pub const NAME: Style = AnsiColor::Cyan.on_default();
/// Success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Differences and errors.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// Warnings.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// Additional information.
pub const DIM: Style = Style::new().dimmed();
/// Normal text.
pub const PLAIN: Style = Style::new();
