//! README.md and the book show the program's output: every block is run and compared, or updated by
//! `scripts/readme.sh`.
//!
//! A block is fenced as `console`. A line `$ seekwell ...` in it is a command (a backslash
//! continues it), followed by its output, stderr first as on a terminal. A line of three dots
//! stands for any omitted lines. `console` may be followed by:
//!
//! - `live`: the output depends on the machine or needs root; only the options are checked.
//! - `folder`: the commands of a page run in a separate folder, so that a command can write files
//!   for later commands. The folder starts with the files that the page shows completely, in blocks
//!   fenced with a file name after the language (`toml usr.toml`).
//! - `traces`: the command needs a trace that is not in the repository. It runs if
//!   `SEEKWELL_TRACES` names the directory of the trace, and is skipped with a message otherwise.

mod rules;

use crate::{command, good, project, scratch, seekwell};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Fixed,
    Live,
    Folder,
    Traces,
}

/// A command in a block of a page, and the lines of its output there.
struct Shown {
    kind: Kind,
    words: Vec<String>,
    /// Line numbers, from 0.
    lines: std::ops::Range<usize>,
}

fn kind(fence: &str) -> Option<Kind> {
    match fence.strip_prefix("```console")?.trim() {
        "" => Some(Kind::Fixed),
        "live" => Some(Kind::Live),
        "folder" => Some(Kind::Folder),
        "traces" => Some(Kind::Traces),
        other => panic!("a block cannot be `{other}`"),
    }
}

/// Returns the commands of a file, in their order.
fn commands(text: &str) -> Vec<Shown> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<Shown> = Vec::new();
    let (mut i, mut inside) = (0, None);
    while i < lines.len() {
        if inside.is_some() && lines[i] == "```" {
            inside = None;
        } else if lines[i].starts_with("```") {
            inside = kind(lines[i]);
            if inside.is_none() {
                i += 1 + lines[i + 1..].iter().take_while(|l| **l != "```").count();
            }
        } else if let (Some(kind), Some(first)) = (inside, lines[i].strip_prefix("$ ")) {
            let mut line = first.to_owned();
            while let Some(head) = line.strip_suffix('\\') {
                i += 1;
                line = format!("{head} {}", lines[i].trim());
            }
            let from = i + 1;
            let out_of = |l: &&&str| !l.starts_with("$ ") && **l != "```";
            let n = lines[from..].iter().take_while(out_of).count();
            out.push(Shown {
                kind,
                words: line.split_whitespace().map(str::to_owned).collect(),
                lines: from..from + n,
            });
            i += n;
        }
        i += 1;
    }
    out
}

/// Runs the command, and returns its output as on a terminal.
fn printed(c: &mut Command) -> Vec<String> {
    let o = c.output().expect("the binary runs");
    let text = [o.stderr, o.stdout].concat();
    let text = String::from_utf8(text).expect("UTF-8");
    text.lines().map(|l| l.trim_end().to_owned()).collect()
}

fn elided(line: &str) -> bool {
    line.trim() == "..."
}

/// Splits the output at the lines that stand for omitted lines. The first piece must be at the
/// start of the real output, and the last piece at its end.
fn pieces(shown: &[String]) -> Vec<Vec<String>> {
    shown.split(|l| elided(l)).map(<[String]>::to_vec).collect()
}

/// Returns the position of `piece` in `all`, at or after `from`.
fn find(all: &[String], piece: &[String], from: usize) -> Option<usize> {
    let last = all.len().checked_sub(piece.len())?;
    (from..=last).find(|i| all[*i..*i + piece.len()] == *piece)
}

/// Compares the output with the block, apart from the omitted lines. The error describes the first
/// piece that differs.
fn agrees(shown: &[String], all: &[String]) -> Result<(), String> {
    let pieces = pieces(shown);
    let mut at = 0;
    for (i, piece) in pieces.iter().enumerate() {
        let found = match (i == 0, i + 1 == pieces.len()) {
            (true, true) => (all == piece).then_some(0),
            (true, _) => all.starts_with(piece).then_some(0),
            (_, true) => all.ends_with(piece).then(|| all.len() - piece.len()),
            _ => find(all, piece, at),
        };
        match found.filter(|f| *f >= at) {
            Some(f) => at = f + piece.len(),
            None => return Err(difference(piece, all)),
        }
    }
    Ok(())
}

