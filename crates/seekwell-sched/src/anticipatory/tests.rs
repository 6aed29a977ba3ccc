//! Thresholds of batches and of anticipation.

use super::*;
use crate::bench::{Bench, legacy_cx};
use context::{Context, Global, ONE};
use seekwell_core::{Op, Sector};

fn bench(hz: u32) -> Bench<Anticipatory> {
    let cx = legacy_cx(Era::K2_6_24, hz);
    let s = Anticipatory::new(&cx, false);
    Bench::new(cx, s)
}

/// Returns the start of the read that is dispatched first, `a` or `b`, if the head is at 2000000.
/// Both reads are of task 1.
fn first(a: u64, b: u64) -> u64 {
    let mut bench = bench(1000);
    let (ra, rb) = (bench.insert(1, Op::Read, a), bench.insert(1, Op::Read, b));
    bench.s.head[SYNC] = Sector(2_000_000);
    let chosen = bench.s.choose(&bench.cx, SYNC, Some(ra), Some(rb));
    bench.cx.rqs[chosen.expect("one of them")].sector.0
}

#[test]
fn backward_distance_counts_double_and_ends_at_512_mib() {
    for (ahead, behind, want) in [
        (2_000_100, 1_999_950, 2_000_100), // equal: the higher start
        (2_000_101, 1_999_950, 1_999_950),
        (2_000_099, 1_999_950, 2_000_099),
        (2_000_000, 1_999_999, 2_000_000), // at the head
        (9_000_000, 951_424, 951_424),     // 2^20 sectors behind
        (9_000_000, 951_423, 9_000_000),
    ] {
        assert_eq!(first(ahead, behind), want, "{ahead} {behind}");
        assert_eq!(first(behind, ahead), want, "{behind} {ahead}");
    }
    assert_eq!(first(100, 200), 100, "both too far behind: the lower start");
    assert_eq!(first(200, 100), 100);
}

#[test]
fn fifo_is_checked_once_per_expiry_time() {
    // Sync requests expire after 125 ms.
    for (looked_ms, late, want) in [(124, true, false), (125, true, true), (125, false, false)] {
        let mut b = bench(1000);
        let rq = b.insert(1, Op::Read, 1000);
        let now = b.cx.jiffies();
        b.s.rq[rq].deadline_j = if late { now - 1 } else { now };
        b.s.last_look_j[SYNC] = now - looked_ms;
        assert_eq!(b.s.fifo_expired(&b.cx, SYNC), want, "{looked_ms} {late}");
    }
}

#[test]
fn batch_ends_after_its_time_and_async_batch_also_after_its_requests() {
    let mut b = bench(1000);
    let now = b.cx.jiffies();
    for (batch, end_j, wleft, want) in [
        (SYNC, now, 0, false),
        (SYNC, now - 1, 1, true),
        (ASYNC, now, 1, false),
        (ASYNC, now - 1, 1, true),
        (ASYNC, now, 0, true),
    ] {
        (b.s.batch, b.s.batch_end_j, b.s.wleft) = (batch, end_j, wleft);
        assert_eq!(b.s.batch_expired(&b.cx), want, "{batch} {wleft}");
        b.s.new_batch = true;
        assert!(!b.s.batch_expired(&b.cx));
        b.s.new_batch = false;
    }
}

#[test]
fn number_of_writes_in_a_batch_adapts_to_their_duration() {
    // A batch of writes may last 125 ms.
    for (took_ms, idled, left, want) in [
        (125, false, 0, 12),
        (126, false, 5, 11),
        (126, true, 5, 12),
        (375, false, 5, 11),
        (376, false, 5, 6),
        (124, false, 0, 13),
        (124, false, 1, 12),
        (42, false, 0, 13),
        (41, false, 0, 24),
    ] {
        let mut b = bench(1000);
        assert_eq!(b.s.wcount, 12);
        (b.s.w_idled, b.s.wleft) = (idled, left);
        b.s.batch_end_j = b.cx.jiffies() + 125 - took_ms;
        b.s.adapt_wcount(&b.cx);
        assert_eq!(b.s.wcount, want, "{took_ms} {idled} {left}");
    }
    let mut b = bench(1000);
    b.s.wcount = 1;
    b.s.batch_end_j = b.cx.jiffies() - 1000;
    b.s.adapt_wcount(&b.cx);
    assert_eq!(b.s.wcount, 1, "at least one");
}

#[test]
fn defaults_are_fractions_of_hz() {
    for (hz, wcount, antic_j) in [(1000, 12, 6), (250, 3, 1), (100, 2, 1)] {
        let s = bench(hz).s;
        assert_eq!((s.wcount, s.antic_expire_j), (wcount, antic_j), "HZ {hz}");
    }
}

/// A bench with a dispatched read of task 1, and the context of that task.
fn served() -> (Bench<Anticipatory>, Ctx) {
    let mut b = bench(1000);
    let rq = b.insert(1, Op::Read, 1000);
    // The first batch is async, so the queue runs until it dispatches the read.
    assert_eq!(b.take(), Some(rq));
    b.complete(rq);
    let x = b.s.antic_ctx.expect("the process served last");
    (b, x)
}

