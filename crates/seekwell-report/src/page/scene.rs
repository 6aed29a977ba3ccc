//! A lane of the replay as a part of the page: the state at its start, the events of one queue, and
//! the scheduler's reasons with the names of tasks.
//!
//! For an array or a guest, the queue with the most commands to a device is shown. Later events of
//! a request do not repeat its data (task, sector, length). Bios before they become requests, and
//! the dies of flash, are not shown.

use super::columns::Columns;
use seekwell_core::event::wire::{End, EventLine, Line};
use seekwell_core::event::{Member, MemberKind, Snapshot};
use seekwell_lab::scenes::Lane;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Letters of the events that are kept, in the order of their codes.
const LETTERS: &str = "IMFjEDCpRmadThc";

/// Facts about a lane, for the index.
pub(super) struct Packed {
    pub part: String,
    /// Number of events in the part.
    pub events: usize,
    /// Length of the lane, in ns.
    pub length_ns: u64,
}

struct Read<'a> {
    member: Option<&'a Member>,
    members: usize,
    snapshot: Option<&'a Snapshot>,
    end: &'a End,
    begin: u64,
    asked_ns: Option<u64>,
    events: Vec<&'a EventLine>,
}

fn read(lines: &[Line]) -> Option<Read<'_>> {
    let (mut cell, mut end) = (None, None);
    let mut commands: BTreeMap<u16, u64> = BTreeMap::new();
    for line in lines {
        match line {
            Line::Cell(c) => cell = Some(c.as_ref()),
            Line::End(e) => end = Some(e.as_ref()),
            Line::E(e) if e.a == "D" => *commands.entry(e.q).or_default() += 1,
            _ => {}
        }
    }
    let (cell, end) = (cell?, end?);
    let queue = |m: &&Member| m.kind == MemberKind::Queue;
    let of = |m: &Member| commands.get(&m.id.0).copied().unwrap_or(0);
    let most = |a: &'_ Member, b: &'_ Member| of(b) > of(a);
    let member = cell
        .members
        .iter()
        .filter(queue)
        .reduce(|a, b| if most(a, b) { b } else { a });
    let id = member.map_or(0, |m| m.id.0);
    let mine = lines.iter().filter_map(|l| match l {
        Line::E(e) if e.q == id => Some(e.as_ref()),
        _ => None,
    });
    let snapshot = lines.iter().find_map(|l| match l {
        Line::Snapshot(s) if s.q.0 == id => Some(s.as_ref()),
        _ => None,
    });
    Some(Read {
        member,
        members: cell.members.iter().filter(queue).count(),
        snapshot,
        end,
        begin: end.clock + cell.from,
        asked_ns: cell.length,
        events: mine.collect(),
    })
}

/// Returns the names of tasks. A name is shortened to the last part of its path if that part is
/// unique.
fn names(end: &End) -> BTreeMap<u32, String> {
    let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let short: Vec<String> = end.tasks.values().map(|p| last(p)).collect();
    let one = |(task, path): (&u32, &String)| {
        let name = last(path);
        let alone = short.iter().filter(|s| **s == name).count() == 1;
        (*task, if alone { name } else { path.clone() })
    };
    end.tasks.iter().map(one).collect()
}

fn op(name: &str) -> i64 {
    "RWFDZ".find(name).unwrap_or(0) as i64
}

fn held(s: &Snapshot) -> Vec<Value> {
    let one = |r: &seekwell_core::event::Held| {
        json!([
            r.rq,
            r.task,
            op(&r.op),
            r.sector,
            r.n,
            r.age_ns,
            r.device_ns,
            r.state
        ])
    };
    s.requests.iter().map(one).collect()
}

/// Texts of reasons. Each text is stored once.
#[derive(Default)]
struct Reasons {
    all: Vec<(String, String)>,
    by: BTreeMap<(String, String), usize>,
}

