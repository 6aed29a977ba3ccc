//! Text from untrusted sources: names of processes, files, devices and workloads, and user input.
//! Such text is displayed and must have no other effect. No character of it may move the cursor,
//! control the terminal, or change the writing direction.

/// Returns true if a character has an effect other than display. These are control characters (C0,
/// DEL, C1), separators of lines and paragraphs, and marks that change the writing direction.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The character that replaces a character with such an effect.
pub const MARK: char = '\u{fffd}';

/// Returns the text with [`MARK`] in place of each character for which [`acts`] is true.
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if acts(c) { MARK } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_control_characters_are_masked() {
        let all = "\0\u{7}\u{8}\t\n\r\u{1b}\u{7f}\u{80}\u{9b}\u{9f}\u{61c}\u{200e}\u{200f}\
                   \u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\
                   \u{2068}\u{2069}";
        assert!(all.chars().all(acts));
        assert_eq!(plain(all), MARK.to_string().repeat(all.chars().count()));
        let others =
            "pgbench [kworker/0:1] \u{a0}\u{e9}\u{4e2d}\u{200d}\u{2027}\u{202f}\u{2065}\u{206a}";
        assert_eq!(plain(others), others);
    }
}
