//! `io.cost` in front of a queue: readers without pause, at the depth that they have, on a device
//! whose model is right. Who has enough under way gets its weight's share of what the device does;
//! a cgroup that is idle leaves its share to the others; and one that is not deep enough cannot
//! take its own, as on a kernel.

use seekwell_block::{MqDriver, MqQueue};
use seekwell_core::{
    Bio, BioDone, BioSink, CgroupId, Control, Device, Era, Flags, Instant, IoCostModel, IoCostQos,
    Nanos, Op, TaskId, TickClock,
};
use seekwell_device::Constant;
use seekwell_sched::QueueFacts;
use seekwell_sched::none::NoScheduler;

type Queue = MqQueue<NoScheduler, Constant>;

/// Reads a second of device and model.
const IOPS: u64 = 4000;

/// A reader: weight of its cgroup, requests at a time, and when it rests.
#[derive(Clone, Copy)]
struct Reader {
    weight: u32,
    depth: usize,
    rests_s: (u64, u64),
}

struct World {
    q: Queue,
    readers: Vec<Reader>,
    outstanding: Vec<usize>,
    /// Reads that were done, by reader, in each second.
    done: Vec<Vec<u64>>,
    random: u64,
    next_id: u64,
}

/// What stands below, and what `io.cost` is told of it.
#[derive(Clone, Copy)]
struct Disk {
    service: Nanos,
    tags: u32,
    rotational: bool,
    /// Is it told what the device does, with a goal of 90 % within 5 ms? Otherwise the kernel's own
    /// figures stand.
    told: bool,
}

/// One that serves 4000 reads a second, one at a time, and of which `io.cost` knows that.
const KNOWN: Disk = Disk {
    service: Nanos(1_000_000_000 / IOPS),
    tags: 1024,
    rotational: false,
    told: true,
};

impl World {
    fn new(disk: Disk, readers: &[Reader], on: bool) -> Self {
        let dev = Constant::serial(disk.tags, disk.service);
        let mut about = dev.facts().clone();
        about.rotational = disk.rotational;
        let dev = dev.with_facts(about);
        let driver = MqDriver::Tag { depth: disk.tags };
        let facts = QueueFacts {
            rotational: disk.rotational,
            ..QueueFacts::example(Era::Mq)
        };
        let clock = TickClock::new(250);
        let mut q = MqQueue::new(facts, clock, driver, true, dev, |cx| {
            Box::new(NoScheduler::new(cx))
        });
        let mut say = |what| q.control(Instant::START, what);
        for (i, r) in (1..).zip(readers) {
            say(Control::CgroupNew(CgroupId(i), CgroupId::ROOT));
            say(Control::IoWeight(CgroupId(i), r.weight));
            say(Control::Cgroup(TaskId(i), CgroupId(i)));
        }
        let mut qos = IoCostQos {
            enable: on,
            ..IoCostQos::default()
        };
        if disk.told {
            let bps = IOPS * 4096;
            say(Control::IoCostModel(IoCostModel {
                rbps: bps,
                rseqiops: IOPS,
                rrandiops: IOPS,
                wbps: bps,
                wseqiops: IOPS,
                wrandiops: IOPS,
            }));
            (qos.rpct_ppm, qos.wpct_ppm) = (Some(900_000), Some(900_000));
            (qos.rlat_us, qos.wlat_us) = (Some(5000), Some(5000));
        }
        say(Control::IoCostQos(qos));
        World {
            q,
            readers: readers.to_vec(),
            outstanding: vec![0; readers.len()],
            done: vec![Vec::new(); readers.len()],
            random: 1,
            next_id: 0,
        }
    }
    fn submit(&mut self, now: Instant) {
        let second = now.since_start() / 1_000_000_000;
        for i in 0..self.readers.len() {
            let r = self.readers[i];
            let rests = (r.rests_s.0..r.rests_s.1).contains(&second);
            let task = TaskId(i as u32 + 1);
            while self.outstanding[i] < r.depth && !rests && !self.q.waits(task) {
                self.random = (self.random.wrapping_mul(6_364_136_223_846_793_005))
                    .wrapping_add(1_442_695_040_888_963_407);
                let sector = (self.random >> 34) * 8;
                let id = self.next_id * self.readers.len() as u64 + i as u64;
                let mut bio = Bio::new(id, task, Op::Read, Flags::empty(), sector, 8);
                bio.cgroup = CgroupId(task.0);
                self.next_id += 1;
                self.outstanding[i] += 1;
                self.q.submit(now, bio);
            }
        }
    }
    fn run(&mut self, seconds: u64) {
        let end = Instant::at_us(seconds * 1_000_000);
        let mut out: Vec<BioDone> = Vec::new();
        let mut now = Instant::START;
        loop {
            self.submit(now);
            let Some(next) = self.q.next_event().filter(|t| *t <= end) else {
                return;
            };
            self.q.advance(next, &mut out);
            now = next;
            for d in out.drain(..) {
                let i = (d.id.0 % self.readers.len() as u64) as usize;
                self.outstanding[i] -= 1;
                let second = (d.at.since_start() / 1_000_000_000) as usize;
                let seconds = &mut self.done[i];
                seconds.resize(seconds.len().max(second + 1), 0);
                seconds[second] += 1;
            }
        }
    }
}

