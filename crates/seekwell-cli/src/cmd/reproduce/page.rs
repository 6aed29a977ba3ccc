//! Writes the reproduction as a document: docs/reproduction.md.

use super::own::{cut_off, forms, from_median, noisy};
use super::show::{
    SKILL, SKILL_IS, agreement, doing, evidence, level, like, names, ours, published, scaled,
    scattered, skill, title,
};
use seekwell_evidence::reproduce::{
    Doing, Effect, GROUPS, Judgement, Reproduced, Reproduction, Target, asked, asked_in_full,
    missed,
};
use seekwell_report::table::{Align, wrap};

const HEADER: &str = "# Reproduction of published comparisons\n\n";

const ABOUT: &str = "Seekwell simulates five published comparisons of I/O schedulers, with the \
    machine, the drive, the kernel and the settings that the publications state. No constant was \
    fitted to a difference between schedulers. Constants of drives come from data sheets and other \
    measurements. Some constants were fitted to the level of published results; tests that depend \
    on them are marked as fitted and scored separately. The processor time per file in blogbench \
    is fitted to one result (noop, Sandy Bridge). It is the only constant that differs between the \
    two forms of the simulation: 0.15 ms in the full form and 0.85 ms in the quick form. The \
    letters A to L name groups of published differences (see the last table). All results are \
    listed, good or bad, with the scores of null models for comparison.";

const PLACED: &str = "The publications do not state where files were on the disk or when programs \
    began. In every run, the model places files by first fit on a new file system, in the first \
    block group after that of the root directory (placement=first). mke2fs would choose this group \
    at random, once per file system. With six random groups, iozone's reads of the disk ranged \
    from 34 to 62 MB/s; first fit gives 66, and 62 to 65 were published. The seed determines when \
    a program begins between two wakeups of the flusher, and how late each of its tasks wakes up \
    (phase=drawn), because both vary between runs on a real machine.";

/// Measured on an idle machine with two cores and two runs at a time.
const COST: &str = "Processor time of an optimised build: the quick form needs 54 s. One repeat of \
    the full form needs about 560 s (target: 600 s), namely 372 s for phoronix-2012, 181 s for \
    three half-hour runs of pgbench on the S3700, and 9 s for the phone, the laptop and the scan. \
    All tests of the full form were run three times. The machine was otherwise idle; other \
    programs on the same cores, or a kernel without large memory pages, increase these times. Nine \
    runs of blogbench take most of the time, because a hundred readers that find their files in \
    the cache make about fifty million reads per run. The full form of blogbench gives other \
    results than the quick form (see the targets).";

/// Wraps a text for a document.
pub fn prose(text: &str) -> String {
    let wrapped = wrap(text, 0, 98);
    let lines: Vec<&str> = wrapped.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n\n"
}

/// Escapes the column separator in a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Returns a row of a Markdown table.
pub fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|c| cell(c)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Returns the document for these publications.
pub fn page(all: &[Reproduced]) -> String {
    let quick = all.iter().any(|s| s.ours.quick);
    let names: Vec<&str> = all.iter().map(|s| s.ours.name).collect();
    let what = match names[..] {
        [one] => one,
        _ => "all",
    };
    let flag = if quick { " --quick" } else { "" };
    let mut out = HEADER.to_owned();
    out += &prose(&format!(
        "Made by `seekwell reproduce {what}{flag} --markdown -o docs/reproduction.md`."
    ));
    out += &prose(ABOUT);
    out += &prose(PLACED);
    out += &prose(
        "The [robustness checks](reproduction-guards.md) show how these scores change with other \
         constants, with permuted labels, without the claimed causes, or with all runs on one \
         drive.",
    );
    if quick {
        out += &prose(
            "This page shows the quick form: one run of each test, and smaller tests than \
             published (see *smaller* in the tables). The quick form runs often and is less \
             accurate than the full form. In particular, the effects of memory, caches and long \
             durations (blogbench, pgbench, mysql-scan) differ. The section of each publication \
             lists how far the quick form deviates from the latest full form. A test that is \
             missing in this list was not run in the full form.",
        );
        out += &prose(COST);
    }
    for s in all {
        out += &publication_section(s);
    }
    out += &targets(all);
    out += "## Groups of differences\n\n";
    out += "| group | differences | caused by the scheduler? | reason | with the cause removed |\n";
    out += "|---|---|---|---|---|\n";
    for g in GROUPS {
        let own = |t: &str| t.to_owned();
        out += &row(&[
            own(g.letter),
            own(g.title),
            count_judgements(g, all),
            own(g.why),
            own(g.ablation),
        ]);
    }
    out
}

/// Counts the judgements for the differences of a group, such as `yes 4, unknown 1`.
fn count_judgements(g: &Effect, all: &[Reproduced]) -> String {
    let own = |r: &Reproduction, j: &Judgement| r.cells[j.cell].published.group == g.letter;
    let judged = all.iter().map(|s| &s.ours);
    let judged = judged.flat_map(|r| r.judgements.iter().filter(|j| own(r, j)));
    let judged: Vec<Doing> = judged.map(|j| j.doing).collect();
    let count = |d: Doing| {
        let n = judged.iter().filter(|j| **j == d).count();
        (n > 0).then(|| format!("{} {n}", d.word()))
    };
    let counts = [Doing::Yes, Doing::No, Doing::Unknown].map(count);
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    match counts.is_empty() {
        true => "-".to_owned(),
        false => counts.join(", "),
    }
}

