//! The rules of writeback throttling for reasons.

seekwell_core::rules! {
    HELD: "write-held", "wbt_wait",
        "A write sleeps while as many of its class are under way as its limit says: most if \
         somebody waits for it or was held for dirty pages in the last second, fewest from a \
         flusher or while reads are close, else half of the most.";
    LET_GO: "held-write-goes", "wbt_rqw_done",
        "Held writes go, in their order, when none of their class is under way, or when enough \
         slots are free; before a volatile cache only when none is.";
    EXCEEDED: "reads-too-slow", "latency_exceeded",
        "The fastest read of a window took longer than the target, or one takes longer than the \
         window: half as many writes may pass.";
    FAST_ENOUGH: "reads-fast-enough", "wb_timer_fn",
        "The fastest read of a window was within the target, or nobody reads: more writes may \
         pass.";
    UNKNOWN: "window-without-verdict", "wb_timer_fn",
        "Too little was seen; after the fifth such window the limit goes back towards the usual.";
}
