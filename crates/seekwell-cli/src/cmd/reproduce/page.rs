//! The reproduction as a document: docs/reproduction.md.

use super::own::{cut_off, forms, from_median, noisy};
use super::show::{
    SKILL, SKILL_IS, agreement, doing, evidence, level, like, names, ours, published, scaled,
    scattered, skill, title,
};
use super::{Shown, asked, asked_in_full, missed};
use seekwell_lab::reproduce::{Doing, Effect, GROUPS, Judgement, Reproduction};
use seekwell_report::table::{Align, wrap};

const HEADER: &str = "# Published comparisons, run again\n\n";

const ABOUT: &str = "Five published comparisons of I/O schedulers, simulated with the machine, the drive, \
    the kernel and the settings they tell of. Nothing was tuned to a difference between schedulers: \
    constants of drives come from data sheets and other measurements, and those that were fitted to \
    one of these publications are fitted to a level, marked so, and scored apart. One of them is \
    not the same in both forms: what a file of blogbench costs a processor, fitted to one figure (noop, \
    Sandy Bridge), is 0.15 ms in the full form and 0.85 ms in the quick one. Every figure is \
    here, good or bad. The scores of null models stand beside ours.";

const PLACED: &str = "Nobody published where files lay or when programs began. Files lie where first fit \
    puts them on a fresh file system, in the first group behind the root's, in every run \
    (placement=first): mke2fs draws that place once for a file system, and drawn by six seeds it moved \
    iozone's reads of the disk from 34 to 62 MB/s; first fit gives 66, published were 62 to 65. When a \
    program begins between two looks of the flusher, and how late each of its tasks wakes up, is drawn \
    by the seed (phase=drawn), as it differs from run to run on a real machine.";

/// Measured on an idle machine with two cores, two runs at a time.
const COST: &str = "Processor seconds of an optimised build: the quick form 54. A repeat of the full \
    form, of which three were run of everything, is 372 for phoronix-2012, 181 for three times half an \
    hour of pgbench on the S3700, and 9 for the phone, the laptop and the scan: some 560 in all with \
    nothing else on the machine, where 600 were asked for; beside other work on the other halves of the \
    cores, and where the kernel gives nobody large pages of memory, more. Nine runs of blogbench are \
    most of it: a hundred readers that find their files in the cache read some fifty million a run. What \
    the full form gives for blogbench is not what the quick one gives (see the targets).";

/// Wrapped for a page.
pub fn prose(text: &str) -> String {
    let wrapped = wrap(text, 0, 98);
    let lines: Vec<&str> = wrapped.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n\n"
}

/// Escapes the separator of table cells.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A row of a table.
pub fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|c| cell(c)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The page of all publications.
pub fn page(all: &[Shown]) -> String {
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
        "What these scores are worth when constants move, labels are exchanged, causes are taken out \
         or runs follow each other on one drive: [guards](reproduction-guards.md).",
    );
    if quick {
        out += &prose(
            "This is the quick form: one run of each, smaller than published (see *smaller* at each \
             figure). It is made to be run often, not to be believed: what memory, caches and long \
             times decide (blogbench, pgbench, mysql-scan) is not in it as it is in the full form. What \
             it is off by stands at each publication, from the full form as it was run last; a test \
             that is missing there was not run in full.",
        );
        out += &prose(COST);
    }
    for s in all {
        out += &one(s);
    }
    out += &targets(all);
    out += "## Groups of differences\n\n";
    out += "| group | differences | the scheduler's doing? | why | with the cause taken out |\n";
    out += "|---|---|---|---|---|\n";
    for g in GROUPS {
        let own = |t: &str| t.to_owned();
        out += &row(&[
            own(g.letter),
            own(g.title),
            told(g, all),
            own(g.why),
            own(g.ablation),
        ]);
    }
    out
}

/// Results for the differences of a group: `yes 4, cannot be known 1`.
fn told(g: &Effect, all: &[Shown]) -> String {
    let own = |r: &Reproduction, j: &Judgement| r.cells[j.cell].published.group == g.letter;
    let judged = all.iter().map(|s| &s.ours);
    let judged = judged.flat_map(|r| r.judgements.iter().filter(|j| own(r, j)));
    let judged: Vec<Doing> = judged.map(|j| j.doing).collect();
    let count = |d: Doing| {
        let n = judged.iter().filter(|j| **j == d).count();
        (n > 0).then(|| format!("{} {n}", d.said()))
    };
    let counts = [Doing::Yes, Doing::No, Doing::Unknown].map(count);
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    match counts.is_empty() {
        true => "-".to_owned(),
        false => counts.join(", "),
    }
}

/// The targets, their results, and the reasons for misses.
fn targets(all: &[Shown]) -> String {
    let asked = asked(all);
    if asked.is_empty() {
        return String::new();
    }
    let mut out = "## Targets, and why they are missed\n\n".to_owned();
    let full = asked_in_full(all);
    for (i, cells) in missed::table(&asked, full.as_deref()).iter().enumerate() {
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

fn one(s: &Shown) -> String {
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
    out += "### Every figure\n\n";
    out += &figures(s);
    out += &judged(r);
    out
}

fn figures(s: &Shown) -> String {
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
    out += "| system | test | pair | published | ours | the scheduler's doing? | evidence |\n";
    out += "|---|---|---|---:|---:|---|---|\n";
    for j in &r.judgements {
        let c = &r.cells[j.cell];
        out += &row(&[
            c.published.system.clone(),
            title(r, c),
            names(c, &j.pair),
            like("0.00", j.pair.ratio),
            j.ours.map_or("-".to_owned(), |x| like("0.00", x)),
            j.doing.said().to_owned(),
            evidence(j),
        ]);
    }
    out + "\n"
}
