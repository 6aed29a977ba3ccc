//! The reasons for missed targets. A reason is a mechanism that the models do not have, or a doubt
//! about the published result. The texts are in `missed.toml`; this module fills in the numbers.

use super::full::carried;
use super::{Cell, Evidence, Ours, Pair, Reproduced, Second, Target};
use seekwell_core::numbers;
use std::sync::LazyLock;

/// The texts by target and part.
static TEXTS: LazyLock<toml::Table> = LazyLock::new(|| {
    // A test checks that the file can be read and that each of its texts is used.
    include_str!("missed.toml").parse().unwrap_or_default()
});

/// Returns a text in one line, with the values in place of their names in braces.
fn text(target: &str, part: &str, values: &[(&str, String)]) -> String {
    let text = TEXTS.get(target).and_then(|t| t.get(part)?.as_str());
    let words: Vec<&str> = text.unwrap_or_default().split_whitespace().collect();
    values.iter().fold(words.join(" "), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

/// Returns a sentence with the result of a target in the full form; empty if there is none.
pub fn in_full_too(t: &Target, full: Option<&[Target]>) -> String {
    let whole = full.and_then(|f| f.iter().find(|f| f.name == t.name));
    whole.map_or(String::new(), |f| {
        let met = if f.met { "met" } else { "missed" };
        format!(" In full: {} ({met}).", f.ours)
    })
}

/// Returns the reasons for a missed target, one text per paragraph.
pub fn why(t: &Target, all: &[Reproduced]) -> Vec<String> {
    match t.name {
        "skill" => skill(all),
        // These explanations apply only to the laptops' tests.
        "level" | "near" | "cpu" if publication(all, "phoronix-2012").is_none() => Vec::new(),
        "level" => level(all),
        "near" => near(all),
        "cpu" => cpu(all),
        "agreement" => agreement(all),
        "003" => postgres(all),
        "004" => scan(all),
        _ => Vec::new(),
    }
}

/// Formats a number with its sign and two decimals; a dash for `None`.
fn signed(x: Option<f64>) -> String {
    x.map_or("-".to_owned(), |x| numbers::signed(x, 2))
}

fn two(x: Option<f64>) -> String {
    x.map_or("-".to_owned(), |x| format!("{x:.2}"))
}

fn whole(x: Option<f64>) -> String {
    x.map_or("-".to_owned(), |x| format!("{x:.0}"))
}

/// Returns `1.46 to 2.04`, or one number if both ends are equal.
fn range(all: &[f64]) -> String {
    let least = all.iter().copied().min_by(f64::total_cmp);
    let most = all.iter().copied().max_by(f64::total_cmp);
    match (two(least), two(most)) {
        (a, b) if a == b => a,
        (a, b) => format!("{a} to {b}"),
    }
}

fn publication<'a>(all: &'a [Reproduced], name: &str) -> Option<&'a Reproduced> {
    all.iter().find(|s| s.ours.name == name)
}

fn evidence(all: &[Reproduced], name: &str) -> Evidence {
    publication(all, name).map_or_else(Evidence::default, |s| Evidence::read(s.publication))
}

/// Returns the published tests of a system whose name starts with `test`. An empty `system` selects
/// all systems.
fn cells<'a>(
    all: &'a [Reproduced],
    system: &'a str,
    test: &'a str,
) -> impl Iterator<Item = &'a Cell> {
    let cells = all.iter().flat_map(|s| &s.ours.cells);
    cells.filter(move |c| {
        let p = &c.published;
        (system.is_empty() || p.system == system) && p.workload.starts_with(test)
    })
}

/// Returns the simulated divided by the published results of a scheduler. An empty name selects all
/// schedulers.
fn ratios<'a>(cells: impl Iterator<Item = &'a Cell>, scheduler: &str) -> Vec<f64> {
    let own = |c: &'a Cell| {
        let sides = c.published.sides.iter().enumerate();
        let named = sides.filter(|s| scheduler.is_empty() || s.1.scheduler == scheduler);
        named.filter_map(|s| c.ratio(s.0)).collect::<Vec<f64>>()
    };
    cells.flat_map(own).collect()
}

const SSDS: [&str; 2] = ["Sandy Bridge + SSD", "Clarksfield + SSD"];
const DISK: &str = "Penryn + HDD";

