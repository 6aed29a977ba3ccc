//! Unusual cases that the interfaces must handle. Each case has a stub with only that quirk.

use seekwell_block::{HostDriver, LegacyOptions, LegacyQueue, Stripe};
use seekwell_core::{
    Accept, Bio, BioDone, BioId, BioSink, Command, Control, Device, DeviceFacts, Done, Era, Flags,
    Instant, IocId, Links, List, Nanos, Op, RqId, Sector, Sectors, State, TaskId, TickClock,
};
use seekwell_device::Constant;
use seekwell_sched::noop::Noop;
use seekwell_sched::{Cx, Emit, Insert, MayQueue, QueueFacts, Scheduler};

const SERVICE: Nanos = Nanos::from_ms(1);

type Q = LegacyQueue<dyn Scheduler, Constant>;

fn queue_of(depth: u32, nr_requests: u32, sched: Box<dyn Scheduler>) -> Q {
    let facts = QueueFacts {
        depth,
        nr_requests,
        ..QueueFacts::example(Era::K4_0)
    };
    let host = HostDriver::Simple { depth };
    let dev = Constant::serial(depth, SERVICE);
    LegacyQueue::new(
        facts,
        TickClock::new(1000),
        LegacyOptions::default(),
        host,
        dev,
        |_| sched,
    )
}

fn read(id: u64, task: u32, sector: u64) -> Bio {
    Bio::new(id, TaskId(task), Op::Read, Flags::empty(), sector, 8)
}

/// Runs to the end; returns (id, us) in order of completion.
fn finish<B: BioSink>(q: &mut B) -> Vec<(u64, u64)> {
    let mut out: Vec<BioDone> = Vec::new();
    let mut steps = 0;
    while let Some(t) = q.next_event() {
        q.advance(t, &mut out);
        steps += 1;
        assert!(steps < 100_000, "it never ends");
    }
    out.iter()
        .map(|d| (d.id.0, d.at.since_start() / 1000))
        .collect()
}

/// A FIFO with one optional quirk at a time.
#[derive(Default)]
struct Stub {
    fifo: List,
    links: Links,
    idle_after_completion: bool,
    idling: bool,
    emit_from_insert: bool,
    refuse_task: Option<TaskId>,
    urgent_reads: bool,
    urgent: Option<RqId>,
    timers: Vec<Instant>,
}

impl Scheduler for Stub {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        if self.emit_from_insert && cx.rqs[rq].op == Op::Write {
            return cx.emit(rq, Emit::Tail);
        }
        if self.urgent_reads && cx.rqs[rq].op == Op::Read {
            self.urgent = Some(rq);
            return;
        }
        match how {
            Insert::Reinsert | Insert::AtHead => self.links.push_front(&mut self.fifo, rq.0),
            _ => self.links.push_back(&mut self.fifo, rq.0),
        }
    }
    fn dispatch(&mut self, cx: &mut Cx, _: u16, force: bool) -> u32 {
        if self.idling && !force {
            return 0;
        }
        if let Some(rq) = self.urgent.take() {
            cx.emit(rq, Emit::Tail);
            return 1;
        }
        match self.links.pop_front(&mut self.fifo) {
            Some(i) => {
                cx.emit(RqId(i), Emit::Tail);
                1
            }
            None => 0,
        }
    }
    fn has_work(&self, _: &Cx, _: u16) -> bool {
        !self.fifo.is_empty()
    }
    fn joined(&mut self, _: &mut Cx, _: RqId, gone: RqId) {
        self.links.remove(&mut self.fifo, gone.0);
    }
    fn may_queue(&mut self, cx: &mut Cx, _: &Bio, ioc: IocId) -> MayQueue {
        let task = cx.iocs.get(ioc).task;
        if self.refuse_task == Some(task) && cx.rqs.len() > 1 {
            MayQueue::No
        } else {
            MayQueue::May
        }
    }
    fn completed(&mut self, cx: &mut Cx, _: RqId) {
        if self.idle_after_completion {
            self.idling = true;
            cx.arm(1, cx.now() + Nanos::from_ms(8));
        }
    }
    fn timer(&mut self, cx: &mut Cx, slot: u8) {
        assert_eq!(slot, 1);
        self.timers.push(cx.now());
        self.idling = false;
        cx.kick();
    }
    fn urgent(&self) -> bool {
        self.urgent.is_some()
    }
}

#[test]
fn timer_armed_on_completion_idles_the_queue_and_restarts_it() {
    let stub = Stub {
        idle_after_completion: true,
        ..Stub::default()
    };
    let mut q = queue_of(1, 128, Box::new(stub));
    for id in 0..3 {
        q.submit(Instant::START, read(id, 1, id * 100));
    }
    assert_eq!(finish(&mut q), [(0, 1_000), (1, 10_000), (2, 19_000)]);
}

#[test]
fn request_emitted_from_insert_passes_queued_requests() {
    let stub = Stub {
        emit_from_insert: true,
        ..Stub::default()
    };
    let mut q = queue_of(1, 128, Box::new(stub));
    q.submit(Instant::START, read(1, 1, 100));
    q.submit(Instant::START, read(2, 1, 300));
    q.submit(
        Instant::START,
        Bio::new(3, TaskId(1), Op::Write, Flags::empty(), 500, 8),
    );
    assert_eq!(finish(&mut q), [(1, 1_000), (3, 2_000), (2, 3_000)]);
}

