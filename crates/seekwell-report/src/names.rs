//! Names of strangers (workloads, traces, processes) as text and as Markdown: in neither they move
//! the cursor, turn the direction of writing, or become markup.

pub use seekwell_core::foreign::plain;

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
