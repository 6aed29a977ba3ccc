//! SSDs: rates at the smallest and largest queue depth, the effect of the drive's state, and
//! flushes.

use super::figure::Bound::{After, Any, Range, Rule};
use super::figure::Relation::{Fitted, HeldOut, Indicative, Prediction};
use super::figure::{Bench, Figure, Group, Measured, SEED, row};
use seekwell_core::{Accept, Done, Instant, Nanos, Op, rng};
use seekwell_device::probe::{Client, Run, below, command};

/// The published results of this family and their measurements.
pub static GROUP: Group = Group {
    title: "SSDs and UFS",
    note: "MB/s are of 10^6 bytes. IOPS are of random 4 KiB commands over the whole drive. The \
           internal parameters are fitted and not known; several sets of parameters give the same \
           results. Data sheets marked \"recalled\" were not checked again. Unless a row says \
           otherwise, the drive is full and the model is the cheap variant.",
    rule: "5 % for random 4 KiB accesses at depth 1, and 10 % for all other rates",
    figures: FIGURES,
};

const X25M: &str = "ssd:x25m-g2-160";
const S3700: &str = "ssd:s3700-100";
const S830: &str = "ssd:sata3-256-2011";
const EVO870: &str = "ssd:sata-tlc-1t";
const PRO990: &str = "ssd:nvme-gen4-tlc-2t";
const PM9A3: &str = "ssd:nvme-dc-2t";
const SHEET: &str = "data sheet";
const RECALLED: &str = "data sheet (recalled)";
const KITGURU: &str = "KitGuru review";
const DISKSIM: &str = "data sheet, by ublk-disksim";

const UFS31: &str = "ufs:ufs31-256";
const UFS40: &str = "ufs:ufs40-256";
const QLC: &str = "ssd:nvme-qlc-1t";
const SN570: &str = "ssd:nvme-dramless-1t";
const P4800X: &str = "ssd:optane-p4800x";
const UAS: &str = "ssd:usb-sata-uas";
const BOT: &str = "ssd:usb-sata-bot";
const SAMSUNG_UFS: &str = "Samsung, in moneycontrol.com, Jan 2023";
const ANDROBENCH_UFS: &str = "AndroBench on phones, Notebookcheck (recalled, approximate)";
const EVANTECH: &str = "Intel, in evantechbook.com";
const TOMS: &str = "Tom's Hardware";
const WD: &str = "WD, table at ssdwiki.com";
const ANANDTECH: &str = "AnandTech, P4800X";
const PI_STORAGE: &str = "ricsanfre/pi-storage-benchmark, Raspberry Pi 4";
const GEERLING: &str = "Geerling, Raspberry Pi 4, 2020";

