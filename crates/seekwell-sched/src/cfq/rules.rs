//! The rules of CFQ, as its reasons name them.

seekwell_core::rules! {
    GROUP_CHARGED: "group-charged", "cfq_group_served",
        "The time of a slice (in iops mode its requests) advances the virtual time of its group, \
         by the inverse of its weight.";
    SLICE_STARTS: "slice-starts", "cfq_set_prio_slice",
        "The clock of a slice starts with the first completion of a request of the active queue.";
    ALIAS_EVICTED: "alias-evicted", "cfq_add_rq_rb",
        "Up to 2.6.25 a queue holds one request per start sector: a second one moves the first to \
         the dispatch list at once.";
    SLICE_EXPIRED: "slice-expired", "__cfq_slice_expired",
        "The active queue expires. The rest or overrun of its slice is saved unless it gave up the \
         disk early; its group is charged, and it is sorted in again or stops being busy.";
    QUEUE_ACTIVATED: "queue-activated", "__cfq_set_active_queue",
        "The next queue becomes active and begins a slice.";
    IDLE_GRACE: "idle-grace", "cfq_idle_class_timer",
        "2.6.18, 2.6.24: the IDLE class is served HZ/10 after the last completion of another \
         class.";
    CLOSE_COOPERATOR: "close-cooperator", "cfq_close_cooperator",
        "A queue whose next request is within 8192 sectors of the head takes over from an active \
         queue that is empty.";
    IDLE_ARMED: "idle-armed", "cfq_arm_slice_timer",
        "The disk idles for slice_idle (group_idle for a group) for the next request of the active \
         queue.";
    THINKS_TOO_LONG: "thinks-too-long", "cfq_arm_slice_timer",
        "No idling for a process that usually thinks for longer than its slice lasts.";
    FIFO_EXPIRED: "fifo-expired", "cfq_check_fifo",
        "The oldest request of the queue goes first if it is older than fifo_expire; checked once \
         per slice (2.6.18: until one was found).";
    MERGE_PLANNED: "merge-planned", "cfq_setup_merge",
        "The processes of two queues that work close together will share one queue.";
    WORKLOAD_CHOSEN: "workload-chosen", "choose_wl_class_and_type",
        "A group serves its RT queues, else BE, else IDLE. Inside a class it serves the type \
         (async, no-idle, sync) whose first queue has the lowest key, for that type's share of the \
         group slice.";
    NOTHING_QUEUED: "nothing-queued", "cfq_select_queue",
        "Without a request in any queue the active queue stays active.";
    AWAITED_CAME: "awaited-came", "cfq_select_queue",
        "The request that a slice was extended for has arrived: the slice ends.";
    SLICE_USED: "slice-used", "cfq_select_queue",
        "A queue whose slice is used up gives up the disk.";
    LAST_OF_GROUP: "last-of-group", "cfq_select_queue",
        "The last queue of a group stays active beyond its slice while its requests are in flight; \
         otherwise the group would lose its place.";
    SLICE_CONTINUES: "slice-continues", "cfq_select_queue",
        "A queue that has requests and time stays active.";
    IDLING: "idling", "cfq_select_queue",
        "No request is dispatched while the disk idles for the active queue (2.6: or while its \
         requests are in flight).";
    DEEP_SEEKY_OUTRUN: "deep-seeky-outrun", "cfq_select_queue",
        "A deep seeky queue that the device empties quickly loses its idle window.";
    OWN_IN_FLIGHT: "own-in-flight", "cfq_select_queue",
        "An empty queue worth idling for stays active while its requests are in flight.";
    GROUP_IDLE: "group-idle", "cfq_select_queue",
        "The last queue of a group stays active while requests of the group are in flight.";
    NOT_WORTH_IDLING: "not-worth-idling", "cfq_select_queue",
        "An empty queue without a reason to stay gives up the disk.";
    ASYNC_IN_FLIGHT: "async-in-flight", "cfq_may_dispatch",
        "A queue worth idling for waits until the async requests have completed.";
    SYNC_IN_FLIGHT: "sync-in-flight", "cfq_may_dispatch",
        "Async requests wait while sync requests are in flight.";
    SLICE_ENDS_SOON: "slice-ends-soon", "cfq_may_dispatch",
        "A queue beyond half its quantum dispatches no more if its slice would not last, or if it \
         is of the IDLE class.";
    DEPTH_REACHED: "depth-reached", "cfq_may_dispatch",
        "A queue has at most quantum requests in flight; async ones start at one and get more as \
         sync completions stay in time.";
    PROCESS_EXITED: "process-exited", "cfq_exit_cfqq",
        "The queue of an exiting process stops being active.";
    LAST_USER_GONE: "last-user-gone", "cfq_put_queue",
        "A queue without references is freed.";
    GROUP_CHANGED: "group-changed", "check_blkcg_changed",
        "A process that moved to another cgroup gets a new queue at its next sync request.";
    IDLE_WINDOW: "idle-window", "cfq_update_idle_window",
        "A queue is worth idling for unless its process has exited, thinks longer than slice_idle, \
         seeks (and is not deep), or sets NOIDLE.";
    PREEMPTION: "preemption", "cfq_should_preempt",
        "A queue preempts the active one: RT preempts BE, all preempt IDLE, sync preempts async, \
         and so does a request close to the head.";
    AWAITED_REQUEST: "awaited-request", "cfq_rq_enqueued",
        "A request of the active queue ends the idle wait.";
    AWAITED_IS_SMALL: "awaited-is-small", "cfq_rq_enqueued",
        "A request of one page, while no other queue is busy, does not stop the idle timer: more \
         may arrive and merge.";
    AWAITED_WRITES: "awaited-writes", "cfq_rq_enqueued",
        "2.6.18: a write of the process that the disk idles for ends the idle wait and its slice.";
    WAIT_BUSY: "wait-busy", "cfq_should_wait_busy",
        "The last queue of a group whose slice would end before its next request gets time for \
         one more.";
    MUST_ALLOCATE: "must-allocate", "__cfq_may_queue",
        "Once per slice, the process that the disk idles for gets a request even if the pool is \
         full.";
    QUEUES_MERGED: "queues-merged", "cfq_merge_cfqqs",
        "A process moves to the queue that its own queue was to be merged into.";
    QUEUE_SPLIT: "queue-split", "split_cfqq",
        "A process leaves a shared queue that has become seeky.";
    IDLE_IN_VAIN: "idle-in-vain", "cfq_idle_slice_timer",
        "The awaited request did not arrive in time.";
}
