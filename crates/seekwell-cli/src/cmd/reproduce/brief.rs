//! The first screen of a reproduction: the results that decide, limited to the height of the
//! terminal. `--details` shows everything.

use super::own::{cut_off, noisy};
use super::show::{
    SKILL, SPARE, agreement, doing, heading, like, percent, scaled, signed, skill, title,
};
use crate::out::{columns, width};
use seekwell_evidence::reproduce::{Reproduced, Target};
use seekwell_report::table::{Align, Cell, Table, wrap};

const MORE: &str = "--details shows all figures and all evidence; so does docs/reproduction.md.";

/// Returns the text for one publication, or one line per publication for several.
pub fn screen(all: &[Reproduced], asked: &[Target], lines: usize) -> String {
    match all {
        [one] => of_one(one, asked, lines),
        all => of_several(all, asked, lines),
    }
}

/// Returns the first text that fits into `lines`, otherwise the last text.
fn richest(mut all: impl Iterator<Item = String>, lines: usize) -> String {
    let mut last = String::new();
    all.find(|text| {
        last.clone_from(text);
        text.lines().count() <= lines
    })
    .unwrap_or(last)
}

fn indented(text: &str) -> String {
    wrap(text, 2, width())
}

fn of_one(s: &Reproduced, asked: &[Target], lines: usize) -> String {
    let groups = s.ours.skill.len().saturating_sub(1);
    let texts = (0..=groups).rev().flat_map(|rows| {
        [true, false].map(|figures| {
            let own = if figures {
                own_figures(s)
            } else {
                String::new()
            };
            [
                wrap(&heading(&s.ours), 0, width()),
                levels(s),
                differences(s, rows),
                own,
                sentences(s, asked),
            ]
            .concat()
        })
    });
    richest(texts, lines)
}

/// Describes the agreement of the results, compared with the model without schedulers.
fn levels(s: &Reproduced) -> String {
    let mut t = Table::new(&[
        ("LEVEL", Align::Left),
        ("FIGURES", Align::Right),
        ("|LN RATIO|", Align::Right),
        ("WITHIN 35 %", Align::Right),
        ("BLIND", Align::Right),
    ]);
    let of = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.2}"));
    for l in &s.ours.level {
        t.row(vec![
            l.what.into(),
            l.figures.to_string().into(),
            of(l.median).into(),
            percent(l.near).into(),
            format!("{}, {}", of(l.blind_median), percent(l.blind_near)).into(),
        ]);
    }
    if t.is_empty() {
        return String::new();
    }
    t.render_within(2, columns())
}

/// Returns the largest groups of differences in at most `rows` rows, and the total.
fn differences(s: &Reproduced, rows: usize) -> String {
    let Some((all, groups)) = s.ours.skill.split_last() else {
        return String::new();
    };
    let mut most: Vec<_> = groups.iter().collect();
    most.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let mut t = Table::new(&SKILL);
    for row in most.iter().take(rows).copied().chain([all]) {
        t.row(skill(row).into_iter().map(Cell::from).collect());
    }
    let rest = match groups.len() - rows.min(groups.len()) {
        0 => String::new(),
        n => format!(" {n} more groups."),
    };
    let key = format!("1: differences as published; 0: no differences predicted (BLIND).{rest}");
    t.without(&SPARE, 2, columns()).render(2) + &indented(&key)
}

/// Returns all results if there are few. A test with a long name is listed by its metric.
fn own_figures(s: &Reproduced) -> String {
    let whole = table(s, |c| title(&s.ours, c));
    match whole.fits(2, columns()) {
        true => whole.render(2),
        false => table(s, |c| c.published.metric.clone()).render_within(2, columns()),
    }
}

