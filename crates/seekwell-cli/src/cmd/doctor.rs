//! `seekwell doctor`: shows which features work on this machine, and how to get the others.

use super::host::boot_time;
use super::python;
use crate::cli::Doctor;
use crate::fail::Failure;
use crate::out::{Out, width};
use seekwell_host::abilities::{Ability, Here, abilities};
use seekwell_host::block::{Machine, Tree};
use seekwell_report::style::{GOOD, PLAIN};
use seekwell_report::table::{Align, Table, painted};
use serde_json::json;

/// Returns the entry for the package of the Python commands.
fn package() -> Ability {
    Ability {
        name: "Python package",
        of: "tune, sweep, notebooks",
        found: "seekwell-lab".to_owned(),
        remedy: python::lacking(),
    }
}

/// Returns the entry for kernels on virtual time.
fn guest() -> Ability {
    let cache = seekwell_guest::cache_dir();
    let kernels = cache.map_or(Vec::new(), |c| seekwell_guest::Kernel::list(&c));
    let names: Vec<String> = kernels.into_iter().map(|k| k.name).collect();
    let missing: Vec<&str> = seekwell_guest::missing_tools()
        .into_iter()
        .map(|(_, package)| package)
        .collect();
    let remedy = match (names.is_empty(), missing.is_empty()) {
        (false, _) => None,
        (true, false) => Some(format!("apt-get install {}", missing.join(" "))),
        (true, true) => Some("seekwell guest build".to_owned()),
    };
    Ability {
        name: "guest kernel",
        of: "guest run, guest diff",
        found: names.join(", "),
        remedy,
    }
}

fn as_json(a: &Ability) -> serde_json::Value {
    json!({
        "name": a.name, "usable": a.usable(), "found": a.found, "for": a.of, "remedy": a.remedy,
    })
}

/// Prints which features work.
pub fn run(a: &Doctor) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    Out::check(output)?;
    let mut all = abilities(&Here);
    all.push(guest());
    all.push(package());
    let mut out = Out::open(output)?;
    let m = Machine::read(&Tree::default());
    let at_boot = boot_time::setters(&m, |d| !d.idle());
    if a.json {
        let list: Vec<_> = all.iter().map(as_json).collect();
        out.json(
            &json!({ "schema": 1, "command": "doctor", "abilities": list,
            "at_boot": boot_time::json(&at_boot) }),
        )?;
        return out.done();
    }
    let usable = all.iter().filter(|a| a.usable()).count();
    out.prose(&format!(
        "Simulation, replay, report and explain need nothing from this machine. For other \
         commands, {usable} of {} features work:",
        all.len()
    ))?;
    let mut t = Table::new(&[("", Align::Left), ("", Align::Left), ("", Align::Left)]);
    for a in &all {
        let (word, style) = match a.usable() {
            true => ("yes", GOOD),
            false => ("no", PLAIN),
        };
        let told = match &a.remedy {
            None => format!("{} ({})", a.found, a.of),
            Some(remedy) => format!("{remedy} (for {})", a.of),
        };
        t.row(vec![painted(word, style), a.name.into(), told.into()]);
    }
    out.text(&t.render_within(2, width()))?;
    out.text(&boot_time::text(&at_boot, width()))?;
    out.done()
}
