//! The rules that reasons refer to. They come from the tables of the schedulers.

use crate::catalog;
use seekwell_core::Rule;
use seekwell_microscope::{Case, Step};
use seekwell_sched::{SchedulerInfo, find};

fn info(case: &Case) -> Option<&'static SchedulerInfo> {
    find(&case.elevator).map(|f| f.0)
}

/// Returns the rules in the reasons of these steps, in the order of the scheduler's table.
pub fn legend(case: &Case, steps: &[Step], width: usize) -> String {
    let named = |r: &&'static Rule| steps.iter().any(|s| s.event.rule == Some(*r));
    let all = info(case).map_or(&[][..], |s| s.rules);
    let some: Vec<_> = all.iter().copied().filter(named).collect();
    catalog::rules("RULES NAMED ABOVE", &some, width)
}

/// Returns all rules of the schedulers of these cases, one table per scheduler.
pub fn legends(cases: &[Case], width: usize) -> String {
    match tables(cases.iter().filter_map(info), width) {
        none if none.is_empty() => none,
        some => format!("\n{some}"),
    }
}

/// Returns all rules of these schedulers, one table per scheduler.
pub fn tables(of: impl IntoIterator<Item = &'static SchedulerInfo>, width: usize) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut out = String::new();
    for s in of {
        if !names.contains(&s.name) {
            names.push(s.name);
            if !out.is_empty() {
                out.push('\n');
            }
            let head = format!("RULES OF {}", s.name);
            out += &catalog::rules(&head, s.rules, width);
        }
    }
    out
}
