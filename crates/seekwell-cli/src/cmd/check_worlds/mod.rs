//! `seekwell check-worlds`: the same script on a real kernel over a modelled disk, and in the
//! simulation on the same model; what both asked of the disk, side by side.

mod judge;
mod server;
mod sides;
mod tally;

use crate::cli::CheckWorlds;
use crate::fail::Failure;
use crate::out::{Out, note};
use judge::{Null, Row, Verdict};
use seekwell_core::Device;
use seekwell_report::style::{BAD, DIM, GOOD, HEAD};
use seekwell_report::table::{Align, Cell, Table, painted};
use seekwell_report::units;
use seekwell_workload::Plan;
use serde_json::{Value, json};
use server::Server;
use sides::{Below, Host, Side, real, simulated};
use std::path::{Path, PathBuf};

/// What is run unless asked otherwise: short, and each of another kind.
const WORKLOADS: &[&str] = &[
    "fs-mark:files=100,size=16KiB",
    "postmark:files=200,transactions=2000,high=16KiB,low=512",
    "sqlite:transactions=40",
    "tiobench:size=16MiB,threads=4,random=200",
    "random-read:size=256MiB,seconds=6s",
];

/// Share of the time, %, in which programs waited for a CPU: above it a program's own rate is not
/// that of its disk.
const BUSY: f64 = 30.0;

/// A directory of our own, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("seekwell-worlds-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|e| Failure::input(format!("{}: {e}", path.display())))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Never into something still mounted: directories by name, files by name.
        for name in ["account.json", "raw.img"] {
            let _ = std::fs::remove_file(self.0.join(name));
        }
        for name in ["mnt", "fuse", ""] {
            let _ = std::fs::remove_dir(self.0.join(name));
        }
    }
}

/// A workload's outcome.
struct Checked {
    verdict: Verdict,
    real: Side,
    sim: Side,
    host: Host,
    account: Option<Value>,
}

fn check(a: &CheckWorlds, plan: &Plan, name: &str, dir: &Path) -> Result<Checked, Failure> {
    let failed = |e: seekwell_device::DeviceError| Failure::input(e.to_string());
    let model = seekwell_device::open(&a.device, a.seed).map_err(failed)?;
    let depth = (!a.raw).then(|| model.facts().depth);
    let below = match a.raw {
        false => Below::Model(Server::start(a, dir)?),
        true => {
            let path = dir.join("raw.img");
            let made = std::fs::File::create(&path).and_then(|f| f.set_len(a.size));
            made.map_err(|e| Failure::input(format!("{}: {e}", path.display())))?;
            Below::File(path)
        }
    };
    let ran = real(a, plan, dir, &below.file(), depth);
    let account = below.stop()?;
    let (real, host) = ran?;
    let sim = simulated(a, plan, &host, &a.device)?;
    // A disk of no law: every command takes what the modelled one took on average.
    let mean_us = account
        .as_ref()
        .and_then(|v| v["model"]["mean_ns"].as_f64());
    let flat = format!(
        "constant:depth={},service_us={:.1},write_cache=yes,rotational=yes",
        model.facts().depth,
        mean_us.unwrap_or(1e5) / 1e3
    );
    let null = simulated(a, plan, &host, &flat)?;
    let null = Null {
        fsyncs: sim.fsyncs,
        rate: null.metric,
    };
    Ok(Checked {
        verdict: Verdict::of(name.to_owned(), &real, &sim, null, host.pressure > BUSY),
        real,
        sim,
        host,
        account,
    })
}

