//! BFQ, Budget Fair Queueing (Paolo Valente, Arianna Avanzini, Fabio Checconi). BFQ serves one
//! queue at a time for a budget of sectors. The algorithm B-WF2Q+ divides the device among the
//! queues in proportion to their weights. A *slot* is one period of service of a queue. BFQ
//! *raises* (multiplies) the weights of queues that look interactive or soft real-time.
//!
//! There are two variants. [`v7`] is the single-queue BFQ of Android kernels around 2014. `mq` is
//! the multi-queue BFQ that the kernel contains since 4.12. The code that both variants share is in
//! [`core`], [`queue`], [`coop`], [`tree`] and [`entity`].
//!
//! Three decisions depend on the shape of the kernel's red-black trees, so Seekwell reproduces that
//! shape:
//! - which queue is served next,
//! - which queue the search for a close queue finds,
//! - which request a front merge finds if several requests have the same start sector.
//!
//! This table lists the functions of `block/bfq-iosched.c`, `bfq-wf2q.c` and `bfq-cgroup.c` in
//! source order. The second column names the Seekwell functions that correspond to each kernel
//! function. To find the kernel function of a Seekwell function, read the first line of its doc
//! comment (for v7, the name comes from the out-of-tree patch). A test compares this table with the
//! doc comments.
//!
//! | the kernel's function | here |
//! |---|---|
//! | `bfq_choose_req` | `queue.rs::better` |
//! | `bfq_find_next_rq` | `queue.rs::neighbour` |
//! | `bfq_check_fifo` | `queue.rs::check_fifo` |
//! | `bfq_updated_next_req` | `core.rs::fit_budget` |
//! | `bfq_max_budget` | `core.rs::max_budget` |
//! | `bfq_min_budget` | `core.rs::min_budget` |
//! | `bfq_limit_depth` | `mq/groups.rs::depth_for` |
//! | `bfqq_request_over_limit` | `mq/groups.rs::over_limit` |
//! | `bfq_update_depths` | `mq/groups.rs::update_depths` |
//! | `bfq_pos_tree_add_move` | `coop.rs::pos_place` |
//! | `bfq_asymmetric_scenario` | `mq/decide.rs::asymmetric` |
//! | `bfq_wr_duration` | `mq/raise.rs::wr_duration_j`, `v7/mod.rs::wr_duration_j` |
//! | `bfq_reset_burst_list` | `coop.rs::burst_restart` |
//! | `bfq_add_to_burst` | `coop.rs::burst_grow` |
//! | `bfq_handle_burst` | `mq/insert.rs::handle_burst`, `v7/insert.rs::handle_burst` |
//! | `bfq_bfqq_update_budg_for_activation` | `mq/insert.rs::activation_budget` |
//! | `bfq_update_bfqq_wr_on_rq_arrival` | `mq/raise.rs::raise` |
//! | `bfq_bfqq_handle_idle_busy_switch` | `mq/insert.rs::awake`, `mq/insert.rs::preempt` |
//! | `bfq_bfqq_higher_class_or_weight` | `mq/insert.rs::higher` |
//! | `bfq_reset_inject_limit` | `mq/inject.rs::reset_inject_limit` |
//! | `bfq_check_waker` | `mq/inject.rs::look_for_waker` |
//! | `bfq_add_request` | `mq/insert.rs::add`, `v7/insert.rs::add`, `v7/insert.rs::awake`, `v7/insert.rs::raise`, `queue.rs::add_sorted`, `mq/inject.rs::first_of_process` |
//! | `bfq_find_rq_fmerge` | `queue.rs::find_start` |
//! | `bfq_remove_request` | `queue.rs::remove` |
//! | `bfq_request_merged` | `queue.rs::front_grew` |
//! | `bfq_requests_merged` | `queue.rs::swallow` |
//! | `bfq_bfqq_end_wr` | `mq/raise.rs::end_wr`, `v7/mod.rs::end_wr` |
//! | `switch_back_to_interactive_wr` | `mq/raise.rs::back_to_interactive` |
//! | `bfqq_find_close` | `coop.rs::nearest` |
//! | `bfq_setup_merge` | `coop.rs::arrange` |
//! | `bfq_may_be_close_cooperator` | `mq/merge.rs::compatible` |
//! | `bfq_too_late_for_merging` | `mq/merge.rs::too_late` |
//! | `bfq_setup_stable_merge` | `mq/merge.rs::late_stable_merge` |
//! | `bfq_setup_cooperator` | `mq/merge.rs::partner`, `v7/merge.rs::partner` |
//! | `bfq_close_cooperator` | `v7/merge.rs::close_by` |
//! | `bfq_bfqq_save_state` | `mq/merge.rs::save`, `v7/merge.rs::save` |
//! | `bfq_merge_bfqqs` | `mq/merge.rs::merge_queues`, `v7/merge.rs::merge_queues` |
//! | `bfq_allow_bio_merge` | `mq/merge.rs::may_merge` |
//! | `bfq_allow_merge` | `v7/merge.rs::may_merge` |
//! | `bfq_set_in_service_queue` | `mq/serve.rs::take_next`, `v7/serve.rs::take_next` |
//! | `bfq_set_budget_timeout` | `v7/serve.rs::start_clock` |
//! | `bfq_arm_slice_timer` | `mq/serve.rs::arm`, `v7/serve.rs::arm` |
//! | `bfq_calc_max_budget` | `mq/learn.rs::estimated_budget`, `v7/serve.rs::estimated_budget` |
//! | `bfq_reset_rate_computation` | `mq/learn.rs::restart_window` |
//! | `bfq_update_rate_reset` | `mq/learn.rs::close_window` |
//! | `bfq_update_peak_rate` | `mq/learn.rs::learn_rate`, `v7/serve.rs::judge` |
//! | `bfq_bfqq_is_slow` | `mq/serve.rs::judge` |
//! | `bfq_bfqq_charge_time` | `mq/serve.rs::charge_time` |
//! | `bfq_bfqq_softrt_next_start` | `mq/raise.rs::softrt_next`, `v7/serve.rs::softrt_next` |
//! | `__bfq_bfqq_recalc_budget` | `mq/serve.rs::next_budget`, `v7/serve.rs::next_budget` |
//! | `__bfq_bfqq_expire` | `mq/serve.rs::leave`, `v7/serve.rs::leave` |
//! | `bfq_bfqq_expire` | `mq/serve.rs::expire`, `v7/serve.rs::expire` |
//! | `bfq_bfqq_budget_timeout` | `mq/decide.rs::budget_timeout`, `v7/serve.rs::budget_timeout` |
//! | `bfq_may_expire_for_budg_timeout` | `mq/decide.rs::may_expire`, `v7/serve.rs::may_expire` |
//! | `idling_boosts_thr_without_issues` | `mq/decide.rs::boosts` |
//! | `idling_needed_for_service_guarantees` | `mq/decide.rs::needed` |
//! | `bfq_better_to_idle` | `mq/decide.rs::better_to_idle` |
//! | `bfq_bfqq_may_idle` | `v7/serve.rs::must_not_expire` |
//! | `bfq_bfqq_must_idle` | `mq/decide.rs::must_idle`, `v7/serve.rs::must_idle` |
//! | `bfq_choose_bfqq_for_injection` | `mq/inject.rs::injector` |
//! | `bfq_select_queue` | `mq/serve.rs::select`, `mq/inject.rs::donor`, `v7/serve.rs::select` |
//! | `bfq_update_wr_data` | `mq/raise.rs::update_raising`, `v7/serve.rs::lower_or_raise` |
//! | `bfq_dispatch_rq_from_bfqq` | `mq/serve.rs::take` |
//! | `__bfq_dispatch_request` | `mq/serve.rs::dispatch_one` |
//! | `bfq_dispatch_requests` | `v7/serve.rs::dispatch_one` |
//! | `bfq_dispatch_request` | `v7/serve.rs::dispatch_from` |
//! | `bfq_forced_dispatch` | `v7/serve.rs::drain` |
//! | `bfq_put_queue` | `core.rs::free_if_unused` |
//! | `bfq_put_cooperator` | `coop.rs::abandon` |
//! | `bfq_exit_bfqq` | `mq/queues.rs::exit`, `v7/mod.rs::exit` |
//! | `bfq_check_ioprio_change` | `mq/queues.rs::follow_prio`, `v7/mod.rs::follow_prio` |
//! | `bfq_init_bfqq` | `mq/queues.rs::make_queue`, `v7/mod.rs::make_queue` |
//! | `bfq_do_or_sched_stable_merge` | `mq/merge.rs::adopt_or_merge` |
//! | `bfq_get_queue` | `mq/queues.rs::get_queue`, `v7/mod.rs::new_queue` |
//! | `bfq_update_io_thinktime` | `mq/insert.rs::think_time`, `v7/insert.rs::think_time` |
//! | `bfq_update_io_seektime` | `mq/insert.rs::seek_history`, `v7/insert.rs::seek_distance` |
//! | `bfq_update_io_intensity` | `mq/insert.rs::io_intensity` |
//! | `bfq_update_has_short_ttime` | `mq/insert.rs::short_think` |
//! | `bfq_update_idle_window` | `v7/insert.rs::idle_window` |
//! | `bfq_rq_enqueued` | `mq/insert.rs::enqueued`, `v7/insert.rs::enqueued` |
//! | `__bfq_insert_request` | `mq/insert.rs::insert_request` |
//! | `bfq_insert_request` | `v7/insert.rs::insert_request` |
//! | `bfq_update_hw_tag` | `mq/learn.rs::learn_depth`, `v7/serve.rs::learn_depth` |
//! | `bfq_completed_request` | `mq/serve.rs::complete`, `v7/serve.rs::complete` |
//! | `bfq_update_inject_limit` | `mq/inject.rs::update_inject_limit` |
//! | `bfq_finish_requeue_request` | `mq/mod.rs::over` |
//! | `bfq_split_bfqq` | `mq/merge.rs::split`, `v7/merge.rs::split` |
//! | `bfq_bfqq_resume_state` | `mq/merge.rs::resume`, `v7/merge.rs::resume` |
//! | `bfq_init_rq` | `mq/queues.rs::init_request` |
//! | `bfq_idle_slice_timer_body` | `mq/serve.rs::idle_over` |
//! | `bfq_idle_slice_timer` | `v7/serve.rs::idle_over` |
//! | `bfq_update_next_in_service` | `tree/choice.rs::renew_next` |
//! | `bfq_active_insert` | `tree.rs::insert` |
//! | `bfq_active_extract` | `tree.rs::extract` |
//! | `bfq_forget_entity` | `tree.rs::forget` |
//! | `bfq_forget_idle` | `tree.rs::cleanup` |
//! | `__bfq_entity_update_weight_prio` | `tree.rs::apply_change` |
//! | `bfq_bfqq_served` | `tree.rs::serve`, `mq/serve.rs::serve` |
//! | `__bfq_activate_entity` | `tree.rs::enqueue` |
//! | `bfq_activate_requeue_entity` | `tree.rs::activate` |
//! | `bfq_deactivate_entity` | `tree.rs::deactivate` |
//! | `bfq_first_active_entity` | `tree/choice.rs::first_eligible` |
//! | `__bfq_lookup_next_entity` | `tree/choice.rs::look_in` |
//! | `bfq_lookup_next_entity` | `tree/choice.rs::look` |
//! | `bfq_get_next_queue` | `tree/choice.rs::select` |
//! | `__bfq_bfqd_reset_in_service` | `tree.rs::leave_service` |
//! | `bfq_add_bfqq_busy` | `core.rs::add_busy` |
//! | `bfq_del_bfqq_busy` | `core.rs::del_busy` |
//! | `bfq_requeue_bfqq` | `core.rs::requeue` |
//! | `bfq_bio_bfqg` | `mq/groups.rs::group_of` |
//! | `bfq_bfqq_move` | `mq/groups.rs::move_queue` |
//! | `bfq_bic_update_cgroup` | `mq/groups.rs::follow_cgroup` |