#[test]
fn bio_refused_by_may_queue_sleeps_until_a_request_is_freed() {
    let stub = Stub {
        refuse_task: Some(TaskId(2)),
        ..Stub::default()
    };
    let mut q = queue_of(1, 128, Box::new(stub));
    q.submit(Instant::START, read(1, 1, 100));
    q.submit(Instant::START, read(2, 1, 300));
    q.submit(Instant::START, read(3, 2, 500));
    assert_eq!(q.asleep(), 1);
    q.submit(Instant::START, read(4, 1, 700));
    assert_eq!(
        finish(&mut q),
        [(1, 1_000), (2, 2_000), (4, 3_000), (3, 4_000)]
    );
}

#[test]
fn full_request_pool_makes_processes_take_turns() {
    let mut q = queue_of(1, 4, Box::new(Noop::new()));
    for id in 0..40 {
        q.submit(Instant::START, read(id, 1 + (id % 2) as u32, id * 100));
    }
    assert!(q.asleep() > 0);
    let done = finish(&mut q);
    assert_eq!(done.len(), 40);
    assert_eq!(
        q.stats().waits as usize,
        40 - 6,
        "nr_requests and half as many again"
    );
}

#[test]
fn requeued_request_is_dispatched_first() {
    // The SCSI host looks ahead: it starts the request at the head while the device is full. The
    // driver then returns this request.
    let facts = QueueFacts::example(Era::K4_0);
    let host = HostDriver::Scsi { depth: 1 };
    let dev = Constant::serial(1, SERVICE);
    let opts = LegacyOptions::default();
    let mut q = LegacyQueue::new(facts, TickClock::new(1000), opts, host, dev, |_| {
        Box::new(Noop::new())
    });
    for (id, sector) in [(1, 100), (2, 900), (3, 500)] {
        q.submit(Instant::START, read(id, 1, sector));
    }
    let ahead =
        q.cx.rqs
            .iter()
            .find(|(_, r)| r.sector == Sector(900))
            .map(|x| x.0);
    let ahead = ahead.expect("request 2 waits");
    assert_eq!(
        q.cx.rqs[ahead].state,
        State::Started,
        "looked at while the device is full"
    );
    q.requeue(ahead);
    assert_eq!(finish(&mut q), [(1, 1_000), (2, 2_000), (3, 3_000)]);
}

#[test]
fn elevator_switch_with_queued_requests_completes_and_loses_nothing() {
    let mut q = queue_of(1, 128, Box::new(Noop::new()));
    for id in 0..10 {
        q.submit(Instant::START, read(id, 1, 1000 - id * 100));
    }
    let make = |cx: &Cx| -> Box<dyn Scheduler> {
        let d40 = seekwell_sched::deadline::Generation::D40;
        Box::new(seekwell_sched::deadline::Deadline::new(cx, d40))
    };
    q.switch(Instant::at_us(500), true, make);
    assert!(q.switching());
    for id in 10..15 {
        q.submit(Instant::at_us(600), read(id, 1, id * 1000));
    }
    let mut out = Vec::new();
    q.advance(Instant::at_us(5_000), &mut out);
    assert!(
        q.switching(),
        "requests of the old elevator are still there"
    );
    q.advance(Instant::at_us(100_000), &mut out);
    assert!(!q.switching());
    q.submit(Instant::at_us(100_000), read(20, 1, 5));
    q.advance(Instant::at_us(200_000), &mut out);
    let mut ids: Vec<u64> = out.iter().map(|d| d.id.0).collect();
    let bypassing: Vec<u64> = ids
        .iter()
        .copied()
        .filter(|i| (10..15).contains(i))
        .collect();
    assert_eq!(
        bypassing,
        [10, 11, 12, 13, 14],
        "bypassing requests are first come, first served"
    );
    ids.sort_unstable();
    assert_eq!(ids, (0..15).chain([20]).collect::<Vec<_>>());
}

#[test]
fn block_queue_can_be_a_stripe_member() {
    let member = || queue_of(1, 128, Box::new(Noop::new()));
    let mut s = Stripe::new(vec![member(), member()], Sectors(64)).unwrap();
    s.submit(
        Instant::START,
        Bio::new(7, TaskId(1), Op::Read, Flags::empty(), 32, 64),
    );
    s.submit(
        Instant::START,
        Bio::new(8, TaskId(1), Op::Read, Flags::empty(), 0, 8),
    );
    assert_eq!(
        finish(&mut s),
        [(7, 1_000), (8, 2_000)],
        "halves run side by side"
    );
}

/// A guest's disk: a device that contains a whole block layer.
struct GuestDisk {
    host: Q,
    facts: DeviceFacts,
    out: Vec<BioDone>,
}

