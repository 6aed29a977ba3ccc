//! The rules of kyber. The reason of a decision names one of them.

seekwell_core::rules! {
    PERCENTILE: "percentile", "calculate_percentile",
        "A histogram of latencies is read when it has 500 samples, or after a second.";
    TOKENS_OUT: "tokens-out", "kyber_get_domain_token",
        "A domain without free tokens is skipped. The hardware queue runs again when tokens are \
         returned.";
    DOMAIN_TURN: "domain-turn", "kyber_dispatch_cur_domain",
        "The next domain dispatches one request, which takes one token.";
    POOL_RESIZED: "pool-resized", "kyber_resize_domain",
        "While the device is slow, the pool of a domain shrinks or grows with the 99th percentile \
         of its latency. While the device is not slow, only the pool of a domain that misses its \
         target grows.";
}
