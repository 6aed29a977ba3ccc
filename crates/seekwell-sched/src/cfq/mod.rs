//! CFQ, completely fair queueing (`block/cfq-iosched.c`, Jens Axboe), of Linux 2.6.18, 2.6.24,
//! 2.6.25, 3.4, 4.0 and 4.4.
//!
//! Each process has one queue for its sync requests. Async writes use a few shared queues. One
//! queue at a time is *active*: it owns the disk for a time slice whose length depends on its
//! ioprio. While the active sync queue is empty, the disk idles for a moment, because the same
//! process may soon issue a request nearby. Three generations of CFQ share the arithmetic and the
//! order of requests:
//!
//! | versions | structure | files |
//! |---|---|---|
//! | 3.4, 4.0 (default), 4.4 | groups by weight, service trees by class and workload type | [`queue`], [`groups`], [`weights`], [`insert`], [`select`], [`idle`], [`coop`], [`check`] |
//! | 2.6.24, 2.6.25 | one tree of queues | [`flat`], [`v2_6_24`] |
//! | 2.6.18 | round-robin lists by level | [`flat`], [`v2_6_18`] |
//!
//! 4.4 differs from 4.0 in one default: since 4.2 `slice_idle` is 0 on flash, so that CFQ there
//! counts service in requests. Two features of 4.4 are not modelled: weights of cgroup v2, and
//! async queues per group.
//!
//! These features are not modelled in any version: the out-of-memory queue, the boost of tasks that
//! hold exclusive file-system resources, weights per device, statistics files, and the arithmetic
//! of 32-bit kernels.
//!
//! This table lists the functions of `block/cfq-iosched.c` in source order. The second column names
//! the Seekwell functions that correspond to each kernel function. To find the kernel function of a
//! Seekwell function, read the first line of its doc comment. Files outside the folders `v2_6_18`
//! and `v2_6_24` belong to 3.4 and later, or to all versions. A test compares this table with the
//! doc comments.
//!
//! | the kernel's function | here |
//! |---|---|
//! | `cfq_choose_req` | `numbers.rs::choose` |
//! | `cfq_find_next_rq` | `queue.rs::find_next`, `flat.rs::find_next` |
//! | `cfq_prio_slice` | `tunables.rs::prio_slice_j` |
//! | `cfq_prio_to_maxrq` | `tunables.rs::max_requests` |
//! | `cfq_group_get_avg_queues` | `groups.rs::average_queues` |
//! | `cfq_group_slice` | `weights.rs::group_slice` |
//! | `cfq_scaled_cfqq_slice` | `groups.rs::scaled_slice` |
//! | `cfq_slice_used` | `queue.rs::slice_used`, `v2_6_24/serve.rs::slice_used` |
//! | `cfq_group_service_tree_add` | `weights.rs::enter` |
//! | `cfq_group_service_tree_del` | `weights.rs::leave` |
//! | `cfq_group_notify_queue_add` | `groups.rs::group_gains` |
//! | `cfq_group_served` | `groups.rs::charge` |
//! | `iops_mode` | `groups.rs::iops_mode` |
//! | `cfq_service_tree_add` | `groups.rs::resort`, `v2_6_24/mod.rs::resort` |
//! | `cfq_resort_rr_list` | `v2_6_18/lists.rs::resort` |
//! | `cfq_prio_tree_add` | `coop.rs::enter_position` |
//! | `cfq_add_cfqq_rr` | `insert.rs::become_busy` |
//! | `cfq_del_cfqq_rr` | `groups.rs::rest`, `v2_6_24/mod.rs::rest` |
//! | `cfq_add_rq_rb` | `insert.rs::sort_in`, `v2_6_24/mod.rs::sort_in`, `v2_6_18/mod.rs::sort_in` |
//! | `cfq_reposition_rq_rb` | `insert.rs::front_merged` |
//! | `cfq_activate_request` | `flat.rs::activate` |
//! | `cfq_remove_request` | `insert.rs::remove_request`, `flat.rs::remove_request` |
//! | `cfq_merged_requests` | `insert.rs::join` |
//! | `__cfq_set_active_queue` | `select.rs::activate_queue`, `v2_6_18/serve.rs::activate_queue` |
//! | `__cfq_slice_expired` | `select.rs::expire`, `v2_6_24/serve.rs::expire`, `v2_6_18/serve.rs::expire` |
//! | `cfq_get_next_prio_level` | `v2_6_18/lists.rs::next_level` |
//! | `cfq_get_next_queue` | `v2_6_24/serve.rs::first_served`, `v2_6_18/lists.rs::first_served` |
//! | `cfq_rq_close` | `coop.rs::close` |
//! | `cfqq_close` | `coop.rs::queue_near_head` |
//! | `cfq_close_cooperator` | `coop.rs::cooperator` |
//! | `cfq_should_idle` | `select.rs::should_idle` |
//! | `cfq_arm_slice_timer` | `idle.rs::arm`, `flat.rs::arm` |
//! | `cfq_dispatch_insert` | `select.rs::move_request`, `v2_6_24/mod.rs::move_request`, `v2_6_18/mod.rs::move_request` |
//! | `cfq_check_fifo` | `select.rs::expired_head`, `v2_6_24/serve.rs::expired_head`, `v2_6_18/serve.rs::expired_head` |
//! | `cfq_setup_merge` | `coop.rs::schedule_merge` |
//! | `choose_wl_class_and_type` | `select.rs::choose_workload`, `select.rs::new_workload` |
//! | `cfq_get_next_cfqg` | `groups.rs::first_group` |
//! | `cfq_select_queue` | `select.rs::select`, `select.rs::judge`, `select.rs::group_idle`, `v2_6_24/serve.rs::select`, `v2_6_18/serve.rs::select` |
//! | `cfq_forced_dispatch` | `select.rs::drain`, `v2_6_24/serve.rs::drain`, `v2_6_18/serve.rs::drain` |
//! | `cfq_may_dispatch` | `select.rs::may_dispatch` |
//! | `cfq_dispatch_requests` | `select.rs::dispatch_requests`, `v2_6_24/serve.rs::dispatch_rounds`, `v2_6_18/serve.rs::dispatch_rounds` |
//! | `__cfq_dispatch_requests` | `v2_6_24/serve.rs::round`, `v2_6_18/serve.rs::round` |
//! | `cfq_put_queue` | `queue.rs::put` |
//! | `cfq_put_cooperator` | `coop.rs::drop_merge_chain` |
//! | `cfq_exit_cfqq` | `queue.rs::exit` |
//! | `cfq_init_prio_data` | `queue.rs::apply_prio`, `flat.rs::apply_prio` |
//! | `check_blkcg_changed` | `queue.rs::notice_changes` |
//! | `cfq_get_queue` | `queue.rs::async_queue` |
//! | `__cfq_update_io_thinktime` | `numbers.rs::update` |
//! | `cfq_update_io_seektime` | `insert.rs::statistics`, `flat.rs::statistics` |
//! | `cfq_update_idle_window` | `insert.rs::update_idle_window`, `flat.rs::update_idle_window` |
//! | `cfq_should_preempt` | `insert.rs::preempts`, `v2_6_24/serve.rs::preempts` |
//! | `cfq_preempt_queue` | `insert.rs::preempt`, `v2_6_18/serve.rs::preempt` |
//! | `cfq_rq_enqueued` | `insert.rs::react` |
//! | `cfq_insert_request` | `insert.rs::insert_request`, `v2_6_18/mod.rs::insert` |
//! | `cfq_update_hw_tag` | `idle.rs::detect_queueing` |
//! | `cfq_should_wait_busy` | `idle.rs::should_wait_busy` |
//! | `cfq_completed_request` | `idle.rs::request_completed`, `idle.rs::active_completed`, `v2_6_24/mod.rs::completed`, `v2_6_18/mod.rs::completed` |
//! | `__cfq_may_queue` | `flat.rs::may_queue`, `mod.rs::may_queue` |
//! | `cfq_put_request` | `queue.rs::put_request` |
//! | `cfq_merge_cfqqs` | `coop.rs::follow_merge` |
//! | `split_cfqq` | `coop.rs::split` |
//! | `cfq_set_request` | `queue.rs::set_request` |
//! | `cfq_schedule_dispatch` | `idle.rs::kick`, `flat.rs::kick` |
//! | `cfq_idle_slice_timer` | `idle.rs::idle_timer`, `v2_6_24/serve.rs::idle_timer`, `v2_6_18/serve.rs::idle_timer` |
//! | `cfq_idle_class_timer` | `v2_6_24/serve.rs::grace_timer`, `v2_6_18/serve.rs::grace_timer` |

