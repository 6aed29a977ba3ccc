//! An eMMC can stop a write for an urgent read, and the driver then returns the write. The write
//! must go first in its queue again, and the counters of its dispatch must be corrected.

use seekwell_core::{
    Bio, CgroupId, Class, Era, Flags, Instant, IoPrio, IocId, Op, RqId, State, TaskId, TickClock,
};
use seekwell_sched::{Cx, Insert, IocEvent, QueueFacts, Scheduler, find};

/// A scheduler without a block layer.
struct Bench {
    cx: Cx,
    sched: Box<dyn Scheduler>,
    bios: u64,
}

impl Bench {
    fn new(name: &str) -> Self {
        let cx = Cx::new(QueueFacts::example(Era::K3_4), TickClock::new(1000));
        let (info, version, _) = find(name).expect("registered");
        let sched = (info.make)(&cx, version);
        Bench { cx, sched, bios: 0 }
    }
    fn context(&mut self, pid: u32, class: Class) -> IocId {
        let prio = IoPrio { class, level: 4 };
        let ioc = self.cx.iocs.create(TaskId(pid), prio, CgroupId::ROOT);
        self.sched.ioc_event(&mut self.cx, ioc, IocEvent::Attach);
        ioc
    }
    fn bio(&mut self, ioc: IocId, op: Op) -> RqId {
        self.bios += 1;
        let task = self.cx.iocs.get(ioc).task;
        let bio = Bio::new(self.bios, task, op, Flags::empty(), self.bios * 1000, 8);
        let (era, now) = (self.cx.queue.era, self.cx.now());
        let prio = self.cx.iocs.get(ioc).effective(era);
        let rq = self.cx.rqs.alloc(bio, ioc, prio, era, now);
        self.sched.prepare(&mut self.cx, rq);
        self.give(rq, Insert::Sorted);
        rq
    }
    fn give(&mut self, rq: RqId, how: Insert) {
        self.cx.rqs[rq].state = State::Sorted;
        self.cx.nr_sorted += 1;
        self.sched.insert(&mut self.cx, rq, how);
        self.sched.check(&self.cx);
    }
    /// The request that the driver gets.
    fn next(&mut self) -> Option<RqId> {
        self.sched.dispatch(&mut self.cx, 0, false);
        self.sched.check(&self.cx);
        self.cx.out.pop()
    }
    fn complete(&mut self, rq: RqId) {
        self.sched.completed(&mut self.cx, rq);
        self.sched.check(&self.cx);
    }
}

#[test]
fn row_reports_an_urgent_read_and_dispatches_the_stopped_write_again() {
    let mut b = Bench::new("row");
    let (writer, reader) = (b.context(9, Class::None), b.context(1, Class::None));
    let writes: Vec<_> = (0..7).map(|_| b.bio(writer, Op::Write)).collect();
    for &w in &writes[..4] {
        assert_eq!(b.next(), Some(w));
        b.complete(w);
    }
    // The fifth request begins a new cycle, so the read queue counts as passed over.
    assert_eq!(b.next(), Some(writes[4]));
    assert!(!b.sched.urgent());
    b.cx.set_now(Instant::at_us(9000));
    let read = b.bio(reader, Op::Read);
    assert!(b.sched.urgent(), "the driver may stop the write");
    b.give(writes[4], Insert::Reinsert);
    assert_eq!(b.next(), Some(read));
    assert!(!b.sched.urgent());
    b.complete(read);
    // The returned write is first in its queue again. Its quantum is not refunded: 1 was used, 3
    // are left.
    for &w in &writes[4..] {
        assert_eq!(b.next(), Some(w));
    }
    let mut state = String::new();
    b.sched.state(&b.cx, &mut state);
    assert!(state.contains("RW 4/4"), "{state}");
}

#[test]
fn row_reinserts_an_urgent_request_as_urgent() {
    let mut b = Bench::new("row");
    let (rt, other) = (b.context(5, Class::Rt), b.context(1, Class::None));
    b.bio(other, Op::Read);
    let urgent = b.bio(rt, Op::Read);
    assert_eq!(b.next(), Some(urgent));
    b.give(urgent, Insert::Reinsert);
    assert!(b.sched.urgent());
    assert_eq!(b.next(), Some(urgent));
}

#[test]
fn fiops_does_not_count_a_reinserted_request_as_in_flight() {
    let mut b = Bench::new("fiops");
    let (reader, writer) = (b.context(1, Class::None), b.context(2, Class::None));
    let read = b.bio(reader, Op::Read);
    assert_eq!(b.next(), Some(read));
    let write = b.bio(writer, Op::Write);
    assert_eq!(b.next(), None, "a lone async head waits for the read");
    b.give(read, Insert::Reinsert);
    // Two contexts are on the tree. The context of the read was charged, and the context of the
    // write starts at the smallest vios.
    assert_eq!(b.next(), Some(write));
    assert_eq!(b.next(), Some(read));
    b.complete(write);
    b.complete(read);
}

#[test]
fn zen_vr_and_sio_put_a_reinserted_request_first() {
    for name in ["zen", "zen-v1", "sio", "sio-v1"] {
        let mut b = Bench::new(name);
        let writer = b.context(9, Class::None);
        let writes: Vec<_> = (0..3).map(|_| b.bio(writer, Op::Write)).collect();
        assert_eq!(b.next(), Some(writes[0]));
        b.give(writes[0], Insert::Reinsert);
        for &w in &writes {
            assert_eq!(b.next(), Some(w), "{name}");
        }
    }
    let mut b = Bench::new("vr");
    let writer = b.context(9, Class::None);
    let writes: Vec<_> = (0..3).map(|_| b.bio(writer, Op::Write)).collect();
    assert_eq!(b.next(), Some(writes[0]));
    b.give(writes[0], Insert::Reinsert);
    // The order of sectors is the same as without the return, because the head is at the returned
    // request.
    for &w in &writes {
        assert_eq!(b.next(), Some(w));
    }
}
