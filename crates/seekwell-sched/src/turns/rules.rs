//! The rules of turns. The reason of a decision names one of them.

seekwell_core::rules! {
    LEAST_SERVED: "least-served", "dispatch_request",
        "The task that was charged the least device time is next. On a rotating disk its turn \
         lasts slice_sync.";
    NEWCOMER: "newcomer", "dispatch_request",
        "Tasks that have read and written less than newcomer_kb go before the others. Each request \
         counts as at least 32 KiB.";
    WAITS: "waits", "dispatch_request",
        "The device idles for the next request of the task that has the turn, if it reads and its \
         mean think time is below slice_idle_us. It does so for a new task, and on a rotating disk \
         for a sequential reader.";
    TURN_EXPIRED: "turn-expired", "dispatch_request",
        "The task that has waited longest for a turn is next, if it has waited at least \
         fifo_expire_sync.";
    ASYNC_EXPIRED: "async-expired", "dispatch_request",
        "One buffered write goes, at most one after each turn, if the oldest is older than \
         fifo_expire_async or none has gone for fifo_expire_sync.";
    ASYNC_TURN: "async-turn", "dispatch_request",
        "Buffered writes go if they were charged, at async_cost, no more than the task that was \
         charged least.";
    ASYNC_WINDOW: "async-window", "dispatch_request",
        "While tasks other than the writer issue sync requests, the device gets no more buffered \
         writes than it completes in async_window_us.";
    OWN_WRITES: "own-writes", "dispatch_request",
        "Buffered writes may exceed async_window_us while only their own task issues sync \
         requests. Otherwise the task would sleep until its writes complete, and its reads would \
         wait too.";
    EXPIRED: "expired", "dispatch_request",
        "On a rotating disk the oldest request of the current queue goes if it has waited for \
         fifo_expire.";
    SWEEP: "sweep", "dispatch_request",
        "On a rotating disk the next request at or above the last position goes, or the lowest \
         request if there is none.";
}
