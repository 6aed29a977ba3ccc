//! The rules of `io.cost`, which the reasons in events refer to.

seekwell_core::rules! {
    HELD: "over-io-cost-budget", "ioc_rqos_throttle",
        "A bio costs a part of the device's time. The task sleeps until its cgroup has enough \
         budget, which grows with the device's clock and the cgroup's weight.";
    LET_GO: "io-cost-budget-pays", "iocg_kick_waitq",
        "The device's clock has advanced. Sleeping tasks pay and continue, in their order.";
    CLOCK: "io-cost-clock", "ioc_adjust_base_vrate",
        "The device's clock slows down if too many requests miss their latency or wait for tags; \
         it speeds up if some cgroup is short of budget and no request misses or waits.";
}
