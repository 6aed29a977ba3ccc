//! Rounds: recordings of a running kernel's blk-mq queue, and their replay with a scheduler of
//! Seekwell.
//!
//! A round contains insertions (or bios and plug flushes), all runs of the hardware queue, all
//! completions, and the order in which the kernel dispatched requests. The replay gives the
//! scheduler the recorded insertions, run times and completion times. The scheduler makes all
//! dispatch decisions itself. Its order is compared with the recorded order and, for kyber, the
//! sizes of the token pools are compared as well.
//!
//! Two things are not modelled. If two CPUs run the same hardware queue at the same time, the
//! kernel may park two requests. A task may wait for a tag at allocation.

mod agree;
mod null;
mod replay;

pub use agree::{
    ClassAgreement, NullScores, RoundAgreement, Verdict, agreement, compare, null_scores,
    replay_named,
};
pub use null::CLook;
pub use replay::{Replay, replay};

use super::format::{Case, CaseError};
use seekwell_core::{Class, Flags, IoPrio, Op};
use serde_json::Value;
use std::collections::BTreeMap;

/// A change of a kyber token pool: time in us, domain, new size.
pub type PoolChange = (u64, usize, u32);

/// One recorded round.
#[derive(Clone, Debug)]
pub struct Round {
    /// Unique name of the round.
    pub case: String,
    /// Name and version of the scheduler, as in the registry.
    pub elevator: String,
    /// Kind of round; agreement is summed by kind.
    pub workload: String,
    /// Clock ticks per second.
    pub hz: u32,
    /// Number of driver tags.
    pub depth: u32,
    /// Value of queue/rotational.
    pub rotational: bool,
    /// Largest size of a merged request, in sectors.
    pub max_sectors: u32,
    /// Value of queue/nomerges.
    pub nomerges: u8,
    /// Written tunables (files in iosched/), in the order of writing, in sysfs units.
    pub tunables: Vec<(String, String)>,
    /// Jiffy at which the scheduler was attached, relative to the first event.
    pub attach_j: i64,
    /// All changes of the token pools; `None` if not recorded. Only kyber has pools.
    pub pools: Option<Vec<PoolChange>>,
    /// Recorded events in order of time.
    pub events: Vec<Event>,
    /// The order in which the kernel dispatched requests to the driver.
    pub dispatch: Vec<Issued>,
}

/// One event of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time since the beginning of the round, in us.
    pub t_us: u64,
    /// Jiffies since the first event.
    pub jiffy: i64,
    /// The kind of event.
    pub what: What,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A request is inserted.
    Insert(Incoming),
    /// A bio arrives and is merged or plugged.
    Bio(Incoming),
    /// A task's plug is flushed.
    Unplug {
        /// The task.
        task: u32,
    },
    /// The hardware queue is run.
    Run {
        /// The run ends when this number of requests have left the scheduler since the round began;
        /// `None` for no limit.
        limit: Option<usize>,
    },
    /// A request completes.
    Complete {
        /// Position of the request in the dispatch order, counted from 0.
        k: usize,
        /// Latencies that kyber measured, in us: from allocation, and from dispatch to the driver.
        latency_us: Option<(u64, u64)>,
    },
    /// The scheduler's idle timer expired in the kernel.
    Timer,
}

/// A request or bio of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Number of the request or bio.
    pub id: u64,
    /// Id of the submitting process.
    pub task: u32,
    /// Operation: R (read), W (write) or S (synchronous write).
    pub op: char,
    /// First sector.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// Effective I/O priority.
    pub prio: IoPrio,
    /// Software context (CPU).
    pub cpu: u16,
}

impl Incoming {
    /// Returns the operation and its flags.
    pub fn op_flags(&self) -> (Op, Flags) {
        match self.op {
            'R' => (Op::Read, Flags::empty()),
            'S' => (Op::Write, Flags::SYNC),
            _ => (Op::Write, Flags::empty()),
        }
    }
}

/// A request that the driver received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issued {
    /// Identified by its number, if requests were not merged.
    Id(u64),
    /// Identified by operation, first sector and length.
    Span(char, u64, u32),
}

impl Round {
    /// Builds a round from a case that has events and no input.
    pub fn from_case(case: &Case) -> Result<Round, CaseError> {
        let error = |why: String| CaseError::Case {
            case: case.case.clone(),
            why,
        };
        let text: BTreeMap<String, String> = case.tunable_texts().into_iter().collect();
        let tunables = if case.attach.is_some() {
            // Only written tunables had an effect. The others are values that were read.
            let value = |name: &String| {
                let v = text.get(name).ok_or_else(|| {
                    error(format!(
                        "`written` names \"{name}\", which is not among `tunables`"
                    ))
                })?;
                Ok((name.clone(), v.clone()))
            };
            case.written
                .iter()
                .map(value)
                .collect::<Result<_, CaseError>>()?
        } else {
            text.into_iter().collect()
        };
        let mut events: Vec<Event> = Vec::with_capacity(case.events.len());
        for (i, e) in case.events.iter().enumerate() {
            let event = Event::parse(e).map_err(|why| error(format!("event {i}: {why}")))?;
            if events.last().is_some_and(|last| last.t_us > event.t_us) {
                return Err(error(format!(
                    "event {i}: the time is before that of the previous event; list events in \
                     order"
                )));
            }
            events.push(event);
        }
        let service_us = case.device.service_us.max(0.0) as u64;
        add_lost_completions(&mut events, service_us);
        let issued = |(i, d): (usize, &Value)| {
            Issued::parse(d)
                .ok_or_else(|| error(format!("dispatch {i}: write an id or [op, sector, n]")))
        };
        let dispatch = case.dispatch.iter().flatten().enumerate().map(issued);
        let pool = |(i, p): (usize, &Vec<i64>)| match p[..] {
            [t, d, n] if t >= 0 && (0..4).contains(&d) && (1..=256).contains(&n) => {
                Ok((t as u64, d as usize, n as u32))
            }
            _ => Err(error(format!(
                "pools {i}: write [t_us, domain 0..3, size 1..256]"
            ))),
        };
        let pools = case
            .pools
            .as_ref()
            .map(|p| p.iter().enumerate().map(pool).collect());
        Ok(Round {
            case: case.case.clone(),
            elevator: case.elevator.clone(),
            workload: case.workload.clone(),
            hz: case.hz,
            depth: case.device.depth,
            rotational: case.device.rotational,
            max_sectors: case.max_sectors,
            nomerges: case.nomerges,
            tunables,
            attach_j: case.attach.unwrap_or(0),
            pools: pools.transpose()?,
            dispatch: dispatch.collect::<Result<_, _>>()?,
            events,
        })
    }
    fn error(&self, why: impl ToString) -> CaseError {
        CaseError::Case {
            case: self.case.clone(),
            why: why.to_string(),
        }
    }

