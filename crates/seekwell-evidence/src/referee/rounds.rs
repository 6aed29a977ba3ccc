//! One round: submits the requests, records the kernel's order, and converts both for replay.

use super::rig::{DEPTH, RefereeError, Rig};
use rand::RngCore;
use seekwell_core::rng::stream;
use seekwell_core::{Action, Class, IoPrio};
use seekwell_host::stop::signal;
use seekwell_host::watch::{Asked, Batch, open_batches, stay_on};
use seekwell_microscope::rounds::{Event, Incoming, Issued, Round, What};
use std::collections::BTreeMap;
use std::sync::mpsc;

/// Number of reads that occupy the device first. Their sectors are far from all other requests.
const BLOCKERS: usize = DEPTH as usize + 1;
const FAR: u64 = (1 << 21) - 4096;
/// Number of requests in a batch, over all its processes.
const BATCH: usize = 48;
/// Number of positions from which a batch draws; requests at different positions do not overlap.
const PLACES: u64 = 30_000;
const GAP: u64 = 64;
/// Ticks per second for the replay. No result depends on this value.
const HZ: u32 = 250;

/// The kind of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads with one I/O priority class.
    Reads,
    /// Reads and synchronous writes with one I/O priority class.
    Mixed,
    /// Reads with three I/O priority classes.
    Classes,
    /// Reads with two I/O priority classes. bfq serves the idle class every 200 ms, thus by time.
    TwoClasses,
    /// Reads with I/O priority levels 0 to 7.
    Levels,
}

impl Kind {
    /// Returns the kinds that exercise the rules of a scheduler.
    pub fn for_scheduler(scheduler: &str) -> &'static [Kind] {
        match scheduler {
            "mq-deadline" => &[Kind::Reads, Kind::Mixed, Kind::Classes],
            "bfq" => &[Kind::Mixed, Kind::TwoClasses, Kind::Levels],
            _ => &[Kind::Reads, Kind::Mixed],
        }
    }
    pub fn name(self) -> &'static str {
        match self {
            Kind::Reads => "reads",
            Kind::Mixed => "reads and writes",
            Kind::Classes => "classes",
            Kind::TwoClasses => "two classes",
            Kind::Levels => "levels",
        }
    }
    /// Returns the I/O priorities of the processes, one per process.
    fn prios(self) -> Vec<IoPrio> {
        let prio = |class, level| IoPrio { class, level };
        match self {
            Kind::Reads | Kind::Mixed => vec![prio(Class::Be, 4); 3],
            Kind::Classes => vec![prio(Class::Idle, 0), prio(Class::Be, 4), prio(Class::Rt, 4)],
            Kind::TwoClasses => vec![prio(Class::Be, 4), prio(Class::Rt, 4), prio(Class::Be, 0)],
            Kind::Levels => [7, 0, 4].map(|l| prio(Class::Be, l)).to_vec(),
        }
    }
}

/// Returns very large values for the tunables that are times. With the values for bfq, the kernel
/// repeated its own order in 36 of 36 rounds.
fn neutral(scheduler: &str) -> &'static [(&'static str, &'static str)] {
    match scheduler {
        "mq-deadline" => &[
            ("read_expire", "600000"),
            ("write_expire", "600000"),
            ("prio_aging_expire", "600000"),
        ],
        "bfq" => &[
            ("low_latency", "0"),
            ("slice_idle", "0"),
            ("timeout_sync", "60000"),
            ("max_budget", "1000"),
            ("fifo_expire_sync", "600000"),
            ("fifo_expire_async", "600000"),
        ],
        _ => &[],
    }
}

/// The kernel's behaviour in a round.
pub struct Made {
    /// Request numbers in insertion order.
    pub inserted: Vec<u64>,
    /// Request numbers in dispatch order.
    pub dispatch: Vec<u64>,
    events: Vec<Event>,
    tunables: Vec<(String, String)>,
    attach_j: i64,
    name: String,
}

impl Made {
    /// Converts the round to a record that our scheduler can replay.
    pub fn round(&self, elevator: &str, kind: Kind) -> Round {
        Round {
            case: self.name.clone(),
            elevator: elevator.to_owned(),
            workload: kind.name().to_owned(),
            hz: HZ,
            depth: DEPTH,
            rotational: false,
            max_sectors: 2560,
            nomerges: 2,
            tunables: self.tunables.clone(),
            attach_j: self.attach_j,
            pools: None,
            events: self.events.clone(),
            dispatch: self.dispatch.iter().map(|id| Issued::Id(*id)).collect(),
        }
    }
}

/// A process that submits a part of a batch.
struct Process {
    prio: IoPrio,
    asked: Vec<Asked>,
}

