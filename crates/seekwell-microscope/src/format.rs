//! The format of cases and its strict parser. An error contains the case, the row, the key and the
//! remedy.

use super::{Dispatched, Outcome, streams};
use seekwell_core::{BioId, Flags, Instant, IoPrio, Op, Sector, Sectors, TaskId};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use thiserror::Error;

/// An error in a case file.
#[derive(Error, Debug)]
pub enum CaseError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// Name of the file.
        file: String,
        /// Why the file cannot be read.
        source: std::io::Error,
    },
    /// A line is not a valid case.
    #[error("{file}, line {line}: {why}")]
    Line {
        /// Name of the file.
        file: String,
        /// Number of the line, counted from 1.
        line: usize,
        /// What is wrong and what to do.
        why: String,
    },
    /// A case contains a name or value that does not exist.
    #[error("case {case}: {why}")]
    Case {
        /// Name of the case.
        case: String,
        /// What is wrong and what to do.
        why: String,
    },
}

/// The device of a case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseDevice {
    /// Number of commands that the device accepts at the same time.
    #[serde(default = "default_one")]
    pub depth: u32,
    /// Service time of every command, in us.
    #[serde(default)]
    pub service_us: f64,
    /// True for a rotational device; also accepts 0 and 1.
    #[serde(default = "yes", deserialize_with = "bool_or_number")]
    pub rotational: bool,
    /// True if commands are served in parallel; false for one server.
    #[serde(default)]
    pub parallel: bool,
    /// blk-mq: true if driver tags limit the device, so that a request can be parked outside the
    /// scheduler.
    #[serde(default)]
    pub parked: bool,
    /// blk-mq: number of commands above which the device returns busy; 0 for its depth.
    #[serde(default)]
    pub accepts: u32,
    /// blk-mq: number of hardware queues; 0 for one.
    #[serde(default)]
    pub hw_queues: u16,
    /// True if the device has a volatile write cache, so that flushes have an effect.
    #[serde(default)]
    pub write_cache: bool,
    /// blk-mq rounds: true if completions were held back while the round was recorded; not used.
    #[serde(default)]
    pub gate: bool,
}

impl Default for CaseDevice {
    fn default() -> Self {
        CaseDevice {
            depth: 1,
            service_us: 5000.0,
            rotational: true,
            parallel: false,
            parked: false,
            accepts: 0,
            hw_queues: 0,
            write_cache: false,
            gate: false,
        }
    }
}

fn default_one() -> u32 {
    1
}
fn yes() -> bool {
    true
}
fn bool_or_number<'de, D: serde::Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    match Value::deserialize(d)? {
        Value::Bool(b) => Ok(b),
        Value::Number(n) => Ok(n.as_f64() != Some(0.0)),
        v => Err(serde::de::Error::custom(format!(
            "`rotational` must be true, false, 0 or 1, not {v}"
        ))),
    }
}

/// A case: requests, queue and device, and optionally the expected dispatches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Unique name of the case.
    pub case: String,
    /// Name and version of the scheduler.
    pub elevator: String,
    /// Origin: the kernel source tree.
    #[serde(default)]
    pub tree: String,
    /// Origin: the workload. For blk-mq rounds, the kind of round.
    #[serde(default)]
    pub workload: String,
    /// Free text for readers.
    #[serde(default)]
    pub note: String,
    /// Clock ticks per second.
    #[serde(default = "hz_1000")]
    pub hz: u32,
    /// The device.
    #[serde(default)]
    pub device: CaseDevice,
    /// Largest size of a merged request, in sectors.
    #[serde(default = "sectors_1024")]
    pub max_sectors: u32,
    /// Value of queue/nomerges.
    #[serde(default)]
    pub nomerges: u8,
    /// blk-mq: number of software contexts (CPUs).
    #[serde(default)]
    pub cpus: u16,
    /// Size of the request pool; 0 for no limit.
    #[serde(default)]
    pub nr_requests: u32,
    /// Tunables that are written before the start, in sysfs units.
    #[serde(default)]
    pub tunables: Map<String, Value>,
    /// I/O priorities: [pid, class, level].
    #[serde(default)]
    pub contexts: Vec<[u64; 3]>,
    /// CPU priorities: [pid, nice].
    #[serde(default)]
    pub nice: Vec<(u32, i8)>,
    /// Cgroups of processes: [pid, cgroup].
    #[serde(default)]
    pub groups: Vec<(u32, u32)>,
    /// Cgroups: [cgroup, parent, weight].
    #[serde(default)]
    pub cgroups: Vec<(u32, u32, u32)>,
    /// Leaf weights of cgroups: [cgroup, leaf weight].
    #[serde(default)]
    pub leaf_weights: Vec<(u32, u32)>,
    /// Rows of bios and controls.
    #[serde(default)]
    pub input: Vec<Vec<Value>>,
    /// Dependencies between requests of the original; not used.
    #[serde(default)]
    pub after: Map<String, Value>,
    /// Order of events: "legacy", "serial", "mq" or {"drain": t_us}.
    #[serde(default)]
    pub harness: Option<Value>,
    /// Expected dispatches: [t_us, id, id, ...] per request.
    #[serde(default)]
    pub dispatch: Option<Vec<Value>>,
    /// Expected times of timer expiry, in us.
    #[serde(default)]
    pub timers: Option<Vec<f64>>,
    /// Ids of bios that are not dispatched.
    #[serde(default)]
    pub left: Vec<u64>,
    /// True if `dispatch` and `timers` contain only the beginning of the run. Only the beginning is
    /// then compared.
    #[serde(default)]
    pub begins: bool,
    /// blk-mq rounds: rows of events.
    #[serde(default)]
    pub events: Vec<Vec<Value>>,
    /// blk-mq rounds of bfq: names of the tunables that were written.
    #[serde(default)]
    pub written: Vec<String>,
    /// blk-mq rounds of bfq: jiffy at which the scheduler was attached.
    #[serde(default)]
    pub attach: Option<i64>,
    /// blk-mq rounds of kyber: [t_us, domain, size] for every change of a token pool.
    #[serde(default)]
    pub pools: Option<Vec<Vec<i64>>>,
}

