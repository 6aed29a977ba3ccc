//! Prints an experiment: a summary that fits one screen, and with --details every cell.

use super::Steps;
use crate::cli::Compare;
use crate::fail::Failure;
use crate::out::{Out, columns, width};
use seekwell::Substrate;
use seekwell_lab::analysis::{Analysis, Group};
use seekwell_lab::conduct::Conducted;
use seekwell_report::compare::{answer, first, seeds};
use seekwell_report::table::wrap;

/// Prints the summary, and with --details every cell.
pub fn text(
    out: &mut Out,
    a: &Compare,
    analysis: &Analysis,
    done: &Conducted,
    (steps, depends): (&Steps<'_>, &str),
) -> Result<(), Failure> {
    let labels = &analysis.treatments;
    let most = analysis.cells.iter().map(|c| c.blocks).max().unwrap_or(0);
    let by_seed = seeds::seeds(analysis.method.seed, most);
    let real = steps.substrate == Substrate::Host;
    let rests_on = match steps.substrate {
        Substrate::Host => format!(
            "Measured on this machine, {most} block{}.",
            if most == 1 { "" } else { "s" }
        ),
        Substrate::Kernel => {
            format!("Real kernel on virtual time with {by_seed}; CPU time is free.")
        }
        Substrate::Sim if !steps.resumable => {
            "Simulated in one run, whose scheduler was switched.".to_owned()
        }
        Substrate::Sim | Substrate::Serve => seeds::simulated(&by_seed, &[]),
    };
    let foot = seeds::warm_up(analysis.cells.iter(), width())
        + depends
        + &seeds::foot(&rests_on, a.details, width());
    // The line with the results folder follows the summary.
    let room = (first::lines(analysis.groups.len()) - 1).saturating_sub(foot.lines().count());
    out.text(&screen(analysis, room, real))?;
    if a.details {
        for cell in &analysis.cells {
            out.line("")?;
            out.text(&wrap(&cell.name, 2, width()))?;
            out.text(&seeds::judged(cell, labels, "", true, columns()))?;
        }
    }
    out.text(&foot)?;
    if done.out_of_budget {
        out.line(
            "The budget is used up. Each cell contains the blocks that were complete at that time.",
        )?;
    }
    Ok(())
}

/// Returns all tests in at most `room` lines, with a score over the tests for each device.
fn screen(analysis: &Analysis, room: usize, real: bool) -> String {
    let one = analysis.groups.len() == 1;
    let rows: Vec<seeds::Judged> = analysis
        .groups
        .iter()
        .flat_map(|group| {
            let place = match one {
                true => String::new(),
                false => place(group),
            };
            let of = move |row| seeds::Judged {
                place: place.clone(),
                ..row
            };
            rows(analysis, group).into_iter().map(of)
        })
        .collect();
    let on = match (&analysis.groups[..], real) {
        ([one], true) => format!("Measured on this machine, in {}", place(one)),
        ([one], false) => format!("On a modelled disk, not one of yours: {}", place(one)),
        (all, true) => format!("Measured on this machine, in {} places", all.len()),
        (all, false) => format!("On {} modelled disks, none of yours", all.len()),
    };
    let heading = format!("{on} ({})", blocks(&rows));
    let legend = seeds::legend(analysis.method.margin, width());
    // A sentence for each device is more important than some tests, but not than all tests.
    let labels = &analysis.treatments;
    let each = analysis.groups.iter().map(|g| match one {
        true => seeds::scores(g, labels, width()),
        false => seeds::scores_at(&place(g), g, labels, width()),
    });
    let scores: String = each.collect();
    let least = 12;
    let scores = match room.checked_sub(scores.lines().count()) {
        Some(left) if left >= least => scores,
        _ => String::new(),
    };
    let room = room - scores.lines().count().min(room);
    answer(&rows, labels, (&heading, &legend), &[], room, columns()) + &scores
}

/// Returns the tests of a device, with the shortest names that are distinct.
fn rows<'a>(analysis: &'a Analysis, group: &Group) -> Vec<seeds::Judged<'a>> {
    let cells = group.cells.iter().map(|i| &analysis.cells[*i]);
    cells
        .map(|cell| {
            let alike = |i: &&usize| {
                let of = &analysis.cells[**i];
                of.workload == cell.workload && of.cell != cell.cell
            };
            let name = match group.cells.iter().any(|i| alike(&i)) {
                false => cell.workload.clone(),
                true => cell.name.clone(),
            };
            seeds::Judged::new(name, cell)
        })
        .collect()
}

/// Formats the number of blocks, for example "10 blocks", "3 to 10 blocks".
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
