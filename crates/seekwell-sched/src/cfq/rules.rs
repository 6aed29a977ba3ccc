//! The rules of CFQ. The reason of a decision names one of them.

seekwell_core::rules! {
    GROUP_CHARGED: "group-charged", "cfq_group_served",
        "A group is charged the time of a slice (in iops mode the number of its requests). The \
         virtual time of the group advances by this charge divided by the weight of the group.";
    SLICE_STARTS: "slice-starts", "cfq_set_prio_slice",
        "The time of a slice starts when the first request of the active queue completes.";
    ALIAS_EVICTED: "alias-evicted", "cfq_add_rq_rb",
        "Up to 2.6.25 a queue holds one request per start sector. If a second request with that \
         start arrives, the first is moved to the dispatch list at once.";
    SLICE_EXPIRED: "slice-expired", "__cfq_slice_expired",
        "The slice of the active queue ends. The rest or the overrun of the slice is saved, unless \
         the queue gave up the disk early. Its group is charged. The queue is sorted again, or \
         stops being busy if it is empty.";
    QUEUE_ACTIVATED: "queue-activated", "__cfq_set_active_queue",
        "The next queue becomes active and begins a slice.";
    IDLE_GRACE: "idle-grace", "cfq_idle_class_timer",
        "2.6.18, 2.6.24: the IDLE class is served HZ/10 after the last completion of another \
         class.";
    CLOSE_COOPERATOR: "close-cooperator", "cfq_close_cooperator",
        "If the active queue is empty, another queue becomes active if its next request is within \
         8192 sectors of the head.";
    IDLE_ARMED: "idle-armed", "cfq_arm_slice_timer",
        "The disk idles until the next request of the active queue arrives, but at most for \
         slice_idle (for the last queue of a group: group_idle).";
    THINKS_TOO_LONG: "thinks-too-long", "cfq_arm_slice_timer",
        "No idling for a process that usually thinks for longer than its slice lasts.";
    FIFO_EXPIRED: "fifo-expired", "cfq_check_fifo",
        "The oldest request of the queue goes first if it is older than fifo_expire. This is \
         checked once per slice (2.6.18: until an expired request was found).";
    MERGE_PLANNED: "merge-planned", "cfq_setup_merge",
        "If two queues work close together, their processes will share one queue.";
    WORKLOAD_CHOSEN: "workload-chosen", "choose_wl_class_and_type",
        "A group serves its RT queues first, then BE, then IDLE. In a class it serves the type \
         (async, no-idle or sync) whose first queue has the lowest key. The type gets a part of \
         the group slice.";
    NOTHING_QUEUED: "nothing-queued", "cfq_select_queue",
        "If no queue has a request, the active queue stays active.";
    AWAITED_CAME: "awaited-came", "cfq_select_queue",
        "A slice that was extended until the next request arrives ends when that request arrives.";
    SLICE_USED: "slice-used", "cfq_select_queue",
        "A queue whose slice is used up gives up the disk.";
    LAST_OF_GROUP: "last-of-group", "cfq_select_queue",
        "The last queue of a group stays active after its slice while its requests are in flight, \
         so that the group keeps its place.";
    SLICE_CONTINUES: "slice-continues", "cfq_select_queue",
        "A queue that has requests and time stays active.";
    IDLING: "idling", "cfq_select_queue",
        "No request is dispatched while the disk idles for the active queue (2.6: or while \
         requests of that queue are in flight).";
    DEEP_SEEKY_OUTRUN: "deep-seeky-outrun", "cfq_select_queue",
        "A seeky queue that once held many requests loses its idle window if the device empties \
         the queue quickly.";
    OWN_IN_FLIGHT: "own-in-flight", "cfq_select_queue",
        "An empty queue for which the disk should idle stays active while its requests are in \
         flight.";
    GROUP_IDLE: "group-idle", "cfq_select_queue",
        "The last queue of a group stays active while requests of the group are in flight.";
    NOT_WORTH_IDLING: "not-worth-idling", "cfq_select_queue",
        "An empty queue gives up the disk if the disk should not idle for it.";
    ASYNC_IN_FLIGHT: "async-in-flight", "cfq_may_dispatch",
        "A queue for which the disk should idle waits until the async requests have completed.";
    SYNC_IN_FLIGHT: "sync-in-flight", "cfq_may_dispatch",
        "Async requests wait while sync requests are in flight.";
    SLICE_ENDS_SOON: "slice-ends-soon", "cfq_may_dispatch",
        "A queue that has half its quantum in flight dispatches no more if its slice will end too \
         soon. A queue of the IDLE class has at most one request in flight.";
    DEPTH_REACHED: "depth-reached", "cfq_may_dispatch",
        "A queue has at most quantum requests in flight. An async queue may have one at first, and \
         more the longer no sync request was late.";
    PROCESS_EXITED: "process-exited", "cfq_exit_cfqq",
        "The queue of an exiting process stops being active.";
    LAST_USER_GONE: "last-user-gone", "cfq_put_queue",
        "A queue that nothing refers to is freed.";
    GROUP_CHANGED: "group-changed", "check_blkcg_changed",
        "A process that moved to another cgroup gets a new queue at its next sync request.";
    IDLE_WINDOW: "idle-window", "cfq_update_idle_window",
        "The disk should idle for a queue unless its process has exited, thinks longer than \
         slice_idle, or sets NOIDLE, or the queue is seeky and never held many requests.";
    PREEMPTION: "preemption", "cfq_should_preempt",
        "A queue preempts the active one: RT preempts BE, all preempt IDLE, sync preempts async, \
         and so does a request close to the head.";
    AWAITED_REQUEST: "awaited-request", "cfq_rq_enqueued",
        "A request of the active queue ends the idle wait.";
    AWAITED_IS_SMALL: "awaited-is-small", "cfq_rq_enqueued",
        "While no other queue is busy, a request of one page does not end the idle wait, because \
         more requests may arrive and be merged with it.";
    AWAITED_WRITES: "awaited-writes", "cfq_rq_enqueued",
        "2.6.18: if the process for which the disk idles writes, the idle wait and the slice of \
         the process end.";
    WAIT_BUSY: "wait-busy", "cfq_should_wait_busy",
        "If the slice of a group's last queue would end before the next request, the slice is \
         extended for one more request.";
    MUST_ALLOCATE: "must-allocate", "__cfq_may_queue",
        "Once per slice, the process for which the disk idles gets a request even if the pool is \
         full.";
    QUEUES_MERGED: "queues-merged", "cfq_merge_cfqqs",
        "A process moves to the queue that its own queue is planned to merge into.";
    QUEUE_SPLIT: "queue-split", "split_cfqq",
        "A process leaves a shared queue that has become seeky.";
    IDLE_IN_VAIN: "idle-in-vain", "cfq_idle_slice_timer",
        "The awaited request did not arrive in time.";
}