impl Device for GuestDisk {
    fn accept(&mut self, now: Instant, c: Command) -> Accept {
        let bio = Bio::new(0, TaskId(1), c.op, Flags::empty(), c.sector.0, c.sectors.0);
        self.host.submit(
            now,
            Bio {
                id: BioId(u64::from(c.id)),
                ..bio
            },
        );
        Accept::Accepted
    }
    fn next_event(&self) -> Option<Instant> {
        self.host.next_event()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        self.host.advance(to, &mut self.out);
        out.extend(self.out.drain(..).map(|d| Done {
            id: d.id.0 as u32,
            at: d.at,
            error: d.error,
        }));
    }
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
}

#[test]
fn block_queue_can_be_the_host_side_of_a_guest_disk() {
    let idling = Stub {
        idle_after_completion: true,
        ..Stub::default()
    };
    let disk = GuestDisk {
        host: queue_of(1, 128, Box::new(idling)),
        facts: DeviceFacts::plain("guest", Sector(1 << 30), 4),
        out: Vec::new(),
    };
    let facts = QueueFacts {
        depth: 4,
        ..QueueFacts::example(Era::K3_4)
    };
    let host = HostDriver::Scsi { depth: 4 };
    let make = |_: &Cx| Box::new(Noop::new());
    let clock = TickClock::new(250);
    let mut guest = LegacyQueue::new(facts, clock, LegacyOptions::default(), host, disk, make);
    for id in 0..6 {
        guest.submit(Instant::START, read(id, 1, 10_000 * (9 - id)));
    }
    let done = finish(&mut guest);
    assert_eq!(done.len(), 6);
    assert_eq!(done[0], (0, 1_000));
    assert_eq!(done[1], (1, 10_000), "the host idles under the guest");
}

#[test]
fn nested_plugs_flush_when_the_outer_plug_closes_and_are_sorted_in_4_0() {
    let mut q = queue_of(1, 128, Box::new(Noop::new()));
    let t = Instant::START;
    q.control(t, Control::Plug(TaskId(1)));
    for (id, sector) in [(1, 300), (2, 100), (3, 108), (4, 200)] {
        q.submit(t, read(id, 1, sector));
    }
    q.control(Instant::at_us(50), Control::Unplug(TaskId(1)));
    assert_eq!(
        finish(&mut q),
        [(2, 1_050), (3, 1_050), (4, 2_050), (1, 3_050)],
        "noop N-6"
    );
}

/// A device that takes one command at a time, and that can stop writes.
struct Stoppable {
    inner: Constant,
    facts: DeviceFacts,
    stopped: Vec<u32>,
}

impl Device for Stoppable {
    fn accept(&mut self, now: Instant, c: Command) -> Accept {
        self.inner.accept(now, c)
    }
    fn next_event(&self) -> Option<Instant> {
        self.inner.next_event()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        let from = out.len();
        self.inner.advance(to, out);
        let stopped = &mut self.stopped;
        let mut i = from;
        while i < out.len() {
            match stopped.iter().position(|s| *s == out[i].id) {
                Some(k) => {
                    stopped.remove(k);
                    out.remove(i);
                }
                None => i += 1,
            }
        }
    }
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn stop(&mut self, _: Instant, id: u32) -> Option<Sectors> {
        self.stopped.push(id);
        Some(Sectors(0))
    }
}

#[test]
fn urgent_request_stops_a_write_that_is_then_reinserted() {
    let mut facts = DeviceFacts::plain("mmc", Sector(1 << 30), 4);
    facts.can_stop = true;
    let dev = Stoppable {
        inner: Constant::parallel(4, SERVICE),
        facts,
        stopped: Vec::new(),
    };
    let queue = QueueFacts {
        can_stop: true,
        ..QueueFacts::example(Era::K3_4)
    };
    let host = HostDriver::Simple { depth: 1 };
    let opts = LegacyOptions::default();
    let stub = Stub {
        urgent_reads: true,
        ..Stub::default()
    };
    let mut q = LegacyQueue::new(queue, TickClock::new(1000), opts, host, dev, |_| {
        Box::new(stub)
    });
    let write = |id, sector| Bio::new(id, TaskId(1), Op::Write, Flags::empty(), sector, 64);
    q.submit(Instant::START, write(1, 0));
    q.submit(Instant::START, write(2, 5000));
    q.submit(Instant::at_us(300), read(3, 1, 900));
    assert_eq!(finish(&mut q), [(3, 1_300), (1, 2_300), (2, 3_300)]);
}

#[test]
fn circular_io_context_sharing_does_not_hang_the_queue() {
    let mut q = queue_of(1, 128, Box::new(Noop::new()));
    let t = Instant::START;
    for (task, with) in [(1, 2), (2, 3), (3, 1), (4, 4)] {
        q.control(t, Control::Share(TaskId(task), TaskId(with)));
    }
    for task in 1..=4 {
        let sector = u64::from(task) * 1000;
        let id = u64::from(task);
        q.submit(t, read(id, task, sector));
    }
    assert_eq!(finish(&mut q).len(), 4);
    for task in 1..=4 {
        q.control(t + Nanos::from_secs(1), Control::Exit(TaskId(task)));
    }
    assert_eq!(q.cx.iocs.living().count(), 0);
}
