//! Reads a result page of OpenBenchmarking.org that was saved as plain text. Such a text has lost
//! the markup of its tables. It begins with an overview, which lists the values column by column.
//! One block per test follows, with the errors ("SE +/- 0.69, N = 3") and then the values, row by
//! row.
//!
//! The columns belong to the systems in the disk's notes ("- Penryn + HDD: CFQ: CFQ / data=..."),
//! or in the user's option. If a block has fewer values than there are columns, the overview shows
//! which are missing. If the overview does not show it, the block is left out with a note. Two
//! adjacent numbers may have no space between them if both have two decimals.

use super::harvest::{Harvest, HarvestFigure, Number, Of, number, short};
use super::names::known;
use super::pts_names::metric_of;
use super::{Format, ImportError, Input, NameFrom, Place};

pub const FORMAT: Format = Format {
    name: "openbenchmarking-text",
    summary: "the page of a result on OpenBenchmarking.org, saved as text",
    becomes: "systems as in pts-xml, from the disk's notes or --columns; a block -> workload",
    gives: "means with standard errors and N",
    scheduler_from: NameFrom::System,
    known: |t| {
        !t.trim_start().starts_with('<')
            && t.contains("SE +/-")
            && BETTER.iter().any(|b| t.contains(b.0))
    },
    part_of: None,
    read,
};

/// Texts by which a block states whether higher is better.
const BETTER: &[(&str, &str)] = &[
    (", More Is Better", "HIB"),
    (", Fewer Is Better", "LIB"),
    (", Less Is Better", "LIB"),
];
const ERROR: &str = "SE +/- ";
/// Largest number of columns.
const COLUMNS_MAX: usize = 200;

/// The block of one test.
#[derive(Default)]
struct Block {
    title: String,
    unit: String,
    direction: &'static str,
    errors: Vec<(Number, u32)>,
    values: Vec<Number>,
    line: usize,
}

/// Returns the systems in the disk's notes, each with its scheduler.
fn systems(text: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for part in text.split("- ") {
        let Some((front, _)) = part.split_once(" / ") else {
            continue;
        };
        let Some((name, scheduler)) = front.rsplit_once(": ") else {
            continue;
        };
        let name = short(name);
        let new = !out.iter().any(|s| s.0 == name);
        if known(scheduler).is_some() && new && out.len() < COLUMNS_MAX {
            out.push((name, short(scheduler)));
        }
    }
    out
}

/// Splits a token into numbers: "36.0035.03" is two numbers.
fn numbers(token: &str) -> Option<Vec<Number>> {
    let mut out = Vec::new();
    let mut rest = token;
    while !rest.is_empty() {
        let whole = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        if whole == 0 {
            return None;
        }
        let dots = rest.matches('.').count();
        let end = match dots {
            0 => rest.len(),
            1 if !rest.ends_with('.') => rest.len(),
            1 => return None,
            _ => whole + 3,
        };
        out.push(number(rest.get(..end)?).ok()?);
        rest = &rest[end..];
    }
    (!out.is_empty()).then_some(out)
}

/// Returns the numbers at the start of a text, up to the first token that is not a number.
fn leading(text: &str) -> Vec<Number> {
    let tokens = text.split_whitespace().map(numbers);
    tokens
        .take_while(Option::is_some)
        .flatten()
        .flatten()
        .collect()
}

/// Returns the errors of a block, each with its number of runs, and the text after the last error.
fn errors(text: &str) -> (Vec<(Number, u32)>, &str) {
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(ERROR) {
        let tail = &rest[at + ERROR.len()..];
        let Some((se, tail)) = tail.split_once(", N = ") else {
            break;
        };
        let digits = tail
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(tail.len());
        // If the first value follows without a space, the number of runs has one digit.
        let digits = match tail[digits..].starts_with('.') {
            true => digits.min(1),
            false => digits,
        };
        let Some((se, n)) = number(se).ok().zip(tail[..digits].parse().ok()) else {
            break;
        };
        out.push((se, n));
        rest = &tail[digits..];
    }
    (out, rest)
}

fn blocks(text: &str, names: &[(String, String)]) -> Vec<Block> {
    let mut starts: Vec<(usize, usize, &'static str)> = Vec::new();
    for (word, direction) in BETTER {
        for (at, _) in text.match_indices(word) {
            starts.push((at, at + word.len(), direction));
        }
    }
    starts.sort_unstable();
    let mut stops: Vec<&str> = vec![ERROR];
    for (name, _) in names {
        stops.push(name.rsplit_once(": ").map_or(name, |p| p.0));
    }
    let mut out = Vec::new();
    for (i, (at, from, direction)) in starts.iter().enumerate() {
        let to = starts.get(i + 1).map_or(text.len(), |next| next.0);
        let body = &text[*from..to];
        let before = &text[..*at];
        let unit = before
            .rsplit_once("OpenBenchmarking.org")
            .map_or(before, |p| p.1);
        let unit = unit.lines().last().unwrap_or("");
        let stop = stops.iter().filter_map(|s| body.find(s)).min().unwrap_or(0);
        let title: Vec<String> = body[..stop]
            .lines()
            .map(short)
            .filter(|l| !l.is_empty())
            .collect();
        let (errors, rest) = errors(body);
        out.push(Block {
            title: title.join(": "),
            unit: short(unit),
            direction,
            values: leading(rest),
            errors,
            line: 1 + text[..*at].matches('\n').count(),
        });
    }
    out
}

/// Returns the longest sequence of numbers before the first block.
fn overview(text: &str) -> Vec<f64> {
    let first = BETTER
        .iter()
        .filter_map(|b| text.find(b.0))
        .min()
        .unwrap_or(0);
    let (mut best, mut run): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for token in text[..first].split_whitespace().chain(["end"]) {
        match numbers(token) {
            Some(all) => run.extend(all.iter().map(|n| n.value)),
            None if run.len() > best.len() => best = std::mem::take(&mut run),
            None => run.clear(),
        }
    }
    best
}

/// Returns the column of each value of each block; `None` if the overview does not determine it.
fn placed(blocks: &[Block], overview: &[f64], columns: usize) -> Option<Vec<Vec<usize>>> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); blocks.len()];
    let mut next = overview.iter().peekable();
    for column in 0..columns {
        for (block, places) in blocks.iter().zip(&mut out) {
            let value = block.values.get(places.len()).map(|v| v.value);
            let here = next.peek().is_some_and(|o| Some(**o) == value);
            if here {
                next.next();
                places.push(column);
            } else if block.values.len() == columns {
                return None;
            }
        }
    }
    let all = blocks
        .iter()
        .zip(&out)
        .all(|(b, p)| b.values.len() == p.len());
    (all && next.next().is_none()).then_some(out)
}

