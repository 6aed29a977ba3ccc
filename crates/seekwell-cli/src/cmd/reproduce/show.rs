//! Prints a published comparison and its simulation on the terminal.

use super::own::{OF_MEDIAN, cut_off, forms, from_median, noisy};
use crate::fail::Failure;
use crate::out::{Out, columns, width};
use seekwell_core::numbers;
use seekwell_evidence::reproduce::full::Scatter;
use seekwell_evidence::reproduce::{
    Cell, Doing, GROUPS, Judgement, Level, Ours, Pair, PublishedSide, Reproduced, Reproduction,
    Skill, Target, asked_in_full, missed,
};
use seekwell_report::table::{Align, Table, wrap};

/// Formats a number with its sign and two decimals, such as `+0.45`; a dash for `None`.
pub fn signed(x: Option<f64>) -> String {
    x.map_or("-".to_owned(), |x| numbers::signed(x, 2))
}

/// Formats a fraction in per cent.
pub fn percent(x: f64) -> String {
    format!("{:.0} %", 100.0 * x)
}

/// Formats a simulated value with the decimals of the published value.
pub fn like(digits: &str, x: f64) -> String {
    let decimals = digits.split_once('.').map_or(0, |(_, d)| d.len());
    format!("{x:.decimals$}")
}

/// Formats a published result: `107.71 (SE +/- 0.62, N = 3)`.
pub fn published(s: &PublishedSide) -> String {
    let n = s.n.map(|n| format!("N = {n}"));
    let error = s.error.map(|e| format!("{} +/- {e:.2}", s.kind_of_error));
    let more: Vec<String> = error.into_iter().chain(n).collect();
    match more.is_empty() {
        true => s.digits.clone(),
        false => format!("{} ({})", s.digits, more.join(", ")),
    }
}

/// Formats a simulated result in the same form.
pub fn ours(s: &PublishedSide, o: Option<&Ours>) -> String {
    let Some(o) = o else { return "-".to_owned() };
    let mean = like(&s.digits, o.mean);
    match o.se {
        Some(se) if s.kind_of_error == "SD" => {
            let sd = se * (o.n as f64).sqrt();
            format!("{mean} (SD +/- {sd:.2}, N = {})", o.n)
        }
        Some(se) => format!("{mean} (SE +/- {se:.2}, N = {})", o.n),
        None => mean,
    }
}

/// Describes how close the values of a set of tests are.
pub fn level(l: &Level) -> String {
    let of = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.2}"));
    format!(
        "{}: median |ln (ours / published)| {}, {} within 35 % ({} figures); blind model, which \
         predicts the published mean for every scheduler: {}, {}",
        l.what,
        of(l.median),
        percent(l.near),
        l.figures,
        of(l.blind_median),
        percent(l.blind_near)
    )
}

/// Returns the title of a group of effects.
pub fn group(letter: &str) -> &'static str {
    GROUPS
        .iter()
        .find(|g| g.letter == letter)
        .map_or("", |g| g.title)
}

/// Returns a row of the table of skills.
pub fn skill(s: &Skill) -> Vec<String> {
    let what = match (s.group.as_str(), group(&s.group)) {
        ("", _) => "all".to_owned(),
        (letter, title) => format!("{letter} {title}"),
    };
    vec![
        what,
        s.pairs.to_string(),
        percent(s.weight),
        format!("{} of {}", s.signs, s.compared),
        signed(s.ours),
        "0".to_owned(),
        signed(s.fixed),
        signed(s.permuted),
        s.as_good.map_or("-".to_owned(), percent),
    ]
}

/// Column titles of the table of skills.
pub const SKILL: [(&str, Align); 9] = [
    ("DIFFERENCES", Align::Left),
    ("PAIRS", Align::Right),
    ("WEIGHT", Align::Right),
    ("SIGN", Align::Right),
    ("OURS", Align::Right),
    ("BLIND", Align::Right),
    ("FIXED", Align::Right),
    ("PERMUTED", Align::Right),
    ("AS GOOD", Align::Right),
];

/// Columns that are omitted on a narrow terminal, in this order.
pub const SPARE: [&str; 4] = ["AS GOOD", "WEIGHT", "PAIRS", "BLIND"];

/// Definition of the skill.
pub const SKILL_IS: &str = "Skill: 1 - sum |ln ours - ln published| / sum |ln published|, over the \
    ratios of all scored pairs. A pair is scored if its difference is at least 5 % and significant \
    after Holm's correction within the test. BLIND, FIXED and PERMUTED are the skills of null \
    models. BLIND predicts no differences. FIXED predicts the mean ratio of the two schedulers in \
    all other disk tests of the system. PERMUTED uses our results with permuted scheduler labels. \
    AS GOOD is the fraction of 2,000 permutations whose skill is at least ours. WEIGHT is the \
    fraction of the total that a group contributes.";