fn skill(all: &[Reproduced]) -> Vec<String> {
    let Some(s) = publication(all, "phoronix-2012") else {
        return Vec::new();
    };
    let group = |g: &str| s.ours.skill.iter().find(|k| k.group == g);
    let weight = |groups: &[&str]| -> f64 {
        let all = groups.iter().filter_map(|g| group(g));
        all.map(|k| k.weight).sum()
    };
    let known = evidence(all, s.ours.name);
    let worn = |test: &str| {
        known
            .worn(test)
            .map_or("-".to_owned(), |w| range(&[w.0, w.1]))
    };
    let deadline = cells(all, DISK, "compilebench 0.6: Compile").find_map(|c| {
        let at = |name: &str| c.published.sides.iter().position(|s| s.scheduler == name);
        let (one, other) = (at("deadline")?, at("noop")?);
        let pair = |a: f64, b: f64| 100.0 * (a / b - 1.0);
        let sides = &c.published.sides;
        let mean = |i: usize| c.ours[i].map(|o| o.mean);
        Some((
            pair(mean(one)?, mean(other)?),
            pair(sides[one].value, sides[other].value),
        ))
    });
    let deadline = deadline.map_or("-".to_owned(), |(ours, published)| {
        let values = [
            ("ours", numbers::signed(ours, 0)),
            ("published", numbers::signed(published, 0)),
        ];
        text("skill", "deadline", &values)
    });
    let blogs: Vec<String> = cells(all, DISK, "blogbench")
        .flat_map(|c| {
            let one = c.published.quick_factor;
            let blogs = |o: &Option<Ours>| whole(o.map(|o| o.mean / one));
            c.ours.iter().map(blogs).collect::<Vec<_>>()
        })
        .collect();
    let files: Vec<String> = cells(all, DISK, "fs-mark 3.3: 1000 Files, 1MB Size")
        .take(1)
        .flat_map(|c| {
            c.published
                .sides
                .iter()
                .map(|s| format!("{:.1}", 1000.0 / s.value))
        })
        .collect();
    let per_cent = |x: f64| format!("{:.0}", 100.0 * x);
    let exact = [
        ("weight_of_afgh", two(Some(weight(&["A", "F", "G", "H"])))),
        ("weight_of_a", two(Some(weight(&["A"])))),
        ("skill_of_a", signed(group("A").and_then(|k| k.ours))),
    ];
    let unexplained = [
        ("weight_of_bce", per_cent(weight(&["B", "C", "E"]))),
        ("worn_compile", worn("compilebench 0.6: Compile")),
        ("worn_commits", worn("pgbench")),
        ("worn_create", worn("compilebench 0.6: Initial Create")),
        ("written_gb", whole(known.written_gb())),
        ("ms_per_file", files.join(", ")),
    ];
    let mut why = vec![
        text("skill", "exact", &exact),
        text("skill", "unexplained", &unexplained),
        text("skill", "missing", &[("deadline", deadline)]),
    ];
    if let (true, Some(last)) = (s.ours.quick && !blogs.is_empty(), why.last_mut()) {
        *last += " ";
        *last += &text("skill", "blogs", &[("blogs", blogs.join(", "))]);
    }
    let full = |g: &str| s.full.iter().find(|k| k.group == g && k.compared > 0);
    if let Some((whole, a)) = full("").zip(full("A")).filter(|_| s.ours.quick) {
        let values = [
            ("skill", signed(whole.ours)),
            ("compared", whole.compared.to_string()),
            ("pairs", whole.pairs.to_string()),
            ("skill_of_a", signed(a.ours)),
            ("compared_of_a", a.compared.to_string()),
            ("pairs_of_a", a.pairs.to_string()),
            ("blogbench", in_full(s, "blogbench")),
        ];
        why.push(text("skill", "full", &values));
    } else if s.ours.quick {
        why.push(text("skill", "not_in_full", &[]));
    }
    why
}

/// Returns the ratios of a run in the latest full form, by system.
fn in_full(s: &Reproduced, run: &str) -> String {
    let cells = carried(s.publication).unwrap_or_default();
    let of = |c: &Cell| {
        let sides = c.published.sides.iter().zip(&c.ours);
        let ours: Option<Vec<String>> = sides
            .map(|(p, o)| {
                let (ours, published) = (whole(Some((*o)?.mean)), whole(Some(p.value)));
                Some(format!(
                    "{ours} under {} (published {published})",
                    p.scheduler
                ))
            })
            .collect();
        Some(format!("on {} {}", c.published.system, ours?.join(", ")))
    };
    let own = |c: &&Cell| c.published.run == run && c.published.higher_is_better;
    let own = cells.iter().filter(own);
    own.filter_map(of).collect::<Vec<_>>().join("; ")
}

