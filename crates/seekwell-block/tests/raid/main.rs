//! Compares arrays with simple, slow models: every bio completes once, data and parity stay
//! correct, and each level has its expected cost.

mod bytes;
mod costs;

use proptest::prelude::*;
use seekwell_block::raid::{BitmapOptions, ParityOptions, ReadPolicy, RemapOptions};
use seekwell_block::{Linear, Mirror, Parity, Remapped, Stripe};
use seekwell_core::{
    Bio, BioDone, BioSink, Control, Flags, Instant, Nanos, Op, Sector, Sectors, TaskId,
};
use seekwell_device::raid::{Level, Order};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A member in memory. Its service times come from a list, so that completions arrive in any order.
struct Memory {
    size: u64,
    log: Log,
    member: usize,
    times: u64,
    out: Vec<BioDone>,
}

/// (member, operation, first sector, sectors, task)
type Log = Rc<RefCell<Vec<(usize, Op, u64, u32, u32)>>>;

impl Memory {
    fn set(n: usize, size: u64, seed: u64) -> (Vec<Memory>, Log) {
        let log = Log::default();
        let make = |member| Memory {
            size,
            log: log.clone(),
            member,
            times: seed ^ (member as u64 * 77),
            out: Vec::new(),
        };
        ((0..n).map(make).collect(), log)
    }
}

impl BioSink for Memory {
    fn submit(&mut self, now: Instant, bio: Bio) {
        assert!(
            bio.op == Op::Flush || bio.end().0 <= self.size,
            "{bio:?} beyond the member"
        );
        self.times = self
            .times
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let at = now + Nanos::from_us(1 + (self.times >> 40) % 900);
        let entry = (self.member, bio.op, bio.sector.0, bio.sectors.0, bio.task.0);
        self.log.borrow_mut().push(entry);
        self.out.push(BioDone {
            id: bio.id,
            at,
            error: false,
        });
        self.out.sort_by_key(|d| d.at);
    }
    fn next_event(&self) -> Option<Instant> {
        self.out.first().map(|d| d.at)
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        let n = self.out.partition_point(|d| d.at <= to);
        out.extend(self.out.drain(..n));
    }
    fn control(&mut self, _: Instant, _: Control) {}
    fn capacity(&self) -> Sector {
        Sector(self.size)
    }
}

fn bio(id: u64, op: Op, sector: u64, n: u32) -> Bio {
    Bio::new(id, TaskId(1), op, Flags::empty(), sector, n)
}

fn finish<B: BioSink>(q: &mut B) -> Vec<BioDone> {
    let mut out = Vec::new();
    let mut steps = 0;
    while let Some(t) = q.next_event() {
        q.advance(t, &mut out);
        steps += 1;
        assert!(steps < 1_000_000, "it never ends");
    }
    out
}

/// The actions of a test: (gap in us, write, sector, sectors, plug or unplug first).
type Script = Vec<(u64, bool, u64, u32, u8)>;

fn scripts(size: u64) -> impl Strategy<Value = Script> {
    let one = (0u64..400, any::<bool>(), 0..size, 1u32..160, 0u8..8);
    proptest::collection::vec(one, 1..80)
}

/// Runs a script; returns the ids in order of completion. Every bio completes once, and none too
/// early.
fn play<B: BioSink>(
    a: &mut B,
    script: &Script,
    mut hear: impl FnMut(&mut B, Option<Bio>),
) -> Vec<(u64, Instant)> {
    let size = a.capacity().0;
    let (mut now, mut out, mut sent) = (Instant::START, Vec::new(), BTreeMap::new());
    let mut open = false;
    for (i, (gap, write, sector, n, plug)) in script.iter().enumerate() {
        let to = now + Nanos::from_us(*gap);
        while let Some(t) = a.next_event().filter(|t| *t <= to) {
            a.advance(t, &mut out);
            hear(a, None);
        }
        now = to;
        match (plug, open) {
            (0, false) => (open = true, a.control(now, Control::Plug(TaskId(1)))).1,
            (1, true) => (open = false, a.control(now, Control::Unplug(TaskId(1)))).1,
            _ => {}
        }
        let op = if *write { Op::Write } else { Op::Read };
        let n = (*n).min(size as u32);
        let b = bio(i as u64, op, (*sector).min(size - u64::from(n)), n);
        sent.insert(i as u64, now);
        hear(a, Some(b));
        a.submit(now, b);
        hear(a, None);
    }
    a.control(now, Control::Unplug(TaskId(1)));
    while let Some(t) = a.next_event() {
        a.advance(t, &mut out);
        hear(a, None);
    }
    let mut last = Instant::START;
    for d in &out {
        let at = sent
            .remove(&d.id.0)
            .unwrap_or_else(|| panic!("{d:?} twice"));
        assert!(
            d.at >= at && d.at >= last && !d.error,
            "{d:?} submitted {at}"
        );
        last = d.at;
    }
    assert!(sent.is_empty(), "never completed: {sent:?}");
    out.iter().map(|d| (d.id.0, d.at)).collect()
}