    /// Returns the number of software contexts in use.
    pub fn cpus(&self) -> u16 {
        let highest = self.events.iter().map(|e| match e.what {
            What::Insert(i) | What::Bio(i) => i.cpu,
            _ => 0,
        });
        highest.max().unwrap_or(0) + 1
    }
    /// Returns whether requests are identified by their sectors and not by number.
    pub fn by_span(&self) -> bool {
        matches!(self.dispatch.first(), Some(Issued::Span(..)))
    }
}

/// Adds completions that were not recorded. The device has one server, so requests complete in
/// dispatch order. A missing completion is therefore placed one service time after the previous
/// one.
fn add_lost_completions(events: &mut Vec<Event>, service_us: u64) {
    let (mut due, mut last_us, mut i) = (0, 0, 0);
    while i < events.len() {
        let What::Complete { k, .. } = events[i].what else {
            i += 1;
            continue;
        };
        while due < k {
            last_us = (last_us + service_us).min(events[i].t_us);
            let place = events[..i].partition_point(|e| e.t_us <= last_us);
            let lost = Event {
                t_us: last_us,
                jiffy: events[place.saturating_sub(1)].jiffy,
                what: What::Complete {
                    k: due,
                    latency_us: None,
                },
            };
            events.insert(place, lost);
            (due, i) = (due + 1, i + 1);
        }
        due = due.max(k + 1);
        last_us = events[i].t_us;
        i += 1;
    }
}

impl Issued {
    fn parse(v: &Value) -> Option<Issued> {
        if let Some(id) = v.as_u64() {
            return Some(Issued::Id(id));
        }
        let a = v.as_array()?;
        let op = a.first()?.as_str()?.chars().next()?;
        let n = u32::try_from(a.get(2)?.as_u64()?).ok()?;
        Some(Issued::Span(op, a.get(1)?.as_u64()?, n))
    }
}

impl Event {
    fn parse(v: &[Value]) -> Result<Event, String> {
        let number = |i: usize, name: &str| {
            v.get(i)
                .and_then(Value::as_u64)
                .ok_or_else(|| format!("field {i} ({name}) must be a number that is not negative"))
        };
        let small = |i: usize, name: &str| {
            u32::try_from(number(i, name)?).map_err(|_| format!("field {i} ({name}) is too large"))
        };
        let kind = v.get(2).and_then(Value::as_str).unwrap_or("");
        let what = match kind {
            "i" | "b" => {
                let op = v.get(5).and_then(Value::as_str).unwrap_or("");
                let op = match op {
                    "R" | "W" | "S" => op.chars().next().unwrap_or('R'),
                    _ => return Err(format!("op is \"{op}\": R, W or S was expected")),
                };
                let (class, level) = (number(8, "class")?, number(9, "level")?);
                let prio = IoPrio::from_numbers(class, level)
                    .filter(|p| p.class != Class::None)
                    .ok_or_else(|| {
                        format!("no priority {class}/{level}: class 1..3, level 0..7")
                    })?;
                let cpu = if v.len() > 10 {
                    small(10, "context")?
                } else {
                    0
                };
                let incoming = Incoming {
                    id: number(3, "id")?,
                    task: small(4, "process")?,
                    op,
                    sector: number(6, "sector")?,
                    sectors: small(7, "n")?,
                    prio,
                    cpu: u16::try_from(cpu)
                        .ok()
                        .filter(|c| *c < 4096)
                        .ok_or("context must be below 4096")?,
                };
                if incoming.sectors == 0 {
                    return Err("n is 0: a transfer has at least one sector".to_owned());
                }
                if kind == "i" {
                    What::Insert(incoming)
                } else {
                    What::Bio(incoming)
                }
            }
            "u" => What::Unplug {
                task: small(3, "task")?,
            },
            "r" => What::Run {
                limit: if v.len() > 3 {
                    Some(number(3, "limit")? as usize)
                } else {
                    None
                },
            },
            "c" => What::Complete {
                k: number(3, "k")? as usize,
                latency_us: if v.len() > 4 {
                    Some((number(4, "total us")?, number(5, "device us")?))
                } else {
                    None
                },
            },
            "t" => What::Timer,
            _ => {
                return Err(format!(
                    "kind is \"{kind}\": i, b, u, r, c or t was expected"
                ));
            }
        };
        Ok(Event {
            t_us: number(0, "t_us")?,
            jiffy: v
                .get(1)
                .and_then(Value::as_i64)
                .ok_or("field 1 (jiffy) must be a whole number")?,
            what,
        })
    }
}
