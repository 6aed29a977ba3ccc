//! Rounds: records of a running kernel's blk-mq queue, replayed against a scheduler of Seekwell.
//!
//! A round records insertions (or bios and plug flushes), every run of the hardware queue, every
//! completion, and the order in which the kernel issued requests. The replay is open loop: the
//! scheduler gets insertions, run times and completion times, but never a recorded choice. The
//! replay is compared by the order of issue, and for kyber by the sizes of the token pools.
//!
//! Not modelled: races between two CPUs that run one hardware queue at the same time (the kernel
//! may then park two requests), and tag exhaustion at allocation.

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

/// A token pool of kyber changed size: when (us), domain, new size.
pub type PoolChange = (u64, usize, u32);

/// One recorded round.
#[derive(Clone, Debug)]
pub struct Round {
    /// Unique name.
    pub case: String,
    /// Scheduler and version, as in the registry.
    pub elevator: String,
    /// Kind of round: the class that agreement is summed by.
    pub workload: String,
    /// Ticks per second.
    pub hz: u32,
    /// Driver tags.
    pub depth: u32,
    /// queue/rotational.
    pub rotational: bool,
    /// Merge limit, sectors.
    pub max_sectors: u32,
    /// queue/nomerges.
    pub nomerges: u8,
    /// iosched/ files that were written, in order, in sysfs units.
    pub tunables: Vec<(String, String)>,
    /// Jiffy at which the scheduler was attached, relative to the first event.
    pub attach_j: i64,
    /// Kyber: every change of a pool.
    pub pools: Option<Vec<PoolChange>>,
    /// What happened.
    pub events: Vec<Event>,
    /// Order of issue in the kernel.
    pub dispatch: Vec<Issued>,
}

/// One event of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Microseconds since the round began.
    pub t_us: u64,
    /// Jiffies since the first event.
    pub jiffy: i64,
    /// The kind of event.
    pub what: What,
}

/// What happened in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A request is inserted.
    Insert(Incoming),
    /// A bio arrives and is merged or plugged.
    Bio(Incoming),
    /// A task's plug is flushed.
    Unplug {
        /// Whose.
        task: u32,
    },
    /// The hardware queue is run; with a limit, only until that many requests have left the
    /// scheduler since the round began.
    Run {
        /// Requests, counted from the beginning.
        limit: Option<usize>,
    },
    /// The `k`-th issued request completes.
    Complete {
        /// From 0.
        k: usize,
        /// Kyber: its own latencies in us, from allocation and from issue.
        latency_us: Option<(u64, u64)>,
    },
    /// The scheduler's idle timer fired in the kernel.
    Timer,
}

/// A request or bio of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Its number.
    pub id: u64,
    /// Process that submits.
    pub task: u32,
    /// R, W or S.
    pub op: char,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub sectors: u32,
    /// Effective priority.
    pub prio: IoPrio,
    /// Software context.
    pub cpu: u16,
}

impl Incoming {
    /// Operation and flags.
    pub fn op_flags(&self) -> (Op, Flags) {
        match self.op {
            'R' => (Op::Read, Flags::empty()),
            'S' => (Op::Write, Flags::SYNC),
            _ => (Op::Write, Flags::empty()),
        }
    }
}

/// A request as the driver received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issued {
    /// By number (no merging).
    Id(u64),
    /// By operation, first sector and length.
    Span(char, u64, u32),
}

impl Round {
    /// Builds a round from a case that has events instead of an input.
    pub fn of(case: &Case) -> Result<Round, CaseError> {
        let error = |why: String| CaseError::Case {
            case: case.case.clone(),
            why,
        };
        let text: BTreeMap<String, String> = case.tunable_texts().into_iter().collect();
        let tunables = if case.attach.is_some() {
            // Only written tunables had an effect of their own; the others are values read back.
            let value = |name: &String| {
                let v = text.get(name).ok_or_else(|| {
                    error(format!(
                        "`written` names `{name}`, which is not among `tunables`"
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
                    "event {i}: time goes back; list events in order"
                )));
            }
            events.push(event);
        }
        let service_us = case.device.service_us.max(0.0) as u64;
        add_lost_completions(&mut events, service_us);
        let issued = |(i, d): (usize, &Value)| {
            Issued::parse(d)
                .ok_or_else(|| error(format!("dispatch {i}: neither an id nor [op, sector, n]")))
        };
        let dispatch = case.dispatch.iter().flatten().enumerate().map(issued);
        let pool = |(i, p): (usize, &Vec<i64>)| match p[..] {
            [t, d, n] if t >= 0 && (0..4).contains(&d) && (1..=256).contains(&n) => {
                Ok((t as u64, d as usize, n as u32))
            }
            _ => Err(error(format!(
                "pools {i}: not [t_us, domain 0..3, size 1..256]"
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

    /// Number of software contexts in use.
    pub fn cpus(&self) -> u16 {
        let highest = self.events.iter().map(|e| match e.what {
            What::Insert(i) | What::Bio(i) => i.cpu,
            _ => 0,
        });
        highest.max().unwrap_or(0) + 1
    }
    /// Whether requests are compared by their sectors, not by number.
    pub fn by_span(&self) -> bool {
        matches!(self.dispatch.first(), Some(Issued::Span(..)))
    }
}

/// Adds completions that the record lacks. Requests complete in order of issue (one server), so a
/// missing completion happened one service time after the one before it.
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
                    _ => return Err(format!("op is `{op}`: R, W or S was expected")),
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
            _ => return Err(format!("kind is `{kind}`: i, b, u, r, c or t was expected")),
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
