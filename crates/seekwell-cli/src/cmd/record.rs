//! `seekwell record DEVICE|PATH -o FILE -- COMMAND...`: records the requests to a block device from
//! the kernel's tracepoints while a program runs. `seekwell replay` reads the trace.

use super::switch::show::{again, quoted};
use crate::cli::{Door, Record};
use crate::fail::Failure;
use crate::out::{Out, note};
use crate::traces::failed;
use seekwell_host::block::{Device, Machine, Tree};
use seekwell_host::switch::command::{Held, code};
use seekwell_host::watch::{By, Recorded, Recorder};
use seekwell_report::units::bytes;
use seekwell_trace::{
    Format, ReadOptions, WriteOptions, create, device_number, find_format, format_of_name, formats,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

/// The format that is the text of tracefs itself. It contains all recorded events.
const RAW: &str = "ftrace";

/// Returns the output format. It is checked before the program starts.
fn target(a: &Record) -> Result<Format, Failure> {
    let named = a.to.as_deref().map(find_format).transpose();
    let raw = || {
        let own = a.output.extension().is_some_and(|x| x == RAW);
        own.then(|| find_format(RAW).ok()).flatten()
    };
    let to = named.map_err(failed)?;
    let to = to.or_else(raw).or_else(|| format_of_name(&a.output));
    let written = |f: &Format| f.create.is_some() || f.name == RAW;
    match to {
        Some(to) if written(&to) => Ok(to),
        _ => {
            let names = formats().iter().filter(|f| written(f)).map(|f| f.name);
            let names: Vec<&str> = names.collect();
            Err(Failure::input(format!(
                "{}: the name does not determine an output format; give --to FORMAT, one of {}",
                a.output.display(),
                names.join(", ")
            )))
        }
    }
}

/// Returns the device below a path, whose requests are recorded.
pub fn device<'a>(path: &Path, m: &'a Machine) -> Result<&'a Device, Failure> {
    let u = m.under(path).map_err(|e| Failure::input(e.to_string()))?;
    let named = u.device.as_ref().and_then(|n| m.named(n)).map(|n| n.0);
    let deciding = || u.deciding.iter().filter_map(|n| m.device(n));
    match named.or_else(|| deciding().next()) {
        Some(d) if named.is_some() || u.deciding.len() == 1 => Ok(d),
        Some(_) => Err(Failure::input(format!(
            "{}: is on {} devices ({}); name one of them",
            u.asked,
            u.deciding.len(),
            u.deciding.join(", ")
        ))),
        None => Err(Failure::input(format!("{}: {}", u.asked, u.verdict))),
    }
}

/// A command that ran while the requests to a device were recorded.
pub struct Ran {
    /// Exit code of the command.
    pub code: u8,
    /// Time that the command ran.
    pub time: Duration,
    /// The requests.
    pub recorded: Recorded,
    /// Method of the recording.
    pub by: By,
    /// While it exists, signals do not end this process.
    held: Held,
}

/// Runs a command and records the requests to a device. Signals go to the command.
pub fn record(
    d: &Device,
    by: Option<By>,
    command: &[OsString],
    quiet: bool,
) -> Result<Ran, Failure> {
    let Some(numbers) = d.numbers else {
        return Err(Failure::input(format!(
            "{}: the device has no number in /sys",
            d.name
        )));
    };
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::input(format!(
            "only root can read the kernel's tracepoints: {}",
            again()
        )));
    }
    let bad = |e: seekwell_host::watch::WatchError| Failure::input(e.to_string());
    let (mut trace, closed) =
        Recorder::open(device_number(numbers.0, numbers.1), by).map_err(bad)?;
    let by = trace.by();
    if let Some(why) = closed {
        note(quiet, &format!("recorded through tracefs: {why}"));
    }
    let held =
        Held::new().map_err(|e| Failure::input(format!("signals cannot be blocked: {e}")))?;
    trace.start().map_err(bad)?;
    let began = Instant::now();
    let ran = held.run(command);
    let time = began.elapsed();
    let recorded = trace.stop().map_err(bad)?;
    drop(trace);
    let status = ran.map_err(|e| {
        Failure::input(format!(
            "{}: cannot be run: {e}",
            command[0].to_string_lossy()
        ))
    })?;
    Ok(Ran {
        code: code(status),
        time,
        recorded,
        by,
        held,
    })
}

/// Numbers of recorded requests, by class.
#[derive(Default)]
struct Tally {
    bios: u64,
    bytes: u64,
    classes: BTreeMap<&'static str, (u64, u64)>,
}

