//! The rules of `io.latency`, which the reasons in events refer to.

seekwell_core::rules! {
    HELD: "over-io-latency-depth", "__blkcg_iolatency_throttle",
        "A task sleeps while its cgroup has as many bios in progress as its depth allows; the \
         depth was reduced for a sibling that misses its target.";
    LET_GO: "io-latency-depth-goes", "iolat_acquire_inflight",
        "Sleeping tasks continue, in their order, when bios of their cgroup complete or when the \
         depth of the cgroup rises.";
}
