//! The documentation of the event stream must match the types. The streams of real runs must match
//! the documentation.

use seekwell::event::wire::{Cell, End, EventLine, Header, Line, To};
use seekwell::event::{Asleep, Held, Waiting};
use seekwell::event::{Member, MemberId, MemberKind, Snapshot};
use seekwell::{Hooks, Recording, RunSpec, Window};
use seekwell_core::{Action, Nanos};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn page() -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    std::fs::read_to_string(format!("{root}/../../docs/events.md")).expect("the page")
}

/// Returns the first cells of the table under a heading.
fn rows(page: &str, heading: &str) -> BTreeSet<String> {
    let begin = format!("\n### {heading}\n");
    let (_, text) = page.split_once(&begin).expect("a heading");
    let text = text.split("\n### ").next().expect("text");
    let cell = |l: &str| Some(l.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    text.lines().filter_map(cell).collect()
}

fn keys(v: &impl serde::Serialize) -> BTreeSet<String> {
    let v = serde_json::to_value(v).expect("plain data");
    v.as_object().expect("an object").keys().cloned().collect()
}

/// Returns an event in which all fields are set.
fn whole() -> EventLine {
    let word = || Some("x".to_owned());
    EventLine {
        t: 1,
        q: 1,
        a: "D".to_owned(),
        rq: Some(1),
        state: word(),
        bio: Some(1),
        task: Some(1),
        other: Some(1),
        cgroup: Some(1),
        queue: Some(1),
        op: word(),
        flags: "x".to_owned(),
        sector: Some(1),
        n: Some(1),
        rule: word(),
        kernel: word(),
        text: "x".to_owned(),
        slot: word(),
        until: Some(1),
        gone: Some(1),
        pieces: Some(1),
        to: Some(To::default()),
        begin: Some(1),
        from: Some(1),
        die: Some(1),
        channel: Some(1),
        doing: word(),
    }
}

#[test]
fn events_page_documents_exactly_the_existing_fields_and_letters() {
    let page = page();
    assert_eq!(rows(&page, "header"), keys(&Header::default()));
    let cell = Cell {
        length: Some(1),
        ..Cell::default()
    };
    assert_eq!(rows(&page, "cell"), keys(&cell));
    let member = Member {
        of: Some(MemberId(0)),
        ..Member::default()
    };
    assert_eq!(rows(&page, "member"), keys(&member));
    assert_eq!(rows(&page, "e"), keys(&whole()));
    assert_eq!(rows(&page, "to"), keys(&To::default()));
    let end = End {
        tasks: BTreeMap::from([(1, "x".to_owned())]),
        early: Some("x".to_owned()),
        ..End::default()
    };
    assert_eq!(rows(&page, "end"), keys(&end));
    let held: Held = serde_json::from_value(json!({
        "rq": 1, "bios": [1], "task": 1, "cgroup": 1, "op": "R", "flags": "SYNC", "sector": 1,
        "n": 1, "state": "sorted", "age_ns": 1, "device_ns": 1
    }))
    .expect("a request as the page has it");
    let asleep: Asleep = serde_json::from_value(json!({
        "bio": 1, "task": 1, "op": "R", "sector": 1, "n": 1, "age_ns": 1
    }))
    .expect("a bio as the page has it");
    let timer: Waiting =
        serde_json::from_value(json!({ "slot": "x", "until": 1 })).expect("a timer");
    for name in keys(&held)
        .iter()
        .chain(&keys(&asleep))
        .chain(&keys(&timer))
    {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
    let snapshot = Snapshot {
        requests: vec![held],
        asleep: vec![asleep],
        timers: vec![timer],
        scheduler: "x".to_owned(),
        device: "x".to_owned(),
        ..Snapshot::default()
    };
    assert_eq!(rows(&page, "snapshot"), keys(&snapshot));
    let letters: BTreeSet<String> = Action::ALL.iter().map(|a| a.letter().to_string()).collect();
    assert_eq!(rows(&page, "Letters"), letters);
    let lines = [
        Line::Header(Header::default()),
        Line::Cell(Box::default()),
        Line::Snapshot(Box::default()),
        Line::E(Box::default()),
        Line::End(Box::default()),
    ];
    let kinds: BTreeSet<String> = lines.iter().flat_map(keys).collect();
    let (_, table) = page.split_once("| line | meaning |").expect("the table");
    let table = table.split("\n\n").next().expect("its end");
    let named: BTreeSet<String> = table
        .lines()
        .filter_map(|l| Some(l.strip_prefix("| `")?.split_once('`')?.0.to_owned()))
        .collect();
    assert_eq!(named, kinds);
    for kind in [MemberKind::Queue, MemberKind::Array, MemberKind::Disk] {
        let word: Value = json!(kind);
        assert!(page.contains(&format!("`{}`", word.as_str().expect("a word"))));
    }
}

fn spec(workload: &str, device: &str, scheduler: &str) -> RunSpec {
    seekwell::spec(workload, device, scheduler).expect("words")
}

fn recorded(spec: &RunSpec, window: Window, most: u64) -> (Vec<Line>, End) {
    let recording = Recording::new(Vec::new(), Cell::default(), window).at_most(most);
    let hooks = Hooks::default().listen(Box::new(recording.clone()));
    seekwell::run(spec, hooks).expect("it runs");
    let (text, end) = recording.finish(None).expect("memory");
    let text = String::from_utf8(text).expect("text");
    let lines: Vec<Line> = text
        .lines()
        .map(|l| {
            let line = Line::parse(l).expect("a line");
            assert_eq!(line.text(), l, "written again it is the same");
            line
        })
        .collect();
    (lines, end)
}

const ALL: u64 = u64::MAX;

/// Contains what a reader knows from a snapshot and events: the requests of each member, and the
/// location of each request.
#[derive(Default, Debug, PartialEq, Eq, Clone)]
struct Inside(BTreeMap<(u16, u32), String>);

impl Inside {
    fn of<'a>(all: impl Iterator<Item = &'a Snapshot>) -> Self {
        let one = |s: &Snapshot| {
            let q = s.q.0;
            let each = s.requests.iter();
            each.map(|r| ((q, r.rq), r.state.clone()))
                .collect::<Vec<_>>()
        };
        Inside(all.flat_map(one).collect())
    }
    fn apply_event(&mut self, e: &EventLine) {
        if let Some(gone) = e.gone {
            self.0.remove(&(e.q, gone));
        }
        let Some(rq) = e.rq else { return };
        match (e.a.as_str(), &e.state) {
            ("C", _) => {
                self.0.remove(&(e.q, rq));
            }
            (_, Some(state)) => {
                self.0.insert((e.q, rq), state.clone());
            }
            _ => {}
        }
    }
    /// Returns three sets: the requests in the device, the requests inside the scheduler, and all
    /// others.
    fn sets(&self) -> [BTreeSet<(u16, u32)>; 3] {
        let mut out: [BTreeSet<_>; 3] = Default::default();
        for (k, state) in &self.0 {
            let set = match state.as_str() {
                "in_flight" => 0,
                "sorted" => 1,
                _ => 2,
            };
            out[set].insert(*k);
        }
        out
    }
}

/// Returns the requests at the start of the window, the events, and the requests at the end of the
/// window.
fn parts(lines: &[Line]) -> (Inside, Vec<&EventLine>, Inside) {
    let snapshots = |l: &'_ Line| matches!(l, Line::Snapshot(_));
    let from = lines.iter().position(snapshots).expect("a snapshot");
    let begin = lines[from..].iter().take_while(|l| snapshots(l));
    fn own(l: &Line) -> Option<&Snapshot> {
        match l {
            Line::Snapshot(s) => Some(s),
            _ => None,
        }
    }
    let n = begin.clone().count();
    let begin = Inside::of(begin.filter_map(own));
    let events = lines.iter().filter_map(|l| match l {
        Line::E(e) => Some(&**e),
        _ => None,
    });
    let end = Inside::of(lines[from + n..].iter().filter_map(own));
    (begin, events.collect(), end)
}

/// Returns every scheduler in all versions on a disk, and devices that are arrays, guests and
/// flash.
fn everywhere() -> Vec<(String, &'static str)> {
    let mut all = Vec::new();
    for s in seekwell_sched::registry() {
        for (version, _) in s.versions {
            all.push((format!("{}-{version}", s.name), "hdd:hitachi-7k200"));
        }
    }
    for device in [
        "ssd:sata3-256-2011",
        "raid5:members=3,of=hdd:hitachi-7k200",
        "virtual:over=hdd:hitachi-7k200",
        "emmc:motog-sandisk8",
    ] {
        for scheduler in ["cfq", "deadline", "row", "bfq", "none"] {
            all.push((scheduler.to_owned(), device));
        }
    }
    all
}

/// Under every scheduler, the snapshot at the start and the events must give the requests at the
/// end of the window.
#[test]
fn events_applied_to_a_snapshot_give_the_next_snapshot() {
    let window = Window {
        from: Nanos::from_ms(200),
        length: Some(Nanos::from_ms(300)),
    };
    let (mut seen, mut kinds) = (0, BTreeSet::new());
    for (scheduler, device) in everywhere() {
        let workload = "interactive:size=16m,bulk=32m,seconds=600ms";
        let (lines, end) = recorded(&spec(workload, device, &scheduler), window, ALL);
        let (mut inside, events, want) = parts(&lines);
        assert_eq!(end.events, events.len() as u64);
        for e in &events {
            inside.apply_event(e);
        }
        let n = events.len();
        let name = format!("{scheduler} on {device}, {n} events");
        assert_eq!(inside.sets(), want.sets(), "{name}");
        kinds.extend(want.0.values().cloned());
        seen += want.0.len();
    }
    println!("{seen} requests inside at the windows' ends: {kinds:?}");
    assert!(seen > 100 && kinds.len() >= 3, "{seen} {kinds:?}");
}

/// In every stream, commands end, flushes complete, timers expire or are cancelled, and all members
/// are known.
#[test]
fn every_started_event_has_its_end() {
    let mut issued = 0;
    for (scheduler, device) in everywhere() {
        let (device, scheduler) = (device, scheduler.as_str());
        let name = format!("{scheduler} on {device}");
        let (lines, _) = recorded(
            &spec("fs-mark:files=6", device, scheduler),
            Window::default(),
            ALL,
        );
        let Some(Line::Cell(cell)) = lines.first() else {
            panic!("{name}: a cell comes first");
        };
        let members: BTreeSet<u16> = cell.members.iter().map(|m| m.id.0).collect();
        let (_, events, _) = parts(&lines);
        let mut device_has: BTreeMap<(u16, u32), String> = BTreeMap::new();
        let mut armed: BTreeMap<(u16, String), u64> = BTreeMap::new();
        let mut at = BTreeMap::new();
        let (mut flushes, mut flushed) = (0, 0);
        for e in &events {
            assert!(members.contains(&e.q), "{name}: a member that is known");
            let last = at.insert(e.q, e.t).unwrap_or(0);
            let late = device.starts_with("virtual");
            assert!(last <= e.t || late, "{name}: time goes on, {} {}", e.a, e.t);
            let key = e.rq.map(|rq| (e.q, rq));
            let flush = e.op.as_deref() == Some("F");
            match e.a.as_str() {
                "D" => {
                    flushes += u32::from(flush);
                    let before = device_has.insert(key.expect("a request"), e.a.clone());
                    assert!(before.is_none(), "{name}: issued twice");
                }
                "C" | "p" | "R" => {
                    // A flush that had nothing to do was never sent to the device.
                    let had = key.and_then(|k| device_has.remove(&k)).is_some();
                    flushed += u32::from(flush && had);
                }
                "a" => {
                    let slot = e.slot.clone().expect("a slot");
                    armed.insert((e.q, slot), e.until.expect("a time"));
                }
                "d" | "T" => {
                    let slot = e.slot.clone().expect("a slot");
                    let until = armed.remove(&(e.q, slot)).expect("armed before");
                    assert_eq!(Some(until), e.until, "{name}");
                    if e.a == "T" {
                        assert!(until <= e.t, "{name}: fired before its time");
                    }
                }
                _ => {}
            }
        }
        assert_eq!(flushes, flushed, "{name}: each flush completes");
        issued += flushes;
        assert!(
            device_has.len() <= 4,
            "{name}: {} commands never ended",
            device_has.len()
        );
    }
    assert!(issued > 200, "{issued} flushes");
}

/// Events of array members, heads, dies and parts must name the object that they concern.
#[test]
fn device_and_member_events_name_their_object() {
    let letters = |device: &str, scheduler: &str| {
        let spec = spec("fs-mark:files=6", device, scheduler);
        let (lines, _) = recorded(&spec, Window::default(), ALL);
        let (_, events, _) = parts(&lines);
        let mut all: BTreeMap<(u16, String), usize> = BTreeMap::new();
        for e in events {
            *all.entry((e.q, e.a.clone())).or_default() += 1;
        }
        all
    };
    let has = |all: &BTreeMap<(u16, String), usize>, q: u16, a: &str| {
        all.contains_key(&(q, a.to_owned()))
    };
    let disk = letters("hdd:hitachi-7k200", "deadline");
    assert!(has(&disk, 0, "h") && has(&disk, 0, "c"), "{disk:?}");
    let array = letters("raid1:members=2,of=hdd:hitachi-7k200", "deadline");
    for (q, a) in [(0, "Q"), (0, "A"), (0, "C"), (1, "D"), (2, "D"), (2, "h")] {
        assert!(has(&array, q, a), "{q} {a}: {array:?}");
    }
    assert!(!has(&array, 0, "D"), "an array has no driver");
    let flash = letters("ssd:sata3-256-2011", "noop");
    assert!(has(&flash, 0, "f"), "{flash:?}");
    let guest = letters("virtual:over=hdd:hitachi-7k200", "deadline");
    for (q, a) in [(0, "D"), (0, "A"), (1, "Q"), (1, "h")] {
        assert!(has(&guest, q, a), "{q} {a}: {guest:?}");
    }
    // The cache of this controller is write-through, so no data stay in it.
    let controller = letters("controller:hwraid5-5-wt", "deadline");
    for (q, a) in [(0, "D"), (1, "D"), (3, "C"), (1, "h")] {
        assert!(has(&controller, q, a), "{q} {a}: {controller:?}");
    }
}

/// Reasons and timers must name the task that they concern.
#[test]
fn idle_wait_names_its_task() {
    let spec = spec("streams:size=8m,seconds=1s", "hdd:hitachi-7k200", "cfq");
    let (lines, end) = recorded(&spec, Window::default(), ALL);
    let (_, events, _) = parts(&lines);
    let reader = |e: &&&EventLine| {
        let name = e.task.and_then(|t| end.tasks.get(&t));
        name.is_some_and(|n| n.contains("stream"))
    };
    let idle = events
        .iter()
        .filter(|e| e.rule.as_deref() == Some("idle-armed"))
        .find(reader)
        .expect("cfq idles for readers");
    assert_eq!(idle.text, "idles for {who}, at most 8 ms");
    let task = idle.task.expect("whom for");
    let armed = events
        .iter()
        .find(|e| e.a == "a" && e.t == idle.t)
        .expect("a timer");
    assert_eq!(armed.slot.as_deref(), Some("idle_slice_timer"));
    assert_eq!(armed.task, Some(task));
    assert!(armed.until > Some(armed.t));
}

/// The limit of events is applied and reported. Listening to events does not change the figures of
/// a run.
#[test]
fn dropped_events_are_counted_and_listening_changes_nothing() {
    let spec = spec("fs-mark:files=6", "hdd:hitachi-7k200", "bfq");
    let (_, all) = recorded(&spec, Window::default(), ALL);
    let (lines, end) = recorded(&spec, Window::default(), 100);
    assert_eq!((end.events, end.events + end.left_out), (100, all.events));
    assert_eq!(parts(&lines).1.len(), 100);
    let alone = seekwell::run(&spec, Hooks::default()).expect("it runs");
    assert_eq!(alone.duration_ns, end.t, "listening changes nothing");
}