fn bytes(log: &Log, op: Op) -> u64 {
    let all = log.borrow();
    all.iter()
        .filter(|e| e.1 == op)
        .map(|e| u64::from(e.3))
        .sum()
}
fn asked(script: &Script, write: bool) -> u64 {
    script
        .iter()
        .filter(|s| s.1 == write)
        .map(|s| u64::from(s.3))
        .sum()
}

const SIZE: u64 = 1024;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn stripes_and_chains_transfer_every_byte_once(script in scripts(SIZE), n in 1usize..5, seed: u64) {
        let (members, log) = Memory::set(n, SIZE, seed);
        play(&mut Stripe::new(members, Sectors(16)).unwrap(), &script, |_, _| {});
        prop_assert_eq!(bytes(&log, Op::Read), asked(&script, false));
        prop_assert_eq!(bytes(&log, Op::Write), asked(&script, true));
        let (members, log) = Memory::set(n, SIZE, seed);
        play(&mut Linear::new(members).unwrap(), &script, |_, _| {});
        prop_assert_eq!(bytes(&log, Op::Read), asked(&script, false));
        prop_assert_eq!(bytes(&log, Op::Write), asked(&script, true));
    }

    /// Bytes are also kept in nested arrays: mirrors of stripes of chains.
    #[test]
    fn nested_arrays_transfer_every_byte_once(script in scripts(SIZE), seed: u64) {
        let (members, log) = Memory::set(8, SIZE, seed);
        let mut members = members.into_iter();
        let mut chain = || Linear::new(members.by_ref().take(2).collect()).unwrap();
        let mut stripe = || Stripe::new(vec![chain(), chain()], Sectors(32)).unwrap();
        let two = vec![stripe(), stripe()];
        let policy = ReadPolicy::Md;
        let mut m = Mirror::new(two, Level::Raid1, Sectors(8), policy, true, &[], 0).unwrap();
        play(&mut m, &script, |_, _| {});
        prop_assert_eq!(bytes(&log, Op::Read), asked(&script, false));
        prop_assert_eq!(bytes(&log, Op::Write), 2 * asked(&script, true));
    }

    /// Every written sector is read back from each place that the policy chooses, on every layout,
    /// with and without a failed member.
    #[test]
    fn mirror_copies_hold_the_same_data(
        script in scripts(SIZE), which in 0usize..6, lost in 0usize..4, seed: u64, bitmap: bool,
    ) {
        let ten = |copies, order| Level::Raid10 { copies, order };
        let (level, n) = [
            (Level::Raid1, 3), (ten(2, Order::Near), 4), (ten(2, Order::Far), 4),
            (ten(2, Order::Offset), 3), (ten(2, Order::Near), 3), (ten(3, Order::Far), 5),
        ][which];
        let failed: Vec<usize> = (lost < n).then_some(lost).into_iter().collect();
        let policies = [ReadPolicy::Md, ReadPolicy::RoundRobin, ReadPolicy::FewestPending,
            ReadPolicy::Region, ReadPolicy::Fixed(1)];
        let policy = policies[(seed % 5) as usize];
        let (members, log) = Memory::set(n, SIZE, seed);
        let reserve = if bitmap { 8 } else { 0 };
        let mut m = Mirror::new(members, level, Sectors(16), policy, true, &failed, reserve).unwrap();
        let options = BitmapOptions { region: 128, delay: Nanos::from_ms(5), thread: TaskId(99) };
        if bitmap {
            m = m.with_bitmap(options);
        }
        // The same bytes are stored twice: at the expected places, and as the members received
        // them.
        let mut written = vec![0u64; SIZE as usize * n];
        let map = seekwell_device::raid::Layout::new(level, n, Sectors(16), Sector(SIZE - reserve)).unwrap();
        play(&mut m, &script, |_, _| {});
        for (member, op, sector, len, task) in log.borrow().iter() {
            prop_assert!(!failed.contains(member));
            if *op == Op::Write && *task != 99 {
                for s in *sector..*sector + u64::from(*len) {
                    written[*member * SIZE as usize + s as usize] += 1;
                }
            }
        }
        let size = map.capacity().0;
        let mut expected = vec![0u64; SIZE as usize * n];
        for (_, write, sector, len, _) in &script {
            let len = u64::from(*len).min(size);
            let at = (*sector).min(size - len);
            for s in at..at + len {
                for k in 0..map.copies() {
                    let spot = map.copy(s, k);
                    if *write && !failed.contains(&spot.member) {
                        expected[spot.member * SIZE as usize + spot.sector as usize] += 1;
                    }
                }
            }
        }
        prop_assert_eq!(written, expected);
        prop_assert_eq!(bytes(&log, Op::Read), asked(&script, false));
    }

    #[test]
    fn remapping_transfers_every_byte_and_completes_every_bio(
        script in scripts(SIZE), aged in 0.0f64..1.0, seed: u64, tables: bool,
    ) {
        let (mut members, log) = Memory::set(1, SIZE * 2, seed);
        let covers = if tables { 4 } else { 0 };
        let options = RemapOptions { chunk: 16, aged, covers, tables: 2, seed };
        let mut r = Remapped::new(members.remove(0), options).unwrap();
        play(&mut r, &script, |_, _| {});
        prop_assert_eq!(bytes(&log, Op::Read), asked(&script, false) + 16 * r.level().misses);
        prop_assert_eq!(bytes(&log, Op::Write), asked(&script, true));
        prop_assert!(tables == (r.level().misses > 0));
    }

    /// Real bytes behind the stripe cache: the thread's recorded steps are applied to an array of
    /// bytes. Afterwards parity is correct and the data are the last written values.
    #[test]
    fn parity_and_data_stay_correct_for_any_writes(script in scripts(SIZE), six: bool, n in 3usize..7, lost in 0usize..14,
                           heads in 16u32..40, tie: bool, seed: u64) {
        let n = n + usize::from(six);
        let level = if six { Level::Raid6 } else { Level::Raid5 };
        let failed: Vec<usize> = match (lost < n, six && lost % 2 == 0) {
            (true, true) => vec![lost, (lost + 1) % n],
            (true, false) => vec![lost],
            _ => vec![],
        };
        let (members, log) = Memory::set(n, SIZE, seed);
        let options = ParityOptions { stripe_cache: heads, modify_on_tie: tie, ..ParityOptions::default() };
        let mut a = Parity::new(members, level, Sectors(16), options, &failed, 0).unwrap();
        a.level_mut().watch();
        // Overlapping writes in flight may land in any order, so they are issued one at a time.
        let mut model = bytes::Model::new(&a, &failed);
        let mut script = script;
        let size = a.capacity().0;
        let mut from = 0;
        for s in &mut script {
            s.3 = s.3.min(size as u32);
            s.2 = (s.2).min(size - u64::from(s.3));
            if s.1 {
                // Writes move around the array, so that no two writes in flight overlap.
                s.3 = s.3.min(12);
                s.2 = from % (size - 12);
                from += 12;
            }
        }
        play(&mut a, &script, |a, b| model.forward_bio(a, b));
        model.check(six);
        for e in log.borrow().iter() {
            prop_assert!(!failed.contains(&e.0));
        }
    }

    #[test]
    fn same_seed_gives_same_completion_times(script in scripts(SIZE), seed: u64) {
        let run = || {
            let (members, _) = Memory::set(5, SIZE, seed);
            let mut a = Parity::new(members, Level::Raid5, Sectors(16), ParityOptions::default(), &[2], 0).unwrap();
            play(&mut a, &script, |_, _| {})
        };
        prop_assert_eq!(run(), run());
    }
}