/// Checks each workload in both worlds.
pub fn run(a: &CheckWorlds, quiet: bool) -> Result<(), Failure> {
    let names: Vec<&str> = match a.workloads.is_empty() {
        true => WORKLOADS.to_vec(),
        false => a.workloads.iter().map(String::as_str).collect(),
    };
    let mut plans = Vec::new();
    for name in names {
        let plan = Plan::new(name, &[]).map_err(|e| Failure::input(e.to_string()))?;
        plans.push((name, plan));
    }
    // A script that waits for its turn on a busy machine looks like a slow disk.
    let _ = rustix::process::setpriority_process(None, -15);
    let mut out = Out::open(a.output.output.as_deref())?;
    let scratch = Scratch::new()?;
    let (mut all, mut missed) = (Vec::new(), Vec::new());
    for (name, plan) in &plans {
        note(
            quiet,
            &format!("{name}: on the running kernel, then simulated"),
        );
        let checked = match check(a, plan, name, &scratch.0) {
            Ok(checked) => checked,
            // One that cannot be run in one world is no reason not to run the others.
            Err(Failure::Input(why)) => {
                missed.push(json!({ "workload": name, "why": why }));
                note(false, &format!("{name} could not be compared: {why}"));
                continue;
            }
            Err(e) => return Err(e),
        };
        if !a.json {
            out.text(&text(&checked, a.raw))?;
        }
        all.push(checked);
    }
    let good = all.iter().filter(|c| c.verdict.agrees()).count();
    if a.json {
        let one = |c: &Checked| {
            json!({
                "verdict": c.verdict, "agrees": c.verdict.agrees(), "real": c.real,
                "simulated": c.sim, "host": c.host, "disk": c.account,
            })
        };
        out.json(&json!({
            "device": a.device, "raw": a.raw, "workloads": all.iter().map(one).collect::<Vec<_>>(),
            "missed": missed,
        }))?;
    } else {
        let score = |c: &Checked| c.verdict.score();
        let sum = |f: fn((usize, usize, usize)) -> usize| -> usize {
            all.iter().map(|c| f(score(c))).sum()
        };
        out.line(&format!(
            "{good} of {} workloads agree; {} of {} figures within their limits, {} of a \
             prediction that knows nothing",
            plans.len(),
            sum(|s| s.0),
            sum(|s| s.2),
            sum(|s| s.1),
        ))?;
    }
    out.done()?;
    if all.is_empty() {
        return Err(Failure::input("no workload could be compared".to_owned()));
    }
    if good < plans.len() && !a.raw {
        return Err(Failure::Difference);
    }
    Ok(())
}

fn percent(x: f64) -> String {
    if x.is_finite() {
        format!("{:+.1} %", x * 100.0)
    } else {
        "all".to_owned()
    }
}

fn figure(row: &Row, x: f64) -> Cell {
    match row.unit.as_str() {
        "requests" | "KiB" => units::count(x as u64).into(),
        _ => units::three(x).into(),
    }
}

fn text(c: &Checked, raw: bool) -> String {
    let v = &c.verdict;
    let mut s = format!(
        "{HEAD}{}{HEAD:#} under {}, {:.1} s real, {:.1} s simulated\n",
        v.workload, c.host.scheduler, c.real.seconds, c.sim.seconds
    );
    let mut t = Table::new(&[
        ("", Align::Left),
        ("", Align::Left),
        ("real", Align::Right),
        ("simulated", Align::Right),
        ("differ by", Align::Right),
        ("limit", Align::Right),
        ("", Align::Left),
        ("knows nothing", Align::Right),
    ]);
    for row in &v.rows {
        let limit = row.limit.filter(|_| !raw);
        let verdict = match row.agrees().filter(|_| !raw) {
            Some(true) => painted("agrees", GOOD),
            Some(false) => painted("differs", BAD),
            None => painted("reported", DIM),
        };
        t.row(vec![
            row.name.as_str().into(),
            row.unit.as_str().into(),
            figure(row, row.real),
            figure(row, row.sim),
            percent(row.difference()).into(),
            limit
                .map_or_else(String::new, |l| format!("{:.0} %", l * 100.0))
                .into(),
            verdict,
            figure(row, row.null),
        ]);
    }
    s += &t.render(2);
    if let Some(account) = &c.account {
        let late = account["late"]["p99_ns"].as_f64().unwrap_or_default();
        s += &format!(
            "  the modelled disk was {} (late p99 {})\n",
            account["verdict"].as_str().unwrap_or("of unknown verdict"),
            units::time_ns(late)
        );
    }
    if c.host.pressure > BUSY {
        s += &format!(
            "  the machine was busy: programs waited for a CPU {:.0} % of the time, so throughput is \
             reported only\n",
            c.host.pressure
        );
    }
    for w in &v.warnings {
        s += &format!("  {w}\n");
    }
    s + "\n"
}