/// Returns the error of each value: its own error, or one error that applies to all values.
fn assigned(block: &Block, harvest: &mut Harvest) -> Vec<Option<(Number, u32)>> {
    let (have, need) = (block.errors.len(), block.values.len());
    if have == need {
        return block.errors.iter().map(|e| Some(*e)).collect();
    }
    let title = &block.title;
    let same = block.errors.windows(2).all(|w| w[0] == w[1]);
    if have > 0 && have < need && same {
        harvest.note(format!(
            "{title}: {have} errors for {need} values, all equal; used for all values"
        ));
        return vec![block.errors.first().copied(); need];
    }
    harvest.note(format!(
        "{title}: {have} errors for {need} values; none is used"
    ));
    vec![None; need]
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let text = input.text.as_str();
        let mut names = systems(text);
        if !harvest.columns.is_empty() {
            names = harvest
                .columns
                .iter()
                .map(|c| (c.clone(), String::new()))
                .collect();
        }
        if names.is_empty() {
            let what = "names no systems: the notes on the disk (`- SYSTEM: SCHEDULER / options`) \
                        are missing; give the columns in their order, --columns \"A: CFQ,A: NOOP\"";
            return Err(input.error(Place::File, what));
        }
        let blocks = blocks(text, &names);
        let overview = overview(text);
        let places = placed(&blocks, &overview, names.len());
        if places.is_some() {
            harvest.note(format!(
                "the overview and the blocks agree on all {} values",
                overview.len()
            ));
        } else {
            harvest.note("the overview does not match the blocks; the blocks are used");
        }
        if harvest.title.is_empty() {
            harvest.title = short(text.lines().find(|l| !l.trim().is_empty()).unwrap_or(""));
        }
        let read = (names, places);
        for (i, block) in blocks.iter().enumerate() {
            of_block(i, block, &read, input, harvest)?;
        }
    }
    Ok(())
}

/// Systems with their schedulers, and the columns of each block's values if they are known.
type Layout = (Vec<(String, String)>, Option<Vec<Vec<usize>>>);

fn of_block(
    i: usize,
    block: &Block,
    (names, places): &Layout,
    input: &Input,
    harvest: &mut Harvest,
) -> Result<(), ImportError> {
    let all: Vec<usize> = (0..block.values.len()).collect();
    let columns = match places.as_ref().and_then(|p| p.get(i)) {
        Some(told) => told,
        None if block.values.len() == names.len() => &all,
        None => {
            harvest.note(format!(
                "{}, line {}: {}: {} values for {} systems, and the overview does not show which \
                 are missing; left out",
                input.base(),
                block.line,
                block.title,
                block.values.len(),
                names.len()
            ));
            return Ok(());
        }
    };
    let metric = metric_of(&block.unit, block.direction, harvest);
    let errors = assigned(block, harvest);
    for ((value, column), error) in block.values.iter().zip(columns).zip(errors) {
        let Some((system, recorded)) = names.get(*column) else {
            continue;
        };
        harvest.figure(HarvestFigure {
            of: Of {
                system: system.clone(),
                recorded: recorded.clone(),
                test: match block.title.as_str() {
                    "" => "test without a name".to_owned(),
                    title => title.to_owned(),
                },
                ..Of::default()
            },
            metric: metric.clone(),
            mean: *value,
            se: error.map(|e| e.0),
            sd: None,
            n: error.map(|e| e.1),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concatenated_numbers_with_two_decimals_are_split() {
        let values =
            |t: &str| numbers(t).map(|all| all.iter().map(|n| n.value).collect::<Vec<_>>());
        assert_eq!(values("36.0035.03"), Some(vec![36.0, 35.03]));
        assert_eq!(values("1531"), Some(vec![1531.0]));
        assert_eq!(values("91.752"), Some(vec![91.752]));
        assert_eq!(values("1."), None);
        assert_eq!(values("12a"), None);
        let (found, rest) = errors("x SE +/- 0.69, N = 3SE +/- 0.7, N = 636.00 1");
        assert_eq!(found.iter().map(|e| e.1).collect::<Vec<_>>(), [3, 6]);
        assert_eq!(rest, "36.00 1");
    }
}
