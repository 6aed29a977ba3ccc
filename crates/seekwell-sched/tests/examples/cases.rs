//! The worked examples in `cases/`, run against the schedulers alone. Cases that need more than the
//! bench (merges, plugs, cgroups, several CPUs, other drivers) are left out; crate seekwell-sim
//! runs all of them.

use super::bench::Bench;
use seekwell_core::{Class, IoPrio};
use serde_json::{Map, Value};
use std::path::Path;

/// The first two need a forced drain. In the third, arrivals go before the timers of their instant.
const LEFT_OUT: [&str; 3] = ["fiops-F9", "fiops-F9-preempt", "row-A3-not-empty"];

fn text(v: &Value) -> &'static str {
    let text = v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    text.leak()
}
fn number(v: &Value) -> u64 {
    v.as_f64().expect("a number") as u64
}
fn list<'a>(case: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    case.get(key).map_or(&[], |v| v.as_array().expect("a list"))
}

/// The rows of an input as the bench reads them. Returns `None` if the bench cannot run it.
fn rows(input: &[Value]) -> Option<(String, Vec<(u64, u32)>)> {
    let (mut out, mut exits) = (String::new(), Vec::new());
    let mut bio = |when: &str, id: u64, task: &Value, op: &Value, sector: u64, n: u64| {
        let op = op.as_str().filter(|o| "RWSNP".contains(o))?;
        out += &format!("{when} {id} {task} {op} {sector}+{n};");
        Some(())
    };
    for row in input {
        let row = row.as_array()?;
        match row[1].as_str() {
            Some("x") => exits.push((row[0].as_u64()?, number(&row[2]) as u32)),
            Some("stream") => {
                let (id, start, n) = (number(&row[2]), number(&row[5]), number(&row[6]));
                let shape = row[7].as_object()?;
                for i in 0..number(&shape["count"]) {
                    let when = match (i, shape.get("think"), shape.get("every")) {
                        (0, ..) => text(&row[0]).to_owned(),
                        (_, Some(think), _) => format!("@{}+{}", id + i - 1, number(think)),
                        (_, None, every) => (number(&row[0]) + i * number(every?)).to_string(),
                    };
                    let step = shape.get("step").map_or(n, number);
                    bio(&when, id + i, &row[3], &row[4], start + i * step, n)?;
                }
            }
            Some(_) => return None,
            None if row.len() == 6 => {
                let (id, sector, n) = (number(&row[1]), number(&row[4]), number(&row[5]));
                bio(text(&row[0]), id, &row[2], &row[3], sector, n)?;
            }
            None => return None,
        }
    }
    Some((out, exits))
}

/// The expected dispatches, time in us and id. Returns `None` if requests were merged.
fn expected(case: &Map<String, Value>) -> Option<Vec<(u64, u64)>> {
    let mut out = Vec::new();
    for row in list(case, "dispatch") {
        let row = row.as_array()?;
        if row[1].as_str() == Some("run") {
            let (t, first, step) = (number(&row[0]), number(&row[2]), number(&row[4]));
            out.extend((first..=number(&row[3])).map(|id| (t + (id - first) * step, id)));
        } else if row.len() == 2 {
            out.push((number(&row[0]), number(&row[1])));
        } else {
            return None;
        }
    }
    Some(out)
}

fn prio(row: &Value) -> (u32, IoPrio) {
    let class = match number(&row[1]) {
        0 => Class::None,
        1 => Class::Rt,
        2 => Class::Be,
        _ => Class::Idle,
    };
    let level = number(&row[2]) as u8;
    (number(&row[0]) as u32, IoPrio { class, level })
}

/// Runs a case. Returns `None` if the bench cannot run it.
fn run(case: &Map<String, Value>) -> Option<Result<(), String>> {
    if LEFT_OUT.contains(&text(&case["case"])) {
        return None;
    }
    let beyond = ["cgroups", "groups", "cpus", "nr_requests"];
    let device = case.get("device").and_then(Value::as_object);
    let special = |d: &Map<String, Value>| d.contains_key("accepts") || d.contains_key("parked");
    if beyond.iter().any(|k| case.contains_key(*k)) || device.is_some_and(special) {
        return None;
    }
    let of_device = |key| device.and_then(|d| d.get(key));
    let elevator = text(&case["elevator"]);
    let (mut rows, exits) = rows(list(case, "input"))?;
    if elevator.ends_with("2.6.18") {
        // Requests of this kernel have no META flag.
        rows = rows.replace(" P ", " R ");
    }
    let want = expected(case)?;
    let service = of_device("service_us").map_or(0, number);
    let drained = case.get("harness").and_then(|h| h.get("drain"));
    let mut bench = match drained {
        Some(at) => Bench::drained(elevator, number(at)),
        None => {
            Bench::serial(elevator, service).depth(of_device("depth").map_or(1, number) as usize)
        }
    };
    if matches!(case.get("harness"), Some(h) if h == "mq" || h == "serial") {
        bench = bench.together();
    }
    if of_device("rotational").is_some_and(|r| matches!(text(r), "false" | "0")) {
        bench = bench.flash();
    }
    if let Some(hz) = case.get("hz") {
        bench = bench.hz(number(hz) as u32);
    }
    if let Some(tunables) = case.get("tunables") {
        for (name, value) in tunables.as_object()? {
            bench = bench.set(name.clone().leak(), text(value));
        }
    }
    for (task, prio) in list(case, "contexts").iter().map(prio) {
        bench = bench.prio(task, prio);
    }
    for (at, task) in exits {
        bench = bench.exit(at, task);
    }
    let got = bench.run(&rows);
    let begins = case.get("begins").is_some_and(|b| b == &Value::Bool(true));
    let upto = |len: usize| if begins { want.len().min(len) } else { len };
    if got.dispatched[..upto(got.dispatched.len())] != want[..] {
        return Some(Err(format!("want {want:?}\n got {:?}", got.dispatched)));
    }
    if let Some(timers) = case.get("timers").filter(|_| drained.is_none() && !begins) {
        let want: Vec<_> = timers.as_array()?.iter().map(number).collect();
        if got.timers != want {
            return Some(Err(format!("timers {want:?}\n   got {:?}", got.timers)));
        }
    }
    Some(Ok(()))
}

/// Runs the cases of a file. `count` is the number of cases that the bench can run.
fn run_cases_of_file(file: &str, count: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let lines = std::fs::read_to_string(path.join(file)).expect("the cases");
    let (mut ran, mut wrong) = (0, Vec::new());
    for line in lines.lines() {
        let case: Map<String, Value> = serde_json::from_str(line).expect("a case");
        let Some(result) = run(&case) else { continue };
        ran += 1;
        if let Err(why) = result {
            wrong.push(format!("{}\n{why}", text(&case["case"])));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(ran, count, "cases of {file}");
}

macro_rules! files {
    ($($name:ident: $file:literal, $count:literal;)*) => {
        $(#[test] fn $name() { run_cases_of_file($file, $count); })*
    };
}
files! {
    adios: "adios.jsonl", 14;
    anticipatory: "anticipatory.jsonl", 20;
    bfq: "bfq.jsonl", 22;
    cfq: "cfq.jsonl", 93;
    fiops: "fiops.jsonl", 14;
    kyber: "kyber.jsonl", 0;
    mq_deadline: "mq-deadline.jsonl", 17;
    none: "none.jsonl", 1;
    row: "row.jsonl", 19;
    sio: "sio.jsonl", 12;
    turns: "turns.jsonl", 17;
    vr: "vr.jsonl", 18;
    zen: "zen.jsonl", 15;
}
