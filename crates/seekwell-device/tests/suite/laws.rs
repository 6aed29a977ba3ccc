//! The properties of every device under any commands. Each accepted command completes exactly once,
//! in time order, and not before its acceptance. The same seed gives the same bytes. Nothing
//! panics.

use proptest::prelude::*;
use seekwell_core::{Accept, Command, Device, Done, Instant, Nanos, Op, Sector, Sectors, Tap};
use seekwell_device::open;

/// A command and the pause before it, us. Addresses are near the ends, in the middle and
/// everywhere.
#[derive(Debug, Clone)]
pub struct Step {
    gap_us: u64,
    op: Op,
    place: u8,
    offset: u64,
    sectors: u32,
    fua: bool,
}

pub fn step() -> impl Strategy<Value = Step> {
    let op = prop_oneof![
        6 => Just(Op::Read),
        6 => Just(Op::Write),
        1 => Just(Op::Flush),
        1 => Just(Op::Discard),
        1 => Just(Op::WriteZeroes),
    ];
    let gap = prop_oneof![4 => Just(0u64), 4 => 0u64..2_000, 2 => 0u64..300_000];
    let sectors = prop_oneof![6 => 1u32..=64, 2 => 0u32..=3000, 1 => 0u32..=65_535];
    (
        gap,
        op,
        0u8..6,
        any::<u64>(),
        sectors,
        prop::bool::weighted(0.1),
    )
        .prop_map(|(gap_us, op, place, offset, sectors, fua)| Step {
            gap_us,
            op,
            place,
            offset,
            sectors,
            fua,
        })
}

struct Trace {
    accepted: Vec<(u32, Instant, bool)>,
    done: Vec<Done>,
}

impl Trace {
    /// Advances to the event that the device announced. Nothing may complete before it.
    fn advance_to_event(&mut self, d: &mut dyn Device, e: Instant, spec: &str) {
        let before = self.done.len();
        d.advance(e, &mut self.done);
        let early = self.done[before..].iter().find(|d| d.at < e);
        assert_eq!(
            early, None,
            "{spec}: done before the event announced at {e}"
        );
    }
}

/// Runs the steps. `eager` sets how often the device is advanced, and `heard` whether an event log
/// is attached; neither may affect the results.
fn run(spec: &str, seed: u64, steps: &[Step], eager: bool, heard: bool) -> Trace {
    let mut d = open(spec, seed).expect(spec);
    let tap = Tap::new();
    d.listen(heard.then_some(&tap));
    let capacity = d.facts().capacity.0;
    let mut now = Instant::START;
    let mut t = Trace {
        accepted: vec![],
        done: vec![],
    };
    for (id, s) in steps.iter().enumerate() {
        let until = now + Nanos::from_us(s.gap_us);
        while let Some(e) = d.next_event().filter(|e| eager && *e <= until) {
            assert!(e >= now, "{spec}: an event in the past");
            now = e;
            t.advance_to_event(&mut d, e, spec);
        }
        now = until;
        d.advance(now, &mut t.done);
        let sector = match s.place {
            0 => s.offset % 5_000,
            1 => capacity - 1 - s.offset % 5_000,
            2 => capacity / 2 + s.offset % 200,
            3 => t.accepted.last().map_or(0, |a| u64::from(a.0) * 64),
            4 => s.offset % capacity,
            _ => s.offset,
        };
        let command = Command {
            id: id as u32,
            op: s.op,
            sector: Sector(sector),
            sectors: Sectors(s.sectors),
            fua: s.fua,
        };
        let beyond = sector
            .checked_add(u64::from(s.sectors))
            .is_none_or(|e| e > capacity);
        if d.accept(now, command) == Accept::Accepted {
            t.accepted
                .push((id as u32, now, beyond && s.op != Op::Flush));
        }
    }
    let mut last = now;
    while let Some(e) = d.next_event() {
        assert!(e >= last, "{spec}: an event in the past");
        last = e;
        t.advance_to_event(&mut d, e, spec);
        assert!(e < Instant::at_us(1 << 40), "{spec}: never rests");
    }
    let mut text = String::new();
    d.state(&mut text);
    assert_eq!(
        t.accepted.len(),
        t.done.len(),
        "{spec} rests with work undone: {text}"
    );
    assert!(
        d.stats().busy <= last.since(Instant::START),
        "{spec}: busier than time: {text}"
    );
    t
}

/// Each accepted command completes once, in order, and not before its arrival. It fails if it
/// reaches past the end.
pub fn each_completes_once(spec: &str, seed: u64, steps: &[Step]) -> Result<(), TestCaseError> {
    let t = run(spec, seed, steps, true, false);
    prop_assert!(t.done.windows(2).all(|w| w[0].at <= w[1].at));
    let mut done = t.done.clone();
    done.sort_by_key(|d| d.id);
    for (d, (id, at, beyond)) in done.iter().zip(&t.accepted) {
        prop_assert_eq!(d.id, *id);
        prop_assert!(d.at >= *at);
        prop_assert_eq!(d.error, *beyond);
    }
    Ok(())
}

/// The same seed gives the same completions. They do not depend on whether the caller advances
/// event by event or in larger steps, nor on an attached event log, which causes additional events.
pub fn is_deterministic(spec: &str, seed: u64, steps: &[Step]) -> Result<(), TestCaseError> {
    let a = run(spec, seed, steps, true, false);
    let b = run(spec, seed, steps, true, false);
    let c = run(spec, seed, steps, false, false);
    let d = run(spec, seed, steps, true, true);
    prop_assert_eq!(&a.done, &b.done);
    prop_assert_eq!(&a.done, &c.done, "{}", spec);
    prop_assert_eq!(&a.done, &d.done, "{}", spec);
    Ok(())
}
