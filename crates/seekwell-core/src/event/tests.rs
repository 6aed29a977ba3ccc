use super::wire::{EventLine, Line};
use super::*;
use crate::time::Nanos;
use proptest::prelude::*;

#[test]
fn every_action_has_its_own_letter() {
    let letters: std::collections::BTreeSet<char> =
        Action::ALL.iter().map(|a| a.letter()).collect();
    assert_eq!(letters.len(), Action::ALL.len());
}

#[test]
fn placeholders_in_event_texts_are_replaced_by_task_or_queue_names() {
    let mut e = Event::new(Instant::START, Action::Why);
    e.detail = "{who} waits for {other}".to_owned();
    (e.task, e.other) = (Some(TaskId(3)), Some(TaskId(4)));
    let name = |t: TaskId| format!("reader{}", t.0);
    assert_eq!(e.text(name), "reader3 waits for reader4");
    (e.task, e.queue) = (None, Some(7));
    assert_eq!(e.text(name), "queue 7 waits for reader4");
}

#[test]
fn events_are_not_built_without_a_listener() {
    let mut log = EventLog::default();
    log.push(|| unreachable!("nobody listens"));
    log.join(Some(Tap::new()));
    log.push(|| Event::new(Instant::START, Action::Why));
    log.join(None);
    log.push(|| unreachable!("nobody listens any more"));
}

#[test]
fn members_write_to_one_stream_in_order() {
    let top = Tap::new();
    top.introduce(MemberKind::Array, "array");
    let (a, b) = (top.member("0"), top.member("1"));
    let inner = b.member("host");
    inner.introduce(MemberKind::Queue, "inner");
    let late = inner.behind(Nanos(5));
    let mut logs = [
        EventLog::default(),
        EventLog::default(),
        EventLog::default(),
    ];
    for (log, tap) in logs.iter_mut().zip([&a, &late, &top]) {
        log.join(Some(tap.clone()));
        log.push(|| Event::new(Instant::at_ns(10), Action::Queue));
    }
    let mut got = Vec::new();
    top.take(&mut got);
    let seen: Vec<_> = got
        .iter()
        .map(|e| (e.member.0, e.at.since_start()))
        .collect();
    assert_eq!(seen, [(1, 10), (3, 5), (0, 10)]);
    assert_eq!(top.members()[0].name, "array");
    assert_eq!(top.members()[3].name, "inner");
    assert_eq!(top.members()[3].path, "1/host");
    assert_eq!(top.members()[3].of, Some(MemberId(2)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn event_line_survives_a_round_trip(
        at in 0u64..1 << 60,
        which in 0usize..Action::ALL.len(),
        rq in proptest::option::of(any::<u32>()),
        bio in proptest::option::of(any::<u64>()),
        task in proptest::option::of(any::<u32>()),
        flags in 0u16..1 << 10,
        sector in any::<u64>(),
        sectors in any::<u32>(),
        detail in any::<String>(),
        kind in 0u8..7,
    ) {
        let until = Instant::at_ns(at / 2);
        let more = match kind {
            0 => More::None,
            1 => More::Timer { slot: "idle_slice_timer", until },
            2 => More::Gone(RqId(sectors)),
            3 => More::Pieces(sectors),
            4 => More::To {
                member: MemberId(3),
                bio: BioId(sector),
                sector: Sector(at),
                sectors: Sectors(1),
            },
            5 => More::Head { from: Sector(at), begin: until, until },
            _ => More::Die { die: 3, channel: 1, doing: "program", until },
        };
        let e = Event {
            rq: rq.map(RqId),
            bio: bio.map(BioId),
            task: task.map(TaskId),
            other: task.map(TaskId),
            state: rq.map(|_| State::Sorted),
            flags: Flags::from_bits_truncate(flags),
            sector: Sector(sector),
            sectors: Sectors(sectors),
            more,
            detail,
            ..Event::new(Instant::at_ns(at), Action::ALL[which])
        };
        let line = Line::event(&e);
        let text = line.text();
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(Line::parse(&text).expect("it reads"), line);
        let plain = EventLine::from(&e);
        prop_assert_eq!(plain.t, at);
    }
}