mod check;
mod context;
mod coop;
mod flat;
mod groups;
mod idle;
mod insert;
mod numbers;
mod queue;
mod rules;
mod select;
mod sorted;
#[cfg(test)]
mod tests;
mod tunables;
mod v2_6_18;
mod v2_6_24;
mod weights;

use crate::contract::{CgroupEvent, Insert, IocEvent, MayQueue, MergeKind, Scheduler};
use crate::cx::{Cx, Slot};
use crate::info::{Layer, SchedulerInfo, Waiting, hash_always};
use crate::tunable::{StoreError, Tunable};
use context::Ctxs;
use groups::{Group, Rank};
use queue::{ASYNC_QUEUES, Kind, Queue};
use seekwell_core::{About, Bio, CgroupId, Era, IocId, Nodes, RqId, Sector, Tree};
use select::Serving;
use sorted::Tables;
use tunables::Settings;

/// Registry entry of CFQ.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "cfq",
    layer: Layer::Legacy,
    versions: &[
        ("4.0", Era::K4_0),
        ("4.4", Era::K4_0),
        ("3.4", Era::K3_4),
        ("2.6.25", Era::K2_6_24),
        ("2.6.24", Era::K2_6_24),
        ("2.6.18", Era::K2_6_18),
    ],
    summary: "a queue and a time slice per process, idling for the next request; cgroups by weight",
    history: "By Jens Axboe; the default from 2.6.18 until 4.x, removed with the single-queue \
              layer in 5.0. 2.6.18: round-robin lists, all writes async. 2.6.24: one tree, sync \
              preempts async. 2.6.33 added cgroups, service trees and merging of queues, 3.8 \
              hierarchical weights. Since 4.2 it does not idle for a process on flash.",
    not_when: "Arrays, fast SSDs or guests that profit from many requests in flight (it serves one \
               queue at a time and idles), and jobs whose processes wait for each other.",
    source: "behaviour of block/cfq-iosched.c, Linux 2.6.18, 2.6.24, 2.6.25, 3.4, 4.0, 4.4",
    per_process: true,
    hash: hash_always,
    // Each task can take a slice_sync of 100 ms and then a slice_idle; the last request of a slice
    // can overrun it. An async queue gets one slice in several rounds. On flash, without idling,
    // two seeky readers can delay a third reader whose requests are not yet known to be seeky.
    waiting: Waiting {
        fixed_ms: 2000,
        requests: 8,
        per_task_ms: 250,
        per_task_requests: 4,
        writes_before_read: 3,
        except: &["4.0", "4.4", "3.4"],
    },
    rules: rules::RULES,
    tunables: |v| tunables::tunables(Version::named(v)),
    make: |cx, v| match Version::named(v) {
        Version::V2_6_18 => Box::new(v2_6_18::Cfq18::new(cx)),
        v @ (Version::V2_6_24 | Version::V2_6_25) => Box::new(v2_6_24::Cfq24::new(cx, v)),
        v => Box::new(Cfq::new(cx, v)),
    },
};

