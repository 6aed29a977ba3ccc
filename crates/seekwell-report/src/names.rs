//! Names of strangers (workloads, traces, processes) as text and as Markdown: in neither they move
//! the cursor, turn the direction of writing, or become markup.

/// A text in which nothing moves the cursor or turns the direction of writing.
pub fn plain(text: &str) -> String {
    let turns = |c: char| {
        matches!(c,
            '\u{200e}' | '\u{200f}' | '\u{061c}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let safe = |c: char| {
        if c.is_control() || turns(c) {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(safe).collect()
}

/// The same in Markdown, where a name is no markup.
pub fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in plain(text).chars() {
        if "\\`*_[]<>#|~@".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
