//! The rules of `io.cost` for reasons.

seekwell_core::rules! {
    HELD: "over-io-cost-budget", "ioc_rqos_throttle",
        "A task sleeps until the device's clock has advanced by the cost of its bio, at its \
         cgroup's share of the weights.";
    LET_GO: "io-cost-budget-pays", "iocg_kick_waitq",
        "The clock has advanced: sleepers pay and continue, in their order.";
    CLOCK: "io-cost-clock", "ioc_adjust_base_vrate",
        "The device's clock slows down if too many requests miss their latency or wait for tags; \
         it speeds up if some cgroup is short of budget and no request misses or waits.";
}