/// Reads a second of each, over these seconds.
fn rates(disk: Disk, readers: &[Reader], on: bool, over: std::ops::Range<usize>) -> Vec<f64> {
    let mut w = World::new(disk, readers, on);
    w.run(over.end as u64);
    let length = over.len() as f64;
    let sum = |d: &Vec<u64>| d.iter().take(over.end).skip(over.start).sum::<u64>() as f64;
    w.done.iter().map(|d| sum(d) / length).collect()
}
/// Readers without end.
fn readers(depth: usize, weights: &[u32]) -> Vec<Reader> {
    let one = |weight: &u32| Reader {
        weight: *weight,
        depth,
        rests_s: (0, 0),
    };
    weights.iter().map(one).collect()
}

#[test]
fn who_has_enough_under_way_gets_the_share_of_its_weight() {
    for weights in [
        &[100, 300][..],
        &[300, 100],
        &[100, 100],
        &[100, 200, 300, 400],
    ] {
        let all: u32 = weights.iter().sum();
        let of = readers(128, weights);
        let with = rates(KNOWN, &of, true, 10..30);
        let total: f64 = with.iter().sum();
        for (rate, weight) in with.iter().zip(weights) {
            let fair = f64::from(*weight) / f64::from(all);
            let off = (rate / total / fair - 1.0).abs();
            assert!(off < 0.05, "{weights:?}: {with:?}");
        }
        // A tenth of the device is the price.
        assert!(total > 0.9 * IOPS as f64, "{weights:?}: {with:?}");
        // Without it depth decides, and depths are the same.
        let without = rates(KNOWN, &of, false, 10..30);
        let even = IOPS as f64 / weights.len() as f64;
        assert!(
            without.iter().all(|r| (r / even - 1.0).abs() < 0.02),
            "{without:?}"
        );
    }
}

#[test]
fn c1_a_share_that_the_depth_does_not_reach_is_given_away() {
    // Kernel: 4000 alone; at depth 16 each 1,200 and 2,300 with weights of 100 and 300.
    let alone = rates(KNOWN, &readers(16, &[100]), true, 5..20);
    assert!(alone[0] > 3960.0, "{alone:?}");
    let both = rates(KNOWN, &readers(16, &[100, 300]), true, 5..30);
    assert!((1140.0..1260.0).contains(&both[0]), "{both:?}");
    assert!((2070.0..2530.0).contains(&both[1]), "{both:?}");
}

#[test]
fn c2_what_a_light_group_leaves_goes_to_the_heavy_one() {
    // Kernel: 160 to 200 and 3,000 to 3,400 with equal weights, not half each. (Here the light one
    // waits for 16 reads of 0.25 ms, and the latency that is promised is kept.)
    let mut of = readers(16, &[100, 100]);
    of[0].depth = 1;
    let both = rates(KNOWN, &of, true, 5..30);
    assert!(both[0] < 300.0 && both[1] > 3000.0, "{both:?}");
}

#[test]
fn c3_without_goals_only_tags_that_run_out_slow_the_clock() {
    // Kernel: 71 and 71 on a disk of 7 ms, weights of 100 and 200 at depth 4: it takes a seek for
    // 2.7 ms.
    let disk = Disk {
        service: Nanos::from_ms(7),
        tags: 32,
        rotational: true,
        told: false,
    };
    let both = rates(disk, &readers(4, &[100, 200]), true, 10..40);
    assert!(both.iter().all(|r| (r - 71.4).abs() < 1.0), "{both:?}");
    // Kernel: 574 and 1,195 where both want more than there are tags, after it has slowed down.
    let flash = Disk {
        tags: 16,
        told: false,
        ..KNOWN
    };
    let both = rates(flash, &readers(32, &[100, 200]), true, 3..4);
    assert!((545.0..603.0).contains(&both[0]), "{both:?}");
    assert!((1135.0..1255.0).contains(&both[1]), "{both:?}");
    // And 1,224 and 2,481 when it has found its rate.
    let both = rates(flash, &readers(32, &[100, 200]), true, 15..30);
    assert!((1163.0..1347.0).contains(&both[0]), "{both:?}");
    assert!((2357.0..2729.0).contains(&both[1]), "{both:?}");
}

#[test]
fn a_group_that_stops_leaves_its_share_and_gets_it_back() {
    let mut of = readers(128, &[300, 100]);
    of[0].rests_s = (10, 20);
    let alone = rates(KNOWN, &of, true, 11..20);
    assert!(alone[0] == 0.0 && alone[1] > 0.9 * IOPS as f64, "{alone:?}");
    for over in [1..10, 21..30] {
        let both = rates(KNOWN, &of, true, over);
        assert!((both[0] / both[1] / 3.0 - 1.0).abs() < 0.05, "{both:?}");
    }
}