fn hz_1000() -> u32 {
    1000
}
fn sectors_1024() -> u32 {
    1024
}

/// The order of simultaneous events, and the code that runs the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Harness {
    /// The single-queue layer: completion, timers, deferred work, submissions. Each submission runs
    /// the queue.
    Legacy,
    /// The scheduler alone: completion, arrivals, timers, then one dispatch call.
    Serial,
    /// The scheduler alone: all arrivals without dispatch, then dispatch calls from this time on.
    Drain(Instant),
    /// The multi-queue layer: completions, timers, all submissions, then a run of the queue.
    Mq,
}

/// Time of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// An absolute time.
    At(Instant),
    /// A delay in ns (second value) after the completion of a bio (first value).
    After(u64, u64),
}

/// Kind of an input.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A bio is submitted.
    Bio {
        /// Id of the bio.
        id: u64,
        /// Submitting task.
        task: TaskId,
        /// Operation.
        op: Op,
        /// Flags.
        flags: Flags,
        /// First sector.
        sector: Sector,
        /// Number of sectors.
        sectors: Sectors,
        /// CPU that submits the bio (blk-mq).
        cpu: u16,
    },
    /// The task opens a plug.
    Plug(TaskId),
    /// The task closes its plug.
    Unplug(TaskId),
    /// The driver requeues the request of this bio (blk-mq).
    Requeue(u64),
    /// The scheduler is switched.
    Switch(String),
    /// The process exits.
    Exit(TaskId),
    /// A task changes its I/O priority (`ioprio_set`).
    Prio(TaskId, IoPrio),
    /// A tunable is written: name and value.
    Tunable(String, String),
    /// The scheduler must dispatch all its requests.
    Drain,
    /// A cgroup gets a new weight.
    Weight(u32, u32),
}

/// One input.
#[derive(Clone, Debug)]
pub struct CaseInput {
    /// Time of the input.
    pub when: When,
    /// Kind of the input.
    pub what: What,
}

/// Returns the operation and flags for a letter; `None` for an unknown letter.
pub fn op_of(letter: &str) -> Option<(Op, Flags)> {
    Some(match letter {
        "R" => (Op::Read, Flags::empty()),
        "W" => (Op::Write, Flags::empty()),
        "S" => (Op::Write, Flags::SYNC),
        "N" => (Op::Write, Flags::SYNC | Flags::NOIDLE),
        "P" => (Op::Read, Flags::META | Flags::PRIO),
        "M" => (Op::Read, Flags::META),
        "A" => (Op::Read, Flags::RAHEAD),
        "F" => (Op::Flush, Flags::PREFLUSH),
        "D" => (Op::Discard, Flags::empty()),
        "Z" => (Op::WriteZeroes, Flags::empty()),
        _ => return None,
    })
}

fn ns_of_us(v: f64) -> Option<u64> {
    (v.is_finite() && (0.0..1e12).contains(&v)).then(|| (v * 1000.0).round() as u64)
}

impl Case {
    fn error(&self, why: impl Into<String>) -> CaseError {
        CaseError::Case {
            case: self.case.clone(),
            why: why.into(),
        }
    }

