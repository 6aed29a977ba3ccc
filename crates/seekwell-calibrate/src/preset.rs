//! Writes the result of a calibration as a preset file. Each parameter has a unit and a source.

use crate::fit::{Estimate, Fit, Kind, Known, Val, short};
use crate::probe::Facts;
use std::fmt::Write;

/// Returns the kind of preset that a fit results in, or `None` if it does not result in a preset.
pub fn kind_of(fit: &Fit) -> Option<&'static str> {
    match fit.kind {
        Kind::Hdd if fit.get("rpm").is_some() => Some("hdd"),
        Kind::Flash if fit.get("t_read").is_some() => Some("ssd"),
        _ => None,
    }
}

/// Returns the complete preset file of a fit, with the given name. Returns `None` if too few
/// parameters were found.
pub fn preset(fit: &Fit, name: &str) -> Option<String> {
    let mut about = vec![format!("{} ({})", fit.kind, fit.because)];
    about.extend(fit.facts.identity.iter().cloned());
    about.push(format!(
        "{} I/Os in {:.0} s{}",
        fit.ios,
        fit.seconds,
        fit.cut
            .as_ref()
            .map_or(String::new(), |c| format!("; stopped early: {c}"))
    ));
    if let Some(d) = fit.demerit {
        about.push(format!(
            "latencies of random reads against the model: demerit {:.1} % (chance alone {:.1} %, a \
             generic disk {:.1} %)",
            d.fitted * 100.0,
            d.chance * 100.0,
            d.generic * 100.0
        ));
    }
    about.extend(fit.notes.iter().cloned());
    Some(text(
        &fit.facts,
        kind_of(fit)?,
        &fit.estimates,
        &about,
        name,
    ))
}

/// Returns a text as a quoted TOML string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if seekwell_core::foreign::acts(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn value(v: &Val) -> String {
    match v {
        Val::Num(x) => short(*x),
        Val::Flag(b) => b.to_string(),
        Val::Word(w) => quoted(w),
        Val::Pairs(rows) => {
            let rows: Vec<String> = rows
                .iter()
                .map(|(a, b)| format!("[{}, {}]", short(*a), short(*b)))
                .collect();
            format!("[{}]", rows.join(", "))
        }
    }
}

/// Returns the source of an estimate, in the form that preset files use.
fn source(e: &Estimate) -> String {
    let mut s = match e.known {
        Known::Measured => format!("fitted: {}", e.method),
        Known::Stated => format!("estimate: as the host reports it: {}", e.method),
        Known::Unknown => format!("estimate: not measured: {}", e.method),
    };
    if let Some((lo, hi)) = e.interval {
        let _ = write!(s, "; 95 % {} to {}", short(lo), short(hi));
    }
    if e.samples > 0 {
        let _ = write!(s, "; n = {}", e.samples);
    }
    s
}

/// Returns the parameters that the host reports about the device.
fn stated(facts: &Facts, kind: &str) -> Vec<Estimate> {
    let mut out = vec![
        Estimate::num(
            "capacity",
            facts.capacity as f64,
            "sectors",
            "size of the device",
        )
        .stated(),
    ];
    if kind == "hdd" {
        if let Some(b) = facts
            .physical_block_bytes
            .filter(|b| matches!(b, 512 | 4096))
        {
            out.push(
                Estimate::num("physical_block", f64::from(b), "bytes", "physical block").stated(),
            );
        }
        if let Some(f) = facts.fua {
            out.push(Estimate::new_value("fua", Val::Flag(f), "", "queue/fua").stated());
        }
    }
    if let Some(w) = facts.write_cache {
        out.push(
            Estimate::new_value("write_cache", Val::Flag(w), "", "queue/write_cache").stated(),
        );
    }
    out
}

/// Returns typical values for parameters that a preset needs and that an unfinished calibration of
/// a disk did not find.
fn missing(have: &[Estimate], kind: &str) -> Vec<Estimate> {
    let lacks = |key: &str| have.iter().all(|e| e.key != key);
    let mut out = vec![];
    if kind == "hdd" {
        let how = "the calibration ended before this measurement; a typical value is used";
        if lacks("surfaces") {
            out.push(Estimate::num("surfaces", 4.0, "surfaces", how).unknown());
        }
        if lacks("zone_table") && lacks("outer_track") {
            out.push(Estimate::num("outer_track", 1300.0, "sectors", how).unknown());
        }
    }
    out
}

/// Returns the text of a preset file.
pub(crate) fn text(
    facts: &Facts,
    kind: &str,
    estimates: &[Estimate],
    about: &[String],
    name: &str,
) -> String {
    let mut all = stated(facts, kind);
    all.extend(estimates.iter().cloned());
    all.extend(missing(&all, kind));
    let mut out = String::new();
    let title = format!("fitted to {} by seekwell calibrate", facts.name);
    let _ = writeln!(out, "# {}.", title.replace(char::is_control, " "));
    for line in about {
        let _ = writeln!(out, "# {}", line.replace(char::is_control, " "));
    }
    let name = if name.is_empty() { "fitted" } else { name };
    let _ = writeln!(out, "kind = {}", quoted(kind));
    let _ = writeln!(out, "name = {}", quoted(name));
    let _ = writeln!(out, "summary = {}\n\n[params]", quoted(&title));
    for (i, e) in all.iter().enumerate() {
        // If a key occurs twice, the last estimate is used.
        if all[i + 1..].iter().any(|l| l.key == e.key) {
            continue;
        }
        let unit = match e.unit {
            "" => String::new(),
            u => format!("unit = {}, ", quoted(u)),
        };
        let _ = writeln!(
            out,
            "{} = {{ value = {}, {unit}source = {} }}",
            e.key,
            value(&e.value),
            quoted(&source(e))
        );
    }
    out
}