/// Describes the first line of a piece that is not in the output.
fn difference(piece: &[String], all: &[String]) -> String {
    match piece.iter().find(|l| !all.contains(l)) {
        Some(l) => format!("the output has no line\n    {l}"),
        None => format!(
            "the output has the lines in another order, or others:\n    {}",
            piece.first().map_or("(nothing is shown)", String::as_str)
        ),
    }
}

/// Returns a line without the parts that change from run to run.
fn without_variable_parts(line: &str) -> String {
    let mut out = String::new();
    for c in line.chars() {
        match c {
            '0'..='9' => {
                if !out.ends_with('#') {
                    out.push('#');
                }
            }
            ' ' | ',' | '.' => {}
            c => out.push(c),
        }
    }
    out
}

/// Returns the part of a new output that the page should show. It begins and ends at lines that
/// differ from the old ones only in numbers. Returns `None` if these lines are not found. The block
/// must then be updated by hand.
fn updated_output(shown: &[String], all: &[String]) -> Option<Vec<String>> {
    let pieces = pieces(shown);
    if pieces.len() == 1 {
        return Some(all.to_vec());
    }
    let (mut out, mut at) = (Vec::new(), 0);
    let dots = |before: usize| shown.iter().filter(|l| elided(l)).nth(before).cloned();
    for (i, piece) in pieces.iter().enumerate() {
        let look = |l: &String, from: usize| {
            let k = all[from..]
                .iter()
                .position(|a| without_variable_parts(a) == without_variable_parts(l));
            k.map(|k| k + from)
        };
        let (first, last) = match (piece.first(), piece.last()) {
            (Some(a), Some(b)) => {
                let first = if i == 0 { Some(0) } else { look(a, at) }?;
                let end = i + 1 == pieces.len();
                let last = match piece.len() {
                    _ if end => all.len() - 1,
                    1 => first,
                    _ => look(b, first)?,
                };
                (first, last + 1)
            }
            _ => (at, at),
        };
        out.extend(all.get(first..last)?.iter().cloned());
        at = last;
        out.extend(dots(i));
    }
    Some(out)
}

/// Returns the command to run here, or the reason why it is not run.
fn runnable(s: &Shown, folder: &Path) -> Result<Command, String> {
    let words: Vec<&str> = s.words.iter().map(String::as_str).collect();
    let args = match words[..] {
        ["seekwell", ref args @ ..] => args,
        _ => return Err("not a plain command".to_owned()),
    };
    let mut c = command(args);
    c.env_remove("COLUMNS").current_dir(project("."));
    match s.kind {
        Kind::Fixed => Ok(c),
        Kind::Folder => {
            c.current_dir(folder);
            Ok(c)
        }
        Kind::Live => Err("depends on the machine".to_owned()),
        Kind::Traces => match std::env::var_os("SEEKWELL_TRACES") {
            Some(dir) => {
                c.current_dir(dir);
                Ok(c)
            }
            None => Err("SEEKWELL_TRACES does not name a directory with the trace".to_owned()),
        },
    }
}

/// Checks the options of a command that is not run.
fn options_exist(s: &Shown) {
    let words: Vec<&str> = s.words.iter().map(String::as_str).collect();
    let words: &[&str] = words.strip_prefix(&["sudo"]).unwrap_or(&words);
    let words = words.strip_suffix(&["&"]).unwrap_or(words);
    // The arguments after these words belong to another program, which must not run.
    let own = words.iter().position(|w| ["--", "--for"].contains(w));
    let words = &words[..own.unwrap_or(words.len())];
    let Some(args) = words.strip_prefix(&["seekwell"]) else {
        return;
    };
    let r = seekwell(&[args, &["--help"]].concat());
    assert_eq!(r.code, 0, "{words:?}: {}", r.err);
}

