//! Tests of thresholds that a dispatch order does not show.

use super::*;
use crate::bench::{Bench, mq_cx};
use seekwell_core::Op;

fn bench(rotational: bool) -> Bench<Bfq> {
    let cx = mq_cx(rotational);
    let s = Bfq::new(&cx);
    Bench::new(cx, s)
}

mod cgroups;
mod depths;
mod injection;
mod learn;
mod limits;
mod merges;
mod raising;
mod slots;
mod spans;
mod statistics;
