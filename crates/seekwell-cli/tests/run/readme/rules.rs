//! Tests the rules by which pages are read and updated.

use super::*;

#[test]
fn placeholders_are_filled_with_cells_and_ratios() {
    let rows = [
        serde_json::json!(["noop", "2.0"]),
        serde_json::json!(["cfq", "5.0"]),
    ];
    assert_eq!(
        filled("{0.0} {0.1}, {1.1/0.1} times", &rows),
        "noop 2.0, 2.5 times"
    );
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[test]
fn ellipsis_matches_only_omitted_lines() {
    let all = lines("a 1\nb\nc\nd\ne");
    for good in [
        "a 1\nb\nc\nd\ne",
        "a 1\n...\ne",
        "...\nc\n...",
        "a 1\n...\nc\n...\ne",
        "...",
    ] {
        assert_eq!(agrees(&lines(good), &all), Ok(()), "{good}");
    }
    for bad in [
        "a 1\nb",
        "a 2\n...\ne",
        "...\nx\n...",
        "a 1\n...\nc\n...\nb\n...\ne",
        "...\nd",
    ] {
        assert!(agrees(&lines(bad), &all).is_err(), "{bad}");
    }
}

#[test]
fn updated_output_keeps_the_ellipses() {
    let shown = lines("Took 12.5 s\n...\n  noop  1.1\n  cfq   9.0\n  ...\nend 4");
    let all = lines("Took 9 s\nx\n  noop  2.25\n  sio   7.0\n  cfq   10.0\ny\nz\nend 77");
    let new = updated_output(&shown, &all).expect("its places are found");
    let expected = "Took 9 s\n...\n  noop  2.25\n  sio   7.0\n  cfq   10.0\n  ...\nend 77";
    assert_eq!(new, lines(expected));
    assert_eq!(agrees(&new, &all), Ok(()));
    assert_eq!(updated_output(&lines("...\nnowhere\n..."), &all), None);
}

#[test]
fn commands_are_extracted_with_their_block_kind() {
    let text = "```\n$ seekwell no\n```\n```console live\n$ sudo seekwell a \\\n    -b\nout\n$ x\n\
                ```\n```console\n$ seekwell c\n```\n";
    let all = commands(text);
    let seen: Vec<_> = all
        .iter()
        .map(|s| (s.kind, s.words.join(" "), s.lines.clone()))
        .collect();
    assert_eq!(
        seen,
        [
            (Kind::Live, "sudo seekwell a -b".to_owned(), 6..7),
            (Kind::Live, "x".to_owned(), 8..8),
            (Kind::Fixed, "seekwell c".to_owned(), 11..11),
        ]
    );
}