/// Returns README.md and those pages of the book that contain output.
fn pages() -> Vec<String> {
    let mut all = vec!["README.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(project(&folder)).expect("a folder");
        let mut names: Vec<(bool, String)> = entries
            .map(|e| e.expect("an entry"))
            .map(|e| {
                (
                    e.path().is_dir(),
                    e.file_name().to_string_lossy().into_owned(),
                )
            })
            .collect();
        names.sort();
        for (is_folder, name) in names {
            let path = format!("{folder}/{name}");
            match is_folder {
                true => folders.push(path),
                false if name.ends_with(".md") => all.push(path),
                false => {}
            }
        }
    }
    all
}

/// Returns an empty folder for the commands of a page.
fn own_folder(page: &str) -> PathBuf {
    let name = format!("page-{}", page.replace('/', "-"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("the last run's files go");
    }
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Returns the files that a page shows completely, for its commands. Such a file is in a block that
/// is fenced as "csv volume.csv".
fn files(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let named = |(i, l): (usize, &&str)| {
        let (kind, name) = l.strip_prefix("```")?.split_once(' ')?;
        let plain = !name.contains(['/', ' ']) && name.contains('.');
        let own = lines[i + 1..].iter().take_while(|l| **l != "```");
        let body: String = own.map(|l| format!("{l}\n")).collect();
        (kind != "console" && plain).then(|| (name.to_owned(), body))
    };
    lines.iter().enumerate().filter_map(named).collect()
}

/// Returns the output of each command of a page, in order. It is `None` for a command that is not
/// run.
fn all_printed(page: &str, text: &str, shown: &[Shown]) -> Vec<Option<Vec<String>>> {
    let folder = own_folder(page);
    for (name, body) in files(text) {
        std::fs::write(folder.join(name), body).expect("a file of the page");
    }
    let one = |s: &Shown| match runnable(s, &folder) {
        Ok(mut c) => Some(printed(&mut c)),
        Err(why) => {
            println!("{page}: not run: {}: {why}", s.words.join(" "));
            options_exist(s);
            None
        }
    };
    shown.iter().map(one).collect()
}

/// Number of lines on the screen of a terminal.
const SCREEN: usize = 24;

/// Commands whose answer is a list that the user requested, such as steps, records or pages.
const LISTS: &[&str] = &["explain", "convert", "man", "completions"];

/// Checks that an answer fits on one screen, unless the user requested more.
fn one_screen(words: &[String], all: &[String]) -> Result<(), String> {
    let more = ["--details", "--help", "-h", "--json", "--csv", "--markdown"];
    let asked = words.iter().any(|w| more.contains(&w.as_str()));
    let list = words.get(1).is_some_and(|w| LISTS.contains(&w.as_str()));
    // Each further device has a table or an answer of its own.
    let heads = all.first().and_then(|l| l.strip_prefix("On "));
    let tables = heads.and_then(|l| l.split(' ').next()?.parse().ok());
    let answers = ["Take ", "Keep ", "It does not", "Cannot tell"];
    let answers = all
        .iter()
        .filter(|l| answers.iter().any(|a| l.contains(&format!(": {a}"))));
    let devices = tables.unwrap_or(1).max(answers.count()).max(1);
    let most = SCREEN + 8 * (devices - 1);
    match asked || list || all.len() <= most {
        true => Ok(()),
        false => Err(format!("{} lines, where {most} fit", all.len())),
    }
}

/// Compares a page with the program. Returns the differences, and the number of commands that were
/// run.
fn differences_on_page(page: &str, write: bool) -> (Vec<String>, usize) {
    let path = PathBuf::from(project(page));
    let text = std::fs::read_to_string(&path).expect(page);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let all_shown = commands(&text);
    let printed = all_printed(page, &text, &all_shown);
    let run = printed.iter().flatten().count();
    let mut wrong = Vec::new();
    // Start at the end of the page, so that the numbers of earlier lines stay valid.
    for (s, all) in all_shown.iter().zip(&printed).rev() {
        let Some(all) = all else {
            continue;
        };
        let name = s.words.join(" ");
        if let Err(why) = one_screen(&s.words, all) {
            wrong.push(format!("{page}:{}: {name}\n  {why}", s.lines.start));
        }
        let shown = lines[s.lines.clone()].to_vec();
        let Err(why) = agrees(&shown, all) else {
            continue;
        };
        let line = s.lines.start;
        match write.then(|| updated_output(&shown, all)) {
            Some(Some(new)) => drop(lines.splice(s.lines.clone(), new)),
            Some(None) => wrong.push(format!(
                "{page}:{line}: {name}\n  cannot be written anew, since {why}"
            )),
            None => wrong.push(format!("{page}:{line}: {name}\n  {why}")),
        }
    }
    if page == DEMOS_PAGE {
        wrong.extend(demos(&mut lines, write));
    }
    if write {
        std::fs::write(&path, lines.join("\n") + "\n").expect(page);
    }
    (wrong, run)
}

#[test]
fn readme_and_book_quote_the_real_program_output() {
    let write = std::env::var_os("SEEKWELL_README").is_some_and(|v| v == "write");
    let only = std::env::var("SEEKWELL_PAGE").ok();
    let mut pages = pages();
    pages.retain(|p| only.as_ref().is_none_or(|o| p.contains(o.as_str())));
    let (wrong, run) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (own, n) = differences_on_page(page, write);
                    wrong.lock().expect("no panic").extend(own);
                    run.fetch_add(n, Ordering::Relaxed);
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().expect("no panic");
    wrong.sort();
    wrong.extend(picture(write));
    let run = run.into_inner();
    assert!(run >= 5 || only.is_some(), "the blocks were not found");
    assert!(
        wrong.is_empty(),
        "{}\nRun scripts/readme.sh, and look at what changed.",
        wrong.join("\n")
    );
}

/// The page of commands contains every command.
#[test]
fn book_documents_every_command() {
    let page = std::fs::read_to_string(project("docs/reference/commands.md")).expect("the page");
    let help = good(&["--help"]);
    let commands = help.split("Commands:\n").nth(1).expect("commands");
    let names = commands.lines().take_while(|l| !l.trim().is_empty());
    let names = names.filter(|l| l.starts_with("  ") && !l.starts_with("   "));
    let names: Vec<&str> = names.filter_map(|l| l.split_whitespace().next()).collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names.iter().filter(|n| **n != "help") {
        let heading = format!("\n## {name}\n");
        assert!(
            page.contains(&heading),
            "docs/reference/commands.md has no {name}"
        );
    }
}

/// The book's table of contents contains every page once, and no page that is missing.
#[test]
fn table_of_contents_names_every_page_once() {
    let summary = std::fs::read_to_string(project("docs/SUMMARY.md")).expect("SUMMARY.md");
    let named: Vec<String> = summary
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(path, _)| format!("docs/{path}"))
        .collect();
    let own: Vec<String> = pages()
        .into_iter()
        .filter(|p| p != "README.md" && p != "docs/SUMMARY.md")
        .collect();
    for page in &own {
        let n = named.iter().filter(|p| *p == page).count();
        assert_eq!(n, 1, "{page} in docs/SUMMARY.md");
    }
    for page in &named {
        assert!(own.contains(page), "docs/SUMMARY.md names {page}");
    }
    for page in own {
        let text = std::fs::read_to_string(project(&page)).expect("a page");
        let folder = page.rsplit_once('/').map_or("", |p| p.0);
        for link in text.split("](").skip(1).filter_map(|r| r.split_once(')')) {
            let target = link.0.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = PathBuf::from(project(folder)).join(target);
            assert!(path.exists(), "{page} links to {target}");
        }
    }
}

/// The page with the table of demos.
const DEMOS_PAGE: &str = "docs/demos.md";

/// The table of demos: the effect, and its size without its cause. `{row.column}` is a cell in the
/// demo's own table, and both numbers start at 0. `{row.column/row.column}` is the ratio of two
/// cells.
const DEMOS: &[(&str, &str, &str)] = &[
    (
        "async-share",
        "tasks that create files on an SSD: noop {0.1} new files in 6 s, deadline {1.1}, CFQ {2.1} \
         (but its readers read {2.3/0.3} times as much)",
        "all reads cached: {0.4}, {1.4}, {2.4}",
    ),
    (
        "sorted-writeback",
        "scattered dirty files: noop {0.1} s, CFQ {1.1}, deadline {2.1}",
        "pages dirtied in order: {0.2}, {1.2}, {2.2} s",
    ),
    (
        "left-over-writeback",
        "timed read: noop {0.1} MB/s, deadline {1.1}, CFQ {2.1}",
        "sync before it: {0.2}, {1.2}, {2.2} MB/s",
    ),
    (
        "wal-overtakes-writeback",
        "pgbench on a data-centre SSD, data twice as large as memory: noop {0.1} tps, deadline \
         {1.1}, CFQ {2.1}",
        "one client: {0.3}, {1.3}, {2.3}",
    ),
    (
        "scan-and-intruder",
        "scan beside a second reader: noop {0.1} MB/s, anticipatory {2.1}, CFQ {3.1}",
        "idling off: {0.2}, {2.2}, {3.2} MB/s",
    ),
    (
        "raised-at-start",
        "SQLite inserts on eMMC after a pause: noop {0.1} per second, BFQ {1.1}",
        "low_latency off: {2.1}",
    ),
];

/// Returns a text in which values of a demo's table are inserted.
fn filled(text: &str, rows: &[Value]) -> String {
    let cell = |place: &str| {
        let (row, column) = place.split_once('.').expect("row.column");
        let at = |n: &str| n.parse::<usize>().expect("a number");
        rows[at(row)][at(column)]
            .as_str()
            .expect("a cell")
            .to_owned()
    };
    let number = |place: &str| cell(place).parse::<f64>().expect("a number");
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, more)) = rest.split_once('{') {
        let (place, after) = more.split_once('}').expect("a brace");
        out += before;
        match place.split_once('/') {
            Some((a, b)) => out += &format!("{:.1}", number(a) / number(b)),
            None => out += &cell(place),
        }
        rest = after;
    }
    out + rest
}

