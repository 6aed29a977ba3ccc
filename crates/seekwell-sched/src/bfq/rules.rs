//! The rules of BFQ, as its reasons name them.

seekwell_core::rules! {
    GROUP_CHANGED: "group-changed", "bfq_bfqq_move",
        "A process that moved to another cgroup takes its queue along.";
    IN_SERVICE: "in-service", "bfq_set_in_service_queue",
        "The eligible queue found by the search of B-WF2Q+, nearly always the one with the \
         smallest finish time, comes into service.";
    ASYNC_RAISED: "async-raised", "bfq_add_request",
        "The weight of an async queue is raised if its last request was long ago.";
    LARGE_BURST: "large-burst", "bfq_add_to_burst",
        "Many queues created in a short time count as one task, for example a boot: their weights \
         are not raised.";
    QUEUE_RAISED: "queue-raised", "bfq_update_bfqq_wr_on_rq_arrival",
        "The weight of a queue is raised if the queue was idle for long (interactive) or its \
         requests arrive at the pace of a media player (soft real-time). In v7 this is in \
         bfq_add_request.";
    RAISING_REVOKED: "raising-revoked", "bfq_update_bfqq_wr_on_rq_arrival",
        "A raised queue loses its raised weight if it turns out to be part of a burst (v7: or not \
         soft real-time). In v7 this is in bfq_add_request.";
    PREEMPTION: "preemption", "bfq_bfqq_handle_idle_busy_switch",
        "A queue that becomes busy preempts the queue in service if it continues with its budget, \
         outranks that queue, or that queue is not worth idling for.";
    STABLE_MERGE: "stable-merge", "bfq_do_or_sched_stable_merge",
        "Processes that start together share one queue permanently.";
    QUEUES_MERGED: "queues-merged", "bfq_merge_bfqqs",
        "Processes that work close together share one queue.";
    WAKER_FOUND: "waker-found", "bfq_check_waker",
        "If a queue gets requests shortly after completions of another queue three times, the \
         other queue is its waker.";
    NEW_QUEUE: "new-queue", "bfq_get_queue",
        "A process without a queue gets one.";
    SEEKY_LOWERED: "seeky-lowered", "bfq_update_io_seektime",
        "A soft real-time queue with only seeks loses its raised weight.";
    AWAITED_IS_SMALL: "awaited-is-small", "bfq_rq_enqueued",
        "One small request does not end the idle wait, because more requests may arrive and merge.";
    QUEUE_SPLIT: "queue-split", "bfq_split_bfqq",
        "A process leaves a shared queue that has become seeky.";
    PROCESS_EXITED: "process-exited", "bfq_exit_bfqq",
        "The queue of an exiting process leaves service.";
    IDLE_ARMED: "idle-armed", "bfq_arm_slice_timer",
        "The device is kept idle for the next request of the queue in service.";
    EXPIRED: "expired", "bfq_bfqq_expire",
        "The queue in service expires; a slow queue is charged for its time (v7: its whole \
         budget), and its next budget depends on the reason.";
    WAITS_FOR_QUEUE: "waits-for-queue", "bfq_select_queue",
        "No request is dispatched while the empty queue in service is worth idling for.";
    INJECTION: "injection", "bfq_choose_bfqq_for_injection",
        "While the device waits for the queue in service, another queue injects a request: the \
         async queue of the same process, its waker, a queue it wakes, or any queue within the \
         limit.";
    INJECT_LIMIT: "inject-limit", "bfq_update_inject_limit",
        "The number of injected requests allowed for a queue depends on how much they delay its \
         own requests.";
    RAISING_ENDS: "raising-ends", "bfq_update_wr_data",
        "The raising of a queue ends with its time, or if it is part of a large burst.";
    INTERACTIVE_AGAIN: "interactive-again", "switch_back_to_interactive_wr",
        "A soft real-time queue whose interactive period has not ended returns to that period.";
    ENOUGH_SERVICE: "enough-service", "bfq_update_wr_data",
        "An interactive queue is raised for a limited number of sectors only.";
    AT_HEAD: "at-head", "__bfq_dispatch_request",
        "A request inserted at the head goes before all queues.";
    STRICT: "strict", "__bfq_dispatch_request",
        "With strict_guarantees one request at a time is in the driver.";
    LATE_OVER_BUDGET: "late-over-budget", "bfq_dispatch_request",
        "v7: an expired request that exceeds what is left of the budget ends the slot.";
    SYNC_IN_FLIGHT: "sync-in-flight", "bfq_dispatch_requests",
        "v7: async requests wait while sync requests are in flight.";
    ENOUGH_IN_FLIGHT: "enough-in-flight", "bfq_dispatch_requests",
        "v7: a queue has a bounded number of requests in flight while others are busy.";
    DRAIN: "drain", "bfq_forced_dispatch",
        "v7: a drain dispatches all requests and charges nothing.";
}