#[rustfmt::skip]
static FIGURES: &[Figure] = &[
    row(X25M, "random read, depth 1", "IOPS", (5000.0, 5000.0),
        "reviews of the time (recalled), 20 MB/s", HeldOut, After(0.08), |b| reads(b, 1)),
    row(X25M, "random read, depth 3", "IOPS", (15_000.0, 15_600.0),
        "AnandTech, Iometer (recalled), 61 to 64 MB/s", Fitted, Rule(0.10), |b| reads(b, 3)),
    row(X25M, "random read, depth 32", "IOPS", (50_000.0, 50_000.0),
        "Tom's Hardware, 4 threads (the sheet says up to 35 000)", Fitted, Rule(0.10), |b| reads(b, 31)),
    row(X25M, "sequential read", "MB/s", (267.0, 267.0),
        "Phoronix 2012, IOzone 254.8 MiB/s", Fitted, After(0.05), |b| sequential(b, "", Op::Read, 4)),
    row(X25M, "sequential write", "MB/s", (104.0, 112.0),
        "Phoronix 2012, IOzone 99 to 107 MiB/s", Fitted, Rule(0.10), |b| sequential(b, "", Op::Write, 4)),
    row(X25M, "random write, depth 31", "IOPS", (22_500.0, 24_300.0),
        "Phoronix 2012, tiobench 88 to 95 MiB/s, sorted batches", Fitted, Rule(0.10), |b| writes(b, "", 31)),
    row(X25M, "random write, depth 32, state not stated", "IOPS", (8600.0, 8600.0),
        SHEET, Indicative, Any, |b| writes(b, "", 31)),
    row(X25M, "random write, steady state", "IOPS", (3174.0, 3174.0),
        "another implementation", Prediction, After(0.05), |b| writes(b, ",state=steady", 31)),
    row(X25M, "write 8 KiB and flush", "ms", (0.5, 0.6),
        "derived from pgbench on it, Phoronix 2012, client count not stated", Indicative, Any,
        commit_ms),
    row(S3700, "random read, depth 1", "IOPS", (6600.0, 6600.0),
        "AnandTech, 27.2 MB/s, size not stated", Fitted, Rule(0.05), |b| reads(b, 1)),
    row(S3700, "random read, depth 8", "IOPS", (58_400.0, 58_400.0),
        "AnandTech, size not stated", HeldOut, After(0.19), |b| reads(b, 8)),
    row(S3700, "random read, depth 32", "IOPS", (75_000.0, 75_000.0),
        RECALLED, Fitted, Rule(0.10), |b| reads(b, 31)),
    row(S3700, "sequential read", "MB/s", (500.0, 500.0),
        RECALLED, HeldOut, After(0.12), |b| sequential(b, "", Op::Read, 8)),
    row(S3700, "sequential write", "MB/s", (200.0, 200.0),
        RECALLED, Fitted, Rule(0.10), |b| sequential(b, "", Op::Write, 8)),
    row(S3700, "random write, steady state", "IOPS", (19_000.0, 19_000.0),
        RECALLED, HeldOut, After(0.12), |b| writes(b, ",state=steady", 31)),
    row("ssd:s3700-100,variant=detailed,scale=64", "random write, steady state", "IOPS",
        (19_000.0, 19_000.0), RECALLED, HeldOut, After(0.12), |b| writes(b, ",state=steady", 31)),
    row(S830, "random read, depth 32", "IOPS", (80_000.0, 80_000.0),
        RECALLED, Fitted, Rule(0.10), |b| reads(b, 31)),
    row(S830, "random read, depth 1, less the host", "IOPS", (6341.0, 6780.0),
        "seeker 2012, through the page cache; drive not known", Indicative, Any, |b| reads(b, 1)),
    row(S830, "sequential read", "MB/s", (520.0, 520.0),
        RECALLED, HeldOut, After(0.07), |b| sequential(b, "", Op::Read, 8)),
    row(S830, "sequential read, depth 1", "MB/s", (491.0, 496.0),
        "hdparm 2012, through the page cache; drive not known", Indicative, Any,
        |b| sequential(b, "", Op::Read, 1)),
    row(S830, "sequential write", "MB/s", (400.0, 400.0),
        RECALLED, Fitted, Rule(0.10), |b| sequential(b, "", Op::Write, 8)),
    row(S830, "random write, depth 32", "IOPS", (36_000.0, 36_000.0),
        RECALLED, Fitted, Rule(0.10), |b| writes(b, "", 31)),
    row(EVO870, "random read, depth 1", "IOPS", (13_000.0, 13_000.0),
        SHEET, Fitted, Rule(0.05), |b| reads(b, 1)),
    row(EVO870, "random read, depth 32", "IOPS", (98_000.0, 98_000.0),
        SHEET, Fitted, Rule(0.10), |b| reads(b, 31)),
    row(EVO870, "random read, depth 32", "IOPS", (94_003.0, 94_003.0),
        KITGURU, HeldOut, After(0.08), |b| reads(b, 31)),
    row(EVO870, "random write, depth 1", "IOPS", (36_000.0, 36_000.0),
        SHEET, Fitted, Rule(0.05), |b| writes(b, ",state=fresh", 1)),
    row(EVO870, "random write, depth 32", "IOPS", (88_000.0, 88_000.0),
        SHEET, Fitted, Rule(0.10), |b| writes(b, ",state=fresh", 31)),
    row(EVO870, "random write, depth 32", "IOPS", (84_058.0, 84_058.0),
        KITGURU, HeldOut, After(0.09), |b| writes(b, ",state=fresh", 31)),
    row(EVO870, "sequential read", "MB/s", (560.0, 560.0),
        SHEET, Fitted, After(0.05), |b| sequential(b, "", Op::Read, 8)),
    row(EVO870, "sequential write", "MB/s", (530.0, 530.0),
        SHEET, HeldOut, After(0.08), |b| sequential(b, ",state=fresh", Op::Write, 8)),
    row(EVO870, "remaining reads next to a syncing writer", "share", (0.057, 0.057),
        "ublk-disksim, a real 850 EVO: 10 700 to 612 a second", Indicative, Any, left_beside_syncs),
    row(PRO990, "random read, depth 1", "IOPS", (22_000.0, 22_000.0),
        RECALLED, Fitted, Rule(0.05), |b| reads(b, 1)),
    row(PRO990, "random read, depth 256", "IOPS", (1.4e6, 1.4e6),
        SHEET, Fitted, Rule(0.10), |b| reads(b, 256)),
    row(PRO990, "random write, depth 1, fresh", "IOPS", (80_000.0, 80_000.0),
        RECALLED, Fitted, Rule(0.05), |b| writes(b, ",state=fresh", 1)),
    row(PRO990, "random write, depth 256, fresh", "IOPS", (1.55e6, 1.55e6),
        SHEET, Fitted, Rule(0.10), |b| writes(b, ",state=fresh", 256)),
    row(PRO990, "sequential read", "MB/s", (7450.0, 7450.0),
        SHEET, Fitted, After(0.05), |b| sequential(b, "", Op::Read, 8)),
    row(PRO990, "sequential write, fresh", "MB/s", (6900.0, 6900.0),
        SHEET, Fitted, Rule(0.10), |b| sequential(b, ",state=fresh", Op::Write, 8)),
    row(PRO990, "sequential write, fast region full", "MB/s", (1400.0, 1400.0),
        RECALLED, Fitted, Rule(0.10), |b| sequential(b, ",slc_bytes=0", Op::Write, 8)),
    row(PRO990, "random write, steady state", "IOPS", (63_000.0, 63_000.0),
        "closed form", Prediction, After(0.05), |b| writes(b, ",state=steady", 256)),
    row(PM9A3, "random read, depth 1", "us", (80.0, 80.0),
        SHEET, Fitted, Rule(0.05), |b| Ok(1e6 / reads(b, 1)?)),
    row(PM9A3, "random read, depth 256", "IOPS", (850_000.0, 850_000.0),
        DISKSIM, Fitted, Rule(0.10), |b| reads(b, 256)),
    row(PM9A3, "random write, depth 1", "us", (30.0, 30.0),
        SHEET, HeldOut, After(0.64), |b| Ok(1e6 / writes(b, "", 1)?)),
    row(PM9A3, "random write, depth 1", "us", (14.0, 14.0),
        "ublk-disksim, measured with fsync", HeldOut, After(0.20), |b| Ok(1e6 / writes(b, "", 1)?)),
    row(PM9A3, "sequential write", "MB/s", (2700.0, 2700.0),
        SHEET, Fitted, Rule(0.10), |b| sequential(b, "", Op::Write, 8)),
    row(PM9A3, "random write, steady state", "IOPS", (130_000.0, 130_000.0),
        SHEET, HeldOut, After(0.23), |b| writes(b, ",state=steady", 256)),
    row("ssd:nvme-dc-2t,variant=detailed,scale=128", "random write, steady state", "IOPS",
        (130_000.0, 130_000.0), SHEET, HeldOut, After(0.23), |b| writes(b, ",state=steady", 256)),
    row(UFS31, "sequential read", "MB/s", (2100.0, 2100.0),
        SAMSUNG_UFS, Fitted, Rule(0.10), |b| sequential(b, "", Op::Read, 8)),
    row(UFS31, "sequential write, WriteBooster", "MB/s", (1200.0, 1200.0),
        SAMSUNG_UFS, Fitted, Rule(0.10), |b| sequential(b, ",state=fresh", Op::Write, 8)),
    row(UFS31, "sequential write, no WriteBooster", "MB/s", (557.0, 557.0),
        "Kioxia 256 GB on a Radxa Dragon Q6A, dd", Fitted, Rule(0.10), |b| sequential(b, ",slc_bytes=0", Op::Write, 8)),
    row(UFS31, "random read, depth 32", "IOPS", (100_000.0, 100_000.0),
        RECALLED, Fitted, Rule(0.10), |b| reads(b, 32)),
    row(UFS31, "random write, depth 32, WriteBooster", "IOPS", (70_000.0, 70_000.0),
        RECALLED, Fitted, Rule(0.10), |b| writes(b, ",state=fresh", 32)),
    // The bound before the run was the published range.
    row(UFS31, "sequential 512 KiB read, depth 1", "MB/s", (1703.0, 1811.0),
        "two chips on a Radxa Dragon Q6A, dd", HeldOut, After(0.15), |b| in_order(b, Op::Read, 1024, 1)),
    row(UFS31, "random read, 8 threads", "MB/s", (200.0, 300.0),
        ANDROBENCH_UFS, Indicative, Any, |b| Ok(reads(b, 8)? * 4096.0 / 1e6)),
    row(UFS31, "random write, 8 threads, WriteBooster", "MB/s", (200.0, 300.0),
        ANDROBENCH_UFS, HeldOut, Range, |b| Ok(writes(b, ",state=fresh", 8)? * 4096.0 / 1e6)),
    row(UFS40, "sequential read", "MB/s", (4200.0, 4200.0),
        SAMSUNG_UFS, Fitted, Rule(0.10), |b| sequential(b, "", Op::Read, 8)),
    row(UFS40, "sequential write, WriteBooster", "MB/s", (2800.0, 2800.0),
        SAMSUNG_UFS, Fitted, Rule(0.10), |b| sequential(b, ",state=fresh", Op::Write, 8)),
    row(UFS40, "random read, 8 threads", "MB/s", (400.0, 400.0),
        ANDROBENCH_UFS, Fitted, Rule(0.10), |b| Ok(reads(b, 8)? * 4096.0 / 1e6)),
    row(UFS40, "random write, 8 threads, WriteBooster", "MB/s", (400.0, 600.0),
        ANDROBENCH_UFS, Indicative, Any, |b| Ok(writes(b, ",state=fresh", 8)? * 4096.0 / 1e6)),
    // The bound before the run was the published range.
    row(UFS40, "sequential 512 KiB read, depth 1", "MB/s", (3300.0, 3700.0),
        ANDROBENCH_UFS, HeldOut, After(0.13), |b| in_order(b, Op::Read, 1024, 1)),
    row(QLC, "random read, depth 1, data on QLC", "IOPS", (6836.0, 6836.0),
        "AnandTech, full drive (recalled), 28 MB/s", Fitted, Rule(0.05), |b| reads(b, 1)),
    row(QLC, "random read, depth 256, within 8 GiB", "IOPS", (150_000.0, 150_000.0),
        RECALLED, Fitted, Rule(0.10), |b| within(b, "", Op::Read, 8, 256)),
    row(QLC, "random read, depth 256, within 8 GiB", "IOPS", (160_000.0, 160_000.0),
        TOMS, HeldOut, Rule(0.10), |b| within(b, "", Op::Read, 8, 256)),
    row(QLC, "random write, depth 256, fast region", "IOPS", (220_000.0, 220_000.0),
        EVANTECH, Fitted, Rule(0.10), |b| writes(b, ",state=fresh", 256)),
    row(QLC, "random write, depth 256, fast region", "IOPS", (240_000.0, 240_000.0),
        TOMS, HeldOut, Rule(0.10), |b| writes(b, ",state=fresh", 256)),
    row(QLC, "sequential read", "MB/s", (1800.0, 1800.0),
        EVANTECH, Fitted, Rule(0.10), |b| sequential(b, "", Op::Read, 8)),
    row(QLC, "sequential write, fast region", "MB/s", (1800.0, 1800.0),
        EVANTECH, Fitted, Rule(0.10), |b| sequential(b, ",state=fresh", Op::Write, 8)),
    row(QLC, "sequential write, without the fast region", "MB/s", (100.0, 100.0),
        EVANTECH, Fitted, Rule(0.10), |b| sequential(b, ",slc_bytes=0", Op::Write, 8)),
    // The bound by the rule was 10 %.
    row(QLC, "sequential write, without the fast region", "MB/s", (60.0, 60.0),
        "Linux Format 2019, Crucial P1: same controller and flash", HeldOut, After(0.70),
        |b| sequential(b, ",slc_bytes=0", Op::Write, 8)),
    row(SN570, "random read, depth 1, within 1 GiB", "IOPS", (15_500.0, 15_500.0),
        "CrystalDiskMark in reviews (recalled), 63 MB/s", Fitted, Rule(0.05), |b| within(b, "", Op::Read, 1, 1)),
    row(SN570, "random read, depth 256, within 8 GiB", "IOPS", (460_000.0, 460_000.0),
        WD, Fitted, Rule(0.10), |b| within(b, "", Op::Read, 8, 256)),
    row(SN570, "random write, depth 256, within 8 GiB, fresh", "IOPS", (450_000.0, 450_000.0),
        WD, Fitted, Rule(0.10), |b| within(b, ",state=fresh", Op::Write, 8, 256)),
    // The bound by the rule was 5 %.
    row(SN570, "random write within 1 GiB, depth 1, fresh", "IOPS", (53_000.0, 53_000.0),
        "CrystalDiskMark in reviews (recalled, approximate)", HeldOut, After(0.12),
        |b| within(b, ",state=fresh", Op::Write, 1, 1)),
    row(SN570, "sequential read", "MB/s", (3500.0, 3500.0),
        WD, Fitted, Rule(0.10), |b| sequential(b, "", Op::Read, 8)),
    row(SN570, "sequential 1 MiB read, depth 32", "MB/s", (3508.0, 3508.0),
        "fio, a repository's test record", HeldOut, Rule(0.10), |b| in_order(b, Op::Read, 2048, 32)),
    row(SN570, "sequential write, fresh", "MB/s", (3000.0, 3000.0),
        WD, Fitted, Rule(0.10), |b| sequential(b, ",state=fresh", Op::Write, 8)),
    row(SN570, "sequential write, without the fast region", "MB/s", (600.0, 600.0),
        "TechPowerUp (recalled)", Fitted, Rule(0.10), |b| sequential(b, ",slc_bytes=0", Op::Write, 8)),
    row(P4800X, "random read, depth 1", "IOPS", (108_300.0, 108_300.0),
        ANANDTECH, Fitted, Rule(0.05), |b| reads(b, 1)),
    row(P4800X, "random read, depth 16", "IOPS", (550_000.0, 550_000.0),
        "Intel, in AnandTech", Fitted, Rule(0.10), |b| reads(b, 16)),
    row(P4800X, "random read, depth 16", "IOPS", (584_800.0, 584_800.0),
        ANANDTECH, HeldOut, Rule(0.10), |b| reads(b, 16)),
    row(P4800X, "random 8 KiB read, depth 8", "IOPS", (280_000.0, 280_000.0),
        "Tom's Hardware, P4800X", HeldOut, Rule(0.10), |b| at_random(b, "", Op::Read, 16, None, 8, 0, 20_000).map(|r| r.iops())),
    row(P4800X, "random write, depth 16", "IOPS", (500_000.0, 500_000.0),
        RECALLED, Fitted, Rule(0.10), |b| writes(b, "", 16)),
    row(P4800X, "random write, depth 1, mean latency", "us", (8.0, 10.5),
        RECALLED, Indicative, Any, |b| Ok(1e6 / writes(b, "", 1)?)),
    row(P4800X, "random, 70 % reads, depth 16", "IOPS", (500_000.0, 500_000.0),
        RECALLED, HeldOut, Rule(0.10), |b| mixed(b, 70, 16)),
    row(P4800X, "sequential read", "MB/s", (2400.0, 2400.0),
        RECALLED, Fitted, Rule(0.10), |b| sequential(b, "", Op::Read, 8)),
    row(P4800X, "sequential write", "MB/s", (2000.0, 2000.0),
        RECALLED, Fitted, Rule(0.10), |b| sequential(b, "", Op::Write, 8)),
    row(UAS, "random read, depth 1", "IOPS", (4266.0, 4266.0),
        PI_STORAGE, Fitted, Rule(0.05), |b| reads(b, 1)),
    row(UAS, "random write, depth 1", "IOPS", (7471.0, 7471.0),
        PI_STORAGE, Fitted, Rule(0.05), |b| writes(b, "", 1)),
    row(UAS, "random write within 1 GiB, depth 30", "IOPS", (18_730.0, 18_730.0),
        PI_STORAGE, Fitted, Rule(0.10), |b| within(b, "", Op::Write, 1, 30)),
    row(UAS, "random read within 1 GiB, depth 30", "IOPS", (16_436.0, 24_854.0),
        PI_STORAGE, HeldOut, Range, |b| within(b, "", Op::Read, 1, 30)),
    row(UAS, "sequential read", "MB/s", (351.4, 351.4),
        PI_STORAGE, Fitted, Rule(0.10), |b| sequential(b, "", Op::Read, 8)),
    // The bounds by the rule were 10 %. `t_lat` includes the delay of computer and bridge. In the
    // model, a read-ahead hit does not have this delay.
    row(UAS, "sequential 4 KiB read, depth 1", "IOPS", (7958.0, 7958.0),
        PI_STORAGE, HeldOut, After(1.18), |b| Ok(in_order(b, Op::Read, 8, 1)? * 1e6 / 4096.0)),
    row(UAS, "sequential 4 KiB write, depth 1", "IOPS", (6553.0, 6553.0),
        PI_STORAGE, HeldOut, After(0.17), |b| Ok(in_order(b, Op::Write, 8, 1)? * 1e6 / 4096.0)),
    // The bounds by the rule were 10 %. The SSDs of the two measurements differ.
    row(UAS, "random read at depth 1, UAS over BOT", "x", (1.35, 1.43),
        GEERLING, HeldOut, After(0.18), |b| over_bot(b, |b| reads(b, 1))),
    row(UAS, "random write at depth 1, UAS over BOT", "x", (1.20, 1.23),
        GEERLING, HeldOut, Rule(0.10), |b| over_bot(b, |b| writes(b, "", 1))),
    row(UAS, "sequential write, UAS over BOT", "x", (1.40, 1.40),
        GEERLING, HeldOut, After(0.18), |b| over_bot(b, |b| sequential(b, "", Op::Write, 8))),
    row(BOT, "random read, depth 1", "IOPS", (3689.0, 3689.0),
        "geerlingguy/turing-pi-cluster issue 11, Raspberry Pi 4", Fitted, Rule(0.05), |b| reads(b, 1)),
    row(BOT, "random write, depth 1", "IOPS", (5960.0, 5960.0),
        "geerlingguy/turing-pi-cluster issue 11, Raspberry Pi 4", Fitted, Rule(0.05), |b| writes(b, "", 1)),
    row(BOT, "sequential read", "MB/s", (234.3, 234.3),
        "Geerling: UAS is 50 % faster", Fitted, Rule(0.10), |b| sequential(b, "", Op::Read, 8)),
];

