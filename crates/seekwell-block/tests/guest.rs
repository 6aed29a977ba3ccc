//! A guest's disk: the guarantees of each cache mode, the costs of the ring and the thread, and the
//! context that the host sees.

use seekwell_block::raid::{RemapOptions, Remapped};
use seekwell_block::{HostDriver, LegacyOptions, LegacyQueue, VirtualDisk};
use seekwell_core::{
    Bio, BioDone, BioSink, Command, Control, Device, Era, Instant, Nanos, Op, Sector, Sectors,
    TickClock,
};
use seekwell_device::probe::{Client, command};
use seekwell_device::{Constant, GuestParams, read_preset};
use seekwell_sched::QueueFacts;
use seekwell_sched::noop::Noop;
use std::cell::RefCell;
use std::rc::Rc;

/// (operation, sector, sectors, task)
type Log = Rc<RefCell<Vec<(Op, u64, u32, u32)>>>;

/// A host on which every bio takes a millisecond and a flush takes three.
struct Host {
    log: Log,
    out: Vec<BioDone>,
    at: Instant,
}

impl BioSink for Host {
    fn submit(&mut self, now: Instant, bio: Bio) {
        let entry = (bio.op, bio.sector.0, bio.sectors.0, bio.task.0);
        self.log.borrow_mut().push(entry);
        let took = if bio.op == Op::Flush { 3 } else { 1 };
        self.at = self.at.max(now) + Nanos::from_ms(took);
        self.out.push(BioDone {
            id: bio.id,
            at: self.at,
            error: false,
        });
    }
    fn next_event(&self) -> Option<Instant> {
        self.out.first().map(|d| d.at)
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        let n = self.out.partition_point(|d| d.at <= to);
        out.extend(self.out.drain(..n));
    }
    fn control(&mut self, _: Instant, _: Control) {}
    fn capacity(&self) -> Sector {
        Sector(1 << 20)
    }
}

fn params(options: &str) -> GuestParams {
    let spec = format!("virtual:over=constant,exit=10us,irq=20us,thread=5us{options}");
    GuestParams::from_preset(&read_preset(&spec).unwrap()).unwrap()
}

fn disk(options: &str) -> (Client<VirtualDisk<Host>>, Log) {
    let log = Log::default();
    let host = Host {
        log: log.clone(),
        out: Vec::new(),
        at: Instant::START,
    };
    (Client::new(VirtualDisk::new(params(options), host, 1)), log)
}

fn latency_us(c: &mut Client<VirtualDisk<Host>>, op: Op, at: u64) -> u64 {
    let n = if op == Op::Flush { 0 } else { 8 };
    c.send(command(op, at, n)).as_us()
}

#[test]
fn uncached_guest_request_costs_ring_overhead_plus_host_service_time() {
    let (mut c, log) = disk("");
    assert_eq!(latency_us(&mut c, Op::Read, 80), 10 + 5 + 1_000 + 20);
    assert_eq!(latency_us(&mut c, Op::Write, 80), 1_035);
    assert_eq!(latency_us(&mut c, Op::Flush, 0), 3_035, "passed on");
    let tasks: Vec<u32> = log.borrow().iter().map(|e| e.3).collect();
    assert_eq!(tasks, [1, 1, 1], "one context for the whole guest");
    assert!(c.device.facts().write_cache && c.device.facts().depth == 256);
}

#[test]
fn one_guest_queue_thread_serves_requests_one_at_a_time() {
    let (mut c, _) = disk(",cache=unsafe,copy=1000000");
    let write = |i: usize| command(Op::Write, i as u64 * 8, 8);
    let one = c.run(1_000, 64, Nanos::ZERO, write).iops();
    let (mut c, _) = disk(",cache=unsafe,copy=1000000,queues=4");
    let four = c.run(1_000, 64, Nanos::ZERO, write).iops();
    assert!((one / 200_000.0 - 1.0).abs() < 0.02, "{one}: 5 us each");
    assert!(four > 3.0 * one, "{four}: a thread for each ring");
}