/// Returns the rows of the table of demos that differ from the demo's output. With `write`, updates
/// these rows.
fn demos(lines: &mut [String], write: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, effect, without) in DEMOS {
        let doc: Value =
            serde_json::from_str(&good(&["demo", name, "--json", "--seeds", "1"])).expect("JSON");
        let rows = doc["demos"][0]["rows"].as_array().expect("rows");
        let row = format!(
            "| `{name}` | {} | {} |",
            filled(effect, rows),
            filled(without, rows)
        );
        let start = format!("| `{name}` |");
        match lines.iter_mut().find(|l| l.starts_with(&start)) {
            Some(l) if *l == row => {}
            Some(l) if write => *l = row,
            _ => wrong.push(format!(
                "{DEMOS_PAGE}: the table of demos should have\n  {row}"
            )),
        }
    }
    wrong
}

/// The picture at the top of the page is the output of the demo.
fn picture(write: bool) -> Option<String> {
    let path = project("docs/deceptive-idleness.svg");
    let fresh = scratch("picture.svg", b"");
    good(&["demo", "deceptive-idleness", "--plot", &fresh]);
    let fresh = std::fs::read_to_string(fresh).expect("just drawn");
    if std::fs::read_to_string(&path).is_ok_and(|old| old == fresh) {
        return None;
    }
    if write {
        std::fs::write(&path, fresh).expect("docs");
        return None;
    }
    Some("docs/deceptive-idleness.svg is not what the demo draws".to_owned())
}