fn random(b: &Bench, options: &str, op: Op, depth: usize, warm: usize, n: usize) -> Measured<Run> {
    let mut c = Client::new(b.open(options)?);
    let blocks = c.device.facts().capacity.0 / 8;
    let mut rng = rng::stream(SEED, "validate");
    let mut next = |_| command(op, below(&mut rng, blocks) * 8, 8);
    c.run(warm, depth, Nanos::ZERO, &mut next);
    Ok(c.run(n, depth, Nanos::ZERO, &mut next))
}

/// Returns random 4 KiB reads per second at this depth.
fn reads(b: &Bench, depth: usize) -> Measured<f64> {
    Ok(random(b, "", Op::Read, depth, 0, 20_000)?.iops())
}

/// Returns random 4 KiB writes per second at this depth, with write buffer and queues in steady
/// state.
fn writes(b: &Bench, options: &str, depth: usize) -> Measured<f64> {
    let warm = if depth == 1 {
        0
    } else if options.contains("steady") {
        120_000
    } else {
        30_000
    };
    Ok(random(b, options, Op::Write, depth, warm, 30_000)?.iops())
}

/// Returns the rate in MB/s of sequential 128 KiB commands.
fn sequential(b: &Bench, options: &str, op: Op, depth: usize) -> Measured<f64> {
    let mut c = Client::new(b.open(options)?);
    let mut run = |from: usize, n: usize| {
        c.run(n, depth, Nanos::ZERO, |i| {
            command(op, (from + i) as u64 * 256, 256)
        })
    };
    // Commands until the write buffer is in steady state.
    let warm = match op {
        Op::Write if options.contains("fresh") => 9000,
        Op::Write => 1500,
        _ => 50,
    };
    run(0, warm);
    Ok(run(warm, 1500).mb())
}