fn table(s: &Reproduced, name: impl Fn(&seekwell_evidence::reproduce::Cell) -> String) -> Table {
    let r = &s.ours;
    let mut t = Table::new(&[
        ("TEST", Align::Left),
        ("SCHEDULER", Align::Left),
        ("PUBLISHED", Align::Right),
        ("OURS", Align::Right),
        ("RATIO", Align::Right),
    ]);
    for c in &r.cells {
        for (i, side) in c.published.sides.iter().enumerate() {
            let test = match i {
                0 => format!("{}, {}", name(c), c.published.unit),
                _ => String::new(),
            };
            let mark = |red: bool| if red { " (!)" } else { "" };
            let (red, own) = noisy(s, c, i);
            let ours = c.ours[i].as_ref();
            let ours = ours.map_or("-".to_owned(), |o| like(&side.digits, o.mean));
            let ratio = c.ratio(i).map_or("-".to_owned(), |x| format!("{x:.2}"));
            t.row(vec![
                test.into(),
                side.scheduler.clone().into(),
                format!("{}{}", side.digits, mark(red)).into(),
                format!("{ours}{}", mark(own)).into(),
                ratio.into(),
            ]);
        }
    }
    t
}

fn sentences(s: &Reproduced, asked: &[Target]) -> String {
    let r = &s.ours;
    let mut said: Vec<String> = agreement(r).into_iter().collect();
    if !r.judgements.is_empty() {
        said.push(doing(r));
    }
    if let Some(line) = scaled(s) {
        said.push(line);
    } else if r.quick {
        said.push("The deviation of the quick form is shown after a full run.".to_owned());
    }
    said.extend(cut_off(s));
    let missed = asked.iter().filter(|t| !t.met).count();
    match (asked.len(), missed) {
        (0, _) => {}
        (n, 0) => said.push(format!("Targets set in advance: all {n} are met.")),
        (n, 1) => said.push(format!("Targets set in advance: 1 of {n} is missed.")),
        (n, m) => said.push(format!("Targets set in advance: {m} of {n} are missed.")),
    }
    let said: String = said.iter().map(|line| indented(line)).collect();
    said + &wrap(MORE, 0, width())
}

fn of_several(all: &[Reproduced], asked: &[Target], lines: usize) -> String {
    let mut t = Table::new(&[
        ("PUBLICATION", Align::Left),
        ("FIGURES", Align::Right),
        ("|LN RATIO|", Align::Right),
        ("BLIND", Align::Right),
        ("SKILL", Align::Right),
        ("BOTH EQUAL", Align::Right),
        ("CAUSED", Align::Right),
    ]);
    for s in all {
        let r = &s.ours;
        let of = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.2}"));
        let level = r.level.first();
        let a = r.agreement;
        let yes = seekwell_evidence::reproduce::Doing::Yes;
        let yes = r.judgements.iter().filter(|j| j.doing == yes).count();
        let share = |n: usize, of: usize| match of {
            0 => "-".to_owned(),
            _ => format!("{n} of {of}"),
        };
        t.row(vec![
            r.name.into(),
            level
                .map_or("-".to_owned(), |l| l.figures.to_string())
                .into(),
            of(level.and_then(|l| l.median)).into(),
            of(level.and_then(|l| l.blind_median)).into(),
            signed(r.skill.last().and_then(|s| s.ours)).into(),
            share(a.right, a.compared).into(),
            share(yes, r.judgements.len()).into(),
        ]);
    }
    let form = match all.iter().any(|s| s.ours.quick) {
        true => " (quick form)",
        false => "",
    };
    let top = wrap(
        &format!("Reproduction of {} published comparisons{form}", all.len()),
        0,
        width(),
    ) + &t.render_within(2, columns())
        + &indented(
            "|LN RATIO|: median of |ln (ours / published)| of disk tests. Skill 1: differences as \
             published; 0: no differences predicted (BLIND). BOTH EQUAL: pairs without a published \
             difference that are equal in our results. CAUSED: published differences that the \
             scheduler caused.",
        );
    let targets = |ours: bool| -> String {
        let line = |t: &Target| {
            let met = if t.met { "met" } else { "MISSED" };
            let more = match ours {
                true => format!(": {}", t.ours),
                false => String::new(),
            };
            indented(&format!("{met}: {}{more}", t.asked))
        };
        asked.iter().map(line).collect()
    };
    let heads = if asked.is_empty() {
        String::new()
    } else {
        wrap("Targets set in advance, with their results:", 0, width())
    };
    let whole = |ours| format!("{top}{heads}{}{}", targets(ours), wrap(MORE, 0, width()));
    richest([true, false].into_iter().map(whole), lines)
}