/// The version of CFQ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Version {
    /// Queues are on round-robin lists.
    V2_6_18,
    /// Queues are in one tree; the IDLE class waits for a grace period.
    V2_6_24,
    /// Queues are in one tree; the IDLE class is at its end.
    V2_6_25,
    /// All cgroups are siblings.
    V3_4,
    /// Cgroups form a hierarchy.
    V4_0,
    /// Like 4.0, but on flash CFQ does not idle for a process by default.
    V4_4,
}

impl Version {
    fn named(version: &str) -> Self {
        match version {
            "2.6.18" => Version::V2_6_18,
            "2.6.24" => Version::V2_6_24,
            "2.6.25" => Version::V2_6_25,
            "3.4" => Version::V3_4,
            "4.4" => Version::V4_4,
            _ => Version::V4_0,
        }
    }
    /// Returns true if the version has groups and service trees.
    const fn grouped(self) -> bool {
        matches!(self, Version::V3_4 | Version::V4_0 | Version::V4_4)
    }
}

/// Timer slot of the idle wait.
const IDLE_TIMER: Slot = Slot::new(0, "idle_slice_timer");
/// Timer slot of the grace period of the IDLE class (2.6.18, 2.6.24).
const GRACE_TIMER: Slot = Slot::new(1, "idle_class_timer");