/// Describes the agreement of the pairs without a published difference.
pub fn agreement(r: &Reproduction) -> Option<String> {
    let a = r.agreement;
    (a.pairs > 0).then(|| {
        format!(
            "Pairs without a published difference (p >= 0.05): {}. Our results are within 5 % in \
             {} of {}, those of the blind model in all.",
            a.pairs, a.right, a.compared
        )
    })
}

/// Counts the published differences by judgement.
pub fn doing(r: &Reproduction) -> String {
    let count = |d: Doing| r.judgements.iter().filter(|j| j.doing == d).count();
    format!(
        "Did the scheduler cause the difference? Of {} published differences: yes {}, no {}, \
         unknown {}.",
        r.judgements.len(),
        count(Doing::Yes),
        count(Doing::No),
        count(Doing::Unknown)
    )
}

/// Formats a pair of schedulers: `cfq : noop`.
pub fn names(c: &Cell, p: &Pair) -> String {
    let of = |i: usize| c.published.sides[i].scheduler.as_str();
    format!("{} : {}", of(p.one), of(p.other))
}

/// Returns the name of a test, with its metric if the publication has several metrics for the test.
pub fn title(r: &Reproduction, c: &Cell) -> String {
    let same = |o: &&Cell| {
        (&o.published.workload, &o.published.system) == (&c.published.workload, &c.published.system)
    };
    c.published.title(r.cells.iter().filter(same).count() > 1)
}

/// Describes how the quick form differs from the full form.
pub fn scaled(s: &Reproduced) -> Option<String> {
    let x = s.scaling.as_ref()?;
    let runs = if x.runs == 1 { "run" } else { "runs" };
    Some(format!(
        "Quick form compared with the full form ({} {runs} of each): |ln (quick / full)| median \
         {:.2}, largest {:.2} ({}), {} within 35 % ({} figures). The ratios of pairs differ by \
         {:.2} in the median.",
        x.runs,
        x.all.median.unwrap_or(0.0),
        x.all.largest.unwrap_or(0.0),
        x.all.at,
        percent(x.near),
        x.all.figures,
        x.pairs.unwrap_or(0.0)
    ))
}

/// Describes the scatter of the simulated and the published runs.
pub fn scattered(s: &Reproduced) -> Option<String> {
    let middle = |of: &dyn Fn(&Scatter) -> Option<f64>| {
        seekwell_stats::median(&s.scatter.iter().filter_map(of).collect::<Vec<_>>())
    };
    let (published, ours) = middle(&|x| x.published).zip(middle(&|x| x.ours))?;
    let runs = s.scatter.iter().map(|x| x.runs).max()?;
    Some(format!(
        "Median standard error divided by the mean: published {:.2} %, {runs} of our runs {:.2} %. \
         Runs of the model differ less than runs of a machine, because only clock phases, the \
         order of wakeups and the position of data in the flash vary. Our standard error shows the \
         random variation of the model, not that of a repeated measurement.",
        100.0 * published,
        100.0 * ours
    ))
}

/// Returns a heading: the publication, and the number of runs.
pub fn heading(r: &Reproduction) -> String {
    let runs = match r.repeats {
        1 => "one run of each".to_owned(),
        n => format!("{n} runs of each"),
    };
    let form = if r.quick { ", quick form" } else { "" };
    format!("{}: {} ({runs}{form})", r.name, r.title)
}

/// Prints all results of a reproduction.
pub fn show(out: &mut Out, s: &Reproduced) -> Result<(), Failure> {
    let r = &s.ours;
    out.prose(&heading(r))?;
    out.line("")?;
    for l in &r.level {
        out.text(&wrap(&format!("Level, {}.", level(l)), 2, width()))?;
    }
    if !r.skill.is_empty() {
        out.line("")?;
        let mut t = Table::new(&SKILL);
        for row in &r.skill {
            t.row(skill(row).into_iter().map(Into::into).collect());
        }
        out.text(&t.without(&SPARE, 2, columns()).render(2))?;
        out.text(&wrap(SKILL_IS, 2, width()))?;
    }
    out.line("")?;
    if let Some(line) = agreement(r) {
        out.text(&wrap(&line, 2, width()))?;
    }
    if !r.judgements.is_empty() {
        out.text(&wrap(&doing(r), 2, width()))?;
    }
    if let Some(line) = scaled(s) {
        out.text(&wrap(&line, 2, width()))?;
    } else if r.quick {
        let line = "The deviation of the quick form is shown after a full run with the same \
                    results directory.";
        out.text(&wrap(line, 2, width()))?;
    }
    if let Some(line) = cut_off(s) {
        out.text(&wrap(&line, 2, width()))?;
    }
    figures(out, s)?;
    if let Some(line) = scattered(s) {
        out.line("")?;
        out.text(&wrap(&line, 2, width()))?;
    }
    judged(out, r)?;
    own_forms(out, s)?;
    out.line("")
}