fn class(r: &seekwell_trace::Record) -> &'static str {
    use seekwell_core::{Flags, Op};
    match r.op {
        Op::Read if r.flags.contains(Flags::META) => "metadata reads",
        Op::Read => "reads",
        Op::Write if r.flags.contains(Flags::META) => "metadata writes",
        Op::Write if r.flags.contains(Flags::SYNC) => "synchronous writes",
        Op::Write => "writes",
        Op::Flush => "flushes",
        Op::Discard => "discards",
        Op::WriteZeroes => "zeroes",
    }
}

/// Converts the kernel's text to the requested format, and counts the requests.
fn written(a: &Record, to: Format, text: &str, d: &Device) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    let raw = find_format(RAW).map_err(failed)?;
    let options = ReadOptions::default();
    let input = std::io::Cursor::new(text.as_bytes().to_vec());
    let mut reader = seekwell_trace::from_reader("the kernel's trace", input, Some(raw), &options)
        .map_err(failed)?;
    let numbers = d.numbers.unwrap_or_default();
    let mut writer = match to.create {
        Some(_) => {
            let options = WriteOptions {
                device: device_number(numbers.0, numbers.1),
                ..WriteOptions::default()
            };
            Some(create(&a.output, to, &options).map_err(failed)?)
        }
        None => None,
    };
    let mut named = std::collections::BTreeSet::new();
    while let Some(r) = reader.next() {
        let r = r.map_err(failed)?;
        let sum = tally.classes.entry(class(&r)).or_default();
        let length = u64::from(r.sectors.0) * 512;
        (sum.0, sum.1) = (sum.0 + 1, sum.1 + length);
        (tally.bios, tally.bytes) = (tally.bios + 1, tally.bytes + length);
        let Some(writer) = &mut writer else { continue };
        if let Some(pid) = r.task.map(|t| t.0)
            && named.insert(pid)
            && let Some(name) = reader.tasks().and_then(|t| t.get(&pid))
        {
            writer.name(pid, name);
        }
        writer.write(&r).map_err(failed)?;
    }
    match writer {
        Some(mut writer) => writer.finish().map_err(failed)?,
        None => Out::whole(&a.output, text)?,
    }
    Ok(tally)
}

/// Runs the command.
pub fn run(a: &Record, quiet: bool) -> Result<(), Failure> {
    let to = target(a)?;
    Out::check(Some(&a.output))?;
    let tree = Tree::default();
    let m = Machine::read(&tree);
    let d = device(&a.path, &m)?;
    let by = a.by.map(|by| match by {
        Door::Bpf => By::Bpf,
        Door::Tracefs => By::Tracefs,
    });
    let ran = record(d, by, &a.command, quiet)?;
    let (by, recorded) = (ran.by, &ran.recorded);
    let tally = match recorded.events.is_empty() {
        // No format can represent an empty trace.
        true => Tally::default(),
        false => written(a, to, &recorded.text, d)?,
    };
    tell(a, d, &tally, by, recorded.lost, quiet)?;
    drop(ran.held);
    if recorded.lost > 0 {
        return Err(Failure::Early(format!(
            "the kernel lost {} events, so {} is incomplete; {}",
            recorded.lost,
            a.output.display(),
            match by {
                By::Bpf => "record again, or use --by tracefs",
                By::Tracefs => "record a shorter time",
            }
        )));
    }
    match ran.code {
        0 => Ok(()),
        code => Err(Failure::Command(code)),
    }
}

fn tell(
    a: &Record,
    d: &Device,
    tally: &Tally,
    by: By,
    lost: u64,
    quiet: bool,
) -> Result<(), Failure> {
    if a.json {
        let mut out = Out::open(None)?;
        let classes: BTreeMap<_, _> = tally
            .classes
            .iter()
            .map(|(k, v)| (*k, json!({ "bios": v.0, "bytes": v.1 })))
            .collect();
        out.json(&json!({
            "schema": 1, "command": "record", "device": d.name, "file": a.output, "bios": tally.bios,
            "bytes": tally.bytes, "classes": classes, "lost": lost, "by": by.name(),
        }))?;
        return out.done();
    }
    let classes = tally
        .classes
        .iter()
        .map(|(k, v)| format!("{} {k} ({})", v.0, bytes(v.1 as f64)));
    let classes: Vec<String> = classes.collect();
    let what = match classes.is_empty() {
        true => "no I/O reached the device, and no file was written".to_owned(),
        false => classes.join(", "),
    };
    note(
        quiet,
        &format!("{}: {what}; {lost} events lost ({})", d.name, by.name()),
    );
    if tally.bios == 0 {
        note(
            quiet,
            "cached reads do not reach the disk: read uncached files, or use direct I/O (O_DIRECT)",
        );
    } else {
        let file = quoted(&a.output.display().to_string());
        note(
            quiet,
            &format!("replay it on modelled disks: seekwell replay {file} --mode closed"),
        );
    }
    Ok(())
}
