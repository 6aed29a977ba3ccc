//! Tests of the charge for device time and of the window of buffered writes.

mod rules;

use super::*;
use crate::bench::{Bench, mq_cx};
use seekwell_core::Op;

fn bench(rotational: bool) -> Bench<Turns> {
    let cx = mq_cx(rotational);
    let s = Turns::new(&cx);
    Bench::new(cx, s)
}

/// The device completes a buffered write that takes `us`.
fn write_takes(b: &mut Bench<Turns>, us: u64) {
    b.insert(1, Op::Write, 1000);
    let rq = b.take().expect("a write");
    b.pass_us(us);
    b.complete(rq);
}

#[test]
fn mean_cost_moves_by_an_eighth_per_request() {
    let mut b = bench(true);
    write_takes(&mut b, 500);
    assert_eq!(b.s.queue(ASYNC).cost_ns, 500_000, "the initial estimate");
    write_takes(&mut b, 1300);
    assert_eq!(b.s.queue(ASYNC).cost_ns, 600_000);
    write_takes(&mut b, 200);
    assert_eq!(b.s.queue(ASYNC).cost_ns, 550_000);
}

/// The number of buffered writes that the device gets at once while another task reads.
#[test]
fn write_window_is_limited_by_the_mean_write_cost() {
    // After the write, the mean costs are 500, 625, 1000, 1001 and 2500 us; the window is 2000 us.
    for (took_us, want) in [(500, 4), (1500, 3), (4500, 2), (4508, 1), (16_500, 1)] {
        let mut b = bench(true);
        b.set("slice_idle_us", "0");
        write_takes(&mut b, took_us);
        b.insert(2, Op::Read, 9000);
        for i in 0..8 {
            b.insert(1, Op::Write, 100_000 + 8 * i);
        }
        let out = b.take_all();
        let writes = out.iter().filter(|rq| b.cx.rqs[**rq].op == Op::Write);
        assert_eq!(writes.count(), want, "after a write of {took_us} us");
    }
}
