//! The rules of the anticipatory scheduler, as its reasons name them.

seekwell_core::rules! {
    ALIAS_EVICTED: "alias-evicted", "as_add_rq_rb",
        "A class holds one request for each start sector: a second one sends the first off at \
         once.";
    ANTICIPATED_CAME: "anticipated-came", "as_can_break_anticipation",
        "A request of the process waited for ends the waiting.";
    WAITED_ENOUGH: "waited-enough", "as_can_break_anticipation",
        "Once antic_expire has passed since its last completion, a process is waited for no more.";
    STILL_QUEUED: "still-queued", "as_can_break_anticipation",
        "A process with requests queued or on the dispatch list needs no waiting for.";
    CLOSE_REQUEST: "close-request", "as_close_req",
        "A sync request near the head of any process ends the waiting.";
    PROCESS_GONE: "process-gone", "as_can_break_anticipation",
        "A process that has exited is not waited for if others seldom come to its place.";
    THINKS_TOO_LONG: "thinks-too-long", "as_can_break_anticipation",
        "A process that usually thinks longer than antic_expire, or usually exits first, is not \
         waited for.";
    IDLE_STARTS: "idle-starts", "as_can_anticipate",
        "The disk is left idle for the process served last.";
    HEAD_EXPIRED: "head-expired", "as_fifo_expired",
        "The oldest of the class goes if its deadline has passed; looked at once per expire time.";
    DRAIN_FIRST: "drain-first", "as_dispatch_request",
        "A new batch begins once the requests of the old one are completed.";
    SYNC_BATCH: "sync-batch", "as_dispatch_request",
        "A batch of sync requests begins with the oldest of them.";
    ASYNC_BATCH: "async-batch", "as_dispatch_request",
        "A batch of async requests begins; its length follows from how long the last ones took.";
    BATCH_CONTINUES: "batch-continues", "as_dispatch_request",
        "The cheapest request of the class goes as long as the batch lasts.";
    IDLE_IN_VAIN: "idle-in-vain", "as_antic_timeout",
        "The awaited request did not come in time.";
}
