//! Hard disks, compared with data sheets, reviews and another emulator. The preset for a laptop
//! drive is also compared with the benchmark series that used this drive.

mod measure;

use super::figure::Bound::{After, Any, Rule};
use super::figure::Relation::{Circular, Fitted, HeldOut, Indicative, Prediction};
use super::figure::{Figure, Group, row};
use measure as m;

/// The published results of this family and their measurements.
pub static GROUP: Group = Group {
    title: "Hard disks",
    note: "Rates in MB/s are of 10^6 bytes. The model of the enterprise drive is 10 % low in the \
           outer rate and about 14 % low in the gain from the queue. The nearline drive uses the \
           same arm model, and its gain is also low. All these results are held out, so the model \
           is not adjusted.",
    rule: "3 % for rates and means at depth 1, and 10 % for rates and means at larger depths",
    figures: FIGURES,
};

#[rustfmt::skip]
static FIGURES: &[Figure] = &[
    row("hdd:hitachi-7k500", "sequential read, outer", "MB/s", (64.8, 64.8),
        "OEM specification", Fitted, Rule(0.03), |b| m::sequential_at(b, 0.0)),
    row("hdd:hitachi-7k500", "sequential read, inner", "MB/s", (31.0, 31.0),
        "OEM specification", HeldOut, After(0.033), |b| m::sequential_at(b, 1.0)),
    row("hdd:hitachi-7k500", "random 4 KiB read, depth 1", "ms", (12.90, 12.90),
        "OEM specification (4096 reads in 55.5 s, 1.05 x calculated)", Fitted, Rule(0.03), m::random_ms),
    row("hdd:hitachi-t7k250", "sequential read, outer", "MB/s", (67.8, 67.8),
        "Tech Report", Fitted, Rule(0.03), |b| m::sequential_at(b, 0.0)),
    row("hdd:hitachi-t7k250", "sequential read, inner", "MB/s", (32.9, 32.9),
        "Tech Report", Fitted, Rule(0.03), |b| m::sequential_at(b, 1.0)),
    row("hdd:hitachi-t7k250", "random 4 KiB read, depth 1", "ms", (12.69, 12.69),
        "OEM specification (4096 reads in 54.6 s, 1.05 x calculated)", HeldOut, After(0.046),
        m::random_ms),
    row("hdd:hus728t8", "random 4 KiB read, depth 1", "ms", (12.2, 12.2),
        "data sheet, seek plus latency", Circular, Rule(0.03), m::random_ms),
    row("hdd:hus728t8", "sequential read, outer", "MB/s", (255.0, 255.0),
        "data sheet, by ublk-disksim", HeldOut, After(0.13), |b| m::sequential_at(b, 0.0)),
    row("hdd:hus728t8", "random 4 KiB read, depth 31", "IOPS", (200.0, 200.0),
        "ublk-disksim: typical, depth 32", HeldOut, After(0.18), |b| m::random_iops(b, 31)),
    row("hdd:exos-x18", "sequential read, outer", "MB/s", (270.0, 270.0),
        "data sheet (recalled)", Circular, Rule(0.03), |b| m::sequential_at(b, 0.0)),
    row("hdd:exos-x18", "random 4 KiB read, depth 16", "IOPS", (170.0, 170.0),
        "data sheet (recalled), depth 16", HeldOut, After(0.153), |b| m::random_iops(b, 16)),
    row("hdd:exos-x18", "sequential write, outer", "MB/s", (270.0, 270.0),
        "data sheet (recalled): one rate for both", Circular, After(0.05), m::sequential_write),
    row("hdd:hus728t8", "sequential write, outer", "MB/s", (255.0, 255.0),
        "data sheet, by ublk-disksim: one rate for both", HeldOut, After(0.13), m::sequential_write),
    row("hdd:sata320-2006", "sequential read, mean", "MB/s", (62.0, 62.0),
        "goughlui.com, ST3320620A, HD Tune", Fitted, Rule(0.03), m::sequential_mean),
    row("hdd:st2000dm006", "random 4 KiB read, depth 1", "ms", (17.2, 17.8),
        "ublk-disksim README", Fitted, Rule(0.03), m::random_ms),
    row("hdd:st2000dm006", "random 4 KiB read, depth 1, p99", "ms", (28.7, 28.7),
        "ublk-disksim README", HeldOut, After(0.04), m::random_p99_ms),
    row("hdd:st2000dm006", "random 4 KiB read, depth 1, p99.9", "ms", (103.0, 103.0),
        "ublk-disksim README; caused by error recovery, which no preset models", Indicative, Any,
        m::random_p999_ms),
    row("hdd:st2000dm006", "random 4 KiB write", "IOPS", (124.0, 124.0),
        "ublk-disksim README", Indicative, Any, m::random_writes),
    row("hdd:st2000dm006", "sequential write, outer to mean", "MB/s", (132.0, 132.0),
        "ublk-disksim README, NTFS file spread over the drive", Indicative, Any,
        m::sequential_write),
    row("hdd:st2000dm006", "random 4 KiB read, depth 31", "IOPS", (94.0, 94.0),
        "ublk-disksim README, depth 32", Fitted, Rule(0.10), |b| m::random_iops(b, 31)),
    row("hdd:st2000dm006", "flush after 8 scattered 4 KiB writes", "ms", (127.0, 127.0),
        "ublk-disksim README", HeldOut, After(0.21), |b| m::flush_ms(b, 8)),
    row("hdd:st2000dm006", "flush after 64 scattered 4 KiB writes", "ms", (630.0, 630.0),
        "ublk-disksim README", HeldOut, After(0.19), |b| m::flush_ms(b, 64)),
    row("hdd:st2000dm006", "sequential read, mean to outer", "MB/s", (143.0, 143.0),
        "ublk-disksim README, NTFS file spread over the drive", Indicative, Any, m::sequential_mean),
    row("hdd:hitachi-7k500", "gain of depth 31 over depth 1", "x", (2.0, 2.0),
        "PC Perspective 2015, WD Black 6 TB, depth 32", Fitted, Rule(0.10), |b| m::gain(b, 31)),
    row("hdd:hitachi-7k500,policy=clook,p_miss=0,age_limit=0", "gain of a host elevator, 31 readers",
        "x", (1.5, 1.5), "ilsistemista.net 2013, 500 GB drive, NCQ off, 32 readers", HeldOut, After(0.19),
        |b| m::gain(b, 31)),
    row("hdd:hitachi-7k200", "sequential read, outer tenth", "MB/s", (65.5, 68.7),
        "Phoronix 2012, IOzone 8 GB, 64 KiB records (MB taken as MiB)", Indicative, Any,
        |b| m::sequential_at(b, 0.1)),
    row("hdd:hitachi-7k200", "commits per second, upper limit", "1/s", (112.0, 120.0),
        "Phoronix 2012, pgbench, client count not stated", Indicative, Any, m::commits),
    row("hdd:hitachi-7k200", "sorted 4 KiB writes in 1 GiB", "MB/s", (1.82, 2.01),
        "Phoronix 2012, tiobench random write (not the same workload)", Indicative, Any,
        m::sorted_writes),
    row("hdd:hitachi-7k200,bus=10MB/s", "random 1 MiB read, depth 8", "MB/s", (10.0, 10.0),
        "the rate of the link", Circular, Rule(0.03),
        m::random_large),
    row("hdd:hitachi-7k200", "random 4 KiB read, depth 1", "IOPS", (69.3, 69.3),
        "another implementation", Prediction, Rule(0.03), |b| m::random_iops(b, 1)),
    row("hdd:hitachi-7k200", "random 4 KiB read, depth 31", "IOPS", (120.0, 137.0),
        "another implementation", Prediction, Rule(0.10), |b| m::random_iops(b, 31)),
    row("hdd:hitachi-7k200", "sequential read, inner", "MB/s", (34.8, 34.8),
        "another implementation", Prediction, Rule(0.03), |b| m::sequential_at(b, 1.0)),
    row("hdd:hitachi-7k200", "sequential read, mean", "MB/s", (54.6, 54.6),
        "another implementation", Prediction, Rule(0.03), m::sequential_mean),
];