    /// Checks the ranges of the numbers.
    pub fn validate(&self) -> Result<(), CaseError> {
        if !(1..=10_000).contains(&self.hz) {
            return Err(self.error(format!("hz {} is outside 1..=10000", self.hz)));
        }
        if !(1..=65_536).contains(&self.device.depth) {
            return Err(self.error(format!("depth {} is outside 1..=65536", self.device.depth)));
        }
        if ns_of_us(self.device.service_us).is_none() {
            return Err(self.error("device.service_us is not a time in microseconds"));
        }
        self.harness()?;
        self.inputs()?;
        self.expected()?;
        Ok(())
    }

    /// Expands the short forms in hand-written cases ([`super::streams`]).
    pub(super) fn write_out(&mut self) -> Result<(), CaseError> {
        let error = |case: &Case, key: &str, i: usize, why: String| {
            case.error(format!("{key} row {}: {why}", i + 1))
        };
        if self.input.iter().any(|r| streams::is(r, "stream")) {
            let mut plain = Vec::new();
            for (i, row) in std::mem::take(&mut self.input).into_iter().enumerate() {
                if streams::is(&row, "stream") {
                    let rows = streams::bios(&row).map_err(|why| error(self, "input", i, why))?;
                    plain.extend(rows);
                } else {
                    plain.push(row);
                }
            }
            self.input = plain;
        }
        let run = |v: &Value| v.as_array().is_some_and(|a| streams::is(a, "run"));
        if let Some(rows) = &self.dispatch
            && rows.iter().any(run)
        {
            let mut plain = Vec::new();
            for (i, row) in rows.iter().enumerate() {
                match row.as_array() {
                    Some(a) if run(row) => {
                        let rows = streams::decisions(a);
                        plain.extend(rows.map_err(|why| error(self, "dispatch", i, why))?);
                    }
                    _ => plain.push(row.clone()),
                }
            }
            self.dispatch = Some(plain);
        }
        Ok(())
    }

    /// Returns the harness of the case. The default depends on the scheduler's layer.
    pub fn harness(&self) -> Result<Harness, CaseError> {
        match &self.harness {
            None => Ok(match seekwell_sched::find(&self.elevator) {
                Some((info, ..)) if info.layer == seekwell_sched::Layer::Mq => Harness::Mq,
                _ => Harness::Legacy,
            }),
            Some(Value::String(s)) if s == "legacy" => Ok(Harness::Legacy),
            Some(Value::String(s)) if s == "serial" => Ok(Harness::Serial),
            Some(Value::String(s)) if s == "mq" => Ok(Harness::Mq),
            Some(Value::Object(o)) => o
                .get("drain")
                .and_then(Value::as_f64)
                .and_then(ns_of_us)
                .map(|ns| Harness::Drain(Instant::at_ns(ns)))
                .ok_or_else(|| self.error("a `harness` object must be {\"drain\": t_us}")),
            Some(v) => Err(self.error(format!(
                "unknown harness {v}: \"legacy\", \"serial\", \"mq\" or {{\"drain\": t_us}}"
            ))),
        }
    }

    /// Returns the tunables as (name, value), in the order in which they are written.
    pub fn tunable_texts(&self) -> Vec<(String, String)> {
        let text = |v: &Value| match v {
            Value::String(s) => s.clone(),
            v => v.to_string(),
        };
        self.tunables
            .iter()
            .map(|(k, v)| (k.clone(), text(v)))
            .collect()
    }

    /// Parses the input rows.
    pub fn inputs(&self) -> Result<Vec<CaseInput>, CaseError> {
        self.input
            .iter()
            .enumerate()
            .map(|(i, row)| self.input_row(i, row))
            .collect()
    }

