//! The rules of writeback throttling for reasons.

seekwell_core::rules! {
    HELD: "write-held", "wbt_wait",
        "A write sleeps while the number of writes of its class in progress is at its limit. The \
         limit is highest if a task waits for the write or a task was held for dirty pages in the \
         last second, lowest for a flusher or after recent reads, and otherwise half of the \
         highest.";
    LET_GO: "held-write-goes", "wbt_rqw_done",
        "Held writes continue, in their order, when no write of their class is in progress or \
         enough slots are free; with a volatile cache only when none is in progress.";
    EXCEEDED: "reads-too-slow", "latency_exceeded",
        "The fastest read of a window took longer than the target, or a read takes longer than the \
         window: half as many writes may pass.";
    FAST_ENOUGH: "reads-fast-enough", "wb_timer_fn",
        "The fastest read of a window was within the target, or there are no reads: more writes \
         may pass.";
    UNKNOWN: "window-without-verdict", "wb_timer_fn",
        "The window has too few samples; after the fifth such window the limit moves back towards \
         the usual one.";
}
