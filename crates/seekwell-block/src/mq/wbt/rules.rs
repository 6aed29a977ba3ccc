//! The rules of writeback throttling, which the reasons in events refer to.

seekwell_core::rules! {
    HELD: "write-held", "wbt_wait",
        "A write sleeps while the number of writes of its class in progress is at its limit. The \
         limit is highest if a task waits for the write, or if a task was held for dirty pages in \
         the last second. It is lowest for a flusher or after recent reads. Otherwise it is half \
         of the highest.";
    LET_GO: "held-write-goes", "wbt_rqw_done",
        "Held writes continue, in their order, when no write of their class is in progress or \
         enough slots are free. On a disk with a volatile cache, they continue only when none is \
         in progress.";
    EXCEEDED: "reads-too-slow", "latency_exceeded",
        "The fastest read of a window took longer than the target, or a read takes longer than the \
         window. The number of allowed writes is halved.";
    FAST_ENOUGH: "reads-fast-enough", "wb_timer_fn",
        "The fastest read of a window was within the target, or there are no reads. More \
         writes are allowed.";
    UNKNOWN: "window-without-verdict", "wb_timer_fn",
        "The window has too few samples. From the fifth such window on, the limit moves back \
         towards the usual limit.";
}