fn level(all: &[Reproduced]) -> Vec<String> {
    let of = |test: &str| range(&ratios(cells(all, DISK, test), ""));
    let synced = |c: &&Cell| !c.published.workload.contains("No Sync");
    let fs_mark = cells(all, DISK, "fs-mark 3.3: 1000").filter(synced);
    let values = [
        ("fs_mark_1000", range(&ratios(fs_mark, ""))),
        ("fs_mark_4000", of("fs-mark 3.3: 4000")),
        ("compile", of("compilebench 0.6: Compile")),
        ("create", of("compilebench 0.6: Initial")),
        (
            "iozone_read",
            of("iozone 3.347: Record Size: 64Kb - File Size: 8GB"),
        ),
    ];
    vec![text("level", "position", &values)]
}

fn near(all: &[Reproduced]) -> Vec<String> {
    let unsynced = cells(all, "", "fs-mark 3.3: 1000 Files, 1MB Size, No Sync");
    let disk = ratios(cells(all, DISK, "tiobench"), "");
    let ssd = |scheduler: &str| -> Vec<f64> {
        let tests = ["compilebench 0.6: Compile", "compilebench 0.6: Initial"];
        let own = SSDS
            .iter()
            .flat_map(|s| tests.map(|t| ratios(cells(all, s, t), scheduler)));
        own.flatten().collect()
    };
    let others = [ssd("noop"), ssd("deadline")].concat();
    let pgbench = SSDS.map(|s| ratios(cells(all, s, "pgbench"), "")).concat();
    let compilebench = [
        ("cfq", range(&ssd("cfq"))),
        ("others", range(&others)),
        ("pgbench", range(&pgbench)),
    ];
    vec![
        text(
            "near",
            "fs_mark",
            &[("fs_mark", range(&ratios(unsynced, "")))],
        ),
        text("near", "tiobench", &[("tiobench", range(&disk))]),
        text("near", "compilebench", &compilebench),
    ]
}

/// Number of transactions in PostMark. Its result is this number divided by whole seconds.
const POSTMARK: f64 = 25_000.0;

fn cpu(all: &[Reproduced]) -> Vec<String> {
    let seconds = |system: &str| {
        let c = cells(all, system, "postmark").next()?;
        let ours = c.ours.first().copied().flatten()?.mean;
        let published = c.published.sides.first()?.value;
        let values = [
            ("ours", whole(Some(POSTMARK / ours))),
            ("published", whole(Some(POSTMARK / published))),
            ("system", system.to_owned()),
        ];
        Some(text("cpu", "postmark_on", &values))
    };
    let took: Vec<String> = [DISK, SSDS[1]].into_iter().filter_map(seconds).collect();
    let of = |system: &str, test: &str| range(&ratios(cells(all, system, test), ""));
    let servers = [
        ("apache", of(SSDS[1], "apache")),
        ("nginx_clarksfield", of(SSDS[1], "nginx")),
        ("nginx_sandy_bridge", of(SSDS[0], "nginx")),
    ];
    vec![
        text("cpu", "postmark", &[("seconds", took.join(" and "))]),
        text("cpu", "servers", &servers),
    ]
}

/// Returns the pairs of a test that differ in the simulation but not in the publication.
fn apart(c: &Cell) -> Vec<&Pair> {
    let differs = |q: &&Pair| {
        let most = 1.0 + Pair::SCORED;
        let ours = c.pair(q).is_some_and(|r| r >= most || r <= 1.0 / most);
        q.p.is_some_and(|p| p >= 0.05) && ours
    };
    c.published.pairs.iter().filter(differs).collect()
}

/// Describes the tests that disagree, and the reasons.
fn agreement(all: &[Reproduced]) -> Vec<String> {
    let laptops = publication(all, "phoronix-2012").and_then(|s| laptops(&s.ours.cells));
    let phone = publication(all, "moto-g-2014").map(|s| phone(&s.ours.cells));
    laptops.into_iter().chain(phone).collect()
}

fn laptops(cells: &[Cell]) -> Option<String> {
    let (mut wrong, mut tests) = (0, Vec::new());
    for c in cells {
        let (p, own) = (&c.published, apart(c));
        let side = |i: usize| &p.sides[i].scheduler;
        let pairs = own.iter().map(|q| {
            let (one, other) = (side(q.one), side(q.other));
            let ours = c.pair(q).unwrap_or(1.0);
            format!("{one} : {other} {ours:.2} (published {:.2})", q.ratio)
        });
        let pairs: Vec<String> = pairs.collect();
        wrong += own.len();
        if !own.is_empty() {
            tests.push(format!(
                "{} on {}: {}",
                p.workload,
                p.system,
                pairs.join(", ")
            ));
        }
    }
    let values = [("wrong", wrong.to_string()), ("tests", tests.join("; "))];
    let mut said = text("agreement", "laptops", &values);
    if tests.iter().any(|t| t.starts_with("postmark")) {
        said += " ";
        said += &text("agreement", "postmark", &[]);
    }
    (wrong > 0).then_some(said)
}

