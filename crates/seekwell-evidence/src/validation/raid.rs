//! Arrays: latencies that follow from formulas, and the gain from sorting above a stripe.

use super::backlog::{Cell, Policy, run};
use super::figure::{Bench, Bound, Figure, Group, Measured, Relation, SEED, row};
use seekwell_core::result::Record;
use seekwell_core::{BioSink, Instant, Nanos, Op, Sector};
use seekwell_device::open;
use seekwell_sim::drive::drive;
use seekwell_sim::procs::{Pattern, Process, Processes};
use seekwell_sim::setup::Setup;

/// Number of requests per measurement: of the gain, and of a formula.
const CELL: u64 = 4_000;
const CLOSED: u64 = 2_500;

fn gain(bench: &Bench, cell: Cell) -> Measured<f64> {
    let of = |policy| Ok(run(&cell, policy, bench.open("")?, CELL)?.iops());
    let (noop, sorted): (Measured<f64>, Measured<f64>) = (of(Policy::Noop), of(Policy::Clook));
    Ok(sorted? / noop?)
}

macro_rules! cell {
    ($disks:literal, $outstanding:literal, $depth:literal, $ncq:literal, $gain:literal) => {
        row(
            concat!(
                "controller:level=raid0,members=",
                $disks,
                ",of=(hdd:hitachi-7k500,depth=",
                $ncq,
                ",age_limit=0),depth=",
                $depth,
                ",disk_depth=",
                $ncq,
                ",firmware=0,link=1000000,write_policy=write-through,cache=0bytes"
            ),
            concat!(
                "gain of an elevator, ",
                $outstanding,
                " random reads outstanding"
            ),
            "x",
            ($gain, $gain),
            "another implementation of the same description",
            Relation::Prediction,
            Bound::Rule(0.05),
            |b| {
                gain(
                    b,
                    Cell {
                        disks: $disks,
                        outstanding: $outstanding,
                        depth: $depth,
                        ncq: $ncq,
                    },
                )
            },
        )
    };
}

/// Member disks for the comparison with formulas: no caches, one command at a time.
const MEMBER: &str = "(hdd:hitachi-7k500,depth=1,write_cache=off,look_ahead=off,p_miss=0)";

/// Runs requests on an array whose members use deadline. A completed request starts the next one.
fn array(bench: &Bench, op: Op, depth: u32, think: Nanos) -> Measured<Record> {
    let mut device = bench.spec.clone();
    if bench.null {
        let disk = open("hdd:hitachi-7k500", SEED)?;
        let mean = 12_900;
        let null = format!(
            "(constant:service_us={mean},depth=1,rotational=yes,capacity={})",
            disk.facts().capacity
        );
        device = device.replace(MEMBER, &null);
    }
    let setup = Setup {
        device,
        scheduler: "noop".to_owned(),
        seed: SEED,
        hz: 1000,
        nr_requests: Some(1024),
        ..Setup::default()
    };
    let mut queue = setup.build()?;
    let client = Process {
        op,
        pattern: Pattern::Random(Sector(0), queue.capacity()),
        sectors: 8,
        depth,
        think,
        stop: Instant::FAR,
        limit: if depth == 1 { CLOSED / 2 } else { CLOSED },
        ..Process::reader(1, 0)
    };
    let mut record = Record::default();
    let mut source = Processes::new(vec![client], SEED);
    drive(&mut queue, &mut source, &mut record, &mut |_, _| true)?;
    Ok(record)
}

/// Returns the mean latency in ms, with one request at a time. Without the think time, the requests
/// would stay in phase with the rotation of the disk.
fn latency(bench: &Bench, op: Op) -> Measured<f64> {
    let r = array(bench, op, 1, Nanos(3_141_593))?;
    let l = match op {
        Op::Read => r.read.latency,
        _ => r.write.latency,
    };
    Ok(l.mean_ns() / 1e6)
}

macro_rules! of {
    ($level:literal, $n:literal, $more:literal) => {
        concat!(
            $level,
            ":members=",
            $n,
            ",of=(hdd:hitachi-7k500,depth=1,write_cache=off,look_ahead=off,p_miss=0),stripe_cache=1024",
            $more
        )
    };
}

// Overhead t_o = 0.24 ms, mean seek 8.5 ms, settling before a write 0.7 ms, revolution T = 8.33 ms.

const FORMULA: &str = "closed form: t_o + seek + T/2";

#[rustfmt::skip]
static FIGURES: &[Figure] = &[
    row(of!("raid5", 8, ""), "small write, one at a time", "ms", (22.63, 22.63),
        "closed form: t_o + seek + 2T/3 + one revolution", Relation::Circular, Bound::Rule(0.10), |b| latency(b, Op::Write)),
    row(of!("raid5", 8, ""), "small writes, 64 outstanding", "1/s",
        (155.0, 188.0),
        "closed forms: n/4 times one disk's rate; n/2 times 1 / (access + one revolution)",
        Relation::Circular, Bound::Rule(0.10), |b| Ok(array(b, Op::Write, 64, Nanos::ZERO)?.iops())),
    row(of!("raid6", 8, ""), "small writes, 64 outstanding", "1/s",
        (103.0, 126.0),
        "closed forms: n/6 times one disk's rate; n/3 times 1 / (access + one revolution)",
        Relation::Circular, Bound::Rule(0.10), |b| Ok(array(b, Op::Write, 64, Nanos::ZERO)?.iops())),
    row(of!("raid1", 2, ""), "write, one at a time", "ms",
        (15.0, 15.0),
        "closed form: t_o + seek + settling + 2T/3", Relation::Circular, Bound::After(0.05),
        |b| latency(b, Op::Write)),
    row(of!("raid1", 2, ",read_policy=first"), "read, one at a time", "ms",
        (12.91, 12.91), FORMULA, Relation::Circular, Bound::After(0.03),
        |b| latency(b, Op::Read)),
    row(of!("raid0", 4, ""), "random reads of four disks, 4 outstanding", "IOPS", (200.0, 200.0),
        "another implementation of the same description", Relation::Prediction, Bound::Rule(0.05),
        |b| Ok(array(b, Op::Read, 4, Nanos::ZERO)?.iops())),
    cell!(1, 32, 1, 1, 1.74),
    cell!(1, 32, 31, 31, 1.00),
    cell!(1, 128, 31, 31, 1.21),
    cell!(1, 512, 31, 31, 1.47),
    cell!(4, 32, 4, 1, 1.41),
    cell!(4, 32, 31, 31, 1.00),
    cell!(4, 128, 31, 31, 1.21),
    cell!(4, 128, 128, 31, 1.00),
    cell!(4, 512, 31, 31, 1.57),
    cell!(4, 512, 128, 31, 1.22),
    cell!(4, 512, 1024, 31, 1.00),
    cell!(8, 128, 8, 1, 1.62),
    cell!(8, 128, 128, 31, 1.00),
    cell!(8, 512, 31, 31, 1.59),
    cell!(8, 512, 1024, 31, 1.00),
];

/// The published results of this family and their measurements.
pub static GROUP: Group = Group {
    title: "Arrays",
    note: "Published results for arrays cannot be compared with the model, because the arrays' \
           firmware is not known. The closed forms are formulas that follow from the disks' \
           parameters and the RAID level; n is the number of disks. The gain is that of an ideal \
           one-way elevator over noop, above a RAID 0 with limited queue depth. There is no gain \
           if the array accepts all outstanding requests. The disks of the null model have a \
           constant latency.",
    rule: "10 % for closed forms, and 5 % for a comparison with another implementation",
    figures: FIGURES,
};