fn batch(kind: Kind, seed: u64) -> Vec<Process> {
    let mut rng = stream(seed, kind.name());
    let mut taken = std::collections::BTreeSet::new();
    let prios = kind.prios();
    let n = prios.len();
    prios
        .into_iter()
        .map(|prio| Process {
            prio,
            asked: (0..BATCH / n)
                .map(|_| {
                    let place = loop {
                        let place = rng.next_u64() % PLACES;
                        if taken.insert(place) {
                            break place;
                        }
                    };
                    Asked {
                        write: kind == Kind::Mixed && rng.next_u64() % 5 < 2,
                        sector: place * GAP,
                        sectors: 8,
                    }
                })
                .collect(),
        })
        .collect()
}

/// A submitted request. The key is its first sector, by which the trace identifies it.
struct Known {
    id: u64,
    process: u32,
    prio: IoPrio,
    asked: Asked,
}

/// Runs a round. Returns `None` if the batch was not submitted in time, or if trace events were
/// lost.
pub fn make(
    rig: &mut Rig,
    scheduler: &str,
    kind: Kind,
    seed: u64,
) -> Result<Option<Made>, RefereeError> {
    if let Some(signal) = signal() {
        return Err(RefereeError::Interrupted(signal));
    }
    let written = neutral(scheduler);
    let (tunables, attached_ns) = rig.enter(scheduler, written)?;
    let processes = batch(kind, seed);
    let usual = IoPrio {
        class: Class::Be,
        level: 4,
    };
    let blockers: Vec<Asked> = (0..BLOCKERS as u64)
        .map(|i| Asked {
            write: false,
            sector: FAR + i * GAP,
            sectors: 8,
        })
        .collect();
    let mut known = BTreeMap::new();
    let all =
        std::iter::once((usual, &blockers)).chain(processes.iter().map(|p| (p.prio, &p.asked)));
    for (process, (prio, asked)) in all.enumerate() {
        for a in asked {
            let id = known.len() as u64;
            let process = process as u32 + 1;
            known.insert(
                a.sector,
                Known {
                    id,
                    process,
                    prio,
                    asked: *a,
                },
            );
        }
    }
    rig.trace.start()?;
    let file = open_batches(rig.device.path())?;
    std::thread::scope(|s| -> Result<(), RefereeError> {
        let mut waiting = Vec::new();
        let every = std::iter::once((usual, blockers))
            .chain(processes.into_iter().map(|p| (p.prio, p.asked)));
        for (nth, (prio, asked)) in every.enumerate() {
            // A process is represented by a thread with its own I/O context, which exists until the
            // end.
            let (told, tell) = mpsc::channel();
            let file = &file;
            waiting.push(s.spawn(move || {
                // Each thread runs on another CPU. Otherwise a busy machine could run all threads
                // on one CPU, so that the scheduler's per-CPU queues would not be tested.
                stay_on(nth);
                let batch = Batch::submit(file, prio, &asked);
                let _ = told.send(());
                batch?.wait()
            }));
            // Threads start one after the other, so that the insertion order is fixed.
            let _ = tell.recv();
        }
        for w in waiting {
            let broken = || RefereeError::Input("internal error".to_owned());
            w.join().map_err(|_| broken())??;
        }
        Ok(())
    })?;
    drop(file);
    let recorded = rig.trace.stop()?;
    if recorded.lost > 0 {
        return Ok(None);
    }
    let Some(first) = recorded.events.first().map(|e| e.t_ns) else {
        return Ok(None);
    };
    let of_bfq: Vec<(String, String)> = written
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let jiffies = |us: i64| us * i64::from(HZ) / 1_000_000;
    let mut made = Made {
        inserted: Vec::new(),
        dispatch: Vec::new(),
        events: Vec::new(),
        // For bfq, the replay uses only the tunables that were written.
        tunables: if scheduler == "bfq" { of_bfq } else { tunables },
        attach_j: -jiffies((first.saturating_sub(attached_ns) / 1000) as i64) - 1,
        name: format!("{scheduler}/{}/{seed}", kind.name()),
    };
    let mut done = 0;
    for e in &recorded.events {
        let t_us = (e.t_ns - first) / 1000;
        let mut push = |what: What| {
            made.events.push(Event {
                t_us,
                jiffy: jiffies(t_us as i64),
                what,
            });
        };
        let Some(k) = known.get(&e.sector) else {
            continue;
        };
        match e.action {
            Action::Insert => {
                if done > 0 {
                    return Ok(None);
                }
                push(What::Insert(Incoming {
                    id: k.id,
                    task: k.process,
                    op: if k.asked.write { 'S' } else { 'R' },
                    sector: e.sector,
                    sectors: e.sectors,
                    prio: k.prio,
                    cpu: e.cpu as u16,
                }));
                if k.process == 1 {
                    push(What::Run { limit: None });
                }
                made.inserted.push(k.id);
            }
            Action::Issue => made.dispatch.push(k.id),
            Action::Complete => {
                let Some(place) = made.dispatch.iter().position(|id| *id == k.id) else {
                    return Ok(None);
                };
                done += 1;
                push(What::Complete {
                    k: place,
                    latency_us: None,
                });
                push(What::Run { limit: None });
            }
            _ => {}
        }
    }
    let whole = made.inserted.len() == known.len() && made.dispatch.len() == known.len();
    Ok(whole.then_some(made))
}
