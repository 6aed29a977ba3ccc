//! Rules, as reasons name them.

seekwell_core::rules! {
    LEAST_SERVED: "least-served", "dispatch_request",
        "The task that has had the least device time is next; on a rotating disk its turn lasts slice_sync.";
    NEWCOMER: "newcomer", "dispatch_request",
        "Before tasks that have had newcomer_kb go those that have not; a request counts at least 32 KiB.";
    WAITS: "waits", "dispatch_request",
        "Who reads, and comes back within slice_idle_us, is waited for in its turn: a newcomer beside older tasks, and on a rotating disk who reads on.";
    TURN_EXPIRED: "turn-expired", "dispatch_request",
        "The task that has waited longest for a turn, for fifo_expire_sync at least, is next.";
    ASYNC_EXPIRED: "async-expired", "dispatch_request",
        "One buffered write goes, at most one after each turn, if the oldest is older than fifo_expire_async, or if for fifo_expire_sync none went.";
    ASYNC_TURN: "async-turn", "dispatch_request",
        "Buffered writes go if they have paid, at async_cost, no more than the task that has paid least.";
    ASYNC_WINDOW: "async-window", "dispatch_request",
        "While sync requests come of others than their own task, the device has no more buffered writes than it does in async_window_us.";
    OWN_WRITES: "own-writes", "dispatch_request",
        "Buffered writes go beyond async_window_us while no sync requests come but their own task's, which would sleep behind them and its reads with it.";
    EXPIRED: "expired", "dispatch_request",
        "On a rotating disk the oldest of the queue in its turn goes if it has waited for fifo_expire.";
    SWEEP: "sweep", "dispatch_request",
        "On a rotating disk the next at or above its last position goes, at the top the lowest.";
}