/// Returns the time of an 8 KiB write and the following FLUSH, in ms. A pause precedes each write.
fn commit_ms(b: &Bench) -> Measured<f64> {
    let mut c = Client::new(b.open("")?);
    let mut sum = 0.0;
    for i in 0..200 {
        c.sleep(Nanos::from_ms(5));
        sum += c
            .send(command(Op::Write, 1_000_000 + 16 * i, 16))
            .as_ms_f64();
        sum += c.send(command(Op::Flush, 0, 0)).as_ms_f64();
    }
    Ok(sum / 200.0)
}

/// Returns which fraction of its rate a reader keeps next to a writer that alternates 4 KiB writes
/// and flushes. The reader issues random reads, one at a time.
fn left_beside_syncs(b: &Bench) -> Measured<f64> {
    let mut device = b.open("")?;
    let blocks = device.facts().capacity.0 / 8;
    let mut rng = rng::stream(SEED, "validate");
    let (mut now, end) = (Instant::START, Instant::at_us(2_000_000));
    let (mut read, mut done): (u64, Vec<Done>) = (0, vec![]);
    let mut due = [true, true];
    let mut flush = false;
    while now < end {
        for (who, due) in due.iter_mut().enumerate() {
            if !*due {
                continue;
            }
            let c = match (who, flush) {
                (0, _) => command(Op::Read, below(&mut rng, blocks) * 8, 8),
                (_, true) => command(Op::Flush, 0, 0),
                (_, false) => command(Op::Write, below(&mut rng, blocks) * 8, 8),
            };
            let c = seekwell_core::Command {
                id: who as u32,
                ..c
            };
            *due = device.accept(now, c) == Accept::Busy;
            flush ^= who == 1 && !*due;
        }
        let Some(t) = device.next_event() else { break };
        now = t;
        device.advance(t, &mut done);
        for d in done.drain(..) {
            due[d.id as usize] = true;
            read += u64::from(d.id == 0);
        }
    }
    let beside = read as f64 / now.since(Instant::START).as_secs_f64();
    Ok(beside / reads(b, 1)?)
}

