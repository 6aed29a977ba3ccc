//! The order of sorted insertion: a one-way sweep from the boundary.

use super::*;
use seekwell_core::{Bio, CgroupId, Contexts, Era, Instant, IoPrio, TaskId};

struct Bench {
    rqs: Requests,
    list: DispatchList,
    contexts: Contexts,
}

impl Bench {
    fn new(boundary: u64) -> Self {
        let list = DispatchList {
            boundary: Sector(boundary),
            ..DispatchList::default()
        };
        let mut contexts = Contexts::new();
        contexts.create(TaskId(1), IoPrio::NONE, CgroupId::ROOT);
        Bench {
            rqs: Requests::new(),
            list,
            contexts,
        }
    }
    fn add(&mut self, op: Op, flags: Flags, sector: u64) -> RqId {
        let ioc = self.contexts.find(TaskId(1)).expect("the context");
        let bio = Bio::new(0, TaskId(1), op, flags, sector, 8);
        let rq = (self.rqs).alloc(bio, ioc, IoPrio::NONE, Era::K3_4, Instant::START);
        self.list.insert_sorted(&self.rqs, rq);
        rq
    }
    fn reads(&mut self, sectors: &[u64]) -> &mut Self {
        for s in sectors {
            self.add(Op::Read, Flags::empty(), *s);
        }
        self
    }
    fn order(&self) -> Vec<u64> {
        self.list.iter().map(|rq| self.rqs[rq].sector.0).collect()
    }
}

#[test]
fn sectors_from_the_boundary_on_come_first() {
    let mut b = Bench::new(100);
    b.reads(&[50, 99, 100, 200, 10, 150]);
    assert_eq!(b.order(), [100, 150, 200, 10, 50, 99]);
}

#[test]
fn equal_sectors_keep_the_order_of_insertion() {
    for sector in [10, 100, 150] {
        let mut b = Bench::new(100);
        let ids: Vec<_> = (0..3)
            .map(|_| b.add(Op::Read, Flags::empty(), sector))
            .collect();
        assert_eq!(b.list.iter().collect::<Vec<_>>(), ids, "{sector}");
    }
}

#[test]
fn a_request_does_not_pass_the_other_direction_or_a_discard() {
    let orders = |op, ignore| {
        let mut b = Bench::new(0);
        b.list.ignore_direction = ignore;
        b.reads(&[500]).add(op, Flags::empty(), 300);
        b.reads(&[100]);
        b.order()
    };
    assert_eq!(orders(Op::Write, false), [500, 300, 100]);
    assert_eq!(orders(Op::Write, true), [100, 300, 500], "2.6.18");
    assert_eq!(orders(Op::Discard, true), [500, 300, 100]);
    let mut b = Bench::new(0);
    for sector in [500, 300, 400] {
        b.add(Op::Discard, Flags::empty(), sector);
    }
    assert_eq!(b.order(), [300, 400, 500], "discards among themselves");
}

#[test]
fn a_request_does_not_pass_a_started_request_or_a_barrier() {
    let mut b = Bench::new(0);
    let first = b.add(Op::Read, Flags::empty(), 500);
    b.rqs[first].state = State::Started;
    b.reads(&[300, 200]);
    assert_eq!(b.order(), [500, 200, 300]);
    let mut b = Bench::new(0);
    b.add(Op::Read, Flags::BARRIER, 500);
    b.reads(&[300, 200]);
    assert_eq!(b.order(), [500, 200, 300]);
}
