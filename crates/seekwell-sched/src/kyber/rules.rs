//! The rules of kyber, as its reasons name them.

seekwell_core::rules! {
    PERCENTILE: "percentile", "calculate_percentile",
        "A histogram of latencies gives its percentile when it has 500 samples, or after a second.";
    TOKENS_OUT: "tokens-out", "kyber_get_domain_token",
        "A domain without free tokens is skipped; the hardware queue is woken when tokens are \
         returned.";
    DOMAIN_TURN: "domain-turn", "kyber_dispatch_cur_domain",
        "The next domain in turn dispatches one request for one token.";
    POOL_RESIZED: "pool-resized", "kyber_resize_domain",
        "While the device is slow, a pool shrinks or grows with its 99th percentile; while it is \
         good, only the pool of a domain that misses its target grows.";
}
