//! The rules of kyber, as its reasons name them.

seekwell_core::rules! {
    PERCENTILE: "percentile", "calculate_percentile",
        "A histogram of latencies tells its percentile once it has 500 samples, or after a \
         second.";
    TOKENS_OUT: "tokens-out", "kyber_get_domain_token",
        "A domain whose tokens are all out is passed over; the hardware queue is woken when some \
         come back.";
    DOMAIN_TURN: "domain-turn", "kyber_dispatch_cur_domain",
        "The domain whose turn it is dispatches one request for one token.";
    POOL_RESIZED: "pool-resized", "kyber_resize_domain",
        "While the device is slow a pool shrinks or grows with its 99th percentile; while it is \
         good, only a domain that misses its target grows.";
}
