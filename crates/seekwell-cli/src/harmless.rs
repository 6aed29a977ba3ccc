//! Output without the control characters of foreign text.

use seekwell_core::foreign;
use std::borrow::Cow;

/// Returns a text without control characters, except line ends, tabs and Seekwell's own colours.
/// Everything that a command prints passes through this function.
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

/// Returns the length of a sequence that sets a colour or weight at the start of the text, for
/// example `ESC [ 1 m`.
fn colour(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("\x1b[")?;
    let end = inside.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    inside[end..].starts_with('m').then_some(end + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_output_keeps_colours_and_masks_other_control_characters() {
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
