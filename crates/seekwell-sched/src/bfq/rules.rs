//! The rules of BFQ, as its reasons name them.

seekwell_core::rules! {
    GROUP_CHANGED: "group-changed", "bfq_bfqq_move",
        "A process that moved to another cgroup takes its queue along.";
    IN_SERVICE: "in-service", "bfq_set_in_service_queue",
        "The eligible queue that the search of B-WF2Q+ finds, nearly always that with the \
         smallest finish time, comes into service.";
    ASYNC_RAISED: "async-raised", "bfq_add_request",
        "The weight of an async queue is raised if its last request was long ago.";
    LARGE_BURST: "large-burst", "bfq_add_to_burst",
        "Many queues created in a short time are one task, such as a boot: their weights are not \
         raised.";
    QUEUE_RAISED: "queue-raised", "bfq_update_bfqq_wr_on_rq_arrival",
        "The weight of a queue is raised that was idle for long (interactive), or whose requests \
         come at the pace of a player (soft real-time). v7 has this in bfq_add_request.";
    RAISING_REVOKED: "raising-revoked", "bfq_update_bfqq_wr_on_rq_arrival",
        "A raised queue that proves part of a burst (v7: or not soft real-time) loses its \
         raising. v7 has this in bfq_add_request.";
    PREEMPTION: "preemption", "bfq_bfqq_handle_idle_busy_switch",
        "A queue that becomes busy takes the device if it goes on with its budget, outranks the \
         queue in service, or that one is not worth idling for.";
    STABLE_MERGE: "stable-merge", "bfq_do_or_sched_stable_merge",
        "Processes that start together share one queue for good.";
    QUEUES_MERGED: "queues-merged", "bfq_merge_bfqqs",
        "Processes that work close together share one queue.";
    WAKER_FOUND: "waker-found", "bfq_check_waker",
        "A queue that gets requests shortly after completions of another, three times, has that \
         one for its waker.";
    NEW_QUEUE: "new-queue", "bfq_get_queue",
        "A process without a queue gets one.";
    SEEKY_LOWERED: "seeky-lowered", "bfq_update_io_seektime",
        "A soft real-time queue that does nothing but seek is raised no more.";
    AWAITED_IS_SMALL: "awaited-is-small", "bfq_rq_enqueued",
        "One small request does not end the idle wait: more may come and merge.";
    QUEUE_SPLIT: "queue-split", "bfq_split_bfqq",
        "A process leaves a shared queue that has become seeky.";
    PROCESS_EXITED: "process-exited", "bfq_exit_bfqq",
        "The queue of a process that exits leaves service.";
    IDLE_ARMED: "idle-armed", "bfq_arm_slice_timer",
        "The device is kept idle for the next request of the queue in service.";
    EXPIRED: "expired", "bfq_bfqq_expire",
        "The queue in service leaves it; a slow queue is charged its time (v7: its whole budget), \
         and its next budget depends on why it left.";
    WAITS_FOR_QUEUE: "waits-for-queue", "bfq_select_queue",
        "Nothing goes while the empty queue in service is worth idling for.";
    INJECTION: "injection", "bfq_choose_bfqq_for_injection",
        "While the device waits for the queue in service another queue injects a request: its \
         async queue, its waker, one it wakes, or any within the limit.";
    INJECT_LIMIT: "inject-limit", "bfq_update_inject_limit",
        "The number of injected requests a queue bears follows from how much they delay its own.";
    RAISING_ENDS: "raising-ends", "bfq_update_wr_data",
        "The raising of a queue ends with its time, or if it is part of a large burst.";
    INTERACTIVE_AGAIN: "interactive-again", "switch_back_to_interactive_wr",
        "A soft real-time queue whose interactive period is not over goes back to it.";
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
        "v7: a drain sends everything, and charges nothing.";
}