impl Reasons {
    fn intern(&mut self, e: &EventLine, names: &BTreeMap<u32, String>) -> usize {
        let who = |task: Option<u32>| -> String {
            match (task, e.queue) {
                (Some(t), _) => names.get(&t).cloned().unwrap_or(format!("task {t}")),
                (None, Some(q)) => format!("queue {q}"),
                (None, None) => "no process".to_owned(),
            }
        };
        let text = match (&e.slot, e.a.as_str()) {
            (Some(slot), "T") => format!("{slot} fires"),
            (Some(slot), _) => slot.clone(),
            // A rule without values is shown by its name.
            (None, _) if e.text.is_empty() => {
                e.rule.as_deref().unwrap_or_default().replace('-', " ")
            }
            (None, _) => e.text.clone(),
        };
        let text = text
            .replace(seekwell_core::event::WHO, &who(e.task))
            .replace(seekwell_core::event::OTHER, &who(e.other));
        let reason = (e.rule.clone().unwrap_or_default(), text);
        if let Some(at) = self.by.get(&reason) {
            return *at;
        }
        self.all.push(reason.clone());
        self.by.insert(reason, self.all.len() - 1);
        self.all.len() - 1
    }
}

/// An event as numbers.
#[derive(Clone, Copy, Default)]
struct Row {
    t: i64,
    letter: i64,
    rq: i64,
    task: i64,
    op: i64,
    sector: i64,
    n: i64,
    /// The meaning depends on the letter. For `m`, `a`, `d` and `T`, it is the reason. For `j`, it
    /// is the request that was merged. For `I`, it says whether the request bypassed the scheduler.
    more: i64,
}

