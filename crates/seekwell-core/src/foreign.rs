//! Text of strangers: names of processes, files, devices and workloads, and what a user typed. It is
//! shown, and must not act: no character of it moves the cursor, commands the terminal, or turns the
//! direction of writing.

/// Acts instead of being shown: control characters (C0, DEL, C1), separators of lines and paragraphs,
/// and marks that turn the direction of writing.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// In the place of a character that acts.
pub const MARK: char = '\u{fffd}';

/// A text in which nothing acts: each such character is [`MARK`].
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if acts(c) { MARK } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_that_acts_is_marked_and_no_other() {
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
