//! The rules of BFQ. The reason of a decision names one of them.

seekwell_core::rules! {
    GROUP_CHANGED: "group-changed", "bfq_bfqq_move",
        "If a process moves to another cgroup, its queue moves too.";
    IN_SERVICE: "in-service", "bfq_set_in_service_queue",
        "The queue that the search of B-WF2Q+ finds is put in service. It is nearly always the \
         eligible queue with the smallest finish time.";
    ASYNC_RAISED: "async-raised", "bfq_add_request",
        "The weight of an async queue is raised if its last request was long ago.";
    LARGE_BURST: "large-burst", "bfq_add_to_burst",
        "Many queues that are created in a short time, for example during a boot, count as one \
         task. Their weights are not raised.";
    QUEUE_RAISED: "queue-raised", "bfq_update_bfqq_wr_on_rq_arrival",
        "The weight of a queue is raised if the queue was idle for long (interactive) or its \
         requests arrive at the pace of a media player (soft real-time). In v7 this is in \
         bfq_add_request.";
    RAISING_REVOKED: "raising-revoked", "bfq_update_bfqq_wr_on_rq_arrival",
        "A queue loses its raised weight if it belongs to a large burst (v7: or if it is not soft \
         real-time any more). In v7 this is in bfq_add_request.";
    PREEMPTION: "preemption", "bfq_bfqq_handle_idle_busy_switch",
        "A queue that wakes preempts the queue in service in three cases: the waking queue \
         continues with the rest of its budget, the waking queue has a higher class or a larger \
         weight, or the device need not idle for the queue in service.";
    STABLE_MERGE: "stable-merge", "bfq_do_or_sched_stable_merge",
        "Processes that start together share one queue permanently.";
    QUEUES_MERGED: "queues-merged", "bfq_merge_bfqqs",
        "Processes that work close together share one queue.";
    WAKER_FOUND: "waker-found", "bfq_check_waker",
        "Queue A is the waker of queue B if B got requests shortly after a completion of A three \
         times in sequence.";
    NEW_QUEUE: "new-queue", "bfq_get_queue",
        "A process without a queue gets a new queue.";
    SEEKY_LOWERED: "seeky-lowered", "bfq_update_io_seektime",
        "A soft real-time queue whose recent requests are all seeks loses its raised weight.";
    AWAITED_IS_SMALL: "awaited-is-small", "bfq_rq_enqueued",
        "One small request does not end the idle wait, because more requests may arrive and merge.";
    QUEUE_SPLIT: "queue-split", "bfq_split_bfqq",
        "A process leaves a shared queue that has become seeky.";
    PROCESS_EXITED: "process-exited", "bfq_exit_bfqq",
        "The queue of an exiting process leaves service.";
    IDLE_ARMED: "idle-armed", "bfq_arm_slice_timer",
        "The device is kept idle for the next request of the queue in service.";
    EXPIRED: "expired", "bfq_bfqq_expire",
        "The slot of the queue in service ends. A slow queue is charged for its time (v7: its \
         whole budget). The budget of its next slot depends on the reason for the end.";
    WAITS_FOR_QUEUE: "waits-for-queue", "bfq_select_queue",
        "No request is dispatched while the queue in service is empty and the device should idle \
         for it.";
    INJECTION: "injection", "bfq_choose_bfqq_for_injection",
        "While the device waits for the queue in service, a request of another queue is dispatched \
         (injected). The other queue is the async queue of the same process, the waker of the \
         queue in service, a queue that it wakes, or any queue within the injection limit.";
    INJECT_LIMIT: "inject-limit", "bfq_update_inject_limit",
        "The injection limit of a queue depends on how much injected requests delay the queue's \
         own requests.";
    RAISING_ENDS: "raising-ends", "bfq_update_wr_data",
        "The raising of a queue ends after its time, or when the queue belongs to a large burst.";
    INTERACTIVE_AGAIN: "interactive-again", "switch_back_to_interactive_wr",
        "If the soft real-time period of a queue ends before its interactive period, the queue \
         returns to the interactive period.";
    ENOUGH_SERVICE: "enough-service", "bfq_update_wr_data",
        "An interactive queue loses its raised weight after a limited number of sectors.";
    AT_HEAD: "at-head", "__bfq_dispatch_request",
        "A request inserted at the head goes before the requests of all queues.";
    STRICT: "strict", "__bfq_dispatch_request",
        "With strict_guarantees at most one request is in the driver.";
    LATE_OVER_BUDGET: "late-over-budget", "bfq_dispatch_request",
        "v7: if an expired request costs more than the rest of the budget, the slot ends.";
    SYNC_IN_FLIGHT: "sync-in-flight", "bfq_dispatch_requests",
        "v7: async requests wait while sync requests are in flight.";
    ENOUGH_IN_FLIGHT: "enough-in-flight", "bfq_dispatch_requests",
        "v7: while other queues are busy, a queue may have only a limited number of requests in \
         flight.";
    DRAIN: "drain", "bfq_forced_dispatch",
        "v7: a drain dispatches all requests and charges nothing.";
}