/// Packs the first `most` events of a lane.
pub(super) fn pack(lane: &Lane, most: usize) -> Option<Packed> {
    let r = read(&lane.lines)?;
    let names = names(r.end);
    let mut reasons = Reasons::default();
    let (mut rows, mut heads) = (Vec::<Row>::new(), Vec::<[i64; 3]>::new());
    let mut cut = None;
    for e in &r.events {
        let Some(letter) = LETTERS.find(e.a.as_str()) else {
            continue;
        };
        let t = e.t as i64 - r.begin as i64;
        if rows.len() >= most {
            cut = Some(t);
            break;
        }
        let last = rows.last().copied().unwrap_or_default();
        // Facts about the request that are known from an earlier event are not repeated.
        let says = "IMFEDh".contains(e.a.as_str());
        let of = |v: Option<i64>, last: i64| if says { v.unwrap_or(0) } else { last };
        let task = e.task.map(i64::from);
        rows.push(Row {
            t,
            letter: letter as i64,
            // The head may move for the drive's own cache, without a request.
            rq: match e.rq {
                Some(rq) => i64::from(rq),
                None if "matdT".contains(e.a.as_str()) => last.rq,
                None => -1,
            },
            task: if e.a == "h" {
                last.task
            } else {
                of(task, last.task)
            },
            op: of(e.op.as_deref().map(op), last.op),
            sector: of(e.sector.map(|s| s as i64), last.sector),
            n: of(e.n.map(i64::from), last.n),
            more: match e.a.as_str() {
                "m" | "a" | "d" | "T" => reasons.intern(e, &names) as i64,
                "j" => e.gone.map_or(-1, i64::from),
                "I" => i64::from(e.state.as_deref() != Some("sorted")),
                _ => 0,
            },
        });
        if e.a == "h" {
            let at = |v: Option<u64>| v.map_or(t, |v| v as i64 - r.begin as i64);
            heads.push([e.from.map_or(0, |s| s as i64), at(e.begin), at(e.until)]);
        }
    }
    let over = r.end.t.saturating_sub(r.begin);
    let whole = r.asked_ns.map_or(over, |l| l.min(over));
    let left_out = r.end.left_out > 0;
    let shown = rows.last().map_or(0, |e| e.t.max(0) as u64);
    let length_ns = match cut {
        Some(t) => (t.max(0) as u64).min(whole),
        None if left_out => shown.min(whole),
        None => whole,
    };
    let mut columns = Columns::default();
    let mut column = |name: &str, of: fn(&Row) -> i64| columns.int(name, rows.iter().map(of));
    column("t", |e| e.t);
    column("a", |e| e.letter);
    column("rq", |e| e.rq);
    column("task", |e| e.task);
    column("op", |e| e.op);
    column("sector", |e| e.sector);
    column("n", |e| e.n);
    column("more", |e| e.more);
    for (at, name) in ["h.from", "h.begin", "h.until"].iter().enumerate() {
        columns.int(name, heads.iter().map(|h| h[at]));
    }
    let mut head = Map::new();
    let mut say = |name: &str, value: Value| head.insert(name.to_owned(), value);
    say("letters", LETTERS.into());
    say("tasks", json!(names));
    say("reasons", json!(reasons.all));
    say("inside", r.snapshot.map(held).unwrap_or_default().into());
    let state = |f: fn(&Snapshot) -> &String| r.snapshot.map(f).cloned().unwrap_or_default();
    say("scheduler", state(|s| &s.scheduler).into());
    say("device", state(|s| &s.device).into());
    let path = r.member.filter(|_| r.members > 1).map(|m| m.path.clone());
    say("member", json!(path));
    say("members", r.members.into());
    say("length", length_ns.into());
    Some(Packed {
        part: columns.part(head),
        events: rows.len(),
        length_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::super::columns::read;
    use super::*;

    fn lines() -> Vec<Line> {
        let event = |t: u64, a: &str, f: fn(&mut EventLine)| {
            let mut e = EventLine {
                t,
                a: a.to_owned(),
                ..EventLine::default()
            };
            f(&mut e);
            Line::E(Box::new(e))
        };
        vec![
            Line::Cell(Box::new(seekwell_core::event::wire::Cell {
                from: 1_000,
                length: Some(5_000),
                members: vec![Member::default()],
                ..Default::default()
            })),
            event(4_100, "Q", |_| {}),
            event(4_100, "I", |e| {
                (e.rq, e.task, e.sector, e.n) = (Some(7), Some(3), Some(800), Some(8));
                (e.op, e.state) = (Some("W".to_owned()), Some("sorted".to_owned()));
            }),
            event(4_200, "m", |e| {
                e.task = Some(3);
                e.rule = Some("x".to_owned());
                e.text = "idles for {who}, at most 8 ms".to_owned();
            }),
            event(4_300, "h", |e| {
                (e.rq, e.sector, e.n) = (Some(7), Some(800), Some(8));
                (e.from, e.begin, e.until) = (Some(100), Some(4_300), Some(4_900));
            }),
            event(4_900, "C", |e| {
                (e.rq, e.sector, e.n) = (Some(7), Some(800), Some(8))
            }),
            Line::End(Box::new(End {
                clock: 3_000,
                t: 90_000,
                tasks: [(3, "main/<b>".to_owned())].into(),
                ..End::default()
            })),
        ]
    }

    #[test]
    fn replay_lane_contains_the_events_of_the_stream() {
        let lane = Lane {
            treatment: 0,
            lines: lines(),
        };
        let p = pack(&lane, 100).expect("a part");
        assert_eq!((p.events, p.length_ns), (4, 5_000));
        let part = read::part(&p.part);
        assert_eq!(part.column("t"), [100.0, 200.0, 300.0, 900.0]);
        let letters: Vec<usize> = ["I", "m", "h", "C"]
            .iter()
            .filter_map(|l| LETTERS.find(l))
            .collect();
        let is: Vec<usize> = part.column("a").iter().map(|a| *a as usize).collect();
        assert_eq!(is, letters);
        assert_eq!(part.column("sector"), [800.0; 4]);
        assert_eq!(part.column("h.until"), [900.0]);
        assert_eq!(
            part.head["reasons"][0],
            json!(["x", "idles for <b>, at most 8 ms"])
        );
        // A shortened lane ends with its last event.
        let p = pack(&lane, 2).expect("a part");
        assert_eq!((p.events, p.length_ns), (2, 300));
    }
}
