//! Properties of an eMMC: the cost of a read, a write, a group and a flush, and the effects of a
//! stop.

use seekwell_core::{Accept, Command, Device, Instant, Nanos, Op, Sector, Sectors, rng};
use seekwell_device::probe::{Client, Run, below, command};
use seekwell_device::{Emmc, EmmcParams, open, read_preset};

const QUIET: &str = "emmc:motog-sandisk8,noise_read=0,noise_write=0,clean_pool=0";

fn card(options: &str) -> Emmc {
    let preset = read_preset(&format!("{QUIET}{options}")).unwrap();
    Emmc::new(&EmmcParams::from_preset(&preset).unwrap(), 5)
}
fn client(options: &str) -> Client<Emmc> {
    Client::new(card(options))
}
fn us(t: Nanos) -> f64 {
    t.0 as f64 / 1e3
}
/// Cost of one command, us.
fn cost(c: &mut Client<Emmc>, op: Op, lba: u64, n: u32) -> f64 {
    us(c.send(command(op, lba, n)))
}
fn near(what: &str, got: f64, want: f64, share: f64) {
    assert!(
        (got / want - 1.0).abs() <= share,
        "{what}: {got:.3}, expected {want:.3}"
    );
}

/// A read takes 683 us + 14.5 us per KiB, and 150 us more for each part of the map that is not
/// loaded. The card keeps 64 parts.
#[test]
fn read_cost_is_base_plus_length_plus_map_misses() {
    let mut c = client("");
    assert_eq!(cost(&mut c, Op::Read, 0, 8), 683.0 + 58.0 + 150.0);
    assert_eq!(cost(&mut c, Op::Read, 800, 8), 741.0, "the part is loaded");
    assert_eq!(cost(&mut c, Op::Read, 1000, 512), 683.0 + 3712.0);
    // A read across two parts, of which the second is not loaded.
    assert_eq!(cost(&mut c, Op::Read, 8192 - 8, 16), 683.0 + 116.0 + 150.0);
    for part in 2..=64 {
        assert_eq!(cost(&mut c, Op::Read, part * 8192, 8), 891.0, "{part}");
    }
    assert_eq!(cost(&mut c, Op::Read, 8192, 8), 741.0, "one of the last 64");
    assert_eq!(cost(&mut c, Op::Read, 0, 8), 891.0, "the oldest has gone");
}

/// A write takes 2830 us + 60 us per KiB, and 2580 us more outside the four most recently written
/// segments.
#[test]
fn write_outside_an_open_segment_costs_more() {
    let mut c = client("");
    let (open, shut) = (3070.0, 5650.0);
    for segment in [7, 3, 9, 1] {
        assert_eq!(cost(&mut c, Op::Write, segment * 8192 + 40, 8), shut);
    }
    for segment in [1, 7, 9, 3] {
        assert_eq!(cost(&mut c, Op::Write, segment * 8192 + 400, 8), open);
    }
    assert_eq!(cost(&mut c, Op::Write, 5 * 8192, 8), shut);
    assert_eq!(
        cost(&mut c, Op::Write, 8192, 8),
        shut,
        "the least recent was closed"
    );
    // A write across a border opens only the second segment.
    assert_eq!(
        cost(&mut c, Op::Write, 6 * 8192 - 8, 16),
        2830.0 + 480.0 + 2580.0
    );
}

#[test]
fn partial_page_write_costs_an_extra_read() {
    let mut c = client(",rmw=100us,open_segments=8,place_penalty=0");
    assert_eq!(cost(&mut c, Op::Write, 16, 16), 2830.0 + 480.0);
    assert_eq!(cost(&mut c, Op::Write, 16, 8), 2830.0 + 240.0 + 100.0);
    assert_eq!(cost(&mut c, Op::Write, 24, 16), 2830.0 + 480.0 + 100.0);
}

/// With k of n segments open, random writes hit an open segment with probability k/n, in any order.
#[test]
fn random_write_cost_follows_the_fraction_of_open_segments() {
    for (open, span) in [(4u64, 8u64), (1, 8), (4, 16), (8, 8), (0, 8)] {
        let mut c = client(&format!(",open_segments={open}"));
        let mut rng = rng::stream(2, "span");
        let mut next = |_| command(Op::Write, below(&mut rng, span * 1024) * 8, 8);
        c.run(100, 1, Nanos::ZERO, &mut next);
        let mean = c.run(8_000, 1, Nanos::ZERO, &mut next).mean_ms() * 1e3;
        let misses = 1.0 - open as f64 / span as f64;
        near(
            &format!("{open} of {span}"),
            mean,
            3070.0 + 2580.0 * misses,
            0.015,
        );
    }
}

fn group(list: &[(u64, u32)]) -> Vec<Command> {
    let of = |(i, &(lba, n)): (usize, &(u64, u32))| Command {
        id: i as u32,
        ..command(Op::Write, lba, n)
    };
    list.iter().enumerate().map(of).collect()
}