/// Runs random commands of `sectors` in the first `gib` GiB, or over the whole drive.
#[allow(clippy::too_many_arguments)]
fn at_random(
    b: &Bench,
    options: &str,
    op: Op,
    sectors: u32,
    gib: Option<u64>,
    depth: usize,
    warm: usize,
    n: usize,
) -> Measured<Run> {
    let mut c = Client::new(b.open(options)?);
    let unit = u64::from(sectors);
    let all = c.device.facts().capacity.0;
    let places = gib.map_or(all, |g| all.min(g << 21)) / unit;
    let mut rng = rng::stream(SEED, "validate");
    let mut next = |_| command(op, below(&mut rng, places) * unit, sectors);
    c.run(warm, depth, Nanos::ZERO, &mut next);
    Ok(c.run(n, depth, Nanos::ZERO, &mut next))
}

/// Returns random 4 KiB commands per second in the first `gib` GiB, after the drive has loaded the map of this range.
fn within(b: &Bench, options: &str, op: Op, gib: u64, depth: usize) -> Measured<f64> {
    Ok(at_random(b, options, op, 8, Some(gib), depth, 30_000, 30_000)?.iops())
}

/// Returns the rate in MB/s of sequential commands of `sectors`.
fn in_order(b: &Bench, op: Op, sectors: u32, depth: usize) -> Measured<f64> {
    let mut c = Client::new(b.open("")?);
    let mut run = |from: usize, n: usize| {
        c.run(n, depth, Nanos::ZERO, |i| {
            command(op, (from + i) as u64 * u64::from(sectors), sectors)
        })
    };
    run(0, 50);
    Ok(run(50, 1000).mb())
}

/// Returns random 4 KiB commands per second, of which `reads` in 100 are reads.
fn mixed(b: &Bench, reads: u64, depth: usize) -> Measured<f64> {
    let mut c = Client::new(b.open("")?);
    let blocks = c.device.facts().capacity.0 / 8;
    let mut rng = rng::stream(SEED, "validate");
    let mut next = |_| {
        let op = if below(&mut rng, 100) < reads {
            Op::Read
        } else {
            Op::Write
        };
        command(op, below(&mut rng, blocks) * 8, 8)
    };
    c.run(30_000, depth, Nanos::ZERO, &mut next);
    Ok(c.run(30_000, depth, Nanos::ZERO, &mut next).iops())
}

/// Returns a result of this device, divided by the result of the device without a queue.
fn over_bot(b: &Bench, measure: fn(&Bench) -> Measured<f64>) -> Measured<f64> {
    let bot = Bench {
        null: b.null,
        ..Bench::model(BOT)
    };
    Ok(measure(b)? / measure(&bot)?)
}
