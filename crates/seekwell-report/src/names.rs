//! Untrusted names (workloads, traces, processes) as text and as Markdown. The returned names
//! cannot move the cursor, change the direction of writing, or become markup.

pub use seekwell_core::foreign::plain;

/// Escapes a name for Markdown.
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
