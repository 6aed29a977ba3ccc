//! Constant times and defaults.

use super::*;

#[test]
fn time_constants_equal_those_of_the_kernel() {
    let s = bench(true).s;
    let spans = &s.spans;
    assert_eq!([spans.wr_rt, spans.min_idle], [300, 2000]);
    assert_eq!([spans.wr_shortest, spans.wr_longest], [3000, 25_000]);
    assert_eq!([spans.burst, spans.split_burst], [180, 10]);
    assert_eq!([spans.burst_leave, spans.stable], [10_000, 600]);
    assert_eq!([spans.merge_limit, spans.inter_arr_async], [100, 500]);
    let inject = [spans.inject, spans.inject_flip, spans.inject_reset];
    assert_eq!(inject, [10, 100, 1000]);
}

/// The time is 7 s for a reference rate of 14000 (rotating) and 2.5 s for 33000 (flash). The
/// initial peak rate is two thirds of that rate, so the time is 3/2 as long.
#[test]
fn raising_period_of_a_new_process_follows_the_peak_rate() {
    for (rotational, ms) in [(true, 10_500), (false, 3750)] {
        let mut b = bench(rotational);
        assert_eq!(b.s.wr_duration_j(), ms);
        // The time is limited to 3 to 25 s, whatever the rate is.
        b.s.peak_rate = 1;
        assert_eq!(b.s.wr_duration_j(), 25_000);
        b.s.peak_rate = 1 << 20;
        assert_eq!(b.s.wr_duration_j(), 3000);
    }
}

#[test]
fn requests_expire_after_125_and_250_ms() {
    let b = bench(true);
    let shown = |name| b.s.show(&b.cx, name);
    assert_eq!(shown("fifo_expire_sync").as_deref(), Some("125"));
    assert_eq!(shown("fifo_expire_async").as_deref(), Some("250"));
    assert_eq!(shown("timeout_sync").as_deref(), Some("125"));
}