    fn input_row(&self, i: usize, row: &[Value]) -> Result<CaseInput, CaseError> {
        let bad = |what: &str| self.error(format!("input row {} ({what})", i + 1));
        let num = |k: usize, what: &str| {
            row.get(k)
                .and_then(Value::as_u64)
                .ok_or_else(|| bad(&format!("{what} missing")))
        };
        let when = match row.first() {
            Some(Value::String(s)) => {
                let parts = s.strip_prefix('@').and_then(|r| r.split_once('+'));
                let parsed = parts.and_then(|(k, x)| {
                    Some(When::After(k.parse().ok()?, ns_of_us(x.parse().ok()?)?))
                });
                parsed.ok_or_else(|| bad("a time must be in microseconds or \"@k+x\""))?
            }
            Some(v) => {
                let ns = v.as_f64().and_then(ns_of_us);
                When::At(Instant::at_ns(
                    ns.ok_or_else(|| bad("time is not in microseconds"))?,
                ))
            }
            None => return Err(bad("empty row")),
        };
        let what = match row.get(1) {
            Some(Value::String(s)) => match s.as_str() {
                "x" => What::Exit(TaskId(num(2, "pid")? as u32)),
                "p" => {
                    let p = IoPrio::from_numbers(num(3, "class")?, num(4, "level")?);
                    let p = p.ok_or_else(|| bad("class must be 0..=3 and level 0..=7"))?;
                    What::Prio(TaskId(num(2, "pid")? as u32), p)
                }
                "t" => {
                    let name = row
                        .get(2)
                        .and_then(Value::as_str)
                        .ok_or_else(|| bad("tunable"))?;
                    let v = row.get(3).ok_or_else(|| bad("value missing"))?;
                    let text = v.as_str().map_or_else(|| v.to_string(), str::to_owned);
                    What::Tunable(name.to_owned(), text)
                }
                "d" => What::Drain,
                "plug" => What::Plug(TaskId(num(2, "pid")? as u32)),
                "unplug" => What::Unplug(TaskId(num(2, "pid")? as u32)),
                "requeue" => What::Requeue(num(2, "bio")?),
                "switch" => {
                    let name = row.get(2).and_then(Value::as_str);
                    What::Switch(name.ok_or_else(|| bad("scheduler missing"))?.to_owned())
                }
                "w" => What::Weight(num(2, "cgroup")? as u32, num(3, "weight")? as u32),
                other => return Err(bad(&format!("unknown control \"{other}\""))),
            },
            _ => {
                let letter = row.get(3).and_then(Value::as_str).unwrap_or("");
                let (op, flags) = op_of(letter).ok_or_else(|| {
                    bad(&format!("op \"{letter}\" is none of R W S N P M A F D Z"))
                })?;
                let sectors = num(5, "length")?;
                if (sectors == 0) != (op == Op::Flush) || sectors > 1 << 24 {
                    return Err(bad("length must be 1..=16777216 sectors, or 0 for a flush"));
                }
                let sector = num(4, "sector")?;
                if sector > 1 << 55 {
                    return Err(bad("sector is beyond 2^55"));
                }
                What::Bio {
                    id: num(1, "id")?,
                    task: TaskId(num(2, "pid")? as u32),
                    op,
                    flags,
                    sector: Sector(sector),
                    sectors: Sectors(sectors as u32),
                    cpu: match row.get(6) {
                        Some(v) => {
                            let cpu = v.as_u64().filter(|c| *c < 4096);
                            cpu.ok_or_else(|| bad("cpu is 0..=4095"))? as u16
                        }
                        None => 0,
                    },
                }
            }
        };
        Ok(CaseInput { when, what })
    }

    /// Returns the expected dispatches; `None` if the case has none or is a blk-mq round.
    pub fn expected(&self) -> Result<Option<Vec<Dispatched>>, CaseError> {
        let Some(rows) = &self.dispatch else {
            return Ok(None);
        };
        if !self.events.is_empty() {
            return Ok(None);
        }
        let row = |(i, v): (usize, &Value)| {
            let bad = || self.error(format!("dispatch row {} is not [t_us, id, ...]", i + 1));
            let a = v.as_array().ok_or_else(bad)?;
            let t = a
                .first()
                .and_then(Value::as_f64)
                .and_then(ns_of_us)
                .ok_or_else(bad)?;
            let ids = a[1..]
                .iter()
                .map(|x| x.as_u64().map(BioId))
                .collect::<Option<Vec<_>>>();
            Ok((Instant::at_ns(t), ids.ok_or_else(bad)?))
        };
        rows.iter()
            .enumerate()
            .map(row)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// If `begins` is set, shortens the outcome of a run to the length of the expected outcome.
    pub(super) fn cut(&self, out: &mut Outcome) {
        if !self.begins {
            return;
        }
        out.dispatch
            .truncate(self.dispatch.as_ref().map_or(0, Vec::len));
        out.timers
            .truncate(self.timers.as_ref().map_or(0, Vec::len));
        out.left.clear();
    }

    /// Returns the expected timer expiries.
    pub fn expected_timers(&self) -> Option<Vec<Instant>> {
        let ns = |t: &f64| Instant::at_ns((t * 1000.0).round() as u64);
        self.timers.as_ref().map(|v| v.iter().map(ns).collect())
    }
}

/// The parameters of a case that a CSV of bios does not contain.
#[derive(Clone, Debug)]
pub struct CsvOptions {
    /// Name of the scheduler; with a version if it is not the default.
    pub elevator: String,
    /// Clock ticks per second.
    pub hz: u32,
    /// The device.
    pub device: CaseDevice,
    /// Tunables of the scheduler.
    pub tunables: BTreeMap<String, String>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        CsvOptions {
            elevator: "deadline".to_owned(),
            hz: 1000,
            device: CaseDevice::default(),
            tunables: BTreeMap::new(),
        }
    }
}
