//! The rules of anticipatory. The reason of a decision names one of them.

seekwell_core::rules! {
    ALIAS_EVICTED: "alias-evicted", "as_add_rq_rb",
        "A class holds one request per start sector. If a second request with that start arrives, \
         the first is dispatched at once.";
    ANTICIPATED_CAME: "anticipated-came", "as_can_break_anticipation",
        "A request of the process that the disk waits for ends the wait.";
    WAITED_ENOUGH: "waited-enough", "as_can_break_anticipation",
        "The wait for a process ends when antic_expire has passed since its last completion.";
    STILL_QUEUED: "still-queued", "as_can_break_anticipation",
        "The disk does not wait for a process with requests queued or on the dispatch list.";
    CLOSE_REQUEST: "close-request", "as_close_req",
        "A sync request near the head, from any process, ends the wait.";
    PROCESS_GONE: "process-gone", "as_can_break_anticipation",
        "The disk does not wait for a process that has exited, if other processes seldom read at \
         its position.";
    THINKS_TOO_LONG: "thinks-too-long", "as_can_break_anticipation",
        "The disk does not wait for a process that usually thinks longer than antic_expire or \
         usually exits first.";
    IDLE_STARTS: "idle-starts", "as_can_anticipate",
        "The disk stays idle for the process served last.";
    HEAD_EXPIRED: "head-expired", "as_fifo_expired",
        "The oldest request of the class goes if its deadline has passed. This is checked once per \
         read_expire or write_expire.";
    DRAIN_FIRST: "drain-first", "as_dispatch_request",
        "A new batch begins when the requests of the old one have completed.";
    SYNC_BATCH: "sync-batch", "as_dispatch_request",
        "A batch of sync requests begins with the oldest one.";
    ASYNC_BATCH: "async-batch", "as_dispatch_request",
        "A batch of async requests begins; its length is adapted to the duration of earlier ones.";
    BATCH_CONTINUES: "batch-continues", "as_dispatch_request",
        "While the batch lasts, the cheapest request of the class goes.";
    IDLE_IN_VAIN: "idle-in-vain", "as_antic_timeout",
        "The awaited request did not arrive in time.";
}