#[test]
fn each_cache_mode_gives_its_documented_guarantees() {
    // The times in us of a first write, of a read of the same data, of a flush, and of a flush with
    // nothing to do. Also the operations that the host received.
    let promises = |mode: &str| {
        let (mut c, log) = disk(&format!(",cache={mode}"));
        let times = [
            latency_us(&mut c, Op::Write, 80),
            latency_us(&mut c, Op::Read, 80),
            latency_us(&mut c, Op::Flush, 0),
            latency_us(&mut c, Op::Flush, 0),
        ];
        let ops: Vec<Op> = log.borrow().iter().map(|e| e.0).collect();
        (times, ops, c.device.facts().write_cache)
    };
    use Op::{Flush, Read, Write};
    let (t, ops, cache) = promises("none");
    assert_eq!(t, [1_035, 1_035, 3_035, 3_035]);
    assert_eq!((ops, cache), (vec![Write, Read, Flush, Flush], true));
    let (t, ops, cache) = promises("writeback");
    assert_eq!(
        t,
        [35, 35, 4_035, 3_035],
        "the flush writes the page, then empties the disk's cache"
    );
    assert_eq!((ops, cache), (vec![Write, Flush, Flush], true));
    let (t, ops, cache) = promises("writethrough");
    assert_eq!(t[..2], [4_035, 35], "written and flushed, read from memory");
    assert_eq!((&ops[..2], cache), (&[Write, Flush][..], false));
    let (t, ops, cache) = promises("directsync");
    assert_eq!(t[..2], [4_035, 1_035]);
    assert_eq!((&ops[..3], cache), (&[Write, Flush, Read][..], false));
    let (t, ops, _) = promises("unsafe");
    assert_eq!(t, [35, 35, 35, 35]);
    assert!(ops.is_empty(), "nothing reached the host yet");
}

#[test]
fn dirty_pages_are_written_after_their_expiry_and_writers_throttled_at_the_limit() {
    let (mut c, log) = disk(",cache=writeback,dirty_expire=2s");
    for i in 0..4 {
        latency_us(&mut c, Op::Write, 8 * i);
    }
    c.sleep(Nanos::from_ms(1_900));
    assert!(log.borrow().is_empty());
    c.sleep(Nanos::from_ms(200));
    assert_eq!(
        *log.borrow(),
        [(Op::Write, 0, 32, 2)],
        "one piece, by the host's flusher"
    );
    // The host has 1 MiB of memory: write-back starts at 25 dirty pages, and writers wait from 51
    // on.
    let (mut c, log) = disk(",cache=writeback,host_memory=1MiB");
    let run = c.run(400, 4, Nanos::ZERO, |i| {
        command(Op::Write, i as u64 * 4096 % (1 << 20), 8)
    });
    assert!(run.quantile_ms(1.0) > 0.5 && run.quantile_ms(0.05) < 0.1);
    assert!(log.borrow().len() >= 300);
    assert!(c.device.facts().write_cache);
}

#[test]
fn neighbours_submit_in_their_own_io_contexts() {
    let (mut c, log) = disk(",neighbours=random-reader+random-writer,neighbour_depth=2");
    for i in 0..50 {
        latency_us(&mut c, Op::Read, 8 * i);
    }
    assert!(
        c.device.neighbours().iter().all(|n| *n > 20),
        "{:?}",
        c.device.neighbours()
    );
    let mut tasks: Vec<u32> = log.borrow().iter().map(|e| e.3).collect();
    tasks.sort_unstable();
    tasks.dedup();
    assert_eq!(tasks, [1, 10, 11]);
    let mut out = Vec::new();
    c.device.advance(Instant::FAR, &mut out);
    assert!(c.device.next_event().is_none(), "a run ends with the guest");
}

#[test]
fn request_past_the_end_fails_and_the_ring_depth_limits_requests_in_flight() {
    let (mut c, log) = disk(",depth=2");
    let far = Command {
        id: 0,
        ..command(Op::Read, (1 << 20) - 4, 8)
    };
    c.device.accept(Instant::START, far);
    let mut out = Vec::new();
    c.device.advance(Instant::at_us(100), &mut out);
    assert!(out[0].error && log.borrow().is_empty());
    let run = c.run(10, 5, Nanos::ZERO, |i| command(Op::Read, i as u64 * 8, 8));
    assert_eq!(run.latency_ns.len(), 10);
    assert!(run.quantile_ms(1.0) < 2.2, "never more than two inside");
}

/// A guest over an aged image over a queue: the host's queue sees the chunks at their real places.
#[test]
fn guest_over_aged_image_accesses_chunks_at_their_real_places_in_the_host_queue() {
    let facts = QueueFacts::example(Era::K4_0);
    let dev = Constant::serial(1, Nanos::from_ms(1)).capacity(Sector(1 << 20));
    let queue = LegacyQueue::new(
        facts,
        TickClock::new(1000),
        LegacyOptions::default(),
        HostDriver::Simple { depth: 1 },
        dev,
        |_| Box::new(Noop::new()),
    );
    let options = RemapOptions {
        chunk: 128,
        aged: 1.0,
        covers: 0,
        tables: 0,
        seed: 3,
    };
    let image = Remapped::new(queue, options).unwrap();
    let mut c = Client::new(VirtualDisk::new(params(""), image, 1));
    // The first read covers two chunks that are not neighbours. The second read covers half a
    // chunk.
    let long = c.send(command(Op::Read, 0, 256)).as_us();
    let short = c.send(command(Op::Read, 1024, 64)).as_us();
    assert_eq!((long, short), (2_035, 1_035));
    assert_eq!(c.device.facts().max_sectors, Sectors(2048));
}