/// A packed group takes one base time, one penalty per segment, and 20 us per write. All writes
/// complete together.
#[test]
fn packed_group_pays_base_and_segment_costs_once() {
    let mut d = card("");
    let g = group(&[(0, 8), (8192, 8), (80, 16), (8200, 8)]);
    assert_eq!(d.accept_packed(Instant::START, &g), Accept::Accepted);
    assert_eq!(
        d.accept(Instant::START, command(Op::Read, 0, 8)),
        Accept::Busy
    );
    let want = 2830.0 + 60.0 * 20.0 + 2.0 * 2580.0 + 4.0 * 20.0;
    assert_eq!(d.next_event(), Some(Instant::at_us(want as u64)));
    let mut out = vec![];
    d.advance(Instant::at_us(want as u64), &mut out);
    assert_eq!(out.iter().map(|o| o.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(
        out.iter()
            .all(|o| o.at == Instant::at_us(want as u64) && !o.error)
    );
    assert_eq!(d.next_event(), None);
}

#[test]
fn invalid_groups_are_rejected() {
    let mut d = card(",max_packed=3");
    let read = [command(Op::Read, 0, 8)];
    assert_eq!(d.accept_packed(Instant::START, &read), Accept::Busy);
    assert_eq!(d.accept_packed(Instant::START, &[]), Accept::Busy);
    let four = group(&[(0, 8), (8, 8), (16, 8), (24, 8)]);
    assert_eq!(d.accept_packed(Instant::START, &four), Accept::Busy);
    assert_eq!(
        d.accept_packed(Instant::START, &four[..3]),
        Accept::Accepted
    );
    let mut plain = seekwell_device::Constant::serial(4, Nanos(1));
    assert_eq!(plain.accept_packed(Instant::START, &four), Accept::Busy);
}

/// If a write is stopped halfway, half of it is on the medium, in whole pages. The card is free 300
/// us later.
#[test]
fn stopped_write_keeps_whole_pages_and_never_completes() {
    let mut d = card("");
    let c = command(Op::Write, 8, 1000);
    assert_eq!(d.accept(Instant::START, c), Accept::Accepted);
    let whole = d.next_event().unwrap().since(Instant::START);
    let half = Instant::START + Nanos(whole.0 / 2);
    assert_eq!(d.stop(half, 9), None, "no such command");
    let Some(Sectors(n)) = d.stop(half, 0) else {
        panic!("it cannot be stopped")
    };
    assert!(
        (485..=500).contains(&n) && (8 + n).is_multiple_of(16),
        "{n}"
    );
    assert_eq!(d.next_event(), None);
    assert_eq!(d.stop(half, 0), None, "it runs no more");
    let read = Command {
        id: 1,
        ..command(Op::Read, 8, 8)
    };
    assert_eq!(d.accept(half, read), Accept::Accepted);
    let (mut out, end) = (vec![], d.next_event().unwrap());
    assert_eq!(
        us(end.since(half)),
        300.0 + 741.0,
        "the write has loaded the map"
    );
    d.advance(end, &mut out);
    assert_eq!(out.len(), 1);
    assert_eq!(d.stats().busy, end.since(Instant::START));
}

#[test]
fn stopped_group_reports_the_remainder_of_each_write() {
    let mut d = card("");
    let g = group(&[(0, 64), (64, 64), (128, 64), (192, 64)]);
    d.accept_packed(Instant::START, &g);
    let whole = d.next_event().unwrap().since(Instant::START).0;
    let t = Instant::START + Nanos(whole * 5 / 8);
    let left: Vec<_> = [3, 0, 2, 1].map(|id| d.stop(t, id).map(|s| s.0)).to_vec();
    assert_eq!(left, [Some(0), Some(64), Some(32), Some(64)]);
    assert_eq!(d.stop(t, 1), None);
}

#[test]
fn reads_cached_writes_and_cards_without_hpi_are_not_stopped() {
    for (options, op) in [
        ("", Op::Read),
        (",cache=1024KiB", Op::Write),
        (",hpi=no", Op::Write),
    ] {
        let mut d = card(options);
        d.accept(Instant::START, command(op, 0, 8));
        assert_eq!(d.stop(Instant::at_us(10), 0), None, "{options} {op:?}");
        assert!(d.next_event().is_some());
    }
    assert!(!card(",hpi=no").facts().can_stop);
}

/// A write into the cache takes 250 us + 5.1 us per KiB. A flush pays for all writes, in groups
/// that share a base time.
#[test]
fn write_cache_hides_write_cost_until_a_flush() {
    let mut d = card(",cache=64KiB");
    assert!(d.facts().write_cache);
    let (mut now, mut out) = (Instant::START, vec![]);
    let mut one = |d: &mut Emmc, c: Command| {
        assert_eq!(d.accept(now, c), Accept::Accepted);
        let end = d.next_event().unwrap();
        let took = us(end.since(now));
        d.advance(end, &mut out);
        now = end;
        took
    };
    for i in 0..16 {
        let took = one(&mut d, command(Op::Write, i * 8, 8));
        near("cached", took, 250.0 + 20.4, 1e-9);
    }
    assert_eq!(d.dirty_sectors(), 128);
    let full = one(&mut d, command(Op::Write, 128, 8));
    assert_eq!(
        full,
        3070.0 + 2580.0,
        "a full cache: straight to the medium"
    );
    let fua = Command {
        fua: true,
        ..command(Op::Write, 136, 8)
    };
    assert_eq!(one(&mut d, fua), 3070.0, "and so a reliable write");
    let flush = one(&mut d, command(Op::Flush, 0, 0));
    assert_eq!(flush, 2000.0 + 2830.0 + 16.0 * (240.0 + 20.0));
    assert_eq!(d.dirty_sectors(), 0);
    assert_eq!(one(&mut d, command(Op::Flush, 0, 0)), 2000.0);
}

#[test]
fn cache_drains_while_the_card_is_idle() {
    let mut c = client(",cache=64KiB");
    for i in 0..8 {
        cost(&mut c, Op::Write, i * 8, 8);
    }
    let before = c.device.dirty_sectors();
    // The first write takes the base time, the time of the placement, and 260 us. Each further
    // write takes 260 us.
    c.sleep(Nanos::from_us(2830 + 2580 + 260 + 3 * 260 - 100));
    assert_eq!((before, c.device.dirty_sectors()), (64, 32));
    // A read waits only for the write in progress.
    assert_eq!(cost(&mut c, Op::Read, 0, 8), 100.0 + 741.0);
    c.sleep(Nanos::from_ms(100));
    assert_eq!(c.device.dirty_sectors(), 0);
}

#[test]
fn clean_segment_pool_is_exhausted_without_idle_time() {
    let run = |gap_ms: u64| {
        let spec = "emmc:motog-sandisk8,noise_read=0,noise_write=0,clean_pool=4MiB";
        let mut c = Client::new(open(spec, 1).unwrap());
        let mut slow = 0;
        for i in 0..64u64 {
            let took = c.send(command(Op::Write, i * 512, 512)).as_ms_f64();
            slow += u32::from(took > 18.2 + 2.6 + 19.0);
            c.sleep(Nanos::from_ms(gap_ms));
        }
        slow
    };
    assert_eq!(run(0), 3, "16 MiB, a collection each 4 MiB");
    assert_eq!(run(600), 0, "rests fill it again");
}

#[test]
fn collections_occur_at_the_configured_probability() {
    let mut c = client(",gc_chance=0.25,gc_min=30,gc_max=50,open_segments=1");
    let run = c.run(4_000, 1, Nanos::ZERO, |i| {
        command(Op::Write, (i as u64 % 2) * 8192, 8)
    });
    let slow: Vec<f64> = run
        .latency_ns
        .iter()
        .map(|t| *t as f64 / 1e6 - 5.65)
        .collect();
    let slow: Vec<f64> = slow.into_iter().filter(|t| *t > 1.0).collect();
    near("share", slow.len() as f64 / 4_000.0, 0.25, 0.1);
    assert!(slow.iter().all(|t| (29.99..=50.01).contains(t)));
    near(
        "mean pause",
        slow.iter().sum::<f64>() / slow.len() as f64,
        40.0,
        0.02,
    );
}

fn spread(run: &Run) -> (f64, f64) {
    let n = run.latency_ns.len() as f64;
    let mean = run.latency_ns.iter().map(|t| *t as f64).sum::<f64>() / n;
    let logs: Vec<f64> = run
        .latency_ns
        .iter()
        .map(|t| (*t as f64 / mean).ln())
        .collect();
    let middle = logs.iter().sum::<f64>() / n;
    let var = logs.iter().map(|l| (l - middle).powi(2)).sum::<f64>() / n;
    (mean / 1e3, var.sqrt())
}

#[test]
fn noise_is_log_normal_and_preserves_the_mean() {
    let noisy = "emmc:motog-sandisk8,clean_pool=0,place_penalty=0";
    for (op, want, sigma) in [(Op::Read, 741.0, 0.05), (Op::Write, 3070.0, 0.15)] {
        let mut c = Client::new(open(noisy, 3).unwrap());
        c.send(command(Op::Read, 0, 8));
        let (mean, s) = spread(&c.run(20_000, 1, Nanos::ZERO, |_| command(op, 0, 8)));
        near("mean", mean, want, 0.004);
        near("sigma", s, sigma, 0.02);
    }
}

#[test]
fn card_reader_accepts_one_command_at_a_time_and_reports_host_facts() {
    let d = card("");
    let f = d.facts();
    let host = f.mmc.unwrap();
    assert_eq!(
        (f.depth, f.rotational, f.can_stop, f.fua),
        (1, false, true, true)
    );
    assert_eq!(
        (host.max_packed, host.wakes, f.max_sectors),
        (63, true, Sectors(1024))
    );
    let sd = open("sd:card", 1).unwrap();
    let f = sd.facts();
    assert_eq!(
        (f.can_stop, f.fua, f.mmc.unwrap().max_packed),
        (false, false, 0)
    );
    assert!(f.capacity > Sector(50_000_000));
}