/// Describes the metrics with wrong pairs, and how many of the pairs involve bfq.
fn phone(cells: &[Cell]) -> String {
    let (mut wrong, mut bfq, mut by) = (0, 0, Vec::new());
    for c in cells {
        let (p, own) = (&c.published, apart(c));
        let with = |i: usize| p.sides[i].scheduler == "bfq";
        bfq += own.iter().filter(|q| with(q.one) || with(q.other)).count();
        wrong += own.len();
        if !own.is_empty() {
            by.push(format!("{} of {}", own.len(), p.metric));
        }
    }
    let values = [
        ("wrong", wrong.to_string()),
        ("metrics", by.join(", ")),
        ("with_bfq", bfq.to_string()),
    ];
    text("agreement", "phone", &values)
}

/// Returns the median operations per second over the slowest tenth of a run's seconds.
fn slowest(seconds: &[Second]) -> Option<f64> {
    let mut ops: Vec<f64> = seconds.iter().map(|s| s.ops as f64).collect();
    ops.sort_by(f64::total_cmp);
    seekwell_stats::median(&ops[..ops.len().div_ceil(10)])
}

fn postgres(all: &[Reproduced]) -> Vec<String> {
    let Some(s) = publication(all, "postgres-2015") else {
        return Vec::new();
    };
    let bursts: Vec<String> = s
        .seconds
        .iter()
        .filter_map(|x| Some(format!("{} {:.0}", x.scheduler, slowest(&x.seconds)?)))
        .collect();
    let mut why = vec![
        text("003", "bursts", &[("slowest", bursts.join(", "))]),
        text("003", "reads_alone", &[]),
    ];
    if s.ours.quick && carried(s.publication).is_some() {
        why.push(text("003", "full", &[("pgbench", in_full(s, "pgbench"))]));
    }
    why
}

fn scan(all: &[Reproduced]) -> Vec<String> {
    let known = evidence(all, "mysql-2008");
    let one = known.of_cause("K", "");
    let deep = known.of_cause("K", "a drive that queues");
    let constant = known.of_cause("K", "a second program with a constant");
    let values = [
        ("one_idling", two(one.and_then(|t| t.on))),
        ("one", two(one.and_then(|t| t.off))),
        ("published", two(one.map(|t| t.published))),
        ("deep_idling", two(deep.and_then(|t| t.on))),
        ("deep", two(deep.and_then(|t| t.off))),
        ("constant_idling", two(constant.and_then(|t| t.on))),
    ];
    vec![text("004", "depths", &values)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::{PUBLICATIONS, asked};

    /// Returns the stored results as results of one form. The first scheduler of each test is too
    /// fast, so that pairs disagree.
    fn reproduced(quick: bool, with_full: bool) -> Vec<Reproduced> {
        let one = |p: &'static super::super::Publication| {
            let full = carried(p).expect("stored results of the full form");
            let mut cells = full.clone();
            for first in cells.iter_mut().filter_map(|c| c.ours[0].as_mut()) {
                first.mean *= 1.2;
            }
            let full = with_full.then_some(full);
            Reproduced::new(p, p.judged(cells, quick), full, Vec::new())
        };
        PUBLICATIONS.iter().map(one).collect()
    }

    /// The longest part of a text without values.
    fn longest(text: &str) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        let words = words.join(" ");
        let parts = words.split(['{', '}']).step_by(2);
        parts.max_by_key(|p| p.len()).unwrap_or_default().to_owned()
    }

    #[test]
    fn every_text_is_used_and_every_name_in_it_is_replaced() {
        let mut all = String::new();
        for (quick, with_full) in [(true, true), (true, false), (false, true)] {
            let reproduced = reproduced(quick, with_full);
            for target in asked(&reproduced) {
                for text in why(&target, &reproduced) {
                    assert!(!text.contains(['{', '}']), "{}: {text}", target.name);
                    assert!(text.len() > 50, "{}: {text}", target.name);
                    all += &text;
                    all.push('\n');
                }
            }
        }
        let mut parts = 0;
        for (target, table) in TEXTS.iter() {
            for (part, text) in table.as_table().expect("a table") {
                let text = longest(text.as_str().expect("a text"));
                assert!(all.contains(&text), "{target}.{part} is not used: {text}");
                parts += 1;
            }
        }
        assert_eq!(parts, 21);
    }
}
