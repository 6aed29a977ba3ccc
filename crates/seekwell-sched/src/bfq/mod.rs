//! BFQ, Budget Fair Queueing (Paolo Valente, Arianna Avanzini, Fabio Checconi): shares of the
//! device by budgets of sectors under B-WF2Q+, with weights raised for what looks interactive or
//! soft real-time.
//!
//! Two variants: [`v7`], single-queue, of the Android kernels around 2014; mq, in the kernel
//! since 4.12. What they share is in [`core`], [`queue`], [`coop`], [`tree`] and [`entity`].
//!
//! Some decisions depend on the shape of the kernel's red-black trees, which is reproduced: the
//! choice of the next queue, the search for a queue nearby, and which of several requests with one
//! start a front merge finds.

pub mod coop;
pub mod core;
pub mod entity;
pub mod mq;
pub mod queue;
mod rules;
pub mod tree;
pub mod v7;

use self::core::{Core, Variant};
use crate::cx::Cx;
use crate::registry::{Layer, SchedulerInfo, hash_always};
use seekwell_core::{Era, RqId};
use std::fmt::Write;

/// Registry line of the single-queue form.
pub const INFO_SQ: SchedulerInfo = SchedulerInfo {
    name: "bfq-sq",
    layer: Layer::Legacy,
    versions: &[("v7r8", Era::K3_4), ("v7r5", Era::K3_4)],
    summary: "single-queue BFQ: budgets in sectors, idling, weights raised for interactive queues",
    history: "Out of tree, 2008 to 2016, by Paolo Valente and Arianna Avanzini from Fabio \
              Checconi's code; v7r5 (May 2014) and v7r8 (2015, with early queue merge) were in \
              many kernels for phones. Superseded by the in-tree multi-queue form.",
    not_when: "Fast flash under many processes: idling and one queue in service cost throughput.",
    source: "behaviour of the BFQ-v7r8 (with early queue merge) and v7r5 patches for Linux 3.4",
    per_process: true,
    hash: hash_always,
    rules: rules::RULES,
    tunables: |v| {
        if v == "v7r5" {
            v7::tunables::V7R5
        } else {
            v7::tunables::V7R8
        }
    },
    make: |cx, v| Box::new(v7::BfqSq::new(cx, v == "v7r5")),
};

/// Registry line of the in-tree form.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "bfq",
    layer: Layer::Mq,
    versions: &[("6.18", Era::Mq), ("6.12", Era::Mq), ("6.1", Era::Mq6_1)],
    summary: "budgets in sectors by weights, idling, raised weights for interactive queues, injection",
    history: "Since 4.12 (2017), by Paolo Valente; distributions choose it for slow and rotational \
              devices and for desktops. 5.12 and 5.13 brought injection for wakers and stable \
              merges of queues that start together.",
    not_when: "Fast NVMe under high load: its per-request cost and its one queue in service cap the \
               rate. Throughput alone counts: idling gives it away for shares and latency.",
    source: "behaviour of block/bfq-iosched.c, bfq-wf2q.c and bfq-cgroup.c, Linux 6.1, 6.12, 6.18",
    per_process: true,
    hash: hash_always,
    rules: rules::RULES,
    tunables: |_| mq::tunables::TUNABLES,
    make: |cx, _| Box::new(mq::Bfq::new(cx)),
};

/// State of all queues, for `explain`.
fn state_of<X: Variant>(core: &Core<X>, cx: &Cx, out: &mut String) {
    for (i, q) in core.queues.iter().enumerate().filter(|q| q.1.live) {
        if !q.busy && q.dispatched == 0 {
            continue;
        }
        let e = core.wf.e(q.ent);
        let mark = if core.serving == Some(i as u32) {
            "*"
        } else {
            ""
        };
        let name = |r: u32| cx.rqs.first_bio(RqId(r)).id.0.to_string();
        let ids: Vec<_> = core.sort.iter(&q.sort).map(name).collect();
        let _ = write!(
            out,
            "queue {i}{mark} w{} {}/{} [{}]; ",
            e.weight,
            e.service,
            e.budget,
            ids.join(" ")
        );
    }
    let _ = write!(
        out,
        "busy {} raised {} in driver {}",
        core.busy_total(),
        core.wr_busy,
        core.in_driver
    );
}

/// The read-only file `weights` of v7.
fn weights_text<X: Variant>(core: &Core<X>, cx: &Cx) -> String {
    let mut out = String::new();
    for q in core.queues.iter().filter(|q| q.live) {
        let e = core.wf.e(q.ent);
        let since = cx.clock().to_ms(cx.jiffies() - q.last_wr_j);
        let period = cx.clock().to_ms(q.wr_max_j);
        let owner = q.owner.map_or(0, |o| cx.iocs.get(o).task.0);
        let _ = writeln!(out, "pid{owner}: weight {}, wr {since}/{period}", e.weight);
    }
    out
}
