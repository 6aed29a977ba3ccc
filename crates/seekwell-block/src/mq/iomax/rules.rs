//! The rules of `io.max` for reasons.

seekwell_core::rules! {
    OVER: "over-io-max", "tg_may_dispatch",
        "A bio that its cgroup's limit does not let through in this slice of 100 ms is put aside; \
         its submitter goes on.";
    SENT_UP: "within-io-max", "throtl_pending_timer_fn",
        "When time has let enough through again, up to six reads and then two writes of a cgroup \
         go, in their order, from a worker.";
}