pub mod coop;
pub mod core;
pub mod entity;
pub mod mq;
mod parts;
pub mod queue;
mod rules;
pub mod tree;
pub mod v7;

use self::core::{Core, Variant};
use crate::cx::Cx;
use crate::info::{Layer, SchedulerInfo, Waiting, hash_always};
use seekwell_core::{Era, RqId};
use std::fmt::Write;

/// Registry entry of single-queue BFQ.
pub const INFO_SQ: SchedulerInfo = SchedulerInfo {
    name: "bfq-sq",
    layer: Layer::Legacy,
    versions: &[("v7r8", Era::K3_4), ("v7r5", Era::K3_4)],
    summary: "single-queue BFQ: budgets in sectors, idling, weights raised for interactive queues",
    history: "Out of tree, 2008 to 2016, by Paolo Valente and Arianna Avanzini from Fabio \
              Checconi's code; many phone kernels shipped v7r5 (May 2014) and v7r8 (2015, with \
              early queue merge). Superseded by the in-tree multi-queue form.",
    not_when: "Fast flash with many processes: idling and a single queue in service reduce \
               throughput.",
    source: "behaviour of the BFQ-v7r8 (with early queue merge) and v7r5 patches for Linux 3.4",
    per_process: true,
    hash: hash_always,
    // Each task can take a slot of timeout_sync (125 ms) and then a slice_idle; the last request of
    // a slot can overrun it. This bound holds only while all weights are equal. An async queue that
    // competes with queues of thirtyfold raised weight waits much longer: the longest measured wait
    // is 104 s, with three readers.
    waiting: Waiting {
        fixed_ms: 1000,
        requests: 16,
        per_task_ms: 150,
        per_task_requests: 2,
        writes_before_read: 3,
        except: &["v7r8", "v7r5"],
    },
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

/// Registry entry of multi-queue BFQ.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "bfq",
    layer: Layer::Mq,
    versions: &[
        ("6.12", Era::Mq),
        ("6.18", Era::Mq6_18),
        ("6.1", Era::Mq6_1),
    ],
    summary: "budgets in sectors by weight, idling, injection, raised weights for interactive \
              queues",
    history: "Since 4.12 (2017), by Paolo Valente; distributions choose it for slow and rotational \
              devices and for desktops. 5.12 and 5.13 brought injection for wakers and stable \
              merges of queues that start together.",
    not_when: "Fast NVMe under high load: its cost per request and its single queue in service \
               limit the rate. Workloads where only throughput counts: idling trades throughput \
               for shares and latency.",
    source: "behaviour of block/bfq-iosched.c, bfq-wf2q.c and bfq-cgroup.c, Linux 6.1, 6.12, 6.18",
    per_process: true,
    hash: hash_always,
    // Each task can take a slot of timeout_sync (125 ms) and then a slice_idle; the last request of
    // a slot can overrun it. This bound holds only while all weights are equal. An async queue that
    // competes with queues of thirtyfold raised weight waits much longer: the longest measured wait
    // is 104 s, with three readers.
    waiting: Waiting {
        fixed_ms: 1000,
        requests: 16,
        per_task_ms: 150,
        per_task_requests: 2,
        writes_before_read: 3,
        except: &["6.18", "6.12", "6.1"],
    },
    rules: rules::RULES,
    tunables: |_| mq::tunables::TUNABLES,
    make: |cx, _| Box::new(mq::Bfq::new(cx)),
};

/// Appends a description of all queues to `out`, for `explain`.
fn state_of<X: Variant>(core: &Core<X>, cx: &Cx, out: &mut String) {
    for (i, q) in core.queues.iter().enumerate().filter(|q| q.1.live) {
        if !q.busy && q.dispatched == 0 {
            continue;
        }
        let e = core.wf.entity(q.ent);
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

/// Returns the content of the read-only file `weights` of v7.
fn weights_text<X: Variant>(core: &Core<X>, cx: &Cx) -> String {
    let mut out = String::new();
    for q in core.queues.iter().filter(|q| q.live) {
        let e = core.wf.entity(q.ent);
        let since = cx.clock().to_ms(cx.jiffies() - q.last_wr_j);
        let period = cx.clock().to_ms(q.wr_max_j);
        let owner = q.owner.map_or(0, |o| cx.iocs.get(o).task.0);
        let _ = writeln!(out, "pid{owner}: weight {}, wr {since}/{period}", e.weight);
    }
    out
}