/// Returns true if a read at `sector` is close to the head at `10^10`, `delay_j` after the
/// completion.
fn close(sector: i64, delay_j: u64, expire_j: u64, change: impl Fn(&mut Context)) -> bool {
    let (mut b, x) = served();
    let last = 10_000_000_000;
    let rq = b.insert(2, Op::Read, (last + sector) as u64);
    (b.s.batch, b.s.head[SYNC]) = (SYNC, Sector(last as u64));
    (b.s.wait, b.s.ctx_done) = (Wait::ForNext, true);
    b.s.antic_start_j = b.cx.jiffies() - delay_j;
    b.s.antic_expire_j = expire_j;
    b.s.ctxs[x].seek_samples = 32;
    b.s.ctxs[x].seek_mean = 0;
    change(&mut b.s.ctxs[x]);
    let close = b.s.close(&b.cx, rq, x);
    (b.s.wait, b.s.ctx_done) = (Wait::Off, false);
    close
}

#[test]
fn close_distance_doubles_with_each_jiffy() {
    for (delay_j, expire_j, window) in [
        (0, 6, 8192),
        (1, 6, 2 * 8192),
        (6, 6, 64 * 8192),
        (20, 30, 8192 << 20),
    ] {
        let of = |s| close(s, delay_j, expire_j, |_| {});
        assert!(of(window) && !of(window + 1), "{delay_j}: forward");
        assert!(of(-window / 2) && !of(-window / 2 - 1), "{delay_j}: back");
    }
    assert!(close(1 << 33, 7, 6, |_| {}), "after the wait");
    assert!(close(1 << 34, 21, 30, |_| {}), "after 20 ms");
}

#[test]
fn a_distance_below_the_mean_of_the_process_is_close() {
    let mean = |x: &mut Context| x.seek_mean = 50_000;
    assert!(close(49_999, 0, 6, mean) && !close(50_000, 0, 6, mean));
    let unknown = |x: &mut Context| (x.seek_samples, x.seek_mean) = (0, 50_000);
    assert!(!close(49_999, 0, 6, unknown), "the mean of new processes");
}

/// Returns true if the wait for the process ends without a new request.
fn ends(change: impl Fn(&mut Anticipatory, Ctx, u64)) -> bool {
    let (mut b, x) = served();
    let now = b.cx.jiffies();
    b.s.ctxs[x].tt_samples = 32;
    change(&mut b.s, x, now);
    b.s.can_break(&mut b.cx, None, x).is_some()
}

#[test]
fn wait_ends_after_its_time_or_if_the_mean_think_time_is_longer() {
    let waited = |j: u64| ends(|s, _, now| (s.ctx_done, s.antic_start_j) = (true, now - j));
    assert!(!waited(5) && waited(6));
    let thinks = |j| ends(|s, x, _| s.ctxs[x].tt_mean = j);
    assert!(!thinks(6) && thinks(7));
    let new = |mean_j, exit, alone| {
        ends(|s, x, _| {
            s.ctxs[x].tt_samples = 0;
            s.all.new_tt_mean = mean_j;
            (s.all.exit_prob, s.all.no_coop) = (exit, alone);
        })
    };
    assert!(!new(6, 0, 0) && new(7, 0, 0));
    assert!(!new(0, 128, 256) && new(0, 129, 255), "half exit unaided");
    let dead = |alone| {
        ends(|s, x, _| {
            s.ctxs[x].alive = false;
            s.all.no_coop = alone;
        })
    };
    assert!(!dead(128) && dead(129));
    assert!(ends(|s, x, _| s.ctxs[x].queued = 1));
    assert!(ends(|s, x, _| s.ctxs[x].dispatched = 1));
}

#[test]
fn a_seek_counts_up_to_four_means_and_a_constant() {
    // The constant is 2^21 sectors for up to 60 samples, and 2^17 after that.
    for (samples, room) in [(32, 1 << 21), (60, 1 << 21), (84, 1 << 17)] {
        let mut c = Context::default();
        c.io_started = true;
        (c.seek_samples, c.seek_total, c.seek_mean) = (samples, samples * 1000, 1000);
        let far = Sector(1 << 40);
        c.history(&mut Global::default(), 1000, 0, far, far);
        let now = (7 * samples + 256) / 8;
        let total = (7 * samples * 1000 + ONE * (4000 + room)) / 8;
        assert_eq!(c.seek_total, total, "{samples}");
        assert_eq!(c.seek_mean, (total + now / 2) / now, "{samples}");
    }
}

#[test]
fn think_time_is_capped_and_rounded() {
    for (think_j, want) in [(19, 23), (20, 23), (500, 23), (3, 7)] {
        let mut c = Context::default();
        c.ended(1000);
        let at = Sector(0);
        c.history(&mut Global::default(), 1000, 1000 + think_j, at, at);
        assert_eq!(c.tt_mean, want, "{think_j}");
    }
}
