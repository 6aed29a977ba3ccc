//! The three forms of a report have the same values, and no part of a trace becomes markup.

use super::{details, markdown, page, screen};
use crate::table::columns_of;
use seekwell_trace::survey::{Survey, survey};
use seekwell_trace::{ReadOptions, from_reader};
use std::io::Cursor;

const NAME: &str = "<img onerror=x>\u{202e}\"q\" & 'a'";

fn survey_of(text: String) -> Survey {
    let options = ReadOptions {
        keep_events: true,
        ..ReadOptions::default()
    };
    let mut r = from_reader(
        "dir/<b>.blkparse",
        Cursor::new(text.into_bytes()),
        None,
        &options,
    )
    .expect("it opens");
    survey(&mut r, &options, None, |_| true).expect("it is read")
}

/// Returns a trace with a thousand sequential reads, and some writes far away.
fn sample() -> Survey {
    let mut text = String::new();
    let mut line = |us: u64, rest: &str| {
        let (s, ns) = (us / 1_000_000, us % 1_000_000 * 1000);
        text += &format!("  8,16   0        1 {s:5}.{ns:09}   697 {rest}\n");
    };
    for i in 0..1000u64 {
        let (t, write) = (i * 500, i % 10 == 9);
        let (sector, rw) = if write {
            (900_000 + i * 64, "W")
        } else {
            (i * 8, "R")
        };
        line(t, &format!("Q {rw} {sector} + 8 [{NAME}]"));
        line(t + 1, &format!("G {rw} {sector} + 8 [{NAME}]"));
        line(t + 2, &format!("I {rw} {sector} + 8 [{NAME}]"));
        line(t + 40, &format!("D {rw} {sector} + 8 [{NAME}]"));
        line(t + 240, &format!("C {rw} {sector} + 8 [0]"));
    }
    survey_of(text)
}

#[test]
fn first_screen_fits_a_terminal() {
    let s = sample();
    for width in [60, 80, 100, 200] {
        let text = screen(&s, width);
        assert!(
            text.lines().count() <= 24,
            "{}\n{text}",
            text.lines().count()
        );
        for line in text.lines() {
            assert!(columns_of(line) <= width.max(80), "{width}: {line}");
        }
    }
}

#[test]
fn text_markdown_and_html_contain_the_same_values() {
    let s = sample();
    let (text, md, html) = (
        details(&s, 200),
        markdown(&s),
        page(&s).expect("a page").replace("&#x2f;", "/"),
    );
    for sentence in super::words::sentences(&s) {
        assert!(html.contains(&sentence), "{sentence}");
        assert!(md.contains(&crate::names::escaped(&sentence)), "{sentence}");
    }
    for grid in super::grids(&s) {
        for row in &grid.rows {
            for cell in row
                .iter()
                .skip(1)
                .filter(|c| c.chars().any(|c| c.is_ascii_digit()))
            {
                let html_cell = cell.replace('<', "&lt;");
                assert!(
                    html.contains(&format!(">{html_cell}</td>")),
                    "{}: {cell}",
                    grid.title
                );
                assert!(
                    md.contains(&format!("| {cell} |")),
                    "{}: {cell}",
                    grid.title
                );
                assert!(text.contains(cell.as_str()), "{}: {cell}", grid.title);
            }
        }
    }
    // There are 900 reads in 1000 accesses. Each takes 240 us from submission, of which 40 us are
    // before the driver.
    assert!(html.contains(">240 us</td>"), "{text}");
    assert!(
        html.contains("900 reads (3.69 MB), 100 writes (410 kB)"),
        "{text}"
    );
}

#[test]
fn trace_text_never_becomes_markup() {
    let s = sample();
    let html = page(&s).expect("a page");
    assert!(!html.contains("<img") && !html.contains("<b>") && !html.contains("<script"));
    assert!(
        html.contains("&lt;img onerror"),
        "the name is there, as text"
    );
    let md = markdown(&s);
    assert!(!md.contains('\u{202e}'), "no change of direction");
    let begins = md.lines().next().expect("a line");
    assert!(begins.starts_with("## \\<b\\>"), "{begins}");
}

#[test]
fn spike_is_drawn_for_any_trace_length() {
    let mut values = vec![1.0; 100_000];
    values[77_777] = 500.0;
    for columns in [20, 68, 920] {
        let top = super::picture::spikes(&values, columns);
        assert_eq!(top.iter().copied().fold(0.0, f64::max), 500.0);
        assert_eq!(top.len(), columns);
    }
}

#[test]
fn trace_without_completions_is_reported() {
    let csv = "t_ns,op,sector,sectors\n0,R,0,8\n2000,W,8,8\n";
    let s = survey_of(csv.to_owned());
    let text = screen(&s, 80);
    assert!(text.contains("so latencies are unknown"), "{text}");
    page(&s).expect("a page");
}

/// The trace has only issues and completions. Earlier waiting times are unknown, and the report
/// must not call them small.
#[test]
fn trace_without_queue_events_reports_only_known_times() {
    let s = survey_of(
        "  8,0 2 1 8018.233161000 300 D WS 1000000 + 16 [app]\n  8,0 4 2 8018.243833000 0 C WS 1000000 + 16 [0]\n\
         \x20 8,0 2 3 8018.253161000 300 D R 1000600 + 16 [app]\n  8,0 4 4 8018.254833000 0 C R 1000600 + 16 [0]\n"
            .to_owned(),
    );
    let text = super::words::sentences(&s).join("\n");
    assert!(
        text.starts_with(
            "21.7 ms: 1 read (8.19 kB), 1 write (8.19 kB); on average 92.3 I/Os per second and 756 \
             kB/s."
        ),
        "{text}"
    );
    assert!(
        text.contains("The trace has no submission events"),
        "{text}"
    );
    let all = details(&s, 100);
    for wrong in [
        "-0.0",
        "nothing to order",
        "were merged",
        "Q2C",
        "as submitted",
    ] {
        assert!(!all.contains(wrong), "{wrong}: {all}");
    }
    assert!(all.contains("D2C") && all.contains("as issued"), "{all}");
}

#[test]
fn single_record_gives_no_rate() {
    for csv in [
        "t_ns,op,sector,sectors\n0,R,0,8\n",
        "t_ns,op,sector,sectors,t_complete\n0,R,0,8,100000\n",
        // Two records at the same instant have no rate.
        "t_ns,op,sector,sectors\n5,R,0,8\n5,R,80,8\n",
    ] {
        let s = survey_of(csv.to_owned());
        let text = details(&s, 100);
        assert!(text.contains("too few for a rate"), "{text}");
        assert!(
            !text.contains("per second") && !text.contains("IOPS") && !text.contains("B/s"),
            "{text}"
        );
    }
    let two = survey_of("t_ns,op,sector,sectors\n0,R,0,8\n500000000,R,80,8\n".to_owned());
    let text = details(&two, 100);
    assert!(
        text.contains("500 ms: 2 reads (8.19 kB); on average 4.00 I/Os per second"),
        "{text}"
    );
}