/// Returns the targets with their results, and the reasons for missed targets.
fn targets(all: &[Reproduced]) -> String {
    let asked = asked(all);
    if asked.is_empty() {
        return String::new();
    }
    let mut out = "## Targets, and reasons for missed targets\n\n".to_owned();
    let full = asked_in_full(all);
    for (i, cells) in targets_table(&asked, full.as_deref()).iter().enumerate() {
        out += &row(cells);
        if i == 0 {
            out += &format!("|{}\n", "---|".repeat(cells.len()));
        }
    }
    out += "\n";
    for t in asked.iter().filter(|t| !t.met) {
        let mut title = t.asked.chars();
        let first = title
            .next()
            .map_or(String::new(), |c| c.to_uppercase().collect());
        out += &format!("### {first}{}\n\n", title.as_str());
        for x in &t.outside {
            out += prose(&format!("- {x}"))
                .trim_end()
                .replace('\n', "\n  ")
                .as_str();
            out += "\n";
        }
        if !t.outside.is_empty() {
            out += "\n";
        }
        for text in missed::why(t, all) {
            out += &prose(&text);
        }
    }
    out
}

/// Returns the table of targets. For a quick run, it also contains the results of the full run.
fn targets_table(asked: &[Target], full: Option<&[Target]>) -> Vec<Vec<String>> {
    let own = |cells: &[&str]| cells.iter().map(|c| (*c).to_owned()).collect();
    let met = |t: &Target| if t.met { "yes" } else { "NO" };
    let Some(full) = full else {
        let mut rows = vec![own(&[
            "target, set in advance",
            "ours",
            "blind model",
            "met",
        ])];
        let all = asked.iter();
        rows.extend(all.map(|t| own(&[t.asked, &t.ours, &t.blind, met(t)])));
        return rows;
    };
    let heads = [
        "target, set in advance",
        "quick form",
        "met",
        "full form",
        "met",
        "blind model",
    ];
    let mut rows = vec![own(&heads)];
    rows.extend(asked.iter().map(|t| {
        let whole = full.iter().find(|f| f.name == t.name);
        let (ours, so) = whole.map_or(("-", "-"), |f| (&*f.ours, met(f)));
        own(&[t.asked, &t.ours, met(t), ours, so, &t.blind])
    }));
    rows
}

fn publication_section(s: &Reproduced) -> String {
    let r = &s.ours;
    let mut out = format!("## {}\n\n", r.name);
    let runs = if r.repeats == 1 { "run" } else { "runs" };
    out += &prose(&format!("{}; {} {runs} of each.", r.title, r.repeats));
    for l in &r.level {
        let line = prose(&format!("- Level, {}.", level(l)));
        out += &line.trim_end().replace('\n', "\n  ");
        out += "\n";
    }
    out += "\n";
    if !r.skill.is_empty() {
        let head: Vec<String> = SKILL.iter().map(|h| h.0.to_lowercase()).collect();
        out += &row(&head);
        out += "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
        for line in &r.skill {
            out += &row(&skill(line));
        }
        out += "\n";
        out += &prose(SKILL_IS);
    }
    out += &agreement(r).map_or(String::new(), |a| prose(&a));
    out += &scaled(s).map_or(String::new(), |a| prose(&a));
    out += &scattered(s).map_or(String::new(), |a| prose(&a));
    out += &cut_off(s).map_or(String::new(), |a| prose(&a));
    for form in forms(s) {
        out += &format!("### {}\n\n", form.title);
        let head: Vec<String> = form.head.iter().map(|h| h.0.to_lowercase()).collect();
        out += &row(&head);
        let rule = form.head.iter().map(|h| match h.1 {
            Align::Left => "---|",
            Align::Right => "---:|",
        });
        out += &format!("|{}\n", rule.collect::<String>());
        for line in &form.rows {
            out += &row(line);
        }
        out += "\n";
    }
    out += "### All figures\n\n";
    out += &figures(s);
    out += &judged(r);
    out
}

fn figures(s: &Reproduced) -> String {
    let r = &s.ours;
    let mut out = "| system | test | scheduler | published | ours | ratio | |\n".to_owned();
    out += "|---|---|---|---:|---:|---:|---|\n";
    for c in &r.cells {
        let p = &c.published;
        let theirs = from_median(c, |i| Some(p.sides[i].value));
        let delta = from_median(c, |i| c.ours[i].map(|o| o.mean));
        for (i, side) in p.sides.iter().enumerate() {
            let (red, own) = noisy(s, c, i);
            let mark = |red: bool| if red { " (!)" } else { "" };
            let mut notes = Vec::new();
            if p.fitted {
                notes.push("fitted".to_owned());
            }
            if r.quick && !p.quick.is_empty() {
                notes.push(format!("smaller: {}", p.quick));
            }
            out += &row(&[
                p.system.clone(),
                format!("{}, {}", title(r, c), p.unit),
                side.scheduler.clone(),
                format!("{}{}{}", published(side), theirs[i], mark(red)),
                format!(
                    "{}{}{}",
                    ours(side, c.ours[i].as_ref()),
                    delta[i],
                    mark(own)
                ),
                c.ratio(i).map_or("-".to_owned(), |x| format!("{x:.2}")),
                notes.join("; "),
            ]);
        }
    }
    out + "\n"
}

fn judged(r: &Reproduction) -> String {
    if r.judgements.is_empty() {
        return String::new();
    }
    let mut out = prose(&doing(r));
    out += "| system | test | pair | published | ours | caused by the scheduler? | evidence |\n";
    out += "|---|---|---|---:|---:|---|---|\n";
    for j in &r.judgements {
        let c = &r.cells[j.cell];
        out += &row(&[
            c.published.system.clone(),
            title(r, c),
            names(c, &j.pair),
            like("0.00", j.pair.ratio),
            j.ours.map_or("-".to_owned(), |x| like("0.00", x)),
            j.doing.word().to_owned(),
            evidence(j),
        ]);
    }
    out + "\n"
}
