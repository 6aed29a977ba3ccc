//! What an experiment prints: the first screen, and with --details every cell.

use crate::cli::Compare;
use crate::fail::Failure;
use crate::out::{Out, columns, width};
use seekwell_lab::analysis::{Analysis, Group};
use seekwell_lab::conduct::Conducted;
use seekwell_report::compare::{first, many, seeds};
use seekwell_report::table::wrap;

/// The first screen: a matrix a device; with --details every cell.
pub fn text(
    out: &mut Out,
    a: &Compare,
    analysis: &Analysis,
    done: &Conducted,
    (real, depends): (bool, &str),
) -> Result<(), Failure> {
    let labels = &analysis.treatments;
    let mut head = String::new();
    let mut scores = Vec::new();
    for group in &analysis.groups {
        scores.push(seeds::scores(group, labels, width()));
        head += &matrix(analysis, group, real);
        head += scores.last().map_or("", String::as_str);
    }
    let most = analysis.cells.iter().map(|c| c.blocks).max().unwrap_or(0);
    let margin = analysis.method.margin;
    let key = match real {
        true => seeds::key_for_real(most, margin, width()),
        false => seeds::key(most, margin, width()),
    };
    let foot = seeds::warm_up(analysis.cells.iter(), width()) + &key + depends;
    // The line that tells the folder comes behind it.
    let room = (first::LINES - 1).saturating_sub(foot.lines().count());
    if !a.details && head.lines().count() > room {
        head = on_a_screen(analysis, &scores, room, real);
    }
    out.text(&head)?;
    out.text(&foot)?;
    if a.details {
        for cell in &analysis.cells {
            out.line("")?;
            out.text(&wrap(&cell.name, 2, width()))?;
            out.text(&seeds::judged(cell, labels, "", true, columns()))?;
        }
    }
    if done.out_of_budget {
        out.line("The budget has ended: cells have the whole blocks that were made until then.")?;
    }
    Ok(())
}

/// All tests in so many lines, where a matrix a device takes more than a screen.
fn on_a_screen(analysis: &Analysis, scores: &[String], room: usize, real: bool) -> String {
    let one = analysis.groups.len() == 1;
    let rows: Vec<seeds::Judged> = analysis
        .groups
        .iter()
        .flat_map(|group| {
            let place = place(group);
            rows(analysis, group).into_iter().map(move |row| match one {
                true => row,
                false => seeds::Judged {
                    name: format!("{place}: {}", row.name),
                    ..row
                },
            })
        })
        .collect();
    let on = match (&analysis.groups[..], real) {
        ([one], true) => format!("For real, in {}", place(one)),
        ([one], false) => format!("On a modelled disk, not one of yours: {}", place(one)),
        (all, true) => format!("For real, in {} places", all.len()),
        (all, false) => format!("On {} modelled disks, none of yours", all.len()),
    };
    let heading = format!("{on}: {}", blocks(&rows));
    // A sentence for each device is worth more than some of its tests, but not than all of them.
    let scores = scores.concat();
    let least = 12;
    let scores = match room.checked_sub(scores.lines().count()) {
        Some(left) if left >= least => scores,
        _ => String::new(),
    };
    let room = room - scores.lines().count().min(room);
    many::tests(&rows, &analysis.treatments, &heading, &[], room, columns()) + &scores
}

/// The tests of a device, by the shortest names that tell them apart.
fn rows<'a>(analysis: &'a Analysis, group: &Group) -> Vec<seeds::Judged<'a>> {
    let cells = group.cells.iter().map(|i| &analysis.cells[*i]);
    cells
        .map(|cell| {
            let alike = |i: &&usize| {
                let of = &analysis.cells[**i];
                of.workload == cell.workload && of.cell != cell.cell
            };
            let name = match (group.cells.iter().any(|i| alike(&i)), cell.rows) {
                (false, _) => cell.title(),
                (true, 1) => cell.name.clone(),
                (true, _) => format!("{}, {}", cell.name, cell.metric.name),
            };
            seeds::Judged { name, cell }
        })
        .collect()
}

/// "10 blocks", "3 to 10 blocks".
fn blocks(rows: &[seeds::Judged]) -> String {
    let blocks = rows.iter().map(|r| r.cell.blocks);
    let (least, most) = (blocks.clone().min().unwrap_or(0), blocks.max().unwrap_or(0));
    match least == most {
        true if most == 1 => "1 block".to_owned(),
        true => format!("{most} blocks"),
        false => format!("{least} to {most} blocks"),
    }
}

fn place(group: &Group) -> String {
    match group.machine.as_str() {
        "" => group.device.clone(),
        m => format!("{}, {m}", group.device),
    }
}

fn matrix(analysis: &Analysis, group: &Group, real: bool) -> String {
    let rows = rows(analysis, group);
    let on = match real {
        true => "For real, in ",
        false => "On a modelled disk, not one of yours: ",
    };
    let heading = format!("{on}{} ({})", place(group), blocks(&rows));
    seeds::matrix(&rows, &analysis.treatments, &heading, &[], columns())
}
