//! The better of two requests of a queue.

use crate::bench::{Bench, mq_cx};
use crate::bfq::core::Core;
use crate::bfq::mq::{Bfq, MqQueue};
use seekwell_core::{Op, Sector};

const LAST: u64 = 1_000_000;

/// The start of the better of two reads, for a head at [`LAST`].
fn better(x: u64, y: u64) -> u64 {
    let cx = mq_cx(true);
    let core: Core<MqQueue> = Core::new(&cx);
    let s = Bfq::new(&cx);
    let mut b = Bench::new(cx, s);
    let (a, c) = (b.insert(1, Op::Read, x), b.insert(1, Op::Read, y));
    let [one, two] =
        [(a, c), (c, a)].map(|(a, c)| core.better(&b.cx, Some(a), Some(c), Sector(LAST)));
    assert_eq!(one, two, "the order of the arguments does not matter");
    b.cx.rqs[one.expect("one of them")].sector.0
}

#[test]
fn backward_distances_count_double_up_to_16_mib() {
    assert_eq!(better(LAST + 100, LAST - 50), LAST + 100, "the higher");
    assert_eq!(better(LAST + 101, LAST - 50), LAST - 50);
    assert_eq!(better(LAST + 99, LAST - 50), LAST + 99);
    assert_eq!(better(LAST, LAST - 1), LAST);
    // 16384 KiB are 32768 sectors.
    assert_eq!(better(LAST + 900_000, LAST - 32_768), LAST - 32_768);
    assert_eq!(better(LAST + 900_000, LAST - 32_769), LAST + 900_000);
    assert_eq!(
        better(LAST - 90_000, LAST - 80_000),
        LAST - 90_000,
        "wrapped"
    );
}
