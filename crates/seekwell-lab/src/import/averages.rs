//! Recognises output that contains averages over intervals and therefore no results.

/// A tool, and words that one line of its output contains.
type Tool = (&'static str, &'static [&'static str]);

const TOOLS: &[Tool] = &[
    ("iostat", &["Device", "tps", "kB_read/s"]),
    ("iostat -x", &["Device", "r/s", "w/s", "%util"]),
    ("sar -d", &["DEV", "tps", "%util"]),
    ("vmstat", &["swpd", "free", "bi", "bo"]),
    ("iotop", &["TID", "PRIO", "USER", "DISK"]),
];

/// Returns what is wrong with the output of a tool that prints averages over intervals, and what to
/// record instead. Returns `None` for other texts.
pub fn remedy(text: &str) -> Option<String> {
    let is = |tool: &&Tool| {
        text.lines().take(200).any(|l| {
            let words: Vec<&str> = l.split_whitespace().collect();
            let has = |w: &&str| words.iter().any(|x| x.trim_end_matches(':') == *w);
            tool.1.iter().all(has)
        })
    };
    let (name, _) = TOOLS.iter().find(is)?;
    Some(format!(
        "is output of {name}, which averages all programs over intervals and so contains no runs to \
         compare. Run fio with --output-format=json once per scheduler and repetition, or record a \
         trace (seekwell record) for `seekwell report` and `seekwell replay`"
    ))
}
