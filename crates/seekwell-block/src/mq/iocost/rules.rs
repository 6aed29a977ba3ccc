//! The rules of `io.cost` for reasons.

seekwell_core::rules! {
    HELD: "over-io-cost-budget", "ioc_rqos_throttle",
        "A task sleeps until the device's clock has moved on by what its bio costs, at its \
         cgroup's share of the weights.";
    LET_GO: "io-cost-budget-pays", "iocg_kick_waitq",
        "The clock has moved on: those that sleep pay and go, in their order.";
    CLOCK: "io-cost-clock", "ioc_adjust_base_vrate",
        "The clock of the device is slowed where too many requests miss their latency or wait for \
         tags, and quickened where some cgroup is short of budget and none do.";
}