/// CFQ of 3.4, 4.0 and 4.4.
#[derive(Debug)]
pub struct Cfq {
    version: Version,
    set: Settings,
    tables: Tables,
    queues: Vec<Queue>,
    free_queues: Vec<u32>,
    /// Nodes of the service trees of all groups. A service tree sorts queues by key.
    service: Nodes<i64>,
    /// One position tree per priority level. It sorts queues by the start sector of their next
    /// request.
    positions: [Tree; 8],
    position: Nodes<Sector>,
    groups: Vec<Group>,
    free_groups: Vec<u32>,
    group_tree: Tree,
    group_nodes: Nodes<u64>,
    /// Sum of the weights of the groups on the tree (3.4 only).
    total_weight: u64,
    min_vdisktime: u64,
    serving: Serving,
    active: Option<u32>,
    ctx: Ctxs,
    async_queues: [Option<u32>; ASYNC_QUEUES],
    /// Number of requests in all queues.
    rq_queued: u32,
    /// Number of requests that the driver has taken and not completed.
    in_driver: u32,
    /// Number of requests that left a queue and have not completed, by kind of queue: `[async,
    /// sync]`.
    in_flight: [u32; 2],
    /// Number of queues on service trees.
    busy: u32,
    /// Number of sync queues on service trees.
    busy_sync: u32,
    /// End sector of the last request that the driver took.
    last_position: Sector,
    /// The jiffy of the last sync request that completed later than fifo_expire_sync after its
    /// start.
    last_delayed_sync: u64,
    /// Whether the device queues commands: -1 unknown (treated as yes), 0 no, 1 yes.
    hw_tag: i8,
    est_depth: u32,
    samples: u32,
}

impl Cfq {
    fn new(cx: &Cx, version: Version) -> Self {
        let mut cfq = Cfq {
            version,
            set: Settings::new(cx, version),
            tables: Tables::default(),
            queues: Vec::new(),
            free_queues: Vec::new(),
            service: Nodes::new(),
            positions: [Tree::new(); 8],
            position: Nodes::new(),
            groups: Vec::new(),
            free_groups: Vec::new(),
            group_tree: Tree::new(),
            group_nodes: Nodes::new(),
            total_weight: 0,
            min_vdisktime: 0,
            serving: Serving {
                group: groups::ROOT,
                rank: Rank::Be,
                kind: Kind::Async,
                expires: 0,
            },
            active: None,
            ctx: Ctxs::default(),
            async_queues: [None; ASYNC_QUEUES],
            rq_queued: 0,
            in_driver: 0,
            in_flight: [0; 2],
            busy: 0,
            busy_sync: 0,
            last_position: Sector(0),
            last_delayed_sync: cx.jiffies() - cx.hz(),
            hw_tag: -1,
            est_depth: 0,
            samples: 0,
        };
        cfq.make_root(cx);
        cfq
    }
    fn bio_queue(&self, cx: &Cx, bio: &Bio, ioc: IocId) -> Option<u32> {
        self.ctx.queue(ioc, bio.is_sync(cx.queue.era))
    }
}