/// Prints the tables in the form of the publication.
fn own_forms(out: &mut Out, s: &Reproduced) -> Result<(), Failure> {
    for form in forms(s) {
        out.line("")?;
        out.text(&wrap(&form.title, 2, width()))?;
        let head: Vec<(&str, Align)> = form.head.iter().map(|h| (h.0.as_str(), h.1)).collect();
        let mut t = Table::new(&head);
        for row in form.rows {
            t.row(row.into_iter().map(Into::into).collect());
        }
        out.text(&t.render_within(4, columns()))?;
    }
    Ok(())
}

/// Prints the targets and their results.
pub fn targets(out: &mut Out, all: &[Target], shown: &[Reproduced]) -> Result<(), Failure> {
    if all.is_empty() {
        return Ok(());
    }
    out.prose("Targets set in advance, with their results:")?;
    let full = asked_in_full(shown);
    for t in all {
        let met = if t.met { "met" } else { "MISSED" };
        let line = format!(
            "{met}: {}: {}. Blind: {}.{}",
            t.asked,
            t.ours,
            t.blind,
            missed::in_full_too(t, full.as_deref())
        );
        out.text(&wrap(&line, 2, width()))?;
        if !t.met {
            for x in &t.outside {
                out.text(&wrap(x, 6, width()))?;
            }
            for text in missed::why(t, shown) {
                out.text(&wrap(&text, 4, width()))?;
            }
        }
    }
    Ok(())
}

fn figures(out: &mut Out, shown: &Reproduced) -> Result<(), Failure> {
    let r = &shown.ours;
    for c in &r.cells {
        let p = &c.published;
        out.line("")?;
        let fitted = if p.fitted { ", fitted" } else { "" };
        let mut head = format!("{}: {}, {}{fitted}", p.system, title(r, c), p.unit);
        if r.quick && !p.quick.is_empty() {
            head += &format!(" ({})", p.quick);
        }
        // The text "of the median" would make the table wider than 100 columns, so it is only in
        // the title.
        let short = |all: Vec<String>| all.into_iter().map(|d| d.replace(OF_MEDIAN, ""));
        let theirs = from_median(c, |i| Some(p.sides[i].value));
        let theirs: Vec<String> = short(theirs).collect();
        let delta = from_median(c, |i| c.ours[i].map(|o| o.mean));
        let delta: Vec<String> = short(delta).collect();
        if theirs.iter().any(|d| !d.is_empty()) {
            head += "; per cent: deviation from the median";
        }
        out.text(&wrap(&head, 2, width()))?;
        let mut t = Table::new(&[
            ("SCHEDULER", Align::Left),
            ("PUBLISHED", Align::Right),
            ("OURS", Align::Right),
            ("RATIO", Align::Right),
        ]);
        for (i, s) in p.sides.iter().enumerate() {
            let (red, own) = noisy(shown, c, i);
            let mark = |red: bool| if red { " (!)" } else { "" };
            let own = format!("{}{}{}", ours(s, c.ours[i].as_ref()), delta[i], mark(own));
            t.row(vec![
                s.scheduler.clone().into(),
                format!("{}{}{}", published(s), theirs[i], mark(red)).into(),
                own.into(),
                c.ratio(i)
                    .map_or("-".to_owned(), |x| format!("{x:.2}"))
                    .into(),
            ]);
        }
        out.text(&t.render(4))?;
    }
    Ok(())
}

/// Joins the evidence of a judgement in one line.
pub fn evidence(j: &Judgement) -> String {
    j.evidence.join("; ")
}

fn judged(out: &mut Out, r: &Reproduction) -> Result<(), Failure> {
    out.line("")?;
    for j in &r.judgements {
        let c = &r.cells[j.cell];
        let line = format!(
            "{}: {}, {}: {:.2} published, {} ours. {}: {}.",
            c.published.system,
            title(r, c),
            names(c, &j.pair),
            j.pair.ratio,
            j.ours.map_or("-".to_owned(), |x| format!("{x:.2}")),
            j.doing.word(),
            evidence(j)
        );
        out.text(&wrap(&line, 2, width()))?;
    }
    Ok(())
}
