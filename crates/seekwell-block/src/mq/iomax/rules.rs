//! The rules of `io.max`, which the reasons in events refer to.

seekwell_core::rules! {
    OVER: "over-io-max", "tg_may_dispatch",
        "A bio that exceeds its cgroup's limit in this slice of 100 ms is held; its submitter \
         continues.";
    SENT_UP: "within-io-max", "throtl_pending_timer_fn",
        "When the limit allows it, a worker issues up to six reads and then two writes of a \
         cgroup, in their order.";
}