impl Scheduler for Cfq {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, _: Insert) {
        self.insert_request(cx, rq);
    }
    fn dispatch(&mut self, cx: &mut Cx, _: u16, force: bool) -> u32 {
        self.dispatch_requests(cx, force)
    }
    fn has_work(&self, _: &Cx, _: u16) -> bool {
        self.rq_queued > 0
    }

    fn find_front(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> Option<RqId> {
        let q = self.bio_queue(cx, bio, ioc)?;
        let found = self
            .tables
            .nodes
            .find(&self.queue(q).held.sorted, bio.end())?;
        Some(RqId(found))
    }
    fn allow_merge(&mut self, cx: &mut Cx, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
        if bio.is_sync(cx.queue.era) && !cx.rqs[rq].sync {
            return false;
        }
        self.bio_queue(cx, bio, ioc) == Some(self.queue_of(rq))
    }
    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {
        if kind == MergeKind::Front {
            self.front_merged(cx, rq);
        }
    }
    fn joined(&mut self, cx: &mut Cx, kept: RqId, gone: RqId) {
        self.join(cx, kept, gone);
    }
    fn former(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.tables.nodes.prev(rq.0).map(RqId)
    }
    fn latter(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.tables.nodes.next(rq.0).map(RqId)
    }

    /// `__cfq_may_queue`: lets the process for which the disk idles allocate one request per slice,
    /// even if the request pool is full.
    fn may_queue(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> MayQueue {
        let Some(q) = self.bio_queue(cx, bio, ioc) else {
            return MayQueue::May;
        };
        self.apply_prio(cx, q, ioc);
        let x = self.queue_mut(q);
        if x.wait_request && !x.must_alloc_slice {
            x.must_alloc_slice = true;
            cx.why(rules::MUST_ALLOCATE, || {
                About::ioc(ioc)
                    .says("the device waits for {who}, which may allocate beyond the limit")
            });
            return MayQueue::Must;
        }
        MayQueue::May
    }

    fn prepare(&mut self, cx: &mut Cx, rq: RqId) {
        self.set_request(cx, rq);
    }
    fn finish(&mut self, cx: &mut Cx, rq: RqId) {
        self.put_request(cx, rq);
    }
    fn activate(&mut self, cx: &mut Cx, rq: RqId) {
        self.in_driver += 1;
        self.last_position = cx.rqs[rq].end();
    }
    fn deactivate(&mut self, _: &mut Cx, _: RqId) {
        self.in_driver -= 1;
    }
    fn completed(&mut self, cx: &mut Cx, rq: RqId) {
        self.request_completed(cx, rq);
    }

    fn timer(&mut self, cx: &mut Cx, _: u8) {
        self.idle_timer(cx);
    }
    fn ioc_event(&mut self, cx: &mut Cx, ioc: IocId, what: IocEvent) {
        match what {
            IocEvent::Attach => self.ctx.attach(ioc),
            IocEvent::Exit => self.exit(cx, ioc),
            IocEvent::Cgroup => self.ctx.at(ioc).moved = true,
            IocEvent::Release => self.ctx.release(ioc),
            // The change takes effect at the context's next request.
            IocEvent::Prio => {}
        }
    }
    fn cgroup_event(&mut self, cx: &mut Cx, cgroup: CgroupId, what: CgroupEvent) {
        match what {
            // CFQ creates the group when the group gets its first queue.
            CgroupEvent::Online => {}
            CgroupEvent::Weight => self.reweigh(cx, cgroup),
            CgroupEvent::Offline => self.offline(cgroup),
        }
    }

    fn tunables(&self) -> &'static [Tunable] {
        self.set.tunables()
    }
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        self.set.show(cx, name)
    }
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        self.set.store(cx, name, text)
    }

    fn check(&self, cx: &Cx) {
        self.check_invariants(cx);
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        self.describe(cx, out);
    }
}
